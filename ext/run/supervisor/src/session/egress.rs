//! Egress bridge of a guest, the proxy through which its requests leave. It is prepared before the
//! guest is built, serves before untrusted code runs there, and stops when the guest has ended.
//!
//! Each guest has a separate bridge with the same policy. Every request is a row of
//! `files/runtime-evidence/egress.jsonl`; the journal gets one observation per guest, so that a
//! guest cannot flood it.

use super::mail;
use crate::journal::recorder::{Recorder, RunEvidence};
use crate::prepared::context::RunContext;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use wp_codebox_artifacts::EvidenceDocument;
use wp_codebox_backend_native::GuestEgress;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPhase, NetworkPolicy, RuntimePolicy};
use wp_codebox_policy::{EgressRules, check_model};
use wp_codebox_proxy::egress::{
    Bridge, BridgeConfig, BridgeLimits, EgressDecision, EgressLog, EgressRow, ModelRoute, Network,
    PreparedBridge, Trust,
};
use wp_codebox_proxy::mail::Mailbox;
use wp_codebox_runtime::Runtime;

/// Maximum number of distinct refused requests in the journal and in notices, per guest.
const LISTED: usize = 16;

/// Egress bridge and mailbox of a guest that is not running yet.
pub(crate) struct Ready {
    /// Bridge that is ready to serve; `None` when the policy denies the network.
    bridge: Option<PreparedBridge>,
    mailbox: Arc<Mailbox>,
    phase: GuestPhase,
}

/// Egress bridge and mail server of a running guest.
pub(crate) struct Open {
    bridge: Option<Bridge>,
    mail: mail::Open,
}

/// Prepares the egress bridge of a guest. `phase` says whether the guest runs the work or the
/// checks.
pub(crate) fn prepare(context: &RunContext<'_>, phase: GuestPhase) -> Result<Ready, ErrorBody> {
    let prepared = context.prepared;
    let ready = |bridge| Ready {
        bridge,
        mailbox: Arc::clone(&context.mailbox),
        phase,
    };
    let rules = match &prepared.policy.network {
        NetworkPolicy::Posture(_) => return Ok(ready(None)),
        NetworkPolicy::Rules(rules) => EgressRules::compile(rules).map_err(|issues| {
            let first = issues.first().map_or("", |issue| issue.message.as_str());
            unavailable(&format!(
                "a network rule of the policy is not valid: {first}"
            ))
        })?,
    };
    Bridge::prepare(BridgeConfig {
        rules,
        model: model(context, phase)?,
        site: None,
        secrets: prepared.secrets.swaps(),
        limits: BridgeLimits::default(),
        trust: Trust::System,
        network: Network::system(),
        deadline: context.clock.deadline,
        used: Arc::clone(&context.backend.used),
    })
    .map(|bridge| ready(Some(bridge)))
    .map_err(ErrorBody::from)
}

/// Returns the bridge's route to the model; `None` if the guest gets no such route, which is always
/// so for the check guest.
fn model(context: &RunContext<'_>, phase: GuestPhase) -> Result<Option<ModelRoute>, ErrorBody> {
    let prepared = context.prepared;
    let endpoint = match (phase, &prepared.guest_model) {
        (GuestPhase::Check, _) | (_, None) => return Ok(None),
        (GuestPhase::Work, Some(endpoint)) => endpoint,
    };
    let base = check_model(endpoint)?;
    Ok(Some(ModelRoute {
        base,
        api: endpoint.api,
        key: endpoint
            .secret
            .as_deref()
            .and_then(|name| prepared.secrets.swap(name)),
    }))
}

fn unavailable(why: &str) -> ErrorBody {
    let message = format!("the egress bridge cannot start: {why}");
    ErrorBody::new(ErrorCode::EgressUnavailable, message)
}

impl Ready {
    /// Returns the network settings with which the guest must be built so that it can use the
    /// bridge.
    pub(crate) fn guest(&self) -> GuestEgress {
        match &self.bridge {
            None => GuestEgress::Denied,
            Some(bridge) => match bridge.authority_pem() {
                None => GuestEgress::Tunnel,
                Some(pem) => GuestEgress::Terminate {
                    authority_pem: pem.to_owned(),
                },
            },
        }
    }

    /// Starts the bridge and the mail server on the sockets of a guest in which no untrusted code
    /// runs yet.
    pub(crate) fn open(self, runtime: &mut dyn Runtime) -> Result<Open, ErrorBody> {
        let mail = mail::open(self.mailbox, runtime, self.phase)?;
        let Some(bridge) = self.bridge else {
            return Ok(Open { bridge: None, mail });
        };
        let sockets = runtime
            .take_egress()
            .ok_or_else(|| unavailable("the guest sent no listening sockets"))?;
        let bridge = bridge.serve(sockets.unix, sockets.tcp);
        bridge
            .map(|bridge| Open {
                bridge: Some(bridge),
                mail,
            })
            .map_err(ErrorBody::from)
    }
}

impl Open {
    /// Stops the bridge and the mail server of a guest that has ended, and records what they
    /// received.
    pub(crate) fn close(
        self,
        phase: GuestPhase,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), ErrorBody> {
        self.mail.close(phase, recorder)?;
        let Some(bridge) = self.bridge else {
            return Ok(());
        };
        let log = bridge.stop();
        let denied = denials(&log);
        recorder.evidence.notices.extend(notices(&log, &denied));
        let summary = json!({
            "phase": phase.as_str(),
            "counts": log.counts,
            "rowsCut": log.cut,
            "denied": denied,
        });
        let refused = log.rows.iter().filter(|row| row.lacks_rule());
        refused.for_each(|row| recorder.evidence.denied_hosts.add(&row.host, row.port));
        recorder.evidence.egress.extend(rows(log, phase));
        let detail = summary.as_object().cloned().unwrap_or_default();
        recorder.observe("egress", summary, detail)
    }
}

/// Returns the first [`LISTED`] different refused requests of a guest, in order of appearance.
fn denials(log: &EgressLog) -> Vec<String> {
    let mut seen = BTreeSet::new();
    log.rows
        .iter()
        .filter(|row| row.decision == EgressDecision::Denied)
        .map(sentence)
        .filter(|text| seen.insert(text.clone()))
        .take(LISTED)
        .collect()
}

pub(crate) fn sentence(row: &EgressRow) -> String {
    let EgressRow {
        method,
        host,
        port,
        path,
        reason,
        ..
    } = row;
    if host.is_empty() {
        return (*reason).to_owned();
    }
    if *port == 0 {
        return format!("{method} {host}{path} ({reason})");
    }
    format!("{method} {host}:{port}{path} ({reason})")
}

fn notices(log: &EgressLog, denied: &[String]) -> Vec<String> {
    let mut notices = Vec::new();
    if log.counts.denied > 0 {
        notices.push(format!(
            "the network policy refused {} of the guest's requests, among them: {}; allow them in the policy's network if the guest needs them [{}]",
            log.counts.denied,
            denied.join(", "),
            ErrorCode::EgressDenied
        ));
    }
    if log.cut > 0 {
        notices.push(format!(
            "{} further requests of the guest were counted, but the log does not list them",
            log.cut
        ));
    }
    notices
}

fn rows(log: EgressLog, phase: GuestPhase) -> Vec<Value> {
    let cut = (log.cut > 0).then(|| json!({"phase": phase.as_str(), "rowsCut": log.cut}));
    log.rows
        .into_iter()
        .map(|row| {
            let mut value = json!({"phase": phase.as_str()});
            if let (Some(to), Ok(Value::Object(members))) =
                (value.as_object_mut(), serde_json::to_value(row))
            {
                to.extend(members);
            }
            value
        })
        .chain(cut)
        .collect()
}

/// Adds to the error of a failed run which hosts its guests asked for in vain, and the option that
/// allows them. Guests without a network have no bridge, so there the output of their programs is
/// searched.
pub(crate) fn explain(
    error: Option<&mut ErrorBody>,
    policy: &RuntimePolicy,
    evidence: &RunEvidence,
) {
    let Some(error) = error else { return };
    let mut denied = evidence.denied_hosts.clone();
    if matches!(policy.network, NetworkPolicy::Posture(_)) {
        for execution in &evidence.executions {
            if execution.exit_code != Some(0) {
                denied.read(&execution.stdout);
                denied.read(&execution.stderr);
            }
        }
    }
    error.hints.extend(denied.hint());
}

/// Builds the document with all requests of all guests. `None` if the policy has no network rules,
/// because then no request can leave the guests.
pub(crate) fn evidence(policy: &RuntimePolicy, rows: &[Value]) -> Option<EvidenceDocument> {
    match policy.network {
        NetworkPolicy::Posture(_) => None,
        NetworkPolicy::Rules(_) => Some(EvidenceDocument {
            name: "egress.jsonl",
            key: "egress",
            kind: "egress-log",
            values: rows.to_vec(),
        }),
    }
}
