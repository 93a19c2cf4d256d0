//! Rules and report of a garbage collection.

use serde::Serialize;
use std::time::Duration;
use wp_codebox_contracts::SiteId;

/// Limit for the total size of settled runs; the oldest runs are removed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeBudget {
    /// No limit.
    Unlimited,
    /// Maximum number of bytes on disk, for all settled runs together.
    Bytes(u64),
}

/// Treatment of finished bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactRule {
    /// No bundle is removed.
    Keep,
    /// Bundles older than this are removed.
    OlderThan(Duration),
}

/// Treatment of finished snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotRule {
    /// Only unfinished snapshots are removed.
    Keep,
    /// Snapshots older than `max_age` are removed, and the oldest ones that exceed `budget`. A
    /// snapshot used by a sandbox is never removed.
    Within {
        /// Maximum age of a snapshot.
        max_age: Duration,
        /// Maximum total size per site.
        budget: SizeBudget,
    },
}

/// Whether a collection removes data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcMode {
    /// Data are removed.
    Remove,
    /// Removals are only listed. Dead runs are not settled either.
    DryRun,
}

/// Rules of a collection.
#[derive(Debug, Clone, Copy)]
pub struct GcRules {
    /// Age above which the record of a settled run is removed.
    pub max_age: Duration,
    /// Maximum total size of the remaining settled runs.
    pub budget: SizeBudget,
    /// Treatment of finished bundles.
    pub artifacts: ArtifactRule,
    /// Treatment of finished snapshots.
    pub snapshots: SnapshotRule,
    /// Whether data are removed or only listed.
    pub mode: GcMode,
}

/// Kind of a collected item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GcKind {
    /// A settled run's directory.
    Run,
    /// An unfinished bundle.
    Staging,
    /// A bundle.
    Artifact,
    /// A snapshot of a sandbox.
    Snapshot,
    /// The seed of a sandbox: the data to create it again.
    Seed,
    /// A WordPress template.
    Template,
    /// A control group.
    Cgroup,
}

/// Reason for removing an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcReason {
    /// The item is older than allowed.
    Age,
    /// Newer items use up the size budget.
    Size,
    /// The process that created the item is dead.
    Orphaned,
    /// An earlier removal was interrupted.
    Interrupted,
}

/// One item that was removed or would be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcItem {
    /// Kind of the item.
    pub kind: GcKind,
    /// Run id, template key or name.
    pub id: String,
    /// Site of the item; absent for items that belong to no site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteId>,
    /// Disk usage in bytes.
    pub bytes: u64,
    /// Reason for the removal.
    pub reason: GcReason,
}

/// One item that could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcFailure {
    /// Kind of the item.
    pub kind: GcKind,
    /// Id as in [`GcItem`].
    pub id: String,
    /// Error in one sentence.
    pub message: String,
}

/// Reason why a collection retains items that are not subject to the age and size limits of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcRetainReason {
    /// A run may still use it.
    RecentlyUsed,
    /// The rule for this kind of item does not allow the removal.
    OnlyOnRequest,
}

/// Number of retained items of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcRetained {
    /// Kind of the items.
    pub kind: GcKind,
    /// Number of items.
    pub count: usize,
    /// Reason for retaining the items.
    pub reason: GcRetainReason,
}

/// Report of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GcReport {
    /// Number of dead runs whose terminal record this collection wrote.
    pub settled: usize,
    /// Number of live runs.
    pub alive: usize,
    /// Number of retained settled runs.
    pub kept: usize,
    /// Disk usage of the retained settled runs in bytes.
    pub kept_bytes: u64,
    /// Items that were removed or would be removed.
    pub removed: Vec<GcItem>,
    /// Items that could not be removed.
    pub failed: Vec<GcFailure>,
    /// Items retained for a reason other than the age and size of settled runs; one row per kind.
    pub stayed: Vec<GcRetained>,
}

impl GcReport {
    /// Adds to the number of retained items of a kind.
    pub fn stays(&mut self, kind: GcKind, count: usize, reason: GcRetainReason) {
        match self.stayed.iter_mut().find(|row| row.kind == kind) {
            Some(row) => row.count += count,
            None if count > 0 => self.stayed.push(GcRetained {
                kind,
                count,
                reason,
            }),
            None => {}
        }
    }
}
