//! From evidence to a bundle and an answer.

use super::attest;
use super::egress;
use super::envelopes::{self, AgentExit, Facts, Worker};
use super::recorder::Recorder;
use super::verdict::Verdict;
use super::work::{AgentEnd, Checked, Work};
use super::{Failure, Setting};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Duration;
use wp_codebox_artifacts::{
    Approvable, BundleError, BundleInputs, BundleMount, BundleSigner, Dir, EvidenceDocument,
    HostKey, MountChanges, RenameMode, WrittenBundle, write_bundle,
};
use wp_codebox_backend_native::HostFacts;
use wp_codebox_contracts::{
    Cost, ErrorBody, ErrorCode, EventType, GuestObservation, GuestPhase, IsolationReport,
    MountAccess, Outcome, RunArtifacts, RunRequest, RunResult, RuntimeEnvironment, RuntimeInfo,
    SandboxAudit, TaskInput, schema_id,
};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::now_rfc3339;

/// Everything the guests left.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub work: Work,
    pub checks: Checked,
    pub verdict: Verdict,
}

impl Evidence {
    /// What was around the launcher, one row per guest.
    fn sandbox_audits(&self) -> Vec<SandboxAudit> {
        let work = std::iter::once(&self.work.outer);
        work.chain(&self.checks.outer).cloned().collect()
    }
}

/// The task as guest and bundle see it: staged files without their host paths.
pub(crate) fn task_document(task: &TaskInput) -> Value {
    let mut value = serde_json::to_value(task).unwrap_or_default();
    if let Some(rows) = value.get_mut("staged_files").and_then(Value::as_array_mut) {
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            row.remove("source");
        }
    }
    value
}

/// Writes the bundle and answers the result of the run.
pub(crate) fn bundle(
    setting: &Setting<'_>,
    recorder: &mut Recorder<'_>,
    redactor: &Redactor,
    mut evidence: Evidence,
) -> Result<RunResult, Failure> {
    let state = setting.prepared.state.path();
    let site = setting.prepared.request.site.as_str();
    // The guests are dead: from here on nothing foreign runs, and the key may be loaded.
    let key = Dir::open(state)
        .map_err(|e| write_failed(setting, &evidence, &e.to_string()))
        .and_then(|dir| HostKey::load_or_create(&dir).map_err(|e| Failure::keep(e.body())))?;
    let parent = setting
        .prepared
        .state
        .ensure(&["sites", site, "artifacts"])
        .map_err(|e| Failure::keep(e.body()))?;
    let directory =
        Dir::open(&parent).map_err(|e| write_failed(setting, &evidence, &e.to_string()))?;
    let run_id = &setting.prepared.request.run_id;
    let write = |inputs: &BundleInputs| {
        write_bundle(
            &directory,
            run_id,
            inputs,
            redactor,
            BundleSigner::Host(&key),
        )
    };
    let mut inputs = inputs(setting, recorder, &evidence, redactor)?;
    let written = match write(&inputs) {
        Err(error @ BundleError::Secret { .. }) => {
            block_on_secret(&mut evidence, &error);
            inputs = self::inputs(setting, recorder, &evidence, redactor)?;
            write(&inputs)
        }
        answer => answer,
    }
    .map_err(|e| not_written(setting, &evidence, &e.body()))?;
    recorder.event(
        EventType::ArtifactsCollected,
        None,
        json!({"id": written.id}),
    )?;
    Ok(result(
        setting,
        recorder,
        evidence,
        written,
        parent.join(run_id.as_str()),
        &inputs.summary,
    ))
}

/// The work must not be lost with the bundle: it stays in the run's scratch.
fn not_written(setting: &Setting<'_>, evidence: &Evidence, error: &ErrorBody) -> Failure {
    let run = setting.run_dir.path();
    let saved = evidence
        .work
        .layers
        .as_ref()
        .is_ok_and(|layers| layers.iter().any(Option::is_some));
    let hint = if saved {
        format!(
            "the captured change stays in {}",
            run.join("scratch").display()
        )
    } else {
        format!("the journal stays in {}", run.display())
    };
    let message = format!("the bundle could not be written: {}", error.message);
    Failure::keep(ErrorBody::new(error.code, message).hint(hint))
}

fn write_failed(setting: &Setting<'_>, evidence: &Evidence, why: &str) -> Failure {
    not_written(
        setting,
        evidence,
        &ErrorBody::new(ErrorCode::BundleWriteFailed, why),
    )
}

/// A patch with a secret in it is evidence nobody should hold: the run says where, not what.
fn block_on_secret(evidence: &mut Evidence, error: &BundleError) {
    let body = error.body();
    evidence.verdict.outcome = Outcome::Blocked;
    evidence.verdict.approvable = Approvable::No {
        code: body.code,
        reason: body.message.clone(),
    };
    evidence.verdict.error = Some(body);
    for changes in evidence.work.changes.iter_mut().flatten() {
        *changes = MountChanges::default();
    }
    evidence.verdict.counts = Default::default();
}

fn inputs(
    setting: &Setting<'_>,
    recorder: &Recorder<'_>,
    evidence: &Evidence,
    redactor: &Redactor,
) -> Result<BundleInputs, Failure> {
    let request = &setting.prepared.request;
    let verdict = &evidence.verdict;
    let mut error = verdict.error.clone();
    if let Some(body) = &mut error {
        body.message = redactor.redact(&body.message).into_owned();
    }
    let worker = if request.agent.is_some() {
        Worker::Agent
    } else {
        Worker::Command
    };
    let summary = envelopes::summary(
        worker,
        verdict.outcome,
        verdict.counts,
        &evidence.checks.reports,
        error.as_ref(),
    );
    let facts = Facts {
        run_id: &request.run_id,
        outcome: verdict.outcome,
        summary: &summary,
        error: error.as_ref(),
        changes: verdict.counts,
        transcript: &recorder.transcript,
        checks: &evidence.checks.reports,
        risk_notes: &recorder.notices,
    };
    let agent_exit = match evidence.work.agent {
        AgentEnd::None => None,
        AgentEnd::Success => Some(AgentExit::Success),
        AgentEnd::Failure => Some(AgentExit::Failure),
    };
    Ok(BundleInputs {
        created_at: now_rfc3339(),
        runtime: RuntimeInfo {
            id: request.run_id.as_str().to_owned(),
            backend: "native".to_owned(),
            environment: RuntimeEnvironment {
                kind: "wordpress".to_owned(),
                version: Some(setting.backend.template.wordpress_version.clone()),
                php_version: Some(setting.backend.php.version.clone()),
            },
            created_at: setting.run_dir.record().created_at(),
            status: "destroyed".to_owned(),
        },
        outcome: verdict.outcome,
        completion_outcome: Some(envelopes::completion_outcome(&facts)),
        agent_result: agent_exit.map(|exit| envelopes::agent_result(&facts, exit)),
        transcript: Some(envelopes::transcript(&recorder.transcript)),
        summary: summary.clone(),
        approvable: verdict.approvable.clone(),
        provenance: request.provenance.clone(),
        task: request.task.as_ref().map(task_document),
        policy: serde_json::to_value(&setting.prepared.policy).unwrap_or_default(),
        spec: spec(setting, request),
        mounts: mounts(setting, evidence),
        renames: if request.find_renames {
            RenameMode::Detect
        } else {
            RenameMode::Separate
        },
        events: recorder.events().map_err(Failure::keep)?,
        commands: recorder.executions.clone(),
        observations: recorder.observations.clone(),
        checks: evidence.checks.reports.clone(),
        isolation: evidence.work.isolation.clone(),
        evidence: std::iter::once(attestation(setting, evidence))
            .chain(egress::evidence(&setting.prepared.policy, &recorder.egress))
            .collect(),
    })
}

fn attestation(setting: &Setting<'_>, evidence: &Evidence) -> EvidenceDocument {
    let seen = |phase, report: &IsolationReport| GuestObservation {
        phase,
        report: report.clone(),
    };
    let checked = evidence.checks.isolation.iter();
    let guests = std::iter::once(seen(GuestPhase::Work, &evidence.work.isolation))
        .chain(checked.map(|report| seen(GuestPhase::Check, report)))
        .collect();
    attest::document(attest::Observed {
        run_id: &setting.prepared.request.run_id,
        policy: &setting.prepared.policy,
        limits: setting.prepared.limits,
        boot_id: HostFacts::read().boot_id,
        guests,
        // The request gave its secrets away when they were issued.
        exposed_secrets: setting
            .prepared
            .secrets
            .exposed()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        sandbox_audits: evidence.sandbox_audits(),
    })
}

fn spec(setting: &Setting<'_>, request: &RunRequest) -> Map<String, Value> {
    let mut spec = Map::new();
    spec.insert("limits".to_owned(), json!(setting.prepared.limits));
    if !request.commands.is_empty() {
        spec.insert("commands".to_owned(), json!(request.commands));
    }
    if let Some(agent) = &request.agent {
        spec.insert(
            "agent".to_owned(),
            json!({"argv": agent.argv, "successCodes": agent.success_codes}),
        );
    }
    let secrets = setting.prepared.secrets.record();
    if !secrets.is_empty() {
        spec.insert("secrets".to_owned(), json!(secrets));
    }
    if !request.checks.is_empty() {
        spec.insert("checks".to_owned(), json!(request.checks));
    }
    spec
}

fn mounts(setting: &Setting<'_>, evidence: &Evidence) -> Vec<BundleMount> {
    setting
        .mounts
        .iter()
        .zip(&evidence.work.changes)
        .enumerate()
        .map(|(index, (mount, changes))| BundleMount {
            index,
            target: mount.mount.target.clone(),
            access: mount.mount.request.mode,
            view: mount.view,
            exclude: mount.rules(),
            metadata: mount.mount.request.metadata.clone(),
            changes: if mount.mount.request.mode == MountAccess::Readonly {
                None
            } else {
                changes.clone()
            },
        })
        .collect()
}

fn result(
    setting: &Setting<'_>,
    recorder: &mut Recorder<'_>,
    evidence: Evidence,
    written: WrittenBundle,
    path: PathBuf,
    summary: &str,
) -> RunResult {
    let sandbox_audits = evidence.sandbox_audits();
    let mut notices = std::mem::take(&mut recorder.notices);
    notices.extend(written.notices);
    RunResult {
        schema: schema_id::RUN_RESULT.to_owned(),
        run_id: setting.prepared.request.run_id.clone(),
        outcome: evidence.verdict.outcome,
        summary: summary.to_owned(),
        error: evidence.verdict.error,
        artifacts: Some(RunArtifacts {
            path: path.to_string_lossy().into_owned(),
            bundle_id: written.id.as_str().to_owned(),
            manifest_sha256: written.manifest_sha256.as_str().to_owned(),
        }),
        changed_files: written.changed_files,
        approvable: evidence.verdict.approvable == Approvable::Yes,
        checks: evidence.checks.reports,
        isolation: evidence.work.isolation,
        sandbox_audits,
        cost: cost(setting, &[evidence.work.usage, evidence.checks.usage]),
        completion_outcome: written.completion_outcome,
        agent_result: written.agent_result,
        transcript: written.transcript,
        notices,
    }
}

fn cost(setting: &Setting<'_>, guests: &[wp_codebox_runtime::Usage]) -> Cost {
    let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let own = Duration::new(
        u64::try_from(own.tv_sec).unwrap_or_default(),
        u32::try_from(own.tv_nsec).unwrap_or_default(),
    );
    let cpu: Duration = guests.iter().map(|g| g.cpu).sum::<Duration>() + own;
    let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    Cost {
        wall_ms: millis(setting.clock.started.elapsed()),
        cpu_ms: millis(cpu),
        peak_memory_bytes: guests
            .iter()
            .map(|g| g.peak_memory_bytes)
            .max()
            .unwrap_or_default(),
    }
}
