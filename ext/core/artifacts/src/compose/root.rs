//! Directories that a browser session may change.

use super::baseline::BaselineSource;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use wp_codebox_contracts::GuestPath;

/// A directory that a browser session may change.
#[derive(Debug)]
pub struct ComposeRoot {
    /// Name of the directory in uploaded paths, e.g. `plugins/foo`; empty if every path lies in it.
    pub name: String,
    /// Which paths of the directory an upload may change.
    pub scope: ComposeScope,
    /// Path of the directory in the bundle, as a mount of a sandbox would have it.
    pub target: GuestPath,
    /// Code of this host to which the upload is compared, empty for a new directory. A later source
    /// replaces entries of an earlier one.
    pub baseline: Vec<BaselineSource>,
    /// Metadata of the mount in the bundle, e.g. the origin of the code.
    pub metadata: Option<Map<String, Value>>,
}

/// Which paths of a directory an upload may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposeScope {
    /// Every path below the directory.
    Everything,
    /// These files of the directory itself, e.g. plugins that are a single file.
    Files(BTreeSet<String>),
}
