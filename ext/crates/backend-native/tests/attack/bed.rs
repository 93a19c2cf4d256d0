//! One guest of a level, and where it finds its own files.

use crate::world::{Spec, launch, request, run_request};
use wp_codebox_backend_native::{Guest, LaunchError};
use wp_codebox_contracts::{ExecRequest, IsolationLevel, LaunchPlan};

/// A guest.
pub struct Bed {
    pub guest: Guest,
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
            }),
            IsolationLevel::Reduced => panic!("this build has no guests of level reduced"),
            IsolationLevel::None => panic!("no guest has level none"),
        }
    }

    /// Where the guest finds what a plan puts at this path.
    pub fn path(&self, path: &str) -> String {
        path.to_owned()
    }

    /// A request whose arguments are passed on as they are.
    pub fn request(&self, argv: &[&str]) -> ExecRequest {
        request(argv)
    }

    /// Runs a program that must succeed; its output.
    pub fn must(&mut self, argv: &[&str]) -> String {
        let request = self.request(argv);
        run_request(&mut self.guest, &request, &[]).ok()
    }
}
