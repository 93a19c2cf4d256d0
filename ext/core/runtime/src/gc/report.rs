//! What a garbage collection may remove, and the report of what it did.

use serde::Serialize;
use std::time::Duration;
use wp_codebox_contracts::SiteId;

/// Maximum total size of the items that a rule covers. If they exceed it, the oldest are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeBudget {
    /// No limit.
    Unlimited,
    /// Maximum disk usage, in bytes, of all items that the rule covers together.
    Bytes(u64),
}

/// Whether finished bundles are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactRule {
    /// No bundle is removed.
    Keep,
    /// Finished bundles older than this are removed.
    OlderThan(Duration),
}

/// Whether finished snapshots are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotRule {
    /// No finished snapshot is removed.
    Keep,
    /// Snapshots older than `max_age` are removed. If the others exceed `budget`, the oldest of
    /// them are removed too. A snapshot used by a sandbox is never removed.
    Within {
        /// Age above which a snapshot is removed.
        max_age: Duration,
        /// Maximum total size of the snapshots of one site.
        budget: SizeBudget,
    },
}

/// Whether a garbage collection removes data or only lists what it would remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcMode {
    /// Data that the rules cover are removed.
    Remove,
    /// The report lists the data that would be removed, but none are removed, and no final record
    /// is written for a dead run.
    DryRun,
}

/// What a garbage collection may remove.
#[derive(Debug, Clone, Copy)]
pub struct GcRules {
    /// Age above which the directory of a settled run (a run with a final record) is removed.
    pub max_age: Duration,
    /// Maximum total size of the directories of settled runs that `max_age` does not remove.
    pub budget: SizeBudget,
    /// Whether finished bundles are removed.
    pub artifacts: ArtifactRule,
    /// Whether finished snapshots are removed.
    pub snapshots: SnapshotRule,
    /// Whether anything is removed, or only listed.
    pub mode: GcMode,
}

/// Kind of data that a garbage collection removes or leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GcKind {
    /// The directory of a settled run (a run with a final record).
    Run,
    /// A bundle that was never finished.
    Staging,
    /// A finished bundle.
    Artifact,
    /// A snapshot of a sandbox.
    Snapshot,
    /// The seed of a sandbox: the data to create it again.
    Seed,
    /// A prepared WordPress that guests start from.
    Template,
    /// A control group of a dead guest.
    Cgroup,
    /// Contents that files of a site had before a change was applied; undoing the change needs
    /// them.
    Change,
}

/// Why an item is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcReason {
    /// The item is older than allowed.
    Age,
    /// Together with the newer items that are not removed, this item exceeds the maximum total
    /// size.
    Size,
    /// More newer items of the same kind exist than may be kept.
    Count,
    /// The process that created the item is dead, or the run that the item belongs to was removed.
    Orphaned,
    /// An earlier garbage collection started to remove the item but did not finish.
    Interrupted,
}

/// An item that was removed, or would be removed in a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcItem {
    /// Kind of data, e.g. a run directory or a snapshot.
    pub kind: GcKind,
    /// Run id, snapshot id, template key or name of the item.
    pub id: String,
    /// Site of the item; absent for items that belong to no site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteId>,
    /// Disk usage of the item in bytes.
    pub bytes: u64,
    /// Why the item is removed.
    pub reason: GcReason,
}

/// An item that should have been removed but could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcFailure {
    /// Kind of data, e.g. a run directory or a snapshot.
    pub kind: GcKind,
    /// Run id, snapshot id, template key or name of the item.
    pub id: String,
    /// Why the item could not be removed, in one sentence.
    pub message: String,
}

/// Why items other than settled runs were not removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcRetainReason {
    /// A run may still use the items.
    RecentlyUsed,
    /// Items of this kind are removed only if the rules of the collection say so.
    OnlyOnRequest,
}

/// How many items of one kind were not removed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcRetained {
    /// Kind of data that was not removed, e.g. bundles.
    pub kind: GcKind,
    /// Number of items that were not removed.
    pub count: usize,
    /// Why the items were not removed.
    pub reason: GcRetainReason,
}

/// What a garbage collection removed, or would remove in a dry run, and what remains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GcReport {
    /// Number of runs without a living supervisor process that this collection settled.
    pub settled: usize,
    /// Number of living runs, plus number of snapshots that the rules would remove but a sandbox
    /// still uses.
    pub alive: usize,
    /// Number of settled runs (runs with a final record) that remain.
    pub kept: usize,
    /// Disk usage of the retained settled runs in bytes.
    pub kept_bytes: u64,
    /// Items that were removed, or would be removed in a dry run.
    pub removed: Vec<GcItem>,
    /// Items that should have been removed but could not be.
    pub failed: Vec<GcFailure>,
    /// How many items other than settled runs were not removed; one row per kind.
    pub stayed: Vec<GcRetained>,
}

impl GcReport {
    /// Adds `count` to the number of items of a kind that were not removed.
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
