//! Converts journal events to the events of an event bus that connects an agent, its runtime and a
//! user interface.
//!
//! Each journal event with output becomes one bus event. Output that is not valid UTF-8 (a
//! character may be split over two events) stays base64, so a reader can join the output events
//! of one execution and stream to get the exact bytes.

use crate::{EventType, ExecutionId, LifecycleEvent, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

string_enum! {
    /// Type of an event on the bus.
    pub enum BusEventType {
        /// A command starts: {command, args, phase?}.
        AgentExecCmd = "AGENT_EXEC_CMD",
        /// A command printed output: {stream, text | base64, truncated?}.
        RuntimeOutput = "RUNTIME_OUTPUT",
        /// A command ended: {exitCode (null without an exit code), end?, signal?, durationMs?}.
        RuntimeExit = "RUNTIME_EXIT",
        /// A guest is ready: {level?, network?}.
        RuntimeReady = "RUNTIME_READY",
        /// Files became visible in the guest: {path, mode?}.
        SystemFileSync = "SYSTEM_FILE_SYNC",
    }
}

/// One event on the bus.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BusEvent {
    /// Type of the event.
    #[serde(rename = "type")]
    pub kind: BusEventType,
    /// Sequence number of the journal event.
    pub seq: u64,
    /// RFC 3339 timestamp of the journal event.
    pub timestamp: String,
    /// Execution that the event belongs to.
    #[serde(
        rename = "executionId",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub execution_id: Option<ExecutionId>,
    /// Detail; its members depend on the type of the event.
    pub payload: Map<String, Value>,
}

/// Result of converting a journal event: a bus event, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum BusProjection {
    /// The bus event for the journal event.
    Event(BusEvent),
    /// The bus has no event for the journal event, for this reason.
    Nothing(&'static str),
}

/// Converts a journal event to a bus event. No other code defines this mapping.
#[must_use]
pub fn project_to_bus(event: &LifecycleEvent) -> BusProjection {
    let data = &event.data;
    let (kind, payload) = match event.kind {
        EventType::CommandStarted => (
            BusEventType::AgentExecCmd,
            pick(data, &["command", "args", "phase"]),
        ),
        EventType::CommandOutput => (
            BusEventType::RuntimeOutput,
            pick(data, &["stream", "text", "base64", "truncated"]),
        ),
        EventType::CommandFinished => {
            let mut payload = pick(data, &["exitCode", "end", "signal", "durationMs"]);
            // Clients that wait for the exit event need `exitCode` in it even if the program
            // never exited.
            payload.entry("exitCode").or_insert(Value::Null);
            (BusEventType::RuntimeExit, payload)
        }
        EventType::Observed if data.get("type").is_some_and(|t| t == "runtime-info") => (
            BusEventType::RuntimeReady,
            pick(data, &["level", "network"]),
        ),
        EventType::Observed => {
            return BusProjection::Nothing(
                "only an observation of type runtime-info shows that the guest is ready",
            );
        }
        EventType::Mounted => {
            let mut payload = Map::new();
            for (name, key) in [("path", "target"), ("mode", "mode")] {
                if let Some(value) = data.get(key) {
                    payload.insert(name.to_owned(), value.clone());
                }
            }
            (BusEventType::SystemFileSync, payload)
        }
        EventType::Created => {
            return BusProjection::Nothing("the guest was requested, but runs no program yet");
        }
        EventType::FilesSynced if data.get("direction").is_some_and(|d| d == "in") => (
            BusEventType::SystemFileSync,
            pick(data, &["path", "sha256"]),
        ),
        EventType::FilesSynced => {
            return BusProjection::Nothing("the files were copied out of the guest, not into it");
        }
        EventType::SnapshotCreated
        | EventType::SnapshotRestored
        | EventType::CheckpointCreated
        | EventType::CheckpointRestored => {
            return BusProjection::Nothing("the bus has no event type for snapshots");
        }
        EventType::BrowserProgress => {
            return BusProjection::Nothing("the bus has no event type for browser progress");
        }
        EventType::StateChanged => {
            return BusProjection::Nothing("the bus reports executions, not sandbox states");
        }
        EventType::ArtifactsCollected => {
            return BusProjection::Nothing("the bus has no event type for bundles");
        }
        EventType::Destroyed => {
            return BusProjection::Nothing("the bus reports ends of executions, not of guests");
        }
    };
    BusProjection::Event(BusEvent {
        kind,
        seq: event.seq,
        timestamp: event.timestamp.clone(),
        execution_id: event.execution_id.clone(),
        payload,
    })
}

fn pick(data: &Map<String, Value>, keys: &[&str]) -> Map<String, Value> {
    keys.iter()
        .filter_map(|key| Some(((*key).to_owned(), data.get(*key)?.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(kind: EventType, data: Value) -> LifecycleEvent {
        let Value::Object(data) = data else { panic!() };
        LifecycleEvent {
            id: "evt-7".to_owned(),
            seq: 7,
            kind,
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            execution_id: Some(ExecutionId::new("exec-1").unwrap()),
            data,
        }
    }

    /// Each row: a type of journal event, example data, and the expected bus event or `None`.
    #[test]
    fn each_journal_event_type_becomes_the_expected_bus_event_or_none() {
        let rows = [
            (
                EventType::Created,
                json!({"runtimeId": "r", "backend": "native"}),
                None,
            ),
            (
                EventType::Mounted,
                json!({"index": 0, "target": "/workspace/demo", "mode": "readwrite", "view": "overlay"}),
                Some((
                    "SYSTEM_FILE_SYNC",
                    json!({"path": "/workspace/demo", "mode": "readwrite"}),
                )),
            ),
            (
                EventType::CommandStarted,
                json!({"command": "ls", "args": ["-la"], "phase": "agent"}),
                Some((
                    "AGENT_EXEC_CMD",
                    json!({"command": "ls", "args": ["-la"], "phase": "agent"}),
                )),
            ),
            (
                EventType::CommandOutput,
                json!({"stream": "stdout", "text": "package.json\n"}),
                Some((
                    "RUNTIME_OUTPUT",
                    json!({"stream": "stdout", "text": "package.json\n"}),
                )),
            ),
            (
                EventType::CommandFinished,
                json!({"command": "ls", "end": "exited", "durationMs": 5, "exitCode": 0}),
                Some((
                    "RUNTIME_EXIT",
                    json!({"exitCode": 0, "end": "exited", "durationMs": 5}),
                )),
            ),
            (
                EventType::Observed,
                json!({"id": "observation-1", "type": "runtime-info", "level": "full", "network": "deny"}),
                Some(("RUNTIME_READY", json!({"level": "full", "network": "deny"}))),
            ),
            (EventType::SnapshotCreated, json!({"id": "s"}), None),
            (EventType::SnapshotRestored, json!({"id": "s"}), None),
            (EventType::CheckpointCreated, json!({"id": "s"}), None),
            (EventType::CheckpointRestored, json!({"id": "s"}), None),
            (
                EventType::FilesSynced,
                json!({"direction": "in", "path": "/workspace/a/b", "sha256": "0", "actor": "x"}),
                Some((
                    "SYSTEM_FILE_SYNC",
                    json!({"path": "/workspace/a/b", "sha256": "0"}),
                )),
            ),
            (
                EventType::FilesSynced,
                json!({"direction": "out", "path": "/workspace/a/b", "actor": "x"}),
                None,
            ),
            (EventType::BrowserProgress, json!({}), None),
            (
                EventType::StateChanged,
                json!({"from": "ready", "to": "active"}),
                None,
            ),
            (EventType::ArtifactsCollected, json!({"id": "b"}), None),
            (EventType::Destroyed, json!({"reason": "run-ended"}), None),
        ];
        let (mut heard, mut named) = (Vec::new(), Vec::new());
        for (kind, data, expected) in rows {
            named.push(kind);
            match (project_to_bus(&event(kind, data)), expected) {
                (BusProjection::Event(made), Some((name, payload))) => {
                    assert_eq!(made.kind.as_str(), name);
                    let json = serde_json::to_value(&made).unwrap();
                    assert_eq!(
                        json,
                        json!({"type": name, "seq": 7, "timestamp": "2026-01-01T00:00:00.000Z",
                            "executionId": "exec-1", "payload": payload})
                    );
                    heard.push(made.kind);
                }
                (BusProjection::Nothing(why), None) => assert!(!why.is_empty()),
                (made, expected) => panic!("{kind:?}: {made:?}, not {expected:?}"),
            }
        }
        assert!(EventType::ALL.iter().all(|kind| named.contains(kind)));
        assert!(BusEventType::ALL.iter().all(|kind| heard.contains(kind)));
    }

    #[test]
    fn observations_of_other_types_than_runtime_info_produce_no_bus_event() {
        for kind in ["egress", "agent-turn", "runtime-infos"] {
            let seen = event(EventType::Observed, json!({"type": kind}));
            assert!(matches!(project_to_bus(&seen), BusProjection::Nothing(_)));
        }
    }

    #[test]
    fn finished_command_without_exit_code_has_null_exit_code_on_the_bus() {
        let ended = event(
            EventType::CommandFinished,
            json!({"end": "timed-out", "durationMs": 9}),
        );
        let BusProjection::Event(made) = project_to_bus(&ended) else {
            panic!()
        };
        assert_eq!(
            Value::Object(made.payload),
            json!({"exitCode": null, "end": "timed-out", "durationMs": 9})
        );
    }

    /// `é` split into two bytes: neither is valid UTF-8, and both stay base64.
    #[test]
    fn output_split_inside_a_utf8_character_stays_base64_on_the_bus() {
        let pieces = [
            json!({"stream": "stdout", "base64": "Y2Fmww=="}),
            json!({"stream": "stdout", "base64": "qQo="}),
            json!({"stream": "stdout", "text": "next"}),
        ];
        let payloads: Vec<Value> = pieces
            .iter()
            .map(
                |piece| match project_to_bus(&event(EventType::CommandOutput, piece.clone())) {
                    BusProjection::Event(made) => Value::Object(made.payload),
                    BusProjection::Nothing(why) => panic!("{why}"),
                },
            )
            .collect();
        assert_eq!(payloads, pieces);
    }
}
