//! What a template is made from, and what is recorded of it.

use crate::host::{HiddenPath, HostLayout};
use crate::php::PhpLayout;
use crate::process_sandbox::ProcessSandbox;
use crate::spawner::GuestIdentity;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::IsolationLevel;

/// Raised whenever templates are built differently.
pub(super) const FORMAT: u32 = 2;

/// What a template is made from.
#[derive(Clone, Copy)]
pub struct TemplateRequest<'a> {
    /// Directory whose WordPress core the guest gets.
    pub wordpress: &'a Path,
    /// State directory, owned by this user.
    pub state_dir: &'a Path,
    /// Directory with WP-CLI, the SQLite drop-in and the guest programs.
    pub share_dir: &'a Path,
    /// The launcher.
    pub launcher: &'a Path,
    /// Wrapper around the launcher.
    pub sandbox: &'a dyn ProcessSandbox,
    /// PHP.
    pub php: &'a PhpLayout,
    /// The host's system directories.
    pub host: &'a HostLayout,
    /// Level of the guest that installs WordPress; each level has a template of its own, since
    /// compiled files are keyed by paths.
    pub level: IsolationLevel,
    /// Whose kernel uid that guest gets.
    pub identity: &'a GuestIdentity,
}

/// A finished template. Paths are absolute host paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// 64 hex digits.
    pub key: String,
    /// Read-only core with its configuration.
    pub core: String,
    /// Lower of `wp-content`.
    pub content: String,
    /// Lower of the opcode cache.
    pub opcache: String,
    /// `$wp_version`.
    pub wordpress_version: String,
    /// What no guest may see even when a directory above it is bound: the WordPress this was
    /// made from, a configuration beside it, and the state directory.
    pub hidden: Vec<HiddenPath>,
}

/// `template.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) format: u32,
    pub(super) key: String,
    pub(super) wordpress_version: String,
    pub(super) php_version: String,
    pub(super) theme: Option<String>,
}

/// What no guest may see, by its real name.
pub(super) fn hidden(request: &TemplateRequest<'_>) -> Vec<HiddenPath> {
    let text = |path: PathBuf| path.to_str().map(str::to_owned);
    let mut all: Vec<HiddenPath> = [request.wordpress, request.state_dir]
        .into_iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .filter_map(text)
        .map(HiddenPath::Directory)
        .collect();
    // WordPress also reads a wp-config.php one level up.
    let beside = fs::canonicalize(request.wordpress.join("../wp-config.php"));
    all.extend(beside.ok().and_then(text).map(HiddenPath::File));
    all
}
