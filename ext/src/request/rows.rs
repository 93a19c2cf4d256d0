//! Mounts, commands and the agent of a request.

use crate::fields::Fields;
use wp_codebox_contracts::{
    AgentCommand, CommandCall, ErrorBody, ErrorCode, GitChoice, ModelEndpoint, MountAccess,
    MountRequest, RuntimePolicy, SecretBinding,
};
use wp_codebox_policy as policy;

/// Most rows of mounts, commands, checks and staged files, each.
const MAX_ROWS: usize = 256;

/// What a host path must be.
pub(super) fn absolute_rule() -> &'static str {
    "an absolute path without `.` and `..` segments"
}

pub(super) fn mounts(
    fields: &mut Fields,
    rules: &RuntimePolicy,
) -> Result<Vec<MountRequest>, ErrorBody> {
    const KNOWN: &[&str] = &["source", "target", "mode", "exclude", "git", "metadata"];
    let rows = fields.rows("mounts", KNOWN, ErrorCode::MountInvalid)?;
    bounded(fields, "mounts", rows.len())?;
    let mut mounts = Vec::with_capacity(rows.len());
    for mut row in rows {
        let mode = match row.text("mode")?.as_deref() {
            None | Some("readwrite") => MountAccess::Readwrite,
            Some("readonly") => MountAccess::Readonly,
            Some(_) => return Err(row.refuse("mode", "readonly or readwrite")),
        };
        let git = git(&mut row)?;
        mounts.push(MountRequest {
            source: row.required_text("source")?,
            target: row.required_text("target")?,
            mode,
            exclude: texts_not_blank(&mut row, "exclude")?,
            git,
            metadata: row.object("metadata")?.filter(|map| !map.is_empty()),
        });
    }
    policy::check_mounts(&mounts, rules).map_err(|e| e.body())?;
    Ok(mounts)
}

/// The repository of a mount. `history` shows every object of the host's repository, also what no
/// branch has, so it is left to the operator at the shell.
fn git(row: &mut Fields) -> Result<GitChoice, ErrorBody> {
    match row.text("git")?.as_deref() {
        None => Ok(GitChoice::Auto),
        Some("baseline") => Ok(GitChoice::Baseline),
        Some("none") => Ok(GitChoice::None),
        Some("history") => {
            let rule = "baseline or none: history shows everything that was ever committed, and only the operator at the shell may ask for it (wp-codebox run --git history)";
            Err(ErrorBody {
                code: ErrorCode::GitUnavailable,
                ..row.refuse("git", rule)
            })
        }
        Some(_) => Err(row.refuse("git", "baseline or none")),
    }
}

pub(super) fn commands(
    fields: &mut Fields,
    rules: Option<&RuntimePolicy>,
) -> Result<Vec<CommandCall>, ErrorBody> {
    let rows = fields.rows("commands", &["command", "args"], ErrorCode::InputInvalid)?;
    bounded(fields, "commands", rows.len())?;
    let mut calls = Vec::with_capacity(rows.len());
    for mut row in rows {
        calls.push(CommandCall {
            command: row.required_text("command")?,
            args: row.texts("args")?,
        });
    }
    // Without a policy the run gets the default one with exactly these commands.
    let needed = calls
        .iter()
        .flat_map(|c| policy::required_commands(&c.command));
    let own = policy::defaults(needed.map(str::to_owned).collect());
    for call in &calls {
        policy::assert_command(rules.unwrap_or(&own), call).map_err(|e| e.body())?;
    }
    Ok(calls)
}

pub(super) fn secrets(
    fields: &mut Fields,
    rules: &RuntimePolicy,
    agent: Option<&AgentCommand>,
    model: Option<&ModelEndpoint>,
) -> Result<Vec<SecretBinding>, ErrorBody> {
    const KNOWN: &[&str] = &["env", "value", "hosts"];
    let rows = fields.rows("secrets", KNOWN, ErrorCode::SecretInvalid)?;
    bounded(fields, "secrets", rows.len())?;
    let mut secrets = Vec::with_capacity(rows.len());
    for mut row in rows {
        secrets.push(SecretBinding {
            env: row.required_text("env")?,
            value: row.required_text("value")?,
            hosts: row.texts("hosts")?,
        });
    }
    let taken = agent.into_iter().flat_map(|agent| agent.env.keys());
    let secret_use = policy::SecretUse {
        policy: rules,
        model,
    };
    policy::check_secrets(&secrets, secret_use, taken.map(String::as_str)).map_err(|e| e.body())?;
    Ok(secrets)
}

pub(super) fn texts_not_blank(fields: &mut Fields, name: &str) -> Result<Vec<String>, ErrorBody> {
    let texts = fields.texts(name)?;
    match texts
        .iter()
        .position(|text| text.trim().is_empty() || text.contains('\0'))
    {
        None => Ok(texts),
        Some(index) => Err(fields.refuse(
            &format!("{name}[{index}]"),
            "not blank and free of NUL bytes",
        )),
    }
}

pub(super) fn bounded(fields: &Fields, name: &str, rows: usize) -> Result<(), ErrorBody> {
    if rows <= MAX_ROWS {
        Ok(())
    } else {
        Err(fields.refuse(name, &format!("a list of at most {MAX_ROWS} rows")))
    }
}
