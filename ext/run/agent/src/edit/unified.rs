//! Parses unified diffs, plain or with git's extended headers.
//!
//! The line counts of a hunk header decide where the hunk ends if they are correct. Models often
//! miscount; a hunk with wrong counts ends at the next header.

use super::patch::{Body, FilePatch, Hunk, Line, ParseError, fault, tidy};
use wp_codebox_artifacts::unquote_name;

/// Header lines and hunks of one file in a diff, while they are parsed.
#[derive(Debug, Default)]
struct Heading {
    /// Both names in the `diff --git` line, not separated yet.
    git: Option<String>,
    /// Name in the `rename from` line.
    from: Option<String>,
    /// Name in the `rename to` line.
    to: Option<String>,
    /// Name in the `---` line.
    old: Option<Name>,
    /// Name in the `+++` line.
    new: Option<Name>,
    mode: Option<u32>,
    added: bool,
    deleted: bool,
    hunks: Vec<Hunk>,
    line: usize,
}

/// File name in a `---` or `+++` line; `/dev/null` stands for no file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Nothing,
    File(String),
}

pub(super) fn parse(lines: &[&str]) -> Result<Vec<FilePatch>, ParseError> {
    let mut files = Vec::new();
    let mut heading: Option<Heading> = None;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(rest) = line.strip_prefix("diff --git ") {
            finish(heading.take(), &mut files)?;
            heading = Some(Heading {
                git: Some(rest.to_owned()),
                line: at,
                ..Heading::default()
            });
        } else if is_names(lines, at) {
            let fresh = heading
                .as_ref()
                .is_none_or(|h| h.old.is_some() || !h.hunks.is_empty());
            if fresh {
                finish(heading.take(), &mut files)?;
            }
            let current = heading.get_or_insert_with(|| Heading {
                line: at,
                ..Heading::default()
            });
            current.old = Some(file_name(&line[4..], at)?);
            current.new = Some(file_name(&lines[at + 1][4..], at + 1)?);
            at += 1;
        } else if line.starts_with("@@") {
            let Some(current) = heading.as_mut() else {
                return fault(
                    at,
                    "this hunk belongs to no file: write --- and +++ lines with the file name before it",
                );
            };
            let (hunk, next) = hunk(lines, at)?;
            current.hunks.push(hunk);
            at = next;
            continue;
        } else if let Some(current) = heading.as_mut() {
            extended(current, line, at)?;
        }
        at += 1;
    }
    finish(heading.take(), &mut files)?;
    Ok(files)
}

/// Returns whether a `---` line and a `+++` line start here. Both are required, because a removed
/// line that begins with `-- ` also looks like a `---` line.
fn is_names(lines: &[&str], at: usize) -> bool {
    lines[at].starts_with("--- ")
        && lines
            .get(at + 1)
            .is_some_and(|next| next.starts_with("+++ "))
}

fn extended(heading: &mut Heading, line: &str, at: usize) -> Result<(), ParseError> {
    let mode = |text: &str| match u32::from_str_radix(text.trim(), 8) {
        Ok(mode @ (0o100_644 | 0o100_755)) => Ok(mode & 0o777),
        Ok(0o120_000) => fault(
            at,
            "a patch cannot contain symbolic links; create the link with terminal.run",
        ),
        _ => fault(at, "the mode must be 100644 or 100755"),
    };
    if let Some(text) = line.strip_prefix("new file mode ") {
        heading.mode = Some(mode(text)?);
        heading.added = true;
    } else if let Some(text) = line.strip_prefix("new mode ") {
        heading.mode = Some(mode(text)?);
    } else if let Some(text) = line.strip_prefix("deleted file mode ") {
        mode(text)?;
        heading.deleted = true;
    } else if let Some(text) = line.strip_prefix("rename from ") {
        heading.from = Some(unquoted(text, at)?);
    } else if let Some(text) = line.strip_prefix("rename to ") {
        heading.to = Some(unquoted(text, at)?);
    } else if line.starts_with("copy from ") {
        return fault(at, "a patch cannot copy a file; write the new file");
    } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
        return fault(
            at,
            "binary files cannot be patched; write the file with encoding base64",
        );
    } else if !heading.hunks.is_empty() && !line.trim().is_empty() && heading.git.is_none() {
        return fault(
            at,
            "this line is outside of a hunk; lines of a hunk begin with a space, - or +",
        );
    }
    Ok(())
}

fn unquoted(text: &str, at: usize) -> Result<String, ParseError> {
    let text = text.trim_end_matches('\r');
    if !text.starts_with('"') {
        return Ok(text.to_owned());
    }
    match unquote_name(text.as_bytes()).map(|(name, _)| String::from_utf8(name)) {
        Some(Ok(name)) => Ok(name),
        _ => fault(at, "the quoted name cannot be read"),
    }
}

fn file_name(text: &str, at: usize) -> Result<Name, ParseError> {
    // Plain diffs append a tab and a date to the file name.
    let text = match text.starts_with('"') {
        true => text,
        false => text.split('\t').next().unwrap_or_default(),
    };
    match unquoted(text, at)?.trim_end() {
        "" => fault(at, "the heading has no file name"),
        "/dev/null" => Ok(Name::Nothing),
        name => Ok(Name::File(name.to_owned())),
    }
}

fn finish(heading: Option<Heading>, files: &mut Vec<FilePatch>) -> Result<(), ParseError> {
    let Some(heading) = heading else {
        return Ok(());
    };
    let at = heading.line;
    let (old, new) = names(&heading, at)?;
    let gone = new.is_none() && heading.hunks.is_empty();
    files.push(FilePatch {
        old,
        new,
        mode: heading.mode,
        body: match gone {
            true => Body::Gone,
            false => Body::Hunks(heading.hunks),
        },
    });
    Ok(())
}

type Names = (Option<String>, Option<String>);

fn names(heading: &Heading, at: usize) -> Result<Names, ParseError> {
    if let (Some(from), Some(to)) = (&heading.from, &heading.to) {
        return Ok((Some(tidy(from)), Some(tidy(to))));
    }
    let (old, new) = match (&heading.old, &heading.new) {
        (Some(old), Some(new)) => (old.clone(), new.clone()),
        // Git omits the `---` and `+++` lines of a file without hunks.
        _ => {
            let Some(name) = heading.git.as_deref().and_then(git_name) else {
                return fault(at, "the two file names in the heading cannot be separated");
            };
            let (old, new) = match (heading.added, heading.deleted) {
                (true, _) => (Name::Nothing, Name::File(format!("b/{name}"))),
                (_, true) => (Name::File(format!("a/{name}")), Name::Nothing),
                _ => (
                    Name::File(format!("a/{name}")),
                    Name::File(format!("b/{name}")),
                ),
            };
            (old, new)
        }
    };
    let prefixed = |name: &Name, prefix: &str| match name {
        Name::Nothing => true,
        Name::File(name) => name.starts_with(prefix),
    };
    let strip = prefixed(&old, "a/") && prefixed(&new, "b/");
    let path = |name: Name| match name {
        Name::Nothing => None,
        Name::File(name) if strip => Some(tidy(&name[2..])),
        Name::File(name) => Some(tidy(&name)),
    };
    match (path(old), path(new)) {
        (None, None) => fault(at, "the heading names no file: both names are /dev/null"),
        names => Ok(names),
    }
}

/// Returns the name in `a/NAME b/NAME`; `None` if the two names differ.
fn git_name(names: &str) -> Option<String> {
    if names.starts_with('"') {
        let (first, _) = unquote_name(names.as_bytes())?;
        let first = String::from_utf8(first).ok()?;
        return first.strip_prefix("a/").map(str::to_owned);
    }
    let rest = names.strip_prefix("a/")?;
    // Both names have the same length, so the blank between them is in the middle.
    let middle = rest.len().checked_sub(3)? / 2;
    let (first, second) = (rest.get(..middle)?, rest.get(middle..)?);
    (second.strip_prefix(" b/") == Some(first)).then(|| first.to_owned())
}

fn hunk(lines: &[&str], start: usize) -> Result<(Hunk, usize), ParseError> {
    let (old_start, old_count, new_count) = match ranges(lines[start]) {
        Some(ranges) => ranges,
        None if lines[start].trim_end() == "@@" || lines[start].starts_with("@@ ") => (None, 0, 0),
        None => {
            return fault(
                start,
                "the hunk's heading must be @@ -line,count +line,count @@",
            );
        }
    };
    let counted = old_start.is_some();
    let mut hunk = Hunk {
        // `-0,0` means that the old file is empty; `-5,0` that the hunk adds lines after line 5.
        at: old_start.map(|at| if old_count == 0 { at + 1 } else { at.max(1) }),
        patch_line: start + 1,
        ..Hunk::default()
    };
    let (mut old, mut new) = (0, 0);
    let mut at = start + 1;
    while let Some(line) = lines.get(at) {
        let complete = counted && old >= old_count && new >= new_count;
        if line.starts_with('\\') {
            match hunk.lines.last() {
                Some(Line::Keep(_)) => (hunk.old_open, hunk.new_open) = (true, true),
                Some(Line::Remove(_)) => hunk.old_open = true,
                Some(Line::Add(_)) => hunk.new_open = true,
                None => {
                    return fault(
                        at,
                        "the line that states a missing line end must follow a line of the hunk",
                    );
                }
            }
            at += 1;
            continue;
        }
        let next_file = line.starts_with("diff --git ") || is_names(lines, at);
        if line.starts_with("@@") || (next_file && (complete || !counted || is_heading(lines, at)))
        {
            break;
        }
        let parsed = match line.chars().next() {
            Some(' ') => Line::Keep(line[1..].to_owned()),
            Some('-') => Line::Remove(line[1..].to_owned()),
            Some('+') => Line::Add(line[1..].to_owned()),
            // An empty line stands for an empty context line whose leading space was lost in
            // transit.
            None if !complete => Line::Keep(String::new()),
            _ if complete => break,
            Some('\r') if line.len() == 1 => Line::Keep("\r".to_owned()),
            _ => return fault(at, "each line of a hunk begins with a space, - or +"),
        };
        if complete && line.trim_end() == "--" {
            break;
        }
        match parsed {
            Line::Keep(_) => (old, new) = (old + 1, new + 1),
            Line::Remove(_) => old += 1,
            Line::Add(_) => new += 1,
        }
        hunk.lines.push(parsed);
        at += 1;
    }
    if hunk.lines.is_empty() {
        return fault(start, "the hunk has no lines");
    }
    // A trailing blank line that the line counts do not include belongs to the text around the
    // patch, not to the file.
    let trailing = lines.get(at - 1).is_some_and(|line| line.is_empty());
    if trailing && (!counted || old > old_count) && hunk.lines.len() > 1 {
        hunk.lines.pop();
    }
    Ok((hunk, at))
}

/// Returns whether the changes of another file start at index `at`: a line `diff --git`, or two
/// lines followed by a hunk header. A hunk header is required because a removed line `-- x` and an
/// added line `++ x` are `--- x` and `+++ x` in a patch, which is how the header of a file looks.
fn is_heading(lines: &[&str], at: usize) -> bool {
    lines[at].starts_with("diff --git ") || lines.get(at + 2).is_some_and(|l| l.starts_with("@@ -"))
}

/// Parses the hunk header `@@ -old[,count] +new[,count] @@` into the first old line and both
/// counts.
fn ranges(line: &str) -> Option<(Option<usize>, usize, usize)> {
    let inner = line.strip_prefix("@@ -")?;
    let (inner, _) = inner.split_once(" @@")?;
    let (old, new) = inner.split_once(" +")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        match text.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.trim().parse().ok()?)),
            None => Some((text.trim().parse().ok()?, 1)),
        }
    };
    let ((old_start, old_count), (_, new_count)) = (range(old)?, range(new)?);
    Some((Some(old_start), old_count, new_count))
}
