//! From evidence to a bundle and an answer.

use super::inputs::{Seen, inputs};
use super::recorder::Recorder;
use super::salvage;
use super::verdict::Verdict;
use super::work::{Checked, Work};
use super::{Failure, Setting, mask};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use wp_codebox_artifacts::{
    Approvable, BundleError, BundleInputs, BundleSigner, Dir, HostKey, MountChanges, WrittenBundle,
    write_bundle,
};
use wp_codebox_contracts::{
    Cost, ErrorBody, ErrorCode, EventType, Outcome, RunArtifacts, RunResult, SandboxAudit,
    schema_id,
};
use wp_codebox_policy::Redactor;

/// Everything the guests left.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub work: Work,
    pub checks: Checked,
    pub verdict: Verdict,
}

impl Evidence {
    fn seen(&self) -> Seen<'_> {
        Seen {
            work: &self.work,
            checks: &self.checks,
            verdict: &self.verdict,
        }
    }

    /// What was around the launcher, one row per guest.
    fn sandbox_audits(&self) -> Vec<SandboxAudit> {
        self.seen().sandbox_audits()
    }
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
        .and_then(|dir| {
            HostKey::load_or_create(&dir).map_err(|e| kept(setting, &evidence.work, e.body()))
        })?;
    let parent = setting
        .prepared
        .state
        .ensure(&["sites", site, "artifacts"])
        .map_err(|e| kept(setting, &evidence.work, e.body()))?;
    let directory =
        Dir::open(&parent).map_err(|e| write_failed(setting, &evidence, &e.to_string()))?;
    let run_id = &setting.prepared.request.run_id;
    let attempt = |inputs: &BundleInputs| {
        let signer = BundleSigner::Host(&key);
        write_bundle(&directory, run_id, inputs, redactor, signer)
    };
    let write = |inputs: &BundleInputs| match attempt(inputs) {
        // What was written for the case that this process dies may be what fills the disk.
        Err(BundleError::NoSpace) if salvage::discard(setting.run_dir) > 0 => attempt(inputs),
        answer => answer,
    };
    let mut inputs = inputs(setting, recorder, evidence.seen(), redactor)
        .map_err(|e| kept(setting, &evidence.work, e))?;
    let written = match write(&inputs) {
        Err(error @ BundleError::Secret { .. }) => {
            block_on_secret(&mut evidence, &error);
            inputs = super::inputs::inputs(setting, recorder, evidence.seen(), redactor)
                .map_err(|e| kept(setting, &evidence.work, e))?;
            write(&inputs)
        }
        answer => answer,
    }
    .map_err(|e| not_written(setting, &evidence, &e.body()))?;
    // The bundle is in its place, so the copies that the run worked on are of no use. Their
    // removal can take longer than the run: it is done before the clock is read.
    setting.run_dir.discard_scratch();
    salvage::discard(setting.run_dir);
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
        &inputs,
    ))
}

/// The work must not be lost with the bundle: it stays in the run's scratch.
fn not_written(setting: &Setting<'_>, evidence: &Evidence, error: &ErrorBody) -> Failure {
    let message = format!("the bundle could not be written: {}", error.message);
    kept(setting, &evidence.work, ErrorBody::new(error.code, message))
}

/// An end without a bundle; the error says where the work is.
pub(crate) fn kept(setting: &Setting<'_>, work: &Work, error: ErrorBody) -> Failure {
    let run = setting.run_dir.path();
    let saved = work
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
    Failure::keep(error.hint(hint))
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

fn result(
    setting: &Setting<'_>,
    recorder: &mut Recorder<'_>,
    evidence: Evidence,
    written: WrittenBundle,
    path: PathBuf,
    inputs: &BundleInputs,
) -> RunResult {
    let sandbox_audits = evidence.sandbox_audits();
    let mut notices = std::mem::take(&mut recorder.notices);
    notices.extend(mask::notices(setting));
    notices.extend(written.notices);
    RunResult {
        schema: schema_id::RUN_RESULT.to_owned(),
        run_id: setting.prepared.request.run_id.clone(),
        outcome: evidence.verdict.outcome,
        summary: inputs.summary.clone(),
        summary_detail: inputs.summary_detail.clone(),
        error: evidence.verdict.error,
        artifacts: Some(RunArtifacts {
            path: path.to_string_lossy().into_owned(),
            bundle_id: written.id.as_str().to_owned(),
            manifest_sha256: written.manifest_sha256.as_str().to_owned(),
        }),
        mounts: mask::reports(setting),
        changed_files: written.changed_files,
        approvable: evidence.verdict.approvable == Approvable::Yes,
        checks: evidence.checks.reports,
        isolation: evidence.work.isolation,
        sandbox_audits,
        cost: cost(
            setting,
            recorder,
            &[evidence.work.usage, evidence.checks.usage],
        ),
        completion_outcome: written.completion_outcome,
        agent_result: written.agent_result,
        transcript: written.transcript,
        workflow: recorder.workflow.take(),
        notices,
    }
}

fn cost(
    setting: &Setting<'_>,
    recorder: &Recorder<'_>,
    guests: &[wp_codebox_runtime::Usage],
) -> Cost {
    let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let own = Duration::new(
        u64::try_from(own.tv_sec).unwrap_or_default(),
        u32::try_from(own.tv_nsec).unwrap_or_default(),
    );
    let cpu: Duration = guests.iter().map(|g| g.cpu).sum::<Duration>() + own;
    let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    Cost {
        wall_ms: millis(setting.clock.asked.elapsed()),
        cpu_ms: millis(cpu),
        peak_memory_bytes: guests
            .iter()
            .map(|g| g.peak_memory_bytes)
            .max()
            .unwrap_or_default(),
        model: recorder.model_usage,
    }
}
