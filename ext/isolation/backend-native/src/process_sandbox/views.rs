//! Host paths of a launch plan that the launcher must be able to open inside a process wrapper.

use wp_codebox_contracts::{BindSource, HostSource, LaunchMount, LaunchPlan};
use wp_codebox_process_wrapper::{Link, MountAccess};

/// A host path that the wrapper must show, and the path at which the guest gets it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct View {
    /// Absolute host path.
    pub(super) host: String,
    /// Path in the guest.
    pub(super) guest: String,
    /// Whether the guest writes the host path directly, which happens only while a template is
    /// built.
    pub(super) access: MountAccess,
}

/// Returns the host paths of the launch plan, each once, parents first. Leaves out a path below
/// another one with the same access: the outer directory includes it, and a separate mount inside
/// the outer directory would prevent that directory from being the lower directory of an overlay.
pub(super) fn views(plan: &LaunchPlan) -> Vec<View> {
    let mut all: Vec<View> = plan.mounts.iter().flat_map(of_step).collect();
    // If a path occurs more than once, its writable entry comes first in this order and is kept.
    all.sort_by(|a, b| (&a.host, b.access, &a.guest).cmp(&(&b.host, a.access, &b.guest)));
    all.dedup_by(|later, first| later.host == first.host);
    let mut kept: Vec<View> = Vec::new();
    for view in all {
        let nearest = kept
            .iter()
            .rev()
            .find(|outer| is_below(&view.host, &outer.host));
        if nearest.is_none_or(|outer| outer.access != view.access) {
            kept.push(view);
        }
    }
    kept
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

fn of_step(step: &LaunchMount) -> Vec<View> {
    let view = |source: &HostSource, target: &str, access| View {
        host: source.path.clone(),
        guest: target.to_owned(),
        access,
    };
    match step {
        LaunchMount::Bind {
            source: BindSource::Host(source),
            target,
            writable,
        } => {
            let access = if *writable {
                MountAccess::Write
            } else {
                MountAccess::Read
            };
            vec![view(source, target.as_str(), access)]
        }
        LaunchMount::Overlay { lowers, target, .. } | LaunchMount::Merged { lowers, target } => {
            lowers
                .iter()
                .map(|lower| view(lower, target.as_str(), MountAccess::Read))
                .collect()
        }
        LaunchMount::Bind {
            source: BindSource::Guest { .. },
            ..
        }
        | LaunchMount::Directory { .. }
        | LaunchMount::File(_)
        | LaunchMount::Symlink { .. }
        | LaunchMount::Scratch { .. }
        | LaunchMount::Proc
        | LaunchMount::Dev => Vec::new(),
    }
}

/// Returns the plan's top-level symbolic links such as `/lib64`: a dynamically linked launcher needs
/// them like the guest does.
pub(super) fn system_links(plan: &LaunchPlan) -> Vec<Link> {
    plan.mounts
        .iter()
        .filter_map(|step| match step {
            LaunchMount::Symlink { target, to } if target.as_str().rfind('/') == Some(0) => {
                Some(Link {
                    path: target.as_str().to_owned(),
                    to: to.clone(),
                })
            }
            _ => None,
        })
        .collect()
}
