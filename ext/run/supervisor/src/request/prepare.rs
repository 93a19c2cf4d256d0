//! Validates a request and prepares the run. All steps that may need root happen here: mount
//! sources and staged files are opened, then the process gives up root permanently.

use super::components::{self, OpenComponents};
use super::follow_up::{self, Earlier};
use super::group::{self, RunGroup};
use super::identity::{self, Wanted};
use super::mounts::open_mount;
use super::preset::{self, Equipped, PresetAgentProgram, PresetFacts};
use super::preview_request::{self, HostUsers};
use super::programs::{AGENT_COMMAND, check_programs};
use super::secrets::{ModelKey, Secrets};
use super::service_plan::ServicePlan;
use super::sources::{OpenMount, OpenStaged, open_staged};
use super::wasi_tools::RunWasiTools;
use crate::host::peer::Caller;
use std::path::Path;
use wp_codebox_backend_native::{GuestIdentity, ProgramDirectory, mount_paths};
use wp_codebox_contracts::{
    Agent, AgentPreset, ErrorBody, ErrorCode, GuestPath, KernelIds, Limits, ModelEndpoint,
    NetworkPolicy, RunRequest, RuntimePolicy, schema_id,
};
use wp_codebox_policy::{self as policy, EgressRules, Handler, ModelAccess, Redactor};
use wp_codebox_proxy::preview::Reservation;
use wp_codebox_runtime::{GuestMount, Owner, StateDir, working_directory};

/// A run that may start: its request is valid, its files are open, and root is given up.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub request: RunRequest,
    pub policy: RuntimePolicy,
    pub limits: Limits,
    pub state: StateDir,
    pub secrets: Secrets,
    /// Servers that run in each guest.
    pub services: ServicePlan,
    pub mounts: Vec<OpenMount>,
    pub components: OpenComponents,
    pub staged: Vec<OpenStaged>,
    /// Host directories with agent programs that guests may run.
    pub programs: Vec<ProgramDirectory>,
    /// WASI tools that were registered when the run was requested.
    pub wasi: RunWasiTools,
    /// Model endpoint that programs in the guest may use; `None` if they may not.
    pub guest_model: Option<ModelEndpoint>,
    /// Agent program, if a preset describes it.
    pub preset: Option<PresetAgentProgram>,
    pub group: RunGroup,
    /// Kernel user and group ids of the guests.
    pub identity: GuestIdentity,
    /// Network address that is reserved for the preview of the site, if the request asks for one.
    pub preview: Option<Reservation>,
    /// Who may use the loopback addresses of this host.
    pub users: HostUsers,
    /// Earlier bundle on which a follow-up run builds; `None` for any other run.
    pub earlier: Option<Earlier>,
}

/// Validates the request, opens its paths with the caller's permissions and gives up root. The
/// redactor removes secrets from the reviewers' comments that a follow-up request contains.
pub(crate) fn prepare(
    mut request: RunRequest,
    services: ServicePlan,
    caller: &Caller,
    redactor: &Redactor,
) -> Result<Prepared, ErrorBody> {
    caller.admit(&mut request)?;
    let mut opened = caller.with_caller_ids(|| open(request))??;
    let (state, request) = (&opened.state, &opened.request);
    let Owner { uid, gid } = state.owner();
    if !caller.has_rights_of(KernelIds { uid, gid }) {
        let message = format!(
            "the state directory belongs to uid {uid} and gid {gid}, but the caller is not that user or not in that group: use a state directory of the caller's own user and group"
        );
        return Err(ErrorBody::new(ErrorCode::Forbidden, message));
    }
    let named = request.paths.cgroup.as_deref().map(Path::new);
    // The names of the cgroups of dead runs are in the state directory. Root removes none for another
    // user: the service manager does, or the next run that root itself starts.
    let make = match caller {
        Caller::Trusted => group::make,
        Caller::Other { .. } => group::make_only,
    };
    let group = make(
        state,
        named,
        (&request.run_id, request.mode),
        &opened.limits,
    );
    let rows = opened.mounts.iter_mut();
    let mut rows: Vec<_> = rows.chain(opened.components.mounts_mut()).collect();
    let identity = identity::make(
        state,
        &Wanted::of(request, &opened.limits, caller),
        caller,
        &mut rows,
    )?;
    state.become_owner()?;
    let earlier = earlier(&mut opened, redactor)?;
    // The address is reserved only after the process has become the owner of the state directory,
    // because that user opens the address later.
    let users = HostUsers::of(caller);
    let (state, hold) = (&opened.state, opened.request.hold.as_ref());
    let preview = hold.and_then(|hold| hold.preview.as_ref());
    let preview = preview
        .map(|preview| preview_request::reserve(state, preview, users))
        .transpose()?;
    Ok(Prepared {
        group,
        identity,
        preview,
        users,
        earlier,
        request: opened.request,
        policy: opened.policy,
        limits: opened.limits,
        state: opened.state,
        secrets: opened.secrets,
        services,
        mounts: opened.mounts,
        components: opened.components,
        staged: opened.staged,
        programs: opened.programs,
        wasi: opened.wasi,
        guest_model: opened.guest_model,
        preset: opened.preset,
    })
}

/// Finds the earlier bundle of a follow-up request. To be called after the process has become the
/// owner of the state directory, who also owns the bundle. If a preset describes the agent, the
/// comments are appended to its goal, because such a program does not read `task.json`.
fn earlier(opened: &mut Opened, redactor: &Redactor) -> Result<Option<Earlier>, ErrorBody> {
    let (state, mounts) = (&opened.state, &opened.mounts);
    let found = follow_up::find(state, &mut opened.request, mounts, redactor);
    let Some(earlier) = found? else {
        return Ok(None);
    };
    if let Some(program) = &mut opened.preset {
        program.goal = format!("{}\n\n{}", program.goal.trim_end(), earlier.text);
        let targets: Vec<GuestPath> = mounts.iter().map(|mount| mount.target.clone()).collect();
        let stock = PresetFacts {
            model: opened.guest_model.as_ref(),
            secrets: &opened.secrets,
            workspace: &workspace(&opened.request, &targets)?,
        };
        let resolved = preset::resolve(&program.preset, &program.goal, stock)?;
        opened.request.agent = Some(Agent::Command(resolved.command));
        program.stdin = resolved.stdin;
    }
    Ok(Some(earlier))
}

/// A validated request and the files that it names, already opened.
struct Opened {
    request: RunRequest,
    policy: RuntimePolicy,
    limits: Limits,
    state: StateDir,
    secrets: Secrets,
    mounts: Vec<OpenMount>,
    components: OpenComponents,
    staged: Vec<OpenStaged>,
    programs: Vec<ProgramDirectory>,
    wasi: RunWasiTools,
    guest_model: Option<ModelEndpoint>,
    preset: Option<PresetAgentProgram>,
}

fn open(mut request: RunRequest) -> Result<Opened, ErrorBody> {
    if request.schema != schema_id::RUN_REQUEST {
        return Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            format!(
                "the request does not have the schema {}",
                schema_id::RUN_REQUEST
            ),
        ));
    }
    policy::check_request(&request, policy::CheckedBy::Supervisor)?;
    let limits = request
        .limits
        .resolve()
        .map_err(|e| ErrorBody::new(ErrorCode::LimitInvalid, e.to_string()))?;
    let preset = preset::of(&request)?;
    if let (Some(preset), None) = (&preset, &request.model) {
        return Err(preset::no_model(preset));
    }
    let policy = effective_policy(&request, preset.as_ref())?;
    let wasi = RunWasiTools::load(&request)?;
    check_programs(&request, &policy, wasi.tools())?;
    let targets = policy::check_mounts(&request.mounts, &policy)?;
    let guest_model = guest_model(&request, &policy)?;
    let key_name = request.model.as_ref().and_then(|m| m.secret.clone());
    let command = request.agent.as_ref().and_then(Agent::command);
    let own = command.into_iter().flat_map(|agent| agent.env.keys());
    // A preset is allowed to set an environment variable with the name of the model key's secret,
    // so that name does not count as taken.
    let preset_env = preset.iter().flat_map(|preset| preset.env.keys());
    let preset_env = preset_env.filter(|name| key_name.as_ref() != Some(name));
    let taken = own.chain(preset_env);
    let secret_use = policy::SecretUse {
        policy: &policy,
        model: request.model.as_ref(),
    };
    policy::check_secrets(&request.secrets, secret_use, taken.map(String::as_str))?;
    let places = components::check(&request, &targets, &policy)?;
    let key = match (&key_name, &guest_model) {
        (None, _) => ModelKey::None,
        (Some(name), Some(_)) => ModelKey::InGuest(name),
        (Some(name), None) => ModelKey::Outside(name),
    };
    let secrets = Secrets::issue(std::mem::take(&mut request.secrets), &policy, key)?;
    let equipped = match &preset {
        None => None,
        Some(preset) => {
            let stock = PresetFacts {
                model: guest_model.as_ref(),
                secrets: &secrets,
                workspace: &workspace(&request, &targets)?,
            };
            Some(preset::equip(preset, &mut request, stock)?)
        }
    };
    // The paths are resolved and checked before the state directory is opened, because opening can
    // create a missing state directory.
    let wordpress = real_path(&request.paths.wordpress);
    policy::check_state_location(&real_path(&request.paths.state_dir), &wordpress)?;
    let state = StateDir::open(Path::new(&request.paths.state_dir))?;
    let mounts = request
        .mounts
        .iter()
        .zip(targets)
        .map(|(mount, target)| open_mount(mount, target, &request))
        .collect::<Result<Vec<_>, _>>()?;
    let components = components::open(&request, places)?;
    let mut staged = open_staged(&request)?;
    staged.extend(components::bundle_files(&mut request)?);
    let mut programs = Vec::new();
    let preset = equipped.map(|equipped: Equipped| {
        staged.extend(equipped.staged);
        programs.push(equipped.programs);
        equipped.program
    });
    Ok(Opened {
        request,
        policy,
        limits,
        state,
        secrets,
        mounts,
        components,
        staged,
        programs,
        wasi,
        guest_model,
        preset,
    })
}

/// Returns the path without symbolic links. If nothing exists at the path, only its parent is
/// resolved: `StateDir::open` can later create a missing state directory in this parent.
fn real_path(path: &str) -> String {
    let path = Path::new(path);
    let missing = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let real = path.canonicalize().ok().or_else(missing);
    let real = real.unwrap_or_else(|| path.to_owned());
    real.to_string_lossy().into_owned()
}

/// Returns the policy that the request contains, otherwise the default policy with the network
/// access that the preset needs.
fn effective_policy(
    request: &RunRequest,
    preset: Option<&AgentPreset>,
) -> Result<RuntimePolicy, ErrorBody> {
    if let Some(given) = &request.policy {
        let document = serde_json::to_value(given).unwrap_or_default();
        let policy = policy::parse(&document)?;
        if let Some(preset) = preset {
            preset::check_network(preset, &policy)?;
        }
        return Ok(policy);
    }
    let mut policy = default_policy(request);
    if let Some(preset) = preset {
        preset::open_network(preset, &mut policy);
    }
    Ok(policy)
}

/// Returns the model endpoint if the policy lets programs in the guest use it. The built-in agent
/// loop calls the model from the host, within a budget, so its guest gets no route to the model.
fn guest_model(
    request: &RunRequest,
    policy: &RuntimePolicy,
) -> Result<Option<ModelEndpoint>, ErrorBody> {
    let access = match &policy.network {
        NetworkPolicy::Posture(_) => ModelAccess::Closed,
        NetworkPolicy::Rules(rules) => {
            EgressRules::compile(rules).map_or(ModelAccess::Closed, |rules| rules.model())
        }
    };
    let agent = request.agent.as_ref();
    match access {
        ModelAccess::Open if agent.is_none_or(Agent::uses_model_in_guest) => {}
        ModelAccess::Open | ModelAccess::Closed => return Ok(None),
    }
    let Some(model) = &request.model else {
        return Err(ErrorBody::new(
            ErrorCode::ModelMissing,
            "the network preset `model` needs a model: add a model to the run or remove the preset",
        ));
    };
    Ok(Some(model.clone()))
}

/// Returns the working directory of programs in the guest.
fn workspace(request: &RunRequest, targets: &[GuestPath]) -> Result<GuestPath, ErrorBody> {
    let paths = mount_paths(targets)?;
    let mounts: Vec<GuestMount> = request
        .mounts
        .iter()
        .zip(paths)
        .map(|(mount, paths)| GuestMount {
            target: paths.target,
            link: paths.link,
            access: mount.mode,
        })
        .collect();
    working_directory(&mounts)
}

/// Returns the policy for a request without one. It allows the commands that the request contains;
/// if the sandbox is kept open for clients, also the commands that they may request.
pub fn default_policy(request: &RunRequest) -> RuntimePolicy {
    let mut commands: Vec<String> = request
        .commands
        .iter()
        .flat_map(policy::call_commands)
        .collect();
    if request.agent.is_some() || !request.checks.is_empty() {
        commands.push(AGENT_COMMAND.to_owned());
    }
    let steps = request.workflow.iter().flat_map(|w| &w.steps);
    commands.extend(steps.flat_map(|step| policy::call_commands(&step.call)));
    // A client of a held sandbox may later request any command that a run request could contain.
    if request.hold.is_some() {
        let held = policy::registry().filter(|c| match c.handler {
            Handler::Program(_)
            | Handler::Browser
            | Handler::Checkpoint
            | Handler::Mail(_)
            | Handler::Right { .. } => true,
            Handler::Agent | Handler::Unsupported { .. } => false,
        });
        commands.extend(held.map(|c| c.id.to_owned()));
    }
    // Commands that the tools of the built-in agent loop run. The tool policy decides which tools
    // the model gets.
    if let Some(Agent::Model(_)) = request.agent {
        commands.extend(["wordpress.run-php", "wordpress.wp-cli"].map(str::to_owned));
    }
    let needed = commands.iter().flat_map(|c| policy::required_commands(c));
    let mut commands: Vec<String> = needed.map(str::to_owned).collect();
    commands.sort();
    commands.dedup();
    commands.retain(|c| policy::descriptor(c).is_some());
    policy::defaults(commands)
}
