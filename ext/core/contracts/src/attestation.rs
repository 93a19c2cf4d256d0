//! The run attestation: the isolation that probes observed in the guests of one run, and the policy
//! and limits of that run.
//!
//! The supervisor writes the attestation to `files/runtime-evidence/run-attestation.json` in the
//! bundle, and the bundle's signature covers that file. The probes inside the guests provide
//! `guests`, `level`, `kernel` and `landlock_abi`. `minimum_isolation`, `isolation_floors` and
//! `network` are copied from the policy; `limits` are the resource limits of the run.

use crate::{
    Enforcement, IsolationAxis, IsolationLevel, IsolationReport, Limits, NetworkPolicy,
    NetworkPosture, NetworkRules, RunId, SandboxAudit, string_enum,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `wp-codebox/run-attestation/v1`: required and observed isolation of one run's guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAttestation {
    /// Schema id, always `wp-codebox/run-attestation/v1`.
    pub schema: String,
    /// Id of the run.
    pub run_id: RunId,
    /// Kernel release that the guests saw.
    pub kernel: String,
    /// Boot id of the host; empty when it could not be read.
    pub boot_id: String,
    /// Landlock ABI version in force; 0 without Landlock.
    pub landlock_abi: u32,
    /// Lowest isolation level that the probes observed in any guest.
    pub level: IsolationLevel,
    /// Minimum isolation level that the policy demanded.
    pub minimum_isolation: IsolationLevel,
    /// Minimum enforcement per axis that the policy demanded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub isolation_floors: BTreeMap<IsolationAxis, Enforcement>,
    /// One row per guest, in start order.
    pub guests: Vec<GuestObservation>,
    /// Names of the secrets whose values the guests could read. For all other secrets, the guests
    /// had placeholders.
    pub exposed_secrets: Vec<String>,
    /// Network access that the policy gave the guests.
    pub network: AttestedNetwork,
    /// Resource limits of the run.
    pub limits: Limits,
    /// Command line with which the supervisor started the launcher (the program that builds a guest),
    /// one row per guest.
    pub sandbox_audits: Vec<SandboxAudit>,
}

/// Probe results of one guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestObservation {
    /// Whether the guest ran the work or the checks.
    pub phase: GuestPhase,
    /// Isolation report of the guest's probes.
    pub report: IsolationReport,
}

string_enum! {
    /// Purpose for which a guest of the run was started.
    pub enum GuestPhase {
        /// The guest ran commands and the agent.
        Work = "work",
        /// The guest ran checks.
        Check = "check",
    }
}

/// Network access of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "posture", rename_all = "lowercase")]
pub enum AttestedNetwork {
    /// No network access.
    Deny,
    /// Unrestricted network access.
    Allow,
    /// Access to the destinations of the rules only, through the egress bridge.
    Rules {
        /// Network rules of the policy.
        rules: NetworkRules,
    },
}

impl From<&NetworkPolicy> for AttestedNetwork {
    fn from(policy: &NetworkPolicy) -> Self {
        match policy {
            NetworkPolicy::Posture(NetworkPosture::Deny) => Self::Deny,
            NetworkPolicy::Posture(NetworkPosture::Allow) => Self::Allow,
            NetworkPolicy::Rules(rules) => Self::Rules {
                rules: rules.clone(),
            },
        }
    }
}
