//! Errors of building a template.

use crate::execution::ExecError;
use crate::launch_error::LaunchError;
use crate::plan::PlanError;
use crate::reduced::LayoutError;
use std::path::PathBuf;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Reason why there is no template.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The directory does not contain WordPress.
    #[error(
        "{path:?} holds no WordPress core (no readable wp-includes/version.php); name a directory with wp-load.php, wp-admin and wp-includes"
    )]
    NotWordPress {
        /// Directory.
        path: PathBuf,
    },
    /// The share directory is incomplete.
    #[error(
        "share directory {path:?} lacks {missing}; set wp_codebox.share_dir or --share to a complete installation"
    )]
    Share {
        /// Share directory.
        path: PathBuf,
        /// Missing entry.
        missing: &'static str,
    },
    /// A path is not UTF-8, so it cannot be written into a plan.
    #[error("path {path:?} is not UTF-8; move the directory to one that is")]
    PathNotText {
        /// Path.
        path: PathBuf,
    },
    /// A core file could not be read.
    #[error(
        "{path:?} cannot be read: {source}; the user that owns the state directory needs read access to WordPress core"
    )]
    Unreadable {
        /// Core file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The template directory could not be written.
    #[error("the template could not be written ({step}): {source}")]
    Io {
        /// Failed step.
        step: &'static str,
        /// Cause.
        source: std::io::Error,
    },
    /// The record differs from the one just written.
    #[error(
        "the template's record could not be read back; remove the templates directory below the state directory and try again"
    )]
    Record,
    /// No plan could be built for the guest.
    #[error("the template's guest could not be planned: {0}")]
    Plan(#[from] PlanError),
    /// The guest's tree could not be created.
    #[error("the directory tree of the template's guest could not be created: {0}")]
    Layout(#[from] LayoutError),
    /// The guest did not start.
    #[error("{0}")]
    Launch(#[from] LaunchError),
    /// A program in the guest did not start.
    #[error("the template's guest failed: {0}")]
    Exec(#[from] ExecError),
    /// WordPress could not be installed.
    #[error("WordPress could not be prepared in the guest ({step}): {output}")]
    Install {
        /// Failed program.
        step: &'static str,
        /// Last part of the program's output.
        output: String,
    },
    /// The installer left a database journal.
    #[error("the installed database was left with {file}; the template would not be consistent")]
    Database {
        /// Journal file.
        file: String,
    },
}

impl TemplateError {
    /// Returns the stable error code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotWordPress { .. } | Self::Share { .. } | Self::PathNotText { .. } => {
                ErrorCode::ConfigInvalid
            }
            Self::Launch(error) => error.code(),
            Self::Layout(error) => error.code(),
            Self::Unreadable { .. }
            | Self::Io { .. }
            | Self::Record
            | Self::Plan(_)
            | Self::Exec(_)
            | Self::Install { .. }
            | Self::Database { .. } => ErrorCode::TemplateFailed,
        }
    }
    /// Converts the error for transfer to another process.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        match self {
            Self::Launch(error) => error.body(),
            _ => ErrorBody::new(self.code(), self.to_string()),
        }
    }
}
