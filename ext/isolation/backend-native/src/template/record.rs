//! Inputs from which a WordPress template is built, and the record stored with it.

use super::error::TemplateError;
use crate::host::{HiddenPath, HostLayout};
use crate::php::PhpLayout;
use crate::process_sandbox::ProcessSandbox;
use crate::server::Database;
use crate::spawner::GuestIdentity;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::IsolationLevel;

/// Format version of a template, part of its key; increase it whenever the build changes.
pub(super) const FORMAT: u32 = 4;

/// Inputs from which a WordPress template is built.
#[derive(Clone, Copy)]
pub struct TemplateRequest<'a> {
    /// Directory of the site's WordPress, whose core the guest gets.
    pub wordpress: &'a Path,
    /// State directory, owned by this user.
    pub state_dir: &'a Path,
    /// Directory with WP-CLI, the SQLite drop-in and the guest programs.
    pub share_dir: &'a Path,
    /// Path of the launcher program.
    pub launcher: &'a Path,
    /// Process wrapper around the launcher.
    pub sandbox: &'a dyn ProcessSandbox,
    /// PHP installation of the host.
    pub php: &'a PhpLayout,
    /// System directories of the host.
    pub host: &'a HostLayout,
    /// Database of the WordPress.
    pub database: Database,
    /// Level of the guest that installs WordPress. Each level has its own template, because the
    /// opcode cache is keyed by file paths, which differ between levels.
    pub level: IsolationLevel,
    /// Kernel uid and gid of the guest that installs WordPress.
    pub identity: &'a GuestIdentity,
}

/// A finished WordPress template. Paths are absolute host paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Key of the template's inputs and name of its directory, 64 hexadecimal digits.
    pub key: String,
    /// Directory with WordPress core and its configuration; guests see it read-only.
    pub core: String,
    /// Directory that is the lower directory of the guests' `wp-content`.
    pub content: String,
    /// Directory that is the lower directory of the guests' opcode cache.
    pub opcache: String,
    /// Directory with WP-CLI's files, unpacked from the phar of the share directory, whose hash PHP
    /// verifies at each start. Empty below level `full`, where a guest would get a copy of each file.
    pub wp_cli: String,
    /// Database of the WordPress.
    pub database: Database,
    /// WordPress version (`$wp_version`).
    pub wordpress_version: String,
    /// Host paths that guests must not see even when a directory above them is mounted: the site's
    /// WordPress, a `wp-config.php` in its parent directory, and the state directory.
    pub hidden: Vec<HiddenPath>,
}

impl Template {
    /// Returns the template whose files are in `directory`.
    pub(super) fn below(
        directory: &Path,
        request: &TemplateRequest<'_>,
        key: String,
        wordpress_version: String,
    ) -> Result<Self, TemplateError> {
        let text = |name: &str| {
            directory
                .join(name)
                .to_str()
                .map(str::to_owned)
                .ok_or_else(|| TemplateError::PathNotText {
                    path: directory.to_owned(),
                })
        };
        Ok(Self {
            key,
            core: text("core")?,
            content: text("content")?,
            opcache: text("opcache")?,
            wp_cli: text("wp-cli")?,
            database: request.database,
            wordpress_version,
            hidden: hidden(request),
        })
    }
}

/// Content of `template.json`, the file that marks a template as finished.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) format: u32,
    pub(super) key: String,
    pub(super) wordpress_version: String,
    pub(super) php_version: String,
    pub(super) theme: Option<String>,
}

/// Returns the host paths that guests must not see, with symbolic links resolved.
fn hidden(request: &TemplateRequest<'_>) -> Vec<HiddenPath> {
    let text = |path: PathBuf| path.to_str().map(str::to_owned);
    let mut all: Vec<HiddenPath> = [request.wordpress, request.state_dir]
        .into_iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .filter_map(text)
        .map(HiddenPath::Directory)
        .collect();
    // WordPress also reads a wp-config.php in the parent directory.
    let beside = fs::canonicalize(request.wordpress.join("../wp-config.php"));
    all.extend(beside.ok().and_then(text).map(HiddenPath::File));
    all
}
