//! Search for secrets in the names and contents of a patch. A patch cannot be redacted without
//! breaking it.
//!
//! The old lines of all hunks are joined before the search, and so are the new lines, so that a
//! secret that spans several lines is found. Binary contents are searched in their original form,
//! not in git's base 85.

use crate::capture::{EntryChange, MountChanges, Node};
use crate::patch::{FileStats, render_mount_patch};
use wp_codebox_policy::{Finding, Redactor};

/// Location of a secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretLocation {
    /// Path of the changed file below its mount, redacted.
    pub path: String,
    /// Line number in the file, counted from 1; 0 if the secret is in the name.
    pub line: u64,
    /// Kind of secret, e.g. `github-token`.
    pub kind: &'static str,
}

/// Returns the location of the first secret that a patch of these changes would contain.
#[must_use]
pub fn find_secret(changes: &MountChanges, redactor: &Redactor) -> Option<SecretLocation> {
    changes.entries.iter().find_map(|entry| {
        let at = |line, finding: &Finding| SecretLocation {
            path: redactor
                .redact(&String::from_utf8_lossy(&entry.path))
                .into_owned(),
            line,
            kind: finding.kind,
        };
        if let Some(finding) = redactor.find(&entry.path) {
            return Some(at(0, &finding));
        }
        // Usually the file contains no secret before or after the change. Then the patch, which is
        // slower to make, is not searched.
        let blobs = [entry.change.before(), entry.change.after()];
        let blobs = blobs.into_iter().flatten().filter_map(Node::blob);
        let found: Vec<(&[u8], Finding)> = blobs
            .filter_map(|blob| redactor.find(blob).map(|finding| (blob, finding)))
            .collect();
        let (blob, finding) = found.first()?;
        if is_binary(entry) {
            let line = blob[..finding.offset]
                .iter()
                .filter(|b| **b == b'\n')
                .count();
            return Some(at(line as u64 + 1, finding));
        }
        sides(entry).into_iter().find_map(|side| {
            let finding = redactor.find(&side.text)?;
            Some(at(side.line_at(finding.offset), &finding))
        })
    })
}

fn is_binary(entry: &EntryChange) -> bool {
    rendered(entry).1 == Some(FileStats::Binary)
}

fn rendered(entry: &EntryChange) -> (Vec<u8>, Option<FileStats>) {
    let one = MountChanges {
        entries: vec![entry.clone()],
        ..MountChanges::default()
    };
    let patch = render_mount_patch(&one, "", &[]);
    (patch.bytes, patch.stats.into_values().next())
}

/// The lines before or after a change, as far as the hunks of a patch contain them.
#[derive(Default)]
struct Side {
    text: Vec<u8>,
    /// For each line: its position in `text` and its line number in the file.
    lines: Vec<(usize, u64)>,
}

impl Side {
    fn line_at(&self, offset: usize) -> u64 {
        let after = self.lines.partition_point(|(start, _)| *start <= offset);
        after.checked_sub(1).map_or(0, |index| self.lines[index].1)
    }

    fn push(&mut self, number: u64, line: &[u8]) {
        self.lines.push((self.text.len(), number));
        self.text.extend_from_slice(line);
    }
}

/// Returns the lines before and after the change, as far as the patch contains them.
fn sides(entry: &EntryChange) -> [Side; 2] {
    let (patch, _) = rendered(entry);
    let [mut old, mut new] = [Side::default(), Side::default()];
    let (mut old_line, mut new_line) = (0, 0);
    let (mut old_left, mut new_left) = (0_u64, 0_u64);
    for line in patch.split_inclusive(|b| *b == b'\n') {
        if old_left == 0 && new_left == 0 {
            if let Some((old_span, new_span)) = spans(line) {
                (old_line, old_left) = old_span;
                (new_line, new_left) = new_span;
            }
            continue;
        }
        let Some((sign, rest)) = line.split_first() else {
            continue;
        };
        if matches!(sign, b' ' | b'-') {
            old.push(old_line, rest);
            old_line += 1;
            old_left -= 1;
        }
        if matches!(sign, b' ' | b'+') {
            new.push(new_line, rest);
            new_line += 1;
            new_left -= 1;
        }
    }
    [old, new]
}

type Span = (u64, u64);

/// Parses `@@ -a,b +c,d @@` and returns (a, b) and (c, d), first line and number of lines.
fn spans(line: &[u8]) -> Option<(Span, Span)> {
    let text = std::str::from_utf8(line).ok()?;
    let (old, new) = text
        .strip_prefix("@@ -")?
        .split_once(" @@")?
        .0
        .split_once(" +")?;
    let span = |text: &str| -> Option<Span> {
        let (start, count) = text.split_once(',')?;
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    Some((span(old)?, span(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Change, FileMode};

    const KEY: &str = "hunter2-hunter2";

    fn file(text: &str) -> Node {
        Node::File {
            mode: FileMode::Regular,
            bytes: text.as_bytes().to_vec(),
        }
    }

    fn find(path: &str, before: &str, after: &str) -> Option<(String, u64)> {
        let changes = MountChanges {
            entries: vec![EntryChange {
                path: path.into(),
                change: Change::Modified {
                    before: file(before),
                    after: file(after),
                },
            }],
            ..MountChanges::default()
        };
        let redactor = Redactor::new(&[KEY.to_owned(), "first line\nsecond line".to_owned()]);
        find_secret(&changes, &redactor).map(|found| (found.path, found.line))
    }

    #[test]
    fn secret_in_added_removed_or_context_line_is_found_with_its_line_number() {
        let many = |at: usize, text: &str| -> String {
            (1..=60)
                .map(|i| {
                    if i == at {
                        format!("{text}\n")
                    } else {
                        format!("{i}\n")
                    }
                })
                .collect()
        };
        let plain = many(0, "");
        assert_eq!(find("f", &plain, &many(40, KEY)), Some(("f".into(), 40)));
        // Removed lines and context lines are part of the patch, too.
        assert_eq!(find("f", &many(7, KEY), &plain), Some(("f".into(), 7)));
        let with_key = many(10, KEY);
        assert_eq!(
            find("f", &with_key, &with_key.replace("\n12\n", "\ntwelve\n")),
            Some(("f".into(), 10))
        );
        // Lines beyond the context of the hunks are not in the patch, so a secret there is not
        // reported.
        assert_eq!(
            find("f", &with_key, &with_key.replace("\n50\n", "\nfifty\n")),
            None
        );
        assert_eq!(find("f", &plain, &many(3, "harmless")), None);
    }

    #[test]
    fn multi_line_secret_and_secret_in_a_file_name_or_binary_file_are_found() {
        assert_eq!(
            find("f", "a\n", "a\nfirst line\nsecond line\n"),
            Some(("f".into(), 2))
        );
        let (path, line) = find(KEY, "a\n", "b\n").unwrap();
        assert!(!path.contains(KEY), "{path}");
        assert_eq!(line, 0);
        assert_eq!(
            find("f", "\0", &format!("\0\n{KEY}")),
            Some(("f".into(), 2))
        );
    }
}
