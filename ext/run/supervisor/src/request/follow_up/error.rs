//! Error type of follow-up runs and its mapping to error codes.

use rustix::io::Errno;
use serde_json::json;
use wp_codebox_artifacts::{Conflict, KeyError, PreflightError, StoreError};
use wp_codebox_contracts::{ErrorBody, ErrorCode, MAX_CHAIN, RunId};

/// Reason why a run cannot start from the change of an earlier bundle.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FollowUpError {
    /// No bundle of the site, or more than one, matches the reference in the request.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state directory cannot be opened.
    #[error("the state directory cannot be opened to read the earlier bundle: {source}")]
    State {
        /// Error number of the system call that failed.
        source: Errno,
    },
    /// The host's key, with which the bundle's signature is verified, cannot be read.
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
    /// The earlier bundle was made by a follow-up run, and its `files/follow-up.json`, which lists
    /// the runs before that run, cannot be parsed.
    #[error(
        "the bundle of {run_id} has a list of earlier runs that this version cannot read ({source}); start a new run from the current files"
    )]
    Record {
        /// Run that made the bundle.
        run_id: RunId,
        /// Error of the JSON parser.
        source: serde_json::Error,
    },
    /// The chain of follow-up runs already has the maximum length.
    #[error(
        "this would be follow-up {length} in a chain of runs, but at most {MAX_CHAIN} are allowed; apply the change, then start a new run"
    )]
    Chain {
        /// Number of runs in the chain before the new run.
        length: usize,
    },
    /// The earlier bundle changed files in mounts that the new run does not have or can only read.
    #[error(
        "the earlier bundle changed {}, but the run has no writable mount there; give the run the mounts of the earlier run", .targets.join(", ")
    )]
    Mounts {
        /// Guest paths at which the new run needs a writable mount.
        targets: Vec<String>,
    },
    /// The exclude list of a mount covers a file that the earlier bundle changed, so the new run
    /// would not capture that file.
    #[error(
        "the exclude list of a mount covers {path}, which the earlier bundle changed; remove the entry that covers it"
    )]
    Excluded {
        /// Path of the changed file in its mount.
        path: String,
    },
    /// A review comment names a path that is neither a changed file of the earlier bundle nor in a
    /// mount.
    #[error(
        "follow_up_of.comments[{index}].path must be a changed file of the earlier bundle or a path in a mount"
    )]
    Comment {
        /// Index of the comment in the request's list of comments.
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
    /// The source of a mount has a file that the earlier bundle changed and that now differs from
    /// its state before that change.
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
    /// A directory in a mount cannot be read to compare it with the earlier bundle's change.
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
