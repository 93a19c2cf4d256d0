//! Errors of building a WordPress template.

use crate::execution::ExecError;
use crate::launch_error::LaunchError;
use crate::plan::PlanError;
use crate::reduced::LayoutError;
use std::path::PathBuf;
use wp_codebox_contracts::CodedError;

/// Reason why no WordPress template could be built.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(TemplateFailed)]
pub enum TemplateError {
    /// The directory does not contain WordPress.
    #[error(
        "{path:?} holds no WordPress core (no readable wp-includes/version.php); name a directory with wp-load.php, wp-admin and wp-includes"
    )]
    #[code(ConfigInvalid)]
    NotWordPress {
        /// Directory that was given as the site's WordPress.
        path: PathBuf,
    },
    /// The share directory (WP-CLI, SQLite drop-in, guest programs) is incomplete.
    #[error(
        "share directory {path:?} lacks {missing}; set wp_codebox.share_dir or --share to a complete installation"
    )]
    #[code(ConfigInvalid)]
    Share {
        /// Path of the share directory.
        path: PathBuf,
        /// Name of the missing file.
        missing: &'static str,
    },
    /// A path is not UTF-8, so the launch plan, which is JSON, cannot contain it.
    #[error("the path {path:?} is not UTF-8; move the directory to a path in UTF-8")]
    #[code(ConfigInvalid)]
    PathNotText {
        /// The path that is not UTF-8.
        path: PathBuf,
    },
    /// A file or directory from which the template is built could not be read.
    #[error(
        "{path:?}, from which the WordPress template of guests is built, cannot be read: {source}; give the user that owns the state directory read access to it"
    )]
    Unreadable {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of reading it.
        source: std::io::Error,
    },
    /// The template directory could not be written.
    #[error(
        "the WordPress template of guests could not be written: step `{step}` failed: {source}; check free space of the state directory"
    )]
    Io {
        /// Failed step, for the error message.
        step: &'static str,
        /// Error of the step.
        source: std::io::Error,
    },
    /// The template's record file, read back after writing, is not what was written.
    #[error(
        "the record of the WordPress template could not be read back; remove the templates directory below the state directory and try again"
    )]
    Record,
    /// No launch plan could be built for the guest that installs WordPress.
    #[error("the guest that installs the WordPress template cannot be planned: {0}")]
    Plan(#[from] PlanError),
    /// The directory tree of the guest that installs WordPress could not be created.
    #[error(
        "the directory tree of the guest that installs the WordPress template could not be created: {0}"
    )]
    #[code(source)]
    Layout(#[from] LayoutError),
    /// The guest that installs WordPress did not start.
    #[error("{0}")]
    #[code(transparent)]
    Launch(#[from] LaunchError),
    /// A program could not be started in the guest that installs WordPress.
    #[error(
        "a program could not be started in the guest that installs the WordPress template: {0}"
    )]
    Exec(#[from] ExecError),
    /// A program that installs WordPress in the guest failed.
    #[error("WordPress could not be installed in the guest: step `{step}` failed: {output}")]
    #[code(
        hint = "name a directory with an unchanged WordPress release; `wp-codebox wordpress install` gets one"
    )]
    Install {
        /// Name of the failed program.
        step: &'static str,
        /// Last part of that program's output.
        output: String,
    },
    /// The installer left a journal file beside the database, so the database is not closed.
    #[error(
        "the WordPress installation left the journal file {file}, so its database is not closed and the template is not used; try again"
    )]
    Database {
        /// Name of the journal file.
        file: String,
    },
}
