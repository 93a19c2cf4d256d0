//! The run attestation: what the guests of this run saw, beside what was demanded.
//!
//! Pure. The bundle's signature covers the document like every other member.

use serde_json::Value;
use wp_codebox_artifacts::EvidenceDocument;
use wp_codebox_contracts::{
    AttestedNetwork, GuestObservation, IsolationLevel, Limits, RunAttestation, RunId,
    RuntimePolicy, SandboxAudit, schema_id,
};

/// What a run knows when its guests are dead.
pub(super) struct Observed<'a> {
    pub run_id: &'a RunId,
    pub policy: &'a RuntimePolicy,
    pub limits: Limits,
    pub boot_id: String,
    /// In the order of their start.
    pub guests: Vec<GuestObservation>,
    /// Names of secrets whose value the guests held.
    pub exposed_secrets: Vec<String>,
    /// One row per guest.
    pub sandbox_audits: Vec<SandboxAudit>,
}

/// `files/runtime-evidence/run-attestation.json`.
pub(super) fn document(observed: Observed<'_>) -> EvidenceDocument {
    let value = serde_json::to_value(attestation(observed)).unwrap_or(Value::Null);
    EvidenceDocument {
        name: "run-attestation.json",
        key: "runAttestation",
        kind: "run-attestation",
        values: vec![value],
    }
}

fn attestation(observed: Observed<'_>) -> RunAttestation {
    let Observed {
        run_id,
        policy,
        limits,
        boot_id,
        guests,
        exposed_secrets,
        sandbox_audits,
    } = observed;
    let first = guests.first().map(|guest| &guest.report);
    RunAttestation {
        schema: schema_id::RUN_ATTESTATION.to_owned(),
        run_id: run_id.clone(),
        kernel: first.map(|r| r.kernel.clone()).unwrap_or_default(),
        boot_id,
        landlock_abi: first.map(|r| r.landlock_abi).unwrap_or_default(),
        level: guests
            .iter()
            .map(|guest| guest.report.level)
            .min()
            .unwrap_or(IsolationLevel::None),
        minimum_isolation: policy.minimum_isolation,
        isolation_floors: policy.isolation_floors.clone(),
        exposed_secrets,
        network: AttestedNetwork::from(&policy.network),
        guests,
        limits,
        sandbox_audits,
    }
}
