//! From the array a PHP caller gives to a checked `RunRequest`.
//!
//! Every member is read or refused by name. What the policy crate can judge is judged
//! by it; what only the runner can know (whether directories exist and whose they are)
//! is left to the runner. Binaries and the state directory come from the settings only.

mod agents;
mod bundles;
mod rows;
mod task;

use crate::fields::Fields;
use crate::ini::{Settings, is_absolute};
use agents::{agent, check_model, components, model, parent_tools, tool_policy};
use bundles::agent_bundles;
use rows::{absolute_rule, bounded, commands, mounts, secrets, texts_not_blank};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use task::{refuse_raw_code, staged_files, task};
use wp_codebox_contracts::{
    Agent, ErrorBody, ErrorCode, Hold, LimitsRequest, RunId, RunMode, RunPaths, RunRequest,
    RuntimePolicy, SiteId, schema_id,
};
use wp_codebox_policy as policy;

const REQUEST_FIELDS: &[&str] = &[
    "site",
    "mode",
    "goal",
    "task_input",
    "policy",
    "mounts",
    "staged_files",
    "commands",
    "agent",
    "model",
    "tool_policy",
    "hold",
    "parent_tools",
    "components",
    "checks",
    "limits",
    "max_runs",
    "find_renames",
    "secrets",
    "agent_bundles",
    "redact",
    "provenance",
    "wordpress",
    "denied",
    "code_roots",
    "allowed_roots",
];
/// A caller may want fewer runs at once than the host allows, never more.
fn max_runs(fields: &mut Fields, settings: &Settings) -> Result<u32, ErrorBody> {
    let host = settings.max_runs()?;
    match fields.count("max_runs")? {
        None => Ok(host),
        Some(0) => Err(fields.refuse("max_runs", "a whole number from 1")),
        Some(wanted) => Ok(u32::try_from(wanted).map_or(host, |wanted| wanted.min(host))),
    }
}

/// Whether mounts and agent must be there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A run is about to start.
    Start,
    /// The caller wants to know what it has got so far.
    Preview,
}

/// Checks a request and completes it from the settings.
pub(crate) fn build(
    request: Map<String, Value>,
    settings: &Settings,
    stage: Stage,
) -> Result<RunRequest, ErrorBody> {
    refuse_raw_code(&request, "")?;
    let mut fields = Fields::new(request, "", REQUEST_FIELDS, ErrorCode::InputInvalid)?;
    let mut task = task(&mut fields)?;
    let site = fields.required_text("site")?;
    let site = SiteId::new(site).map_err(|e| fields.refuse("site", "").told(&e.to_string()))?;
    let mode = mode(&mut fields)?;
    let paths = paths(&mut fields, settings)?;
    let rules = policy_of(&mut fields)?;
    let given = rules
        .clone()
        .unwrap_or_else(|| policy::defaults(Vec::new()));
    let mounts = mounts(&mut fields, &given)?;
    task.staged_files.extend(staged_files(&mut fields)?);
    bounded(&fields, "staged_files", task.staged_files.len())?;
    let commands = commands(&mut fields, rules.as_ref())?;
    let agent = agent(&mut fields)?;
    let model = model(&mut fields)?;
    check_model(agent.as_ref(), model.as_ref())?;
    let tool_policy = tool_policy(&mut fields)?;
    let parent_tools = parent_tools(&mut fields)?;
    let components = components(&mut fields)?;
    let targets = policy::check_mounts(&mounts, &given).map_err(|e| e.body())?;
    policy::check_components(&components, &targets, &given).map_err(|e| e.body())?;
    let hold = hold(&mut fields)?;
    let checks = texts_not_blank(&mut fields, "checks")?;
    bounded(&fields, "checks", checks.len())?;
    for (index, line) in checks.iter().enumerate() {
        let name = format!("checks[{index}]");
        split_command(line)
            .map_err(|_| fields.refuse(&name, "a command line without open quotes"))?;
    }
    let limits = limits(&mut fields)?;
    let max_runs = max_runs(&mut fields, settings)?;
    let find_renames = fields.flag("find_renames")?;
    let command = agent.as_ref().and_then(Agent::command);
    let secrets = secrets(&mut fields, &given, command, model.as_ref())?;
    let agent_bundles = agent_bundles(&mut fields)?;
    let names = secrets.iter().map(|secret| secret.env.as_str()).collect();
    policy::check_agent_bundles(&agent_bundles, &names).map_err(|e| e.body())?;
    let redact = fields.texts("redact")?;
    let provenance = fields.object("provenance")?.unwrap_or_default();

    let idle = agent.is_none() && commands.is_empty() && hold.is_none();
    if stage == Stage::Start && idle {
        return Err(ErrorBody::new(
            ErrorCode::AgentMissing,
            "no agent and no command was given; name one with `agent` or list `commands`",
        ));
    }
    Ok(RunRequest {
        schema: schema_id::RUN_REQUEST.to_owned(),
        run_id: new_run_id()?,
        site,
        mode,
        max_runs,
        paths,
        task: Some(task),
        policy: rules,
        mounts,
        commands,
        workflow: None,
        hold,
        agent,
        model,
        tool_policy,
        parent_tools,
        components,
        agent_bundles,
        checks,
        limits,
        find_renames,
        secrets,
        outer_sandbox: settings.outer_sandbox()?,
        redact,
        provenance,
    })
}

/// How long the guest stays when everything else has run.
fn hold(fields: &mut Fields) -> Result<Option<Hold>, ErrorBody> {
    let Some(given) = fields.object("hold")? else {
        return Ok(None);
    };
    const KNOWN: &[&str] = &["ttl_ms", "max_ttl_ms", "idle_ms"];
    let mut row = Fields::new(given, "hold", KNOWN, ErrorCode::InputInvalid)?;
    let Some(ttl_ms) = row.count("ttl_ms")?.filter(|time| *time > 0) else {
        return Err(row.refuse("ttl_ms", "milliseconds, at least 1"));
    };
    let max_ttl_ms = row.count("max_ttl_ms")?.unwrap_or(ttl_ms);
    if max_ttl_ms < ttl_ms {
        return Err(row.refuse("max_ttl_ms", "at least ttl_ms"));
    }
    Ok(Some(Hold {
        ttl_ms,
        max_ttl_ms,
        idle_ms: row.count("idle_ms")?,
        preview: None,
        identity: None,
        snapshot: None,
    }))
}

fn mode(fields: &mut Fields) -> Result<RunMode, ErrorBody> {
    match fields.text("mode")?.as_deref() {
        None | Some("attached") => Ok(RunMode::Attached),
        Some("detached") => Ok(RunMode::Detached),
        Some(_) => Err(fields.refuse("mode", "attached or detached")),
    }
}

/// Splits a command line as a POSIX shell would, without expansion.
pub(crate) fn split_command(line: &str) -> Result<Vec<String>, ErrorBody> {
    shell_words::split(line).map_err(|_| {
        ErrorBody::new(
            ErrorCode::InputInvalid,
            "the command line has an open quote or ends with a backslash; close it",
        )
    })
}

trait Told {
    /// The same refusal with another sentence.
    fn told(self, sentence: &str) -> Self;
}

impl Told for ErrorBody {
    fn told(mut self, sentence: &str) -> Self {
        sentence.clone_into(&mut self.message);
        self
    }
}

fn paths(fields: &mut Fields, settings: &Settings) -> Result<RunPaths, ErrorBody> {
    let wordpress = fields.required_text("wordpress")?;
    if !is_absolute(&wordpress) {
        return Err(fields.refuse("wordpress", absolute_rule()));
    }
    let denied = absolute_paths(fields, "denied")?;
    let code_roots = absolute_paths(fields, "code_roots")?;
    // Absent and empty differ: without the list the caller is the operator.
    let allowed_roots = if fields.has("allowed_roots") {
        Some(absolute_paths(fields, "allowed_roots")?)
    } else {
        None
    };
    Ok(RunPaths {
        state_dir: settings.state_dir.clone(),
        share_dir: settings.share_dir.clone(),
        launcher: settings.launcher.clone(),
        php_binary: settings.php_binary.clone(),
        wordpress,
        denied,
        code_roots,
        allowed_roots,
        cgroup: Some(settings.cgroup.clone()).filter(|path| !path.is_empty()),
        identity: settings.identity()?,
        guest_ids: settings.guest_ids()?,
        agents_dir: Some(settings.agents_dir.clone()).filter(|path| !path.is_empty()),
        browser: None,
    })
}

fn absolute_paths(fields: &mut Fields, name: &str) -> Result<Vec<String>, ErrorBody> {
    let paths = fields.texts(name)?;
    match paths.iter().position(|path| !is_absolute(path)) {
        None => Ok(paths),
        Some(index) => Err(fields.refuse(&format!("{name}[{index}]"), absolute_rule())),
    }
}

fn policy_of(fields: &mut Fields) -> Result<Option<RuntimePolicy>, ErrorBody> {
    match fields.take("policy") {
        None => Ok(None),
        Some(document) => policy::parse(&document).map(Some).map_err(|e| e.body()),
    }
}

fn limits(fields: &mut Fields) -> Result<LimitsRequest, ErrorBody> {
    const KNOWN: &[&str] = &[
        "wall_clock_ms",
        "processes",
        "memory_bytes",
        "disk_bytes",
        "output_bytes",
    ];
    let given = fields.object("limits")?.unwrap_or_default();
    let mut row = Fields::new(given, "limits", KNOWN, ErrorCode::LimitInvalid)?;
    let limits = LimitsRequest {
        wall_clock_ms: row.count("wall_clock_ms")?,
        processes: row.count("processes")?,
        memory_bytes: row.count("memory_bytes")?,
        disk_bytes: row.count("disk_bytes")?,
        output_bytes: row.count("output_bytes")?,
    };
    match limits.resolve() {
        Ok(_) => Ok(limits),
        Err(error) => Err(row.refuse(error.field, "").told(&error.to_string())),
    }
}

fn new_run_id() -> Result<RunId, ErrorBody> {
    let failed = |reason: String| ErrorBody::new(ErrorCode::Internal, reason);
    let mut bytes = [0_u8; 16];
    let got = getrandom(&mut bytes[..], GetRandomFlags::empty())
        .map_err(|errno| failed(format!("the kernel gave no random bytes: {errno}")))?;
    if got != bytes.len() {
        return Err(failed("the kernel gave too few random bytes".to_owned()));
    }
    let mut text = String::from("run_");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    RunId::new(text).map_err(|error| failed(error.to_string()))
}
