//! Converts state, end and leftovers of a sandbox to the types of the service.

use serde_json::Value;
use wp_codebox_contracts::{CONTROL_SOCKET, CodedError, ErrorBody, ErrorCode, RunView};
use wp_codebox_runtime::{FoundRun, RegistryError, RunUsage, cost, view};
use wp_codebox_sandboxes::Sandboxes;
use wp_codebox_service::{CleanupReport, Ended, SandboxState, SandboxUsage, SandboxView};

/// Maximum size of a run's result that is read, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Returns the present state of a sandbox.
///
/// # Errors
/// `wp_codebox_sandbox_not_found`.
pub(super) fn of(sandboxes: Sandboxes<'_>, run: &FoundRun) -> Result<SandboxView, ErrorBody> {
    if !run.path.is_dir() {
        return Err(missing(run));
    }
    match view(sandboxes.state, run) {
        Ok(_) => {}
        // The supervisor has made the directory of the run and is about to write its record.
        Err(RegistryError::NotFound { .. }) if run.path.is_dir() => {
            return Ok(SandboxView {
                state: SandboxState::Provisioning,
                expires_at: None,
                ended: None,
            });
        }
        Err(RegistryError::NotFound { .. }) => return Err(missing(run)),
        Err(error) => return Err(error.body()),
    }
    let document = sandboxes.document(run)?;
    let state = state(&document);
    Ok(SandboxView {
        state,
        expires_at: document["expiresAt"].as_str().map(str::to_owned),
        ended: match state.is_final() {
            true => Some(ended(run, &document)?),
            false => None,
        },
    })
}

fn missing(run: &FoundRun) -> ErrorBody {
    let message = format!("this machine has no sandbox {}", run.run_id);
    ErrorBody::new(ErrorCode::SandboxNotFound, message)
}

/// Converts the state in a document `sandbox/v1`. In the document a sandbox that failed or died has
/// the state `destroyed`; for the service it is `Failed`.
fn state(document: &Value) -> SandboxState {
    let word = document["state"].as_str().unwrap_or_default();
    let named = SandboxState::ALL
        .iter()
        .find(|state| state.as_str() == word);
    let how = document["tombstone"]["how"].as_str();
    match (named, how) {
        (Some(SandboxState::Destroyed), Some("failed" | "died")) => SandboxState::Failed,
        (Some(state), _) => *state,
        (None, _) => SandboxState::Provisioning,
    }
}

fn ended(run: &FoundRun, document: &Value) -> Result<Ended, ErrorBody> {
    let told = &document["tombstone"];
    let how = told["how"].as_str().unwrap_or("ended");
    // The journal says only that the guest of a failed sandbox ended; the error says why. A cancelled
    // sandbox has an error too, but its reason says more.
    let reason = match told["outcome"].as_str() {
        Some("cancelled") => None,
        _ => told["error"]["message"].as_str(),
    };
    let reason = reason.or_else(|| told["reason"].as_str());
    Ok(Ended {
        reason: match reason.unwrap_or_default() {
            "" => format!("it {how}"),
            reason => reason.to_owned(),
        },
        // If the supervisor died, ignore a stored result: it was written before the sandbox ended.
        usage: match how {
            "died" => measured(run)?,
            _ => usage(run)?,
        },
    })
}

/// Returns what an ended run used.
///
/// # Errors
/// When a document of the run cannot be read. The use is then unknown, not zero.
pub(crate) fn usage(run: &FoundRun) -> Result<SandboxUsage, ErrorBody> {
    let measured = measured(run)?;
    Ok(match cost(run, LARGEST)? {
        Some(cost) => SandboxUsage {
            alive_ms: Some(cost.wall_ms),
            cpu_ms: Some(cost.cpu_ms),
            ..measured
        },
        None => measured,
    })
}

/// Returns the resource usage that the supervisor stored last. `alive_ms` is absent, because the
/// time of the end is unknown: a supervisor that died did so after its last write.
fn measured(run: &FoundRun) -> Result<SandboxUsage, ErrorBody> {
    let used = RunUsage::of_run(&run.path)?;
    Ok(
        used.map_or_else(SandboxUsage::default, |used| SandboxUsage {
            alive_ms: None,
            cpu_ms: used.cpu_ms,
            memory_mib_seconds: Some(used.memory_byte_seconds / (1024 * 1024)),
            memory_samples: Some(used.memory_samples),
            memory_interval_ms: Some(used.memory_interval_ms),
            written_bytes: Some(used.written_bytes),
            egress_bytes: Some(used.egress_bytes),
        }),
    )
}

/// Returns the error of a sandbox that ended before it was ready.
pub(super) fn ended_error(sandboxes: Sandboxes<'_>, run: &FoundRun) -> ErrorBody {
    let view = match view(sandboxes.state, run) {
        Ok(view) => Some(view),
        Err(RegistryError::NotFound { .. }) => None,
        Err(error) => return error.body(),
    };
    let recorded = view.and_then(|view: RunView| {
        let why = view.summary.map(|summary| format!(": {summary}"));
        view.error.or_else(|| {
            let why = why.unwrap_or_default();
            let message = format!("the sandbox ended before it was ready{why}");
            Some(ErrorBody::new(ErrorCode::SandboxStartFailed, message))
        })
    });
    recorded.unwrap_or_else(|| missing(run))
}

/// Reports what the end of a sandbox removed. `before` is the state before the teardown.
pub(super) fn cleanup(
    sandboxes: Sandboxes<'_>,
    run: &FoundRun,
    before: SandboxState,
) -> Result<CleanupReport, ErrorBody> {
    let document = sandboxes.document(run)?;
    let already_ended = before.is_final();
    let mut removed = Vec::new();
    let mut leftovers = Vec::new();
    let mut retained: Vec<String> = Vec::new();
    let ended_now = !already_ended;
    match run.path.join("scratch").exists() {
        // Kept on purpose: the change of the sandbox could not be stored in a bundle.
        true => retained.push("scratch".to_owned()),
        false if ended_now => removed.push("overlays".to_owned()),
        false => {}
    }
    match run.path.join(CONTROL_SOCKET).exists() {
        true => leftovers.push("the control socket still exists".to_owned()),
        false if ended_now => removed.push("control-socket".to_owned()),
        false => {}
    }
    retained.extend(document["bundleId"].as_str().map(str::to_owned));
    if !already_ended {
        removed.insert(0, "processes".to_owned());
    }
    Ok(CleanupReport {
        complete: leftovers.is_empty(),
        already_ended,
        removed,
        retained,
        leftovers,
        ended: Some(ended(run, &document)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn state_of_a_sandbox_that_failed_or_died_is_failed_and_of_an_expired_one_destroyed() {
        for (document, wanted) in [
            (json!({"state": "ready"}), SandboxState::Ready),
            (json!({"state": "active"}), SandboxState::Active),
            (json!({"state": "destroying"}), SandboxState::Destroying),
            (
                json!({"state": "destroyed", "tombstone": {"how": "expired"}}),
                SandboxState::Destroyed,
            ),
            (
                json!({"state": "destroyed", "tombstone": {"how": "destroyed"}}),
                SandboxState::Destroyed,
            ),
            (
                json!({"state": "destroyed", "tombstone": {"how": "died"}}),
                SandboxState::Failed,
            ),
            (
                json!({"state": "destroyed", "tombstone": {"how": "failed"}}),
                SandboxState::Failed,
            ),
        ] {
            assert_eq!(state(&document), wanted, "{document}");
        }
    }
}
