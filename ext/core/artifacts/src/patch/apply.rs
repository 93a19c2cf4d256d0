//! Applies one block of a patch to the exact bytes for which it was written.
//!
//! Invariants: hunks apply only at their stated lines, and context and removed lines must match
//! byte for byte. There is no fuzzy search. Memory is limited by the size that the block states.

use super::binary::literal_bytes;
use super::parse::{Block, PatchError};

/// Maximum size of a file that a block may produce, in bytes.
const LARGEST: u64 = 1 << 30;

/// Returns the contents of the block's file after the change; no bytes if the block deletes the
/// file. `before` has the contents before the change; no bytes if the block adds the file.
pub(crate) fn apply_block(
    patch: &[u8],
    block: &Block,
    before: &[u8],
) -> Result<Vec<u8>, PatchError> {
    let bytes = patch.get(block.range.clone()).unwrap_or_default();
    // The lines before the block are counted only for an error: counting them for each block of a
    // patch would take quadratic time.
    apply_lines(bytes, before).map_err(|error| PatchError {
        line: error.line + line_count(patch.get(..block.range.start).unwrap_or_default()),
        ..error
    })
}

/// Applies the lines of one block. The line of an error is counted from the beginning of the block.
fn apply_lines(bytes: &[u8], before: &[u8]) -> Result<Vec<u8>, PatchError> {
    let mut lines = Lines {
        rest: bytes,
        number: 0,
    };
    while let Some(line) = lines.peek() {
        if line.starts_with(b"@@ ") {
            return hunks(&mut lines, before);
        }
        lines.next();
        if line == b"GIT binary patch\n" {
            return literal(&mut lines);
        }
    }
    // A block without hunks changes only the mode or the name.
    Ok(before.to_vec())
}

/// Lines of a block, each with its LF, and the number of the last line that was read.
struct Lines<'p> {
    rest: &'p [u8],
    number: usize,
}

impl<'p> Lines<'p> {
    fn peek(&self) -> Option<&'p [u8]> {
        let end = self.rest.iter().position(|b| *b == b'\n');
        let length = end.map_or(self.rest.len(), |at| at + 1);
        (length > 0).then(|| &self.rest[..length])
    }

    fn next(&mut self) -> Option<&'p [u8]> {
        let line = self.peek()?;
        self.rest = &self.rest[line.len()..];
        self.number += 1;
        Some(line)
    }

    fn error(&self, reason: &'static str) -> PatchError {
        PatchError {
            line: self.number,
            reason,
        }
    }
}

fn line_count(bytes: &[u8]) -> usize {
    #[cfg(test)]
    tests::COUNTS.set(tests::COUNTS.get() + 1);
    bytes.iter().filter(|b| **b == b'\n').count()
}

fn hunks(lines: &mut Lines<'_>, before: &[u8]) -> Result<Vec<u8>, PatchError> {
    const MISFIT: &str = "the hunk does not fit the file";
    let mut old = before.split_inclusive(|b| *b == b'\n');
    // Number of lines of `old` that were read.
    let mut at = 0;
    let mut after = Vec::with_capacity(before.len());
    while let Some(header) = lines.next() {
        let (start, mut old_left, mut new_left) =
            positions(header).ok_or_else(|| lines.error("malformed hunk header"))?;
        // The start of a hunk without old lines is the number of the line before the hunk.
        let first = if old_left == 0 {
            start
        } else {
            start.saturating_sub(1)
        };
        if first < at {
            return Err(lines.error("the hunks overlap"));
        }
        while at < first {
            after.extend_from_slice(old.next().ok_or_else(|| lines.error(MISFIT))?);
            at += 1;
        }
        while old_left > 0 || new_left > 0 {
            let line = lines
                .next()
                .ok_or_else(|| lines.error("a hunk ends too early"))?;
            let (sign, text) = match line {
                // Some tools strip the space of an empty context line.
                b"\n" => (b' ', &b"\n"[..]),
                [sign, text @ ..] => (*sign, text),
                [] => return Err(lines.error("a hunk ends too early")),
            };
            let text = match lines.peek() {
                Some([b'\\', ..]) => {
                    lines.next();
                    text.strip_suffix(b"\n").unwrap_or(text)
                }
                _ => text,
            };
            if sign != b'+' {
                if old_left == 0 || old.next() != Some(text) {
                    return Err(lines.error(MISFIT));
                }
                at += 1;
                old_left -= 1;
            }
            if sign != b'-' {
                if new_left == 0 {
                    return Err(lines.error("a hunk has more lines than it declares"));
                }
                after.extend_from_slice(text);
                new_left -= 1;
            }
        }
    }
    old.for_each(|line| after.extend_from_slice(line));
    Ok(after)
}

/// Parses `@@ -a[,b] +c[,d] @@…` and returns (a, b, d); b and d are 1 if omitted.
fn positions(header: &[u8]) -> Option<(u64, u64, u64)> {
    let header = header.strip_prefix(b"@@ -")?;
    let end = header.windows(3).position(|w| w == b" @@")?;
    let (old, new) = std::str::from_utf8(&header[..end]).ok()?.split_once(" +")?;
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
    };
    let ((start, old), (_, new)) = (range(old)?, range(new)?);
    Some((start, old, new))
}

fn literal(lines: &mut Lines<'_>) -> Result<Vec<u8>, PatchError> {
    let header = lines.next().unwrap_or_default();
    let size = header
        .strip_prefix(b"literal ")
        .and_then(|size| {
            std::str::from_utf8(size)
                .ok()?
                .trim_end()
                .parse::<u64>()
                .ok()
        })
        .filter(|size| *size <= LARGEST)
        .ok_or_else(|| {
            lines.error("the size of a binary `literal` must be a number of at most 1 GiB")
        })?;
    let mut data = Vec::new();
    while let Some(line) = lines.next() {
        match line.strip_suffix(b"\n").unwrap_or(line) {
            b"" => break,
            line => data.push(line),
        }
    }
    literal_bytes(&data, size).ok_or_else(|| lines.error("malformed binary data"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Change, EntryChange, FileMode, MountChanges, Node};
    use crate::patch::{parse_patch, render_mount_patch};
    use std::cell::Cell;

    // Number of times that this thread counted the lines before a block.
    thread_local!(pub(super) static COUNTS: Cell<usize> = const { Cell::new(0) });

    fn counted<T>(call: impl FnOnce() -> T) -> (usize, T) {
        let before = COUNTS.get();
        let result = call();
        (COUNTS.get() - before, result)
    }

    fn change(before: &[u8], after: &[u8]) -> Vec<u8> {
        let node = |bytes: &[u8]| Node::File {
            mode: FileMode::Regular,
            bytes: bytes.to_vec(),
        };
        let changes = MountChanges {
            entries: vec![EntryChange {
                path: b"f".to_vec(),
                change: Change::Modified {
                    before: node(before),
                    after: node(after),
                },
            }],
            ..MountChanges::default()
        };
        render_mount_patch(&changes, "", &[]).bytes
    }

    #[test]
    fn rendered_patch_applied_to_the_old_file_gives_the_new_file() {
        let many: String = (0..400).map(|i| format!("line {i}\n")).collect();
        let edited = many
            .replace("line 7\n", "line seven\nand more\n")
            .replace("line 390\n", "")
            .replace("line 399\n", "line 399");
        for (before, after) in [
            (&b""[..], &b"a\n"[..]),
            (b"a\n", b""),
            (b"a", b"a\n"),
            (b"a\n", b"a"),
            (b"a\r\nb\r", b"a\nb\r"),
            (b"\n\n\n", b"\n\nx\n"),
            (b"\\ No newline at end of file\n", b"x\n\\ odd\n"),
            (b"\0binary", b"other\xff"),
            (b"text\n", b"\0"),
            (many.as_bytes(), edited.as_bytes()),
            (edited.as_bytes(), many.as_bytes()),
        ] {
            let patch = change(before, after);
            let blocks = parse_patch(&patch).unwrap();
            assert_eq!(apply_block(&patch, &blocks[0], before).unwrap(), after);
        }
    }

    #[test]
    fn error_of_the_second_block_has_the_line_in_the_whole_patch_and_only_an_error_counts_lines() {
        let one = change(b"one\n", b"1\n");
        let patch = [one.clone(), one.clone()].concat();
        let blocks = parse_patch(&patch).unwrap();
        let (counts, applied) = counted(|| apply_block(&patch, &blocks[1], b"one\n"));
        assert_eq!((counts, applied.unwrap()), (0, b"1\n".to_vec()));
        let (counts, first) = counted(|| apply_block(&patch, &blocks[0], b"other\n"));
        let second = apply_block(&patch, &blocks[1], b"other\n").unwrap_err();
        let lines = one.iter().filter(|b| **b == b'\n').count();
        assert_eq!((counts, second.line), (1, first.unwrap_err().line + lines));
    }

    #[test]
    fn hunk_that_does_not_match_the_file_is_refused() {
        let patch = change(b"one\ntwo\nthree\n", b"one\n2\nthree\n");
        let block = &parse_patch(&patch).unwrap()[0];
        for other in [
            &b""[..],
            b"one\n",
            b"one\ntwo \nthree\n",
            b"x\none\ntwo\nthree\n",
        ] {
            let error = apply_block(&patch, block, other).unwrap_err();
            assert_eq!(error.reason, "the hunk does not fit the file");
        }
    }

    #[test]
    fn binary_literal_with_another_size_or_damaged_data_is_refused() {
        let patch = String::from_utf8(change(b"\0a", b"\0bc")).unwrap();
        for (from, to) in [
            ("literal 3", "literal 4"),
            ("literal 3", "literal 2"),
            ("literal 3", "delta 3"),
        ] {
            let bad = patch.replace(from, to).into_bytes();
            let block = &parse_patch(&bad).unwrap()[0];
            assert!(apply_block(&bad, block, b"\0a").is_err(), "{to}");
        }
        let at = patch.find("literal 3\n").unwrap() + "literal 3\n".len() + 4;
        let mut bad = patch.into_bytes();
        bad[at] = if bad[at] == b'0' { b'1' } else { b'0' };
        let block = &parse_patch(&bad).unwrap()[0];
        assert!(apply_block(&bad, block, b"\0a").is_err());
    }
}
