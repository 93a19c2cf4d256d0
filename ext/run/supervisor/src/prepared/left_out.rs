//! Reports which files and directories of a mount a guest does not see.

use super::materialise::Materialised;
use wp_codebox_artifacts::{LeftOut, OmitReason, quote_name};
use wp_codebox_contracts::{LeftOutEntry, LeftOutReport, MountReport};

/// Maximum number of hidden entries that the run's result lists per mount.
const REPORTED: usize = 50;

/// Maximum number of hidden entries that the event about a mount lists.
const ANNOUNCED: usize = 5;

/// Maximum number of hidden entries that the notice about a mount names.
const NAMED: usize = 3;

/// Builds the reports about mounts that the run's result contains.
pub(crate) fn reports<'a>(mounts: impl Iterator<Item = &'a Materialised>) -> Vec<MountReport> {
    let report = |mount: &Materialised| MountReport {
        target: mount.mount.target.clone(),
        view: mount.view,
        git: mount.git_view(),
        left_out: listed(mount, REPORTED),
    };
    mounts.map(report).collect()
}

/// Returns one sentence for each mount that the guest does not see completely. The sentences are
/// notices of the run's result and not risk notes of the change: a change is not riskier because
/// the host's repository is hidden.
pub(crate) fn notices<'a>(mounts: impl Iterator<Item = &'a Materialised>) -> Vec<String> {
    mounts.filter_map(notice).collect()
}

/// Builds the report about hidden entries that the event about a mount contains.
pub(crate) fn summary(mount: &Materialised) -> LeftOutReport {
    listed(mount, ANNOUNCED)
}

fn listed(mount: &Materialised, most: usize) -> LeftOutReport {
    let rows = mount.left_out.rows().take(most);
    LeftOutReport {
        count: mount.left_out.count(),
        entries: rows
            .map(|(path, reason)| LeftOutEntry {
                path,
                reason: reason.to_owned(),
            })
            .collect(),
    }
}

fn notice(mount: &Materialised) -> Option<String> {
    let left_out = &mount.left_out;
    let git = count(left_out, |reason| reason == OmitReason::GitMetadata);
    let closed = left_out.hidden.len() as u64 - git;
    let parts: Vec<String> = [
        (git, "entry named .git", "entries named .git"),
        (
            closed,
            "directory that cannot be searched for .git",
            "directories that cannot be searched for .git",
        ),
        (
            left_out.link_count,
            "link that leads out of the mount",
            "links that lead out of the mount",
        ),
    ]
    .into_iter()
    .filter(|(count, ..)| *count > 0)
    .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
    .collect();
    if parts.is_empty() {
        return None;
    }
    // A newline in a file name must not start a new line in a terminal or log.
    let listed = left_out.hidden.iter().chain(&left_out.links).take(NAMED);
    let names: Vec<String> = listed.map(|left| quote_name(&left.path)).collect();
    let more = if left_out.count() > names.len() as u64 {
        ", …"
    } else {
        ""
    };
    Some(format!(
        "the guest does not see all entries of mount {}: {} ({}{more})",
        mount.mount.target,
        parts.join(", "),
        names.join(", ")
    ))
}

fn count(left_out: &LeftOut, judge: impl Fn(OmitReason) -> bool) -> u64 {
    let hidden = left_out.hidden.iter();
    hidden.filter(|left| judge(left.reason)).count() as u64
}
