//! Requests of the live protocol, and the client's input while a request is in progress.

use crate::{ActionRequest, CommandCall, GuestPath, ObservationSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// First line that a client sends on a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveCall {
    /// Version of the protocol that the client uses, [`super::LIVE_PROTOCOL`].
    pub live: u32,
    /// Name of the requesting user or program, e.g. `cli:deploy`; recorded in the journal, never
    /// used for authorisation.
    pub actor: String,
    /// The request.
    pub request: LiveRequest,
}

/// Returns the parser's message if the request has an unknown member. Other parser messages are
/// withheld because they may quote a value, and a value may be a secret.
#[must_use]
pub fn unknown_member(error: &serde_json::Error) -> Option<String> {
    let said = error.to_string();
    let (said, _) = said.rsplit_once(" at line ").unwrap_or((&said, ""));
    said.starts_with("unknown field")
        .then(|| said.chars().take(400).collect())
}

/// Requests. Unknown members are errors: a caller who writes `timeout` instead of `timeout_ms`
/// would believe in a limit that is not enforced. Requests without members are declared with
/// `{}` because serde accepts any members for unit variants.
#[allow(
    clippy::large_enum_variant,
    reason = "one value per connection, never stored in a list"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum LiveRequest {
    /// Runs a program and streams its output. The policy must allow `command-agent-run`.
    Exec(LiveExec),
    /// Runs a registry command; the reply is its `runtime-command-result/v1`.
    Command {
        /// The command; the sandbox's policy must allow it.
        call: CommandCall,
        /// Timeout of the command in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// Observes a part of the guest's state; the reply is the observation.
    Observe {
        /// Part of the guest's state to observe.
        spec: ObservationSpec,
    },
    /// Executes one step of the held sandbox's episode: runs the action's command, then makes
    /// an observation. The reply is the step as the trace records it.
    Step {
        /// Action to execute.
        action: ActionRequest,
        /// What to observe after the action; absent: no observation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        observation: Option<ObservationSpec>,
    },
    /// Returns the trace of the episode so far, `runtime-episode-trace/v1`.
    Trace {},
    /// Writes or deletes one file in a writable mount.
    SyncIn(SyncIn),
    /// Lists changed or all files of writable mounts, or reads one file.
    SyncOut(SyncOut),
    /// Creates a snapshot of the sandbox's files and database.
    Snapshot(SnapshotRequest),
    /// Replaces the guest by one with the files and database of a snapshot.
    Restore {
        /// Name of a snapshot of this sandbox, or id of any snapshot of the site.
        id: String,
    },
    /// Replaces the guest by a fresh one and runs the setup of the sandbox's profile again.
    Reset {},
    /// Lists the snapshots of this sandbox.
    Snapshots {},
    /// Lists the mails that the guest sent and the supervisor captured; with a number, returns that
    /// mail and its stored parts.
    Mail {
        /// Number of the mail, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
    },
    /// Opens, describes or closes the preview, through which browsers of the host reach the
    /// guest's site.
    Preview(PreviewRequest),
    /// Streams the events of the run's journal; every run accepts this request, held or not.
    Events(EventsRequest),
    /// Returns state, times and running programs of the sandbox: `sandbox/v1`.
    Status {},
    /// Sets a new time to live of the sandbox, counted from now.
    ExtendTtl {
        /// Time to live in milliseconds.
        ttl_ms: u64,
    },
    /// Captures the changes, writes the bundle and ends the sandbox.
    Close {
        /// Why the client closes the sandbox, one sentence; recorded in the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

/// A program to run in a held sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveExec {
    /// Program and arguments; no shell.
    pub argv: Vec<String>,
    /// Environment variables added to the guest's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working directory; absent: the first writable mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<GuestPath>,
    /// Size of the program's terminal; absent: no terminal, but pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// Timeout in milliseconds; absent: the remaining lifetime of the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What happens to the program when the client disconnects.
    #[serde(default)]
    pub disconnect: Disconnect,
    /// Whether the client waits for permission before it sends standard input.
    #[serde(default, skip_serializing_if = "StdinFlow::is_plain")]
    pub stdin: StdinFlow,
}

/// Whether a client waits for permission before it sends standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StdinFlow {
    /// The client may send at any time. While the program reads no input, the sandbox reads
    /// nothing from the connection, not even signals.
    #[default]
    Plain,
    /// The client never sends more than [`LiveReply::StdinCredit`] allows, so the sandbox keeps
    /// reading from the connection.
    ///
    /// [`LiveReply::StdinCredit`]: super::LiveReply::StdinCredit
    Credit,
}

impl StdinFlow {
    /// Returns whether this is the default value. JSON omits the default, because older versions
    /// refuse the member `stdin`.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == StdinFlow::Plain
    }
}

/// Selection of journal events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsRequest {
    /// Sequence number after which the returned events begin; 0: from the first event.
    #[serde(default)]
    pub after: u64,
    /// Format of the events.
    #[serde(default)]
    pub projection: EventProjection,
    /// Whether to wait for further events.
    #[serde(default)]
    pub follow: Follow,
}

/// Format in which a client gets events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventProjection {
    /// Lifecycle events as in the journal.
    #[default]
    Journal,
    /// Events in the format of an event bus; see [`crate::project_to_bus`].
    Bus,
}

/// Whether to wait for events that do not exist yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Follow {
    /// Waits for events until the run ends.
    #[default]
    End,
    /// Returns only the events that exist now.
    Now,
}

/// What happens to a program whose client disconnects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Disconnect {
    /// The program ends: with a terminal it gets SIGHUP and is killed later, without one it is
    /// killed at once.
    #[default]
    End,
    /// The program continues; only the journal receives its output.
    Leave,
}

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Number of columns.
    pub columns: u16,
    /// Number of rows.
    pub rows: u16,
}

/// A line that the client sends while its program runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LiveInput {
    /// Bytes for the program's standard input.
    Stdin {
        /// The bytes as base64.
        base64: String,
    },
    /// End of file on the program's standard input.
    StdinEnd,
    /// New size of the program's terminal.
    Resize(TerminalSize),
    /// Signal for the program's process group: `INT`, `TERM`, `HUP`, `QUIT`, `KILL`, `USR1`,
    /// `USR2`, `STOP` or `CONT`.
    Signal {
        /// Name of the signal, without SIG.
        signal: String,
    },
}

/// A file to write into the sandbox, or to delete there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncIn {
    /// Path below a writable mount.
    pub path: GuestPath,
    /// Content as base64; absent: the file is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Whether the file is executable.
    #[serde(default)]
    pub executable: bool,
    /// Expected SHA-256 of the existing file; the empty text means that no file may exist. If the
    /// file does not match this expectation, the request fails with a conflict. Absent: any
    /// existing file is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_sha256: Option<String>,
}

/// Request to list files of writable mounts, or to read one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncOut {
    /// A writable mount or a path below it; absent: all writable mounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<GuestPath>,
    /// Whether the reply includes the file's content; then `path` must name one file. If false, the
    /// reply has only names and digests.
    #[serde(default)]
    pub content: bool,
    /// Whether to list every regular file instead of only those that differ from the mount's
    /// source. The digests then come from the guest and are not verified.
    #[serde(default)]
    pub everything: bool,
}

/// Request for a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRequest {
    /// Name of the snapshot, unique in the sandbox.
    pub name: String,
    /// Free-form data from the caller.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Request to open, describe or close the preview, through which browsers of the host reach the
/// guest's site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    /// `open` (default), `status` or `close`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Address to listen on; default 127.0.0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// Port to listen on; absent: any free port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Origin that visitors use, e.g. of a reverse proxy; no other site may share this origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// Access token that visitors must present, 16 to 256 letters, digits, `-` or `_`. Absent:
    /// no token on a loopback address, a random one on any other. Stored in memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Time to live of the preview in milliseconds; absent: the preview closes with the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// If present, the sandbox creates a login link: the first visitor who opens it is logged in.
    /// An earlier login link becomes invalid if it was not opened yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<PreviewLogin>,
}

/// A link that logs one visitor of a preview in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviewLogin {
    /// Key in the link, 16 to 256 letters, digits, `-` or `_`; absent: a random one. Stored in
    /// memory only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Login name of the guest site's user; absent: the first administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn control_requests_with_unknown_members_are_refused_without_quoting_values() {
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
