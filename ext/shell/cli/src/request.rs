//! Converts a task to a run request: looks up the model, mounts, secrets and policy that the task
//! names on this host.

use super::model::ModelArgs;
use super::network::NetworkArgs;
use super::{Settings, duration, model, network, recipe_request};
use clap::Args;
use serde_json::Value;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{
    Agent, AgentCommand, CPU_MILLI, ErrorBody, ErrorCode, LimitsRequest, PresetAgent, RunPaths,
    RunRequest, SiteId, TaskSpec, parse_json,
};
use wp_codebox_control::new_run_id;
use wp_codebox_policy::command_words;

/// Size limits of a guest, shared by the commands that start one.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SizeArgs {
    /// Memory of all processes together: bytes, or a number with K, M or G.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Disk space that the guest may write: bytes, or a number with K, M or G.
    #[arg(long, value_name = "SIZE")]
    pub disk: Option<String>,
    /// Processors that all processes together may use, e.g. 1.5; needs a control group.
    #[arg(long, value_name = "NUMBER")]
    pub cpus: Option<String>,
}

impl SizeArgs {
    /// Returns a request with these limits; all other limits have their default.
    pub(crate) fn limits(&self) -> Result<LimitsRequest, ErrorBody> {
        Ok(LimitsRequest {
            memory_bytes: size("--memory", self.memory.as_deref())?,
            disk_bytes: size("--disk", self.disk.as_deref())?,
            cpu_milli: self.cpus.as_deref().map(cpu_milli).transpose()?,
            ..LimitsRequest::default()
        })
    }
}

/// Converts a number of processors with at most three decimals to thousandths.
fn cpu_milli(given: &str) -> Result<u64, ErrorBody> {
    let (whole, part) = given.split_once('.').unwrap_or((given, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let read = || {
        let fits = digits(whole) && digits(part) && part.len() <= 3 && !given.is_empty();
        let milli = format!("0{whole}{part:0<3}").parse::<u64>().ok();
        milli.filter(|milli| fits && (CPU_MILLI.0..=CPU_MILLI.1).contains(milli))
    };
    read().ok_or_else(|| {
        let (least, most) = (CPU_MILLI.0, CPU_MILLI.1 / 1000);
        input(format!(
            "--cpus must be a number of processors from 0.{least:03} to {most}, e.g. 1.5, not {given:?}"
        ))
    })
}

/// Reads a size, such as `512M`, in bytes.
pub fn size(flag: &str, given: Option<&str>) -> Result<Option<u64>, ErrorBody> {
    given.map(|given| bytes(flag, given)).transpose()
}

/// Arguments and settings from which a run request is built in addition to the task.
#[derive(Debug)]
pub(crate) struct Beside<'a> {
    pub site: &'a str,
    pub model: &'a ModelArgs,
    pub network: &'a NetworkArgs,
    pub settings: &'a Settings,
}

/// Builds the run request of a task. Looks up its model, mounts, secrets and policy on this host.
pub(crate) fn resolve(mut task: TaskSpec, beside: &Beside<'_>) -> Result<RunRequest, ErrorBody> {
    let who = task.agent_command.is_some() || task.agent.is_some() || task.model.is_some();
    if task.commands.is_empty() && !who && task.hold.is_none() {
        return Err(input(
            "nothing to run: add --model for the built-in agent, --agent, --agent-command or --command",
        ));
    }
    let model = model::read(&task, beside.model, beside.network)?;
    if task.goal.is_empty() && !task.staged_files.is_empty() {
        "Run a command".clone_into(&mut task.goal);
    }
    task.secrets = network::secrets(&task.secret_env)?;
    // If the guest also gets the model's key as a secret, add the key only once.
    let key = model.key;
    let key = key.filter(|key| task.secrets.iter().all(|s| s.env != key.env));
    task.secrets.extend(key);
    task.resolved_agent = agent(&task)?.or(model.agent);
    task.resolved_model = model.endpoint;
    task.provenance
        .insert("requester".to_owned(), Value::from("command-line"));
    let mut request = request(task, beside.site, beside.settings)?;
    if request.policy.is_none() {
        request.policy = network::policy(beside.network, &request)?;
    }
    Ok(request)
}

/// Creates a request with a new id from a resolved task.
pub(crate) fn request(
    task: TaskSpec,
    site: &str,
    settings: &Settings,
) -> Result<RunRequest, ErrorBody> {
    let site = SiteId::new(site).map_err(|e| input(format!("--site: {e}")))?;
    let paths = run_paths(settings, settings.named_wordpress()?)?;
    let mut task = task;
    task.resolved_seeds = recipe_request::seeds(&paths, &task.site_seeds)?;
    Ok(task.into_request(new_run_id()?, site, paths))
}

/// Returns the host paths of a run that is started with this program.
pub(crate) fn run_paths(settings: &Settings, wordpress: &Path) -> Result<RunPaths, ErrorBody> {
    let root = text(wordpress)?;
    // Real paths, because they are compared with the real paths of mount sources.
    let real = |path: PathBuf| text(&path.canonicalize().unwrap_or(path));
    Ok(RunPaths {
        state_dir: text(&settings.state_dir)?,
        share_dir: text(&settings.share_dir)?,
        launcher: text(&settings.launcher)?,
        php_binary: text(&settings.php_binary)?,
        wordpress: root,
        code_roots: vec![
            real(wordpress.join("wp-content/plugins"))?,
            real(wordpress.join("wp-content/themes"))?,
        ],
        denied: vec![real(wordpress.to_owned())?],
        allowed_roots: None,
        cgroup: settings.cgroup.as_deref().map(text).transpose()?,
        identity: settings.identity()?,
        guest_ids: settings.guest_ids()?,
        agents_dir: settings.agents_dir.as_deref().map(text).transpose()?,
        browser: settings.browser.as_deref().map(text).transpose()?,
    })
}

/// Returns the error for wrong usage of a command.
pub fn input(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

/// Returns a path as text.
///
/// # Errors
/// `wp_codebox_input_invalid` if it is not UTF-8.
pub fn text(path: &Path) -> Result<String, ErrorBody> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| input(format!("{} is not valid UTF-8", path.display())))
}

pub(super) fn absolute(host: &str) -> Result<String, ErrorBody> {
    let path: PathBuf = std::path::absolute(host).map_err(|e| input(format!("{host:?}: {e}")))?;
    text(&path)
}

/// Returns the real path of an existing regular file.
pub(super) fn real_file(path: &str) -> Option<String> {
    let real = Path::new(path).canonicalize().ok()?;
    real.is_file().then(|| real.to_str().map(str::to_owned))?
}

/// Returns the agent that the task names by its command line or by the name of a preset.
pub(super) fn agent(task: &TaskSpec) -> Result<Option<Agent>, ErrorBody> {
    let Some(line) = &task.agent_command else {
        if !task.agent_env.is_empty() || !task.agent_success_codes.is_empty() {
            return Err(input(
                "agent_env and agent_success_codes belong to an agent that is given by its command line; leave them out",
            ));
        }
        let name = task.agent.clone();
        return Ok(name.map(|name| Agent::Preset(PresetAgent { name })));
    };
    let argv = command_words(line).map_err(|e| e.body())?;
    if argv.is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::AgentMissing,
            "--agent-command is empty: set it to a program with its arguments",
        ));
    }
    let success_codes = match &task.agent_success_codes[..] {
        [] => vec![0],
        codes => codes.to_vec(),
    };
    Ok(Some(Agent::Command(AgentCommand {
        argv,
        success_codes,
        env: task.agent_env.clone(),
        preset: None,
    })))
}

pub(super) fn policy(given: &str) -> Result<wp_codebox_contracts::RuntimePolicy, ErrorBody> {
    wp_codebox_policy::parse(&policy_document(given)?).map_err(|e| e.body())
}

/// Returns whether an argument is JSON text and not the name of a file.
pub(crate) fn is_json_text(given: &str) -> bool {
    given.trim_start().starts_with('{')
}

/// Reads a policy from an argument: the name of a file, or JSON text.
pub(crate) fn policy_document(given: &str) -> Result<Value, ErrorBody> {
    let invalid =
        |what: String| ErrorBody::new(ErrorCode::PolicyInvalid, format!("--policy: {what}"));
    let json = if is_json_text(given) {
        given.to_owned()
    } else {
        std::fs::read_to_string(given).map_err(|e| invalid(format!("{given}: {e}")))?
    };
    parse_json(json.as_bytes()).map_err(|e| {
        invalid(format!(
            "not valid JSON (line {}, column {})",
            e.line(),
            e.column()
        ))
    })
}

/// Parses `--timeout` of a run or of one program.
pub(crate) fn timeout(given: Option<&str>) -> Result<Option<u64>, ErrorBody> {
    let read = |given| duration::read(ErrorCode::LimitInvalid, "--timeout", given);
    given.map(read).transpose()
}

pub(crate) fn bytes(flag: &str, given: &str) -> Result<u64, ErrorBody> {
    scaled(given, &[("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)]).ok_or_else(|| {
        ErrorBody::new(
            ErrorCode::LimitInvalid,
            format!("{flag} {given:?} must be a number of bytes, optionally with K, M or G"),
        )
    })
}

/// Parses a whole number with an optional unit of `units`; `None` if it is invalid or overflows.
fn scaled(given: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, factor) = units
        .iter()
        .find_map(|&(unit, factor)| given.strip_suffix(unit).map(|n| (n, factor)))
        .unwrap_or((given, 1));
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_size_with_a_unit_is_converted_to_bytes_and_an_invalid_size_is_refused() {
        assert_eq!(bytes("--memory", "2M").unwrap(), 2 << 20);
        for bad in ["", "M", "-1", "99999999999999999999", "1.5M"] {
            assert!(bytes("--memory", bad).is_err(), "{bad}");
        }
        assert!(bytes("--disk", "18446744073709551615G").is_err());
    }
}
