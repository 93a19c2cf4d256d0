//! Validates episode traces of any origin.

use super::issues::{Issues, TraceIssue};
use crate::canonical::OverLimit;
use crate::digest::MAX_DOCUMENT;
use crate::json::Json;
use crate::verify::shape::digest;
use serde::Serialize;
use wp_codebox_contracts::{TRACE_VERSION, schema_id};

/// Maximum size of a trace in bytes.
pub const MAX_TRACE_BYTES: u64 = MAX_DOCUMENT;

/// Result of validating a trace, as callers receive it in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceValidation {
    /// True if the trace violates no rule.
    pub valid: bool,
    /// Schema id of valid traces, always `wp-codebox/runtime-episode-trace/v1`.
    pub schema: &'static str,
    /// The first [`MAX_TRACE_ISSUES`](super::MAX_TRACE_ISSUES) violations. If there are more, one
    /// further issue states how many.
    pub issues: Vec<TraceIssue>,
}

/// Validates the bytes of a trace. Every digest is recomputed. Ambiguous JSON, e.g. with duplicate
/// keys, is a violation.
#[must_use]
pub fn validate_episode_trace(bytes: &[u8]) -> TraceValidation {
    let issues = if bytes.len() as u64 > MAX_TRACE_BYTES {
        vec![TraceIssue {
            path: "$".to_owned(),
            message: format!("is larger than {MAX_TRACE_BYTES} bytes"),
        }]
    } else {
        match Json::parse(bytes) {
            Ok(trace) => issues_of(&trace),
            Err(error) => vec![TraceIssue {
                path: "$".to_owned(),
                message: error.to_string(),
            }],
        }
    };
    TraceValidation {
        valid: issues.is_empty(),
        schema: schema_id::RUNTIME_EPISODE_TRACE,
        issues,
    }
}

fn issues_of(trace: &Json) -> Vec<TraceIssue> {
    // A trace of another system may exceed the limits of canonical JSON; its digests then cover
    // only the part within the limits.
    let mut issues = Issues::new(OverLimit::Drop);
    judge(&mut issues, trace);
    issues.finish()
}

/// Checks every rule of traces and adds the issues in the order of the trace's members.
pub(super) fn judge(issues: &mut Issues, trace: &Json) {
    if trace.as_object().is_none() {
        issues.add("$", "must be an object");
    }
    issues.schema(trace, schema_id::RUNTIME_EPISODE_TRACE, "$");
    if trace.get("version").and_then(Json::as_f64) != Some(f64::from(TRACE_VERSION)) {
        issues.add("$.version", &format!("must be {TRACE_VERSION}"));
    }
    issues.full(trace, &["id", "createdAt"], "$");
    let null = Json::Null;
    let member = |key| trace.get(key).unwrap_or(&null);
    issues.full(member("runtime"), &["id"], "$.runtime");
    reset(issues, member("reset"));
    for (index, step) in rows(issues, trace, "steps", "$").iter().enumerate() {
        issues.step(step, index, &format!("$.steps[{index}]"));
    }
    let snapshots = rows(issues, trace, "snapshots", "$");
    for (index, snapshot) in snapshots.iter().enumerate() {
        issues.snapshot(snapshot, &format!("$.snapshots[{index}]"));
    }
    if let Some(reference) = trace.get("artifactRef").filter(|r| **r != Json::Null) {
        // Only the form of this reference is checked: it refers to the bundle that contains the
        // trace, and the bundle's digest is not known here.
        issues.names(reference, "artifact-bundle", &null, None, "$.artifactRef");
    }
    issues.forbidden(trace, "$");
}

fn reset(issues: &mut Issues, reset: &Json) {
    issues.full(reset, &["id"], "$.reset");
    issues.object(reset, "runtime", "$.reset");
    let observations = rows(issues, reset, "observations", "$.reset");
    let references = rows(issues, reset, "observationRefs", "$.reset");
    for (index, observation) in observations.iter().enumerate() {
        issues.observation(observation, &format!("$.reset.observations[{index}]"));
    }
    if observations.len() != references.len() {
        issues.add(
            "$.reset.observationRefs",
            "must have one reference for each observation",
        );
    }
    for (index, (reference, target)) in references.iter().zip(observations).enumerate() {
        let at = format!("$.reset.observationRefs[{index}]");
        let stated = digest(target.get("digest"));
        issues.names(reference, "observation", target, stated, &at);
    }
}

fn rows<'j>(issues: &mut Issues, value: &'j Json, key: &str, at: &str) -> &'j [Json] {
    match value.get(key).and_then(Json::as_array) {
        Some(rows) => rows,
        None => {
            issues.add(&format!("{at}.{key}"), "must be a list");
            &[]
        }
    }
}
