//! How long a sandbox stays, and as what.

use serde::{Deserialize, Serialize};

/// Keeps the working guest after the commands of its request have run. Its lifetime is its
/// supervisor's: whatever ends that process ends the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Time to live from when it is ready, milliseconds.
    pub ttl_ms: u64,
    /// Longest time to live, with all extensions, milliseconds.
    pub max_ttl_ms: u64,
    /// It ends when nothing was asked of it and no program ran for so long, milliseconds;
    /// absent: it may be idle until its time is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// A preview that is open as long as the sandbox is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<super::PreviewRequest>,
    /// What it is, for those who list sandboxes; absent for a run that only waits a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<SandboxIdentity>,
    /// Id of the stored snapshot that it starts from; absent: fresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

/// Whom a sandbox is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxScope {
    /// One session of one agent.
    #[default]
    Session,
    /// One agent, over its sessions.
    Agent,
    /// Whoever may use it.
    Shared,
}

/// What a sandbox was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxIdentity {
    /// Id of its profile.
    pub profile: String,
    /// Version of its profile.
    pub version: String,
    /// sha256 of the profile as it was read.
    pub profile_sha256: String,
    /// Scope.
    pub scope: SandboxScope,
    /// Who asked for it.
    pub actor: String,
}

/// Why a held sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldEnd {
    /// Somebody closed it.
    Closed,
    /// Its time was up.
    Expired,
    /// Nobody used it.
    Idle,
    /// Its run was cancelled.
    Cancelled,
    /// Its guest died.
    GuestDied,
}
