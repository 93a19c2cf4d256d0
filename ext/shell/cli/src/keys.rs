//! `wp-codebox keys`: replaces the host's signing key.

use super::output::Output;
use clap::{Args, Subcommand};
use serde_json::json;
use std::process::ExitCode;
use wp_codebox_artifacts::{AuditLog, Dir, HostKey, Rotated};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, SiteId};
use wp_codebox_runtime::{StateDir, sites};
use wp_codebox_settings::{PathArgs, Settings};

/// Subcommands of `keys`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Replace the signing key of this host by a new one.
    Rotate(RotateArgs),
}

/// Arguments of `keys rotate`.
#[derive(Debug, Args)]
#[command(after_help = "\
What the old key signed still counts as signed by this host: its public key is stored as \
keys/KEY_ID.pub in the state directory, and the audit logs are signed again. If other users may have \
read the old key, remove that file: bundles of the old key then count as signed by an unknown key.

Hosts that trust bundles of this one need the new id (--trusted-key, setting Trusted keys). A cluster \
node uses its new key after a restart; its submitters need `cluster configure` again.

Examples:
  wp-codebox keys rotate
  wp-codebox keys rotate --json | jq -r .key_id

Exit status: 0; 1 when the key was replaced and an audit log could not be signed again; 125 when \
there is no key or it could not be replaced.")]
pub(crate) struct RotateArgs {
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub paths: PathArgs,
}

pub(crate) fn main(output: &Output, command: &KeysCommand) -> ExitCode {
    let KeysCommand::Rotate(args) = command;
    match rotate(args) {
        Ok((rotated, unsigned)) => {
            show(*output, &rotated, &unsigned);
            ExitCode::from(u8::from(!unsigned.is_empty()))
        }
        Err(error) => output.failure("keys rotate", &error),
    }
}

/// Replaces the key and signs the anchors of all audit logs again. Also returns the sites whose
/// anchor still has the old signature.
fn rotate(args: &RotateArgs) -> Result<(Rotated, Vec<(SiteId, ErrorBody)>), ErrorBody> {
    let settings = Settings::resolve(&args.paths)?;
    let state = StateDir::open(&settings.state_dir)?;
    state.become_owner()?;
    let directory = Dir::open(state.path())
        .map_err(|e| ErrorBody::new(ErrorCode::StateDirInvalid, e.to_string()))?;
    let all = sites(&state)?;
    let rotated = HostKey::rotate(&directory)?;
    let sign = |site: SiteId| {
        let log = AuditLog::open(&directory, &site);
        let signed = log.and_then(|log| log.sign_anchor_again());
        signed.err().map(|error| (site, error.body()))
    };
    Ok((rotated, all.into_iter().filter_map(sign).collect()))
}

fn show(output: Output, rotated: &Rotated, unsigned: &[(SiteId, ErrorBody)]) {
    let (old, new) = (rotated.old.key_id(), rotated.key.public_half());
    if output.is_json() {
        let rows = unsigned.iter();
        output.document(&json!({
            "success": unsigned.is_empty(),
            "key_id": new.key_id(),
            "public_key": new.to_base64(),
            "old_key_id": old,
            "unsigned_audit_logs": rows.map(|(site, error)| json!({"site": site, "error": error})).collect::<Vec<_>>(),
        }));
        return;
    }
    output.line(&format!("new key  {}", new.key_id()));
    output.line(&format!("old key  {old}"));
    for (site, error) in unsigned {
        output.note(&format!(
            "Error: the audit log of {site} still has the signature of the old key: {} [{}]",
            error.message, error.code
        ));
        output.note("  hint: the next record in that log is signed with the new key");
    }
    output.note(&format!(
        "What the old key signed stays trusted. To end that: remove keys/{old}.pub in the state directory"
    ));
}
