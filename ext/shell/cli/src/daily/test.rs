//! `wp-codebox test`: the project's own checks in a sandbox.

use super::args::TestArgs;
use super::guest::Sandbox;
use crate::output::Output;
use crate::{mount, project};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use wp_codebox_contracts::{
    CheckReport, CheckStatus, ErrorBody, ErrorCode, LiveEnd, TestCounts, check_results,
};
use wp_codebox_policy::command_words;
use wp_codebox_runtime::{CheckRecord, check_report};
use wp_codebox_workloads::{missing_hint, program_hint};

/// Number of bytes of a check's output that are kept, from its start and from its end each. A check
/// reports a missing file before its results, and at its end that it did nothing.
const KEPT: usize = 64 << 10;

/// Runs all checks in the same sandbox and prints how many passed.
pub(crate) fn test(output: &Output, args: &TestArgs) -> ExitCode {
    match run(*output, args) {
        Ok(status) => ExitCode::from(status),
        Err(error) => output.failure("test", &error),
    }
}

/// A check to run.
struct Check {
    line: String,
    argv: Vec<String>,
    /// Why the check is proposed; `None` if the user named it.
    why: Option<String>,
}

fn run(output: Output, args: &TestArgs) -> Result<u8, ErrorBody> {
    let checks = checks(args)?;
    let root = root(args);
    let sandbox = Sandbox::get(output, &args.guest, args.activation, &args.store)?;
    let (mut reports, mut hints) = (Vec::new(), BTreeSet::new());
    let (mut first_status, mut first_error) = (0, None);
    for check in &checks {
        output.note(&match &check.why {
            Some(why) => format!("== {} ({why})", check.line),
            None => format!("== {}", check.line),
        });
        let ran = one(&sandbox, output, check);
        if ran.report.status != CheckStatus::Passed {
            hints.extend(missing_hint(&ran.output, root.as_deref()));
            if first_status == 0 {
                (first_status, first_error) = (ran.status, ran.error);
            }
        }
        if let Some(text) = result_line(&ran.report) {
            output.note(&text);
        }
        reports.push(ran.report);
    }
    sandbox.end()?;
    let passed = reports.iter().filter(|r| r.status == CheckStatus::Passed);
    output.note(&format!(
        "{} of {} checks passed",
        passed.count(),
        checks.len()
    ));
    for hint in hints {
        output.note(&format!("  hint: {hint}"));
    }
    if output.is_json() {
        output.document(&check_results(&reports, str::to_owned));
        return Ok(first_status);
    }
    match first_error {
        Some(error) => Err(error),
        None => Ok(first_status),
    }
}

/// Returns the checks of the command line, without any those that the project's files suggest.
fn checks(args: &TestArgs) -> Result<Vec<Check>, ErrorBody> {
    let given = args.checks.iter().map(|line| (line.clone(), None));
    let mut lines: Vec<(String, Option<String>)> = given.collect();
    if lines.is_empty() {
        let mounts = mount::mounts_or_project(&args.guest)?;
        let projects = mounts.iter().filter_map(|mounted| mounted.project.as_ref());
        lines = projects
            .flat_map(project::proposed_checks)
            .map(|check| (check.command, Some(check.why)))
            .collect();
    }
    if lines.is_empty() {
        return Err(ErrorBody::new(ErrorCode::InputInvalid, project::NO_CHECKS)
            .hint("name a check: wp-codebox test 'php tests/run.php'"));
    }
    lines
        .into_iter()
        .map(|(line, why)| {
            let argv = command_words(&line)?;
            Ok(Check { line, argv, why })
        })
        .collect()
}

/// Returns the host directory in which the checks run.
fn root(args: &TestArgs) -> Option<PathBuf> {
    let mounts = mount::mounts_or_project(&args.guest).ok()?;
    mounts
        .first()
        .map(|mounted| (&mounted.request.source).into())
}

/// A check that has ended.
struct Ran {
    report: CheckReport,
    /// Start and end of what the check printed.
    output: String,
    /// Exit status of this command if the check is the first that did not pass.
    status: u8,
    /// Why the check could not start.
    error: Option<ErrorBody>,
}

fn one(sandbox: &Sandbox, output: Output, check: &Check) -> Ran {
    let began = Instant::now();
    let record = CheckRecord::new();
    let mut printed = Printed::default();
    let seen = &mut |bytes: &[u8]| printed.add(bytes);
    let ended = sandbox.check(&output, check.argv.clone(), &record, seen);
    let duration = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let text = printed.text();
    match ended {
        Err(error) => {
            let program = check.argv.first().map_or("", String::as_str);
            let hint = program_hint(&error, program);
            let error = hint.into_iter().fold(error, ErrorBody::hint);
            Ran {
                report: CheckReport::error(&check.line, &error.message),
                output: text,
                status: error.code.exit_status(),
                error: Some(error),
            }
        }
        Ok(ended) => {
            let exited = |end: &LiveEnd| end.code.is_some() || end.signal.is_some();
            let report = match &ended.end {
                Some(end) if exited(end) => {
                    let records = sandbox.records(&record);
                    check_report(&check.line, end.code, &records, &text, duration)
                }
                Some(end) => {
                    CheckReport::error(&check.line, &format!("{} {}", end.end, end.reason))
                }
                None => CheckReport::error(&check.line, "its output could not be written"),
            };
            let passed = report.status == CheckStatus::Passed;
            Ran {
                report,
                output: text,
                status: if passed { 0 } else { ended.status.max(1) },
                error: None,
            }
        }
    }
}

/// Returns the line about a check that shows more than its own output: the number of its tests, and
/// why it did not pass.
fn result_line(report: &CheckReport) -> Option<String> {
    let mut parts: Vec<String> = report.tests.map(counted).into_iter().collect();
    if report.status != CheckStatus::Passed {
        parts.extend(report.reason.clone());
    }
    let passed = match report.status {
        CheckStatus::Passed => "passed",
        CheckStatus::Failed | CheckStatus::Error => "not passed",
    };
    if parts.is_empty() && report.status == CheckStatus::Passed && report.output_tail.is_empty() {
        parts.push("it printed nothing".to_owned());
    }
    (!parts.is_empty()).then(|| format!("== {passed}: {}", parts.join("; ")))
}

fn counted(tests: TestCounts) -> String {
    let mut text = format!("{} tests, {} passed", tests.total, tests.passed);
    for (count, name) in [(tests.failed, "failed"), (tests.skipped, "skipped")] {
        if count > 0 {
            text.push_str(&format!(", {count} {name}"));
        }
    }
    text
}

/// Start and end of the output of a check.
#[derive(Default)]
struct Printed {
    start: Vec<u8>,
    end: Vec<u8>,
}

impl Printed {
    fn add(&mut self, bytes: &[u8]) {
        let room = (KEPT - self.start.len()).min(bytes.len());
        let (start, end) = bytes.split_at(room);
        self.start.extend_from_slice(start);
        self.end.extend_from_slice(end);
        let excess = self.end.len().saturating_sub(KEPT);
        self.end.drain(..excess);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&[&self.start[..], &self.end].concat()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_end_of_a_long_output_are_kept() {
        let mut printed = Printed::default();
        printed.add(b"first\n");
        printed.add(&vec![b'.'; 3 * KEPT]);
        printed.add(b"\nlast");
        let text = printed.text();
        assert_eq!(text.len(), 2 * KEPT);
        assert!(text.starts_with("first\n.") && text.ends_with(".\nlast"));
    }
}
