//! Creates a sandbox: builds a run request from a profile, starts a supervisor with it, and waits
//! until the sandbox is ready, or only until its run exists.

use crate::document::PROVENANCE;
use crate::operations::Sandboxes;
use crate::profiles::{LoadedProfile, parsed_profile};
use crate::secret_source::SecretSource;
use crate::seed::Seed;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, Hold, MountRequest, PreviewRequest, RunId, RunMode, RunRequest,
    SandboxIdentity, SecretBinding, SecretsPolicy, SiteId, TaskSpec, TaskTexts,
};
use wp_codebox_policy::{self as policy, descriptor};
use wp_codebox_proxy::preview::Token;
use wp_codebox_recipe::Profile;
use wp_codebox_runs::{run_paths, supervisor::Spawned};
use wp_codebox_runtime::StateDir;
use wp_codebox_settings::Settings;

/// Milliseconds by which the time limit of a run exceeds the lifetime of its sandbox: the run also
/// starts the sandbox and writes its bundle.
const AROUND: u64 = 15 * 60 * 1000;
/// Maximum duration of a run in milliseconds.
pub const LONGEST: u64 = 24 * 3600 * 1000;
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

/// Who may open the preview of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewAccess {
    /// Every user and program of this machine.
    Machine,
    /// Visitors who have the link with the token.
    Token,
}

/// A sandbox that is to be made: the id of its run, its site and its parameters (its seed).
#[derive(Debug)]
pub struct Wanted {
    /// Id of its run.
    pub run_id: RunId,
    /// Its site.
    pub site: SiteId,
    /// Its parameters.
    pub seed: Seed,
    /// Maximum number of runs of the site at one time; absent: the default.
    pub max_runs: Option<u64>,
    /// Who may open its preview, if the profile has one.
    pub preview: PreviewAccess,
}

/// A sandbox whose parameters are valid, and the run request that starts it.
#[derive(Debug)]
pub struct ValidatedSandbox {
    wanted: Wanted,
    request: RunRequest,
    state_dir: PathBuf,
}

impl Wanted {
    /// Validates the parameters: profile, lifetime, workspace, secrets and host paths.
    ///
    /// # Errors
    /// The error of the first parameter that is not valid.
    pub fn validate(
        self,
        settings: &Settings,
        secrets: &SecretSource<'_>,
    ) -> Result<ValidatedSandbox, ErrorBody> {
        let seed = &self.seed;
        let LoadedProfile { profile, .. } =
            parsed_profile(seed.profile.as_bytes(), "of the sandbox")?;
        if seed.ttl_ms > profile.ttl.max_ms {
            let shown = |ms| humantime::format_duration(std::time::Duration::from_millis(ms));
            let message = format!(
                "--ttl {} is longer than the {} that the profile allows",
                shown(seed.ttl_ms),
                shown(profile.ttl.max_ms)
            );
            return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
        }
        let secrets = secrets.resolve(&profile, seed.secret_refs.as_deref())?;
        Ok(ValidatedSandbox {
            request: self.request(&profile, settings, secrets)?,
            wanted: self,
            state_dir: settings.state_dir.clone(),
        })
    }

    fn request(
        &self,
        profile: &Profile,
        settings: &Settings,
        secrets: Vec<SecretBinding>,
    ) -> Result<RunRequest, ErrorBody> {
        let seed = &self.seed;
        let wordpress = settings.named_wordpress()?;
        let identity = SandboxIdentity {
            profile: profile.id.clone(),
            version: profile.version.clone(),
            profile_sha256: profile.sha256.to_string(),
            scope: seed.scope,
            actor: seed.actor.clone(),
        };
        let mut limits = profile.resources.clone();
        limits.wall_clock_ms = Some(profile.ttl.max_ms.saturating_add(AROUND).min(LONGEST));
        let spec = TaskSpec {
            // No program interprets this text; it is for people and agents.
            texts: TaskTexts::of_goal(profile.setup.instructions.trim()),
            mode: RunMode::Detached,
            policy: Some(policy_of(profile, &secrets)?),
            mounts: source(profile, seed)?.into_iter().collect(),
            commands: profile.setup.commands.clone(),
            services: seed.services.clone(),
            provenance: provenance(&identity, seed),
            hold: Some(Hold {
                ttl_ms: seed.ttl_ms,
                max_ttl_ms: profile.ttl.max_ms,
                idle_ms: profile.ttl.idle_ms,
                preview: match profile.reachability.preview {
                    true => Some(self.preview_request()?),
                    false => None,
                },
                identity: Some(identity),
                snapshot: seed.snapshot.clone(),
            }),
            limits,
            secrets,
            max_runs: self.max_runs,
            ..TaskSpec::default()
        };
        let paths = run_paths(settings, wordpress)?;
        Ok(spec.into_request(self.run_id.clone(), self.site.clone(), paths))
    }
}

impl Wanted {
    fn preview_request(&self) -> Result<PreviewRequest, ErrorBody> {
        let token = match self.preview {
            PreviewAccess::Machine => None,
            PreviewAccess::Token => Some(Token::random()?.reveal().to_owned()),
        };
        Ok(PreviewRequest {
            token,
            ..PreviewRequest::default()
        })
    }
}

impl ValidatedSandbox {
    /// Creates the sandbox and waits until it is ready.
    pub fn make(self, supervisor: Spawned) -> Result<Value, ErrorBody> {
        let Wanted {
            run_id, site, seed, ..
        } = self.wanted;
        let state = StateDir::open(&self.state_dir)?;
        let ready = supervisor.until_ready(&self.request, |_| {})?;
        state.become_owner()?;
        seed.write(&state, &site, &run_id)?;
        let sandboxes = Sandboxes {
            state: &state,
            site: &site,
        };
        let mut document = sandboxes.document(&sandboxes.run(run_id))?;
        // If the sandbox is too busy to answer the status request, the document says
        // `provisioning`. But the event `ready` has arrived, so correct the state.
        if document["state"] == "provisioning" {
            document["state"] = json!("ready");
            document["expiresAt"] = json!(ready.get("expiresAt"));
        }
        Ok(document)
    }

    /// Starts the sandbox and returns when its run exists, long before it is ready. The calling
    /// process must run as the owner of the state directory.
    ///
    /// # Errors
    /// The error of the supervisor if it refused the run. If the supervisor ended without an answer,
    /// the run may exist.
    pub fn start(self, state: &StateDir, supervisor: Spawned) -> Result<(), ErrorBody> {
        let Wanted {
            run_id, site, seed, ..
        } = self.wanted;
        supervisor.until_accepted(&self.request)?;
        // Garbage collection removes a seed without a run, so the run comes first.
        seed.write(state, &site, &run_id)
    }
}

/// Returns what the run's record and bundle say about the origin of the sandbox.
fn provenance(identity: &SandboxIdentity, seed: &Seed) -> Map<String, Value> {
    let mut told = json!(identity);
    if let Some(before) = &seed.instead_of {
        told["insteadOf"] = json!(before);
    }
    if let Some(reference) = &seed.instructions_ref {
        told["instructionsRef"] = json!(reference);
    }
    Map::from_iter([
        ("requester".to_owned(), json!(seed.actor)),
        (PROVENANCE.to_owned(), told),
    ])
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
    policy::parse(&json!(policy)).map_err(ErrorBody::from)
}
