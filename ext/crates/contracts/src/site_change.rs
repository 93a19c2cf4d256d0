//! Conversation between the extension and the process that changes files of a site.
//!
//! The caller sends a request and the process answers with messages, each one line of JSON on the
//! frame socket. The process finishes its work when the caller is gone. Both are the same version
//! and the same user, so the request names directories and programs of the host.

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
    /// How to check whether the site works. If absent, it is not checked.
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

/// Approved files of a bundle, and where they go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteApply {
    /// Id of the bundle or of its run.
    pub reference: String,
    /// Approved paths, spelled as in `changed-files.json`.
    pub approved_files: Vec<String>,
    /// SHA-256 of the approved manifest.
    pub manifest_sha256: Sha256Hex,
    /// SHA-256 of the approved part of the patch.
    pub patch_sha256: Sha256Hex,
    /// Host directory of each changed mount, by guest path.
    pub targets: BTreeMap<String, String>,
}

/// Approved files of a bundle, and the branch that gets them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteCommit {
    /// Id of the bundle or of its run.
    pub reference: String,
    /// Approved paths, spelled as in `changed-files.json`.
    pub approved_files: Vec<String>,
    /// SHA-256 of the approved manifest.
    pub manifest_sha256: Sha256Hex,
    /// SHA-256 of the approved part of the patch.
    pub patch_sha256: Sha256Hex,
    /// Host directory of the repository.
    pub repository: String,
    /// Directory in the repository that holds the code of each changed mount, by guest path of the
    /// mount; the empty text is the top of the repository.
    pub directories: BTreeMap<String, String>,
    /// Branch that gets the commit, without `refs/heads/`.
    pub branch: String,
    /// Branch at which a new branch begins.
    pub base: String,
    /// Author of the commit.
    pub author: GitPerson,
    /// Committer of the commit.
    pub committer: GitPerson,
    /// Approver, for the commit message.
    pub approver: String,
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
    /// Files to restore, relative to their target; all if absent.
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
    /// Time in milliseconds until PHP notices changed files by itself.
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
        // Without the cookie, which is a secret.
        f.debug_struct("HealthPage")
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// One line of the process to its caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SiteChangeMessage {
    /// These files, as host paths, have new contents. The caller drops them from its opcode cache
    /// and answers with a line; the process waits for it.
    Written {
        /// Host paths.
        files: Vec<String>,
    },
    /// The change ended. Last message.
    Result {
        /// The result.
        result: SiteChangeResult,
    },
    /// Nothing was changed. Last message.
    Error {
        /// The reason.
        error: ErrorBody,
    },
}

/// How a change of files of a site ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteChangeResult {
    /// How the change ended.
    pub status: SiteChangeStatus,
    /// Id of the applied change; for a commit its hash.
    pub change: String,
    /// Files that were written and kept, or restored, relative to their target; for a commit the
    /// approved paths that it has.
    pub files: Vec<String>,
    /// Files that were left as they are because they changed since.
    pub conflicts: Vec<SiteConflict>,
    /// Result of checking the site; absent if it was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthReport>,
}

/// How a change of files of a site ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SiteChangeStatus {
    /// The approved files are in place.
    Applied,
    /// The site got worse, so the files are as before.
    RolledBack,
    /// The site got worse, and not all files could be restored.
    RollBackFailed,
    /// The files are as before the applied change.
    Restored,
    /// Some files changed since the apply and were left as they are.
    RestoredInPart,
    /// The approved files are committed on the branch.
    Committed,
}

/// A file that was left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteConflict {
    /// Path relative to its target.
    pub path: String,
    /// How the file differs.
    pub reason: String,
}

/// What was seen of a site before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthReport {
    /// The verdict.
    pub status: HealthStatus,
    /// One row for each page.
    pub pages: Vec<PageHealth>,
    /// New fatal errors in the logs, without host paths.
    pub fatal_errors: Vec<String>,
}

/// Verdict about a site after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealthStatus {
    /// Nothing that worked before fails now.
    Unchanged,
    /// Something that worked before fails now.
    Worse,
    /// The site did not answer before the change, so nothing is known.
    Unknown,
}

/// What a page answered before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageHealth {
    /// Name from the plan.
    pub name: String,
    /// Answer before the change, e.g. `200` or `no answer within 10 s`.
    pub before: String,
    /// Answer after the change.
    pub after: String,
    /// Whether the page worked before and fails now.
    pub worse: bool,
}
