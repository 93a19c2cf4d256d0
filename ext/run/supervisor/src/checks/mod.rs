//! Checks the agent's work in a fresh guest that has the captured changes: the syntax of changed PHP
//! files, then the checks, i.e. commands that the caller gave.

pub(crate) mod php_syntax;

use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use crate::session::agents;
use crate::session::egress;
use crate::session::guest::{GuestContext, guest, spec};
use crate::session::services::Services;
use crate::work::Work;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CheckReport, ErrorBody, ErrorCode, ExecutionId, GuestPhase, IsolationReport, OutputStream,
    SandboxAudit,
};
use wp_codebox_runtime::{
    CheckRecord, Execution, ExecutionEnd, Runtime, Stop, Usage, check_program, check_report,
};

/// Most bytes that the reader of a check's records may print.
const RECORDS_BYTES: u64 = 64 * 1024;
/// Time limit of the reader of a check's records.
const RECORDS_TIME: Duration = Duration::from_secs(60);

/// Results of the checks and of the guest in which they ran.
#[derive(Debug, Default)]
pub(crate) struct Checked {
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
pub(crate) fn check(
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
            .map(|line| CheckReport::error(line, &error.message))
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
        let record = CheckRecord::new();
        let mut call = guest.equipped(check_program(line, &run.cwd)?);
        call.env.extend(record.environment());
        let step = guest.recorder.run(guest.runtime, &call, deadline)?;
        let report = match &step.result.end {
            ExecutionEnd::Exited { .. } | ExecutionEnd::Signalled { .. } => {
                let duration = started.elapsed().as_millis();
                let records = read_records(guest, &record, deadline)?;
                check_report(
                    line,
                    step.exit_code(),
                    &records,
                    &format!("{}{}", step.stdout, step.stderr),
                    u64::try_from(duration).unwrap_or(u64::MAX),
                )
            }
            ExecutionEnd::NotStarted { error } | ExecutionEnd::LimitReached { error } => {
                CheckReport::error(line, &error.message)
            }
            ExecutionEnd::TimedOut => CheckReport::error(line, "the run's deadline passed"),
            ExecutionEnd::Cancelled => CheckReport::error(line, "the run was cancelled"),
            ExecutionEnd::GuestDied { death } => CheckReport::error(line, &death.to_string()),
        };
        checked.reports.push(CheckReport {
            // The records are text of the guest.
            reason: report.reason.map(|reason| guest.recorder.clean(&reason)),
            ..report
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

/// Runs the guest program that reads the records of a check, and returns what it printed. It is not a
/// command of the run: the report of the check has its result.
fn read_records(
    guest: &mut GuestContext<'_, '_>,
    record: &CheckRecord,
    deadline: Instant,
) -> Result<Vec<u8>, ErrorBody> {
    let execution = Execution {
        id: ExecutionId::new("check-records")
            .map_err(|error| ErrorBody::new(ErrorCode::Internal, error.to_string()))?,
        argv: record.reader(),
        env: BTreeMap::new(),
        cwd: guest.run.cwd.clone(),
        stdin: None,
        output_bytes: RECORDS_BYTES,
        stop_at: (Instant::now() + RECORDS_TIME).min(deadline),
        deadline,
    };
    let mut printed = Vec::new();
    guest.runtime.execute(&execution, &mut |stream, bytes| {
        if let OutputStream::Stdout = stream {
            printed.extend_from_slice(bytes);
        }
    })?;
    Ok(printed)
}
