//! A bundle of the captured change, written before the checks and the real bundle, for the
//! case that this process dies in between. Whoever settles the run then gives it its place;
//! the end of a run that lives removes it.
//!
//! It is whole, redacted and refuses secrets as any other, but nobody signs it, its checks
//! did not run, and it cannot be approved. It is not synced: it is there for the death of a
//! process, and is synced when it gets its place.

use super::checks::Checked;
use super::context::RunContext;
use super::inputs::{Seen, inputs};
use super::recorder::Recorder;
use super::verdict::{Verdict, counts};
use super::work::Work;
use wp_codebox_artifacts::{
    Approvable, BundleError, BundleInputs, BundleSigner, Dir, Durability, remove_tree,
    write_bundle_as,
};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome};
use wp_codebox_runtime::{RECOVERY_BUNDLE, RunDir, Stop};

/// Writes it. What fails here fails the run only if it fails again later.
pub(super) fn write(context: &RunContext<'_>, recorder: &Recorder<'_>, work: &Work) {
    if matches!(work.stopped, Some(Stop::Uncaptured(_))) {
        return;
    }
    if attempt(context, recorder, work).is_err() {
        discard(context.run_dir);
    }
}

/// Gives its space back; answers how many entries that were.
pub(super) fn discard(run_dir: &RunDir) -> u64 {
    // What stays goes when the run is settled.
    remove_tree(&run_dir.path().join(RECOVERY_BUNDLE)).unwrap_or(0)
}

fn attempt(
    context: &RunContext<'_>,
    recorder: &Recorder<'_>,
    work: &Work,
) -> Result<(), ErrorBody> {
    let directory = context.run_dir.recovery_bundle().map_err(|e| e.body())?;
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
        ..verdict(Outcome::Failed, died())
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
            write(&inputs)
        }
        answer => answer,
    }
    .map(drop)
    .map_err(|e| e.body())
}

/// Nothing counts as changed, and nothing of it can be approved.
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

fn died() -> ErrorBody {
    ErrorBody::new(
        ErrorCode::RunnerUnavailable,
        "the supervisor of this run died before the checks and the signature; run again",
    )
}
