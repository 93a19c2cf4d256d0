//! A guest of one isolation level, and the translation of paths to those that the guest uses.

use crate::fixture::{Spec, directory, fixture, launch, request, run_request};
use wp_codebox_backend_native::{Guest, GuestTree, LaunchError};
use wp_codebox_contracts::{ExecRequest, IsolationLevel, LaunchPlan};

/// A guest in which attacks are tried.
pub struct AttackGuest {
    pub guest: Guest,
    /// Tree of the guest's own directories on the host; only at level `reduced`.
    tree: Option<GuestTree>,
}

/// Reason why a guest was not launched.
#[derive(Debug)]
pub enum NotLaunched {
    /// A source with a recorded inode was refused, because its path led to a different inode.
    Moved,
    /// The launch failed with an error other than a refused source.
    Other(String),
}

fn moved(errno: i32, error: String) -> NotLaunched {
    match errno {
        libc::ESTALE | libc::ELOOP => NotLaunched::Moved,
        _ => NotLaunched::Other(error),
    }
}

impl AttackGuest {
    /// Launches a guest of this level; panics on failure.
    pub fn launch(level: IsolationLevel, spec: &Spec) -> Self {
        Self::try_launch(level, spec).unwrap()
    }

    /// Launches a guest of this level, or returns why it was not launched.
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

    /// Returns the path under which programs in the guest find `path` of the launch plan.
    pub fn path(&self, path: &str) -> String {
        match &self.tree {
            Some(tree) => tree.root().path(path),
            None => path.to_owned(),
        }
    }

    /// Builds a request to run a program. Paths in the arguments are not translated: the program
    /// gets the arguments as given here.
    pub fn request(&self, argv: &[&str]) -> ExecRequest {
        let plain = request(argv);
        match &self.tree {
            Some(tree) => ExecRequest {
                argv: plain.argv.clone(),
                ..tree.root().request(&plain, &fixture().php).unwrap()
            },
            None => plain,
        }
    }

    /// Runs a program in the guest and returns its output; panics when the program fails.
    pub fn must(&mut self, argv: &[&str]) -> String {
        let request = self.request(argv);
        run_request(&mut self.guest, &request, &[]).ok()
    }
}
