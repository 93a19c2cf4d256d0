//! Checks that the examples in docs/held-sandboxes.md are accepted unchanged.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_contracts::{LiveCall, LiveInput, LiveReply, LiveRequest};
use wp_codebox_recipe::parse_profile;

const PAGE: &str = include_str!("../../../../docs/held-sandboxes.md");

/// Returns the text of each code block of the page that is marked with this language.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let after = PAGE.split(fence.as_str()).skip(1);
    after
        .map(|rest| rest.split("```").next().unwrap_or("").to_owned())
        .collect()
}

#[test]
fn profile_in_the_held_sandboxes_page_is_valid() {
    let profiles = blocks("yaml");
    assert_eq!(profiles.len(), 1);
    let profile = parse_profile(profiles[0].as_bytes()).unwrap();
    assert_eq!(
        (profile.id.as_str(), profile.ttl.idle_ms),
        ("profile.shop", Some(600_000))
    );
}

#[test]
fn live_protocol_lines_in_the_held_sandboxes_page_are_parsed() {
    let blocks = blocks("json");
    let [call, back, input] = blocks.as_slice() else {
        panic!("{} blocks", blocks.len());
    };
    for line in call.lines() {
        serde_json::from_str::<LiveCall>(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    for line in back.lines() {
        serde_json::from_str::<LiveReply>(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    for line in input.lines() {
        serde_json::from_str::<LiveInput>(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
}

#[test]
fn held_sandboxes_page_has_a_parsable_example_of_every_live_request() {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `{\"type\""));
    let cells = rows.map(|row| row.split(" | ").next().unwrap_or(""));
    let mut shown = BTreeSet::new();
    for text in cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
        let request: LiveRequest =
            serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        shown.insert(name(&request));
    }
    assert_eq!(shown.len(), 17, "{shown:?}");
}

/// Returns the name of a request's kind. The match is exhaustive, so a new kind does not compile
/// without a row here. The test compares the number of kinds in the page with a constant, which
/// must be raised for a new kind.
fn name(request: &LiveRequest) -> &'static str {
    match request {
        LiveRequest::Exec(_) => "exec",
        LiveRequest::Command { .. } => "command",
        LiveRequest::Observe { .. } => "observe",
        LiveRequest::Step { .. } => "step",
        LiveRequest::Trace {} => "trace",
        LiveRequest::SyncIn(_) => "sync_in",
        LiveRequest::SyncOut(_) => "sync_out",
        LiveRequest::Snapshot(_) => "snapshot",
        LiveRequest::Restore { .. } => "restore",
        LiveRequest::Reset {} => "reset",
        LiveRequest::Snapshots {} => "snapshots",
        LiveRequest::Mail { .. } => "mail",
        LiveRequest::Preview(_) => "preview",
        LiveRequest::Events(_) => "events",
        LiveRequest::Status {} => "status",
        LiveRequest::ExtendTtl { .. } => "extend_ttl",
        LiveRequest::Close { .. } => "close",
    }
}

#[test]
fn profile_schema_examples_are_accepted_if_named_valid_and_refused_otherwise() {
    let file = std::path::Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../abilities/schemas/examples/sandbox-profile.json");
    let examples: BTreeMap<String, Value> =
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let mut seen = BTreeSet::new();
    for (name, example) in examples {
        let read = parse_profile(example.to_string().as_bytes());
        assert_eq!(read.is_ok(), name.starts_with("valid-"), "{name}: {read:?}");
        seen.insert(name.starts_with("valid-"));
    }
    assert_eq!(seen.len(), 2);
}
