//! Requests, and what a client says while one goes on.

use crate::{ActionRequest, CommandCall, GuestPath, ObservationSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// First line of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveCall {
    /// [`super::LIVE_PROTOCOL`] of the client.
    pub live: u32,
    /// Who asks, in a few words such as `cli:deploy`; recorded, never an authorisation.
    pub actor: String,
    /// What.
    pub request: LiveRequest,
}

/// The parser's sentence about a request, when it names a member that is not known. Its other
/// sentences may quote a value, and a value may be a secret.
#[must_use]
pub fn unknown_member(error: &serde_json::Error) -> Option<String> {
    let said = error.to_string();
    let (said, _) = said.rsplit_once(" at line ").unwrap_or((&said, ""));
    said.starts_with("unknown field")
        .then(|| said.chars().take(400).collect())
}

/// What can be asked. A member that is not known is an error: `timeout` of an exec would be a limit
/// that nothing keeps. Requests without members are written `{}` because serde lets unit variants
/// have any.
#[allow(
    clippy::large_enum_variant,
    reason = "one per conversation, never kept in numbers"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum LiveRequest {
    /// Run a program, streaming. Needs `command-agent-run` in the policy.
    Exec(LiveExec),
    /// Run a registry command; the answer is its `runtime-command-result/v1`.
    Command {
        /// Which, judged by the sandbox's policy.
        call: CommandCall,
        /// Milliseconds until it is ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// Look at something; the answer is the observation.
    Observe {
        /// At what.
        spec: ObservationSpec,
    },
    /// Take a step of the episode that a held sandbox is: run the command of an action and look
    /// at something afterwards. The answer is the step as its trace has it.
    Step {
        /// What to do.
        action: ActionRequest,
        /// At what to look afterwards; absent: at nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        observation: Option<ObservationSpec>,
    },
    /// The trace of the episode so far; the answer is `runtime-episode-trace/v1`.
    Trace {},
    /// Write a file into a writable mount.
    SyncIn(SyncIn),
    /// Read what a writable mount holds by now.
    SyncOut(SyncOut),
    /// Keep the state: files and database.
    Snapshot(SnapshotRequest),
    /// Replace the guest by one with the state of a snapshot.
    Restore {
        /// Id of the snapshot.
        id: String,
    },
    /// Replace the guest by a fresh one.
    Reset {},
    /// The snapshots of this sandbox.
    Snapshots {},
    /// The mails that were captured so far; with a number that one, with what is kept of it.
    Mail {
        /// From 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
    },
    /// Open, look at or close the preview.
    Preview(PreviewRequest),
    /// The journal, event by event; taken by every run, held or not.
    Events(EventsRequest),
    /// State, times and what runs: `sandbox/v1`.
    Status {},
    /// Live longer, counted from now.
    ExtendTtl {
        /// Milliseconds.
        ttl_ms: u64,
    },
    /// Capture, write the bundle and end.
    Close {
        /// Why, one sentence.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveExec {
    /// Program and arguments; no shell.
    pub argv: Vec<String>,
    /// Added to the guest's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working directory; absent: the first writable mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<GuestPath>,
    /// Give it a terminal of this size; absent: pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// Milliseconds until it is ended; absent: as long as the sandbox lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What becomes of it when the client goes away.
    #[serde(default)]
    pub disconnect: Disconnect,
    /// How the client sends standard input.
    #[serde(default, skip_serializing_if = "StdinFlow::is_plain")]
    pub stdin: StdinFlow,
}

/// How a client sends standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StdinFlow {
    /// At any time. The sandbox stops reading while the program does, signals included.
    #[default]
    Plain,
    /// Never more than [`LiveReply::StdinCredit`] allows, so the sandbox always reads.
    ///
    /// [`LiveReply::StdinCredit`]: super::LiveReply::StdinCredit
    Credit,
}

impl StdinFlow {
    /// Whether it is the default, which older sides neither send nor know.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == StdinFlow::Plain
    }
}

/// Which events of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsRequest {
    /// Sequence number after which they begin.
    #[serde(default)]
    pub after: u64,
    /// In which words.
    #[serde(default)]
    pub projection: EventProjection,
    /// Whether to stay for those that are still to come.
    #[serde(default)]
    pub follow: Follow,
}

/// The words of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventProjection {
    /// The journal's own.
    #[default]
    Journal,
    /// Those of an event bus.
    Bus,
}

/// Whether to stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Follow {
    /// Until the end of the run.
    #[default]
    End,
    /// Only what is there now.
    Now,
}

/// What becomes of a program whose client goes away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Disconnect {
    /// It is ended: its terminal hangs up, or it is killed.
    #[default]
    End,
    /// It runs on; its output goes to the journal only.
    Leave,
}

/// Size of a terminal, characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Width.
    pub columns: u16,
    /// Height.
    pub rows: u16,
}

/// What a client says while its program runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LiveInput {
    /// Bytes for its standard input.
    Stdin {
        /// Base64.
        base64: String,
    },
    /// Its standard input ends.
    StdinEnd,
    /// Its terminal changed.
    Resize(TerminalSize),
    /// A signal for its process group: `INT`, `TERM`, `HUP`, `QUIT`, `KILL`, `USR1`, `USR2`, `STOP`, `CONT`.
    Signal {
        /// Name without SIG.
        signal: String,
    },
}

/// One file into the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncIn {
    /// Where, below a writable mount.
    pub path: GuestPath,
    /// Content; absent: the file is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Whether it is executable.
    #[serde(default)]
    pub executable: bool,
    /// sha256 the file must have now (empty: it must not exist); anything else is a conflict.
    /// Absent: whatever is there is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_sha256: Option<String>,
}

/// What changed in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncOut {
    /// A writable mount or a path below it; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<GuestPath>,
    /// Whether the content comes along, or only names and digests.
    #[serde(default)]
    pub content: bool,
    /// Every regular file as it is now, and not only what differs from the mount's source. The
    /// digests are then the guest's word.
    #[serde(default)]
    pub everything: bool,
}

/// A snapshot to make.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRequest {
    /// Name, unique in the sandbox.
    pub name: String,
    /// Free data.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// A preview of the guest's site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    /// `open` (default), `status` or `close`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Address to listen on; absent: 127.0.0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// Port; absent: one that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The address that visitors use, e.g. of a proxy in front; an origin of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// What visitors must bring, 16 to 256 letters, digits, `-` or `_`; absent: nothing on a
    /// loopback address, a random one on any other. It is kept in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Milliseconds until it closes; absent: with the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Offers a link that signs its first visitor in; one that was offered before and not used
    /// is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<PreviewLogin>,
}

/// A link that signs one visitor of a preview in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviewLogin {
    /// What the link carries, like `token`; absent: random. It is kept in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Login name of a user of the guest's site; absent: its first administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn every_request_refuses_a_member_it_does_not_have() {
        for good in [
            json!({"type": "exec", "argv": ["true"], "terminal": {"columns": 80, "rows": 24}}),
            json!({"type": "command", "call": {"command": "wordpress.wp-cli", "args": []}}),
            json!({"type": "observe", "spec": {"type": "mounts"}}),
            json!({"type": "trace"}),
            json!({"type": "sync_in", "path": "/workspace/a", "base64": ""}),
            json!({"type": "sync_out"}),
            json!({"type": "snapshot", "name": "a", "metadata": {"free": 1}}),
            json!({"type": "restore", "id": "x"}),
            json!({"type": "reset"}),
            json!({"type": "snapshots"}),
            json!({"type": "preview"}),
            json!({"type": "events"}),
            json!({"type": "status"}),
            json!({"type": "extend_ttl", "ttl_ms": 5}),
            json!({"type": "close"}),
        ] {
            let read: LiveRequest = serde_json::from_value(good.clone()).unwrap();
            let again = serde_json::to_value(&read).unwrap();
            assert_eq!(
                serde_json::from_value::<LiveRequest>(again).unwrap(),
                read,
                "{good}"
            );
            let mut bad = good.clone();
            bad["timeout"] = json!("a secret");
            let error = serde_json::from_value::<LiveRequest>(bad).unwrap_err();
            let said = unknown_member(&error).unwrap();
            assert!(
                said.contains("`timeout`") && !said.contains("secret"),
                "{good}: {said}"
            );
        }
        for bad in [
            json!({"type": "exec", "argv": ["true"], "terminal": {"columns": 80, "rows": 24, "x": 1}}),
            json!({"type": "command", "call": {"command": "wordpress.wp-cli", "arg": []}}),
        ] {
            assert!(serde_json::from_value::<LiveRequest>(bad).is_err());
        }
        let wrong = serde_json::from_value::<LiveRequest>(json!({"type": "restore", "id": 5}));
        assert_eq!(unknown_member(&wrong.unwrap_err()), None);
    }
}
