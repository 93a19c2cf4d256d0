//! `wp-codebox shell`, `wp` and `php`: a program in a sandbox with the project of this directory.

use super::args::{Program, ProgramArgs, ShellArgs};
use super::history::History;
use crate::exec::{self, ExecArgs};
use crate::guest_args::{GuestArgs, StoreArgs};
use crate::output::Output;
use crate::runs::PlaceArgs;
use crate::{Settings, mount, request, sandbox, supervisor};
use serde_json::{Map, Value};
use std::io::IsTerminal;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, Hold, LimitsRequest, RunMode, RunStatus, TaskSpec};
use wp_codebox_runtime::{StateDir, find};

/// Key and value in the provenance of a run that `wp-codebox up` started.
pub(super) const PURPOSE: (&str, &str) = ("purpose", "site of a directory");
/// Maximum time of a sandbox that one command uses, in milliseconds.
const LONGEST: u64 = 4 * 3_600_000;
/// Time after which an unused sandbox ends, in milliseconds: its command was killed.
const IDLE: u64 = 5 * 60_000;

/// Opens a shell in the sandbox.
pub(crate) fn shell(output: &Output, args: &ShellArgs) -> ExitCode {
    let sandbox = Sandbox::get(*output, &args.guest, &args.store);
    let ran = sandbox.and_then(|sandbox| {
        let status = sandbox.run(output, vec!["bash".to_owned()]);
        sandbox.end().and(status)
    });
    finished(output, "shell", ran)
}

/// Runs WP-CLI or PHP in the sandbox.
pub(crate) fn program(output: &Output, args: &ProgramArgs, program: Program) -> ExitCode {
    let name = match program {
        Program::Wp => "wp",
        Program::Php => "php",
    };
    let sandbox = Sandbox::get(*output, &args.guest, &args.store);
    let ran = sandbox.and_then(|sandbox| {
        let argv = std::iter::once(name.to_owned()).chain(args.arguments.iter().cloned());
        let status = sandbox.run(output, argv.collect());
        sandbox.end().and(status)
    });
    finished(output, name, ran)
}

fn finished(output: &Output, command: &str, ran: Result<u8, ErrorBody>) -> ExitCode {
    match ran {
        Ok(status) => ExitCode::from(status),
        Err(error) => output.failure(command, &error),
    }
}

/// A sandbox that is held for the program of a daily command.
#[derive(Debug)]
pub(super) struct Sandbox {
    run_id: String,
    store: StoreArgs,
    owner: Owner,
}

/// Which command ends a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// This one.
    Here,
    /// `wp-codebox up`, which still runs.
    Up,
}

impl Sandbox {
    /// Returns the site of `wp-codebox up` in this directory if it runs and no mount is given, else
    /// starts a sandbox with the mounts or the project of this directory.
    pub(super) fn get(
        output: Output,
        guest: &GuestArgs,
        store: &StoreArgs,
    ) -> Result<Self, ErrorBody> {
        if guest.mounts.is_empty()
            && guest.wp.is_none()
            && let Some(run_id) = running_site(store)
        {
            return Ok(Self {
                run_id,
                store: store.clone(),
                owner: Owner::Up,
            });
        }
        let settings = Settings::for_guests(&store.paths, guest.wp.as_deref(), output)?;
        let mounts = mount::mounts_or_project(guest)?;
        mount::announce(output, &mounts);
        let (key, value) = ("requester", "command-line");
        let task = TaskSpec {
            mode: RunMode::Detached,
            commands: mount::activations(&mounts),
            mounts: mounts.into_iter().map(|mounted| mounted.request).collect(),
            hold: Some(Hold {
                ttl_ms: LONGEST,
                max_ttl_ms: LONGEST,
                idle_ms: Some(IDLE),
                preview: None,
                identity: None,
                snapshot: None,
            }),
            limits: LimitsRequest {
                wall_clock_ms: Some(LONGEST + IDLE),
                ..LimitsRequest::default()
            },
            provenance: Map::from_iter([(key.to_owned(), Value::from(value))]),
            ..TaskSpec::default()
        };
        let request = request::request(task, &store.site, &settings)?;
        supervisor::until_ready(&request, |_| {})?;
        Ok(Self {
            run_id: request.run_id.to_string(),
            store: store.clone(),
            owner: Owner::Here,
        })
    }

    /// Runs a program, connected to this terminal or these pipes; returns its exit status.
    pub(super) fn run(&self, output: &Output, argv: Vec<String>) -> Result<u8, ErrorBody> {
        let tty = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let args = ExecArgs {
            run: self.run_id.clone(),
            argv,
            tty,
            env: Vec::new(),
            cwd: None,
            timeout: None,
            leave: false,
            actor: None,
            place: PlaceArgs {
                site: Some(self.store.site.clone()),
                paths: self.store.paths.clone(),
                json: self.store.json,
            },
        };
        exec::run(output, args)
    }

    /// Ends a sandbox that this command started.
    pub(super) fn end(self) -> Result<(), ErrorBody> {
        if self.owner == Owner::Up {
            return Ok(());
        }
        let settings = Settings::resolve(&self.store.paths)?;
        let state = StateDir::open(&settings.state_dir).map_err(|e| e.body())?;
        state.become_owner().map_err(|e| e.body())?;
        let site = wp_codebox_contracts::SiteId::new(&self.store.site).map_err(|e| {
            ErrorBody::new(wp_codebox_contracts::ErrorCode::InputInvalid, e.to_string())
        })?;
        let run = find(&state, &[site], &self.run_id).map_err(|e| e.body())?;
        sandbox::end(&state, &run, "cli", "its command has ended")
    }
}

/// Returns the run id of the site that `wp-codebox up` keeps for this directory. An unreadable state
/// directory is reported by the start that follows.
fn running_site(store: &StoreArgs) -> Option<String> {
    let runs = History::open(store).ok()?.runs(50).ok()?;
    let (key, value) = PURPOSE;
    let site = runs.iter().find(|(_, record, status)| {
        *status == RunStatus::Running
            && record.provenance.get(key).and_then(Value::as_str) == Some(value)
    });
    site.map(|(run, _, _)| run.run_id.to_string())
}
