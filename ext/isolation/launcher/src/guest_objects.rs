//! Counts the open directories of merged overlays in a guest, the names in them, and the areas in
//! the memory maps of its processes.
//!
//! When a program reads a directory that exists in several layers of an overlay, the kernel makes a
//! list of its names and keeps it until the last descriptor of the directory is closed. A program
//! that reads the directory after a change gets a list of its own. A name takes up to 512 bytes,
//! and no cgroup counts them.
//!
//! A file that a program has mapped and closed is an open file of the host, whose number is
//! limited, and no descriptor shows it; but each has an area of its own.
//!
//! The supervisor cannot look at the processes of a guest with another uid; the launcher has the same
//! uid and sees the host's `/proc`. Programs may hide their descriptors from other processes of
//! their uid, so the launcher keeps CAP_SYS_PTRACE over the guest's user namespace. A program that
//! pid 1 has not executed yet stays hidden: its memory is that of the launcher and belongs to the
//! user namespace outside. It runs no code of the guest.

use crate::error::{At, Failure, Step};
use crate::mounting::last_errno;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, open, openat, statat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::HashMap;
use std::io::Read;
use std::time::{Duration, Instant};
use wp_codebox_contracts::GuestObjects;

/// Bytes that each name adds to the size of a directory of a tmpfs.
const NAME: u64 = 20;
/// Pause from one count to the next, in durations of the count.
const SHARE_OF_TIME: u32 = 20;
/// Longest pause from one count to the next.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of processes read at once; more than any `processes` limit.
const PROCESSES: usize = 8192;

/// Counts the objects of one guest.
pub(crate) struct ObjectCounter {
    /// The host's `/proc`.
    processes: OwnedFd,
    /// Process id of the guest's pid 1.
    pid: i32,
    /// Most names found so far in each directory that is open, by device and inode. Names that a
    /// program has removed since may still be in a list.
    names: HashMap<(u64, u64), u64>,
    /// Time before which the objects are not counted again: a count may take long.
    next: Instant,
}

/// Result of one count.
#[derive(Default)]
struct Found {
    /// Merged directories, one for each descriptor.
    merged: Vec<Stat>,
    /// Number of descriptors of which the kind is unknown; they count as merged directories.
    unknown: u64,
}

/// Opens `/proc`. Pid 1 replaces the root directory of the launcher's mount namespace later.
pub(crate) fn open_processes() -> Result<OwnedFd, Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open("/proc", flags, Mode::empty()).at(Step::Proc, "the host's /proc")
}

impl ObjectCounter {
    pub(crate) fn new(processes: OwnedFd, pid: i32) -> Self {
        Self {
            processes,
            pid,
            names: HashMap::new(),
            next: Instant::now(),
        }
    }

    /// Counts the objects; the areas until there are more than `most`. Returns `None` if the last count
    /// was too short ago.
    pub(crate) fn count(&mut self, most: u64) -> Option<GuestObjects> {
        let start = Instant::now();
        if start < self.next {
            return None;
        }
        let objects = self.objects(most);
        let pause = start.elapsed().saturating_mul(SHARE_OF_TIME);
        self.next = Instant::now() + pause.min(LONGEST_PAUSE);
        Some(objects)
    }

    fn objects(&mut self, most: u64) -> GuestObjects {
        let mut found = Found::default();
        let mut areas = 0;
        let mut tree = vec![self.pid];
        let mut next = 0;
        while let Some(pid) = tree.get(next).copied().filter(|_| next < PROCESSES) {
            self.children(pid, &mut tree);
            self.merged(pid, &mut found);
            if areas < most {
                areas += self.areas(pid, most - areas);
            }
            next += 1;
        }
        let mut names = HashMap::new();
        let mut sum = 0_u64;
        for stat in &found.merged {
            let key = (stat.st_dev, stat.st_ino);
            let now = u64::try_from(stat.st_size).unwrap_or(0) / NAME;
            let most = self.names.get(&key).map_or(now, |before| now.max(*before));
            names.insert(key, most);
            sum = sum.saturating_add(most);
        }
        self.names = names;
        GuestObjects {
            directories: found.merged.len() as u64 + found.unknown,
            names: sum,
            areas,
        }
    }

    /// Returns the number of areas in the memory map of a process: the lines of its `maps`, read
    /// until there are more than `most`.
    fn areas(&self, pid: i32, most: u64) -> u64 {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(maps) = openat(&self.processes, format!("{pid}/maps"), flags, Mode::empty()) else {
            return 0;
        };
        let mut maps = std::fs::File::from(maps);
        let mut block = [0_u8; 16 * 1024];
        let mut areas = 0;
        while areas <= most
            && let Ok(length @ 1..) = maps.read(&mut block)
        {
            let lines = block.iter().take(length).filter(|byte| **byte == b'\n');
            areas += lines.count() as u64;
        }
        areas
    }

    /// Appends the child processes of a process.
    fn children(&self, pid: i32, tree: &mut Vec<i32>) {
        for thread in self.numbers(&format!("{pid}/task")) {
            let path = format!("{pid}/task/{thread}/children");
            let file = openat(
                &self.processes,
                path,
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            );
            let mut text = String::new();
            if let Ok(file) = file
                && std::fs::File::from(file).read_to_string(&mut text).is_ok()
            {
                tree.extend(
                    text.split_whitespace()
                        .filter_map(|n| n.parse::<i32>().ok()),
                );
            }
        }
    }

    /// Appends the merged directories that a process has open.
    fn merged(&self, pid: i32, found: &mut Found) {
        let descriptors = format!("{pid}/fd");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(&self.processes, &descriptors, flags, Mode::empty()) {
            Ok(directory) => {
                let stat = |number: i32| statat(&directory, number.to_string(), AtFlags::empty());
                let all = numbers_in(&directory).into_iter();
                let all = all.filter_map(|number| stat(number).ok());
                found.merged.extend(all.filter(is_merged));
            }
            Err(Errno::ACCESS) => {
                let Some(process) =
                    Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
                else {
                    return;
                };
                for number in self.numbers(&format!("{pid}/fdinfo")) {
                    match copy_of(&process, number).and_then(fstat) {
                        Ok(stat) if is_merged(&stat) => found.merged.push(stat),
                        Ok(_) | Err(Errno::BADF | Errno::SRCH) => {}
                        // The seccomp profile of a container may refuse the copy.
                        Err(_) => found.unknown += 1,
                    }
                }
            }
            Err(_) => {}
        }
    }

    /// Returns the numbers that name entries of a directory below `/proc`.
    fn numbers(&self, path: &str) -> Vec<i32> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.processes, path, flags, Mode::empty())
            .map(|directory| numbers_in(&directory))
            .unwrap_or_default()
    }
}

fn numbers_in(directory: &OwnedFd) -> Vec<i32> {
    let entries = Dir::read_from(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok())
        .collect()
}

/// Returns whether an inode is a directory that exists in several layers of an overlay. Overlayfs
/// reports one link for these; a directory of a tmpfs, and so any other directory that a guest
/// can write, has at least two.
fn is_merged(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory && stat.st_nlink == 1
}

/// Returns a copy of a descriptor of another process.
fn copy_of(process: &OwnedFd, number: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: the call takes numbers only; the descriptor that it returns is new and owned by no
    // other value.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0);
        if fd < 0 {
            return Err(last_errno());
        }
        Ok(OwnedFd::from_raw_fd(
            i32::try_from(fd).map_err(|_| Errno::BADF)?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn own() -> ObjectCounter {
        let pid = i32::try_from(std::process::id()).unwrap();
        ObjectCounter::new(open_processes().unwrap(), pid)
    }

    #[test]
    fn child_processes_and_descriptors_of_a_process_are_found() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let mut tree = Vec::new();
        own().children(own().pid, &mut tree);
        child.kill().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        child.wait().unwrap();
        assert!(tree.contains(&pid));
        let null = open("/dev/null", OFlags::RDONLY, Mode::empty()).unwrap();
        let path = format!("{}/fd", own().pid);
        assert!(own().numbers(&path).contains(&null.as_fd().as_raw_fd()));
    }

    #[test]
    fn plain_directories_are_not_merged() {
        let directory = open("/dev/shm", OFlags::RDONLY, Mode::empty()).unwrap();
        assert!(!is_merged(&fstat(&directory).unwrap()));
        assert_eq!(own().objects(0), GuestObjects::default());
    }

    #[test]
    fn areas_are_counted_up_to_a_limit_and_not_again_before_a_pause() {
        let lines = std::fs::read_to_string("/proc/self/maps").unwrap();
        let lines = lines.lines().count() as u64;
        // Without child processes, which another test starts.
        let all = own().areas(own().pid, u64::MAX);
        assert!(
            all.abs_diff(lines) < lines / 2,
            "{all} areas, {lines} lines"
        );
        assert_eq!(own().objects(0).areas, 0);
        let mut counter = own();
        let before = counter.next;
        assert!(counter.count(1).is_some_and(|one| one.areas > 1));
        assert!(counter.next > before);
        counter.next = Instant::now() + LONGEST_PAUSE * 60;
        assert_eq!(counter.count(1), None);
    }
}
