//! From the plan of a full guest to what its tree on the host holds. Pure.
//!
//! The plan stays the single description of a guest; here each of its steps becomes a
//! file operation below the root, a place of the host that stays where it is, or nothing.

use super::root::GuestRoot;
use crate::plan::OPCACHE;
use wp_codebox_contracts::{BindSource, GuestPath, HostSource, LaunchMount, LaunchPlan};

/// One step of laying out a tree. Paths are absolute host paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TreeStep {
    /// An empty directory.
    Directory { path: String, access: Access },
    /// A small file.
    File { path: String, contents: String },
    /// A link.
    Link { path: String, to: String },
    /// Copies, lowest first: the last source is a tree or file, those before it are layers.
    Copy {
        sources: Vec<HostSource>,
        path: String,
        access: Access,
        capture: Capture,
    },
    /// A place of the host that the guest reads.
    Place { path: String },
}

/// What the guest may do with a directory of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// What becomes of a copy after the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Capture {
    /// Nothing.
    None,
    /// It is compared with what it was copied from.
    Layer(u32),
    /// It takes the place of its source: a template is being built.
    Return,
}

/// A plan that needs what `reduced` does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum StepError {
    /// Something below a system directory that nothing can cover.
    #[error(
        "{path} must stay hidden, but lies below a system directory that every guest reads, and level reduced cannot cover it; move it out, or make level full possible"
    )]
    Exposed { path: GuestPath },
    /// A step with no meaning here.
    #[error("{path} cannot be shown at another path without mounts")]
    Elsewhere { path: GuestPath },
}

/// The steps of a plan, in its order.
pub(super) fn steps(plan: &LaunchPlan, root: &GuestRoot) -> Result<Vec<TreeStep>, StepError> {
    let mut all = Vec::new();
    for mount in &plan.mounts {
        all.extend(step(mount, root)?);
    }
    Ok(all)
}

fn step(mount: &LaunchMount, root: &GuestRoot) -> Result<Option<TreeStep>, StepError> {
    let own = |target: &GuestPath| root.owns(target.as_str());
    let below = |target: &GuestPath| root.below(target.as_str());
    let empty = |target: &GuestPath, access| TreeStep::Directory {
        path: below(target),
        access,
    };
    Ok(match mount {
        LaunchMount::Directory { target } => own(target).then(|| empty(target, Access::Read)),
        // Of what is made below /etc only PHP can be told another place.
        LaunchMount::File(entry) if entry.target.name() == "php.ini" => Some(TreeStep::File {
            path: below(&entry.target),
            contents: root.assignments(&entry.contents),
        }),
        LaunchMount::File(entry) => own(&entry.target).then(|| TreeStep::File {
            path: below(&entry.target),
            contents: entry.contents.clone(),
        }),
        LaunchMount::Symlink { target, to } => own(target).then(|| TreeStep::Link {
            path: below(target),
            to: root.path(to),
        }),
        LaunchMount::Bind {
            source: BindSource::Guest { path },
            target,
            ..
        } => {
            if !own(target) {
                return Err(StepError::Exposed {
                    path: target.clone(),
                });
            }
            Some(TreeStep::Link {
                path: below(target),
                to: below(path),
            })
        }
        LaunchMount::Bind {
            source: BindSource::Host(source),
            target,
            writable,
        } => Some(if target.as_str() == OPCACHE {
            empty(target, Access::Write)
        } else if own(target) {
            TreeStep::Copy {
                sources: vec![source.clone()],
                path: below(target),
                access: if *writable {
                    Access::Write
                } else {
                    Access::Read
                },
                capture: if *writable {
                    Capture::Return
                } else {
                    Capture::None
                },
            }
        } else if source.path == target.as_str() && !writable {
            TreeStep::Place {
                path: source.path.clone(),
            }
        } else {
            return Err(StepError::Elsewhere {
                path: target.clone(),
            });
        }),
        LaunchMount::Scratch { target, .. } => own(target).then(|| empty(target, Access::Write)),
        // Compiled files are keyed by the path of their source, which is another one here.
        LaunchMount::Overlay { target, .. } if target.as_str() == OPCACHE => {
            Some(empty(target, Access::Write))
        }
        LaunchMount::Overlay {
            lowers,
            target,
            capture,
        } => Some(TreeStep::Copy {
            sources: lowers.iter().rev().cloned().collect(),
            path: below(target),
            access: Access::Write,
            capture: capture.map_or(Capture::None, Capture::Layer),
        }),
        LaunchMount::Merged { lowers, target } => Some(TreeStep::Copy {
            sources: lowers.iter().rev().cloned().collect(),
            path: below(target),
            access: Access::Read,
            capture: Capture::None,
        }),
        LaunchMount::Proc | LaunchMount::Dev => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::{CallSet, IsolationLevel, LaunchPurpose, Limits, TmpfsEntry};

    fn guest(path: &str) -> GuestPath {
        GuestPath::new(path).unwrap()
    }

    fn plan(mounts: Vec<LaunchMount>) -> LaunchPlan {
        LaunchPlan {
            version: wp_codebox_contracts::PLAN_VERSION,
            purpose: LaunchPurpose::Serve,
            level: IsolationLevel::Full,
            guest_id: 1000,
            identity: wp_codebox_contracts::PlanIdentity::Shared,
            hostname: "codebox".to_owned(),
            mounts,
            writable: Vec::new(),
            calls: CallSet::Programs,
            limits: Limits::default(),
            egress: None,
            mail: None,
        }
    }

    fn bind(from: &str, to: &str) -> LaunchMount {
        LaunchMount::Bind {
            source: BindSource::Host(HostSource::of(from)),
            target: guest(to),
            writable: false,
        }
    }

    #[test]
    fn a_plan_becomes_copies_links_and_places() {
        let file = |path: &str| {
            LaunchMount::File(TmpfsEntry {
                target: guest(path),
                contents: "a=/tmp\n".to_owned(),
                mode: 0o444,
            })
        };
        let mounts = vec![
            LaunchMount::Proc,
            LaunchMount::Dev,
            bind("/usr", "/usr"),
            LaunchMount::Symlink {
                target: guest("/bin"),
                to: "usr/bin".to_owned(),
            },
            file("/etc/passwd"),
            file("/etc/php/8.2/cli/php.ini"),
            bind("/share", "/opt/codebox"),
            LaunchMount::Scratch {
                target: guest("/tmp"),
                mode: 0o1777,
            },
            LaunchMount::Scratch {
                target: guest("/dev/shm"),
                mode: 0o1777,
            },
            LaunchMount::Overlay {
                lowers: vec![HostSource::of("/change"), HostSource::of("/copy")],
                target: guest("/workspace/a"),
                capture: Some(0),
            },
            LaunchMount::Bind {
                source: BindSource::Guest {
                    path: guest("/workspace/a"),
                },
                target: guest("/wordpress/wp-content/plugins/a"),
                writable: true,
            },
        ];
        let root = GuestRoot::new("/r").unwrap();
        let lines: Vec<String> = steps(&plan(mounts), &root)
            .unwrap()
            .into_iter()
            .map(|step| match step {
                TreeStep::Directory { path, access } => format!("directory {path} {access:?}"),
                TreeStep::File { path, contents } => format!("file {path} {}", contents.trim()),
                TreeStep::Link { path, to } => format!("link {path} {to}"),
                TreeStep::Copy {
                    sources,
                    path,
                    access,
                    capture,
                } => {
                    let from: Vec<_> = sources.iter().map(|s| s.path.as_str()).collect();
                    format!("copy {} {path} {access:?} {capture:?}", from.join("+"))
                }
                TreeStep::Place { path } => format!("place {path}"),
            })
            .collect();
        assert_eq!(
            lines,
            [
                "place /usr",
                "file /r/etc/php/8.2/cli/php.ini a=/r/tmp",
                "copy /share /r/opt/codebox Read None",
                "directory /r/tmp Write",
                "copy /copy+/change /r/workspace/a Write Layer(0)",
                "link /r/wordpress/wp-content/plugins/a /r/workspace/a",
            ]
        );
    }

    #[test]
    fn what_would_have_to_be_covered_is_refused() {
        let root = GuestRoot::new("/r").unwrap();
        let hidden = LaunchMount::Bind {
            source: BindSource::Guest {
                path: guest("/run/codebox/empty"),
            },
            target: guest("/usr/share/wordpress"),
            writable: false,
        };
        assert!(matches!(
            steps(&plan(vec![hidden]), &root),
            Err(StepError::Exposed { .. })
        ));
        let moved = steps(&plan(vec![bind("/srv/x", "/srv/y")]), &root);
        assert!(matches!(moved, Err(StepError::Elsewhere { .. })));
    }
}
