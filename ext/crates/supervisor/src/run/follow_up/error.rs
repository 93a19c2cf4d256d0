//! Error type of follow-up runs and its mapping to error codes.

use rustix::io::Errno;
use serde_json::json;
use wp_codebox_artifacts::{Conflict, KeyError, PreflightError, StoreError};
use wp_codebox_contracts::{ErrorBody, ErrorCode, MAX_CHAIN, RunId};

/// Reason why a run cannot continue an earlier bundle.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FollowUpError {
    /// The site has no such bundle, or several.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state directory cannot be opened.
    #[error("the state directory cannot be opened to read the earlier bundle: {source}")]
    State {
        /// Error number of the system call that failed.
        source: Errno,
    },
    /// The key of this host, which must have signed the bundle, cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The bundle does not verify, is not signed by this host, or may not be approved.
    #[error("the run cannot follow up on {run_id}, because its bundle cannot be used: {source}")]
    Bundle {
        /// Run that made the bundle.
        run_id: RunId,
        /// What is wrong with the bundle.
        source: PreflightError,
    },
    /// The earlier bundle's own record of its chain cannot be read.
    #[error(
        "the bundle of {run_id} has a record of its chain that this version cannot read ({source}); start a new run from the current files"
    )]
    Record {
        /// Run that made the bundle.
        run_id: RunId,
        /// Fault of the document.
        source: serde_json::Error,
    },
    /// The chain of follow-up runs is as long as it may become.
    #[error(
        "this would be follow-up {length} of a chain, but a chain has at most {MAX_CHAIN}; apply the change, then start a new run"
    )]
    Chain {
        /// Number of runs before the new one.
        length: usize,
    },
    /// The earlier bundle changed mounts that the new run does not have, or only for reading.
    #[error(
        "the earlier bundle changed {}, but the run has no writable mount there; give the run the mounts of the earlier run", .targets.join(", ")
    )]
    Mounts {
        /// Guest paths of the missing mounts.
        targets: Vec<String>,
    },
    /// The new run would not capture a file that the earlier bundle changed.
    #[error(
        "the exclude list of a mount covers {path}, which the earlier bundle changed; remove the name from the list"
    )]
    Excluded {
        /// Path of the changed file in its mount.
        path: String,
    },
    /// A comment is about a path that is neither a changed file nor in a mount.
    #[error(
        "follow_up_of.comments[{index}].path must be a changed file of the earlier bundle or a path in a mount"
    )]
    Comment {
        /// Position of the comment.
        index: usize,
    },
    /// The earlier runs of the chain used up a limit of the budget.
    #[error(
        "the earlier runs of this chain used {used} of the budget's {limit} {name}; raise budget.{name}, which counts over the whole chain"
    )]
    Budget {
        /// Name of the limit, e.g. `turns`.
        name: &'static str,
        /// Value of the limit.
        limit: u64,
        /// What the earlier runs used.
        used: u64,
    },
    /// A file that the earlier bundle changed is not what it was before that change.
    #[error(
        "{} of the files that the bundle of {run_id} changed differ from what its run started with, the first is {first:?}; start a new run from the current files", .conflicts.len()
    )]
    BaseChanged {
        /// Run that made the bundle.
        run_id: RunId,
        /// Path of the first file that differs.
        first: String,
        /// All files that differ, with the reason for each.
        conflicts: Vec<Conflict>,
    },
    /// The directory of a mount cannot be compared with the earlier change.
    #[error("the directories of mount {target} cannot be read: {source}")]
    Read {
        /// Guest path of the mount.
        target: String,
        /// Error number of the system call that failed.
        source: Errno,
    },
}

impl FollowUpError {
    /// Returns code and message of this error as the JSON body that callers receive. Its `data` has
    /// the field, the files or the limit that caused it.
    pub(crate) fn body(&self) -> ErrorBody {
        let text = self.to_string();
        let invalid = |field: &str| {
            ErrorBody::new(ErrorCode::InputInvalid, text.clone()).with("field", field)
        };
        match self {
            Self::Store(error) => error.body().with("field", "follow_up_of"),
            Self::Key(error) => error.body(),
            Self::State { .. } => ErrorBody::new(ErrorCode::StateDirInvalid, text),
            Self::Bundle { source, .. } => {
                let mut body = source.body();
                body.message = text;
                body.with("field", "follow_up_of")
            }
            Self::Record { .. } => ErrorBody::new(ErrorCode::ArtifactVerificationFailed, text),
            Self::Chain { .. } => invalid("follow_up_of"),
            Self::Mounts { targets } => invalid("mounts").with("targets", targets.clone()),
            Self::Excluded { .. } => invalid("mounts"),
            Self::Comment { index } => invalid(&format!("follow_up_of.comments[{index}].path")),
            Self::Budget { name, .. } => {
                ErrorBody::new(ErrorCode::BudgetExhausted, text).with("budget", *name)
            }
            Self::BaseChanged { conflicts, .. } => {
                let files: Vec<&str> = conflicts.iter().map(|c| c.path.as_str()).collect();
                ErrorBody::new(ErrorCode::BaseChanged, text)
                    .with("files", json!(files))
                    .with("conflicts", json!(conflicts))
            }
            Self::Read { .. } => ErrorBody::new(ErrorCode::MountUnreadable, text),
        }
    }
}
