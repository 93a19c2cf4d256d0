//! Finds and checks the repository that gets the commit, and reads its format.
//!
//! Invariants: the git directory and its directories of objects and references belong to the user
//! of this process, and none of them is a symbolic link. So no other user can exchange them between
//! check and use.

use super::error::GitBranchError;
use rustix::process::geteuid;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum size of the repository's configuration and of a file that names a branch, in bytes.
const LARGEST: u64 = 1024 * 1024;
/// Files that name the branch that a work tree has checked out or is rebasing.
const HEADS: [&str; 3] = ["HEAD", "rebase-merge/head-name", "rebase-apply/head-name"];

/// A git repository whose layout [`Repository::open`] has checked.
pub(super) struct Repository {
    directory: PathBuf,
}

/// Settings of the repository. [`super::program`] copies them to the configuration of the private
/// git directory with which it runs git.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// `sha1` or `sha256`.
    pub objects: String,
    /// Value of `core.sharedRepository`.
    pub shared: Option<String>,
}

impl Repository {
    /// Opens the repository in a host directory: a work tree with the directory `.git`, or a bare
    /// repository. Fails if the directory contains the state directory `state` or lies in it.
    pub(super) fn open(path: &Path, state: &Path) -> Result<Self, GitBranchError> {
        let missing =
            "it is not a directory that this user can open; set the absolute path of a repository";
        if !path.is_absolute() {
            return Err(unusable(missing));
        }
        let path = path.canonicalize().map_err(|_| unusable(missing))?;
        let state = state.canonicalize()?;
        if path.starts_with(&state) || state.starts_with(&path) {
            return Err(unusable(
                "it contains the state directory or lies in it; set another repository",
            ));
        }
        let inner = path.join(".git");
        let directory = match inner.symlink_metadata() {
            Ok(_) => inner,
            Err(_) => path,
        };
        let repository = Self { directory };
        repository.check()?;
        Ok(repository)
    }

    /// Returns the git directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    fn check(&self) -> Result<(), GitBranchError> {
        let own = geteuid().as_raw();
        for name in ["", "objects", "refs", "refs/heads"] {
            let seen = self.seen(name)?;
            if !seen.as_ref().is_some_and(Metadata::is_dir) {
                return Err(unusable(match name {
                    "" => {
                        "its .git is a link or a file; name the main repository, not a linked work tree or a submodule"
                    }
                    _ => {
                        "it has no directories objects and refs/heads of its own, or one of them is a link"
                    }
                }));
            }
            if seen.is_some_and(|seen| seen.uid() != own) {
                return Err(unusable(
                    "it does not belong to the user that PHP runs as; change the owner of the repository",
                ));
            }
        }
        for name in ["HEAD", "config", "packed-refs"] {
            let seen = self.seen(name)?;
            let is_optional = name == "packed-refs";
            let good = match &seen {
                Some(seen) => seen.is_file() && (is_optional || seen.len() <= LARGEST),
                None => is_optional,
            };
            if !good {
                return Err(unusable(
                    "its HEAD, config or packed-refs is not a regular file or is too large",
                ));
            }
        }
        for name in ["objects/info/alternates", "objects/info/http-alternates"] {
            if self.seen(name)?.is_some() {
                return Err(unusable(
                    "it takes objects from another repository; copy them with `git repack -a -d` and remove objects/info/alternates",
                ));
            }
        }
        if self.seen("reftable")?.is_some() {
            return Err(unusable(
                "its references are stored as reftable; only the format files is supported",
            ));
        }
        self.no_links("objects")
    }

    fn seen(&self, name: &str) -> Result<Option<Metadata>, GitBranchError> {
        // Do not join the empty name: the path would end with a slash, so the kernel would follow a
        // link.
        let path = match name {
            "" => self.directory.clone(),
            name => self.directory.join(name),
        };
        match path.symlink_metadata() {
            Ok(seen) => Ok(Some(seen)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(_) => Err(unusable("it cannot be read by this user")),
        }
    }

    /// Fails if an entry of this directory of the repository is a symbolic link.
    fn no_links(&self, name: &str) -> Result<(), GitBranchError> {
        let entries = fs::read_dir(self.directory.join(name));
        let entries = entries.map_err(|_| unusable("it cannot be read by this user"))?;
        for entry in entries {
            if entry?.file_type()?.is_symlink() {
                return Err(unusable(
                    "an entry of its objects directory is a symbolic link",
                ));
            }
        }
        Ok(())
    }

    /// Fails if the file of a branch or a directory above it is a symbolic link: git would write
    /// the branch elsewhere.
    pub(super) fn check_branch(&self, branch: &str) -> Result<(), GitBranchError> {
        let mut at = self.directory.join("refs/heads");
        for part in branch.split('/') {
            at.push(part);
            if at.symlink_metadata().is_ok_and(|seen| seen.is_symlink()) {
                return Err(GitBranchError::Foreign {
                    branch: branch.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Fails if a work tree of the repository has the branch checked out or is rebasing it.
    pub(super) fn check_not_in_use(&self, branch: &str) -> Result<(), GitBranchError> {
        let mut places = vec![self.directory.clone()];
        let linked = self.directory.join("worktrees");
        match fs::read_dir(&linked) {
            Ok(entries) => {
                for entry in entries {
                    places.push(entry?.path());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return Err(unusable("its list of work trees cannot be read")),
        }
        let full = format!("refs/heads/{branch}");
        for file in places
            .iter()
            .flat_map(|place| HEADS.map(|head| place.join(head)))
        {
            let Ok(seen) = file.symlink_metadata() else {
                continue;
            };
            if !seen.is_file() || seen.len() > LARGEST {
                return Err(unusable(
                    "the HEAD of a work tree is not a regular file or is too large",
                ));
            }
            let text = fs::read(&file)?;
            let text = String::from_utf8_lossy(&text);
            if text.trim().trim_start_matches("ref:").trim() == full {
                return Err(GitBranchError::CheckedOut {
                    branch: branch.to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Reads the format of a repository from the output of `git config --null --list`. Fails for an
/// unknown extension: it could change the meaning of objects or references.
pub(super) fn format(listed: &[u8]) -> Result<Format, GitBranchError> {
    let mut format = Format {
        objects: "sha1".to_owned(),
        shared: None,
    };
    for row in listed.split(|b| *b == 0) {
        let row = String::from_utf8_lossy(row);
        let (key, value) = row.split_once('\n').unwrap_or((&row, "true"));
        match key {
            "core.repositoryformatversion" if !matches!(value, "0" | "1") => {
                return Err(unusable("its format is newer than this program"));
            }
            "core.sharedrepository"
                if !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric()) =>
            {
                format.shared = Some(value.to_owned());
            }
            "extensions.objectformat" if matches!(value, "sha1" | "sha256") => {
                format.objects = value.to_owned();
            }
            "extensions.refstorage" if value == "files" => {}
            "extensions.noop"
            | "extensions.noop-v1"
            | "extensions.preciousobjects"
            | "extensions.worktreeconfig"
            | "extensions.relativeworktrees"
            | "extensions.partialclone" => {}
            _ if key.starts_with("extensions.") => {
                return Err(unusable(&format!(
                    "its extension {} is not supported",
                    key.trim_start_matches("extensions.")
                )));
            }
            _ => {}
        }
    }
    Ok(format)
}

fn unusable(why: &str) -> GitBranchError {
    GitBranchError::Repository {
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_with_an_unknown_extension_or_a_newer_format_version_is_refused() {
        let read = |rows: &[&str]| format(rows.join("\0").as_bytes());
        let plain = read(&[
            "core.repositoryformatversion\n0",
            "core.fsmonitor\n/bin/evil",
        ]);
        assert_eq!(plain.unwrap().objects, "sha1");
        let other = read(&[
            "extensions.objectformat\nsha256",
            "core.sharedrepository\ngroup",
        ]);
        let other = other.unwrap();
        assert_eq!(
            (other.objects.as_str(), other.shared.as_deref()),
            ("sha256", Some("group"))
        );
        for bad in [
            "extensions.refstorage\nreftable",
            "extensions.new\n1",
            "core.repositoryformatversion\n2",
        ] {
            assert!(read(&[bad]).is_err(), "{bad}");
        }
        // A value with line breaks is dropped: it would add settings to the copied configuration.
        let odd = read(&["core.sharedrepository\n0\n[core]\nhooksPath = /x"]).unwrap();
        assert_eq!(odd.shared, None);
    }
}
