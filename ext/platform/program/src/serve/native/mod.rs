//! The extension `native`: sandboxes of this machine, by the functions of `wp-codebox sandbox`. The
//! id of a sandbox is the id of its run.

mod exec;
mod ready;
mod runner;
mod view;

pub(crate) use runner::Runner;
pub(super) use view::usage;

use crate::serve::source_roots::SourceRoots;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ready::SERVICE;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use wp_codebox_changes::file_content;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, GuestPath, LiveRequest, RunId, RunMode, SiteId, SyncIn, SyncOut,
};
use wp_codebox_routing::{ArchitectureName, Capabilities};
use wp_codebox_runs::supervisor;
use wp_codebox_runtime::{FoundRun, NewRun, PageLimits, RunDir, StateDir, events};
use wp_codebox_sandboxes::{
    LoadedProfile, PreviewAccess, Sandboxes, SecretSource, Seed, Wanted, estimate, parsed_profile,
};
use wp_codebox_service::{
    Actor, CleanupReport, ExecEnd, ExecOutput, ExecRequest, Extension, ProfileDocument, Provision,
    Reachability, SandboxId, SandboxView,
};
use wp_codebox_settings::Settings;
use wp_codebox_supervisor::SYNC_FILE_BYTES;

/// Name of the only input that sandboxes of this machine accept: the version of WordPress.
const WORDPRESS_INPUT: &str = "wordpress";
/// Maximum number and size of the events that one call reads from a journal.
const EVENTS: PageLimits = PageLimits {
    count: 1000,
    bytes: 4 * 1024 * 1024,
};

/// Sandboxes of this machine.
#[derive(Debug)]
pub(crate) struct Native {
    state: StateDir,
    site: SiteId,
    settings: Settings,
    runner: Runner,
    /// Directories below which a caller may name the directory of a workspace.
    source_roots: SourceRoots,
    capabilities: Capabilities,
    /// Maximum number of runs and sandboxes of the site at one time.
    max_runs: u32,
    /// Ids whose run is being started.
    starting: Mutex<HashSet<RunId>>,
}

impl Native {
    /// Creates the extension. The calling process must run as the owner of the state directory.
    ///
    /// # Errors
    /// When the state directory cannot be opened.
    pub(crate) fn new(
        settings: Settings,
        site: SiteId,
        runner: Runner,
        source_roots: SourceRoots,
        max_runs: u32,
    ) -> Result<Self, ErrorBody> {
        let architecture = std::env::consts::ARCH.to_owned();
        let architecture = ArchitectureName::new(architecture)
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        Ok(Self {
            state: StateDir::open(&settings.state_dir)?,
            site,
            settings,
            runner,
            source_roots,
            capabilities: Capabilities::native(architecture),
            max_runs,
            starting: Mutex::default(),
        })
    }

    fn sandboxes(&self) -> Sandboxes<'_> {
        Sandboxes {
            state: &self.state,
            site: &self.site,
        }
    }

    /// Returns the sandbox with exactly this id, in any state.
    fn found(&self, sandbox: &SandboxId) -> Result<FoundRun, ErrorBody> {
        let run = self.sandboxes().run(run_id(sandbox)?);
        if !run.path.is_dir() {
            return Err(not_found(sandbox));
        }
        self.sandboxes().find(run.run_id.as_str())
    }

    fn ask(
        &self,
        sandbox: &SandboxId,
        actor: &str,
        request: LiveRequest,
    ) -> Result<Value, ErrorBody> {
        self.sandboxes().ask(&self.found(sandbox)?, actor, request)
    }

    /// Returns the settings for a new sandbox, with the WordPress that its inputs ask for.
    fn settings_for(&self, inputs: &Map<String, Value>) -> Result<Settings, ErrorBody> {
        let mut settings = self.settings.clone();
        for (name, value) in inputs {
            let version = match (name.as_str(), value) {
                (WORDPRESS_INPUT, Value::String(version)) => version,
                (WORDPRESS_INPUT, _) => {
                    return Err(invalid(
                        "inputs.wordpress must be the version of an installed WordPress, as a text",
                    ));
                }
                _ => {
                    return Err(invalid(format!(
                        "the input {name:?} is unknown; sandboxes of this machine have only the input {WORDPRESS_INPUT}, the version of an installed WordPress"
                    )));
                }
            };
            settings.wordpress = Some(settings.fitting(Some(version)).ok_or_else(|| {
                invalid(format!(
                    "inputs.wordpress asks for WordPress {version:?}, which is not installed for sandboxes here"
                ))
                .hint("wp-codebox wordpress list shows the installed versions")
            })?);
        }
        Ok(settings)
    }

    fn seed(&self, request: &Provision) -> Result<Seed, ErrorBody> {
        let setup = &request.setup_metadata;
        let source = request.source.as_deref();
        let source = source.map(|source| self.source_roots.check(source));
        Ok(Seed {
            profile: request.profile.clone(),
            source: source.transpose()?,
            snapshot: request.snapshot.clone(),
            services: request.services.clone(),
            ttl_ms: request.ttl_ms,
            scope: request.scope,
            actor: request.actor.to_string(),
            instead_of: request.instead_of.as_ref().map(run_id_of).transpose()?,
            instructions_ref: setup.instructions_ref.clone(),
            secret_refs: Some(setup.secret_refs.clone()).filter(|names| !names.is_empty()),
        })
    }

    /// Stores the parameters of an existing sandbox, if the server process that started it was
    /// killed before it stored them. Ignores errors: without the parameters only `recreate` fails.
    fn remember(&self, request: &Provision, run_id: &RunId) {
        if matches!(Seed::find(&self.state, &self.site, run_id), Ok(None))
            && let Ok(seed) = self.seed(request)
        {
            let _ = seed.write(&self.state, &self.site, run_id);
        }
    }

    fn start(&self, request: &Provision, run_id: RunId) -> Result<(), ErrorBody> {
        let wanted = Wanted {
            run_id,
            site: self.site.clone(),
            max_runs: Some(self.max_runs.into()),
            // The users of this machine are not the clients of the service.
            preview: PreviewAccess::Token,
            seed: self.seed(request)?,
        };
        // A damaged or missing snapshot is refused before anything starts.
        let _snapshot = match &wanted.seed.snapshot {
            None => None,
            Some(reference) => Some(self.sandboxes().starting_snapshot(reference)?),
        };
        let settings = self.settings_for(&request.inputs)?;
        let valid = wanted.validate(&settings, &SecretSource::Files(&self.state))?;
        valid.start(
            &self.state,
            self.runner.supervisor(&self.settings, RunMode::Detached)?,
        )
    }
}

fn invalid(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

fn not_found(sandbox: &SandboxId) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::SandboxNotFound,
        format!("this machine has no sandbox {sandbox}"),
    )
}

/// Returns the id of a sandbox as the id of its run; an id of another form belongs to no sandbox.
fn run_id(sandbox: &SandboxId) -> Result<RunId, ErrorBody> {
    RunId::new(sandbox.as_str()).map_err(|_| not_found(sandbox))
}

fn run_id_of(sandbox: &SandboxId) -> Result<RunId, ErrorBody> {
    RunId::new(sandbox.as_str())
        .map_err(|_| invalid("instead_of is not the id of a sandbox of this extension"))
}

/// Makes sure that no supervisor that was started earlier begins this run; the run then has ended
/// with the error `code`.
pub(super) fn forestall(
    state: &StateDir,
    site: &SiteId,
    run: &SandboxId,
    code: ErrorCode,
) -> Result<(), ErrorBody> {
    let Ok(run_id) = RunId::new(run.as_str()) else {
        return Ok(());
    };
    let why = ErrorBody::new(code, "the service ended while it started the sandbox");
    RunDir::forestall(state, site, &NewRun::new(run_id), why).map_err(ErrorBody::from)
}

fn guest_path(path: &str) -> Result<GuestPath, ErrorBody> {
    GuestPath::new(path).map_err(|e| invalid(e.to_string()))
}

impl Extension for Native {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn health(&self, _host: &str) -> Result<(), ErrorBody> {
        self.settings.named_wordpress()?;
        self.runner.check()
    }

    fn provision(&self, request: &Provision) -> Result<(), ErrorBody> {
        let run_id = RunId::new(request.sandbox.as_str()).map_err(|e| {
            invalid(format!(
                "this is not the id of a sandbox of this machine: {e}"
            ))
        })?;
        let exists = || self.sandboxes().run(run_id.clone()).path.is_dir();
        let starting = || self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if exists() {
            self.remember(request, &run_id);
            return Ok(());
        }
        if !starting().insert(run_id.clone()) {
            return Ok(());
        }
        // Another call may have started the sandbox after the first check and before `insert`.
        let started = match exists() {
            true => Ok(()),
            false => self.start(request, run_id.clone()),
        };
        starting().remove(&run_id);
        match started {
            // A supervisor that an earlier, killed server process started has meanwhile created the
            // run's directory, so the supervisor of this call could not create it.
            Err(_) if exists() => {
                self.remember(request, &run_id);
                Ok(())
            }
            other => other,
        }
    }

    fn forestall(&self, sandbox: &SandboxId) -> Result<(), ErrorBody> {
        let code = ErrorCode::SandboxStartFailed;
        forestall(&self.state, &self.site, sandbox, code)
    }

    fn wait_ready(&self, sandbox: &SandboxId) -> Result<Reachability, ErrorBody> {
        let run = self.found(sandbox)?;
        ready::wait(self.sandboxes(), &run)?;
        ready::reachability(self.sandboxes(), &run)
    }

    fn view(&self, sandbox: &SandboxId) -> Result<SandboxView, ErrorBody> {
        supervisor::reap_ended();
        let run = self.sandboxes().run(run_id(sandbox)?);
        view::of(self.sandboxes(), &run)
    }

    fn exec(
        &self,
        sandbox: &SandboxId,
        request: &ExecRequest,
        actor: &Actor,
        output: &mut dyn ExecOutput,
    ) -> Result<ExecEnd, ErrorBody> {
        let run = self.found(sandbox)?;
        self.sandboxes().check_running(&run)?;
        exec::run(&run, request, actor, output)
    }

    fn files(&self, sandbox: &SandboxId) -> Result<Value, ErrorBody> {
        let all = SyncOut {
            path: None,
            content: false,
            everything: false,
        };
        self.ask(sandbox, SERVICE, LiveRequest::SyncOut(all))
    }

    fn read_file(&self, sandbox: &SandboxId, path: &str) -> Result<Vec<u8>, ErrorBody> {
        let one = SyncOut {
            path: Some(guest_path(path)?),
            content: true,
            everything: false,
        };
        let answer = self.ask(sandbox, SERVICE, LiveRequest::SyncOut(one))?;
        match file_content(&answer, path)? {
            Some(file) => Ok(file.bytes),
            None => Err(ErrorBody::new(
                ErrorCode::ServiceNotFound,
                format!("the sandbox has no regular file {path}"),
            )),
        }
    }

    fn write_file(
        &self,
        sandbox: &SandboxId,
        path: &str,
        content: Option<&[u8]>,
        base_sha256: Option<&str>,
        actor: &Actor,
    ) -> Result<Value, ErrorBody> {
        if content.is_some_and(|bytes| bytes.len() > SYNC_FILE_BYTES) {
            let message = format!(
                "a file of this sandbox may have at most {} KiB in one request; send a longer one as the standard input of a program",
                SYNC_FILE_BYTES / 1024
            );
            return Err(ErrorBody::new(ErrorCode::ServiceRequestTooLarge, message));
        }
        let file = SyncIn {
            path: guest_path(path)?,
            base64: content.map(|bytes| STANDARD.encode(bytes)),
            executable: false,
            base_sha256: base_sha256.map(str::to_owned),
        };
        self.ask(sandbox, &actor.to_string(), LiveRequest::SyncIn(file))
    }

    fn extend_ttl(&self, sandbox: &SandboxId, ttl_ms: u64, actor: &Actor) -> Result<(), ErrorBody> {
        let run = self.found(sandbox)?;
        let longer = self
            .sandboxes()
            .extend_ttl(&run, &actor.to_string(), ttl_ms);
        longer.map(drop)
    }

    fn snapshot(
        &self,
        sandbox: &SandboxId,
        name: Option<&str>,
        actor: &Actor,
    ) -> Result<Value, ErrorBody> {
        let run = self.found(sandbox)?;
        self.sandboxes().snapshot(&run, &actor.to_string(), name)
    }

    fn restore(&self, sandbox: &SandboxId, snapshot: &str, actor: &Actor) -> Result<(), ErrorBody> {
        let run = self.found(sandbox)?;
        let restored = self.sandboxes().restore(&run, &actor.to_string(), snapshot);
        restored.map(drop)
    }

    fn snapshots(&self) -> Result<Vec<Value>, ErrorBody> {
        let mut listed = self.sandboxes().snapshots(None)?;
        match listed["snapshots"].take() {
            Value::Array(rows) => Ok(rows),
            _ => Ok(Vec::new()),
        }
    }

    fn remove_snapshot(&self, id: &str, actor: &Actor) -> Result<Value, ErrorBody> {
        self.sandboxes()
            .remove_snapshot(id, None, &actor.to_string())
    }

    fn teardown(
        &self,
        sandbox: &SandboxId,
        actor: &Actor,
        reason: &str,
    ) -> Result<CleanupReport, ErrorBody> {
        let run = self.found(sandbox)?;
        let before = view::of(self.sandboxes(), &run)?;
        self.sandboxes().end(&run, &actor.to_string(), reason)?;
        supervisor::reap_ended();
        view::cleanup(self.sandboxes(), &run, before.state)
    }

    fn events(&self, sandbox: &SandboxId, after: u64) -> Result<Vec<Value>, ErrorBody> {
        let run = self.found(sandbox)?;
        let page = events(&self.state, &run, after, EVENTS)?;
        Ok(page.events.iter().map(|event| json!(event)).collect())
    }

    fn estimate(&self, profile: &ProfileDocument, duration_ms: u64) -> Result<Value, ErrorBody> {
        let LoadedProfile { profile, .. } = parsed_profile(profile.text.as_bytes(), &profile.id)?;
        estimate(self.sandboxes(), &profile, duration_ms)
    }
}

#[cfg(test)]
mod tests;
