//! Checks the whole directory tree of a workspace against the rules.

use super::git;
use super::rules::{Code, GitBacking, Rules, Violation};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Maximum number of files and directories in a workspace.
const MAX_ENTRIES: usize = 200_000;
/// Maximum directory depth of a workspace.
const MAX_DEPTH: usize = 200;

/// Returns all violations in the workspace at `root`. Fails when the directory tree cannot be read
/// or is too large, or git cannot be queried.
pub fn check(root: &Path, rules: &Rules, backing: GitBacking) -> Result<Vec<Violation>, String> {
    let mut walk = Walk {
        rules,
        backing,
        found: rules.invalid.clone(),
        entries: 0,
    };
    walk.descend(root, "", 0)?;
    if backing == GitBacking::Git {
        let facts = git::facts(root)?;
        for path in &facts.paths {
            walk.found.extend(rules.check_path(path));
        }
        walk.found.extend(facts.violations);
    }
    Ok(walk.found)
}

struct Walk<'a> {
    rules: &'a Rules,
    backing: GitBacking,
    found: Vec<Violation>,
    entries: usize,
}

impl Walk<'_> {
    fn say(&mut self, code: Code, path: &str, message: &str) {
        self.found.push(Violation::new(code, path, message));
    }

    fn descend(&mut self, directory: &Path, below: &str, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!(
                "the workspace is deeper than {MAX_DEPTH} directories"
            ));
        }
        let unreadable = |e: std::io::Error| {
            let at = if below.is_empty() { "." } else { below };
            format!("{at} cannot be read: {e}")
        };
        let mut rows = fs::read_dir(directory)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(unreadable)?;
        rows.sort_by_key(fs::DirEntry::file_name);
        for row in rows {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(format!("the workspace has more than {MAX_ENTRIES} entries"));
            }
            let name = row.file_name();
            let Some(name) = name.to_str() else {
                let shown = format!("{below}{}", name.to_string_lossy());
                self.say(Code::SpecialFile, &shown, "the name is not UTF-8");
                continue;
            };
            let path = format!("{below}{name}");
            let about = fs::symlink_metadata(row.path()).map_err(unreadable)?;
            let kind = about.file_type();
            if name.eq_ignore_ascii_case(".git") {
                match (below.is_empty(), self.backing) {
                    (true, GitBacking::Git) => {}
                    (true, GitBacking::None) | (false, _) => self.say(
                        Code::NestedGitMetadata,
                        &path,
                        "the path is a .git that the workspace must not contain",
                    ),
                }
                continue;
            }
            if kind.is_dir() {
                // A hidden directory is a violation even if it is empty; any other directory is
                // checked through its content.
                match self.rules.check_path(&path) {
                    Some(violation) if violation.code == Code::HiddenPath => {
                        self.found.push(violation);
                    }
                    Some(_) | None => self.descend(&row.path(), &format!("{path}/"), depth + 1)?,
                }
                continue;
            }
            self.found.extend(self.rules.check_path(&path));
            if kind.is_symlink() {
                self.say(Code::Symlink, &path, "the path is a symbolic link");
            } else if kind.is_file() && about.nlink() > 1 {
                self.say(
                    Code::Hardlink,
                    &path,
                    "the file has more than one hard link",
                );
            } else if kind.is_fifo()
                || kind.is_socket()
                || kind.is_block_device()
                || kind.is_char_device()
            {
                self.say(
                    Code::SpecialFile,
                    &path,
                    "the path is neither a file nor a directory",
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(root: &Path, writable: &[&str], hidden: &[&str]) -> Vec<(String, Code)> {
        let list = |rows: &[&str]| rows.iter().map(|r| (*r).to_owned()).collect::<Vec<_>>();
        let rules = Rules::new(&list(writable), &list(hidden));
        let found = check(root, &rules, GitBacking::None).unwrap();
        found.into_iter().map(|v| (v.path, v.code)).collect()
    }

    #[test]
    fn workspace_within_its_writable_roots_passes_and_each_violation_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("src/deep")).unwrap();
        fs::write(root.join("src/deep/a.php"), "1").unwrap();
        assert_eq!(codes(root, &["src/deep/"], &[]), []);
        assert_eq!(codes(root, &["."], &[]), []);
        fs::write(root.join("other.txt"), "1").unwrap();
        fs::create_dir_all(root.join("src/private")).unwrap();
        fs::create_dir_all(root.join("src/lib/.git")).unwrap();
        fs::hard_link(root.join("src/deep/a.php"), root.join("src/b.php")).unwrap();
        std::os::unix::fs::symlink("a", root.join("src/link")).unwrap();
        let mut found = codes(root, &["src"], &["src/private"]);
        found.sort();
        let row = |path: &str, code| (path.to_owned(), code);
        assert_eq!(
            found,
            [
                row("other.txt", Code::PathOutsideWritableRoots),
                row("src/b.php", Code::Hardlink),
                row("src/deep/a.php", Code::Hardlink),
                row("src/lib/.git", Code::NestedGitMetadata),
                row("src/link", Code::Symlink),
                row("src/private", Code::HiddenPath),
            ]
        );
    }
}
