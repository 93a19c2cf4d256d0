//! Parses the examples beside the schemas with the Rust types that write such documents.
//!
//! WordPress's own validator checks the same files in the WordPress suite. A valid example must
//! parse and must keep all members when serialised again. An invalid example must be refused,
//! unless it violates a rule that only the JSON Schema expresses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers may panic.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use wp_codebox_contracts::{
    AgentPreset, ChangedFiles, EventType, FollowUpRecord, IsolationReport, ParentToolRequest,
    ParentToolResult, RunArtifactList, RunAttestation, RunCancellation, RunCancellationRequest,
    RunEvents, RunHandle, RunLifecycle, RunList, RunRegistryEntry, RunRegistryPage, RunResult,
    TaskInput, WasiTool,
};

/// Invalid examples that the Rust types accept: each violates a rule that only the JSON Schema
/// expresses, such as a pattern, a length or a constant.
const SCHEMA_RULES: &[&str] = &[
    "agent-preset/invalid-program-absolute",
    "agent-preset/invalid-step-when-list",
    "changed-files/invalid-mode-world",
    "parent-tool-request/invalid-version-two",
    "parent-tool-result/invalid-version-two",
    "run-attestation/invalid-minimum-none",
    "task-input/invalid-goal-empty",
    "task-input/invalid-goal-missing",
    "task-input/invalid-schema-other",
    "task-input/invalid-version-two",
    "wasi-tool/invalid-fuel-zero",
    "wasi-tool/invalid-parameters-array",
    "wasi-tool/invalid-schema-other",
];

fn examples(name: &str) -> BTreeMap<String, Value> {
    let file = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join(format!("../../../abilities/schemas/examples/{name}.json"));
    let examples: BTreeMap<_, _> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert!(examples.len() >= 3, "{name} has too few examples");
    examples
}

/// Returns the path of the first member of `given` that is missing in `kept` or has another value
/// there. `kept` may have additional members with default values.
fn lost(given: &Value, kept: &Value, at: &str) -> Option<String> {
    match (given, kept) {
        (Value::Object(given), Value::Object(kept)) => given.iter().find_map(|(key, value)| {
            let at = format!("{at}.{key}");
            match kept.get(key) {
                None if value.is_null() => None,
                None => Some(at),
                Some(other) => lost(value, other, &at),
            }
        }),
        (Value::Array(given), Value::Array(kept)) if given.len() == kept.len() => given
            .iter()
            .zip(kept)
            .enumerate()
            .find_map(|(index, (a, b))| lost(a, b, &format!("{at}[{index}]"))),
        _ => (given != kept).then(|| at.to_owned()),
    }
}

fn check<T: DeserializeOwned + Serialize>(name: &str) {
    for (label, given) in examples(name) {
        let label = format!("{name}/{label}");
        let read = serde_json::from_str::<T>(&given.to_string());
        if label.contains("/valid-") {
            let kept =
                serde_json::to_value(read.unwrap_or_else(|e| panic!("{label}: {e}"))).unwrap();
            assert_eq!(lost(&given, &kept, "$"), None, "{label}");
        } else {
            assert_eq!(
                read.is_ok(),
                SCHEMA_RULES.contains(&label.as_str()),
                "{label}"
            );
        }
    }
}

#[test]
fn wasi_tool_examples_match_the_rust_type() {
    check::<WasiTool>("wasi-tool");
}

#[test]
fn agent_preset_examples_match_the_rust_type() {
    check::<AgentPreset>("agent-preset");
}

#[test]
fn changed_files_examples_match_the_rust_type() {
    check::<ChangedFiles>("changed-files");
}

#[test]
fn follow_up_examples_match_the_rust_type() {
    check::<FollowUpRecord>("follow-up");
}

#[test]
fn isolation_report_examples_match_the_rust_type() {
    check::<IsolationReport>("isolation-report");
}

#[test]
fn parent_tool_examples_match_the_rust_type() {
    check::<ParentToolRequest>("parent-tool-request");
    check::<ParentToolResult>("parent-tool-result");
}

#[test]
fn run_attestation_examples_match_the_rust_type() {
    check::<RunAttestation>("run-attestation");
}

#[test]
fn run_result_examples_match_the_rust_type() {
    check::<RunResult>("run-result");
}

#[test]
fn task_input_examples_match_the_rust_type() {
    check::<TaskInput>("task-input");
}

// Documents that the abilities about runs return. The command line prints the same documents
// without the member `success`.

#[test]
fn run_handle_examples_match_the_rust_type() {
    check::<RunHandle>("run-handle");
}

#[test]
fn run_list_examples_match_the_rust_type() {
    check::<RunList>("run-list");
}

#[test]
fn run_events_examples_match_the_rust_type() {
    check::<RunEvents>("run-events");
}

#[test]
fn schema_of_run_events_lists_every_event_type() {
    let text = wp_codebox_schemas::text("run-events").unwrap();
    let schema: Value = serde_json::from_str(text).unwrap();
    let types = "/properties/events/items/properties/type/enum";
    let listed = schema.pointer(types).unwrap();
    let all: Vec<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(*listed, serde_json::json!(all));
}

#[test]
fn run_cancellation_examples_match_the_rust_type() {
    check::<RunCancellation>("run-cancellation");
}

// Documents in the format of the run registry.

#[test]
fn run_lifecycle_examples_match_the_rust_type() {
    check::<RunLifecycle>("run-lifecycle");
}

#[test]
fn run_registry_examples_match_the_rust_type() {
    check::<RunRegistryEntry>("run-registry-entry");
    check::<RunRegistryPage>("run-registry");
}

#[test]
fn run_cancellation_request_examples_match_the_rust_type() {
    check::<RunCancellationRequest>("run-cancellation-request");
}

#[test]
fn run_artifacts_examples_match_the_rust_type() {
    check::<RunArtifactList>("run-artifacts");
}
