//! Error type of follow-up runs and its mapping to error codes.

use rustix::io::Errno;
use serde_json::json;
use wp_codebox_artifacts::{Conflict, KeyError, PreflightError, StoreError};
use wp_codebox_contracts::{CodedError, ErrorBody, MAX_CHAIN, RunId};

/// Reason why a run cannot start from the change of an earlier bundle.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(detail = Self::detail)]
pub(crate) enum FollowUpError {
    /// No bundle of the site, or more than one, matches the reference in the request.
    #[error(transparent)]
    #[code(transparent)]
    Store(#[from] StoreError),
    /// The state directory cannot be opened.
    #[error("the state directory cannot be opened to read the earlier bundle: {source}")]
    #[code(StateDirInvalid)]
    State {
        /// Error number of the system call that failed.
        source: Errno,
    },
    /// The host's key, with which the bundle's signature is verified, cannot be read.
    #[error(transparent)]
    #[code(transparent)]
    Key(#[from] KeyError),
    /// The bundle does not verify, is not signed by this host, or may not be approved.
    #[error("the run cannot follow up on {run_id}, because its bundle cannot be used: {source}")]
    #[code(transparent)]
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
    #[code(ArtifactVerificationFailed)]
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
    #[code(InputInvalid)]
    Chain {
        /// Number of runs in the chain before the new run.
        length: usize,
    },
    /// The earlier bundle changed files in mounts that the new run does not have or can only read.
    #[error(
        "the earlier bundle changed {}, but the run has no writable mount there; give the run the mounts of the earlier run", .targets.join(", ")
    )]
    #[code(InputInvalid)]
    Mounts {
        /// Guest paths at which the new run needs a writable mount.
        targets: Vec<String>,
    },
    /// The exclude list of a mount covers a file that the earlier bundle changed, so the new run
    /// would not capture that file.
    #[error(
        "the exclude list of a mount covers {path}, which the earlier bundle changed; remove the entry that covers it"
    )]
    #[code(InputInvalid)]
    Excluded {
        /// Path of the changed file in its mount.
        path: String,
    },
    /// A review comment names a path that is neither a changed file of the earlier bundle nor in a
    /// mount.
    #[error(
        "follow_up_of.comments[{index}].path must be a changed file of the earlier bundle or a path in a mount"
    )]
    #[code(InputInvalid)]
    Comment {
        /// Index of the comment in the request's list of comments.
        index: usize,
    },
    /// The earlier runs of the chain used up a limit of the budget.
    #[error(
        "the earlier runs of this chain used {used} of the budget's {limit} {name}; raise budget.{name}, which counts over the whole chain"
    )]
    #[code(BudgetExhausted)]
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
    #[code(BaseChanged)]
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
    #[code(MountUnreadable)]
    Read {
        /// Guest path of the mount.
        target: String,
        /// Error number of the system call that failed.
        source: Errno,
    },
}

impl FollowUpError {
    /// The `data` of the body has the field, the files or the limit that caused the error.
    fn detail(&self, mut body: ErrorBody) -> ErrorBody {
        match self {
            Self::Store(_) | Self::Chain { .. } => body.with("field", "follow_up_of"),
            Self::Bundle { .. } => {
                body.message = self.to_string();
                body.with("field", "follow_up_of")
            }
            Self::Mounts { targets } => body
                .with("field", "mounts")
                .with("targets", targets.clone()),
            Self::Excluded { .. } => body.with("field", "mounts"),
            Self::Comment { index } => {
                body.with("field", format!("follow_up_of.comments[{index}].path"))
            }
            Self::Budget { name, .. } => body.with("budget", *name),
            Self::BaseChanged { conflicts, .. } => {
                let files: Vec<&str> = conflicts.iter().map(|c| c.path.as_str()).collect();
                body.with("files", json!(files))
                    .with("conflicts", json!(conflicts))
            }
            Self::State { .. } | Self::Key(_) | Self::Record { .. } | Self::Read { .. } => body,
        }
    }
}
