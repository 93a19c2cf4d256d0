//! What a collection may remove, and what it answers.

use serde::Serialize;
use std::time::Duration;
use wp_codebox_contracts::SiteId;

/// How much of the settled runs may stay, oldest removed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeBudget {
    /// However much there is.
    Unlimited,
    /// At most so many bytes on disk.
    Bytes(u64),
}

/// What happens to bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactRule {
    /// They stay: only the host decides about bundles.
    Keep,
    /// The host decided: older ones go.
    OlderThan(Duration),
}

/// What happens to snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotRule {
    /// They stay: only what was never finished goes.
    Keep,
    /// The host decided: older ones go, and those for which there is no room, oldest first. One
    /// that a sandbox uses stays.
    Within {
        /// Oldest that stays.
        max_age: Duration,
        /// Room for those that stay, of each site.
        budget: SizeBudget,
    },
}

/// Whether anything is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcMode {
    /// It is.
    Remove,
    /// It is only listed. Not even dead runs are settled.
    DryRun,
}

/// What a collection may remove.
#[derive(Debug, Clone, Copy)]
pub struct GcRules {
    /// Settled runs whose record is older go.
    pub max_age: Duration,
    /// Budget for what stays of them.
    pub budget: SizeBudget,
    /// Bundles.
    pub artifacts: ArtifactRule,
    /// Snapshots.
    pub snapshots: SnapshotRule,
    /// Remove or list.
    pub mode: GcMode,
}

/// Kinds of things a collection removes.
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
    /// What a sandbox was made from.
    Seed,
    /// A WordPress template.
    Template,
    /// A control group.
    Cgroup,
}

/// Why it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcReason {
    /// Older than allowed.
    Age,
    /// The budget is used up by newer ones.
    Size,
    /// What made it is dead.
    Orphaned,
    /// An earlier removal was interrupted.
    Interrupted,
}

/// One thing removed, or to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcItem {
    /// What.
    pub kind: GcKind,
    /// Run id, template key or name.
    pub id: String,
    /// Whose; absent for what belongs to no site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteId>,
    /// Disk space, bytes.
    pub bytes: u64,
    /// Why.
    pub reason: GcReason,
}

/// One thing that could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcFailure {
    /// What.
    pub kind: GcKind,
    /// As in [`GcItem`].
    pub id: String,
    /// One sentence.
    pub message: String,
}

/// Why a collection keeps things that its bounds for runs, age and size, do not apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcStay {
    /// A run may still use it.
    RecentlyUsed,
    /// It is removed only when the option of its kind is given.
    OnlyOnRequest,
}

/// Things of one kind that a collection keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GcStayed {
    /// What.
    pub kind: GcKind,
    /// How many.
    pub count: usize,
    /// Why.
    pub reason: GcStay,
}

/// What a collection did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GcReport {
    /// Dead runs that got their terminal record.
    pub settled: usize,
    /// Runs alive.
    pub alive: usize,
    /// Settled runs that stay, and their disk space.
    pub kept: usize,
    /// Bytes of them.
    pub kept_bytes: u64,
    /// Removed, or to be removed.
    pub removed: Vec<GcItem>,
    /// Could not be removed.
    pub failed: Vec<GcFailure>,
    /// What it keeps for another reason than the age or size of settled runs; one row a kind.
    pub stayed: Vec<GcStayed>,
}

impl GcReport {
    /// Counts things that are kept.
    pub fn stays(&mut self, kind: GcKind, count: usize, reason: GcStay) {
        match self.stayed.iter_mut().find(|row| row.kind == kind) {
            Some(row) => row.count += count,
            None if count > 0 => self.stayed.push(GcStayed {
                kind,
                count,
                reason,
            }),
            None => {}
        }
    }
}
