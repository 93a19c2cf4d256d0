//! Compares documents of the runner protocol and the live protocol, and the tables of error codes
//! and outcomes, with the files recorded in `tests/golden`.
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

#[path = "../../../../tests/golden/compare.rs"]
mod golden;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Write as _;
use wp_codebox_contracts::{
    ErrorCode, Frame, LiveCall, LiveInput, LiveReply, Outcome, RecoveredChanges,
};

/// Parses and serialises each line of a recorded file, which reveals renamed and lost members.
/// If default values make the serialised line differ from the recorded one, the next line of the
/// file is `> ` and the serialised line. `tagged` is the JSON pointer to the object in a line that
/// has the member `type`.
fn protocol<T: Serialize + DeserializeOwned>(name: &str, tagged: &str) {
    let path = golden::checkout().join("tests/golden").join(name);
    let recorded = std::fs::read_to_string(path).unwrap();
    let mut lines = String::new();
    for line in recorded.lines().filter(|line| !line.starts_with('>')) {
        let read: T = serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}: {e}: {line}"));
        let written = serde_json::to_string(&read).unwrap();
        writeln!(lines, "{line}").unwrap();
        if written != line {
            writeln!(lines, "> {written}").unwrap();
        }
    }
    for variant in variants::<T>(&recorded, tagged) {
        let tag = format!("\"type\":\"{variant}\"");
        assert!(recorded.contains(&tag), "{name} has no {variant}");
    }
    golden::compare(name, &lines);
}

/// Returns the names of all variants, which serde lists in its error for an unknown variant.
fn variants<T: DeserializeOwned>(recorded: &str, tagged: &str) -> Vec<String> {
    let mut line: Value = serde_json::from_str(recorded.lines().next().unwrap()).unwrap();
    *line.pointer_mut(tagged).unwrap() = json!({"type": "?"});
    let error = serde_json::from_value::<T>(line).err().unwrap().to_string();
    let (_, names) = error.split_once("expected one of").unwrap();
    names
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn runner_and_live_protocol_documents_match_the_recorded_lines() {
    protocol::<Frame>("frames/runner.jsonl", "");
    protocol::<LiveCall>("frames/live-call.jsonl", "/request");
    protocol::<LiveInput>("frames/live-input.jsonl", "");
    protocol::<LiveReply>("frames/live-reply.jsonl", "");
}

#[test]
fn error_codes_and_outcomes_match_the_recorded_tables() {
    let mut table = String::from("# code, kind, HTTP status, exit status\n");
    for code in ErrorCode::ALL {
        let (kind, http, exit) = (json!(code.kind()), code.http_status(), code.exit_status());
        writeln!(table, "{code} {} {http} {exit}", kind.as_str().unwrap()).unwrap();
    }
    table.push_str("# outcome, session, completion without and with changes, success, exit\n");
    for outcome in Outcome::ALL {
        let row = json!([
            outcome,
            outcome.session_status(),
            outcome.completion(RecoveredChanges::Absent).0,
            outcome.completion(RecoveredChanges::Absent).1,
            outcome.completion(RecoveredChanges::Present).0,
            outcome.completion(RecoveredChanges::Present).1,
            outcome.is_success(),
            outcome.exit_status(),
        ]);
        writeln!(table, "{row}").unwrap();
    }
    golden::compare("codes.txt", &table);
}
