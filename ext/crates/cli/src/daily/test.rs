//! `wp-codebox test`: the project's own checks in a sandbox.

use super::args::TestArgs;
use super::guest::{Sandbox, StartsIn};
use super::missing;
use crate::output::Output;
use crate::{mount, project};
use std::collections::BTreeSet;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_policy::command_words;

/// Maximum number of bytes from the start of a check's output in which `missing::hint` searches. A
/// check reports a missing file before its results.
const MAX_SEEN: usize = 64 << 10;

/// Runs all checks in the same sandbox and prints how many passed.
pub(crate) fn test(output: &Output, args: &TestArgs) -> ExitCode {
    match run(*output, args) {
        Ok(status) => ExitCode::from(status),
        Err(error) => output.failure("test", &error),
    }
}

fn run(output: Output, args: &TestArgs) -> Result<u8, ErrorBody> {
    let given = args.checks.iter().map(|command| (command.clone(), None));
    let mut checks: Vec<(String, Option<String>)> = given.collect();
    if checks.is_empty() {
        let mounts = mount::mounts_or_project(&args.guest)?;
        let projects = mounts.iter().filter_map(|mounted| mounted.project.as_ref());
        checks = projects
            .flat_map(project::proposed_checks)
            .map(|check| (check.command, Some(check.why)))
            .collect();
    }
    if checks.is_empty() {
        return Err(ErrorBody::new(ErrorCode::InputInvalid, project::NO_CHECKS)
            .hint("name a check: wp-codebox test 'php tests/run.php'"));
    }
    let mut programs = Vec::new();
    for (check, _) in &checks {
        let argv = command_words(check).map_err(|e| e.body())?;
        programs.push(argv);
    }
    let sandbox = Sandbox::get(output, &args.guest, args.activation, &args.store)?;
    let (mut passed, mut first_failure) = (0, Ok(0));
    let mut hints = BTreeSet::new();
    for ((check, why), argv) in checks.iter().zip(programs) {
        output.note(&match why {
            Some(why) => format!("== {check} ({why})"),
            None => format!("== {check}"),
        });
        let mut printed = Vec::new();
        let seen = &mut |bytes: &[u8]| {
            let room = MAX_SEEN.saturating_sub(printed.len());
            printed.extend(bytes.iter().take(room));
        };
        let status = sandbox.run(&output, argv, StartsIn::Mount, seen);
        if !matches!(status, Ok(0)) {
            hints.extend(missing::hint(&String::from_utf8_lossy(&printed)));
        }
        match &status {
            Ok(0) => passed += 1,
            Ok(_) | Err(_) if matches!(first_failure, Ok(0)) => first_failure = status,
            Ok(_) | Err(_) => {}
        }
    }
    sandbox.end()?;
    output.note(&format!("{passed} of {} checks passed", checks.len()));
    for hint in hints {
        output.note(&format!("  hint: {hint}"));
    }
    first_failure
}
