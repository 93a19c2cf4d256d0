//! Checks the syntax of the new PHP files of a change with the configured PHP, before an apply locks
//! the directories. Several processes of PHP run at once, each with a time limit.

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
use wp_codebox_artifacts::Node;
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
pub(crate) fn check(php: &Path, targets: &[TargetChanges]) -> Result<(), ErrorBody> {
    let files: Vec<NewFile<'_>> = targets.iter().flat_map(new_files).collect();
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
    let mut text = Vec::new();
    seek(&messages, SeekFrom::Start(0)).map_err(|error| failed(error.into()))?;
    let mut read = messages.take(MESSAGE_BYTES);
    read.read_to_end(&mut text).map_err(failed)?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("php -l refuses it").trim();
    Err(line.replace(" in Standard input code", " in this file"))
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
            "#!/bin/sh\nread line\necho start >>{}/starts\ncase $line in hang) sleep 600 ;; bad*) echo \"PHP Parse error: $line in Standard input code\" >&2; exit 255 ;; esac\n",
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
        check(&php, &targets(&[("a.php", "good"), ("b.txt", "bad")])).unwrap();
        let starts = std::fs::read_to_string(directory.path().join("starts")).unwrap();
        assert_eq!(starts.lines().count(), 1);
        let refused = check(&php, &targets(&[("a.php", "good"), ("b.php", "bad brace")]));
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, ErrorCode::ApplySyntaxInvalid);
        assert_eq!(
            refused.message,
            "\"b.php\" is not valid PHP, so nothing was applied: PHP Parse error: bad brace in this file"
        );
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
