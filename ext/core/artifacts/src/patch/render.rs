//! Rendering of a mount's changes as a patch in git's format.
//!
//! The patch has one block (one `diff --git` section) per changed file or link, and two if a file
//! becomes a link or the reverse. Text blocks have no `index` line, as in other implementations of
//! the format; binary blocks have one because git requires it.

use super::Rename;
use super::binary::{binary_patch, blob_id};
use super::quote::{quote_name, quoted};
use super::text::{hunks, is_text};
use crate::capture::{MountChanges, Node};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a patch contains for one path, and how many lines of it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStats {
    /// A text file with hunks.
    Text {
        /// Number of added lines.
        insertions: u64,
        /// Number of removed lines.
        deletions: u64,
    },
    /// A `GIT binary patch` block.
    Binary,
    /// No block: an empty directory, or the old path of a rename, whose block belongs to the new
    /// path.
    NotCarried,
}

/// A patch of one mount, and line counts for each of its paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedPatch {
    /// Text of the patch, which is valid UTF-8.
    pub bytes: Vec<u8>,
    /// Kind of patch block and line counts for each changed path, relative to the mount.
    pub stats: BTreeMap<Vec<u8>, FileStats>,
}

/// Renders the changes of one mount. `prefix` is prepended to every name (empty, or ending in
/// `/`).
#[must_use]
pub fn render_mount_patch(
    changes: &MountChanges,
    prefix: &str,
    renames: &[Rename],
) -> RenderedPatch {
    let sources: HashSet<&[u8]> = renames.iter().map(|r| r.from.as_slice()).collect();
    let targets: HashMap<&[u8], &Rename> = renames.iter().map(|r| (r.to.as_slice(), r)).collect();
    let node_before: HashMap<&[u8], &Node> = changes
        .entries
        .iter()
        .filter_map(|e| e.change.before().map(|node| (e.path.as_slice(), node)))
        .collect();
    let mut out = RenderedPatch::default();
    for entry in &changes.entries {
        let path = entry.path.as_slice();
        let name = [prefix.as_bytes(), path].concat();
        let carried = |node: Option<&'_ Node>| node.is_some_and(|n| *n != Node::Directory);
        let before = entry.change.before().filter(|n| carried(Some(n)));
        let after = entry.change.after().filter(|n| carried(Some(n)));
        let renamed = targets
            .get(path)
            .and_then(|r| node_before.get(r.from.as_slice()).map(|node| (*r, *node)));
        let stats = if sources.contains(path) {
            FileStats::NotCarried
        } else if let (Some((rename, old)), Some(new)) = (renamed, after) {
            let from = [prefix.as_bytes(), &rename.from].concat();
            let names = Names {
                old: &from,
                new: &name,
                rename: Some(rename.similarity),
            };
            block(&mut out.bytes, &names, Some(old), Some(new))
        } else {
            let names = Names {
                old: &name,
                new: &name,
                rename: None,
            };
            match (before, after) {
                (None, None) => FileStats::NotCarried,
                (Some(old), Some(new)) if is_link(old) != is_link(new) => {
                    let removed = block(&mut out.bytes, &names, Some(old), None);
                    let added = block(&mut out.bytes, &names, None, Some(new));
                    sum(removed, added)
                }
                (before, after) => block(&mut out.bytes, &names, before, after),
            }
        };
        out.stats.insert(path.to_vec(), stats);
    }
    out
}

const fn is_link(node: &Node) -> bool {
    matches!(node, Node::Symlink { .. })
}

const fn sum(a: FileStats, b: FileStats) -> FileStats {
    match (a, b) {
        (
            FileStats::Text {
                insertions: i1,
                deletions: d1,
            },
            FileStats::Text {
                insertions: i2,
                deletions: d2,
            },
        ) => FileStats::Text {
            insertions: i1 + i2,
            deletions: d1 + d2,
        },
        _ => FileStats::Binary,
    }
}

struct Names<'a> {
    old: &'a [u8],
    new: &'a [u8],
    rename: Option<u8>,
}

fn block(
    out: &mut Vec<u8>,
    names: &Names<'_>,
    before: Option<&Node>,
    after: Option<&Node>,
) -> FileStats {
    let mut line = |text: String| {
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
    };
    line(format!(
        "diff --git {} {}",
        sided(b"a/", names.old),
        sided(b"b/", names.new)
    ));
    let mut same_mode = None;
    match (before, after) {
        (None, Some(new)) => line(format!("new file mode {}", new.git_mode())),
        (Some(old), None) => line(format!("deleted file mode {}", old.git_mode())),
        (Some(old), Some(new)) if old.git_mode() != new.git_mode() => {
            line(format!("old mode {}", old.git_mode()));
            line(format!("new mode {}", new.git_mode()));
        }
        (Some(old), Some(_)) => same_mode = Some(old.git_mode()),
        (None, None) => {}
    }
    if let Some(similarity) = names.rename {
        line(format!("similarity index {similarity}%"));
        line(format!("rename from {}", quote_name(names.old)));
        line(format!("rename to {}", quote_name(names.new)));
    }
    let old_blob = before.and_then(Node::blob);
    let new_blob = after.and_then(Node::blob);
    let (old_bytes, new_bytes) = (old_blob.unwrap_or_default(), new_blob.unwrap_or_default());
    if !is_text(old_bytes) || !is_text(new_bytes) {
        if old_bytes != new_bytes || old_blob.is_none() || new_blob.is_none() {
            let mode = same_mode.map(|m| format!(" {m}")).unwrap_or_default();
            line(format!(
                "index {}..{}{mode}",
                blob_id(old_blob),
                blob_id(new_blob)
            ));
            out.extend_from_slice(&binary_patch(old_bytes, new_bytes));
        }
        return FileStats::Binary;
    }
    let made = hunks(old_bytes, new_bytes);
    if !made.bytes.is_empty() {
        line(side("---", b"a/", names.old, before.is_some()));
        line(side("+++", b"b/", names.new, after.is_some()));
        out.extend_from_slice(&made.bytes);
    }
    FileStats::Text {
        insertions: made.insertions,
        deletions: made.deletions,
    }
}

fn sided(side: &[u8], name: &[u8]) -> String {
    let full = [side, name].concat();
    // Git does not quote a trailing space, but GNU patch trims an unquoted one.
    if name.ends_with(b" ") {
        quoted(&full)
    } else {
        quote_name(&full)
    }
}

/// Formats a `---` or `+++` line. A tab terminates a name with a space, because a reader could
/// otherwise parse the text after the space as a time stamp.
fn side(sign: &str, side: &[u8], name: &[u8], exists: bool) -> String {
    if !exists {
        return format!("{sign} /dev/null");
    }
    let tab = if name.contains(&b' ') { "\t" } else { "" };
    format!("{sign} {}{tab}", sided(side, name))
}
