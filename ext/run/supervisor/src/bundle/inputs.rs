//! Collects what the bundle (the run's result directory) is built from.

use super::attest;
use super::envelopes::{self, AgentExit, Facts, Worker};
use super::test_files;
use super::verdict::Verdict;
use crate::checks::Checked;
use crate::checks::php_syntax;
use crate::journal::agent_log::AgentLog;
use crate::journal::recorder::{Recorder, RunEvidence};
use crate::prepared::context::RunContext;
use crate::request::request_document::{spec, task_document};
use crate::session::egress;
use crate::session::ending::AgentEnd;
use crate::session::mail;
use crate::work::Work;
use serde_json::json;
use wp_codebox_artifacts::{
    BundleInputs, BundleMount, EvidenceDocument, FollowUpInputs, RenameMode,
};
use wp_codebox_backend_native::HostFacts;
use wp_codebox_contracts::{
    ErrorBody, GuestObservation, GuestPhase, IsolationReport, MountAccess, SandboxAudit,
};
use wp_codebox_runtime::now_rfc3339;

/// Results of a run's guests, and the outcome of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub work: &'a Work,
    pub checks: &'a Checked,
    pub verdict: &'a Verdict,
}

impl Seen<'_> {
    /// Returns the audit records of the process wrapper (bubblewrap or gVisor, if used), one per
    /// guest.
    pub(crate) fn sandbox_audits(self) -> Vec<SandboxAudit> {
        let work = std::iter::once(&self.work.outer);
        work.chain(&self.checks.outer).cloned().collect()
    }
}

/// Returns everything that the bundle is built from, except its id.
pub(crate) fn inputs(
    context: &RunContext<'_>,
    recorder: &Recorder<'_>,
    seen: Seen<'_>,
) -> Result<BundleInputs, ErrorBody> {
    let evidence = &recorder.evidence;
    let redactor = context.redactor;
    let prepared = context.prepared;
    let request = &prepared.request;
    let verdict = seen.verdict;
    let mut error = verdict.error.clone();
    if let Some(body) = &mut error {
        body.message = redactor.redact(&body.message).into_owned();
    }
    let worker = match (&request.agent, &request.workflow, &request.hold) {
        (Some(_), _, _) => Worker::Agent,
        (None, Some(_), _) => Worker::Recipe,
        (None, None, Some(_)) => Worker::Visitors,
        (None, None, None) => Worker::Command,
    };
    let detail = envelopes::summary(
        worker,
        verdict.outcome,
        verdict.counts,
        &seen.checks.reports,
        error.as_ref(),
    );
    let summary = detail.sentence();
    let tests_changed = test_files::changed(
        &context.guest_mounts,
        &seen.work.changes,
        &request.checks,
        redactor,
    );
    let mut risk_notes = evidence.notices.clone();
    risk_notes.extend(test_files::note(&tests_changed));
    let facts = Facts {
        run_id: &request.run_id,
        outcome: verdict.outcome,
        summary: &summary,
        error: error.as_ref(),
        changes: verdict.counts,
        transcript: &evidence.transcript,
        checks: &seen.checks.reports,
        risk_notes: &risk_notes,
        tests_changed: &tests_changed,
        agent: evidence.agent.as_ref(),
    };
    let agent_exit = match seen.work.agent {
        AgentEnd::None => None,
        AgentEnd::Success => Some(AgentExit::Success),
        AgentEnd::Failure | AgentEnd::Tolerated => Some(AgentExit::Failure),
    };
    let (mails, mail_log) = mail::evidence(&context.mailbox, redactor);
    Ok(BundleInputs {
        preview: evidence.preview.clone(),
        created_at: now_rfc3339(),
        runtime: context.runtime_info("destroyed"),
        outcome: verdict.outcome,
        completion_outcome: Some(envelopes::completion_outcome(&facts)),
        agent_result: agent_exit.map(|exit| {
            let mut result = envelopes::agent_result(&facts, exit);
            if let Some(text) = &evidence.final_message {
                result.insert("message".to_owned(), json!(text));
            }
            result
        }),
        transcript: Some(envelopes::transcript(
            &evidence.transcript,
            evidence.agent.as_ref(),
        )),
        summary: summary.clone(),
        summary_detail: Some(detail),
        approvable: verdict.approvable.clone(),
        provenance: request.provenance.clone(),
        task: request.task.as_ref().map(task_document),
        policy: serde_json::to_value(&context.prepared.policy).unwrap_or_default(),
        spec: spec(context.prepared),
        mounts: mounts(context, seen),
        renames: if request.find_renames {
            RenameMode::Detect
        } else {
            RenameMode::Separate
        },
        events: recorder.events()?,
        commands: evidence.executions.clone(),
        observations: evidence.observations.clone(),
        checks: seen.checks.reports.clone(),
        isolation: seen.work.isolation.clone(),
        evidence: std::iter::once(attestation(context, seen))
            .chain(evidence.agent.as_ref().map(AgentLog::tool_calls))
            .chain(evidence.agent.as_ref().and_then(AgentLog::wasi_tools))
            .chain(egress::evidence(&context.prepared.policy, &evidence.egress))
            .chain(mail_log)
            .chain(workflow(evidence))
            .chain(services(evidence))
            .chain(evidence.php_syntax.iter().map(php_syntax::document))
            .chain(context.http_requests.evidence())
            .collect(),
        files: evidence.files.iter().cloned().chain(mails).collect(),
        episode: evidence.episode_files.clone(),
        follow_up: prepared.earlier.as_ref().map(|earlier| FollowUpInputs {
            record: earlier.record(evidence.model_usage),
            since: seen.work.since.clone(),
        }),
    })
}

/// Builds the documents about the steps of a recipe and about the files that the recipe collects.
fn workflow(evidence: &RunEvidence) -> Vec<EvidenceDocument> {
    let steps = evidence.workflow.iter().map(|document| EvidenceDocument {
        name: "recipe-workflow.json",
        key: "recipeWorkflow",
        kind: "recipe-workflow",
        values: vec![document.clone()],
    });
    let files = (!evidence.collected.is_empty()).then(|| EvidenceDocument {
        name: "declared-artifacts.jsonl",
        key: "declaredArtifacts",
        kind: "declared-artifacts",
        values: evidence.collected.clone(),
    });
    steps.chain(files).collect()
}

/// Builds the document about the servers that ran in the guests.
fn services(evidence: &RunEvidence) -> Option<EvidenceDocument> {
    (!evidence.services.is_empty()).then(|| EvidenceDocument {
        name: "services.jsonl",
        key: "services",
        kind: "services",
        values: evidence.services.clone(),
    })
}

fn attestation(context: &RunContext<'_>, seen: Seen<'_>) -> EvidenceDocument {
    let observed = |phase, report: &IsolationReport| GuestObservation {
        phase,
        report: report.clone(),
    };
    let checked = seen.checks.isolation.iter();
    let guests = std::iter::once(observed(GuestPhase::Work, &seen.work.isolation))
        .chain(checked.map(|report| observed(GuestPhase::Check, report)))
        .collect();
    attest::document(attest::Observed {
        run_id: &context.prepared.request.run_id,
        policy: &context.prepared.policy,
        limits: context.prepared.limits,
        boot_id: HostFacts::read().boot_id,
        guests,
        // The secrets were moved out of the request when their placeholders were created, so their
        // names come from `prepared.secrets`.
        exposed_secrets: context
            .prepared
            .secrets
            .exposed()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        sandbox_audits: seen.sandbox_audits(),
    })
}

fn mounts(context: &RunContext<'_>, seen: Seen<'_>) -> Vec<BundleMount> {
    context
        .mounts
        .iter()
        .zip(&seen.work.changes)
        .enumerate()
        .map(|(index, (mount, changes))| BundleMount {
            index,
            target: mount.mount.target.clone(),
            access: mount.mount.request.mode,
            view: mount.view,
            git: mount.git_view(),
            exclude: mount.rules(),
            left_out: mount.left_out.clone(),
            metadata: mount.mount.request.metadata.clone(),
            changes: if mount.mount.request.mode == MountAccess::Readonly {
                None
            } else {
                changes.clone()
            },
        })
        .chain(shown(context))
        .collect()
}

/// Returns the components (host code that WordPress loads, such as plugins) in the form of
/// read-only mounts, whose changes are never captured.
fn shown<'a>(context: &'a RunContext<'_>) -> impl Iterator<Item = BundleMount> + 'a {
    let first = context.mounts.len();
    context
        .components
        .iter()
        .enumerate()
        .map(move |(position, row)| BundleMount {
            index: first + position,
            target: row.shown.mount.target.clone(),
            access: MountAccess::Readonly,
            view: row.shown.view,
            git: row.shown.git_view(),
            exclude: row.shown.rules(),
            left_out: row.shown.left_out.clone(),
            metadata: row.shown.mount.request.metadata.clone(),
            changes: None,
        })
}
