//! Error type of an apply or undo and its mapping to error codes.

use rustix::io::Errno;
use serde_json::json;
use wp_codebox_artifacts::Conflict;
use wp_codebox_contracts::{CodedError, ErrorBody};

/// Reason why changes were not applied or not undone. After every error except [`Self::Stuck`] and
/// [`Self::Lost`], the target is as it was before the call.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum ApplyError {
    /// Another apply or undo holds the lock of the target.
    #[error("another apply or undo works on {target}; wait until it has ended")]
    #[code(Busy)]
    Busy {
        /// Host path of the target directory.
        target: String,
    },
    /// Files of the target are not in the state that the change starts from.
    #[error(
        "{count} files of the target are not in the state from which the run started, the first is {first:?}; nothing was applied; run again on the current files"
    )]
    #[code(ApplyConflict)]
    Conflict {
        /// Number of conflicts.
        count: usize,
        /// Path of the first conflict, relative to the target.
        first: String,
        /// Every conflict, with its path and reason.
        conflicts: Vec<Conflict>,
    },
    /// A file of the target or of the journal cannot be read or written.
    #[error("cannot {action} {path:?}: {source}; nothing was changed")]
    #[code(ApplyFailed)]
    Io {
        /// What was attempted, e.g. `write the copy of`.
        action: &'static str,
        /// Path relative to the target or to the journal.
        path: String,
        /// Error number of the system call that failed.
        source: Errno,
    },
    /// This user cannot give a new file the owner, group or attributes that it must have.
    #[error(
        "this user cannot give the new {path:?} to user {uid} and group {gid}, to which the old one or its directory belongs; nothing was changed"
    )]
    #[code(
        ApplyFailed,
        hint = "run the command as root, or as that user if it is a member of that group; or choose the other files"
    )]
    Ownership {
        /// Path relative to the target.
        path: String,
        /// Id of the user.
        uid: u32,
        /// Id of the group.
        gid: u32,
    },
    /// A step failed and an earlier step could not be reversed. The journal still has all old
    /// contents.
    #[error(
        "cannot {action} {path:?}: {source}; the change is incomplete; remove the cause, then repeat the call to finish it"
    )]
    #[code(ApplyFailed)]
    Stuck {
        /// What could not be done, e.g. `remove`.
        action: &'static str,
        /// Path relative to the target.
        path: String,
        /// Error number of the system call that failed.
        source: Errno,
    },
    /// Targets of an interrupted change are missing, or other directories are at their paths. In the
    /// other targets, the change was put back.
    #[error(
        "the interrupted change {id} was put back, except in {}: the directory is missing, or another one is at its path", .targets.join(", ")
    )]
    #[code(
        ApplyFailed,
        hint = "nothing is to be done if you removed the directory; otherwise restore it at its path, and the next apply, undo or log puts its files back; until `wp-codebox gc` removes the record by its age, it keeps their earlier contents"
    )]
    Lost {
        /// Id of the applied or undone change.
        id: String,
        /// Host paths of the missing directories.
        targets: Vec<String>,
    },
    /// The target is not a directory that can be opened.
    #[error(
        "the target directory {target} cannot be opened: {source}; check that it exists and is readable"
    )]
    #[code(MountSourceInvalid)]
    Target {
        /// Host path of the target directory.
        target: String,
        /// Error number of the system call that failed.
        source: Errno,
    },
    /// No apply has this id, or the apply changed no file with this path.
    #[error(
        "nothing was undone, because no applied change matches {reference:?}; give the id of an applied change"
    )]
    #[code(ApplyNotFound)]
    NotFound {
        /// The id for which the caller asked; for a file of an apply, `<file> in <id>`.
        reference: String,
    },
    /// Several targets of the apply have a file with this relative path.
    #[error("the change has the file {file:?} in several directories; give its path in the sandbox, such as {}", .names[0])]
    #[code(ApprovedFilesInvalid)]
    Ambiguous {
        /// Path that the caller gave.
        file: String,
        /// Guest paths of the first two files with this relative path.
        names: [String; 2],
    },
    /// All files of this apply were undone before.
    #[error("the change {id} was undone already; choose another one")]
    #[code(ApplyUndone)]
    Undone {
        /// Id of the applied change.
        id: String,
    },
    /// A journal is damaged, or it belongs to another user, so it cannot be trusted.
    #[error("the record of the applied change {id} cannot be used: {why}")]
    #[code(ApplyFailed)]
    Journal {
        /// Id of the applied or undone change whose journal cannot be used.
        id: String,
        /// What is wrong with the journal.
        why: &'static str,
    },
}

impl ApplyError {
    /// Returns the error for one conflict.
    pub(crate) fn of_conflict(conflict: Conflict) -> Self {
        Self::Conflict {
            count: 1,
            first: conflict.path.clone(),
            conflicts: vec![conflict],
        }
    }

    /// Returns the error for a transaction that has exchanged paths and must keep its journal:
    /// [`Self::Stuck`] instead of [`Self::Io`], which says that nothing was changed.
    pub(crate) fn after_exchange(self) -> Self {
        match self {
            Self::Io {
                action,
                path,
                source,
            } => Self::Stuck {
                action,
                path,
                source,
            },
            error => error,
        }
    }

    /// For [`Self::Conflict`], `data` lists the conflicts.
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Conflict { conflicts, .. } => body.with("conflicts", json!(conflicts)),
            Self::Io { source, .. } | Self::Stuck { source, .. } => match *source {
                Errno::NOSPC | Errno::DQUOT => body.hint(
                    "free space on the disk of the target, or of the state directory if the error names a journal, then try again",
                ),
                Errno::ROFS => body.hint(
                    "remount the file system read-write: that of the target, or of the state directory if the error names a journal; or choose another target",
                ),
                Errno::ACCESS | Errno::PERM => {
                    body.hint("give yourself access to the target directory, or to the state directory if the error names a journal; or run the command as the user who owns it")
                }
                _ => body,
            },
            _ => body,
        }
    }
}

/// Returns the error that lists these conflicts; `None` if there are none.
pub(crate) fn conflicts(conflicts: Vec<Conflict>) -> Option<ApplyError> {
    let first = conflicts.first()?.path.clone();
    Some(ApplyError::Conflict {
        count: conflicts.len(),
        first,
        conflicts,
    })
}
