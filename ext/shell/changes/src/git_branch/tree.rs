//! Reads the list of a commit's files, and copies the files that a change modifies.

use super::error::GitBranchError;
use super::program::Git;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

/// Name of a file that [`Tree::copy`] puts into a directory so that the directory is not empty.
const SOMETHING: &str = "codebox-not-empty";

/// Mode and object of a file in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeFile {
    /// `100644`, `100755` (executable), `120000` (symbolic link) or `160000` (submodule).
    pub mode: String,
    /// Hash of the object.
    pub object: String,
}

/// All files of a commit by path.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub files: BTreeMap<Vec<u8>, TreeFile>,
}

impl Tree {
    /// Reads the tree of a commit.
    pub(super) fn read(git: &Git<'_>, commit: &str) -> Result<Self, GitBranchError> {
        let arguments = ["ls-tree", "-r", "-z", "--full-tree", commit].map(OsStr::new);
        let listed = git.run(&arguments, b"")?;
        let mut files = BTreeMap::new();
        for row in listed.split(|b| *b == 0).filter(|row| !row.is_empty()) {
            let at = row.iter().position(|b| *b == b'\t');
            let (about, path) = row.split_at(at.unwrap_or(row.len()));
            let about = String::from_utf8_lossy(about);
            let words: Vec<&str> = about.split(' ').collect();
            let ([mode, _, object], [_, path @ ..]) = (words.as_slice(), path) else {
                return Err(GitBranchError::Git {
                    command: "ls-tree".to_owned(),
                    why: "it printed a line in an unknown format".to_owned(),
                });
            };
            let file = TreeFile {
                mode: (*mode).to_owned(),
                object: (*object).to_owned(),
            };
            files.insert(path.to_vec(), file);
        }
        Ok(Self { files })
    }

    /// Returns whether the tree has a file below this path.
    pub(super) fn has_below(&self, path: &[u8]) -> bool {
        let start = [path, b"/"].concat();
        let mut below = self.files.range(start.clone()..);
        below
            .next()
            .is_some_and(|(path, _)| path.starts_with(&start))
    }

    /// Copies the files at `paths`, which are relative to `prefix`, from the tree into the empty
    /// directory `to`. A path that is a directory or submodule in the tree becomes a directory with
    /// a placeholder file.
    pub(super) fn copy(
        &self,
        git: &Git<'_>,
        prefix: &[u8],
        paths: &[Vec<u8>],
        to: &Path,
    ) -> Result<(), GitBranchError> {
        let mut wanted = Vec::new();
        for path in paths {
            let full = [prefix, path].concat();
            let place = to.join(OsStr::from_bytes(path));
            match self.files.get(&full) {
                Some(file) if file.mode != "160000" => wanted.push((place, file)),
                Some(_) => directory(&place)?,
                None if self.has_below(&full) => directory(&place)?,
                None => {}
            }
        }
        let names: Vec<&str> = wanted
            .iter()
            .map(|(_, file)| file.object.as_str())
            .collect();
        let input = names
            .iter()
            .flat_map(|name| [*name, "\n"])
            .collect::<String>();
        let output = git.run(&["cat-file", "--batch"].map(OsStr::new), input.as_bytes())?;
        let mut rest = output.as_slice();
        for (place, file) in wanted {
            let bytes;
            (bytes, rest) = blob(rest, &file.object)?;
            if let Some(parent) = place.parent() {
                fs::create_dir_all(parent)?;
            }
            if file.mode == "120000" {
                symlink(OsStr::from_bytes(bytes), &place)?;
                continue;
            }
            let mode = if file.mode == "100755" { 0o755 } else { 0o644 };
            let mut open = fs::File::options();
            let mut new = open.write(true).create_new(true).mode(mode).open(&place)?;
            std::io::Write::write_all(&mut new, bytes)?;
        }
        Ok(())
    }
}

fn directory(place: &Path) -> Result<(), GitBranchError> {
    fs::create_dir_all(place)?;
    Ok(fs::write(place.join(SOMETHING), "")?)
}

/// Returns the contents of the next object in the output of `git cat-file --batch`, and the rest of
/// the output.
fn blob<'a>(output: &'a [u8], object: &str) -> Result<(&'a [u8], &'a [u8]), GitBranchError> {
    let broken = || GitBranchError::Git {
        command: "cat-file".to_owned(),
        why: format!("the object {object} is missing or is not a file"),
    };
    let end = output.iter().position(|b| *b == b'\n').ok_or_else(broken)?;
    let (head, rest) = output.split_at(end);
    let head = String::from_utf8_lossy(head);
    let size = head.strip_prefix(&format!("{object} blob "));
    let size: usize = size.and_then(|size| size.parse().ok()).ok_or_else(broken)?;
    let bytes = rest.get(1..=size).ok_or_else(broken)?;
    Ok((bytes, rest.get(size + 2..).ok_or_else(broken)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_objects_are_split_by_their_stated_size_and_a_missing_object_is_an_error() {
        let (bytes, rest) = blob(b"a1 blob 3\nx\n\n\nb2 missing\n", "a1").unwrap();
        assert_eq!((bytes, rest), (&b"x\n\n"[..], &b"b2 missing\n"[..]));
        assert!(blob(rest, "b2").is_err());
        assert!(blob(b"a1 blob 9\nx\n", "a1").is_err());
    }

    #[test]
    fn has_below_is_true_only_for_a_directory_that_contains_a_file() {
        let mut tree = Tree::default();
        let file = TreeFile {
            mode: "100644".to_owned(),
            object: "1".to_owned(),
        };
        tree.files.insert(b"a.b".to_vec(), file.clone());
        tree.files.insert(b"d/e".to_vec(), file);
        assert!(tree.has_below(b"d") && !tree.has_below(b"a") && !tree.has_below(b"d/e"));
    }
}
