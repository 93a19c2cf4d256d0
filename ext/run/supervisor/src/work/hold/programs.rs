//! Programs that clients started in a held sandbox. The functions run in the thread that owns the
//! guest.

use super::streams;
use crate::journal::queue::Started;
use crate::journal::recorder::{BesideEnd, Recorder};
use crate::session::Session;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use wp_codebox_contracts::{
    CommandCall, ErrorBody, ErrorCode, ExecutionId, LiveExec, TerminalSize,
};
use wp_codebox_policy::{assert_command, check_env_name};
use wp_codebox_runtime::{
    Call, ExecutionEnd, Launch, LaunchedEnd, Runtime, Terminal, is_check_setting,
};

/// Command id that the policy must allow for starting a program.
const COMMAND: &str = "command-agent-run";
/// Maximum number of columns, and of rows, of a terminal.
const LARGEST: u16 = 4096;

/// A program that was started and whose end is not recorded yet.
struct Row {
    call: Call,
    actor: String,
    terminal: Terminal,
    started: Instant,
    started_at: String,
    stop_at: Option<Instant>,
    stopped: Stopped,
    end: Option<ExecutionEnd>,
    notify: Option<oneshot::Sender<ExecutionEnd>>,
}

/// Whether, and why, the supervisor ended the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    No,
    ByTime,
    ByRequest,
}

/// Programs of clients that run in the sandbox.
#[derive(Default)]
pub(super) struct Programs {
    rows: BTreeMap<ExecutionId, Row>,
}

impl Programs {
    /// Starts a program if the policy allows it.
    pub(super) fn launch(
        &mut self,
        session: &mut Session<'_, '_>,
        actor: &str,
        exec: &LiveExec,
    ) -> Result<Started, ErrorBody> {
        let call = checked_call(session, exec)?;
        let pair = match exec.terminal {
            Some(size) => streams::terminal(checked(size)?)?,
            None => streams::pipes()?,
        };
        let terminal = match exec.terminal {
            Some(_) => Terminal::Controlling,
            None => Terminal::None,
        };
        let (id, started_at) = session.recorder.begin_beside(&call, actor, terminal)?;
        let launch = Launch {
            id: id.clone(),
            argv: call.argv.clone(),
            env: call.env.clone(),
            cwd: call.cwd.clone(),
            terminal,
        };
        let started = Instant::now();
        if let Err(error) = session.guest.runtime.launch(&launch, pair.guest) {
            let end = ExecutionEnd::NotStarted {
                error: error.clone(),
            };
            finish(session.recorder, &id, &call, &end, (started, &started_at))?;
            return Err(error);
        }
        let (notify, ended) = oneshot::channel();
        let row = Row {
            call,
            actor: actor.to_owned(),
            terminal,
            started,
            started_at,
            stop_at: exec
                .timeout_ms
                .and_then(|ms| started.checked_add(Duration::from_millis(ms))),
            stopped: Stopped::No,
            end: None,
            notify: Some(notify),
        };
        self.rows.insert(id.clone(), row);
        Ok(Started {
            id,
            streams: pair.ours,
            ended,
        })
    }

    /// Handles the guest's report that a program ended.
    pub(super) fn ended(&mut self, end: LaunchedEnd) {
        let Some(row) = self.rows.get_mut(&end.id) else {
            return;
        };
        let end = match (row.stopped, end.end) {
            (Stopped::ByTime, ExecutionEnd::Signalled { .. } | ExecutionEnd::Exited { .. }) => {
                ExecutionEnd::TimedOut
            }
            (Stopped::ByRequest, ExecutionEnd::Signalled { .. }) => ExecutionEnd::Cancelled,
            (_, end) => end,
        };
        row.end = Some(end.clone());
        // Tells the connection that copies the program's output that the program ended. Sending
        // fails if that connection has ended.
        if let Some(notify) = row.notify.take() {
            let _ = notify.send(end);
        }
    }

    /// Records the end of a program, after all of its output was recorded.
    pub(super) fn drained(
        &mut self,
        recorder: &mut Recorder<'_>,
        id: &ExecutionId,
    ) -> Result<(), ErrorBody> {
        let Some(row) = self.rows.remove(id) else {
            return Ok(());
        };
        let end = row.end.unwrap_or_else(ExecutionEnd::unknown_death);
        finish(
            recorder,
            id,
            &row.call,
            &end,
            (row.started, &row.started_at),
        )
    }

    /// Kills the programs whose time limit has passed.
    pub(super) fn stop_late(&mut self, runtime: &mut dyn Runtime, now: Instant) {
        for (id, row) in &mut self.rows {
            if row.end.is_none()
                && row.stopped == Stopped::No
                && row.stop_at.is_some_and(|at| now >= at)
            {
                row.stopped = Stopped::ByTime;
                // Stopping fails if the guest is dead; the program is then dead, too.
                let _ = runtime.stop(id);
            }
        }
    }

    /// Kills one program.
    pub(super) fn stop(&mut self, runtime: &mut dyn Runtime, id: &ExecutionId) {
        if let Some(row) = self.rows.get_mut(id) {
            if row.end.is_none() && row.stopped == Stopped::No {
                row.stopped = Stopped::ByRequest;
            }
            let _ = runtime.stop(id);
        }
    }

    /// Kills all programs.
    pub(super) fn stop_all(&mut self, runtime: &mut dyn Runtime) {
        for id in self.ids() {
            self.stop(runtime, &id);
        }
    }

    /// Sends a signal to one program.
    pub(super) fn signal(&self, runtime: &mut dyn Runtime, id: &ExecutionId, signal: i32) {
        if self.rows.contains_key(id) {
            let _ = runtime.signal(id, signal);
        }
    }

    pub(super) fn ids(&self) -> Vec<ExecutionId> {
        self.rows.keys().cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the earliest time at which a program must be killed; `None` if no running program
    /// has a time limit.
    pub(super) fn next_stop(&self) -> Option<Instant> {
        let waiting = self.rows.values().filter(|row| row.stopped == Stopped::No);
        waiting.filter_map(|row| row.stop_at).min()
    }

    /// Returns the running programs as text, for an error message.
    pub(super) fn names(&self, recorder: &Recorder<'_>) -> String {
        let name = |(id, row): (&ExecutionId, &Row)| {
            let program = row.call.argv.first().map_or("", String::as_str);
            format!("{} ({})", id.as_str(), recorder.clean(program))
        };
        self.rows.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Returns the running programs in the form of the status document.
    pub(super) fn listed(&self, recorder: &Recorder<'_>) -> Value {
        self.rows
            .iter()
            .filter(|(_, row)| row.end.is_none())
            .map(|(id, row)| {
                let program = row.call.argv.first().map_or("", String::as_str);
                json!({
                    "id": id,
                    "program": recorder.clean(program),
                    "actor": row.actor,
                    "terminal": row.terminal == Terminal::Controlling,
                    "startedAt": row.started_at,
                })
            })
            .collect()
    }
}

/// Builds the call for a program that a client wants to start, and checks it against the policy.
fn checked_call(session: &Session<'_, '_>, exec: &LiveExec) -> Result<Call, ErrorBody> {
    let program = exec.argv.first().map_or("", String::as_str);
    if program.is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "the request has no program to run",
        ));
    }
    let asked = CommandCall {
        command: COMMAND.to_owned(),
        args: vec![format!("command={program}")],
    };
    assert_command(&session.context.prepared.policy, &asked)?;
    for (name, value) in &exec.env {
        if !is_check_setting(name, value) {
            check_env_name(name).map_err(|e| e.body(name))?;
        }
    }
    let call = Call {
        command: COMMAND.to_owned(),
        args: exec.argv.clone(),
        phase: "live",
        argv: exec.argv.clone(),
        env: exec.env.clone(),
        cwd: exec
            .cwd
            .clone()
            .unwrap_or_else(|| session.context.cwd.clone()),
        stdin: None,
    };
    Ok(session.context.work_call(call))
}

fn checked(size: TerminalSize) -> Result<TerminalSize, ErrorBody> {
    if size.columns > LARGEST || size.rows > LARGEST {
        return Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            format!("the terminal must not have more than {LARGEST} columns or rows"),
        ));
    }
    Ok(size)
}

fn finish(
    recorder: &mut Recorder<'_>,
    id: &ExecutionId,
    call: &Call,
    end: &ExecutionEnd,
    (started, started_at): (Instant, &str),
) -> Result<(), ErrorBody> {
    recorder.finish_beside(
        id,
        call,
        BesideEnd {
            end,
            duration: started.elapsed(),
            started_at,
        },
    )
}
