//! Browser commands: a browser in a separate guest loads pages of the site, which the work guest
//! serves.
//!
//! The browser's guest contains no project files and reaches the network only through the two
//! sockets of an egress bridge in this process. The bridge forwards requests for the site's origin
//! to the work guest's web server, over one new connection each; all other requests follow the
//! policy's rules, like the work guest's own. Guest and bridge end with the command.

mod files;
mod gateway;
mod outcome;
mod state;

use super::preview::{SITE_PORT, SiteOutput};
use super::{Commanded, Session, added};
use crate::journal::recorder::Recorder;
use crate::prepared::level;
use gateway::Gateway;
use outcome::{Visit, millis};
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Value, json};
use state::Logins;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use wp_codebox_browser::{
    BROWSER_LIMITS, Chromium, EditorAct, Failure, Host, Page, PhpError, StoredFiles, Task, Wire,
    Work, argv, discover, environment, parse, wakes,
};
use wp_codebox_contracts::{
    CommandCall, ErrorBody, ErrorCode, EventType, ExecutionId, GuestPath, IsolationLevel,
    SITE_ORIGIN,
};
use wp_codebox_policy::EgressRules;
use wp_codebox_runtime::{Bounds, ExecutionEnd, Launch, Runtime, Terminal};

/// Maximum time to wait for the report of how a guest ended after its browser has ended.
const DYING: Duration = Duration::from_secs(3);

impl Session<'_, '_> {
    pub(super) fn browser_command(
        &mut self,
        call: &CommandCall,
        bounds: Bounds,
    ) -> Result<Commanded, ErrorBody> {
        let filled = self.with_contents(call, bounds)?;
        let task = parse(&filled, &self.context.prepared.policy)?;
        if self.context.level != IsolationLevel::Full {
            let message = format!(
                "{}: at isolation level {} a browser would have no isolated network, so none is started; make level full possible (`wp-codebox doctor` says how)",
                call.command,
                self.context.level.as_str()
            );
            return Err(ErrorBody::new(ErrorCode::BrowserUnavailable, message));
        }
        let chromium = discover(self.context.prepared.request.paths.browser.as_deref())?;
        let logins = self.logins(&task, bounds)?;
        let files = self.stored_files(call, &task, bounds)?;
        self.site_server()?;
        let standing = self.standing(call);
        let begun = self.recorder.begin(&standing)?;
        let started = Instant::now();
        let limit = task.timeout.min(bounds.timeout);
        let until = started
            .checked_add(limit)
            .map_or(bounds.deadline, |at| at.min(bounds.deadline));
        let visit = self.visit(&chromium, &task, (&logins, &files), (&begun.id, until))?;
        let ended = outcome::End {
            task: &task,
            bounds,
            elapsed: started.elapsed(),
            cancelled: self.context.cancellation.reason().is_some(),
        };
        let mut directory = format!("files/browser/{}", begun.id.as_str());
        if let Some(prefix) = &task.prefix {
            directory = format!("{directory}/{prefix}");
        }
        let (step, result) =
            outcome::settle(&call.command, visit, ended, &directory, self.recorder)?;
        self.recorder.conclude(begun, &standing, &step)?;
        Ok(Commanded {
            call: standing,
            step,
            result,
        })
    }

    /// Starts a browser in a guest of its own, performs the task, and ends the guest and its
    /// bridge.
    fn visit(
        &mut self,
        chromium: &Chromium,
        task: &Task,
        given: (&Logins, &StoredFiles),
        (id, until): (&ExecutionId, Instant),
    ) -> Result<Visit, ErrorBody> {
        let backend = &self.context.backend;
        let began = Instant::now();
        let directory = chromium.directory.as_deref();
        let mut runtime = backend
            .create_browser(directory, BROWSER_LIMITS)
            .map_err(|error| {
                level::explain(error, &self.context.prepared.request, &backend.sandbox)
            })?;
        // The browser is outside the run's cgroup, and a CPU limit does not cover it.
        let policy = &self.context.prepared.policy;
        if let Err(error) = level::check(policy, None, runtime.isolation()) {
            runtime.destroy();
            return Err(error);
        }
        let wakes = wakes();
        let rules = gateway::rules(self.context, task);
        let opened = rules
            .clone()
            .and_then(|rules| Gateway::open(self.context, rules, runtime.as_mut(), &wakes.0))
            .and_then(|gateway| Ok((gateway, started(runtime.as_mut(), chromium, id)?)));
        let (gateway, streams) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                runtime.destroy();
                return Err(error);
            }
        };
        let mut window = Window {
            site: self.guest.runtime.as_mut(),
            output: self.guest.site.as_ref().map(|site| site.output.clone()),
            rules: rules?,
            recorder: self.recorder,
            id,
            failed: None,
        };
        let mut visit = match Wire::open(&mut window, wakes, streams) {
            Ok(wire) => driven(wire, task, given, until, began),
            Err(error) => Visit::failed(Failure::Lost {
                why: error.to_string(),
            }),
        };
        let failed = window.failed.take();
        if let Some(Failure::Lost { .. } | Failure::Crashed) = &visit.failure {
            visit.limit = death(runtime.as_mut()).and_then(limit_of);
        }
        let usage = runtime.destroy().usage;
        visit.peak_memory_bytes = usage.peak_memory_bytes;
        self.spent = added(self.spent, usage);
        visit.external = gateway.close(id, &visit.hosts, self.recorder);
        match failed {
            Some(error) => Err(error),
            None => Ok(visit),
        }
    }
}

/// Returns how the browser's guest ended. The end of the browser may be noticed before that of the
/// guest, so this waits a moment.
fn death(runtime: &mut dyn Runtime) -> Option<ExecutionEnd> {
    let until = Instant::now() + DYING;
    loop {
        match runtime.death() {
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            end => return end,
        }
    }
}

/// Returns the error if the guest ended because it exceeded a resource limit.
fn limit_of(end: ExecutionEnd) -> Option<ErrorBody> {
    match end {
        ExecutionEnd::LimitReached { error } => Some(error),
        ExecutionEnd::Exited { .. }
        | ExecutionEnd::Signalled { .. }
        | ExecutionEnd::NotStarted { .. }
        | ExecutionEnd::TimedOut
        | ExecutionEnd::Cancelled
        | ExecutionEnd::GuestDied { .. } => None,
    }
}

/// Starts the browser in its guest; returns the host ends of its streams.
fn started(
    runtime: &mut dyn Runtime,
    chromium: &Chromium,
    id: &ExecutionId,
) -> Result<(OwnedFd, OwnedFd, OwnedFd), ErrorBody> {
    let unable = |why: String| {
        let message = format!("the browser cannot be started: {why}");
        ErrorBody::new(ErrorCode::BrowserUnavailable, message)
    };
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| unable(e.to_string()));
    let ((input, to_input), (from_output, output), (from_errors, errors)) =
        (pipe()?, pipe()?, pipe()?);
    let launch = Launch {
        id: id.clone(),
        argv: argv(chromium),
        env: environment(),
        cwd: GuestPath::new("/tmp").map_err(|e| unable(e.to_string()))?,
        terminal: Terminal::None,
    };
    runtime.launch(&launch, [input, output, errors])?;
    Ok((to_input, from_output, from_errors))
}

/// What the browser's driver may use of the run while it performs a task.
struct Window<'w, 'r> {
    /// Work guest, which serves the site.
    site: &'w mut dyn Runtime,
    /// Output of its web server.
    output: Option<SiteOutput>,
    /// Requests to other hosts than the site that the bridge of the browser's guest forwards.
    rules: EgressRules,
    recorder: &'w mut Recorder<'r>,
    id: &'w ExecutionId,
    failed: Option<ErrorBody>,
}

impl Host for Window<'_, '_> {
    fn connect(&mut self) -> io::Result<OwnedFd> {
        self.site
            .connect(SITE_PORT)
            .map_err(|error| io::Error::other(error.message))
    }

    /// Lets the work guest answer the connection requests of preview visitors, which would
    /// otherwise wait for the end of the browser command.
    fn pause(&mut self) {
        self.site.listen();
    }

    fn progress(&mut self, stage: &str, detail: Value) {
        let mut data = json!({"stage": stage});
        if let (Some(data), Value::Object(detail)) = (data.as_object_mut(), detail) {
            data.extend(detail);
        }
        let told = self
            .recorder
            .event(EventType::BrowserProgress, Some(self.id), data);
        if let Err(error) = told {
            self.failed.get_or_insert(error);
        }
    }

    fn refuses(&self, method: &str, url: &str) -> bool {
        gateway::refuses(&self.rules, method, url)
    }

    fn php_errors(&mut self) -> Vec<PhpError> {
        let output = self.output.as_ref();
        output.map_or_else(Vec::new, |output| output.take_php_errors(SITE_ORIGIN))
    }
}

/// Performs the task in a page and returns what was found, also if the task failed.
fn driven(
    wire: Wire<'_>,
    task: &Task,
    (logins, files): (&Logins, &StoredFiles),
    until: Instant,
    began: Instant,
) -> Visit {
    let mut page = match Page::open(wire, task, (&logins.own, &logins.actors), until) {
        Ok(page) => page,
        Err(failure) => return Visit::failed(failure),
    };
    let start = began.elapsed();
    page.wire
        .host
        .progress("started", json!({"ms": millis(start)}));
    let failure = work(&mut page, task, files).err();
    let mut place = (String::new(), String::new());
    if !failure.as_ref().is_some_and(Failure::is_final) {
        page.wire.host.progress("capturing", json!({}));
        if let Work::Editor(editor) = &task.work
            && matches!(editor.act, EditorAct::Open | EditorAct::Steps(_))
        {
            page.editor_state();
        }
        // A command with several profiles captures at the end of each; only a profile that failed
        // is captured here.
        if task.profiles.is_empty() || failure.is_some() {
            page.capture(task);
        }
        place = page.place();
    } else {
        page.capture_observed(task);
    }
    Visit {
        failure,
        observations: page.observations(),
        hosts: std::mem::take(&mut page.wire.observed.hosts),
        final_url: place.0,
        title: place.1,
        start: Some(start),
        report: std::mem::take(&mut page.report),
        ..Visit::failed(Failure::Crashed)
    }
}

fn work(page: &mut Page<'_>, task: &Task, files: &StoredFiles) -> Result<(), Failure> {
    match &task.work {
        Work::Editor(editor) => {
            let url = task.url.as_deref().unwrap_or_default();
            let done = page.editor(url, editor, task);
            return page.judge(done, task, None);
        }
        Work::Compare(compared) => {
            let done = page.compare(compared, task, files);
            return page.judge(done, task, None);
        }
        Work::Probe | Work::PageLoad { .. } | Work::Html | Work::Actions { .. } => {}
    }
    if task.profiles.is_empty() {
        return load(page, task);
    }
    for (index, (name, environment)) in task.profiles.iter().enumerate() {
        if index > 0 {
            page.emulate(environment)?;
        }
        let before = page.report.assertions.len();
        load(page, task)?;
        page.end_profile(name, task, before);
    }
    Ok(())
}

/// Loads the page of the task, executes its steps, and checks its assertions and whether it has
/// faults.
fn load(page: &mut Page<'_>, task: &Task) -> Result<(), Failure> {
    let done = load_and_check(page, task);
    page.judge(done, task, None)
}

fn load_and_check(page: &mut Page<'_>, task: &Task) -> Result<(), Failure> {
    if let Some(url) = task.url.as_ref().filter(|_| task.begins_itself()) {
        let until = page.until();
        page.navigate(url, &task.wait_for, until)?;
        page.settle(task)?;
        page.began();
    }
    if let Work::Actions { steps, .. } = &task.work {
        // A fault of the page is not one of the first step.
        page.judge(Ok(()), task, None)?;
        page.steps(steps, task)?;
    }
    if let Some(script) = &task.script {
        let until = page.until();
        page.report.script = Some(page.script(script, until)?.shown());
    }
    page.observe_elements(task)?;
    page.assertions(task)
}
