//! Builds the run attestation, a signed document: the isolation that the policy requires and the
//! isolation that was observed in each guest.
//!
//! [`document`] is a pure function. The bundle's signature covers the attestation like every other
//! file.

use serde_json::Value;
use wp_codebox_artifacts::EvidenceDocument;
use wp_codebox_contracts::{
    AttestedNetwork, GuestObservation, IsolationLevel, Limits, RunAttestation, RunId,
    RuntimePolicy, SandboxAudit, schema_id,
};

/// What was observed in a run; complete only when its guests have ended.
pub(crate) struct Observed<'a> {
    pub run_id: &'a RunId,
    pub policy: &'a RuntimePolicy,
    pub limits: Limits,
    pub boot_id: String,
    /// Guests of the run, in the order of their start.
    pub guests: Vec<GuestObservation>,
    /// Names of the secrets whose value a guest received.
    pub exposed_secrets: Vec<String>,
    /// Audit records of the process wrapper (bubblewrap or gVisor, if used), one per guest.
    pub sandbox_audits: Vec<SandboxAudit>,
}

/// Builds the bundle's document `files/runtime-evidence/run-attestation.json`.
pub(crate) fn document(observed: Observed<'_>) -> EvidenceDocument {
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
