//! Git repositories that guests use in place of the repositories in the mounted source directories.
//!
//! The `.git` of a mount is a file that points to `/run/codebox/git/<index>`. Git's writes there go
//! to the guest's scratch: they count against its disk limit and are neither captured nor
//! preserved.

use super::builder::{Builder, path};
use super::error::PlanError;
use super::settings::GIT_SETTINGS;
use wp_codebox_contracts::HostSource;

/// Directory of the repositories in the guest.
const REPOSITORIES: &str = "/run/codebox/git";
/// Directory of read-only views of the original mounts, used for the first commits: the agent may
/// have changed the mounts in the meantime.
const BASES: &str = "/run/codebox/git-base";
/// Directory of the host's git objects, read-only.
const OBJECTS: &str = "/run/codebox/git-objects";
/// Git repository of one mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedGit {
    /// Host directory with a repository that has no commits yet.
    pub repository: HostSource,
    /// Source of its commits.
    pub commits: PlannedCommits,
}

/// Source of a repository's commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedCommits {
    /// Host directories of the original mount, topmost first; the guest creates a commit from them.
    Base(Vec<HostSource>),
    /// Host directory with git objects.
    Objects(HostSource),
}

/// Returns the path in the guest of the objects of a mount's history.
#[must_use]
pub fn git_objects(index: usize) -> String {
    format!("{OBJECTS}/{index}")
}

/// Returns the content of a mount's `.git` file.
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
