//! Detection of renamed regular files, for callers that ask for it.
//!
//! Invariants: a path takes part in at most one rename. The result depends only on the changes. The
//! number of compared pairs has a limit.

use crate::capture::{Change, MountChanges, Node};
use crate::digest::sha256;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Minimum similarity of a deleted and an added file that count as a rename, in per cent.
const THRESHOLD: u8 = 50;
/// Maximum number of pairs of unequal files whose similarity is computed. If there are more pairs,
/// only files with equal contents count as renamed.
const MAX_PAIRS: usize = 10_000;

/// A deleted path and the added path that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// Deleted path below the mount.
    pub from: Vec<u8>,
    /// Added path below the mount.
    pub to: Vec<u8>,
    /// Bytes of equal lines in per cent of the larger file, from 50 to 100.
    pub similarity: u8,
}

/// Pairs deleted with added regular files: equal contents first, then contents of at least 50 %
/// similarity.
#[must_use]
pub fn find_renames(changes: &MountChanges) -> Vec<Rename> {
    let mut gone: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    let mut made: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    for entry in &changes.entries {
        match &entry.change {
            Change::Deleted(Node::File { bytes, .. }) if !bytes.is_empty() => {
                gone.insert(&entry.path, bytes);
            }
            Change::Added(Node::File { bytes, .. }) if !bytes.is_empty() => {
                made.insert(&entry.path, bytes);
            }
            _ => {}
        }
    }
    let mut renames = equal_contents(&mut gone, &mut made);
    if gone.len() * made.len() <= MAX_PAIRS {
        renames.extend(similar_contents(&gone, &made));
    }
    renames.sort_by(|a, b| a.to.cmp(&b.to));
    renames
}

fn equal_contents<'a>(
    gone: &mut BTreeMap<&'a [u8], &'a [u8]>,
    made: &mut BTreeMap<&'a [u8], &'a [u8]>,
) -> Vec<Rename> {
    let mut by_hash: HashMap<_, Vec<&[u8]>> = HashMap::new();
    for (path, bytes) in gone.iter().rev() {
        by_hash.entry(sha256(bytes)).or_default().push(path);
    }
    let mut renames = Vec::new();
    made.retain(|to, bytes| {
        let Some(from) = by_hash.get_mut(&sha256(bytes)).and_then(Vec::pop) else {
            return true;
        };
        gone.remove(from);
        renames.push(Rename {
            from: from.to_vec(),
            to: to.to_vec(),
            similarity: 100,
        });
        false
    });
    renames
}

fn similar_contents(gone: &BTreeMap<&[u8], &[u8]>, made: &BTreeMap<&[u8], &[u8]>) -> Vec<Rename> {
    let counted: Vec<_> = gone
        .iter()
        .map(|(p, b)| (*p, b.len(), line_bytes(b)))
        .collect();
    let mut pairs = Vec::new();
    for (to, bytes) in made {
        let new = line_bytes(bytes);
        for (from, old_size, old) in &counted {
            let common: usize = new
                .iter()
                .map(|(line, count)| line.len() * old.get(line).copied().unwrap_or(0).min(*count))
                .sum();
            let score = common * 100 / bytes.len().max(*old_size);
            if score >= usize::from(THRESHOLD) {
                // Unequal contents never have 100 % similarity.
                pairs.push((Reverse(score.min(99)), *from, *to));
            }
        }
    }
    pairs.sort_unstable();
    let mut used = BTreeSet::new();
    pairs
        .into_iter()
        .filter(|(_, from, to)| {
            let free = !used.contains(&(0, *from)) && !used.contains(&(1, *to));
            if free {
                used.insert((0, *from));
                used.insert((1, *to));
            }
            free
        })
        .map(|(Reverse(score), from, to)| Rename {
            from: from.to_vec(),
            to: to.to_vec(),
            similarity: u8::try_from(score).unwrap_or(THRESHOLD),
        })
        .collect()
}

/// Returns each different line with the number of its occurrences.
fn line_bytes(bytes: &[u8]) -> HashMap<&[u8], usize> {
    let mut counts = HashMap::new();
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        *counts.entry(line).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{EntryChange, FileMode};

    fn file(text: &str) -> Node {
        Node::File {
            mode: FileMode::Regular,
            bytes: text.as_bytes().to_vec(),
        }
    }

    #[test]
    fn rename_detection_pairs_equal_and_similar_files_and_leaves_different_files_alone() {
        let entry = |path: &str, change| EntryChange {
            path: path.into(),
            change,
        };
        let changes = MountChanges {
            entries: vec![
                entry("a", Change::Deleted(file("1\n2\n3\n4\n"))),
                entry("b", Change::Deleted(file("same\n"))),
                entry("c", Change::Deleted(file("q\nr\n"))),
                entry("x", Change::Added(file("1\n2\n3\nfour\n"))),
                entry("y", Change::Added(file("same\n"))),
                entry("z", Change::Added(file("u\nv\n"))),
            ],
            ..MountChanges::default()
        };
        let found: Vec<_> = find_renames(&changes)
            .into_iter()
            .map(|r| (r.from, r.to, r.similarity))
            .collect();
        assert_eq!(
            found,
            [
                (b"a".to_vec(), b"x".to_vec(), 54),
                (b"b".to_vec(), b"y".to_vec(), 100)
            ]
        );
    }
}
