//! Registry entries of runs in every state.

use super::*;
use crate::{ErrorCode, RunFacts, RunMode, TaskTexts};
use serde_json::json;

const BUNDLE: &str =
    "artifact-bundle-sha256-e10d3d4a1ea610a9f7bb8dab0bea5847945160c612172eca06fa3cff35f8ab56";

fn view(status: RunStatus, outcome: Option<Outcome>) -> RunView {
    RunView {
        schema: schema_id::RUN.to_owned(),
        run_id: RunId::new(format!("run_{:032x}", 9)).unwrap(),
        status,
        mode: RunMode::Detached,
        created_at: "2026-01-01T00:00:00.000Z".to_owned(),
        updated_at: "2026-01-01T00:00:01.000Z".to_owned(),
        facts: RunFacts::new(
            TaskTexts::of_goal("mend it".to_owned()),
            serde_json::Map::new(),
        ),
        outcome,
        summary: None,
        summary_detail: None,
        error: None,
        bundle_id: None,
        salvaged: false,
        last_event: 3,
        result: Some(json!({"artifacts": {"path": "/var/lib/somewhere"}})),
    }
}

fn seen(progress: RunProgress) -> RunObservations {
    RunObservations {
        progress,
        scratch: ScratchState::Present,
        cancellation: RecordedCancellation::None,
        at: "2026-01-01T00:00:09.000Z".to_owned(),
    }
}

#[test]
fn state_phase_and_cleanup_of_a_running_run_follow_from_its_progress() {
    let running = view(RunStatus::Running, None);
    for (progress, status, phase, cleanup) in [
        (
            RunProgress::Booting,
            RunState::Booting,
            RunPhase::Active,
            LifecycleCleanupStatus::NotStarted,
        ),
        (
            RunProgress::Running,
            RunState::Running,
            RunPhase::Active,
            LifecycleCleanupStatus::NotStarted,
        ),
        (
            RunProgress::Collecting,
            RunState::CollectingArtifacts,
            RunPhase::Finalizing,
            LifecycleCleanupStatus::Running,
        ),
    ] {
        let entry = RunRegistryEntry::of(&running, &seen(progress));
        assert_eq!((entry.status, entry.lifecycle.phase), (status, phase));
        assert_eq!(entry.lifecycle.cleanup.status, cleanup);
        assert!(entry.lifecycle.cancellable && !entry.lifecycle.terminal);
        assert_eq!(entry.heartbeat_at, "2026-01-01T00:00:09.000Z");
        assert_eq!(entry.result, None);
    }
}

#[test]
fn state_of_an_ended_run_follows_from_its_outcome_and_not_from_its_progress() {
    for outcome in Outcome::ALL {
        let mut ended = view(RunStatus::Ended, Some(*outcome));
        ended.bundle_id = Some(BUNDLE.to_owned());
        let entry = RunRegistryEntry::of(&ended, &seen(RunProgress::Booting));
        let life = &entry.lifecycle;
        assert_eq!(entry.status, RunState::of_outcome(*outcome));
        assert!(life.terminal && !life.cancellable, "{outcome:?}");
        assert_eq!(life.successful, outcome.is_success(), "{outcome:?}");
        assert_eq!(
            u8::from(life.successful) + u8::from(life.failed) + u8::from(life.cancelled),
            1
        );
        assert_eq!(life.cancel_requested, *outcome == Outcome::Cancelled);
        assert_eq!(entry.heartbeat_at, ended.updated_at);
        let result = entry.result.as_ref().unwrap();
        assert_eq!((result.status, result.outcome), (entry.status, *outcome));
        assert_eq!(result.artifacts, entry.artifact_refs);
        let reference = &entry.artifact_refs[0];
        let digest = reference.digest.as_ref().unwrap().value.as_str();
        assert_eq!(
            format!("artifact-bundle-sha256-{digest}"),
            reference.id.as_str()
        );
        let text = serde_json::to_string(&entry).unwrap();
        assert!(!text.contains("/var/lib"), "no host path: {text}");
        let read: RunRegistryEntry = serde_json::from_str(&text).unwrap();
        assert_eq!(read, entry);
    }
}

#[test]
fn ended_run_without_outcome_has_state_failed() {
    let mut ended = view(RunStatus::Ended, None);
    ended.error = Some(ErrorBody::new(
        ErrorCode::RunFailed,
        "its supervisor is gone",
    ));
    ended.salvaged = true;
    let entry = RunRegistryEntry::of(&ended, &seen(RunProgress::Running));
    assert_eq!(entry.status, RunState::Failed);
    assert!(entry.lifecycle.failed && entry.result.is_none() && entry.error.is_some());
    assert_eq!(
        entry.lifecycle.cleanup.status,
        LifecycleCleanupStatus::Running
    );
    assert_eq!(
        Value::Object(entry.metadata),
        json!({"goal": "mend it", "salvaged": true})
    );
}

/// A run ends without an outcome if its supervisor died. Another process then completes its stored
/// state and removes its scratch files.
#[test]
fn cleanup_status_of_an_ended_run_follows_from_its_outcome_and_its_scratch_files() {
    use LifecycleCleanupStatus as C;
    let status = |view: &RunView, scratch| {
        let mut seen = seen(RunProgress::Collecting);
        seen.scratch = scratch;
        RunLifecycle::of(view, &seen).cleanup.status
    };
    let ended = view(RunStatus::Ended, Some(Outcome::Failed));
    let unsettled = view(RunStatus::Ended, None);
    assert_eq!(status(&ended, ScratchState::Gone), C::Succeeded);
    assert_eq!(status(&ended, ScratchState::Present), C::Failed);
    assert_eq!(status(&ended, ScratchState::Unsettled), C::Running);
    assert_eq!(status(&unsettled, ScratchState::Gone), C::Succeeded);
    assert_eq!(status(&unsettled, ScratchState::Present), C::Running);
    assert_eq!(status(&unsettled, ScratchState::Unsettled), C::Running);
}

#[test]
fn cancellation_reply_distinguishes_first_repeated_and_late_requests() {
    let answer = |answer, status| RunCancellation {
        schema: schema_id::RUN_CANCELLATION.to_owned(),
        run_id: RunId::new(format!("run_{:032x}", 9)).unwrap(),
        answer,
        status,
    };
    let note = RecordedCancellation::Requested(CancellationNote {
        requested_at: "2026-01-01T00:00:02.000Z".to_owned(),
        reason: Some("not needed".to_owned()),
        requested_by: Some("cli".to_owned()),
    });
    let after = |view: &RunView| {
        let mut seen = seen(RunProgress::Running);
        seen.cancellation = note.clone();
        RunRegistryEntry::of(view, &seen)
    };
    let running = view(RunStatus::Running, None);
    let sent = answer(CancelEffect::Requested, RunStatus::Running);
    let first = RunCancellationRequest::of(&sent, &RecordedCancellation::None, after(&running));
    assert!(first.cancellation_requested && !first.already_requested && !first.terminal);
    assert!(first.record.lifecycle.cancel_requested);
    let again = RunCancellationRequest::of(&sent, &note, after(&running));
    assert!(again.cancellation_requested && again.already_requested);

    let late = RunCancellationRequest::of(
        &answer(CancelEffect::AlreadyEnded, RunStatus::Ended),
        &RecordedCancellation::None,
        RunRegistryEntry::of(
            &view(RunStatus::Ended, Some(Outcome::Succeeded)),
            &seen(RunProgress::Collecting),
        ),
    );
    assert!(!late.cancellation_requested && !late.already_requested && late.terminal);
    assert_eq!(late.status, RunState::Succeeded);
    let json = serde_json::to_value(&late).unwrap();
    for key in [
        "schema",
        "runId",
        "status",
        "cancellationRequested",
        "alreadyRequested",
        "terminal",
        "record",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
}
