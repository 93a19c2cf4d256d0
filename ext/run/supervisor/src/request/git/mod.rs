//! Git repository that a guest gets for a mount: either one that has no commits until the guest
//! first uses git, or one with the source's real history.
//!
//! The repository is written as plain files without running a program on the host. It contains
//! nothing of the source's repository except the files that `history` reads.

mod history;

use super::pinned::{open_dir, pinned};
use super::scratch_space::ScratchSpace;
use super::sources::{History, OpenMount};
use history::CONFIG;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wp_codebox_artifacts::{CaptureLimits, ExcludeRules, Links, TreeError, copy_tree, scan_tree};
use wp_codebox_backend_native::{PlannedCommits, PlannedGit, git_objects};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, GitChoice, GitView, HostSource, IsolationLevel, MountRequest, MountView,
};

/// Paths at which git may be installed. A guest sees the host's `/usr`, so these paths are checked
/// on the host.
const PROGRAMS: [&str; 2] = ["/usr/local/bin/git", "/usr/bin/git"];

/// Commits store the files' bytes unchanged: no line-ending conversion, filters or LFS pointers.
const ATTRIBUTES: &str = "* -text -eol -ident -filter -working-tree-encoding\n";

/// Returns what kind of repository the mount gets in the guest; fails if the mount requests one and
/// the host has no git. Runs with the permissions of the caller.
pub(crate) fn wanted(mount: &MountRequest, source: &Path) -> Result<GitView, ErrorBody> {
    let has_git = || PROGRAMS.iter().any(|program| Path::new(program).exists());
    let in_work_tree = || {
        let mut above = source.ancestors();
        above.any(|directory| directory.join(".git").symlink_metadata().is_ok())
    };
    match mount.git {
        GitChoice::None => Ok(GitView::None),
        GitChoice::Auto if in_work_tree() && has_git() => Ok(GitView::Baseline),
        GitChoice::Auto => Ok(GitView::None),
        GitChoice::Baseline if has_git() => Ok(GitView::Baseline),
        GitChoice::History if has_git() => Ok(GitView::History),
        GitChoice::Baseline | GitChoice::History => {
            let error = unavailable(mount, "this host has no git below /usr");
            Err(error.hint("install git on the host, or ask for --git none"))
        }
    }
}

/// Returns the error for a mount that requests a repository which it cannot get.
pub(crate) fn unavailable(mount: &MountRequest, why: &str) -> ErrorBody {
    let target = mount.target.as_str();
    let message = format!("mount {target} cannot have the requested git repository: {why}");
    ErrorBody::new(ErrorCode::GitUnavailable, message).with("target", target)
}

/// Reads those files of the source's repository that a guest may have, with the permissions of the
/// caller.
pub(crate) fn history(mount: &MountRequest, source: BorrowedFd<'_>) -> Result<History, ErrorBody> {
    history::read(source).map_err(|why| {
        unavailable(mount, &why).hint(
            "use --git baseline: it makes a new repository with one commit of the mounted files",
        )
    })
}

/// Returns the directory with git objects that the guest mounts: the `objects` directory of the
/// source's repository, or a copy of it if the mount is a copy or the owner of the state directory
/// does not own every file.
fn objects(
    mount: &OpenMount,
    view: MountView,
    space: ScratchSpace<'_>,
    index: usize,
) -> Result<HostSource, ErrorBody> {
    let failed = |e: std::io::Error| {
        unavailable(
            &mount.request,
            &format!("its git objects cannot be opened or copied: {e}"),
        )
    };
    let wrong = |e: TreeError| {
        unavailable(
            &mount.request,
            &format!("its git objects cannot be opened or copied: {e}"),
        )
    };
    let open = history::objects(mount.source.as_fd()).map_err(|e| failed(e.into()))?;
    let (rules, limits) = (ExcludeRules::default(), CaptureLimits::TREE);
    let scan = scan_tree(open.as_fd(), &rules, &limits).map_err(wrong)?;
    let owner = (space.owner.uid, space.owner.gid);
    let owned = scan.owners.iter().all(|of| *of == owner);
    if view != MountView::Copy && owned {
        return pinned(&mount.path.join(".git/objects"), &open).map_err(failed);
    }
    let (to, path) = space
        .directory(&format!("git-objects-{index}"))
        .map_err(failed)?;
    copy_tree(open.as_fd(), to.as_fd(), &rules, Links::Inside, &limits).map_err(wrong)?;
    pinned(&path, &to).map_err(failed)
}

/// Returns what kind of repository the mount gets at this isolation level: none below level `full`.
/// Fails if the mount explicitly requests a repository that the level does not allow.
pub(crate) fn at_level(mount: &OpenMount, level: IsolationLevel) -> Result<GitView, ErrorBody> {
    match (mount.git, level) {
        (git, IsolationLevel::Full) => Ok(git),
        (GitView::None, _) => Ok(GitView::None),
        (GitView::Baseline | GitView::History, _) if mount.request.git.is_auto() => {
            Ok(GitView::None)
        }
        (GitView::Baseline | GitView::History, _) => {
            let message = format!(
                "mount {} cannot have a git repository: only guests at level full have one",
                mount.target
            );
            let error = ErrorBody::new(ErrorCode::IsolationUnavailable, message);
            Err(error.hint(
                "ask for --git none, or make level full possible (`wp-codebox doctor` says how)",
            ))
        }
    }
}

/// Writes the repository that the guest gets for a mount into the run's scratch directory. `lowers`
/// are the host directories that make up the mount.
pub(crate) fn write(
    mount: &OpenMount,
    git: GitView,
    (view, lowers): (MountView, &[HostSource]),
    space: ScratchSpace<'_>,
    index: usize,
) -> Result<Option<PlannedGit>, ErrorBody> {
    if git == GitView::None {
        return Ok(None);
    }
    let failed = |e: std::io::Error| {
        let message = format!(
            "mount {}: its git repository cannot be made: {e}",
            mount.target
        );
        ErrorBody::new(ErrorCode::SandboxStartFailed, message)
    };
    let scratch = space.run_dir.scratch(&format!("git-{index}"));
    let path = scratch?;
    let commits = match &mount.history {
        None => {
            skeleton(&path, &mount.request.exclude).map_err(failed)?;
            PlannedCommits::Base(lowers.to_vec())
        }
        Some(history) => {
            real(&path, history, index).map_err(failed)?;
            PlannedCommits::Objects(objects(mount, view, space, index)?)
        }
    };
    let source = open_dir(&path).and_then(|open| pinned(&path, &open));
    Ok(Some(PlannedGit {
        repository: source.map_err(failed)?,
        commits,
    }))
}

/// Writes a repository with the source's history: the copied files and the guest path of the git
/// objects.
fn real(path: &Path, history: &History, index: usize) -> std::io::Result<()> {
    let alternates = format!("{}\n", git_objects(index));
    let own = [("objects/info/alternates", alternates.as_bytes())];
    let files = history
        .files
        .iter()
        .map(|(name, bytes)| (name.as_str(), &bytes[..]));
    for (name, bytes) in files.chain(own) {
        let file = path.join(name);
        if let Some(directory) = file.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(directory)?;
        }
        fs::write(file, bytes)?;
    }
    if let Some(time) = history.indexed {
        fs::File::open(path.join("index"))?.set_modified(time)?;
    }
    for directory in ["objects/pack", "refs/heads"] {
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o755)
            .create(path.join(directory))?;
    }
    Ok(())
}

fn skeleton(path: &Path, exclude: &[String]) -> std::io::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let date = now.map_or(0, |now| now.as_secs());
    for directory in ["objects/pack", "refs/heads", "info"] {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o755);
        builder.create(path.join(directory))?;
    }
    let files: [(&str, String); 5] = [
        ("HEAD", "ref: refs/heads/main\n".to_owned()),
        ("config", CONFIG.to_owned()),
        ("info/attributes", ATTRIBUTES.to_owned()),
        (
            "info/exclude",
            exclude.iter().map(|name| pattern(name)).collect(),
        ),
        // Fixed commit date, so that every guest of the run creates the same commit.
        ("codebox-pending", format!("{date}\n")),
    ];
    for (name, text) in files {
        let file: PathBuf = path.join(name);
        fs::write(file, text)?;
    }
    Ok(())
}

/// Returns a gitignore pattern that matches exactly this name at every depth; an empty text for a
/// name with a newline, which no pattern can match and git therefore lists.
fn pattern(name: &str) -> String {
    if name.contains('\n') {
        return String::new();
    }
    let mut line = String::from("**/");
    for char in name.chars() {
        if matches!(char, '*' | '?' | '[' | ']' | '\\' | ' ' | '#' | '!') {
            line.push('\\');
        }
        line.push(char);
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_an_excluded_name_are_escaped_in_its_gitignore_pattern() {
        for (name, line) in [
            ("vendor", "**/vendor\n"),
            ("a*[b] ", "**/a\\*\\[b\\]\\ \n"),
            ("!x", "**/\\!x\n"),
            ("two\nlines", ""),
        ] {
            assert_eq!(pattern(name), line);
        }
    }
}
