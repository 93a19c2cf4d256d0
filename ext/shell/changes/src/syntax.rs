//! Checks the syntax of the new PHP files of a change with the configured PHP, before an apply locks
//! the directories. Files that the run checked in its guest with the same version of PHP are not
//! checked again. Several processes of PHP run at once, each with a time limit.

use crate::child::wait_until;
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};
use std::time::{Duration, Instant};
use wp_codebox_apply::TargetChanges;
use wp_codebox_artifacts::{Node, PhpSyntax, sha256};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Time limit for one file. PHP reads a file of 1 MiB in well under a second.
const LIMIT: Duration = Duration::from_secs(10);
/// Time limit for all files.
const LIMIT_OF_ALL: Duration = Duration::from_secs(300);
/// Number of bytes of PHP's messages that are read.
const MESSAGE_BYTES: u64 = 4096;

/// A new PHP file.
struct NewFile<'c> {
    /// Path relative to its target.
    path: String,
    bytes: &'c [u8],
}

/// Checks all new contents of files whose names end with `.php`.
///
/// # Errors
/// `wp_codebox_apply_syntax_invalid` with the first file that PHP refuses, or that it did not check
/// within the time limit.
pub(crate) fn check(
    php: &Path,
    targets: &[TargetChanges],
    recorded: Option<&PhpSyntax>,
) -> Result<(), ErrorBody> {
    let mut files: Vec<NewFile<'_>> = targets.iter().flat_map(new_files).collect();
    if let Some(recorded) = recorded
        && !files.is_empty()
        && version_of(php).is_ok_and(|version| version == recorded.php_version)
    {
        files.retain(|file| !recorded.valid.contains(&sha256(file.bytes)));
    }
    let deadline = Instant::now() + LIMIT_OF_ALL;
    let next = AtomicUsize::new(0);
    let refused: Mutex<Option<(usize, String)>> = Mutex::new(None);
    let work = || {
        while let Some((at, file)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            files.get(at).map(|file| (at, file))
        } {
            let until = deadline.min(Instant::now() + LIMIT);
            let Err(message) = check_file(php, file.bytes, until) else {
                continue;
            };
            let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
            if refused.as_ref().is_none_or(|(first, _)| at < *first) {
                *refused = Some((at, message));
            }
            // The other files need no check.
            next.store(files.len(), Ordering::Relaxed);
        }
    };
    let workers = available_parallelism().map_or(1, NonZero::get);
    scope(|scope| {
        for _ in 1..workers.min(files.len()) {
            scope.spawn(work);
        }
        work();
    });
    let refused = refused.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some((at, message)) = refused else {
        return Ok(());
    };
    let path = files.get(at).map(|file| file.path.as_str());
    let message = format!(
        "{:?} is not valid PHP, so nothing was applied: {message}",
        path.unwrap_or_default()
    );
    Err(ErrorBody::new(ErrorCode::ApplySyntaxInvalid, message)
        .hint("apply only the other files, or run the task again"))
}

fn new_files(target: &TargetChanges) -> impl Iterator<Item = NewFile<'_>> {
    target.changes.entries.iter().filter_map(|entry| {
        let Some(Node::File { bytes, .. }) = entry.change.after() else {
            return None;
        };
        entry.path.ends_with(b".php").then(|| NewFile {
            path: String::from_utf8_lossy(&entry.path).into_owned(),
            bytes,
        })
    })
}

/// Checks one file with PHP, without php.ini. Returns the message of PHP if it refuses the file.
fn check_file(php: &Path, bytes: &[u8], until: Instant) -> Result<(), String> {
    let failed = |error: io::Error| format!("PHP cannot check it: {error}");
    // Files in memory, because the new contents are in no file yet, and because a full pipe would
    // stop this thread or PHP.
    let source = memory_file(bytes).map_err(failed)?;
    let messages = memory_file(&[]).map_err(failed)?;
    let child = Command::new(php)
        .args(["-n", "-d", "display_errors=stderr", "-l"])
        .env_clear()
        .stdin(Stdio::from(source))
        .stdout(Stdio::null())
        .stderr(Stdio::from(messages.try_clone().map_err(failed)?))
        .spawn()
        .map_err(|error| format!("{} cannot be started: {error}", php.display()))?;
    match wait_until(child, until).map_err(failed)? {
        Some(status) if status.success() => return Ok(()),
        Some(_) => {}
        None => {
            let seconds = LIMIT.as_secs();
            return Err(format!("PHP did not check it within {seconds} seconds"));
        }
    }
    let text = text_of(messages).map_err(failed)?;
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("php -l refuses it").trim();
    Err(line.replace(" in Standard input code", " in this file"))
}

/// Returns the version of PHP.
fn version_of(php: &Path) -> io::Result<String> {
    let printed = memory_file(&[])?;
    let child = Command::new(php)
        .args(["-n", "-r", "echo PHP_VERSION;"])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::from(printed.try_clone()?))
        .stderr(Stdio::null())
        .spawn()?;
    wait_until(child, Instant::now() + LIMIT)?;
    text_of(printed)
}

/// Returns the beginning of the text that a process wrote into this file.
fn text_of(file: File) -> io::Result<String> {
    let mut text = Vec::new();
    seek(&file, SeekFrom::Start(0))?;
    file.take(MESSAGE_BYTES).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns an anonymous file with this content, to be read from its beginning.
fn memory_file(bytes: &[u8]) -> io::Result<File> {
    let file = File::from(memfd_create("syntax", MemfdFlags::CLOEXEC)?);
    io::Write::write_all(&mut &file, bytes)?;
    seek(&file, SeekFrom::Start(0))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use wp_codebox_artifacts::{Change, EntryChange, FileMode, MountChanges};

    /// Returns a stand-in for PHP that obeys its input, with the number of its starts in a file.
    fn php(directory: &Path) -> PathBuf {
        let path = directory.join("php");
        let script = format!(
            "#!/bin/sh\ncase $* in *PHP_VERSION*) printf 8.2.1; exit ;; esac\nread line\necho start >>{}/starts\ncase $line in hang) sleep 600 ;; bad*) echo \"PHP Parse error: $line in Standard input code\" >&2; exit 255 ;; esac\n",
            directory.display()
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn targets(files: &[(&str, &str)]) -> Vec<TargetChanges> {
        let entry = |(path, text): &(&str, &str)| EntryChange {
            path: path.as_bytes().to_vec(),
            change: Change::Added(Node::File {
                mode: FileMode::Regular,
                bytes: format!("{text}\n").into_bytes(),
            }),
        };
        vec![TargetChanges {
            mount: "/workspace/p".to_owned(),
            path: PathBuf::from("/nonexistent"),
            changes: MountChanges {
                entries: files.iter().map(entry).collect(),
                ..MountChanges::default()
            },
        }]
    }

    #[test]
    fn file_with_a_syntax_error_is_refused_with_the_message_and_other_names_are_not_checked() {
        let directory = tempfile::tempdir().unwrap();
        let php = php(directory.path());
        check(&php, &targets(&[("a.php", "good"), ("b.txt", "bad")]), None).unwrap();
        let starts = std::fs::read_to_string(directory.path().join("starts")).unwrap();
        assert_eq!(starts.lines().count(), 1);
        let two = targets(&[("a.php", "good"), ("b.php", "bad brace")]);
        let refused = check(&php, &two, None);
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, ErrorCode::ApplySyntaxInvalid);
        assert_eq!(
            refused.message,
            "\"b.php\" is not valid PHP, so nothing was applied: PHP Parse error: bad brace in this file"
        );
    }

    #[test]
    fn file_that_the_run_checked_is_checked_again_only_by_another_version_of_php_or_with_other_bytes()
     {
        let directory = tempfile::tempdir().unwrap();
        let php = php(directory.path());
        let starts = || {
            let starts = std::fs::read_to_string(directory.path().join("starts"));
            starts.map_or(0, |starts| starts.lines().count())
        };
        let files = targets(&[("a.php", "good"), ("b.php", "good too")]);
        let recorded = |version: &str| PhpSyntax {
            php_version: version.to_owned(),
            valid: [sha256(b"good\n"), sha256(b"bad\n")].into(),
            ..PhpSyntax::default()
        };
        check(&php, &files, Some(&recorded("8.2.1"))).unwrap();
        assert_eq!(starts(), 1, "b.php was not in the record");
        check(&php, &files, Some(&recorded("8.2.0"))).unwrap();
        assert_eq!(starts(), 3);
        // A file that the run saw as invalid, or not at all, is not excused by the record.
        let bad = targets(&[("a.php", "bad brace")]);
        check(&php, &bad, Some(&recorded("8.2.1"))).unwrap_err();
    }

    #[test]
    fn php_that_does_not_end_is_killed_at_its_time_limit_and_large_files_do_not_block() {
        let directory = tempfile::tempdir().unwrap();
        let php = php(directory.path());
        let soon = Instant::now() + Duration::from_millis(50);
        let hung = check_file(&php, b"hang\n", soon).unwrap_err();
        assert!(hung.contains("did not check it within"), "{hung}");
        // Larger than a pipe, of which the stand-in reads one line.
        let large = [b"good\n".to_vec(), vec![b'x'; 4 << 20]].concat();
        check_file(&php, &large, Instant::now() + LIMIT).unwrap();
        let missing = check_file(Path::new("/nonexistent/php"), b"", Instant::now() + LIMIT);
        assert!(missing.unwrap_err().contains("cannot be started"));
    }
}
