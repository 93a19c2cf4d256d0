//! Repositories that guests have in place of their sources' own.
//!
//! The `.git` of a mount is a file that names `/run/codebox/git/<index>`. What git writes there
//! lies on the guest's scratch: within its disk limit, and neither captured nor kept.

use super::{Builder, PlanError, PlannedMount, path};
use wp_codebox_contracts::HostSource;

/// Directory of the repositories.
const REPOSITORIES: &str = "/run/codebox/git";
/// Directory of what was mounted, whatever the agent did since: a repository's first commit.
const BASES: &str = "/run/codebox/git-base";
/// The system's settings; `environment()` names it for a git that would read another file.
pub(super) const SETTINGS: &str = "/etc/gitconfig";

/// The repository of one mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedGit {
    /// Host directory with a repository without commits.
    pub repository: HostSource,
    /// Host directories of what was mounted, topmost first.
    pub base: Vec<HostSource>,
}

/// What `.git` of a mount contains.
#[must_use]
pub fn git_file(index: usize) -> String {
    format!("gitdir: {REPOSITORIES}/{index}\n")
}

pub(super) fn shown(builder: &mut Builder, mounts: &[PlannedMount]) -> Result<(), PlanError> {
    if mounts.iter().all(|mount| mount.git.is_none()) {
        return Ok(());
    }
    // Every directory of the guest is its own user's or the host's, whatever it looks like; and a
    // commit needs a name.
    builder.file(
        SETTINGS,
        "[safe]\n\tdirectory = *\n[user]\n\tname = agent\n\temail = agent@localhost\n[init]\n\tdefaultBranch = main\n",
    )?;
    for mount in mounts {
        if let Some(git) = &mount.git {
            let lowers = vec![git.repository.clone()];
            let place = path(&format!("{REPOSITORIES}/{}", mount.index))?;
            builder.overlay(lowers, place, None);
            builder.merged(&git.base, path(&format!("{BASES}/{}", mount.index))?);
        }
    }
    Ok(())
}
