//! Checks the agent's work in a fresh guest that has the captured changes: the syntax of changed PHP
//! files, then the checks, i.e. commands that the caller gave.

use super::agents;
use super::context::RunContext;
use super::egress;
use super::guest::{GuestContext, guest, spec};
use super::php_syntax;
use super::recorder::Recorder;
use super::services::Services;
use super::work::Work;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CheckReport, CheckStatus, ErrorBody, GuestPhase, IsolationReport, SandboxAudit,
};
use wp_codebox_runtime::{ExecutionEnd, Runtime, Stop, Usage, check_program};

/// Number of bytes from the end of a check's output that its report contains.
const CHECK_TAIL: usize = 4 * 1024;

/// Results of the checks and of the guest in which they ran.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub reports: Vec<CheckReport>,
    pub stopped: Option<Stop>,
    /// Isolation that probe programs observed in the guest; `None` when no guest ran.
    pub isolation: Option<IsolationReport>,
    /// Audit record of the process wrapper (bubblewrap or gVisor, if used) around the launcher;
    /// empty when no guest was started.
    pub outer: Vec<SandboxAudit>,
    pub usage: Usage,
}

/// Runs the checks in a fresh guest, because code in the agent's guest could falsify their results.
pub(super) fn check(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    work: &Work,
) -> Result<Checked, ErrorBody> {
    let lines = &context.prepared.request.checks;
    let pointless =
        matches!(work.stopped, Some(Stop::Timeout | Stop::Cancelled)) || !work.moved.is_empty();
    let php_files = php_syntax::changed_files(&context.guest_mounts, &work.changes);
    if pointless || (lines.is_empty() && php_files.is_empty()) {
        return Ok(Checked::default());
    }
    let (mut runtime, egress) = match checking_guest(context, work) {
        Ok(guest) => guest,
        // The agent's work is complete. If the guest for the checks cannot start, the checks are
        // reported as not run, and the run continues.
        Err(error) => {
            if lines.is_empty() {
                let notice =
                    format!("the syntax of the changed PHP files was not checked: {error}");
                recorder.evidence.notices.push(recorder.clean(&notice));
            }
            return Ok(Checked::unable(lines, &error));
        }
    };
    let mut checked = Checked {
        isolation: Some(runtime.isolation().clone()),
        outer: vec![runtime.outer_sandbox().clone()],
        ..Checked::default()
    };
    // Before any program that could change the files.
    let mut guest = GuestContext {
        run: context,
        recorder,
        runtime: runtime.as_mut(),
        phase: GuestPhase::Check,
        limit: None,
    };
    php_syntax::check(&mut guest, deadline(context), &php_files)?;
    let activates = !context.prepared.request.activate.is_empty();
    if lines.is_empty() && !activates {
        checked.usage = runtime.destroy().usage;
        egress.close(GuestPhase::Check, recorder)?;
        return Ok(checked);
    }
    let at = (GuestPhase::Check, deadline(context));
    let started = Services::start(context, runtime.as_mut(), recorder, at);
    let mut services = match started {
        Ok(services) => services,
        Err(error) => {
            checked.reports = Checked::unable(lines, &error).reports;
            checked.usage = runtime.destroy().usage;
            egress.close(GuestPhase::Check, recorder)?;
            return Ok(checked);
        }
    };
    let mut guest = GuestContext {
        run: context,
        recorder,
        runtime: runtime.as_mut(),
        phase: GuestPhase::Check,
        limit: None,
    };
    let ended = match agents::prepare(&mut guest) {
        Ok(None) => {
            checked.reports = agents::compare(&mut guest);
            run_checks(&mut guest, &mut checked)
        }
        Ok(Some(stop)) => {
            checked.stopped = Some(stop);
            Ok(())
        }
        // The captured change may have caused this error, so the checks are reported as not run
        // and the run continues.
        Err(error) => {
            checked.reports = Checked::unable(lines, &error).reports;
            Ok(())
        }
    };
    checked.usage = runtime.destroy().usage;
    services.finish();
    egress.close(GuestPhase::Check, recorder)?;
    ended?;
    if context.cancellation.reason().is_some() {
        checked.stopped = Some(Stop::Cancelled);
    }
    Ok(checked)
}

impl Checked {
    /// Reports every check as not run, with the reason.
    fn unable(lines: &[String], error: &ErrorBody) -> Self {
        let reports = lines
            .iter()
            .map(|line| CheckReport {
                command: line.clone(),
                exit_code: None,
                status: CheckStatus::Error,
                output_tail: tail_of(&error.message, CHECK_TAIL),
                duration_ms: 0,
            })
            .collect();
        Self {
            reports,
            ..Self::default()
        }
    }
}

type CheckingGuest = (Box<dyn Runtime>, egress::Open);

fn checking_guest(context: &RunContext<'_>, work: &Work) -> Result<CheckingGuest, ErrorBody> {
    let layers = work.layers.as_ref().map_err(ErrorBody::clone)?;
    let lowers = |index: usize| {
        layers[index]
            .iter()
            .cloned()
            .chain(context.mounts[index].lowers.iter().cloned())
            .collect()
    };
    let egress = egress::prepare(context, GuestPhase::Check)?;
    let spec = spec(context, GuestPhase::Check, lowers, egress.guest())?;
    let mut runtime = guest(context, &spec)?;
    let egress = egress.open(runtime.as_mut())?;
    Ok((runtime, egress))
}

/// Returns the time at which the guest of the checks must end.
fn deadline(run: &RunContext<'_>) -> Instant {
    match &run.prepared.request.hold {
        None => run.clock.deadline,
        // The work guest was kept open for clients. The time until it ended does not count against
        // the time limit of the checks.
        Some(_) => Instant::now() + Duration::from_millis(run.prepared.limits.wall_clock_ms),
    }
}

fn run_checks(guest: &mut GuestContext<'_, '_>, checked: &mut Checked) -> Result<(), ErrorBody> {
    let run = guest.run;
    let deadline = deadline(run);
    for line in &run.prepared.request.checks {
        let started = Instant::now();
        let call = guest.equipped(check_program(line, &run.cwd)?);
        let step = guest.recorder.run(guest.runtime, &call, deadline)?;
        let (status, note) = match &step.result.end {
            ExecutionEnd::Exited { code: 0 } => (CheckStatus::Passed, String::new()),
            ExecutionEnd::Exited { .. } | ExecutionEnd::Signalled { .. } => {
                (CheckStatus::Failed, String::new())
            }
            ExecutionEnd::NotStarted { error } | ExecutionEnd::LimitReached { error } => {
                (CheckStatus::Error, error.message.clone())
            }
            ExecutionEnd::TimedOut => (CheckStatus::Error, "the run's deadline passed".to_owned()),
            ExecutionEnd::Cancelled => (CheckStatus::Error, "the run was cancelled".to_owned()),
            ExecutionEnd::GuestDied { death } => (CheckStatus::Error, death.to_string()),
        };
        let output = format!("{}{}{note}", step.stdout, step.stderr);
        checked.reports.push(CheckReport {
            command: line.clone(),
            exit_code: step.exit_code(),
            status,
            output_tail: tail_of(&output, CHECK_TAIL),
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        checked.stopped = match step.result.end {
            ExecutionEnd::TimedOut => Some(Stop::Timeout),
            ExecutionEnd::Cancelled => Some(Stop::Cancelled),
            _ => None,
        };
        if checked.stopped.is_some()
            || matches!(
                step.result.end,
                ExecutionEnd::GuestDied { .. } | ExecutionEnd::LimitReached { .. }
            )
        {
            break;
        }
    }
    Ok(())
}

/// Returns about the last `bytes` bytes of a text, with a mark that the beginning is missing.
fn tail_of(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut start = text.len() - bytes;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    format!("[{start} bytes cut]\n{}", &text[start..])
}
