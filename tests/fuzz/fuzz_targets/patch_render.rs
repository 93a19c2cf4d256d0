//! Patches rendered from a guest's changes, then parsed, filtered and applied.
//!
//! A rendered patch is UTF-8, parses to one block per change, and is unchanged by a filter that
//! approves everything. `apply` below, which shares no code with the renderer, turns the old text
//! of a file into the new text with the patch's hunks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use wp_codebox_artifacts::{
    Change, EntryChange, FileMode, FileStats, MountChanges, MountNames, Node, filter_patch,
    find_renames, mount_entries, parse_patch, render_mount_patch,
};
use wp_codebox_contracts::GuestPath;

/// Reader of the fuzzer's input. At the end it returns zeros and empty pieces.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// The bytes up to the next 0xff.
    fn piece(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|b| *b == 0xff);
        let (piece, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, &[][..]),
        };
        self.0 = rest;
        piece
    }

    fn node(&mut self) -> Node {
        match self.byte() % 6 {
            0 => Node::Directory,
            1 => Node::Symlink {
                target: self.piece().to_vec(),
            },
            kind => Node::File {
                mode: if kind == 2 {
                    FileMode::Executable
                } else {
                    FileMode::Regular
                },
                bytes: self.piece().to_vec(),
            },
        }
    }
}

/// Whether capture could report this path: relative, no empty, `.`, `..` or `.git` component,
/// no NUL byte.
fn is_path(path: &[u8]) -> bool {
    !path.contains(&0)
        && path
            .split(|b| *b == b'/')
            .all(|part| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git"))
}

fn changes(mut input: Input<'_>) -> MountChanges {
    let mut entries = BTreeMap::new();
    while !input.0.is_empty() && entries.len() < 8 {
        let path = input.piece();
        let change = match input.byte() % 3 {
            0 => Change::Added(input.node()),
            1 => Change::Deleted(input.node()),
            _ => {
                let (before, after) = (input.node(), input.node());
                if before == after {
                    continue;
                }
                Change::Modified { before, after }
            }
        };
        if is_path(path) {
            entries.insert(path.to_vec(), change);
        }
    }
    MountChanges {
        entries: entries
            .into_iter()
            .map(|(path, change)| EntryChange { path, change })
            .collect(),
        ..MountChanges::default()
    }
}

/// Applies the hunks of one file's patch block to the old content; returns the new content.
fn apply(block: &[u8], before: &[u8]) -> Vec<u8> {
    let old: Vec<&[u8]> = before.split_inclusive(|b| *b == b'\n').collect();
    let mut out: Vec<u8> = Vec::new();
    let mut at = 0;
    let mut lines = block.split_inclusive(|b| *b == b'\n').peekable();
    while let Some(line) = lines.next() {
        let Some(head) = line.strip_prefix(b"@@ -") else {
            continue;
        };
        let head = std::str::from_utf8(head).expect("hunk headers are ASCII");
        let (ranges, _) = head.split_once(" @@").expect("hunk header");
        let (from, to) = ranges.split_once(" +").expect("hunk header");
        let pair = |text: &str| {
            let (start, count) = text.split_once(',').expect("start,count");
            let number = |n: &str| n.parse::<usize>().expect("a number");
            (number(start), number(count))
        };
        let ((start, mut old_left), (_, mut new_left)) = (pair(from), pair(to));
        let first = if old_left == 0 { start } else { start - 1 };
        while at < first {
            out.extend_from_slice(old[at]);
            at += 1;
        }
        while old_left + new_left > 0 {
            let line = lines.next().expect("as many lines as declared");
            let mut text = line[1..].to_vec();
            if lines.peek().is_some_and(|next| next.starts_with(b"\\")) {
                lines.next();
                assert_eq!(text.pop(), Some(b'\n'));
            }
            if line[0] != b'+' {
                assert_eq!(old[at], text, "context or removed line");
                at += 1;
                old_left -= 1;
            }
            if line[0] != b'-' {
                out.extend_from_slice(&text);
                new_left -= 1;
            }
        }
    }
    for line in &old[at..] {
        out.extend_from_slice(line);
    }
    out
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else {
        return;
    };
    let changes = changes(Input(data));
    let renames = if kind % 2 == 1 {
        find_renames(&changes)
    } else {
        Vec::new()
    };
    let patch = render_mount_patch(&changes, "", &renames);
    assert!(std::str::from_utf8(&patch.bytes).is_ok());
    let blocks = parse_patch(&patch.bytes).expect("a rendered patch is a patch");
    let names = MountNames {
        index: 0,
        target: GuestPath::new("/workspace/x").expect("a guest path"),
        prefix: String::new(),
    };
    let entries = mount_entries(&names, &changes, &patch, &renames);
    assert_eq!(
        filter_patch(&patch.bytes, &entries).as_deref(),
        Ok(patch.bytes.as_slice())
    );
    for entry in &changes.entries {
        let text = |node: Option<&Node>| node.and_then(Node::blob).map(<[u8]>::to_vec);
        let (Change::Modified { before, after }, Some(FileStats::Text { .. })) =
            (&entry.change, patch.stats.get(&entry.path))
        else {
            continue;
        };
        let own: Vec<_> = blocks
            .iter()
            .filter(|block| {
                block.new_name.as_deref().or(block.old_name.as_deref()) == Some(&entry.path)
            })
            .collect();
        if let [block] = own.as_slice() {
            let (Some(before), Some(after)) = (text(Some(before)), text(Some(after))) else {
                continue;
            };
            assert_eq!(apply(&patch.bytes[block.range.clone()], &before), after);
        }
    }
});
