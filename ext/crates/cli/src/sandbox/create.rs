//! Creates a sandbox: builds a run request from a profile, starts a supervisor with it, and waits
//! until the sandbox is ready.

use super::args::{CreateArgs, PlaceArgs};
use super::place::{PROVENANCE, site};
use super::seed::Seed;
use super::shown;
use crate::output::Output;
use crate::profile::{self, Loaded};
use crate::supervisor::Spawned;
use crate::{Settings, duration, request};
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, Hold, MountRequest, PreviewRequest, RunMode, RunRequest, SandboxIdentity,
    SecretBinding, SecretsPolicy, SiteId, TaskSpec,
};
use wp_codebox_policy::{self as policy, descriptor};
use wp_codebox_recipe::Profile;
use wp_codebox_runtime::{FoundRun, StateDir};

/// Milliseconds by which the time limit of a run exceeds the lifetime of its sandbox: the run also
/// starts the sandbox and writes its bundle.
const AROUND: u64 = 15 * 60 * 1000;
/// Maximum duration of a run in milliseconds.
const LONGEST: u64 = 24 * 3600 * 1000;
/// Commands that every sandbox allows, in addition to those of its setup.
const COMMANDS: [&str; 7] = [
    "inspect-mounted-inputs",
    "wordpress.run-php",
    "wordpress.wp-cli",
    "wordpress.http-request",
    "wordpress.rest-request",
    "wordpress.ability",
    "wordpress.runtime-discovery",
];
/// Id of the guest command that runs a program.
const EXEC: &str = "command-agent-run";

pub(super) fn create(args: &CreateArgs, output: Output) -> Result<Value, ErrorBody> {
    let settings = Settings::for_guests(&args.place.paths, None, output)?;
    let Loaded { profile, text } = profile::load(&args.profile, &settings.state_dir)?;
    let ttl_ms = match &args.ttl {
        None => profile.ttl.default_ms,
        Some(text) => duration::positive(ErrorCode::InputInvalid, "--ttl", text)?,
    };
    let seed = Seed {
        profile: text,
        source: match &args.source {
            None => None,
            Some(source) => Some(absolute(source)?),
        },
        snapshot: args.from_snapshot.clone(),
        services: args.services.services(),
        ttl_ms,
        scope: args.scope.map_or(profile.scope_default, Into::into),
        actor: args.place.actor.clone(),
        instead_of: None,
    };
    let judged = validate(&args.place, settings, seed)?;
    judged.make(Spawned::new(RunMode::Detached)?)
}

/// A sandbox whose parameters are valid, and the run request that starts it.
#[derive(Debug)]
pub(super) struct ValidatedSandbox {
    seed: Seed,
    request: RunRequest,
    site: SiteId,
    settings: Settings,
}

/// Validates the parameters of a sandbox (its seed): profile, lifetime, workspace, secrets and host
/// paths.
pub(super) fn validate(
    place: &PlaceArgs,
    settings: Settings,
    seed: Seed,
) -> Result<ValidatedSandbox, ErrorBody> {
    let Loaded { profile, .. } = profile::parsed(seed.profile.as_bytes(), "of the sandbox")?;
    if seed.ttl_ms > profile.ttl.max_ms {
        let shown = |ms| humantime::format_duration(std::time::Duration::from_millis(ms));
        let message = format!(
            "--ttl {} is longer than the {} that the profile allows",
            shown(seed.ttl_ms),
            shown(profile.ttl.max_ms)
        );
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    Ok(ValidatedSandbox {
        request: request_of(&profile, &seed, &settings, place)?,
        site: site(place)?,
        seed,
        settings,
    })
}

impl ValidatedSandbox {
    /// Creates the sandbox and waits until it is ready.
    pub(super) fn make(self, supervisor: Spawned) -> Result<Value, ErrorBody> {
        let Self {
            seed,
            request,
            site,
            settings,
        } = self;
        let state = StateDir::open(&settings.state_dir).map_err(|e| e.body())?;
        let ready = supervisor.until_ready(&request, |_| {})?;
        state.become_owner().map_err(|e| e.body())?;
        seed.write(&state, &site, &request.run_id)?;
        let run = FoundRun {
            path: state
                .path()
                .join("sites")
                .join(site.as_str())
                .join("runs")
                .join(request.run_id.as_str()),
            site,
            run_id: request.run_id,
        };
        let mut document = shown::document(&state, &run)?;
        // If the sandbox is too busy to answer the status request, the document says
        // `provisioning`. But the event `ready` has arrived, so correct the state.
        if document["state"] == "provisioning" {
            document["state"] = json!("ready");
            document["expiresAt"] = json!(ready.get("expiresAt"));
        }
        Ok(document)
    }
}

fn absolute(path: &str) -> Result<String, ErrorBody> {
    let invalid = |why: String| ErrorBody::new(ErrorCode::MountSourceInvalid, why);
    let path = std::path::absolute(path).map_err(|e| invalid(format!("--source {path:?}: {e}")))?;
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| invalid("--source is not valid UTF-8".to_owned()))
}

/// Returns the mount of the workspace, if the profile has a workspace.
fn source(profile: &Profile, seed: &Seed) -> Result<Option<MountRequest>, ErrorBody> {
    let workspace = &profile.workspace;
    let named = seed.source.as_ref().or(workspace.source.as_ref());
    match (workspace.access, named) {
        (None, Some(_)) => Err(ErrorBody::new(
            ErrorCode::MountInvalid,
            "--source cannot be used: the profile's workspace.access is none",
        )),
        (None, None) => Ok(None),
        (Some(_), None) => Err(ErrorBody::new(
            ErrorCode::MountInvalid,
            "the profile has a workspace without a directory: add --source",
        )),
        (Some(mode), Some(source)) => Ok(Some(MountRequest {
            source: source.clone(),
            target: workspace.target.clone(),
            mode,
            exclude: Vec::new(),
            git: workspace.git,
            metadata: None,
        })),
    }
}

fn request_of(
    profile: &Profile,
    seed: &Seed,
    settings: &Settings,
    place: &PlaceArgs,
) -> Result<RunRequest, ErrorBody> {
    let wordpress = settings.named_wordpress()?;
    let secrets = secrets(profile)?;
    let identity = SandboxIdentity {
        profile: profile.id.clone(),
        version: profile.version.clone(),
        profile_sha256: profile.sha256.to_string(),
        scope: seed.scope,
        actor: seed.actor.clone(),
    };
    let mut provenance = Map::from_iter([("requester".to_owned(), json!(seed.actor))]);
    let mut told = json!(identity);
    if let Some(before) = &seed.instead_of {
        told["insteadOf"] = json!(before);
    }
    provenance.insert(PROVENANCE.to_owned(), told);
    let mut limits = profile.resources.clone();
    limits.wall_clock_ms = Some(profile.ttl.max_ms.saturating_add(AROUND).min(LONGEST));
    let spec = TaskSpec {
        // No program interprets this text; it is for people and agents.
        goal: profile.setup.instructions.trim().to_owned(),
        mode: RunMode::Detached,
        policy: Some(policy_of(profile, &secrets)?),
        mounts: source(profile, seed)?.into_iter().collect(),
        commands: profile.setup.commands.clone(),
        services: seed.services.clone(),
        hold: Some(Hold {
            ttl_ms: seed.ttl_ms,
            max_ttl_ms: profile.ttl.max_ms,
            idle_ms: profile.ttl.idle_ms,
            preview: profile.reachability.preview.then(PreviewRequest::default),
            identity: Some(identity),
            snapshot: seed.snapshot.clone(),
        }),
        limits,
        secrets,
        provenance,
        ..TaskSpec::default()
    };
    let paths = request::run_paths(settings, wordpress)?;
    Ok(spec.into_request(wp_codebox_control::new_run_id()?, site(place)?, paths))
}

fn policy_of(
    profile: &Profile,
    secrets: &[SecretBinding],
) -> Result<wp_codebox_contracts::RuntimePolicy, ErrorBody> {
    let mut commands: Vec<String> = COMMANDS.map(str::to_owned).to_vec();
    if profile.reachability.exec {
        commands.push(EXEC.to_owned());
    }
    let setup = profile.setup.commands.iter();
    commands.extend(setup.map(|call| call.command.clone()));
    commands.retain(|command| descriptor(command).is_some());
    commands.sort();
    commands.dedup();
    let mut policy = policy::defaults(commands);
    policy.network = profile.network.clone();
    policy.minimum_isolation = profile.isolation;
    if !secrets.is_empty() {
        policy.secrets = SecretsPolicy::ConnectorScoped;
    }
    policy::parse(&json!(policy)).map_err(|e| e.body())
}

/// Reads the values of the profile's secrets from this process's environment; they are not stored.
fn secrets(profile: &Profile) -> Result<Vec<SecretBinding>, ErrorBody> {
    let refs = profile.setup.secret_refs.iter();
    refs.map(|secret| {
        let name = &secret.name;
        let value = std::env::var(name).map_err(|_| {
            let message = format!("the profile needs the secret {name}, but this environment variable is not set or not valid UTF-8; export it");
            ErrorBody::new(ErrorCode::SecretInvalid, message)
        })?;
        Ok(SecretBinding {
            env: name.clone(),
            value,
            hosts: secret.hosts.clone(),
        })
    })
    .collect()
}
