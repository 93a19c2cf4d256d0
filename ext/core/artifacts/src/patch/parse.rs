//! Structural parser for patches in git's format.
//!
//! Invariants: hunks are read by their declared line counts and binary blocks to their end, so
//! file contents cannot be mistaken for headers. A block names its file in the `diff --git` line,
//! in the `---` and `+++` lines and in rename lines; all must agree on the old and the new name.

use super::quote::unquote_name;
use std::ops::Range;
use wp_codebox_contracts::CodedError;

/// Reason why bytes are not a patch in git's format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[error("the patch is malformed at line {line}: {reason}")]
#[code(PatchUnfilterable)]
pub struct PatchError {
    /// Number of the malformed line in the patch, counted from 1.
    pub line: usize,
    /// What is wrong with the malformed line.
    pub reason: &'static str,
}

/// Change of one file: the section of a patch that starts with `diff --git`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Position of the section in the patch, in bytes.
    pub range: Range<usize>,
    /// Name of the file before the change, without `a/`; `None` for an added file.
    pub old_name: Option<Vec<u8>>,
    /// Name of the file after the change, without `b/`; `None` for a deleted file.
    pub new_name: Option<Vec<u8>>,
    /// Mode of the file before the change, e.g. `100644`, if the block states it.
    pub old_mode: Option<String>,
    /// Mode of the file after the change, e.g. `100644`, if the block states it.
    pub new_mode: Option<String>,
}

/// Parses a patch into its blocks. Blank lines between blocks belong to no block.
pub fn parse_patch(patch: &[u8]) -> Result<Vec<Block>, PatchError> {
    let mut reader = Reader {
        patch,
        at: 0,
        line: 0,
    };
    let mut blocks = Vec::new();
    while let Some(line) = reader.peek() {
        if line.is_empty() {
            reader.skip();
            continue;
        }
        blocks.push(reader.block()?);
    }
    Ok(blocks)
}

struct Reader<'a> {
    patch: &'a [u8],
    at: usize,
    line: usize,
}

/// What the header lines between `diff --git` and the hunks state.
#[derive(Default)]
struct Header {
    added: bool,
    deleted: bool,
    old_mode: Option<String>,
    new_mode: Option<String>,
    rename_from: Option<Vec<u8>>,
    rename_to: Option<Vec<u8>>,
}

impl<'a> Reader<'a> {
    fn error(&self, reason: &'static str) -> PatchError {
        PatchError {
            line: self.line + 1,
            reason,
        }
    }

    /// Returns the current line without its LF.
    fn peek(&self) -> Option<&'a [u8]> {
        let rest = self.patch.get(self.at..).filter(|r| !r.is_empty())?;
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        Some(&rest[..end])
    }

    fn skip(&mut self) {
        if let Some(line) = self.peek() {
            self.at = (self.at + line.len() + 1).min(self.patch.len());
            self.line += 1;
        }
    }

    fn take_after(&mut self, start: &str) -> Option<&'a [u8]> {
        let rest = self.peek()?.strip_prefix(start.as_bytes())?;
        self.skip();
        Some(rest)
    }

    fn block(&mut self) -> Result<Block, PatchError> {
        let start = self.at;
        let names_line = self
            .take_after("diff --git ")
            .ok_or_else(|| self.error("expected a line `diff --git …`"))?;
        let header = self.header()?;
        let mut sides = None;
        match self.peek() {
            Some(b"GIT binary patch") => {
                self.skip();
                self.literal()?;
                if self.peek().is_some_and(starts_literal) {
                    self.literal()?;
                }
            }
            Some(line) if line.starts_with(b"--- ") => sides = Some(self.text()?),
            Some(line) if line.starts_with(b"Binary files ") => {
                return Err(self.error("a binary change without contents cannot be applied"));
            }
            _ => {}
        }
        let (old, new) = self.names(names_line, &header, sides)?;
        Ok(Block {
            range: start..self.at,
            old_name: (!header.added).then_some(old),
            new_name: (!header.deleted).then_some(new),
            old_mode: header.old_mode,
            new_mode: header.new_mode,
        })
    }

    fn header(&mut self) -> Result<Header, PatchError> {
        let mut header = Header::default();
        let text = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned());
        loop {
            if let Some(mode) = self.take_after("old mode ") {
                header.old_mode = text(mode);
            } else if let Some(mode) = self.take_after("new mode ") {
                header.new_mode = text(mode);
            } else if let Some(mode) = self.take_after("new file mode ") {
                header.added = true;
                header.new_mode = text(mode);
            } else if let Some(mode) = self.take_after("deleted file mode ") {
                header.deleted = true;
                header.old_mode = text(mode);
            } else if let Some(name) = self.take_after("rename from ") {
                header.rename_from = Some(whole_name(name).ok_or_else(|| self.error(BAD_NAME))?);
            } else if let Some(name) = self.take_after("rename to ") {
                header.rename_to = Some(whole_name(name).ok_or_else(|| self.error(BAD_NAME))?);
            } else if let Some(rest) = self.take_after("index ") {
                if let Some(space) = rest.iter().position(|b| *b == b' ') {
                    header.old_mode = text(&rest[space + 1..]);
                    header.new_mode = header.old_mode.clone();
                }
            } else if self.take_after("similarity index ").is_none()
                && self.take_after("dissimilarity index ").is_none()
            {
                break;
            }
        }
        if self.peek().is_some_and(|l| l.starts_with(b"copy ")) {
            return Err(self.error("a copied file (`copy from` and `copy to`) is not supported"));
        }
        if header.rename_from.is_some() != header.rename_to.is_some()
            || header.added && header.deleted
            || header.rename_from.is_some() && (header.added || header.deleted)
        {
            return Err(self.error("the header lines of one file contradict each other"));
        }
        Ok(header)
    }

    /// Skips one literal or delta of a binary patch with the blank line that ends it.
    fn literal(&mut self) -> Result<(), PatchError> {
        if !self.peek().is_some_and(starts_literal) {
            return Err(self.error("expected `literal` or `delta`"));
        }
        self.skip();
        loop {
            match self.peek() {
                Some(b"") => {
                    self.skip();
                    return Ok(());
                }
                Some([b'A'..=b'Z' | b'a'..=b'z', data @ ..])
                    if !data.is_empty() && data.len() % 5 == 0 =>
                {
                    self.skip();
                }
                Some(_) => return Err(self.error("malformed binary data")),
                None => return Err(self.error("binary data without an end")),
            }
        }
    }

    /// Parses the `---` and `+++` lines and all hunks of a block. Returns the old and the new name;
    /// a name is `None` for `/dev/null`.
    fn text(&mut self) -> Result<Sides, PatchError> {
        let old = self.take_after("--- ").and_then(side_name);
        let old = old.ok_or_else(|| self.error(BAD_NAME))?;
        let new = self
            .take_after("+++ ")
            .ok_or_else(|| self.error("expected a line `+++ …`"))
            .and_then(|line| side_name(line).ok_or_else(|| self.error(BAD_NAME)))?;
        let mut hunks = 0;
        while let Some(line) = self.peek().filter(|l| l.starts_with(b"@@ ")) {
            let (old_left, new_left) =
                hunk_counts(line).ok_or_else(|| self.error("malformed hunk header"))?;
            self.skip();
            self.hunk(old_left, new_left)?;
            hunks += 1;
        }
        if hunks == 0 {
            return Err(self.error("a file with `---` and `+++` lines must have a hunk"));
        }
        Ok((old, new))
    }

    fn hunk(&mut self, mut old_left: u64, mut new_left: u64) -> Result<(), PatchError> {
        while old_left > 0 || new_left > 0 {
            let line = self
                .peek()
                .ok_or_else(|| self.error("a hunk ends too early"))?;
            let (old_step, new_step) = match line.first() {
                // Some tools strip the space of an empty context line.
                Some(b' ') | None => (1, 1),
                Some(b'-') => (1, 0),
                Some(b'+') => (0, 1),
                Some(b'\\') => (0, 0),
                Some(_) => return Err(self.error("unexpected line in a hunk")),
            };
            if old_step > old_left || new_step > new_left {
                return Err(self.error("a hunk has more lines than it declares"));
            }
            old_left -= old_step;
            new_left -= new_step;
            self.skip();
        }
        while self.peek().is_some_and(|l| l.starts_with(b"\\")) {
            self.skip();
        }
        Ok(())
    }

    /// Returns the old and the new name of a block. Fails if the lines that state them disagree.
    fn names(
        &self,
        line: &[u8],
        header: &Header,
        sides: Option<Sides>,
    ) -> Result<(Vec<u8>, Vec<u8>), PatchError> {
        let mut old = header.rename_from.clone();
        let mut new = header.rename_to.clone();
        if let Some((old_side, new_side)) = sides {
            if old_side.is_none() != header.added || new_side.is_none() != header.deleted {
                return Err(self.error("a file must have `--- /dev/null` exactly if it is new, and `+++ /dev/null` exactly if it is deleted"));
            }
            let one = old_side.clone().or_else(|| new_side.clone());
            for (known, stated) in [
                (&mut old, old_side.or_else(|| one.clone())),
                (&mut new, new_side.or(one)),
            ] {
                match known {
                    Some(known) if Some(&*known) != stated.as_ref() => {
                        return Err(
                            self.error("the header of one file has two different names for it")
                        );
                    }
                    _ => *known = stated,
                }
            }
        }
        let names = match (old, new) {
            (Some(old), Some(new)) => (old, new),
            _ => {
                let name = same_name(line).ok_or_else(|| self.error(BAD_NAME))?;
                (name.clone(), name)
            }
        };
        if header.rename_from.is_none() && names.0 != names.1 {
            return Err(self.error("the header of one file has two different names, but no `rename from` and `rename to`"));
        }
        let rest = strip_name(line, b"a/", &names.0)
            .and_then(|rest| rest.strip_prefix(b" "))
            .and_then(|rest| strip_name(rest, b"b/", &names.1));
        if rest == Some(b"") && is_safe(&names.0) && is_safe(&names.1) {
            Ok(names)
        } else {
            Err(self
                .error("the names in the header of one file differ or are not safe relative paths"))
        }
    }
}

type Sides = (Option<Vec<u8>>, Option<Vec<u8>>);

const BAD_NAME: &str = "malformed file name";

/// Returns whether the name is a relative path without empty, `.`, `..` or `.git` components.
fn is_safe(name: &[u8]) -> bool {
    !name.contains(&0)
        && name
            .split(|b| *b == b'/')
            .all(|part| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git"))
}

fn starts_literal(line: &[u8]) -> bool {
    [&b"literal "[..], b"delta "].iter().any(|word| {
        line.strip_prefix(*word)
            .is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit))
    })
}

/// Parses the complete rest of a line as a name, quoted or not.
fn whole_name(text: &[u8]) -> Option<Vec<u8>> {
    if text.starts_with(b"\"") {
        let (name, taken) = unquote_name(text)?;
        (taken == text.len()).then_some(name)
    } else {
        (!text.is_empty()).then(|| text.to_vec())
    }
}

/// Parses the name of a `---` or `+++` line. Outer `None`: malformed; inner `None`: `/dev/null`.
#[allow(clippy::option_option)]
fn side_name(text: &[u8]) -> Option<Option<Vec<u8>>> {
    let name = if text.starts_with(b"\"") {
        let (name, taken) = unquote_name(text)?;
        if !matches!(text.get(taken), None | Some(b'\t')) {
            return None;
        }
        name
    } else {
        let end = text.iter().position(|b| *b == b'\t').unwrap_or(text.len());
        text[..end].to_vec()
    };
    if name == b"/dev/null" {
        return Some(None);
    }
    let bare = name
        .strip_prefix(b"a/")
        .or_else(|| name.strip_prefix(b"b/"))?;
    Some(Some(bare.to_vec()))
}

/// Parses `@@ -a[,b] +c[,d] @@…` and returns (b, d), each 1 if omitted.
fn hunk_counts(line: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(line.strip_prefix(b"@@ -")?)
        .unwrap_or_else(|e| std::str::from_utf8(&line[4..4 + e.valid_up_to()]).unwrap_or_default());
    let (ranges, _) = text.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let count = |range: &str| -> Option<u64> {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        (digits(start) && digits(count)).then(|| count.parse().ok())?
    };
    Some((count(old)?, count(new)?))
}

/// Removes `side` and `name`, plain or quoted, from the start of `text` and returns the rest.
fn strip_name<'t>(text: &'t [u8], side: &[u8], name: &[u8]) -> Option<&'t [u8]> {
    let full = [side, name].concat();
    if text.starts_with(b"\"") {
        let (found, taken) = unquote_name(text)?;
        (found == full).then(|| &text[taken..])
    } else {
        text.strip_prefix(full.as_slice())
    }
}

/// Returns X from `a/X b/X`, the rest of a header line. Reads only the first name; the caller must
/// check that the second one is equal.
fn same_name(line: &[u8]) -> Option<Vec<u8>> {
    let full = if line.starts_with(b"\"") {
        unquote_name(line)?.0
    } else {
        line.get(..line.len().checked_sub(1)? / 2)?.to_vec()
    };
    full.strip_prefix(b"a/").map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_contents_in_a_patch_are_not_parsed_as_headers() {
        let patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-diff --git a/y b/y\n--- a/y\n+++ b/y\n+diff --git a/z b/z\n \n\ndiff --git a/m b/m\nold mode 100644\nnew mode 100755\n";
        let blocks = parse_patch(patch).unwrap();
        let names: Vec<_> = blocks.iter().map(|b| b.new_name.clone().unwrap()).collect();
        assert_eq!(names, [b"x", b"m"]);
        assert_eq!(blocks[1].new_mode.as_deref(), Some("100755"));
    }

    #[test]
    fn raw_and_quoted_file_names_in_a_patch_are_parsed() {
        for (patch, name) in [
            (
                "diff --git a/x b/x b/x b/x\nnew file mode 100644\n",
                &b"x b/x"[..],
            ),
            (
                "diff --git \"a/\\303\\251\" \"b/\\303\\251\"\ndeleted file mode 100644\n",
                "é".as_bytes(),
            ),
            ("diff --git a/é b/é\nnew file mode 100644\n", "é".as_bytes()),
            (
                "diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n@@ -1 +1 @@\n-x\n+y\n",
                b"a b",
            ),
        ] {
            let blocks = parse_patch(patch.as_bytes()).unwrap();
            let block = &blocks[0];
            assert_eq!(
                block.new_name.as_deref().or(block.old_name.as_deref()),
                Some(name),
                "{patch}"
            );
        }
    }

    #[test]
    fn malformed_ambiguous_and_unsafe_patches_are_refused() {
        for bad in [
            "garbage\n",
            "diff --git a/x b/y\nold mode 100644\nnew mode 100755\n",
            "diff --git a/x b/x\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-x\n+y\n",
            "diff --git a/x b/x\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-x\n+y\n",
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-x\n",
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+x\n+y\n",
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n",
            "diff --git a/x b/x\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n",
            "diff --git a/x b/x\nBinary files a/x and b/x differ\n",
            "diff --git a/../x b/../x\nnew file mode 100644\n",
            "diff --git a/.git/hooks b/.git/hooks\nnew file mode 100644\n",
            "diff --git a//x b//x\nnew file mode 100644\n",
            "diff --git a/x b/y\nsimilarity index 100%\nrename from x\n",
            "diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\nzzz\n",
        ] {
            assert!(parse_patch(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(parse_patch(b"").unwrap(), []);
    }

    /// The fuzzer starts from these patches; from a malformed one it would never reach the code
    /// behind the parser.
    #[test]
    fn fuzzer_seeds_are_valid_patches() {
        let root = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        let seeds = std::fs::read_dir(format!("{root}/../../../tests/fuzz/corpus/patch_parse"));
        for seed in seeds.unwrap().flatten() {
            let blocks = parse_patch(&std::fs::read(seed.path()).unwrap());
            assert!(blocks.is_ok_and(|blocks| !blocks.is_empty()), "{seed:?}");
        }
    }
}
