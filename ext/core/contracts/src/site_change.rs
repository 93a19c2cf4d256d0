//! Protocol between the PHP extension (the caller) and the `wp-codebox` process that changes files
//! of a site.
//!
//! The caller sends one request and the process answers with messages; each is one line of JSON on
//! the frame socket. If the caller exits, the process still finishes its work. Caller and process
//! are of the same release and run as the same user, so the process trusts the host directories and
//! programs that the request names.

use crate::{ErrorBody, Sha256Hex, SiteId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What to change in the files of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteChangeRequest {
    /// [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION) of the caller.
    pub protocol: u32,
    /// State directory of the host.
    pub state_dir: String,
    /// PHP program that checks the syntax of new files.
    pub php_binary: String,
    /// Site whose journal records the change.
    pub site: SiteId,
    /// The change.
    pub action: SiteAction,
    /// How to check whether the site works before and after the change. Absent: the site is not
    /// checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthPlan>,
}

/// A change of files of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SiteAction {
    /// Apply approved files of a bundle.
    Apply(SiteApply),
    /// Undo an applied change.
    RollBack(SiteRollBack),
    /// Commit approved files of a bundle on a branch of a git repository.
    Commit(SiteCommit),
}

/// Approved files of a bundle, and the host directories to which they are applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteApply {
    /// Id of the bundle, or of the run that wrote it.
    pub reference: String,
    /// Approved paths, spelled as in `changed-files.json`.
    pub approved_files: Vec<String>,
    /// SHA-256 of the bundle's manifest when the files were approved.
    pub manifest_sha256: Sha256Hex,
    /// SHA-256 of the approved part of the patch.
    pub patch_sha256: Sha256Hex,
    /// Host directory that gets the changes of each mount, by the guest path of the mount.
    pub targets: BTreeMap<String, String>,
    /// Whether the approver confirmed that a browser uploaded the contents of the bundle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm_browser_origin: bool,
    /// Whether the approver confirmed the files that programs run or obey by themselves, such as
    /// must-use plugins and git repositories.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm_sensitive: bool,
    /// Ids of further signing keys that the site's settings trust, besides the key of this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_keys: Vec<Sha256Hex>,
}

/// Approved files of a bundle, and the git branch on which they are committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteCommit {
    /// Id of the bundle, or of the run that wrote it.
    pub reference: String,
    /// Approved paths, spelled as in `changed-files.json`.
    pub approved_files: Vec<String>,
    /// SHA-256 of the bundle's manifest when the files were approved.
    pub manifest_sha256: Sha256Hex,
    /// SHA-256 of the approved part of the patch.
    pub patch_sha256: Sha256Hex,
    /// Host directory of the git repository.
    pub repository: String,
    /// Directory in the repository that holds the code of each changed mount, by the guest path of
    /// the mount. The empty text stands for the top directory of the repository.
    pub directories: BTreeMap<String, String>,
    /// Branch that gets the commit, without `refs/heads/`.
    pub branch: String,
    /// Existing branch from which `branch` is created if it does not exist.
    pub base: String,
    /// Author of the commit.
    pub author: GitPerson,
    /// Committer of the commit.
    pub committer: GitPerson,
    /// Name of the user who approved the change, for the commit message.
    pub approver: String,
    /// Whether the approver confirmed that a browser uploaded the contents of the bundle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm_browser_origin: bool,
    /// Ids of further signing keys that the site's settings trust, besides the key of this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_keys: Vec<Sha256Hex>,
}

/// Name and mail address in a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitPerson {
    /// Name.
    pub name: String,
    /// Mail address.
    pub email: String,
}

/// An applied change to undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteRollBack {
    /// Id of the applied change.
    pub change: String,
    /// Files to restore, relative to the directory to which they were applied or as guest paths;
    /// absent: all files of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
}

/// Pages and logs that show whether a site works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthPlan {
    /// Pages that are requested before and after the change.
    pub pages: Vec<HealthPage>,
    /// PHP error logs that are searched for new fatal errors.
    #[serde(default)]
    pub logs: Vec<String>,
    /// Time in milliseconds after which PHP's opcode cache notices changed files by itself. The
    /// process waits this long before it requests the pages again.
    #[serde(default)]
    pub settle_ms: u64,
}

/// A page of the site.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthPage {
    /// Name in the report, e.g. `front page`.
    pub name: String,
    /// Absolute URL.
    pub url: String,
    /// Value of the `Cookie` header, which may log a user in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
}

impl fmt::Debug for HealthPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The cookie is left out, because it may log a user in.
        f.debug_struct("HealthPage")
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Message from the process to its caller, one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SiteChangeMessage {
    /// Files of the site were written or restored. The caller drops them from PHP's opcode cache
    /// and then sends one line, for which the process waits a limited time.
    Written {
        /// Host paths of the files.
        files: Vec<String>,
    },
    /// The change ended. Last message.
    Result {
        /// Result of the change.
        result: SiteChangeResult,
    },
    /// Nothing was changed. Last message.
    Error {
        /// Why nothing was changed.
        error: ErrorBody,
    },
}

/// How a change of files of a site ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteChangeResult {
    /// How the change ended.
    pub status: SiteChangeStatus,
    /// Id of the applied or undone change; for a commit, the hash of the commit.
    pub change: String,
    /// Files that were written (`applied`) or restored (every other status of an apply or an undo),
    /// relative to the directory to which they were applied. For a commit, the approved paths that
    /// the commit contains.
    pub files: Vec<String>,
    /// Files that were not restored because they changed after they were applied. An entry with an
    /// empty path contains the error because of which no file was restored.
    pub conflicts: Vec<SiteConflict>,
    /// Result of checking the site; absent if it was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthReport>,
}

/// How a change of files of a site ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SiteChangeStatus {
    /// The approved files were written and kept.
    Applied,
    /// The files were written, but then the site check failed, so all of them were restored.
    RolledBack,
    /// The files were written, but then the site check failed, and not all of them could be
    /// restored.
    RollBackFailed,
    /// The change was undone: all files are as before it was applied.
    Restored,
    /// Some files changed since the apply and were left as they are.
    RestoredInPart,
    /// The approved files are committed on the branch.
    Committed,
}

/// A file that was not restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteConflict {
    /// Path of the file, relative to the directory to which it was applied; empty if the error
    /// concerns the whole restoration.
    pub path: String,
    /// How the file differs from the applied one, or why the restoration failed.
    pub reason: String,
}

/// Result of checking a site before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthReport {
    /// Whether the site got worse.
    pub status: HealthStatus,
    /// One row for each page.
    pub pages: Vec<PageHealth>,
    /// Fatal errors that were logged after the change, without host paths.
    pub fatal_errors: Vec<String>,
}

/// Verdict about a site after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealthStatus {
    /// At least one page answered before the change, no such page fails now, and the logs have no
    /// new fatal errors.
    Unchanged,
    /// A page that worked before the change fails now, or the logs have new fatal errors.
    Worse,
    /// No page answered before the change, and the logs have no new fatal errors: nothing is known.
    Unknown,
}

/// What a page answered before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageHealth {
    /// Name of the page in the plan, e.g. `front page`.
    pub name: String,
    /// Answer before the change, e.g. `200` or `no answer within 10 s`.
    pub before: String,
    /// Answer after the change.
    pub after: String,
    /// Whether the page worked before and fails now.
    pub worse: bool,
}
