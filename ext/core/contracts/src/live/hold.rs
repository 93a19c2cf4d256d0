//! Lifetime and identity of a held sandbox.

use serde::{Deserialize, Serialize};

/// Settings of a held sandbox: a guest that stays alive after the commands of the run have ended.
/// If its supervisor process ends early for any reason, the guest ends too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Time to live in milliseconds, counted from when the sandbox is ready.
    pub ttl_ms: u64,
    /// Maximum time to live in milliseconds, all extensions included.
    pub max_ttl_ms: u64,
    /// Idle timeout in milliseconds: the sandbox ends after this time without a request or a
    /// running program. Absent: no idle timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// Preview that stays open while the sandbox is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<super::PreviewRequest>,
    /// Profile, intended users and requester of the sandbox, for lists of sandboxes; absent if the
    /// sandbox was not created from a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<SandboxIdentity>,
    /// Id of the stored snapshot whose state the sandbox starts with; absent: a fresh state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

/// Intended users of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxScope {
    /// One session of one agent.
    #[default]
    Session,
    /// One agent, across its sessions.
    Agent,
    /// Every user who may access the sandbox.
    Shared,
}

/// Profile from which a sandbox was created, its intended users, and the name of its requester.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxIdentity {
    /// Id of the profile.
    pub profile: String,
    /// Version of the profile.
    pub version: String,
    /// SHA-256 of the bytes of the profile's file.
    pub profile_sha256: String,
    /// Intended users of the sandbox.
    pub scope: SandboxScope,
    /// Name of the user or program that requested the sandbox.
    pub actor: String,
}

/// Why a held sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldEnd {
    /// A client closed the sandbox.
    Closed,
    /// The time to live expired.
    Expired,
    /// The idle timeout expired.
    Idle,
    /// The run was cancelled.
    Cancelled,
    /// The guest died.
    GuestDied,
}
