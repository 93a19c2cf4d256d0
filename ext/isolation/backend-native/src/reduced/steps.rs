//! Translates the plan of a guest at level `full` to the steps that create its tree on the host.
//! Computes only; reads no files.
//!
//! One plan describes a guest at both levels. Each of its steps becomes a file operation below the
//! tree's root, permission to read a host path without copying it, or nothing.

use super::root::GuestRoot;
use crate::php::SETTINGS;
use crate::plan::{OPCACHE, WP_CLI};
use wp_codebox_contracts::{BindSource, GuestPath, HostSource, LaunchMount, LaunchPlan};

/// A step of creating the tree. Paths are absolute host paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TreeStep {
    /// Creates an empty directory.
    Directory { path: String, access: Access },
    /// Creates a small file.
    File { path: String, contents: String },
    /// Creates a symbolic link.
    Link { path: String, to: String },
    /// Copies the first source, a tree or a file. The other sources are overlay layers, which are
    /// then applied to the copy in this order.
    Copy {
        sources: Vec<HostSource>,
        path: String,
        access: Access,
        capture: Capture,
    },
    /// Allows the guest to read a host path where it is, without copying it.
    HostPath { path: String },
}

/// Whether the guest may write a directory of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// What happens to a copied directory after the guest has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Capture {
    /// The copy is discarded.
    None,
    /// The changes are captured by comparing the copy with its source; the number is the layer
    /// index.
    Layer(u32),
    /// The copy replaces its source, because a template is being built.
    Return,
}

/// Reason why a plan cannot be used at level `reduced`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum StepError {
    /// A path below a system directory must be hidden, which only a mount can do.
    #[error(
        "level reduced cannot hide {path}, which lies below a system directory that every guest reads; move it elsewhere, or make level full possible"
    )]
    Exposed { path: GuestPath },
    /// A host path is to be shown at another guest path, which only a mount can do.
    #[error(
        "guest path {path} cannot show a host path with a different name, because level reduced has no mounts; make level full possible"
    )]
    Elsewhere { path: GuestPath },
}

/// Returns the steps that create the tree, in the order of the plan.
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
        // PHP is the only program whose configuration below /etc can be moved (PHPRC).
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
        // PHPRC and PHP_INI_SCAN_DIR keep PHP from the configuration that these steps cover.
        LaunchMount::Bind {
            source: BindSource::Guest { path },
            ..
        } if path.as_str().starts_with(SETTINGS) => None,
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
        // `wp` then uses the phar of the share directory, a single file, which is faster to copy.
        LaunchMount::Bind { target, .. } if target.as_str() == WP_CLI => None,
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
            TreeStep::HostPath {
                path: source.path.clone(),
            }
        } else {
            return Err(StepError::Elsewhere {
                path: target.clone(),
            });
        }),
        LaunchMount::Scratch { target, .. } => own(target).then(|| empty(target, Access::Write)),
        // The opcode cache is keyed by source paths, which differ here, so it is not copied.
        LaunchMount::Overlay { target, .. } if target.as_str() == OPCACHE => {
            Some(empty(target, Access::Write))
        }
        // Programs would see the host's own directory at this path, not the copy below the root.
        LaunchMount::Overlay { target, .. } | LaunchMount::Merged { target, .. }
            if !own(target) =>
        {
            return Err(StepError::Elsewhere {
                path: target.clone(),
            });
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
            scratch: None,
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
    fn launch_plan_mounts_become_copies_links_and_host_paths_at_level_reduced() {
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
            LaunchMount::Bind {
                source: BindSource::Guest {
                    path: guest(SETTINGS),
                },
                target: guest("/usr/local/etc/php/conf.d"),
                writable: false,
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
                TreeStep::HostPath { path } => format!("place {path}"),
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
    fn hidden_paths_and_mounts_outside_the_guest_directories_are_refused_at_isolation_level_reduced()
     {
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
        let overlay = |target: &str| LaunchMount::Overlay {
            lowers: vec![HostSource::of("/copy")],
            target: guest(target),
            capture: Some(0),
        };
        assert!(steps(&plan(vec![overlay("/tmp/a")]), &root).is_ok());
        assert!(matches!(
            steps(&plan(vec![overlay("/harness")]), &root),
            Err(StepError::Elsewhere { .. })
        ));
        let moved = steps(&plan(vec![bind("/srv/x", "/srv/y")]), &root);
        assert!(matches!(moved, Err(StepError::Elsewhere { .. })));
    }
}
