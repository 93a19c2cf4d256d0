//! The contract of an extension: a system that runs sandboxes for this service.
//!
//! All methods block; the server calls them on a bounded pool of threads. The server chooses the id
//! of a sandbox and stores it durably before it calls [`Extension::provision`], so an extension
//! never has a sandbox that no record names. Every method may be called from several threads at
//! once, for the same sandbox too. The tests of the contract are in [`crate::conformance`].

use crate::actor::Actor;
use crate::profile::ProfileDocument;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LiveEnd, OutputStream, SandboxScope, Service, string_enum,
};
use wp_codebox_routing::Capabilities;

/// Id of a sandbox, opaque for everybody but its extension. Its alphabet fits a URL path segment
/// and a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SandboxId(String);

impl SandboxId {
    /// Reads an id: 1 to 80 letters, digits, `_` and `-`.
    ///
    /// # Errors
    /// `wp_codebox_input_invalid` for any other text.
    pub fn parse(text: &str) -> Result<Self, ErrorBody> {
        let fits = (1..=80).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if fits {
            return Ok(Self(text.to_owned()));
        }
        Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "a sandbox id has 1 to 80 letters, digits, '_' and '-'",
        ))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SandboxId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(|error| serde::de::Error::custom(error.message))
    }
}

string_enum! {
    /// Lifecycle state of a sandbox.
    pub enum SandboxState {
        /// Its record exists; nothing was started.
        Requested = "requested",
        /// Its extension builds it.
        Provisioning = "provisioning",
        /// It accepts requests and none is in progress.
        Ready = "ready",
        /// A program runs in it.
        Active = "active",
        /// Its lifetime is over; it is about to be destroyed.
        Expired = "expired",
        /// It could not be built, or it died.
        Failed = "failed",
        /// Its extension tears it down.
        Destroying = "destroying",
        /// Nothing of it runs any more.
        Destroyed = "destroyed",
    }
}

impl SandboxState {
    /// Returns whether nothing of the sandbox runs any more and nothing will.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Failed | Self::Destroyed)
    }

    /// Returns whether the sandbox accepts requests.
    #[must_use]
    pub const fn is_usable(self) -> bool {
        matches!(self, Self::Ready | Self::Active)
    }
}

/// References that are resolved where the sandbox is made. They contain no secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetupMetadata {
    /// Reference to instructions of the caller; stored with the sandbox, never executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_ref: Option<String>,
    /// Names of secrets of the profile. A name that the profile does not have is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_refs: Vec<String>,
}

/// Parameters of a new sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provision {
    /// Id of the sandbox, chosen by the server.
    pub sandbox: SandboxId,
    /// Id of the profile.
    pub profile_id: String,
    /// Version of the profile.
    pub profile_version: String,
    /// SHA-256 of `profile` in hexadecimal.
    pub profile_sha256: String,
    /// Text of the profile, as it is stored.
    pub profile: String,
    /// Id of the host that the route chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Host directory for the workspace, if the caller named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Id of the snapshot with which the sandbox starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Servers in the guest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Lifetime in milliseconds, counted from the time at which the sandbox is ready.
    pub ttl_ms: u64,
    /// Intended users of the sandbox.
    pub scope: SandboxScope,
    /// Actor who asked for the sandbox.
    pub actor: Actor,
    /// Id of the sandbox that this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<SandboxId>,
    /// Inputs of the caller, for the extension to interpret; an extension refuses names that it
    /// does not know.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// References that the extension resolves.
    #[serde(default)]
    pub setup_metadata: SetupMetadata,
}

/// How clients may use a ready sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reachability {
    /// Whether programs may be run.
    pub exec: bool,
    /// Address of the site's preview, if one is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview_url: Option<String>,
}

/// What a sandbox used. `None` means that the extension cannot measure it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxUsage {
    /// Milliseconds from start to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive_ms: Option<u64>,
    /// Processor time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Sum of memory in MiB times seconds, computed from samples: each sampled size times the time
    /// to the next sample. Use between two samples is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib_seconds: Option<u64>,
    /// Number of samples behind `memory_mib_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_samples: Option<u64>,
    /// Time between two samples in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_interval_ms: Option<u64>,
    /// Bytes by which the writable file system of the sandbox grew, summed from sample to sample.
    /// Overwriting in place does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Bytes that the egress bridge sent to hosts, TLS records included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_bytes: Option<u64>,
}

/// How a sandbox ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Reason, one sentence.
    pub reason: String,
    /// What it used.
    #[serde(default)]
    pub usage: SandboxUsage,
}

/// State of a sandbox as its extension knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxView {
    /// Lifecycle state.
    pub state: SandboxState,
    /// RFC 3339 timestamp at which it expires, if it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// How it ended, if its state is final ([`SandboxState::is_final`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// A program to run in a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    /// Program and arguments; no shell.
    pub argv: Vec<String>,
    /// Environment variables added to the guest's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working directory in the guest; absent: the first writable mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Time limit in milliseconds; absent: the remaining lifetime of the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Standard input as text; after it the program reads end of file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Standard input as base64, for bytes that are not UTF-8. Never beside `stdin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_base64: Option<String>,
}

/// Receives the output of a program. An error of `started` or `write` means that the client is
/// gone: the extension kills the program and returns.
pub trait ExecOutput {
    /// Called once the program runs, with its id.
    ///
    /// # Errors
    /// When the client is gone.
    fn started(&mut self, execution_id: &str) -> io::Result<()>;

    /// Called with bytes that the program printed. Blocks while the client does not read.
    ///
    /// # Errors
    /// When the client is gone.
    fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()>;

    /// Returns whether the client is gone. An extension asks at least once a second while the
    /// program prints nothing, and kills the program when it is.
    fn is_closed(&self) -> bool {
        false
    }
}

/// How a program ended: the same members as in the line `exited` of a run's control socket.
pub type ExecEnd = LiveEnd;

/// What a teardown found and removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanupReport {
    /// Whether nothing of the sandbox runs any more.
    pub complete: bool,
    /// Whether the sandbox had already ended before this call.
    pub already_ended: bool,
    /// Kinds of resources that were removed, e.g. `processes`, `overlay`.
    #[serde(default)]
    pub removed: Vec<String>,
    /// What remains on purpose, e.g. the id of the artifact bundle.
    #[serde(default)]
    pub retained: Vec<String>,
    /// What remains against the intention, one sentence each; empty if `complete`.
    #[serde(default)]
    pub leftovers: Vec<String>,
    /// How the sandbox ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// A system that runs sandboxes.
///
/// Every method that takes a sandbox returns `wp_codebox_sandbox_not_found` for an id that the
/// extension never provisioned, and `wp_codebox_sandbox_not_held` for one that has ended, except
/// `view`, `events` and `teardown`, which answer for ended sandboxes too.
pub trait Extension: Send + Sync {
    /// Returns the extension's id and what its sandboxes offer.
    fn capabilities(&self) -> &Capabilities;

    /// Checks that a host of the extension can start sandboxes. The server measures the time.
    ///
    /// # Errors
    /// When it cannot; the server then routes no sandbox to the host.
    fn health(&self, host: &str) -> Result<(), ErrorBody> {
        let _ = host;
        Ok(())
    }

    /// Starts a sandbox and returns before it is ready. Idempotent by `request.sandbox`: a second
    /// call for a sandbox that exists changes nothing.
    ///
    /// # Errors
    /// When the sandbox was not started; then nothing of it exists.
    fn provision(&self, request: &Provision) -> Result<(), ErrorBody>;

    /// Makes sure that no earlier call of `provision`, for example by a server process that was
    /// killed in the middle of it, starts the sandbox from now on. The server calls it before it
    /// says that a sandbox never started.
    ///
    /// # Errors
    /// When the sandbox exists, or may still come to exist; the server then tries again.
    fn forestall(&self, sandbox: &SandboxId) -> Result<(), ErrorBody> {
        let _ = sandbox;
        Ok(())
    }

    /// Blocks until the sandbox accepts requests.
    ///
    /// # Errors
    /// When it ended before it was ready; the error says why.
    fn wait_ready(&self, sandbox: &SandboxId) -> Result<Reachability, ErrorBody>;

    /// Returns the present state, also of an ended sandbox.
    ///
    /// # Errors
    /// When the extension does not know the sandbox or cannot find out.
    fn view(&self, sandbox: &SandboxId) -> Result<SandboxView, ErrorBody>;

    /// Runs a program and returns when it has ended and `output` has all of its output.
    ///
    /// # Errors
    /// When the program could not be started.
    fn exec(
        &self,
        sandbox: &SandboxId,
        exec: &ExecRequest,
        actor: &Actor,
        output: &mut dyn ExecOutput,
    ) -> Result<ExecEnd, ErrorBody>;

    /// Lists the files of the workspace that differ from its source: `sandbox-sync/v1`.
    ///
    /// # Errors
    /// When the sandbox cannot list them.
    fn files(&self, sandbox: &SandboxId) -> Result<Value, ErrorBody>;

    /// Returns the content of a file; `path` is an absolute guest path.
    ///
    /// # Errors
    /// `wp_codebox_resource_not_found` when there is no such file.
    fn read_file(&self, sandbox: &SandboxId, path: &str) -> Result<Vec<u8>, ErrorBody>;

    /// Writes a file, or deletes it if `content` is `None`. `base_sha256` is the digest that the
    /// present content must have; empty: the file must not exist.
    ///
    /// # Errors
    /// A conflict when the present content has another digest.
    fn write_file(
        &self,
        sandbox: &SandboxId,
        path: &str,
        content: Option<&[u8]>,
        base_sha256: Option<&str>,
        actor: &Actor,
    ) -> Result<Value, ErrorBody>;

    /// Sets the remaining lifetime, counted from now.
    ///
    /// # Errors
    /// When the sandbox's bound does not allow it.
    fn extend_ttl(&self, sandbox: &SandboxId, ttl_ms: u64, actor: &Actor) -> Result<(), ErrorBody>;

    /// Stores files and database: `sandbox-snapshot/v1`. Only with the capability `snapshot`.
    ///
    /// # Errors
    /// When a program runs, the name is taken, or the extension has no snapshots.
    fn snapshot(
        &self,
        sandbox: &SandboxId,
        name: Option<&str>,
        actor: &Actor,
    ) -> Result<Value, ErrorBody>;

    /// Replaces the state of the same sandbox by a snapshot. Only with the capability `restore`.
    ///
    /// # Errors
    /// When the snapshot is unknown or damaged; the sandbox then continues as it was.
    fn restore(&self, sandbox: &SandboxId, snapshot: &str, actor: &Actor) -> Result<(), ErrorBody>;

    /// Lists all snapshots: rows of `sandbox-snapshot-list/v1`.
    ///
    /// # Errors
    /// When they cannot be read.
    fn snapshots(&self) -> Result<Vec<Value>, ErrorBody>;

    /// Removes a snapshot: `sandbox-snapshot-removal/v1`. No effect when it does not exist.
    ///
    /// # Errors
    /// While a running sandbox uses it.
    fn remove_snapshot(&self, id: &str, actor: &Actor) -> Result<Value, ErrorBody>;

    /// Ends a sandbox in any state and waits for its end. Idempotent.
    ///
    /// # Errors
    /// When the end could not be confirmed; a repeated call continues.
    fn teardown(
        &self,
        sandbox: &SandboxId,
        actor: &Actor,
        reason: &str,
    ) -> Result<CleanupReport, ErrorBody>;

    /// Returns journal rows with a `seq` greater than `after`, in order; empty if there are none.
    ///
    /// # Errors
    /// When the journal cannot be read.
    fn events(&self, sandbox: &SandboxId, after: u64) -> Result<Vec<Value>, ErrorBody>;

    /// Estimates the resource usage: `sandbox-estimate/v1`, without a price.
    ///
    /// # Errors
    /// When the profile does not fit the extension.
    fn estimate(&self, profile: &ProfileDocument, duration_ms: u64) -> Result<Value, ErrorBody>;
}
