//! Parses the `*** Begin Patch` format, in which a heading names each file and hunks have no line
//! numbers.

use super::patch::{Body, FilePatch, Hunk, Line, ParseError, fault, tidy};

const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";

pub(super) fn parse(lines: &[&str]) -> Result<Vec<FilePatch>, ParseError> {
    let start = lines
        .iter()
        .position(|line| line.trim() == "*** Begin Patch")
        .unwrap_or(0)
        + 1;
    let mut files = Vec::new();
    let mut at = start;
    loop {
        let Some(line) = lines.get(at) else {
            return fault(at, "the patch ends without `*** End Patch`");
        };
        let heading = line.trim_end();
        at += 1;
        if heading == END {
            return match lines[at..].iter().find(|line| !line.trim().is_empty()) {
                None => Ok(files),
                Some(_) => fault(at, "there is text after `*** End Patch`"),
            };
        }
        let (file, next) = if let Some(path) = heading.strip_prefix(ADD) {
            add(path, lines, at)?
        } else if let Some(path) = heading.strip_prefix(DELETE) {
            let file = FilePatch {
                old: Some(name(path, at)?),
                new: None,
                mode: None,
                body: Body::Gone,
            };
            (file, at)
        } else if let Some(path) = heading.strip_prefix(UPDATE) {
            update(path, lines, at)?
        } else if heading.is_empty() {
            continue;
        } else {
            return fault(
                at - 1,
                "expected `*** Add File: `, `*** Update File: `, `*** Delete File: ` or `*** End Patch`",
            );
        };
        files.push(file);
        at = next;
    }
}

fn name(path: &str, at: usize) -> Result<String, ParseError> {
    match path.trim() {
        "" => fault(at - 1, "the heading has no file name"),
        path => Ok(tidy(path)),
    }
}

fn add(path: &str, lines: &[&str], mut at: usize) -> Result<(FilePatch, usize), ParseError> {
    let path = name(path, at)?;
    let mut hunk = Hunk {
        patch_line: at,
        ..Hunk::default()
    };
    while let Some(line) = lines.get(at) {
        if line.starts_with("*** ") {
            break;
        }
        let Some(text) = line.strip_prefix('+') else {
            return fault(at, "each line of an added file begins with +");
        };
        hunk.lines.push(Line::Add(text.to_owned()));
        at += 1;
    }
    let file = FilePatch {
        old: None,
        new: Some(path),
        mode: None,
        body: Body::Hunks(vec![hunk]),
    };
    Ok((file, at))
}

fn update(path: &str, lines: &[&str], mut at: usize) -> Result<(FilePatch, usize), ParseError> {
    let path = name(path, at)?;
    let mut to = path.clone();
    if let Some(target) = lines.get(at).and_then(|line| line.strip_prefix(MOVE)) {
        at += 1;
        to = name(target, at)?;
    }
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut hunk = Hunk {
        patch_line: at + 1,
        ..Hunk::default()
    };
    let close = |hunk: &mut Hunk, next: usize, hunks: &mut Vec<Hunk>| {
        let done = std::mem::take(hunk);
        hunk.patch_line = next + 1;
        if !done.lines.is_empty() {
            hunks.push(done);
        }
    };
    while let Some(line) = lines.get(at) {
        if line.trim_end() == END_OF_FILE {
            hunk.at_end = true;
        } else if line.starts_with("*** ") {
            break;
        } else if let Some(below) = line.strip_prefix("@@") {
            // Several headings in a row narrow the search: each heading is searched below the
            // previous heading.
            if !hunk.lines.is_empty() {
                close(&mut hunk, at, &mut hunks);
            }
            let below = below.strip_prefix(' ').unwrap_or(below);
            let below = below.strip_suffix(" @@").unwrap_or(below);
            if !below.trim().is_empty() {
                hunk.below.push(below.to_owned());
            }
        } else if hunk.at_end {
            return fault(at, "expected a heading or @@ after `*** End of File`");
        } else {
            hunk.lines.push(match line.chars().next() {
                None => Line::Keep(String::new()),
                Some(' ') => Line::Keep(line[1..].to_owned()),
                Some('-') => Line::Remove(line[1..].to_owned()),
                Some('+') => Line::Add(line[1..].to_owned()),
                Some(_) => {
                    return fault(
                        at,
                        "each line of a hunk begins with a space, - or +; an unchanged line begins with a space",
                    );
                }
            });
        }
        at += 1;
    }
    // One blank line before the next `*** ` heading belongs to the patch format; it is not a line
    // of the hunk.
    let blank = lines.get(at - 1).is_some_and(|line| line.is_empty());
    if blank && hunk.lines.len() > 1 {
        hunk.lines.pop();
    }
    close(&mut hunk, at, &mut hunks);
    if hunks.is_empty() && to == path {
        return fault(at - 1, "the update has no lines with - or +");
    }
    let file = FilePatch {
        old: Some(path),
        new: Some(to),
        mode: None,
        body: Body::Hunks(hunks),
    };
    Ok((file, at))
}
