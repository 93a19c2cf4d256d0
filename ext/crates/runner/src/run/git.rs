//! The repository that a guest has of a mount: without commits until it is first used.
//!
//! Written as plain files; no program of the host runs. Nothing of the source's own repository
//! enters it.

use super::materialise::{open_dir, pinned};
use super::sources::OpenMount;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, GitChoice, GitView, HostSource, IsolationLevel, MountRequest,
};
use wp_codebox_runtime::RunDir;

/// Where guests find git: below `/usr`, which they see as the host has it.
const PROGRAMS: [&str; 2] = ["/usr/local/bin/git", "/usr/bin/git"];
/// Settings of the repository. A checkout is never larger or other than its source: times and
/// sizes alone say what changed, since the index is made of another view of the same files.
const CONFIG: &str = "[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tcheckStat = minimal
\ttrustctime = false
\tprotectNTFS = false
\tprotectHFS = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
";
/// Bytes stay bytes: no line ends, filters or large-file pointers.
const ATTRIBUTES: &str = "* -text -eol -ident -filter -working-tree-encoding\n";

/// Which repository a mount asks for, with the rights of its caller.
pub(super) fn wanted(mount: &MountRequest, source: &Path) -> Result<GitView, ErrorBody> {
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
        GitChoice::Baseline => {
            let message = format!(
                "mount {} cannot have a git repository: this host has no git below /usr",
                mount.target
            );
            let error = ErrorBody::new(ErrorCode::GitUnavailable, message);
            Err(error
                .hint("install git on the host, or ask for --git none")
                .with("target", mount.target.as_str()))
        }
    }
}

/// Which repository it gets at this level.
pub(super) fn at_level(mount: &OpenMount, level: IsolationLevel) -> Result<GitView, ErrorBody> {
    match (mount.git, level) {
        (git, IsolationLevel::Full) => Ok(git),
        (GitView::None, _) => Ok(GitView::None),
        (GitView::Baseline, _) if mount.request.git == GitChoice::Auto => Ok(GitView::None),
        (GitView::Baseline, _) => {
            let message = format!(
                "mount {} cannot have a git repository: only guests at level full have one",
                mount.target
            );
            let error = ErrorBody::new(ErrorCode::IsolationUnavailable, message);
            Err(error.hint("ask for --git none, or make level full possible"))
        }
    }
}

/// Writes the repository of one mount into the run's scratch.
pub(super) fn write(
    mount: &OpenMount,
    git: GitView,
    run_dir: &RunDir,
    index: usize,
) -> Result<Option<HostSource>, ErrorBody> {
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
    let path = run_dir
        .scratch(&format!("git-{index}"))
        .map_err(|e| e.body())?;
    skeleton(&path, &mount.request.exclude).map_err(failed)?;
    let source = open_dir(&path).and_then(|open| pinned(&path, &open));
    source.map(Some).map_err(failed)
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
        // The date of the commit: each guest of the run makes the same one.
        ("codebox-pending", format!("{date}\n")),
    ];
    for (name, text) in files {
        let file: PathBuf = path.join(name);
        fs::write(file, text)?;
    }
    Ok(())
}

/// A line that excludes exactly this name at every depth. A line end cannot be written there, and
/// such a name is only not excluded.
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
    fn excluded_names_are_patterns_of_themselves_alone() {
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
