//! Line hunks with three lines of context.
//!
//! Invariants: only LF ends a line, so CR and mixed line endings are content. A last line without
//! LF is marked. The running time is limited: on difficult inputs the algorithm accepts a longer
//! edit script instead of searching longer.

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};
use std::collections::HashMap;

/// Number of unchanged lines before and after each change in a hunk.
const CONTEXT: usize = 3;

/// Hunks of one file, and how many lines they add and remove.
pub(super) struct Hunks {
    pub bytes: Vec<u8>,
    pub insertions: u64,
    pub deletions: u64,
}

/// Maximum number of lines in a file that is compared line by line. Each line costs memory beyond
/// its bytes; a file of only line feeds would need fifty times its size.
const MAX_LINES: usize = 200_000;

/// Returns whether bytes are rendered as text: UTF-8 without NUL (so the patch is UTF-8) and at
/// most [`MAX_LINES`] lines.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
        && std::str::from_utf8(bytes).is_ok()
        && bytes.iter().filter(|b| **b == b'\n').count() <= MAX_LINES
}

/// Returns the hunks that turn `before` into `after`; none if they are equal.
pub(super) fn hunks(before: &[u8], after: &[u8]) -> Hunks {
    let old: Vec<&[u8]> = lines(before);
    let new: Vec<&[u8]> = lines(after);
    let mut known = HashMap::new();
    let mut number = |line| {
        let next = known.len();
        *known.entry(line).or_insert(next)
    };
    let old_numbers: Vec<usize> = old.iter().map(|l| number(*l)).collect();
    let new_numbers: Vec<usize> = new.iter().map(|l| number(*l)).collect();
    let ops = capture_diff_slices(Algorithm::Myers, &old_numbers, &new_numbers);
    let mut out = Hunks {
        bytes: Vec::new(),
        insertions: 0,
        deletions: 0,
    };
    for group in group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let old_span = first.old_range().start..last.old_range().end;
        let new_span = first.new_range().start..last.new_range().end;
        out.bytes.extend_from_slice(
            format!("@@ -{} +{} @@\n", position(&old_span), position(&new_span)).as_bytes(),
        );
        for op in &group {
            if let DiffOp::Equal { .. } = op {
                old[op.old_range()]
                    .iter()
                    .for_each(|l| push_line(&mut out.bytes, b' ', l));
                continue;
            }
            for line in &old[op.old_range()] {
                push_line(&mut out.bytes, b'-', line);
                out.deletions += 1;
            }
            for line in &new[op.new_range()] {
                push_line(&mut out.bytes, b'+', line);
                out.insertions += 1;
            }
        }
    }
    out
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|b| *b == b'\n').collect()
}

/// Formats the position of a hunk, `start,count`. If `count` is 0, `start` is the number of the
/// line before the hunk.
fn position(span: &std::ops::Range<usize>) -> String {
    let start = if span.is_empty() {
        span.start
    } else {
        span.start + 1
    };
    format!("{start},{}", span.len())
}

fn push_line(out: &mut Vec<u8>, sign: u8, line: &[u8]) {
    out.push(sign);
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(before: &str, after: &str) -> String {
        String::from_utf8(hunks(before.as_bytes(), after.as_bytes()).bytes).unwrap()
    }

    #[test]
    fn diff_hunks_have_three_context_lines_and_mark_a_missing_final_newline() {
        assert_eq!(text("a\n", "a\n"), "");
        assert_eq!(text("", "a\n"), "@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(
            text("a", "a\n"),
            "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"
        );
        assert_eq!(
            text("one\ntwo\n", "one\nTWO\n"),
            "@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"
        );
        assert_eq!(
            text("a\r\nb\r", "a\nb\r"),
            "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n\\ No newline at end of file\n"
        );
        let many: String = (0..40).map(|i| format!("{i}\n")).collect();
        let edited = many.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n");
        let patch = text(&many, &edited);
        assert_eq!(patch.matches("@@ -").count(), 2, "{patch}");
        assert_eq!(patch.lines().count(), 2 + 8 + 7, "{patch}");
    }

    #[test]
    fn diff_of_repetitive_input_finishes_in_bounded_time() {
        // Only seven different lines, each repeated thousands of times: the worst case for an exact
        // search.
        let before: String = (0..60_000).map(|i| format!("{}\n", i % 7)).collect();
        let after: String = (0..60_000_u64)
            .map(|i| format!("{}\n", (i * i + i / 3) % 7))
            .collect();
        // Processor time of this thread: other processes stretch the time of the clock.
        let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_sec;
        let start = used();
        let made = hunks(before.as_bytes(), after.as_bytes());
        assert!(made.insertions > 0);
        assert!(used() - start < 20, "{} s", used() - start);
    }
}
