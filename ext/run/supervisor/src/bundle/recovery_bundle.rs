//! Recovery bundle: a bundle (result directory) with the captured changes, written before the
//! checks run, in case this process dies or fails before it writes the final bundle. The next process
//! that finds the dead run moves the recovery bundle to the place of the final one; for a run whose
//! end failed, `wp-codebox recover` does that. A run that completes removes it.
//!
//! It must be written by this process: no other knows the secrets that are removed from it.
//!
//! The bundle is complete, redacted and free of secrets like any other, but it is unsigned,
//! contains no check results, and cannot be approved. It is not synced when written, because it
//! only needs to survive the death of this process. It is synced when it moves to its final place.

use super::inputs::{Seen, inputs};
use super::verdict::{Verdict, counts};
use crate::checks::Checked;
use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use crate::work::Work;
use wp_codebox_artifacts::{
    Approvable, BundleError, BundleInputs, BundleSigner, Dir, Durability, remove_tree,
    write_bundle_as,
};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, Outcome};
use wp_codebox_runtime::{RECOVERY_BUNDLE, RunDir, Stop};

/// Writes the recovery bundle. An error is ignored: if its cause persists, writing the final bundle
/// reports the same error.
pub(crate) fn write(context: &RunContext<'_>, recorder: &Recorder<'_>, work: &Work) {
    if matches!(work.stopped, Some(Stop::Uncaptured(_))) {
        return;
    }
    if attempt(context, recorder, work).is_err() {
        discard(context.run_dir);
    }
}

/// Removes the recovery bundle to free disk space; returns the number of removed entries.
pub(crate) fn discard(run_dir: &RunDir) -> u64 {
    // Entries that cannot be removed now are removed when the run gets its final record.
    remove_tree(&run_dir.path().join(RECOVERY_BUNDLE)).unwrap_or(0)
}

/// Returns whether the run has a complete recovery bundle.
pub(crate) fn exists(run_dir: &RunDir) -> bool {
    let run = run_dir.path();
    let name = run.file_name().unwrap_or_default();
    run.join(RECOVERY_BUNDLE).join(name).is_dir()
}

fn attempt(
    context: &RunContext<'_>,
    recorder: &Recorder<'_>,
    work: &Work,
) -> Result<(), ErrorBody> {
    let directory = context.run_dir.recovery_bundle()?;
    let directory = Dir::open(&directory)
        .map_err(|e| ErrorBody::new(ErrorCode::BundleWriteFailed, e.to_string()))?;
    let write = |inputs: &BundleInputs| {
        write_bundle_as(
            &directory,
            &context.prepared.request.run_id,
            inputs,
            context.redactor,
            BundleSigner::Unsigned,
            Durability::Unsynced,
        )
    };
    let verdict = Verdict {
        counts: counts(work),
        ..verdict(Outcome::Failed, unfinished())
    };
    let seen = |verdict| {
        let checks = &Checked::default();
        inputs(
            context,
            recorder,
            Seen {
                work,
                checks,
                verdict,
            },
        )
    };
    match write(&seen(&verdict)?) {
        Err(error @ BundleError::Secret { .. }) => {
            let verdict = self::verdict(Outcome::Blocked, error.body());
            let mut inputs = seen(&verdict)?;
            for mount in &mut inputs.mounts {
                mount.changes = mount.changes.as_ref().map(|_| Default::default());
            }
            if let Some(follow_up) = &mut inputs.follow_up {
                follow_up.since.clear();
            }
            write(&inputs)
        }
        answer => answer,
    }
    .map(drop)
    .map_err(ErrorBody::from)
}

/// Returns a verdict that counts no changes and does not let the bundle be approved.
fn verdict(outcome: Outcome, error: ErrorBody) -> Verdict {
    Verdict {
        outcome,
        approvable: Approvable::No {
            code: error.code,
            reason: error.message.clone(),
        },
        error: Some(error),
        counts: Default::default(),
    }
}

fn unfinished() -> ErrorBody {
    ErrorBody::new(
        ErrorCode::RunnerUnavailable,
        "this is a recovery bundle: the run's own bundle was not written, so the results of the checks and the signature are missing; run again",
    )
}
