//! Captures the changes of a guest's mounts and writes them as overlay layers for the guest that
//! runs the checks.

use crate::prepared::change_layer;
use crate::prepared::context::RunContext;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use wp_codebox_artifacts::{
    CaptureLimits, Change, MountChanges, Node, capture, capture_difference,
};
use wp_codebox_contracts::{ErrorBody, ErrorCode, HostSource, MountAccess};
use wp_codebox_runtime::{CapturedMounts, RunDir, Runtime};

/// Returns the current changes while the guest runs, for the agent's `diff` tool and for clients
/// that sync files. A file may be half written; the final capture happens after the guest is dead.
pub(crate) fn look(
    context: &RunContext<'_>,
    runtime: &dyn Runtime,
) -> Result<Vec<Option<MountChanges>>, ErrorBody> {
    capture_all(context, &runtime.look()?)
}

/// Returns the changes of every writable mount by mount index; `None` for mounts that are not
/// captured.
pub(crate) fn capture_all(
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
                    let target = mount.mount.target.as_str();
                    let others = context.shown().map(|other| other.mount.target.as_str());
                    let points = mount_points(target, others);
                    capture(baseline, upper.as_fd(), &rules, &limits)
                        .map(|changes| without_mount_points(changes, &points))
                }
                CapturedMounts::Trees(all) => {
                    let tree = found(all).ok_or_else(|| {
                        missing("the guest moved or replaced the mounted directory itself, so its change cannot be determined")
                    })?;
                    capture_difference(baseline, tree.as_fd(), &rules, &limits)
                }
            }
            .map(Some)
            .map_err(ErrorBody::from)
        })
        .collect()
}

/// Returns the paths in the mount at `target` at which the launcher attaches other mounts, relative
/// to `target`. The launcher creates missing ones as directories in the overlay of the outer mount.
fn mount_points<'a>(target: &str, others: impl Iterator<Item = &'a str>) -> Vec<&'a [u8]> {
    others
        .filter_map(|other| other.strip_prefix(target)?.strip_prefix('/'))
        .map(str::as_bytes)
        .collect()
}

/// Removes the directories that the launcher created as mount points. The guest cannot have changed
/// them, because another mount covers them. The guest made all other new directories.
fn without_mount_points(mut changes: MountChanges, points: &[&[u8]]) -> MountChanges {
    changes.entries.retain(|entry| {
        let is_new = entry.change == Change::Added(Node::Directory);
        !is_new || !points.contains(&entry.path.as_slice())
    });
    changes
}

/// Returns whether the recipe says that changes of this mount are not part of the result.
fn unwanted(context: &RunContext<'_>, index: usize) -> bool {
    let target = context.mounts[index].mount.target.as_str();
    let workflow = context.prepared.request.workflow.iter();
    workflow.flat_map(|w| &w.uncaptured).any(|t| t == target)
}

/// Writes the change of each mount as an overlay layer into the run's scratch directory.
pub(crate) fn write_layers(
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

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_artifacts::{EntryChange, FileMode};

    #[test]
    fn only_empty_new_directories_at_mount_points_are_left_out_of_a_capture() {
        let must_use = "/wordpress/wp-content/mu-plugins";
        let others = [
            must_use,
            "/wordpress/wp-content/mu-plugins/contained-runtime/base",
            "/wordpress/wp-content/mu-plugins-other/x",
            "/wordpress/wp-content/plugins/agent",
        ];
        let points = mount_points(must_use, others.into_iter());
        assert_eq!(points, [b"contained-runtime/base"]);

        let file = Node::File {
            mode: FileMode::Regular,
            bytes: Vec::new(),
        };
        let entry = |path: &str, change| EntryChange {
            path: path.as_bytes().to_vec(),
            change,
        };
        let made = entry("contained-runtime/base", Change::Added(Node::Directory));
        let rest = [
            entry("contained-runtime/other", Change::Added(Node::Directory)),
            entry(
                "deep/contained-runtime/base",
                Change::Added(Node::Directory),
            ),
            entry("contained-runtime/base/a.php", Change::Added(file.clone())),
            entry("contained-runtime/base", Change::Added(file)),
            entry("contained-runtime/base", Change::Deleted(Node::Directory)),
        ];
        let changes = MountChanges {
            entries: [vec![made], rest.to_vec()].concat(),
            ..MountChanges::default()
        };
        // Control: if no other mount is attached there, the guest made the directory.
        let all = without_mount_points(changes.clone(), &[]);
        assert_eq!(all.entries.len(), 6);
        assert_eq!(without_mount_points(changes, &points).entries, rest);
    }
}
