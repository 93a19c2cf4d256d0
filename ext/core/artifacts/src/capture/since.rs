//! Difference between two changes of the same files. Does no I/O.
//!
//! Both begin from the same baseline. If only one of them lists a path, the other left the path as
//! it is in the baseline, which is the state before the run in the listed change.

use super::layer::has_below;
use super::{Change, EntryChange, MountChanges, Node};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the changes that turn the result of `earlier` into the result of `now`.
#[must_use]
pub fn changes_since(earlier: &MountChanges, now: &MountChanges) -> MountChanges {
    let (earlier, now) = (by_path(earlier), by_path(now));
    let paths: BTreeSet<&[u8]> = earlier.keys().chain(now.keys()).copied().collect();
    let mut entries = Vec::new();
    for path in paths {
        let (one, other) = (earlier.get(path), now.get(path));
        let old = match one {
            Some(change) => change.after(),
            None => other.and_then(|change| change.before()),
        };
        let new = match other {
            Some(change) => change.after(),
            None => one.and_then(|change| change.before()),
        };
        let change = match (old.cloned(), new.cloned()) {
            (None, None) => continue,
            (Some(before), Some(after)) if before == after => continue,
            (Some(before), Some(after)) => Change::Modified { before, after },
            (None, Some(after)) => Change::Added(after),
            (Some(before), None) => Change::Deleted(before),
        };
        let path = path.to_vec();
        entries.push(EntryChange { path, change });
    }
    let filled = filled_directories(&entries);
    entries.retain(|entry| !filled.contains(&entry.path));
    MountChanges {
        entries,
        ..MountChanges::default()
    }
}

/// Returns the paths of directories that were empty and have entries now. A change lists only empty
/// directories as entries, so `entries` lists these directories as deleted although they exist.
fn filled_directories(entries: &[EntryChange]) -> BTreeSet<Vec<u8>> {
    let alive: BTreeSet<&[u8]> = entries
        .iter()
        .filter(|entry| entry.change.after().is_some())
        .map(|entry| entry.path.as_slice())
        .collect();
    entries
        .iter()
        .filter(|entry| entry.change == Change::Deleted(Node::Directory))
        .filter(|entry| has_below(&alive, &entry.path))
        .map(|entry| entry.path.clone())
        .collect()
}

fn by_path(changes: &MountChanges) -> BTreeMap<&[u8], &Change> {
    let entries = changes.entries.iter();
    entries
        .map(|entry| (entry.path.as_slice(), &entry.change))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::FileMode;

    fn file(text: &str) -> Node {
        Node::File {
            mode: FileMode::Regular,
            bytes: text.as_bytes().to_vec(),
        }
    }

    fn changes(rows: &[(&str, Change)]) -> MountChanges {
        MountChanges {
            entries: rows
                .iter()
                .map(|(path, change)| EntryChange {
                    path: path.as_bytes().to_vec(),
                    change: change.clone(),
                })
                .collect(),
            ..MountChanges::default()
        }
    }

    fn modified(before: &str, after: &str) -> Change {
        Change::Modified {
            before: file(before),
            after: file(after),
        }
    }

    /// Both changes start from the same baseline, whose contents are "0".
    #[test]
    fn changes_since_an_earlier_change_lead_from_the_earlier_to_the_new_result() {
        use Change::{Added, Deleted};
        let earlier = changes(&[
            ("changed-again", modified("0", "1")),
            ("kept", modified("0", "1")),
            ("new", Added(file("1"))),
            ("new-and-gone", Added(file("1"))),
            ("removed", Deleted(file("0"))),
            ("removed-and-back", Deleted(file("0"))),
            ("reverted", modified("0", "1")),
        ]);
        let now = changes(&[
            ("changed-again", modified("0", "2")),
            ("kept", modified("0", "1")),
            ("new", Added(file("2"))),
            ("only-now", modified("0", "2")),
            ("removed", Deleted(file("0"))),
            ("removed-and-back", modified("0", "2")),
        ]);
        let since = changes(&[
            ("changed-again", modified("1", "2")),
            ("new", modified("1", "2")),
            ("new-and-gone", Deleted(file("1"))),
            ("only-now", modified("0", "2")),
            ("removed-and-back", Added(file("2"))),
            ("reverted", modified("1", "0")),
        ]);
        assert_eq!(changes_since(&earlier, &now), since);
        assert_eq!(changes_since(&now, &now), MountChanges::default());
        assert_eq!(changes_since(&MountChanges::default(), &now), now);
    }

    #[test]
    fn directory_that_was_emptied_and_got_its_entries_back_is_not_deleted() {
        use Change::{Added, Deleted};
        let emptied = changes(&[("d", Added(Node::Directory)), ("d/a", Deleted(file("0")))]);
        let back = changes_since(&emptied, &MountChanges::default());
        assert_eq!(back, changes(&[("d/a", Added(file("0")))]));
        let gone = changes(&[("d/a", Deleted(file("0")))]);
        let since = changes_since(&emptied, &gone);
        assert_eq!(since, changes(&[("d", Deleted(Node::Directory))]));
    }

    #[test]
    fn difference_restores_a_directory_that_only_the_earlier_change_replaced_by_a_file() {
        use Change::{Added, Deleted};
        let replaced = changes(&[("d", Added(file("1"))), ("d/a", Deleted(file("0")))]);
        let back = changes(&[("d", Deleted(file("1"))), ("d/a", Added(file("0")))]);
        assert_eq!(changes_since(&replaced, &MountChanges::default()), back);
    }
}
