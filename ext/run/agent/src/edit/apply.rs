//! Applies a patch to file contents in memory: to all files or to none.

use super::lines::{self, TextLine};
use super::locate::{LocateError, Match, Wanted, locate};
use super::patch::{Body, FilePatch, Hunk, Line, Patch};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum number of a failing hunk's lines that the error message quotes.
const SHOWN: usize = 6;
const BOM: &str = "\u{feff}";

/// File contents by the file name that the patch uses; `None` where no file exists.
pub(crate) type Files = BTreeMap<String, Option<Vec<u8>>>;

/// Result of applying a patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    /// New contents of the changed files.
    pub files: Files,
    /// New permission bits of the files whose mode the patch changes.
    pub modes: BTreeMap<String, u32>,
    /// One sentence for each hunk that was applied at a position that matches only approximately.
    pub notes: Vec<String>,
}

/// List of all reasons why a patch does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the patch cannot be applied, and nothing was changed; correct these parts of it:\n{}", .0.join("\n"))]
pub(crate) struct DoesNotFit(pub Vec<String>);

/// Applies a patch to files. `before` contains the current content of every file that
/// [`Patch::paths`] returns.
pub(crate) fn apply(patch: &Patch, before: &Files) -> Result<Applied, DoesNotFit> {
    let mut now = before.clone();
    let mut applied = Applied::default();
    let mut faults = Vec::new();
    for file in &patch.files {
        if let Err(found) = one(file, &mut now, &mut applied) {
            faults.extend(found);
        }
    }
    if !faults.is_empty() {
        return Err(DoesNotFit(faults));
    }
    now.retain(|path, bytes| before.get(path) != Some(bytes));
    applied.files = now;
    if applied.files.is_empty() && applied.modes.is_empty() {
        return Err(DoesNotFit(vec!["the patch contains no change".to_owned()]));
    }
    Ok(applied)
}

fn one(file: &FilePatch, now: &mut Files, applied: &mut Applied) -> Result<(), Vec<String>> {
    let fault = |text: String| Err(vec![text]);
    let there = |path: &String| now.get(path).and_then(Option::as_ref);
    let (old, new) = (file.old.as_ref(), file.new.as_ref());
    if let Some(path) = old
        && there(path).is_none()
    {
        return fault(format!("{path}: there is no such file"));
    }
    if let Some(path) = new
        && old != new
        && there(path).is_some()
    {
        return fault(format!(
            "{path}: the file exists already; update it, or delete it first"
        ));
    }
    let bytes = old.and_then(there).cloned().unwrap_or_default();
    let name = new.or(old).cloned().unwrap_or_default();
    let after = match &file.body {
        Body::Gone => None,
        Body::Hunks(hunks) if hunks.is_empty() => Some(bytes),
        Body::Hunks(hunks) => {
            let Ok(text) = String::from_utf8(bytes) else {
                return fault(format!(
                    "{name}: the file is not UTF-8 text; write it with encoding base64"
                ));
            };
            Some(hunked(&name, &text, hunks, &mut applied.notes)?.into_bytes())
        }
    };
    match (new, after) {
        (Some(path), Some(after)) => {
            if let Some(old) = old.filter(|old| *old != path) {
                now.insert(old.clone(), None);
            }
            now.insert(path.clone(), Some(after));
            if let Some(mode) = file.mode {
                applied.modes.insert(path.clone(), mode);
            }
        }
        (None, after) => {
            if after.is_some_and(|rest| !rest.is_empty()) {
                return fault(format!(
                    "{name}: the file has more lines than the patch removes, so it cannot be deleted"
                ));
            }
            now.insert(name, None);
        }
        (Some(path), None) => {
            return fault(format!(
                "{path}: the patch has no new content for this file"
            ));
        }
    }
    Ok(())
}

fn hunked(
    name: &str,
    whole: &str,
    hunks: &[Hunk],
    notes: &mut Vec<String>,
) -> Result<String, Vec<String>> {
    let (mark, text) = match whole.strip_prefix(BOM) {
        Some(text) => (BOM, text),
        None => ("", whole),
    };
    let have = lines::split(text);
    let crlf = lines::is_crlf(&have);
    let (mark, hunks) = unmarked(mark, hunks);
    let mut out = Output {
        text: mark.to_owned(),
        open: false,
    };
    let (mut from, mut shift, mut faults) = (0, 0_isize, Vec::new());
    for (index, hunk) in hunks.iter().enumerate() {
        let label = || {
            format!(
                "{name}, hunk {} (line {} of the patch)",
                index + 1,
                hunk.patch_line
            )
        };
        match place(&have, hunk, from, shift) {
            Ok(found) => {
                if let Some(difference) = difference(found.by) {
                    notes.push(format!(
                        "{}: applied at line {} of the file, whose lines differ from the hunk {difference}",
                        label(),
                        found.at + 1
                    ));
                }
                if let Some(expected) = hunk.at {
                    shift = signed(found.at) - signed(expected.saturating_sub(1));
                }
                out.keep(&have[from..found.at]);
                let mut at = found.at;
                // Old lines of the hunk that end with CR show that the hunk already has the file's
                // CRLF line ends, so its added lines get no second CR.
                let crlf = crlf && !hunk.old().iter().any(|line| line.ends_with('\r'));
                for line in &hunk.lines {
                    match line {
                        Line::Keep(_) => {
                            out.keep(&have[at..=at]);
                            at += 1;
                        }
                        Line::Remove(_) => at += 1,
                        Line::Add(text) => out.add(text, crlf),
                    }
                }
                let ends = at == have.len();
                if ends {
                    out.close(hunk, have.last());
                }
                from = at;
            }
            Err(why) => faults.push(format!("{}: {why}", label())),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    out.keep(&have[from..]);
    Ok(out.text)
}

/// Removes the file's byte order mark from the hunks. Also returns the mark to write at the start
/// of the new file: an empty text when a hunk removes the mark.
fn unmarked<'a>(mark: &'a str, hunks: &[Hunk]) -> (&'a str, Vec<Hunk>) {
    let mut hunks = hunks.to_vec();
    if mark.is_empty() {
        return (mark, hunks);
    }
    let (mut removed, mut stays) = (false, false);
    for line in hunks.iter_mut().flat_map(|hunk| &mut hunk.lines) {
        let (text, is_removed) = match line {
            Line::Remove(text) => (text, true),
            Line::Keep(text) | Line::Add(text) => (text, false),
        };
        if let Some(rest) = text.strip_prefix(BOM) {
            *text = rest.to_owned();
            removed |= is_removed;
            stays |= !is_removed;
        }
    }
    (if removed && !stays { "" } else { mark }, hunks)
}

fn signed(at: usize) -> isize {
    isize::try_from(at).unwrap_or(isize::MAX)
}

fn difference(by: Match) -> Option<&'static str> {
    match by {
        Match::Exact | Match::LineEnds => None,
        Match::Trailing => Some("in trailing whitespace"),
        Match::Indented => Some("in indentation: check the indentation of the added lines"),
    }
}

fn place(
    have: &[TextLine<'_>],
    hunk: &Hunk,
    from: usize,
    shift: isize,
) -> Result<super::locate::HunkPosition, String> {
    let mut from = from;
    for below in &hunk.below {
        let wanted = Wanted {
            lines: &[below.as_str()],
            from,
            expected: None,
            at_end: false,
        };
        // The search for each heading starts below the line where the previous heading was found.
        let found = match locate(have, wanted) {
            Ok(place) => place.at,
            Err(LocateError::Ambiguous(found)) => found[0].at,
            Err(LocateError::Missing) => {
                return Err(format!(
                    "no line of the file matches the text after @@: {below:?}"
                ));
            }
        };
        from = found + 1;
    }
    let old = hunk.old();
    if old.is_empty() {
        return insertion(have, hunk, from);
    }
    let expected = hunk.at.and_then(|at| {
        let at = signed(at.saturating_sub(1)).saturating_add(shift);
        usize::try_from(at).ok()
    });
    let wanted = Wanted {
        lines: &old,
        from,
        expected,
        at_end: hunk.at_end || hunk.old_open,
    };
    let found = locate(have, wanted).or_else(|error| match error {
        // A patch without line numbers may mark a hunk as end of file by mistake, so search again
        // without that condition.
        LocateError::Missing if hunk.at_end => locate(
            have,
            Wanted {
                at_end: false,
                ..wanted
            },
        ),
        error => Err(error),
    });
    let found = match found {
        // The search starts at the hunk's heading, so the first match below the heading is the
        // intended one.
        Err(LocateError::Ambiguous(found)) if !hunk.below.is_empty() => Ok(found[0]),
        found => found,
    };
    found.map_err(|error| match error {
        LocateError::Ambiguous(found) => format!(
            "the hunk's lines are in the file more than once, at lines {}: give more context",
            found
                .iter()
                .take(10)
                .map(|found| (found.at + 1).to_string())
                .collect::<Vec<_>>()
                .join(", ")
        ),
        LocateError::Missing => missing(have, &old, from),
    })
}

/// Returns the position of a hunk that only adds lines and so has no context to search for. The
/// position is below the hunk's last heading; if the hunk has no heading, it is the end of the
/// file. Refuses a hunk with a line number unless the file is empty, because models often miscount
/// lines.
fn insertion(
    have: &[TextLine<'_>],
    hunk: &Hunk,
    from: usize,
) -> Result<super::locate::HunkPosition, String> {
    let by = Match::Exact;
    if have.is_empty() {
        return Ok(super::locate::HunkPosition { at: 0, by });
    }
    match hunk.at {
        Some(_) => {
            Err("the hunk adds lines without any context: give lines around them".to_owned())
        }
        None if hunk.below.is_empty() => Ok(super::locate::HunkPosition { at: have.len(), by }),
        None => Ok(super::locate::HunkPosition { at: from, by }),
    }
}

/// Describes for the error message which lines a hunk expects and how many of them the file
/// contains.
fn missing(have: &[TextLine<'_>], old: &[&str], from: usize) -> String {
    let mut text = "these lines are not in the file".to_owned();
    if from > 0 {
        let _ = write!(text, " after line {from}");
    }
    text.push(':');
    for line in old.iter().take(SHOWN) {
        let _ = write!(text, "\n    {line}");
    }
    if old.len() > SHOWN {
        let _ = write!(text, "\n    … {} more", old.len() - SHOWN);
    }
    // Reports the longest matching prefix, so that the error shows the first line that differs.
    let best = (0..have.len())
        .map(|at| {
            let same = have[at..].iter().zip(old);
            (
                same.take_while(|(h, o)| h.text.trim() == o.trim()).count(),
                at,
            )
        })
        .filter(|(count, at)| *count > 0 && !have[*at].text.trim().is_empty())
        .max_by_key(|(count, at)| (*count, usize::MAX - at));
    if let Some((count, at)) = best {
        let differs = at + count;
        let there = have.get(differs).map_or("the end of the file", |l| l.text);
        let _ = write!(
            text,
            "\n  from line {} on, the first {count} of them match; line {} of the file is: {there}",
            at + 1,
            differs + 1
        );
    }
    text.push_str("\n  read the file again and repeat its lines exactly");
    text
}

/// Content of the patched file while it is written line by line.
struct Output {
    text: String,
    /// Whether the last line has no line end yet; it gets one before another line follows.
    open: bool,
}

impl Output {
    fn line(&mut self, text: &str, closed: bool) {
        if self.open {
            self.text.push('\n');
        }
        self.text.push_str(text);
        if closed {
            self.text.push('\n');
        }
        self.open = !closed;
    }

    fn keep(&mut self, lines: &[TextLine<'_>]) {
        for line in lines {
            self.line(line.text, line.closed);
        }
    }

    fn add(&mut self, text: &str, crlf: bool) {
        self.line(text, true);
        if crlf && !text.ends_with('\r') {
            self.text.pop();
            self.text.push_str("\r\n");
        }
    }

    /// Writes the end of the file. The patch decides whether the last line gets a line end. If the
    /// patch does not state it, the last line of the old file decides.
    fn close(&mut self, hunk: &Hunk, last: Option<&TextLine<'_>>) {
        let open = match hunk.old_open || hunk.new_open {
            true => hunk.new_open,
            false => last.is_some_and(|line| !line.closed),
        };
        if open && self.text.ends_with('\n') {
            self.text.pop();
            self.open = true;
        } else if !open && self.open {
            self.text.push('\n');
            self.open = false;
        }
    }
}
