//! Repositories that guests have in place of their sources' own.
//!
//! The `.git` of a mount is a file that names `/run/codebox/git/<index>`. What git writes there
//! lies on the guest's scratch: within its disk limit, and neither captured nor kept.

use super::builder::{Builder, path};
use super::error::PlanError;
use super::settings::GIT_SETTINGS;
use wp_codebox_contracts::HostSource;

/// Directory of the repositories.
const REPOSITORIES: &str = "/run/codebox/git";
/// Directory of read-only views of what was mounted, for the first commits: the agent may have
/// changed the mounts since.
const BASES: &str = "/run/codebox/git-base";
/// Directory of real objects, read-only.
const OBJECTS: &str = "/run/codebox/git-objects";
/// The repository of one mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedGit {
    /// Host directory with a repository without commits.
    pub repository: HostSource,
    /// What its commits are made of.
    pub commits: PlannedCommits,
}

/// What the commits of a repository are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedCommits {
    /// Host directories of what was mounted, topmost first, for a commit that the guest makes.
    Base(Vec<HostSource>),
    /// Host directory with objects.
    Objects(HostSource),
}

/// Where the objects of a mount's history lie in the guest.
#[must_use]
pub fn git_objects(index: usize) -> String {
    format!("{OBJECTS}/{index}")
}

/// What `.git` of a mount contains.
#[must_use]
pub fn git_file(index: usize) -> String {
    format!("gitdir: {REPOSITORIES}/{index}\n")
}

/// Shows repositories, each by the index of its mount.
pub(super) fn shown(
    builder: &mut Builder,
    repositories: &[(u32, &PlannedGit)],
) -> Result<(), PlanError> {
    if repositories.is_empty() {
        return Ok(());
    }
    // A mount may show other owners than the guest's user, and git refuses such a directory unless
    // it is declared safe. A commit needs a name.
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
