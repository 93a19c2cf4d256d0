//! Git repositories that guests use in place of the repositories in the mounted source directories.
//!
//! The `.git` of a mount is a file that points to `/run/codebox/git/<index>`. What git writes there
//! goes to the guest's scratch tmpfs. It counts against the guest's disk limit, is not captured and
//! is lost with the guest.

use super::builder::{Builder, path};
use super::error::PlanError;
use super::settings::GIT_SETTINGS;
use wp_codebox_contracts::HostSource;

/// Path in the guest of the git repositories, one subdirectory per mount.
const REPOSITORIES: &str = "/run/codebox/git";
/// Path in the guest of read-only views of the mounts as they were at the start. The first commit
/// of a repository is made from this view, because the agent may have changed the mount by then.
const BASES: &str = "/run/codebox/git-base";
/// Path in the guest of the git objects of host repositories, read-only.
const OBJECTS: &str = "/run/codebox/git-objects";
/// Git repository that the guest gets for one mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedGit {
    /// Host directory with a repository that has no commits yet.
    pub repository: HostSource,
    /// Where the guest's git finds the repository's commits.
    pub commits: PlannedCommits,
}

/// Where the guest's git finds the commits of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedCommits {
    /// No history: the guest makes one commit from these host directories of the mount, topmost
    /// first.
    Base(Vec<HostSource>),
    /// History: host directory with the git objects of the existing commits.
    Objects(HostSource),
}

/// Returns the path in the guest of the git objects for the mount with this index.
#[must_use]
pub fn git_objects(index: usize) -> String {
    format!("{OBJECTS}/{index}")
}

/// Returns the content of the `.git` file in the mount with this index.
#[must_use]
pub fn git_file(index: usize) -> String {
    format!("gitdir: {REPOSITORIES}/{index}\n")
}

/// Adds the steps that mount the git repositories; each repository comes with the index of the
/// mount that it belongs to.
pub(super) fn shown(
    builder: &mut Builder,
    repositories: &[(u32, &PlannedGit)],
) -> Result<(), PlanError> {
    if repositories.is_empty() {
        return Ok(());
    }
    // Mounted files may have other owners than the guest's user, and git refuses such a directory
    // unless it is listed in safe.directory. A commit needs a user name.
    builder.file(
        GIT_SETTINGS,
        "[safe]\n\tdirectory = *\n[user]\n\tname = agent\n\temail = agent@localhost\n[init]\n\tdefaultBranch = main\n",
    )?;
    for (index, git) in repositories {
        let lowers = vec![git.repository.clone()];
        let place = path(&format!("{REPOSITORIES}/{index}"))?;
        builder.overlay(lowers, place, None);
        match &git.commits {
            PlannedCommits::Base(base) => builder.merged(base, path(&format!("{BASES}/{index}"))?),
            PlannedCommits::Objects(objects) => {
                builder.bind_from(objects.clone(), &format!("{OBJECTS}/{index}"))?;
            }
        }
    }
    Ok(())
}
