//! `wp-codebox shell`, `wp` and `php`: a program in a sandbox with the project of this directory.

use super::args::{Program, ProgramArgs, ShellArgs};
use super::history::open;
use crate::activation::{self, Activate, ActivationArgs};
use crate::exec::{self, Ended, ExecArgs, Printing};
use crate::guest_args::{GuestArgs, StoreArgs};
use crate::output::{Output, is_interactive};
use crate::runs::PlaceArgs;
use crate::{mount, request};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wp_codebox_changes::PURPOSE;
use wp_codebox_contracts::{ErrorBody, Hold, LimitsRequest, RunMode, RunStatus, TaskSpec};
use wp_codebox_runs::supervisor;
use wp_codebox_runtime::{CheckRecord, StateDir, find};
use wp_codebox_sandboxes::Sandboxes;
use wp_codebox_settings::Settings;

/// Key and value in the provenance of a run that this module starts for one program.
const OF_PROGRAM: (&str, &str) = (PURPOSE.0, "program of a directory");
/// Maximum lifetime in milliseconds of a sandbox that this module starts for one program.
const LONGEST: u64 = 4 * 3_600_000;
/// Time in milliseconds after which an unused sandbox ends. Only reached if the command that should
/// end the sandbox was killed.
const IDLE: u64 = 5 * 60_000;

/// Opens a shell in the sandbox.
pub(crate) fn shell(output: &Output, args: &ShellArgs) -> ExitCode {
    let sandbox = Sandbox::get(*output, &args.guest, args.activation, &args.store);
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
    let sandbox = Sandbox::get(*output, &args.guest, args.activation, &args.store);
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
    /// Guest path of the current directory, if a mounted directory contains it.
    here: Option<String>,
}

/// Command that started a sandbox and therefore ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The present command (`shell`, `wp`, `php` or `test`).
    Here,
    /// `wp-codebox up`: its site goes on when the present command ends.
    Up,
}

impl Sandbox {
    /// Returns the site of `wp-codebox up` in this directory if it runs and no option asks for
    /// another one, else starts a sandbox with the mounts or the project of this directory.
    pub(super) fn get(
        output: Output,
        guest: &GuestArgs,
        activation: ActivationArgs,
        store: &StoreArgs,
    ) -> Result<Self, ErrorBody> {
        if guest.mounts.is_empty()
            && guest.wp.is_none()
            && guest.services.is_empty()
            && activation.activate != Activate::Never
            && let Some((run_id, directories)) = running_site(store)
        {
            let mounts = directories.iter().map(|(guest, host)| (&**guest, &**host));
            return Ok(Self {
                run_id,
                store: store.clone(),
                owner: Owner::Up,
                here: here_below(mounts),
            });
        }
        let settings = Settings::for_guests(&store.paths, guest.wp.as_deref(), output)?;
        let mounts = mount::mounts_or_project(guest)?;
        mount::announce(output, &mounts);
        let pairs = mounts.iter().map(|mounted| &mounted.request);
        let here = here_below(pairs.map(|row| (&*row.target, Path::new(&row.source))));
        let provenance = [("requester", "command-line"), OF_PROGRAM];
        let task = TaskSpec {
            mode: RunMode::Detached,
            activate: mount::activations(&mounts, activation.activate),
            services: guest.services.services(),
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
            provenance: provenance
                .map(|(key, value)| (key.to_owned(), Value::from(value)))
                .into_iter()
                .collect(),
            ..TaskSpec::default()
        };
        let request = request::request(task, &store.site, &settings)?;
        supervisor::until_ready(&request, |event| activation::announce(output, event))?;
        Ok(Self {
            run_id: request.run_id.to_string(),
            store: store.clone(),
            owner: Owner::Here,
            here,
        })
    }

    /// Runs a program in the guest's directory of the current directory, connected to the standard
    /// streams of this process, and returns its exit status.
    fn run(&self, output: &Output, argv: Vec<String>) -> Result<u8, ErrorBody> {
        let args = ExecArgs {
            cwd: self.here.clone(),
            ..self.exec(argv)
        };
        let ended = exec::run(output, Printing::of(output), args, &mut |_| {})?;
        Ok(ended.status)
    }

    /// Runs a check in the first writable mount. `seen` gets what it prints; with JSON, this is not
    /// printed.
    pub(super) fn check(
        &self,
        output: &Output,
        argv: Vec<String>,
        record: &CheckRecord,
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<Ended, ErrorBody> {
        let printing = match output.is_json() {
            true => Printing::Nothing,
            false => Printing::Streams,
        };
        let variable = |(name, value): (String, String)| format!("{name}={value}");
        let args = ExecArgs {
            env: record.environment().into_iter().map(variable).collect(),
            tty: printing == Printing::Streams && is_interactive(),
            ..self.exec(argv)
        };
        exec::run(output, printing, args, seen)
    }

    /// Returns what the programs of a check recorded; empty if it cannot be read.
    pub(super) fn records(&self, record: &CheckRecord) -> Vec<u8> {
        exec::captured(&self.run_id, record.reader(), &self.place()).unwrap_or_default()
    }

    fn exec(&self, argv: Vec<String>) -> ExecArgs {
        ExecArgs {
            run: self.run_id.clone(),
            argv,
            tty: is_interactive(),
            env: Vec::new(),
            cwd: None,
            timeout: None,
            leave: false,
            actor: None,
            place: self.place(),
        }
    }

    fn place(&self) -> PlaceArgs {
        PlaceArgs {
            site: Some(self.store.site.clone()),
            paths: self.store.paths.clone(),
            json: self.store.json,
        }
    }

    /// Ends the sandbox if this command started it; leaves a site of `up` running.
    pub(super) fn end(self) -> Result<(), ErrorBody> {
        if self.owner == Owner::Up {
            return Ok(());
        }
        let settings = Settings::resolve(&self.store.paths)?;
        let state = StateDir::open(&settings.state_dir)?;
        state.become_owner()?;
        let site = wp_codebox_contracts::SiteId::new(&self.store.site).map_err(|e| {
            ErrorBody::new(wp_codebox_contracts::ErrorCode::InputInvalid, e.to_string())
        })?;
        let run = find(&state, std::slice::from_ref(&site), &self.run_id)?;
        let sandboxes = Sandboxes {
            state: &state,
            site: &site,
        };
        sandboxes.end(&run, "cli", "its command has ended")
    }
}

/// Returns the guest path of the current directory, if one of the mounts, given as guest path and
/// host directory, contains it. Returns `None` inside a `.git` directory.
fn here_below<'a>(mounts: impl Iterator<Item = (&'a str, &'a Path)>) -> Option<String> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let here = here.ok()?;
    let below = |(target, source): (&'a str, &Path)| {
        let source = source.canonicalize().ok()?;
        Some((target, here.strip_prefix(source).ok()?.to_str()?.to_owned()))
    };
    // If mounts are nested, the innermost one leaves the shortest rest of the path.
    let found = mounts.filter_map(below).min_by_key(|(_, rest)| rest.len());
    let (target, rest) = found?;
    if rest.is_empty() {
        return Some(target.to_owned());
    }
    // The guest never sees the host's .git directories.
    let hidden = rest.split('/').any(|part| part == ".git");
    (!hidden).then(|| format!("{target}/{rest}"))
}

/// Returns the run id and the mounted directories of the running site that `wp-codebox up` started
/// for this directory. Ignores errors of the state directory: starting a new sandbox reports them.
fn running_site(store: &StoreArgs) -> Option<(String, BTreeMap<String, PathBuf>)> {
    let (history, _) = open(store).ok()?;
    let runs = history.runs(50).ok()?;
    let (key, value) = PURPOSE;
    let site = runs.rows.iter().find(|(_, record, status)| {
        *status == RunStatus::Running
            && record.facts.provenance.get(key).and_then(Value::as_str) == Some(value)
    });
    let (run, _, _) = site?;
    Some((run.run_id.to_string(), history.directories(run).ok()?))
}
