//! One guest of a level, and where it finds its own files.

use crate::world::{Spec, directory, launch, request, run_request, world};
use wp_codebox_backend_native::{Guest, GuestTree, LaunchError};
use wp_codebox_contracts::{ExecRequest, IsolationLevel, LaunchPlan};

/// A guest.
pub struct Bed {
    pub guest: Guest,
    /// At `reduced`: the directories on the host that are its own.
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
                let place = directory("tree").join("guest");
                let tree = GuestTree::lay_out(&spec.plan(), &place).map_err(|error| {
                    let source = std::error::Error::source(&error)
                        .and_then(|source| source.downcast_ref::<std::io::Error>())
                        .and_then(std::io::Error::raw_os_error);
                    moved(source.unwrap_or(0), error.to_string())
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
        match &self.tree {
            Some(tree) => tree.root().path(path),
            None => path.to_owned(),
        }
    }

    /// A request whose arguments are passed on as they are.
    pub fn request(&self, argv: &[&str]) -> ExecRequest {
        let plain = request(argv);
        match &self.tree {
            Some(tree) => ExecRequest {
                argv: plain.argv.clone(),
                ..tree.root().request(&plain, &world().php).unwrap()
            },
            None => plain,
        }
    }

    /// Runs a program that must succeed; its output.
    pub fn must(&mut self, argv: &[&str]) -> String {
        let request = self.request(argv);
        run_request(&mut self.guest, &request, &[]).ok()
    }
}
