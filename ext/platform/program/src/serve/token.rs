//! `wp-codebox token`: makes, lists and revokes tokens of the service.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use wp_codebox_cli::duration;
use wp_codebox_cli::output::Output;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::{StateDir, rfc3339};
use wp_codebox_service::{Actor, Scopes, TokenRow, TokenSpec, TokenStore};
use wp_codebox_settings::{PathArgs, Settings};

/// Name of the state directory's subdirectory with the records of the service.
const DIRECTORY: &str = "service";

/// Returns the directory with the records of the service, after creating it if it is missing.
pub(super) fn directory(state: &StateDir) -> Result<PathBuf, ErrorBody> {
    state.ensure(&[DIRECTORY]).map_err(ErrorBody::from)
}

/// Subcommands of `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it, this one time.
    Create(CreateArgs),
    /// List tokens, oldest first, without their secrets.
    List(ListArgs),
    /// Revoke a token. Has no effect on a revoked token.
    Revoke(RevokeArgs),
}

/// Arguments of `token create`.
#[derive(Debug, Args)]
#[command(after_help = "\
A scope is an operation (sandboxes:read), a group (sandboxes:*) or * for all groups; with @PROFILE \
it holds only for objects of that profile. A token sees only sandboxes, runs and artifacts of its \
own actor. sandboxes:all, runs:all and artifacts:all add those of other actors and of nobody; no \
group and not * contains one of them.

--role tenant@PROFILE gives everything that a customer with sandboxes of this profile needs: all \
operations on its own sandboxes, files, snapshots, events, meters, runs and artifacts. A running \
service sees a new or revoked token at its next request.

Examples:
  wp-codebox token create --actor agt:shop --account shop \\
    --role tenant@profile.shop
  wp-codebox token create --actor atm:nightly \\
    --scope 'sandboxes:*@profile.shop' --scope files:read
  wp-codebox token create --actor agt:harness --scope '*' --expires 30d \\
    --rate 600 --concurrency 20 --json | jq -r .token

Exit status: 0; 1 when a scope or the actor is not valid; 125 when the records cannot be written.")]
pub(crate) struct CreateArgs {
    /// Allowed operation, with @PROFILE only for this profile; may be repeated.
    #[arg(
        long = "scope",
        value_name = "SCOPE",
        required_unless_present = "roles"
    )]
    pub scopes: Vec<String>,
    /// Ready set of scopes: tenant@PROFILE; may be repeated, and added to --scope.
    #[arg(long = "role", value_name = "ROLE@PROFILE")]
    pub roles: Vec<String>,
    /// Class and name of the user: adm:NAME (administrator), agt:NAME (agent), atm:NAME
    /// (automation). In every event of its requests.
    #[arg(long, value_name = "CLASS:NAME")]
    pub actor: String,
    /// Account that pays for its sandboxes, if credits are on.
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// Requests per minute.
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: u32,
    /// Requests at the same time.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency: u32,
    /// Time after which it is no longer accepted, such as 12h or 30d. [default: never]
    #[arg(long, value_name = "DURATION")]
    pub expires: Option<String>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `token list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox token list
  wp-codebox token list --json | jq -r '.tokens[].id'

Exit status: 0, also when there is none; 125 when the records cannot be read.")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `token revoke`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox token revoke 3f2a9c01d4e5

Exit status: 0; 1 when there is no token with this id; 125 when the records cannot be written.")]
pub(crate) struct RevokeArgs {
    /// Id of the token: the part between the underscores.
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn main(output: &Output, command: &TokenCommand) -> ExitCode {
    let (name, done) = match command {
        TokenCommand::Create(args) => ("token create", create(output, args)),
        TokenCommand::List(args) => ("token list", list(output, args)),
        TokenCommand::Revoke(args) => ("token revoke", revoke(output, args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure(name, &error),
    }
}

fn open(paths: &PathArgs) -> Result<TokenStore, ErrorBody> {
    let settings = Settings::resolve(paths)?;
    let state = StateDir::open(&settings.state_dir)?;
    state.become_owner()?;
    TokenStore::open(&directory(&state)?)
}

fn create(output: &Output, args: &CreateArgs) -> Result<(), ErrorBody> {
    let invalid = |what: String| ErrorBody::new(ErrorCode::InputInvalid, what);
    let profiles = args.roles.iter().map(|role| tenant(role));
    let roles = Scopes::tenant(&profiles.collect::<Result<Vec<_>, _>>()?)
        .map_err(|e| invalid(format!("--role: {e}")))?;
    let scopes = Scopes::parse(&args.scopes)
        .and_then(|scopes| roles.and(scopes))
        .map_err(|e| invalid(format!("--scope: {e}")))?;
    let actor: Actor = args
        .actor
        .parse()
        .map_err(|e| invalid(format!("--actor: {e}")))?;
    let expires = args
        .expires
        .as_deref()
        .map(|text| duration::positive(ErrorCode::InputInvalid, "--expires", text));
    let spec = TokenSpec {
        scopes,
        actor,
        account: args.account.clone(),
        rate_per_minute: args.rate,
        concurrency: args.concurrency,
        ttl_ms: expires.transpose()?,
    };
    let made = open(&args.paths)?.create(spec)?;
    let mut document = shown(&made.row);
    document["success"] = json!(true);
    document["token"] = json!(made.token);
    output.answer(&document, &[made.token]);
    output.note("the token cannot be shown again; store it where only its user can read it");
    Ok(())
}

/// Returns the profile of the role `tenant@PROFILE`.
fn tenant(role: &str) -> Result<&str, ErrorBody> {
    role.strip_prefix("tenant@").ok_or_else(|| {
        ErrorBody::new(
            ErrorCode::InputInvalid,
            format!("--role {role:?} is unknown; write tenant@ and the id of a profile, for example tenant@profile.shop"),
        )
    })
}

fn shown(row: &TokenRow) -> Value {
    json!({
        "id": row.id, "scopes": row.scopes, "actor": row.actor, "account": row.account,
        "rate_per_minute": row.rate_per_minute, "concurrency": row.concurrency,
        "created_at": time(row.created_ms), "expires_at": row.expires_ms.map(time),
        "revoked_at": row.revoked_ms.map(time),
    })
}

fn time(ms: i64) -> String {
    let ms = ms.max(0).unsigned_abs();
    rfc3339(ms / 1000, u32::try_from(ms % 1000).unwrap_or_default())
}

fn list(output: &Output, args: &ListArgs) -> Result<(), ErrorBody> {
    let rows = open(&args.paths)?.list()?;
    let lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let scopes: Vec<String> = row.scopes.clone().into();
            let end = match (row.revoked_ms, row.expires_ms) {
                (Some(at), _) => format!("revoked {}", time(at)),
                (None, Some(at)) => format!("until {}", time(at)),
                (None, None) => String::new(),
            };
            let line = format!(
                "{}  {:<24}  {}  {end}",
                row.id,
                row.actor.to_string(),
                scopes.join(" ")
            );
            line.trim_end().to_owned()
        })
        .collect();
    let tokens: Vec<Value> = rows.iter().map(shown).collect();
    output.answer(
        &json!({"success": true, "total": tokens.len(), "tokens": tokens}),
        &lines,
    );
    Ok(())
}

fn revoke(output: &Output, args: &RevokeArgs) -> Result<(), ErrorBody> {
    open(&args.paths)?.revoke(&args.id)?;
    let line = format!("{} is revoked", args.id);
    output.answer(
        &json!({"success": true, "id": args.id, "revoked": true}),
        &[line],
    );
    Ok(())
}
