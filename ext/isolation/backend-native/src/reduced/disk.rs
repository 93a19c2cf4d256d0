//! Polls the disk use of a guest at level `reduced`, where the kernel does not limit the guest's
//! files as a whole.
//!
//! A thread adds up the guest's writable directories and kills the guest when the sum exceeds its
//! limit. More can be written between two polls, and removed files that are still open are not
//! counted. The thread walks by file descriptor and never follows links.

use crate::channel::timespec;
use crate::watch::{KillCause, Shared};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two polls of the disk use.
const INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of directory levels counted; deeper trees count as over the limit.
const DEPTH: usize = 128;
/// Minimum and maximum of the limit on files and directories. Between them the limit is one for
/// each 4096 bytes of the disk limit. The scratch tmpfs of a guest at level `full` has the same
/// limits.
const ENTRIES: (u64, u64) = (16_384, 200_000);

/// Size of the guest's writable directories at one poll.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DiskUse {
    bytes: u64,
    entries: u64,
    too_deep: bool,
}

/// The thread that polls a guest's disk use; it ends with the guest.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    thread: Option<JoinHandle<()>>,
}

impl DiskWatch {
    /// Starts the polling thread. The size that the directories have now does not count towards
    /// `limit`.
    pub(crate) fn start(
        shared: Arc<Shared>,
        writable: &[String],
        limit: u64,
    ) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let roots = writable
            .iter()
            .map(|path| rustix::fs::open(path, flags, Mode::empty()))
            .collect::<Result<Vec<_>, _>>()?;
        let before = measure(&roots, u64::MAX);
        shared.record_disk(0, false);
        let entries = (limit / 4096).clamp(ENTRIES.0, ENTRIES.1);
        let thread = std::thread::Builder::new()
            .name("guest-disk".to_owned())
            .stack_size(512 * 1024)
            .spawn(move || {
                loop {
                    let mut fds = [PollFd::new(&shared.pidfd, PollFlags::IN)];
                    if matches!(poll(&mut fds, Some(&timespec(INTERVAL))), Ok(ready) if ready > 0) {
                        return;
                    }
                    let now = measure(&roots, before.entries.saturating_add(entries));
                    let used = now.bytes.saturating_sub(before.bytes);
                    let over = used > limit
                        || now.entries.saturating_sub(before.entries) > entries
                        || now.too_deep;
                    shared.record_disk(used, over);
                    if over {
                        shared.kill(KillCause::Disk);
                    }
                }
            })?;
        Ok(Self {
            thread: Some(thread),
        })
    }
}

impl Drop for DiskWatch {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn measure(roots: &[OwnedFd], most: u64) -> DiskUse {
    let mut found = DiskUse::default();
    for root in roots {
        if let Ok(fresh) = openat(root, ".", dir_flags(), Mode::empty()) {
            add(fresh, 0, most, &mut found);
        }
    }
    found
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn add(directory: OwnedFd, depth: usize, most: u64, found: &mut DiskUse) {
    if depth > DEPTH {
        found.too_deep = true;
        return;
    }
    let Ok(mut entries) = Dir::read_from(&directory) else {
        return;
    };
    while let Some(Ok(entry)) = entries.read() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        found.entries += 1;
        if found.entries > most {
            break;
        }
        // On failure, the entry was removed after it was listed.
        let Ok(stat) = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let blocks = u64::try_from(stat.st_blocks).unwrap_or_default();
        found.bytes = found.bytes.saturating_add(blocks.saturating_mul(512));
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            && let Ok(below) = openat(&directory, name, dir_flags(), Mode::empty())
        {
            add(below, depth + 1, most, found);
            if found.entries > most {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_usage_poll_counts_bytes_and_entries_reports_too_deep_trees_and_follows_no_links() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("link")).unwrap();
        let open = || vec![rustix::fs::open(&root, dir_flags(), Mode::empty()).unwrap()];
        let found = measure(&open(), u64::MAX);
        assert_eq!(found.entries, 4);
        assert!((100_000..200_000).contains(&found.bytes), "{found:?}");
        assert!(!found.too_deep);
        let mut deep = root.clone();
        for _ in 0..=DEPTH {
            deep.push("d");
        }
        std::fs::create_dir_all(&deep).unwrap();
        assert!(measure(&open(), u64::MAX).too_deep);
        assert_eq!(measure(&open(), 3).entries, 4, "it stops after the bound");
    }
}
