//! Builds the bundle (the run's result directory) and the result from the evidence of a run.

use super::inputs::{Seen, inputs};
use super::recovery_bundle;
use super::verdict::Verdict;
use crate::checks::Checked;
use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use crate::prepared::left_out;
use crate::work::Work;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use wp_codebox_artifacts::{
    Approvable, BundleError, BundleInputs, BundleSigner, Dir, HostKey, MountChanges, WrittenBundle,
    write_bundle,
};
use wp_codebox_contracts::{
    CodedError, Cost, ErrorBody, ErrorCode, EventType, Outcome, RunArtifacts, RunResult,
    SandboxAudit, schema_id,
};
use wp_codebox_runtime::{RunDir, Scratch, Usage};

/// Error of a run that has no outcome, and whether to keep the run's scratch directory.
#[derive(Debug)]
pub(crate) struct Failure {
    pub error: ErrorBody,
    pub scratch: Scratch,
}

impl Failure {
    /// Creates a failure after which the scratch directory is kept, because it contains the agent's
    /// work.
    pub(crate) fn keep(error: ErrorBody) -> Self {
        Self {
            error,
            scratch: Scratch::Keep,
        }
    }
}

impl From<ErrorBody> for Failure {
    fn from(error: ErrorBody) -> Self {
        Self {
            error,
            scratch: Scratch::Remove,
        }
    }
}

/// Results of a run's guests, and the outcome of the run.
#[derive(Debug)]
pub(crate) struct RunEnd {
    pub work: Work,
    pub checks: Checked,
    pub verdict: Verdict,
}

impl RunEnd {
    fn seen(&self) -> Seen<'_> {
        Seen {
            work: &self.work,
            checks: &self.checks,
            verdict: &self.verdict,
        }
    }

    /// Returns the audit records of the process wrapper (bubblewrap or gVisor, if used), one per
    /// guest.
    fn sandbox_audits(&self) -> Vec<SandboxAudit> {
        self.seen().sandbox_audits()
    }
}

/// Writes the bundle and returns the result of the run.
pub(crate) fn bundle(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    mut end: RunEnd,
) -> Result<RunResult, Failure> {
    let state = context.prepared.state.path();
    let site = context.prepared.request.site.as_str();
    // The guests are dead and no untrusted code runs any more, so the signing key may be loaded.
    let key = Dir::open(state)
        .map_err(|e| write_failed(context, &end, &e.to_string()))
        .and_then(|dir| {
            HostKey::load_or_create(&dir).map_err(|e| kept(context.run_dir, &end.work, e.body()))
        })?;
    let parent = context
        .prepared
        .state
        .ensure(&["sites", site, "artifacts"])
        .map_err(|e| kept(context.run_dir, &end.work, e.body()))?;
    let directory = Dir::open(&parent).map_err(|e| write_failed(context, &end, &e.to_string()))?;
    let run_id = &context.prepared.request.run_id;
    let attempt = |inputs: &BundleInputs| {
        let signer = BundleSigner::Host(&key);
        write_bundle(&directory, run_id, inputs, context.redactor, signer)
    };
    let write = |inputs: &BundleInputs| match attempt(inputs) {
        // The disk is full: removing the recovery bundle may free enough space for this bundle.
        Err(BundleError::NoSpace) if recovery_bundle::discard(context.run_dir) > 0 => {
            attempt(inputs)
        }
        answer => answer,
    };
    let mut inputs =
        inputs(context, recorder, end.seen()).map_err(|e| kept(context.run_dir, &end.work, e))?;
    let written = match write(&inputs) {
        Err(error @ BundleError::Secret { .. }) => {
            block_on_secret(&mut end, &error);
            inputs = super::inputs::inputs(context, recorder, end.seen())
                .map_err(|e| kept(context.run_dir, &end.work, e))?;
            write(&inputs)
        }
        answer => answer,
    }
    .map_err(|e| {
        // The space that the removed recovery bundle had is free again.
        if end.verdict.outcome != Outcome::Blocked && !recovery_bundle::exists(context.run_dir) {
            recovery_bundle::write(context, recorder, &end.work);
        }
        not_written(context, &end, &e.body())
    })?;
    // The bundle is complete, so the run's working copies can go. Removing them can take longer
    // than the run itself, so they are removed before the run's duration is read, which then
    // includes the removal.
    context.run_dir.discard_scratch();
    recorder.event(
        EventType::ArtifactsCollected,
        None,
        json!({"id": written.id}),
    )?;
    Ok(result(
        context,
        recorder,
        end,
        written,
        parent.join(run_id.as_str()),
        &inputs,
    ))
}

/// Returns the failure of a run whose bundle could not be written; the captured work stays in the
/// scratch directory.
fn not_written(context: &RunContext<'_>, end: &RunEnd, error: &ErrorBody) -> Failure {
    let message = format!("the bundle could not be written: {}", error.message);
    kept(
        context.run_dir,
        &end.work,
        ErrorBody::new(error.code, message),
    )
}

/// Returns the failure of a run that has no bundle; the hints of the error say where the work is, and
/// which command makes a bundle of it.
pub(crate) fn kept(run_dir: &RunDir, work: &Work, error: ErrorBody) -> Failure {
    let run = run_dir.path();
    let saved = work
        .layers
        .as_ref()
        .is_ok_and(|layers| layers.iter().any(Option::is_some));
    let error = match run.file_name() {
        Some(run_id) if recovery_bundle::exists(run_dir) => error.hint(format!(
            "`wp-codebox recover {}` makes a bundle of the captured change, without check results and signature",
            run_id.to_string_lossy()
        )),
        _ => error,
    };
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

fn write_failed(context: &RunContext<'_>, end: &RunEnd, why: &str) -> Failure {
    not_written(
        context,
        end,
        &ErrorBody::new(ErrorCode::BundleWriteFailed, why),
    )
}

/// Sets the outcome to `blocked` and drops the changes, because the patch contains a secret. The
/// error names the place of the secret, not the secret.
fn block_on_secret(end: &mut RunEnd, error: &BundleError) {
    let body = error.body();
    end.verdict.outcome = Outcome::Blocked;
    end.verdict.approvable = Approvable::No {
        code: body.code,
        reason: body.message.clone(),
    };
    end.verdict.error = Some(body);
    for changes in end.work.changes.iter_mut().flatten() {
        *changes = MountChanges::default();
    }
    end.work.since.clear();
    end.verdict.counts = Default::default();
}

fn result(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    end: RunEnd,
    written: WrittenBundle,
    path: PathBuf,
    inputs: &BundleInputs,
) -> RunResult {
    let sandbox_audits = end.sandbox_audits();
    let mut notices = std::mem::take(&mut recorder.evidence.notices);
    notices.extend(left_out::notices(context.shown()));
    notices.extend(written.notices);
    RunResult {
        schema: schema_id::RUN_RESULT.to_owned(),
        run_id: context.prepared.request.run_id.clone(),
        outcome: end.verdict.outcome,
        summary: inputs.summary.clone(),
        summary_detail: inputs.summary_detail.clone(),
        error: end.verdict.error,
        artifacts: Some(RunArtifacts {
            path: path.to_string_lossy().into_owned(),
            bundle_id: written.id.as_str().to_owned(),
            manifest_sha256: written.manifest_sha256.as_str().to_owned(),
        }),
        mounts: left_out::reports(context.shown()),
        changed_files: written.changed_files,
        approvable: end.verdict.approvable == Approvable::Yes,
        checks: end.checks.reports,
        isolation: end.work.isolation,
        sandbox_audits,
        cost: cost(context, recorder, &[end.work.usage, end.checks.usage]),
        completion_outcome: written.completion_outcome,
        agent_result: written.agent_result,
        transcript: written.transcript,
        workflow: recorder.evidence.workflow.take(),
        services: std::mem::take(&mut recorder.evidence.services),
        notices,
    }
}

fn cost(context: &RunContext<'_>, recorder: &Recorder<'_>, guests: &[Usage]) -> Cost {
    let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let own = Duration::new(
        u64::try_from(own.tv_sec).unwrap_or_default(),
        u32::try_from(own.tv_nsec).unwrap_or_default(),
    );
    let cpu: Duration = guests.iter().map(|g| g.cpu).sum::<Duration>() + own;
    let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    Cost {
        wall_ms: millis(context.clock.asked.elapsed()),
        cpu_ms: millis(cpu),
        peak_memory_bytes: guests
            .iter()
            .map(|g| g.peak_memory_bytes)
            .max()
            .unwrap_or_default(),
        group: context.prepared.group.cgroup().used(),
        model: recorder.evidence.model_usage,
    }
}
