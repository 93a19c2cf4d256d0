//! A sandbox profile as the service uses it. The host parses profiles, because the parser belongs
//! to a crate above this one.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wp_codebox_contracts::{RouteRequest, SandboxScope};

/// A valid profile with the members that the service reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileDocument {
    /// Id of the profile, e.g. `profile.shop`.
    pub id: String,
    /// Semantic version.
    pub version: String,
    /// SHA-256 of `text` in hexadecimal.
    pub sha256: String,
    /// The document as it is stored, YAML or JSON.
    pub text: String,
    /// The document after parsing, with all default values.
    pub document: Value,
    /// Where the sandbox may run and what it needs there.
    pub route: RouteRequest,
    /// Scope of a sandbox if the caller requests none.
    pub scope_default: SandboxScope,
    /// Lifetime if the caller requests none, in milliseconds.
    pub ttl_default_ms: u64,
    /// Maximum total lifetime, however often it is extended, in milliseconds.
    pub ttl_max_ms: u64,
    /// Names of the profile's secrets.
    pub secret_names: Vec<String>,
}
