//! One guest of a level, and where it finds its own files.

use crate::world::{Spec, directory, launch, request, run_request, world};
use std::sync::atomic::{AtomicU32, Ordering};
use wp_codebox_backend_native::{Guest, GuestTree, LaunchError, LayoutError};
use wp_codebox_contracts::{ExecRequest, IsolationLevel, LaunchPlan};

/// A guest.
pub struct Bed {
    pub guest: Guest,
    /// Its directories on the host's disk, where it has no view of its own.
    tree: Option<GuestTree>,
}

/// Why there is no guest.
#[derive(Debug)]
pub enum NotLaunched {
    /// A pinned source was not at its path.
    Moved,
    /// Anything else.
    Other(String),
}

fn moved(errno: i32, error: String) -> NotLaunched {
    match errno {
        libc::ESTALE | libc::ELOOP => NotLaunched::Moved,
        _ => NotLaunched::Other(error),
    }
}

impl Bed {
    /// Launches a guest of this level.
    pub fn launch(level: IsolationLevel, spec: &Spec) -> Self {
        Self::try_launch(level, spec).unwrap()
    }

    /// The same, and why not.
    pub fn try_launch(level: IsolationLevel, spec: &Spec) -> Result<Self, NotLaunched> {
        let start = |plan: &LaunchPlan| {
            launch(plan).map_err(|error| match error {
                LaunchError::Step { errno, .. } => moved(errno, error.to_string()),
                other => NotLaunched::Other(other.to_string()),
            })
        };
        match level {
            IsolationLevel::Full => Ok(Self {
                guest: start(&spec.plan())?,
                tree: None,
            }),
            IsolationLevel::Reduced => {
                static NUMBER: AtomicU32 = AtomicU32::new(0);
                let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                // Two processes may share a world.
                let place = directory(&format!("attack-{}-{number}", std::process::id()));
                let tree =
                    GuestTree::lay_out(&spec.plan(), &place.join("guest")).map_err(|error| {
                        match &error {
                            LayoutError::Io { source, .. } => {
                                moved(source.raw_os_error().unwrap_or(0), error.to_string())
                            }
                            _ => NotLaunched::Other(error.to_string()),
                        }
                    })?;
                Ok(Self {
                    guest: start(tree.plan())?,
                    tree: Some(tree),
                })
            }
            IsolationLevel::None => panic!("no guest has level none"),
        }
    }

    /// Where the guest finds what a plan puts at this path.
    pub fn path(&self, path: &str) -> String {
        self.tree
            .as_ref()
            .map_or_else(|| path.to_owned(), |tree| tree.root().path(path))
    }

    /// A request whose arguments are passed on as they are.
    pub fn request(&self, argv: &[&str]) -> ExecRequest {
        let given = request(argv);
        let Some(tree) = &self.tree else { return given };
        let translated = tree.root().request(&given, &world().php).unwrap();
        ExecRequest {
            argv: given.argv,
            ..translated
        }
    }

    /// Runs a program that must succeed; its output.
    pub fn must(&mut self, argv: &[&str]) -> String {
        let request = self.request(argv);
        run_request(&mut self.guest, &request, &[]).ok()
    }
}
