//! All runs of a site: calls `<supervisor> runs … --json`.
//!
//! The supervisor updates the records of dead runs before it answers, so this process needs no write
//! access to the state directory, and only the supervisor parses the records.

use crate::doctor::{Bounds, ask, expect};
use crate::fields::Fields;
use crate::guard::Failure;
use crate::ini::Settings;
use serde_json::{Map, Value, json};
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, ErrorCode, MAX_FRAME_BYTES, Outcome, SiteId, schema_id};

/// Flag that selects the JSON form of the PHP API instead of that of the run registry.
const VIEW: &str = "--form=view";

/// Maximum number of runs in one page of a list.
const MOST_RUNS: u64 = 200;
/// Maximum number of events in one page of a run's events.
const MOST_EVENTS: i64 = 1000;
/// Limits of a reply. A run's result has at most the size of one frame, and a page of events may
/// add the same size.
const BOUNDS: Bounds = Bounds {
    timeout: Duration::from_secs(60),
    max_bytes: 2 * MAX_FRAME_BYTES,
};

/// Returns the runs of a site as `wp-codebox/run-list/v1`.
pub(crate) fn list(
    settings: &Settings,
    site: &SiteId,
    filter: Map<String, Value>,
) -> Result<Value, Failure> {
    const KNOWN: &[&str] = &["status", "limit", "offset", "requester", "prefix"];
    let mut fields = Fields::new(filter, "filter", KNOWN, ErrorCode::InputInvalid)?;
    let mut arguments = vec![VIEW.to_owned()];
    match fields.text("status")?.as_deref() {
        None => {}
        Some(word @ ("running" | "ended")) => arguments.push(format!("--status={word}")),
        Some(_) => return Err(fields.refuse("status", "running or ended").into()),
    }
    if let Some(limit) = fields.count("limit")? {
        if !(1..=MOST_RUNS).contains(&limit) {
            let rule = format!("a whole number from 1 to {MOST_RUNS}");
            return Err(fields.refuse("limit", &rule).into());
        }
        arguments.push(format!("--limit={limit}"));
    }
    if let Some(offset) = fields.count("offset")? {
        arguments.push(format!("--offset={offset}"));
    }
    let requester = fields.count("requester")?;
    if let Some(requester) = requester {
        arguments.push(format!("--requester={requester}"));
    }
    if let Some(prefix) = fields.text("prefix")? {
        if requester.is_none() {
            return Err(fields.refuse("prefix", "used with requester").into());
        }
        arguments.push(format!("--prefix={}", named(&prefix)?));
    }
    runs(settings, "list", site, &arguments, schema_id::RUN_LIST)
}

/// Returns one run as `wp-codebox/run/v1`. For an ended run, adds the status, success and exit
/// status that belong to its outcome.
pub(crate) fn get(settings: &Settings, site: &SiteId, reference: &str) -> Result<Value, Failure> {
    let arguments = [named(reference)?];
    let mut run = runs(settings, "get", site, &arguments, schema_id::RUN)?;
    if run["status"] != "ended" {
        return Ok(run);
    }
    let outcome = serde_json::from_value::<Outcome>(run["outcome"].clone());
    let error = serde_json::from_value::<ErrorBody>(run["error"].clone());
    let (status, success, exit) = match (outcome, error) {
        (Ok(outcome), _) => (
            json!(outcome.session_status()),
            outcome.is_success(),
            outcome.exit_status(),
        ),
        // No outcome: use the status `failed` and the exit status of the error's code.
        (Err(_), Ok(error)) => (
            json!(Outcome::Failed.session_status()),
            false,
            error.code.exit_status(),
        ),
        (Err(_), Err(_)) => (
            json!(Outcome::Failed.session_status()),
            false,
            Outcome::Failed.exit_status(),
        ),
    };
    run["session_status"] = status;
    run["success"] = json!(success);
    run["exit_status"] = json!(exit);
    Ok(run)
}

/// Returns one page of a run's events as `wp-codebox/run-events/v1`.
pub(crate) fn events(
    settings: &Settings,
    site: &SiteId,
    reference: &str,
    after: i64,
    limit: i64,
) -> Result<Value, Failure> {
    let refuse = |field: &str, rule: String| {
        ErrorBody::new(ErrorCode::InputInvalid, format!("{field} must be {rule}"))
            .with("field", field)
    };
    if after < 0 {
        let rule = "a whole number from 0: the cursor of the previous page".to_owned();
        return Err(refuse("after", rule).into());
    }
    if !(1..=MOST_EVENTS).contains(&limit) {
        let rule = format!("a whole number from 1 to {MOST_EVENTS}");
        return Err(refuse("limit", rule).into());
    }
    let arguments = [
        format!("--after={after}"),
        format!("--limit={limit}"),
        named(reference)?,
    ];
    runs(settings, "events", site, &arguments, schema_id::RUN_EVENTS)
}

/// Cancels a run and returns the effect as `wp-codebox/run-cancellation/v1`.
pub(crate) fn cancel(
    settings: &Settings,
    site: &SiteId,
    reference: &str,
) -> Result<Value, Failure> {
    let arguments = [VIEW.to_owned(), named(reference)?];
    runs(
        settings,
        "cancel",
        site,
        &arguments,
        schema_id::RUN_CANCELLATION,
    )
}

fn runs(
    settings: &Settings,
    verb: &str,
    site: &SiteId,
    more: &[String],
    schema: &str,
) -> Result<Value, Failure> {
    let site = format!("--site={site}");
    let mut arguments = vec![
        "runs",
        verb,
        "--json",
        "--state",
        &settings.state_dir,
        &site,
    ];
    arguments.extend(more.iter().map(String::as_str));
    expect(ask(settings, &arguments, BOUNDS)?, schema, "runs")
}

/// Returns a run reference as an argument of the supervisor. Refuses text that cannot be a run id, so
/// that it can be neither an option nor a path.
fn named(reference: &str) -> Result<String, ErrorBody> {
    let fits = !reference.is_empty()
        && reference.len() <= 64
        && reference
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if fits {
        Ok(reference.to_owned())
    } else {
        Err(ErrorBody::new(
            ErrorCode::RunNotFound,
            "no run has this id; give a run id or the beginning of one",
        ))
    }
}
