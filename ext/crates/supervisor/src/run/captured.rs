//! Captures the changes of a guest's mounts and writes them as overlay layers for the guest that
//! runs the checks.

use super::change_layer;
use super::context::RunContext;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use wp_codebox_artifacts::{CaptureLimits, MountChanges, capture, capture_difference};
use wp_codebox_contracts::{ErrorBody, ErrorCode, HostSource, MountAccess};
use wp_codebox_runtime::{CapturedMounts, RunDir, Runtime};

/// Returns the current changes while the guest runs, for the agent's `diff` tool and for clients
/// that sync files. A file may be half written; the final capture happens after the guest is dead.
pub(super) fn look(
    context: &RunContext<'_>,
    runtime: &dyn Runtime,
) -> Result<Vec<Option<MountChanges>>, ErrorBody> {
    capture_all(context, &runtime.look()?)
}

/// Returns the changes of every writable mount by mount index; `None` for mounts that are not
/// captured.
pub(super) fn capture_all(
    context: &RunContext<'_>,
    left: &CapturedMounts,
) -> Result<Vec<Option<MountChanges>>, ErrorBody> {
    context
        .mounts
        .iter()
        .enumerate()
        .map(|(index, mount)| {
            if mount.mount.request.mode == MountAccess::Readonly || unwanted(context, index) {
                return Ok(None);
            }
            let found = |all: &BTreeMap<u32, OwnedFd>| {
                let index = u32::try_from(index).ok()?;
                all.get(&index)?.try_clone().ok()
            };
            let missing = |what: &str| {
                let target = &mount.mount.target;
                ErrorBody::new(ErrorCode::RunFailed, format!("mount {target}: {what}"))
            };
            let (baseline, rules) = (mount.baseline.as_fd(), mount.rules());
            let limits = CaptureLimits::default();
            match left {
                CapturedMounts::Layers(all) => {
                    let upper = found(all).ok_or_else(|| {
                        missing("the overlay layer with the guest's changes is missing")
                    })?;
                    capture(baseline, upper.as_fd(), &rules, &limits)
                }
                CapturedMounts::Trees(all) => {
                    let tree = found(all).ok_or_else(|| {
                        missing("the guest moved or replaced the mounted directory itself, so its change cannot be determined")
                    })?;
                    capture_difference(baseline, tree.as_fd(), &rules, &limits)
                }
            }
            .map(Some)
            .map_err(|e| e.body())
        })
        .collect()
}

/// Returns whether the recipe says that changes of this mount are not part of the result.
fn unwanted(context: &RunContext<'_>, index: usize) -> bool {
    let target = context.mounts[index].mount.target.as_str();
    let workflow = context.prepared.request.workflow.iter();
    workflow.flat_map(|w| &w.uncaptured).any(|t| t == target)
}

/// Writes the change of each mount as an overlay layer into the run's scratch directory.
pub(super) fn write_layers(
    run_dir: &RunDir,
    changes: &[Option<MountChanges>],
) -> Result<Vec<Option<HostSource>>, ErrorBody> {
    changes
        .iter()
        .enumerate()
        .map(|(index, changes)| {
            let Some(changes) = changes.as_ref().filter(|c| !c.entries.is_empty()) else {
                return Ok(None);
            };
            let layer = change_layer::write(run_dir, &format!("change-{index}"), changes)?;
            Ok(Some(layer.place))
        })
        .collect()
}
