//! Error type of the git branch adapter and its mapping to error codes.

use serde_json::json;
use wp_codebox_artifacts::Conflict;
use wp_codebox_contracts::{CodedError, ErrorBody};

/// Reason why approved files were not committed. The repository is unchanged, except for unused
/// loose objects, which `git gc` removes.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(detail = Self::detail)]
pub(super) enum GitBranchError {
    /// The host has no git.
    #[error("this host has no git in /usr/local/bin or /usr/bin; install it")]
    #[code(GitRepositoryInvalid)]
    NoProgram,
    /// The repository did not pass the checks or has an unsupported format.
    #[error("the repository cannot be used: {why}")]
    #[code(GitRepositoryInvalid)]
    Repository {
        /// What is wrong, and what to do.
        why: String,
    },
    /// The base branch does not exist.
    #[error("the repository has no branch {base:?}; set the base branch to one that exists")]
    #[code(GitRepositoryInvalid)]
    NoBase {
        /// Name of the base branch.
        base: String,
    },
    /// A name of a branch or a directory in the repository is not valid.
    #[error("{what} cannot be used; correct the settings of the git branch")]
    #[code(GitRepositoryInvalid)]
    Name {
        /// What has the invalid name, and the name.
        what: String,
    },
    /// The branch exists, but this site did not make its last commit; or it is a symbolic
    /// reference.
    #[error(
        "the branch {branch:?} exists, but this site did not make its last commit; rename, merge or delete that branch"
    )]
    #[code(GitBranchConflict)]
    Foreign {
        /// Name of the branch.
        branch: String,
    },
    /// A work tree has the branch checked out: after the commit its files would differ from HEAD.
    #[error(
        "the branch {branch:?} is checked out in a work tree of the repository; check out another branch there"
    )]
    #[code(GitBranchConflict)]
    CheckedOut {
        /// Name of the branch.
        branch: String,
    },
    /// Git refused the new value of the branch.
    #[error(
        "the branch {branch:?} could not be set: another program changed or locked it, or its name conflicts with another branch, as a and a/b do: {why}"
    )]
    #[code(GitBranchConflict)]
    NotSet {
        /// Name of the branch.
        branch: String,
        /// First line of git's message.
        why: String,
    },
    /// Files at the tip of the branch are not in the state that the change starts from.
    #[error(
        "{count} files on the branch are not in the state from which the run started, the first is {first:?}; nothing was committed; run again on the current files"
    )]
    #[code(ApplyConflict)]
    Conflict {
        /// Number of conflicts.
        count: usize,
        /// Path of the first conflict in the repository.
        first: String,
        /// Every conflict, with its path and reason.
        conflicts: Vec<Conflict>,
    },
    /// All approved entries are directories, which git does not store.
    #[error(
        "nothing is left to commit: git stores no directories without files; approve files as well"
    )]
    #[code(ApprovedFilesInvalid)]
    Nothing,
    /// A git program failed.
    #[error("git {command} failed: {why}; check the repository with `git fsck`")]
    #[code(GitFailed)]
    Git {
        /// Subcommand of git.
        command: String,
        /// First line of git's error message, or the reason why its output was not used.
        why: String,
    },
    /// The record of the commits that this site made on the branch is damaged.
    #[error(
        "the record {name} in git-branch/ of the site's state directory, with the commits that this site made on the branch, is damaged; restore it from a backup, or delete it together with the branch"
    )]
    #[code(StateDirInvalid)]
    Record {
        /// File name of the record. Its path is not for the caller, who may be a user of the site.
        name: String,
    },
    /// A file in the state directory cannot be read or written.
    #[error(
        "a temporary file of the commit, in the state directory, cannot be read or written: {source}; check permissions and free space there"
    )]
    #[code(GitFailed)]
    Work {
        /// I/O error of the failed call.
        #[from]
        source: std::io::Error,
    },
}

impl GitBranchError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Conflict { conflicts, .. } => body.with("conflicts", json!(conflicts)),
            Self::Foreign { branch }
            | Self::CheckedOut { branch }
            | Self::NotSet { branch, .. } => body.with("branch", branch.as_str()),
            _ => body,
        }
    }
}
