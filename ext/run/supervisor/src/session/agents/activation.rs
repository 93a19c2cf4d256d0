//! Activates the mounted plugins and themes of a request in a guest.
//!
//! A plugin that does not work is a reason to call an agent, so a failed activation ends the run
//! only if the request requires it. Otherwise the agent gets the error, and the activation is tried
//! again before the checks.

use super::answer::{Answered, Program, ProgramBounds, ask_within, ended};
use crate::journal::inactive::{Inactive, subject};
use crate::session::guest::GuestContext;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    Activation, ActivationKind, CheckReport, CheckStatus, ErrorBody, ErrorCode, EventType,
    GuestPhase,
};
use wp_codebox_runtime::{COMPONENTS, Stop};

/// Bounds of an activation. The memory limit is that of wp-admin; the time limit of PHP counts
/// processor time and names the line that did not end.
const BOUNDS: ProgramBounds = ProgramBounds {
    php: &["-d", "memory_limit=256M", "-d", "max_execution_time=15"],
    timeout: Duration::from_secs(120),
};

/// Each kind of unmet requirement: a part of its error code in WordPress, and what to do.
const REQUIREMENTS: &[(&str, &str)] = &[
    (
        "theme_no_parent",
        "mount the parent theme too: --mount DIR_OF_PARENT --mount .",
    ),
    (
        "plugin_missing_dependencies",
        "mount the required plugins too, before this one: --mount DIR_OF_PLUGIN --mount .",
    ),
    (
        "php_incompatible",
        "choose another PHP program for the sandbox with --php FILE",
    ),
    (
        "wp_incompatible",
        "choose another WordPress with --wp VERSION; `wp-codebox wordpress list` lists the versions",
    ),
];

/// Activates the plugins and themes of the request. Returns the reason to stop the run, if any.
pub(crate) fn run(guest: &mut GuestContext<'_, '_>) -> Result<Option<Stop>, ErrorBody> {
    let mut failed = Vec::new();
    for of in &guest.run.prepared.request.activate {
        let started = Instant::now();
        let answered = activate(guest, "site.activate", of.kind, &of.name)?;
        if let Some(stop) = ended(&answered) {
            return Ok(Some(stop));
        }
        let mut inactive = inactive(of, &answered, started.elapsed());
        if let Some(inactive) = &mut inactive {
            // Text of the guest, which the agent's model gets: it may have a secret that the policy exposes.
            inactive.why = guest.recorder.clean(&inactive.why);
        }
        let printed = printed(&answered);
        let event = json!({
            "id": format!("{}:{}", of.kind.as_str(), of.name), "type": "activation",
            "active": inactive.is_none(), "required": of.required,
            "message": inactive.as_ref().map(Inactive::notice),
        });
        if guest.phase == GuestPhase::Work {
            guest.recorder.event(EventType::Observed, None, event)?;
        }
        match inactive {
            Some(inactive) if of.required && guest.phase == GuestPhase::Work => {
                let error = ErrorBody::new(ErrorCode::RunFailed, inactive.sentence());
                let error = inactive.hint.into_iter().fold(error, ErrorBody::hint);
                return Ok(Some(Stop::Failed(error.hint(
                    "with --activate try the run goes on, and the agent gets this error",
                ))));
            }
            Some(inactive) => failed.push(inactive),
            None if printed > 0 && guest.phase == GuestPhase::Work => {
                guest.recorder.evidence.notices.push(format!(
                    "{} is active, but it printed {printed} bytes while it was activated, which WordPress reports as unexpected output",
                    subject(of)
                ));
            }
            None => {}
        }
    }
    let notices = &mut guest.recorder.evidence.notices;
    if guest.phase == GuestPhase::Work {
        notices.extend(failed.iter().map(Inactive::notice));
        guest.recorder.evidence.inactive = failed;
    } else {
        guest.recorder.evidence.inactive_at_check = failed;
    }
    Ok(None)
}

/// Compares the activations in the guest of the checks with those before the change. Returns a
/// failed check for each plugin and theme that the change has made impossible to activate, and adds
/// a notice for each that could not be activated before.
pub(crate) fn compare(guest: &mut GuestContext<'_, '_>) -> Vec<CheckReport> {
    let evidence = &mut guest.recorder.evidence;
    let (before, now) = (&evidence.inactive, &evidence.inactive_at_check);
    let same = |list: &[Inactive], one: &Inactive| list.iter().any(|other| other.of == one.of);
    let mut reports = Vec::new();
    for inactive in now {
        if same(before, inactive) {
            let notice = format!("also with the change, {}", inactive.sentence());
            evidence.notices.push(notice);
            continue;
        }
        reports.push(CheckReport {
            command: format!("activate {}", subject(&inactive.of)),
            exit_code: inactive.exit_code,
            status: CheckStatus::Failed,
            output_tail: String::new(),
            duration_ms: u64::try_from(inactive.duration.as_millis()).unwrap_or(u64::MAX),
            reason: Some(inactive.why.clone()),
            tests: None,
        });
    }
    for repaired in before.iter().filter(|one| !same(now, one)) {
        let subject = subject(&repaired.of);
        let notice = format!("with the change, {subject} can be activated");
        evidence.notices.push(notice);
    }
    reports
}

/// Activates one plugin or theme by a program of its own, so that code that ends PHP affects
/// nothing else.
pub(super) fn activate(
    guest: &mut GuestContext<'_, '_>,
    command: &str,
    kind: ActivationKind,
    name: &str,
) -> Result<Answered, ErrorBody> {
    let program = Program {
        file: "activate.php",
        command,
        args: vec![format!("{}={name}", kind.as_str())],
        phase: COMPONENTS,
        input: Map::from_iter([
            ("kind".to_owned(), json!(kind)),
            ("name".to_owned(), json!(name)),
        ]),
    };
    ask_within(guest, program, &BOUNDS)
}

fn inactive(of: &Activation, answered: &Answered, duration: Duration) -> Option<Inactive> {
    if answered.text("status").as_deref() == Some("ready") {
        return None;
    }
    let why = answered
        .text("message")
        .unwrap_or_else(|| answered.missing_answer_reason());
    let code = answered.text("code").unwrap_or_default();
    let unmet = REQUIREMENTS.iter().find(|(kind, _)| code.contains(kind));
    Some(Inactive {
        of: of.clone(),
        hint: unmet
            .map(|(_, hint)| (*hint).to_owned())
            .or_else(|| missing_file_hint(&why)),
        why,
        exit_code: answered.step.exit_code(),
        duration,
    })
}

fn printed(answered: &Answered) -> u64 {
    let printed = answered
        .answer
        .as_ref()
        .and_then(|answer| answer.get("printed"));
    printed.and_then(Value::as_u64).unwrap_or_default()
}

/// Returns what to do about a file that PHP did not find, named relative to the directory of its
/// plugin or theme.
fn missing_file_hint(printed: &str) -> Option<String> {
    let (_, rest) = printed.split_once("Failed opening required '")?;
    let (path, _) = rest.split_once('\'')?;
    let (_, below) = path.split_once("/wp-content/")?;
    // Skip `plugins` or `themes` and the slug.
    let file = below.splitn(3, '/').nth(2)?;
    Some(match file.split_once('/') {
        Some(("vendor", _)) => format!("{file} is missing: run composer install"),
        _ => format!("{file} is missing: build the project, for example with npm run build"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_is_named_relative_to_the_plugin_or_theme() {
        let vendor = "Failed opening required '/wordpress/wp-content/plugins/hello/vendor/autoload.php' (include_path='.')";
        for (printed, expected) in [
            (
                vendor,
                Some("vendor/autoload.php is missing: run composer install"),
            ),
            (
                "Failed opening required '/wordpress/wp-content/themes/sky/build/a.php' (x)",
                Some("build/a.php is missing: build the project, for example with npm run build"),
            ),
            ("Failed opening required '/tmp/functions.php'", None),
            ("Failed opening required '/wordpress/wp-content/x'", None),
            ("Failed opening required '", None),
            ("", None),
        ] {
            assert_eq!(missing_file_hint(printed).as_deref(), expected, "{printed}");
        }
    }
}
