//! Presets of command-line agents, i.e. descriptions of how to run them: loads a preset from the
//! installation and replaces its placeholders.
//!
//! A preset is converted to an ordinary guest program: a host directory that the guest may read,
//! files, arguments and environment variables. The author of the task chooses only the preset's
//! name.

use super::pinned::pinned;
use super::secrets::Secrets;
use super::sources::OpenStaged;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use wp_codebox_backend_native::{
    AGENTS, GuestEgress, ProgramDirectory, egress_environment, environment,
};
use wp_codebox_contracts::{
    Agent, AgentPreset, CodedError, ErrorBody, ErrorCode, GuestPath, ModelApi, ModelEndpoint,
    NetworkPolicy, NetworkRules, RunRequest, RuntimePolicy,
};
use wp_codebox_policy::{
    MAX_PRESETS, PRESET_BYTES, PresetContext, PresetError, ResolvedPreset, check_preset_name,
    parse_preset, resolve_preset,
};

/// Subdirectory of the share directory that contains the presets.
const DIRECTORY: &str = "agents";
/// Guest directory in which the files of the preset are visible.
const FILES: &str = "/run/codebox/staged/.agent";
/// Key that agent programs get if the model needs none, because some programs do not start without
/// a key.
const NO_KEY: &str = "codebox-no-key-needed";

/// Agent program that a preset describes, with the goal that it got.
#[derive(Debug)]
pub struct PresetAgentProgram {
    /// Description of the program.
    pub preset: AgentPreset,
    /// Goal that the command line or the standard input contains.
    pub goal: String,
    /// Standard input of the program.
    pub stdin: Vec<u8>,
}

/// What a preset adds to a run, besides the command line of the agent program.
#[derive(Debug)]
pub struct Equipped {
    /// Agent program.
    pub program: PresetAgentProgram,
    /// Files that the agent program reads.
    pub staged: Vec<OpenStaged>,
    /// Host directory that contains the agent program.
    pub programs: ProgramDirectory,
}

/// Loads the preset of this name.
pub fn load(share_dir: &Path, name: &str) -> Result<AgentPreset, ErrorBody> {
    check_preset_name(name)?;
    let path = share_dir.join(DIRECTORY).join(format!("{name}.json"));
    let mut bytes = Vec::new();
    let read = std::fs::File::open(&path)
        .and_then(|file| file.take(PRESET_BYTES as u64 + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => parse_preset(name, &bytes).map_err(ErrorBody::from),
        Err(_) => Err(PresetError::Unknown {
            name: name.to_owned(),
            known: names(share_dir),
        }
        .body()),
    }
}

/// Returns the names of all presets, sorted.
pub fn names(share_dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(share_dir.join(DIRECTORY))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some(
                entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(".json")?
                    .to_owned(),
            )
        })
        .filter(|name| check_preset_name(name).is_ok())
        .take(MAX_PRESETS)
        .collect();
    names.sort();
    names
}

/// Loads the preset that the request names, if it names one.
pub fn of(request: &RunRequest) -> Result<Option<AgentPreset>, ErrorBody> {
    match &request.agent {
        Some(Agent::Preset(agent)) => {
            load(Path::new(&request.paths.share_dir), &agent.name).map(Some)
        }
        Some(Agent::Command(_) | Agent::Model(_) | Agent::Ability(_)) | None => Ok(None),
    }
}

/// Extends a default policy by the network access that the preset's agent needs.
pub fn open_network(preset: &AgentPreset, policy: &mut RuntimePolicy) {
    let mut rules = match &policy.network {
        NetworkPolicy::Rules(rules) => rules.clone(),
        NetworkPolicy::Posture(_) => NetworkRules::default(),
    };
    for name in &preset.network {
        if !rules.presets.contains(name) {
            rules.presets.push(name.clone());
        }
    }
    if !preset.network.is_empty() {
        policy.network = NetworkPolicy::Rules(rules);
    }
}

/// Fails if a policy of the caller does not allow the network access that the preset's agent needs.
pub fn check_network(preset: &AgentPreset, policy: &RuntimePolicy) -> Result<(), ErrorBody> {
    let has = |name: &String| match &policy.network {
        NetworkPolicy::Rules(rules) => rules.presets.contains(name),
        NetworkPolicy::Posture(_) => false,
    };
    match preset.network.iter().find(|name| !has(name)) {
        None => Ok(()),
        Some(missing) => Err(PresetError::Closed {
            name: preset.name.clone(),
            preset: missing.clone(),
        }
        .body()),
    }
}

/// Returns the error for a request that names a preset but no model.
pub fn no_model(preset: &AgentPreset) -> ErrorBody {
    let name = preset.name.clone();
    PresetError::NoModel { name }.body().hint(
        "name the model: --model NAME --model-url URL on the command line, provider and model in a task, or the site's settings",
    )
}

/// Values that replace the placeholders of a preset.
#[derive(Debug, Clone, Copy)]
pub struct PresetFacts<'a> {
    /// Model that the agent uses.
    pub model: Option<&'a ModelEndpoint>,
    /// Secrets of the run, one of which may be the model's key.
    pub secrets: &'a Secrets,
    /// Working directory of the agent.
    pub workspace: &'a GuestPath,
}

/// Replaces the preset's name in the request by the preset's program, and finds on the host the
/// files that the program needs.
pub fn equip(
    preset: &AgentPreset,
    request: &mut RunRequest,
    stock: PresetFacts<'_>,
) -> Result<Equipped, ErrorBody> {
    let Some(task) = &request.task else {
        return Err(ErrorBody::new(
            ErrorCode::TaskMissing,
            "the task has no goal: describe what the agent should do",
        ));
    };
    let own = format!("{FILES}/");
    if task
        .staged_files
        .iter()
        .any(|f| f.target == FILES || f.target.starts_with(&own))
    {
        return Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            format!("{FILES} is reserved for the agent's own files; stage other files elsewhere"),
        ));
    }
    let resolved = resolve(preset, &task.texts.goal, stock)?;
    let staged = resolved
        .files
        .into_iter()
        .map(|(name, bytes)| {
            let target = guest_path(&format!("{FILES}/{name}"))?;
            Ok(OpenStaged { target, bytes })
        })
        .collect::<Result<_, ErrorBody>>()?;
    let directory = directory(preset)?;
    let programs = locate(preset, request.paths.agents_dir.as_deref(), directory)?;
    request.agent = Some(Agent::Command(resolved.command));
    Ok(Equipped {
        program: PresetAgentProgram {
            preset: preset.clone(),
            goal: task.texts.goal.clone(),
            stdin: resolved.stdin,
        },
        staged,
        programs,
    })
}

/// Returns command line, standard input and files of the preset with all placeholders replaced.
pub fn resolve(
    preset: &AgentPreset,
    goal: &str,
    stock: PresetFacts<'_>,
) -> Result<ResolvedPreset, ErrorBody> {
    let model = stock.model.ok_or_else(|| no_model(preset))?;
    let home = environment().remove("HOME").unwrap_or_default();
    let key = model
        .secret
        .as_deref()
        .and_then(|name| stock.secrets.placeholder(name));
    let (base_url, directory) = (base_url(), directory(preset)?);
    let context = PresetContext {
        goal,
        model,
        base_url: &base_url,
        key: key.unwrap_or(NO_KEY),
        workspace: stock.workspace.as_str(),
        home: &home,
        files: FILES,
        directory: directory.as_str(),
    };
    resolve_preset(preset, context).map_err(ErrorBody::from)
}

/// Returns the guest directory of the preset's program.
fn directory(preset: &AgentPreset) -> Result<GuestPath, ErrorBody> {
    guest_path(&format!("{AGENTS}/{}", preset.name))
}

/// Opens the host directory of the preset's program. The host's settings name the directory, so the
/// rules for mounts of callers do not apply.
fn locate(
    preset: &AgentPreset,
    agents_dir: Option<&str>,
    target: GuestPath,
) -> Result<ProgramDirectory, ErrorBody> {
    let Some(agents_dir) = agents_dir else {
        let message = "no directory for agent programs is configured on this host";
        return Err(ErrorBody::new(ErrorCode::AgentProgramMissing, message)
            .hint("set it: wp_codebox.agents_dir in php.ini, or --agents-dir"));
    };
    let directory = Path::new(agents_dir).join(&preset.name);
    let missing = |what: &str| {
        let shown = directory.display();
        ErrorBody::new(
            ErrorCode::AgentProgramMissing,
            format!("the agent {} is not installed: {shown} {what}", preset.name),
        )
        .hint(preset.install.replace("{directory}", &shown.to_string()))
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::open(&directory, flags, Mode::empty())
        .map_err(|_| missing("does not exist or cannot be read"))?;
    // Asks the kernel for the path of the open directory, so that no second lookup can lead to
    // another directory.
    let path = std::fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd()))
        .map_err(|_| missing("has a path that cannot be determined"))?;
    let program = std::fs::metadata(path.join(&preset.program))
        .map_err(|_| missing(&format!("has no {}", preset.program)))?;
    if !program.is_file() || program.permissions().mode() & 0o111 == 0 {
        return Err(missing(&format!(
            "has a {} that is not an executable file",
            preset.program
        )));
    }
    let source = pinned(&path, &open).map_err(|_| missing("cannot be read"))?;
    Ok(ProgramDirectory { source, target })
}

fn guest_path(text: &str) -> Result<GuestPath, ErrorBody> {
    GuestPath::new(text).map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))
}

/// Returns the base URL at which programs in the guest reach the model.
fn base_url() -> String {
    let bridge = egress_environment(&GuestEgress::Tunnel)
        .remove("CODEBOX_EGRESS_URL")
        .unwrap_or_default();
    format!("{bridge}/model")
}

/// Returns the environment variables that tell programs in the guest about the model.
pub fn model_environment(model: &ModelEndpoint) -> BTreeMap<String, String> {
    let api = match model.api {
        ModelApi::OpenaiChat => "openai-chat",
        ModelApi::AnthropicMessages => "anthropic-messages",
    };
    [
        ("CODEBOX_MODEL_BASE_URL", base_url()),
        ("CODEBOX_MODEL", model.model.clone()),
        ("CODEBOX_MODEL_API", api.to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
