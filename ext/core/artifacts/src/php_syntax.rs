//! The syntax check of a run's PHP files, made in the guest of its checks.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use wp_codebox_contracts::Sha256Hex;

/// Value of `schema`.
pub const PHP_SYNTAX_SCHEMA: &str = "wp-codebox/php-syntax/v1";
/// `kind` of the document in the manifest.
pub const PHP_SYNTAX_KIND: &str = "php-syntax";
/// File name of the document in `files/runtime-evidence/`.
pub const PHP_SYNTAX_FILE: &str = "php-syntax.json";
/// Path of the document in a bundle.
pub(crate) const PHP_SYNTAX_PATH: &str = "files/runtime-evidence/php-syntax.json";

/// What `php -l` said of the PHP files that a run added or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PhpSyntax {
    /// `wp-codebox/php-syntax/v1`.
    pub schema: String,
    /// Version of PHP, e.g. `8.2.29`.
    pub php_version: String,
    /// SHA-256 of the files that PHP accepts.
    pub valid: BTreeSet<Sha256Hex>,
    /// The files that PHP refuses.
    pub invalid: Vec<InvalidPhp>,
    /// Number of files that were not checked, e.g. because the time of the run was over.
    pub unchecked: usize,
}

/// A file that PHP refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InvalidPhp {
    /// Guest path of the file.
    pub path: String,
    /// SHA-256 of the file.
    pub sha256: Sha256Hex,
    /// First line of PHP's message.
    pub message: String,
}

/// Returns the check that a verified document contains; `None` if it cannot be read.
pub(crate) fn recorded(document: &[u8]) -> Option<PhpSyntax> {
    let recorded: PhpSyntax = serde_json::from_slice(document).ok()?;
    (recorded.schema == PHP_SYNTAX_SCHEMA).then_some(recorded)
}
