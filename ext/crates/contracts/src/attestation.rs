//! The run attestation: what was observed in the guests of one run, and under which rules.
//!
//! It is written into the bundle as `files/runtime-evidence/run-attestation.json`, which
//! the bundle's signature covers. Levels and rows come from probes inside the guests;
//! nothing here is derived from configuration but what says so by name.

use crate::{
    Enforcement, IsolationAxis, IsolationLevel, IsolationReport, Limits, NetworkPolicy,
    NetworkPosture, NetworkRules, RunId, SandboxAudit, words,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `run-attestation/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAttestation {
    /// `wp-codebox/run-attestation/v1`.
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// Kernel release, as the guests saw it.
    pub kernel: String,
    /// Boot of the host; empty when the host does not say.
    pub boot_id: String,
    /// Landlock ABI in force; 0 when absent.
    pub landlock_abi: u32,
    /// The lowest level of all guests.
    pub level: IsolationLevel,
    /// What the policy demanded at least.
    pub minimum_isolation: IsolationLevel,
    /// What the policy demanded per axis.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub isolation_floors: BTreeMap<IsolationAxis, Enforcement>,
    /// One row per guest, in the order of their start.
    pub guests: Vec<GuestObservation>,
    /// Names of secrets whose value the guest itself could read.
    pub exposed_secrets: Vec<String>,
    /// What could leave the guest.
    pub network: AttestedNetwork,
    /// Limits in force.
    pub limits: Limits,
    /// What was put around the launcher, one row per guest.
    pub sandbox_audits: Vec<SandboxAudit>,
}

/// What was seen in one guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestObservation {
    /// What the guest was for.
    pub phase: GuestPhase,
    /// What its probes saw.
    pub report: IsolationReport,
}

words! {
    /// What a guest of a run is for.
    pub enum GuestPhase {
        /// Commands and agent.
        Work = "work",
        /// Checks.
        Check = "check",
    }
}

/// What could leave a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "posture", rename_all = "lowercase")]
pub enum AttestedNetwork {
    /// Nothing.
    Deny,
    /// Everything.
    Allow,
    /// What the rules name, through the egress bridge.
    Rules {
        /// The rules of the policy.
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
