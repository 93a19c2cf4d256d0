//! Runs git such that no configuration, hook or attribute of the repository, the user or the system
//! can start another program.
//!
//! Invariants: git never uses the configuration, hooks, attributes, replacements, grafts or
//! alternates of the repository. `GIT_DIR` is a private directory. It contains a configuration that
//! this module writes, and symbolic links to the repository's `refs` and `packed-refs`.
//! `GIT_OBJECT_DIRECTORY` is the repository's object directory. The environment is cleared. Every
//! command has a time limit, because git would wait forever for a FIFO in the repository.

use super::error::GitBranchError;
use super::repository::Repository;
use crate::child::wait_until;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wp_codebox_contracts::GitPerson;

/// Paths at which git may be installed.
const PROGRAMS: [&str; 2] = ["/usr/local/bin/git", "/usr/bin/git"];
/// Time limit of one command in seconds.
const SECONDS: u64 = 120;
/// Maximum size of a command's output in bytes.
const LARGEST: u64 = 512 * 1024 * 1024;
/// Maximum length of a message of git in an error, in characters.
const MESSAGE: usize = 300;
/// Options that every git command gets. They switch off programs, signatures and remotes. They are
/// a second protection: the private configuration enables none of these.
const OPTIONS: [&str; 10] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "protocol.allow=never",
    "-c",
    "gc.auto=0",
];

/// Git with a private directory for one repository.
pub(super) struct Git<'a> {
    program: &'static Path,
    work: &'a Path,
    repository: &'a Repository,
}

impl<'a> Git<'a> {
    /// Creates the private directory in `work`, which is empty.
    pub(super) fn new(work: &'a Path, repository: &'a Repository) -> Result<Self, GitBranchError> {
        let mut programs = PROGRAMS.iter().map(Path::new);
        let program = programs.find(|program| program.is_file());
        let git = Self {
            program: program.ok_or(GitBranchError::NoProgram)?,
            work,
            repository,
        };
        let own = git.directory();
        fs::create_dir(&own)?;
        fs::write(own.join("HEAD"), "ref: refs/heads/codebox-none\n")?;
        for shared in ["refs", "packed-refs"] {
            symlink(repository.directory().join(shared), own.join(shared))?;
        }
        git.configure("sha1", None)?;
        Ok(git)
    }

    /// Writes the private configuration. `shared` is the repository's `core.sharedRepository`, which
    /// sets the permissions of new objects.
    pub(super) fn configure(
        &self,
        object_format: &str,
        shared: Option<&str>,
    ) -> Result<(), GitBranchError> {
        let mut text = "[core]\n\tbare = true\n\tlogAllRefUpdates = false\n".to_owned();
        if let Some(shared) = shared {
            text.push_str(&format!("\tsharedRepository = {shared}\n"));
        }
        if object_format != "sha1" {
            text.push_str(&format!(
                "\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = {object_format}\n"
            ));
        }
        Ok(fs::write(self.directory().join("config"), text)?)
    }

    fn directory(&self) -> PathBuf {
        self.work.join("git")
    }

    /// Runs a git command and returns its output; an exit status other than 0 is an error.
    pub(super) fn run(
        &self,
        arguments: &[&OsStr],
        input: &[u8],
    ) -> Result<Vec<u8>, GitBranchError> {
        let ended = self.end(arguments, input, &[])?;
        match ended.success {
            true => Ok(ended.output),
            false => Err(GitBranchError::Git {
                command: shown(arguments),
                why: ended.message,
            }),
        }
    }

    /// Runs a git command with the author and committer of a commit.
    pub(super) fn run_as(
        &self,
        author: &GitPerson,
        committer: &GitPerson,
        arguments: &[&OsStr],
        input: &[u8],
    ) -> Result<Vec<u8>, GitBranchError> {
        let people = [
            ("GIT_AUTHOR_NAME", author.name.as_str()),
            ("GIT_AUTHOR_EMAIL", &author.email),
            ("GIT_COMMITTER_NAME", &committer.name),
            ("GIT_COMMITTER_EMAIL", &committer.email),
        ];
        let ended = self.end(arguments, input, &people)?;
        match ended.success {
            true => Ok(ended.output),
            false => Err(GitBranchError::Git {
                command: shown(arguments),
                why: ended.message,
            }),
        }
    }

    /// Runs a git command and returns how it ended. An exit status other than 0 is not an error
    /// here, in contrast to [`Self::run`].
    pub(super) fn end(
        &self,
        arguments: &[&OsStr],
        input: &[u8],
        more: &[(&str, &str)],
    ) -> Result<Ended, GitBranchError> {
        // Files instead of pipes: with pipes, git could block on its output while this process
        // blocks on its input.
        let mut stdin = tempfile::tempfile_in(self.work)?;
        stdin.write_all(input)?;
        stdin.seek(SeekFrom::Start(0))?;
        let (stdout, stderr) = (
            tempfile::tempfile_in(self.work)?,
            tempfile::tempfile_in(self.work)?,
        );
        let child = Command::new(self.program)
            .args(OPTIONS)
            .args(arguments)
            .current_dir(self.work)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", "/nonexistent")
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_DIR", self.directory())
            .env(
                "GIT_OBJECT_DIRECTORY",
                self.repository.directory().join("objects"),
            )
            .env("GIT_INDEX_FILE", self.work.join("index"))
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .envs(more.iter().copied())
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout.try_clone()?))
            .stderr(Stdio::from(stderr.try_clone()?))
            .spawn()?;
        let command = || shown(arguments);
        let until = Instant::now() + Duration::from_secs(SECONDS);
        let Some(status) = wait_until(child, until)? else {
            return Err(GitBranchError::Git {
                command: command(),
                why: format!("it did not end within {SECONDS} seconds"),
            });
        };
        if stdout.metadata()?.len() > LARGEST {
            return Err(GitBranchError::Git {
                command: command(),
                why: "the repository or a file is too large".to_owned(),
            });
        }
        Ok(Ended {
            success: status.success(),
            output: contents(stdout)?,
            message: self.message(&contents(stderr)?),
        })
    }

    /// Returns the first line of git's error messages, without host paths.
    fn message(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().find(|line| !line.trim().is_empty());
        let mut line = line.unwrap_or("it gave no reason").to_owned();
        for path in [self.work, self.repository.directory()] {
            line = line.replace(&*path.to_string_lossy(), "");
        }
        line.chars()
            .filter(|c| !c.is_control())
            .take(MESSAGE)
            .collect()
    }
}

/// Result of a git command.
pub(super) struct Ended {
    /// True if the exit status is 0.
    pub success: bool,
    /// Standard output.
    pub output: Vec<u8>,
    /// First line of standard error.
    pub message: String,
}

fn shown(arguments: &[&OsStr]) -> String {
    arguments
        .first()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn contents(mut file: File) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}
