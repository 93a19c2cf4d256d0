//! Queries the git program for the state of a workspace. git runs without the caller's environment
//! and without the repository settings that start programs.

use super::rules::{Code, Violation};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum size of git's output, in bytes.
const ANSWER_BYTES: u64 = 16 * 1024 * 1024;
/// Time limit for one git command.
const GIT_TIMEOUT: Duration = Duration::from_secs(30);

/// What git reports about a workspace: changed paths, and violations that do not depend on the
/// rules.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub paths: Vec<String>,
    pub violations: Vec<Violation>,
}

fn ask(root: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let mut child = Command::new("git")
        // A repository's configuration may name programs to run; these options disable them.
        .args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args([
            "-c",
            "safe.directory=*",
            "-c",
            "core.pager=cat",
            "--no-optional-locks",
        ])
        .arg("-C")
        .arg(root)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        // A partial clone may name a program that fetches missing objects.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("git cannot be started: {e}"))?;
    let Some(stdout) = child.stdout.take() else {
        return Err("the output pipe of git cannot be opened".to_owned());
    };
    // Killing git closes its output, so this reading thread ends, too.
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout
            .take(ANSWER_BYTES + 1)
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    });
    let until = Instant::now() + GIT_TIMEOUT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if Instant::now() > until => {
                let _ = child.kill();
                let _ = child.wait();
                break Err("git did not finish within 30 seconds".to_owned());
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(e) => break Err(format!("git cannot be waited for: {e}")),
        }
    };
    let bytes = reader
        .join()
        .map_err(|_| "the thread that reads git's output failed".to_owned())?
        .map_err(|e| format!("git's output cannot be read: {e}"))?;
    if bytes.len() as u64 > ANSWER_BYTES {
        return Err("git's output is longer than 16 MiB".to_owned());
    }
    if status?.success() {
        Ok(bytes)
    } else {
        Err("git failed: check that the directory is a git repository".to_owned())
    }
}

fn records(bytes: &[u8]) -> impl Iterator<Item = String> + '_ {
    bytes
        .split(|b| *b == 0)
        .filter(|row| !row.is_empty())
        .map(|row| String::from_utf8_lossy(row).into_owned())
}

/// Returns the changed paths of the workspace at `root`, and a violation for each path that git
/// ignores, that is a submodule or that is unmerged.
pub(super) fn facts(root: &Path) -> Result<Facts, String> {
    // `git status` would run the filter programs that a repository's own configuration names.
    let settings = ask(root, &["config", "--list", "--name-only", "-z"])?;
    if records(&settings).any(|name| name.starts_with("filter.")) {
        return Err("the repository's own configuration names programs to run (filter.*); remove these settings, or check a copy without them".to_owned());
    }
    let mut facts = Facts::default();
    let status = ask(
        root,
        &[
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--ignored",
            // Without this option git starts itself in each submodule, with a configuration that
            // was not checked.
            "--ignore-submodules=all",
        ],
    )?;
    read_status(&status, &mut facts);
    for row in records(&ask(root, &["ls-files", "-s", "-z"])?) {
        if let (true, Some((_, path))) = (row.starts_with("160000 "), row.split_once('\t')) {
            let message = "the path is a submodule, i.e. a commit of another repository";
            facts
                .violations
                .push(Violation::new(Code::Gitlink, path, message));
        }
    }
    for row in records(&ask(root, &["ls-files", "-u", "-z"])?) {
        if let Some((_, path)) = row.split_once('\t') {
            facts.violations.push(unmerged(path));
        }
    }
    Ok(facts)
}

fn unmerged(path: &str) -> Violation {
    Violation::new(
        Code::UnmergedIndex,
        path,
        "the path is not merged in git's index",
    )
}

fn read_status(bytes: &[u8], facts: &mut Facts) {
    let mut rows = records(bytes);
    while let Some(row) = rows.next() {
        let (Some(state), Some(path)) = (row.get(..2), row.get(3..)) else {
            continue;
        };
        let path = path.trim_end_matches('/').to_owned();
        if state == "!!" {
            facts.violations.push(Violation::new(
                Code::IgnoredPath,
                &path,
                "git ignores the path, so no change of it would be seen",
            ));
        }
        if matches!(state, "DD" | "AU" | "UD" | "UA" | "DU" | "AA" | "UU") {
            facts.violations.push(unmerged(&path));
        }
        // A rename or copy record has two paths; the old path follows in a record of its own.
        if state.contains(['R', 'C'])
            && let Some(other) = rows.next()
        {
            facts.paths.push(other);
        }
        facts.paths.push(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(root: &Path, arguments: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-C"])
            .arg(root)
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    }

    fn repository(root: &Path) {
        std::fs::create_dir_all(root).unwrap();
        git(root, &["init", "-q"]);
        std::fs::write(root.join("f"), "one\ntwo\nthree\n").unwrap();
        std::fs::write(root.join(".gitattributes"), "f filter=x\n").unwrap();
        git(root, &["add", "."]);
        git(root, &["commit", "-qm", "x"]);
    }

    /// Changes the file's modification time, so that git must read the file and run its filters.
    fn change(file: &Path) {
        let file = std::fs::File::options().write(true).open(file).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
    }

    #[test]
    fn git_repository_configuration_cannot_start_programs() {
        let temp = tempfile::tempdir().unwrap();
        let mark = temp.path().join("started");
        let program = format!("touch '{}'; cat", mark.display());

        // The configuration of the repository itself defines a filter program.
        let root = temp.path().join("own");
        repository(&root);
        git(&root, &["config", "filter.x.clean", &program]);
        change(&root.join("f"));
        assert!(facts(&root).is_err() && !mark.exists());
        git(&root, &["status"]);
        assert!(mark.exists(), "the control starts it");
        std::fs::remove_file(&mark).unwrap();

        // The configuration of a nested repository defines a filter program.
        let root = temp.path().join("outer");
        repository(&root);
        repository(&root.join("inner"));
        git(&root, &["add", "inner"]);
        git(&root.join("inner"), &["config", "filter.x.clean", &program]);
        change(&root.join("inner/f"));
        let found = facts(&root).unwrap();
        assert!(!mark.exists(), "the inner repository's filter was started");
        assert_eq!(found.violations[0].code, Code::Gitlink);
        git(&root, &["status"]);
        assert!(mark.exists(), "the control starts it");
        std::fs::remove_file(&mark).unwrap();

        // Partial clone with a remote helper: git needs the old content to detect a rename and
        // would start the helper to fetch it.
        let root = temp.path().join("partial");
        repository(&root);
        git(&root, &["mv", "f", "g"]);
        std::fs::write(root.join("g"), "one\ntwo\nthree\nfour\n").unwrap();
        git(&root, &["add", "g"]);
        let objects = root.join(".git/objects");
        let blob = "4cb29ea38f70d7c61b2a3a25b02e3bdf44905402";
        std::fs::remove_file(objects.join(&blob[..2]).join(&blob[2..])).unwrap();
        for (name, value) in [
            ("core.repositoryformatversion", "1"),
            ("extensions.partialclone", "far"),
            ("remote.far.promisor", "true"),
            ("remote.far.url", "."),
            ("remote.far.uploadpack", &program),
        ] {
            git(&root, &["config", name, value]);
        }
        assert!(facts(&root).is_err() && !mark.exists(), "it was fetched");
        let control = Command::new("git")
            .arg("-C")
            .arg(&root)
            .arg("status")
            .output();
        assert!(!control.unwrap().status.success() && mark.exists());
    }

    #[test]
    fn renamed_ignored_and_unmerged_paths_are_read_from_git_status() {
        let mut facts = Facts::default();
        read_status(
            b"R  new.php\0old.php\0!! build/\0UU both.php\0?? added.php\0",
            &mut facts,
        );
        assert_eq!(
            facts.paths,
            ["old.php", "new.php", "build", "both.php", "added.php"]
        );
        let codes: Vec<_> = facts.violations.iter().map(|v| v.code).collect();
        assert_eq!(codes, [Code::IgnoredPath, Code::UnmergedIndex]);
    }
}
