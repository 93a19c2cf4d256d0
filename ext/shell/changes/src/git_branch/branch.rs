//! Checks the branch that gets the commit, makes the commit and sets the branch to it.

use super::edits::Edits;
use super::error::GitBranchError;
use super::program::Git;
use super::record::{Committed, Made, Record};
use super::repository::{self, Repository};
use std::ffi::OsStr;
use std::path::Path;
use wp_codebox_contracts::SiteCommit;

/// The branch that gets the commit, in its state before this commit.
pub(super) struct Branch<'a> {
    repository: &'a Repository,
    request: &'a SiteCommit,
    record: Record,
    /// Commit at the tip of the branch; absent if the branch does not exist yet.
    tip: Option<String>,
    /// Parent of the new commit: the tip of the branch, or of the base branch for a new branch.
    pub(super) parent: String,
}

impl<'a> Branch<'a> {
    pub(super) fn open(
        git: &Git<'_>,
        repository: &'a Repository,
        request: &'a SiteCommit,
        place: &Path,
    ) -> Result<Self, GitBranchError> {
        let config = repository.directory().join("config");
        let arguments = ["config", "--file"].map(OsStr::new);
        let list = ["--no-includes", "--null", "--list"].map(OsStr::new);
        let listed = [&arguments[..], &[config.as_os_str()], &list].concat();
        let format = repository::format(&git.run(&listed, b"")?)?;
        git.configure(&format.objects, format.shared.as_deref())?;

        let name = &request.branch;
        for name in [name, &request.base] {
            let full = reference(name);
            let arguments = ["check-ref-format", &full].map(OsStr::new);
            // check-ref-format permits a name that begins with a dash; other git commands would
            // take it for an option.
            if name.starts_with('-') || !git.end(&arguments, b"", &[])?.success {
                return Err(GitBranchError::Name {
                    what: format!("the branch name {name:?}"),
                });
            }
        }
        if *name == request.base {
            return Err(GitBranchError::Name {
                what: format!("the branch {name:?}, which is also the base branch,"),
            });
        }
        repository.check_branch(name)?;
        repository.check_not_in_use(name)?;
        let record = Record::open(place, repository.directory(), name)?;
        let full = reference(name);
        let symbolic = ["symbolic-ref", "--quiet", &full].map(OsStr::new);
        let foreign = || GitBranchError::Foreign {
            branch: name.clone(),
        };
        if git.end(&symbolic, b"", &[])?.success {
            return Err(foreign());
        }
        let tip = resolved(git, name)?;
        let parent = match &tip {
            Some(tip) if record.of(tip).is_none() => return Err(foreign()),
            Some(tip) => tip.clone(),
            None => resolved(git, &request.base)?.ok_or_else(|| GitBranchError::NoBase {
                base: request.base.clone(),
            })?,
        };
        Ok(Self {
            repository,
            request,
            record,
            tip,
            parent,
        })
    }

    /// Returns the commit at the tip if an earlier call made it from the same patch. That call may
    /// have been killed before it answered, so that the present call repeats it.
    pub(super) fn made_before(&self, request: &SiteCommit) -> Option<Committed> {
        let made = self.record.of(self.tip.as_ref()?)?;
        let same = made.manifest_sha256 == request.manifest_sha256
            && made.patch_sha256 == request.patch_sha256;
        same.then(|| Committed {
            commit: made.commit.clone(),
            files: made.files.clone(),
        })
    }

    /// Writes tree and commit, and sets the branch.
    pub(super) fn commit(
        mut self,
        git: &Git<'_>,
        edits: &Edits,
        message: &str,
        files: Vec<String>,
    ) -> Result<Committed, GitBranchError> {
        let parent = self.parent.as_str();
        git.run(&["read-tree", parent].map(OsStr::new), b"")?;
        let zero = "0".repeat(parent.len());
        let mut index = Vec::new();
        // Remove old entries first: the change may replace a directory by a file.
        for is_removal in [true, false] {
            for (path, file) in edits {
                if file.is_none() == is_removal {
                    let (mode, object) = match file {
                        Some(file) => (file.mode.as_str(), file.object.as_str()),
                        None => ("0", zero.as_str()),
                    };
                    index.extend_from_slice(format!("{mode} {object}\t").as_bytes());
                    index.extend_from_slice(path);
                    index.push(0);
                }
            }
        }
        let update = ["update-index", "-z", "--index-info"].map(OsStr::new);
        git.run(&update, &index)?;
        let tree = one_line(&git.run(&["write-tree"].map(OsStr::new), b"")?);
        let make = ["commit-tree", &tree, "-p", parent, "-F", "-"].map(OsStr::new);
        let (author, committer) = (&self.request.author, &self.request.committer);
        let commit = one_line(&git.run_as(author, committer, &make, message.as_bytes())?);
        check_difference(git, parent, &commit, edits)?;

        let made = Made {
            commit: commit.clone(),
            manifest_sha256: self.request.manifest_sha256.clone(),
            patch_sha256: self.request.patch_sha256.clone(),
            files: files.clone(),
        };
        self.record.add(self.tip.as_deref(), made)?;
        let branch = &self.request.branch;
        self.repository.check_branch(branch)?;
        self.repository.check_not_in_use(branch)?;
        let full = reference(branch);
        let old = self.tip.as_deref().unwrap_or(&zero);
        let set = ["update-ref", "--no-deref", &full, &commit, old].map(OsStr::new);
        let ended = git.end(&set, b"", &[])?;
        if !ended.success {
            return Err(GitBranchError::NotSet {
                branch: branch.clone(),
                why: ended.message,
            });
        }
        Ok(Committed { commit, files })
    }
}

/// Fails unless the commit differs from its parent in exactly the edited files.
fn check_difference(
    git: &Git<'_>,
    parent: &str,
    commit: &str,
    edits: &Edits,
) -> Result<(), GitBranchError> {
    let compare = [
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--name-only",
        parent,
        commit,
    ];
    let output = git.run(&compare.map(OsStr::new), b"")?;
    let changed: Vec<&[u8]> = output
        .split(|b| *b == 0)
        .filter(|p| !p.is_empty())
        .collect();
    let mut expected: Vec<&[u8]> = edits.keys().map(Vec::as_slice).collect();
    expected.sort_unstable();
    let mut sorted = changed;
    sorted.sort_unstable();
    match sorted == expected {
        true => Ok(()),
        false => Err(GitBranchError::Git {
            command: "diff-tree".to_owned(),
            why: "the commit would change files that are not approved".to_owned(),
        }),
    }
}

/// Returns the commit of a branch; `None` if there is no such branch.
fn resolved(git: &Git<'_>, branch: &str) -> Result<Option<String>, GitBranchError> {
    let name = format!("{}^{{commit}}", reference(branch));
    let arguments = [
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &name,
    ];
    let ended = git.end(&arguments.map(OsStr::new), b"", &[])?;
    Ok(ended.success.then(|| one_line(&ended.output)))
}

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

fn one_line(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim().to_owned()
}
