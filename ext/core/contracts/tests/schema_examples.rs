//! Parses the examples beside the schemas with the Rust types that write such documents.
//!
//! WordPress's own validator checks the same files in the WordPress suite. A valid example must
//! parse and must keep all members when serialised again. An invalid example must be refused,
//! unless it violates a rule that only the JSON Schema expresses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers may panic.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{
    AgentPreset, ChangedFiles, EventType, FollowUpRecord, IsolationReport, ParentToolRequest,
    ParentToolResult, RunArtifactList, RunAttestation, RunCancellation, RunCancellationRequest,
    RunEvents, RunHandle, RunLifecycle, RunList, RunRegistryEntry, RunRegistryPage, RunResult,
    TaskInput, WasiTool,
};

/// Invalid examples that the Rust types accept: each violates a rule that only the JSON Schema
/// expresses, such as a pattern, a length or a constant.
const SCHEMA_RULES: &[&str] = &[
    "agent-preset/invalid-program-absolute.json",
    "agent-preset/invalid-step-when-list.json",
    "changed-files/invalid-mode-world.json",
    "parent-tool-request/invalid-version-two.json",
    "parent-tool-result/invalid-version-two.json",
    "run-attestation/invalid-minimum-none.json",
    "task-input/invalid-goal-empty.json",
    "task-input/invalid-schema-other.json",
    "task-input/invalid-version-two.json",
    "wasi-tool/invalid-fuel-zero.json",
    "wasi-tool/invalid-parameters-array.json",
    "wasi-tool/invalid-schema-other.json",
];

fn examples(name: &str) -> Vec<PathBuf> {
    let root = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../abilities/schemas/examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.join(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 3, "{name} has too few examples");
    files
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
    for file in examples(name) {
        let label = format!("{name}/{}", file.file_name().unwrap().to_str().unwrap());
        let text = std::fs::read_to_string(&file).unwrap();
        let read = serde_json::from_str::<T>(&text);
        if label.contains("/valid-") {
            let kept =
                serde_json::to_value(read.unwrap_or_else(|e| panic!("{label}: {e}"))).unwrap();
            let given: Value = serde_json::from_str(&text).unwrap();
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
    let path = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../abilities/schemas/run-events.v1.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
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
