//! Counts the record locks (`fcntl`) of a guest.
//!
//! The kernel does not limit their number and charges their memory to no cgroup: 190 bytes each on
//! Linux 6.18, 300,000 locks per second of CPU time. Without a bound, one program of a guest could
//! take the memory of the host.

use crate::processes::tree;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Maximum number of record locks of all processes of a guest.
pub(crate) const MOST: usize = 16_384;
/// Microseconds of the guest's CPU time from one count to the next. To print the list of locks, the
/// kernel stops all locking of the host for a moment, so the locks of an idle guest are not counted.
const CPU_PER_COUNT: u64 = 1_000_000;

/// Decides when the locks of a guest are counted.
#[derive(Debug, Default)]
pub(crate) struct LockCount {
    cpu: u64,
}

impl LockCount {
    /// Returns whether the guest with this pid 1 has too many locks. `cpu` is the CPU time of its
    /// processes in microseconds; it may shrink when processes end.
    pub(crate) fn is_over(&mut self, pid: i32, cpu: u64) -> bool {
        if self.cpu <= cpu && cpu - self.cpu < CPU_PER_COUNT {
            return false;
        }
        self.cpu = cpu;
        let processes: HashSet<i32> = tree(pid).into_iter().collect();
        let Ok(list) = File::open("/proc/locks") else {
            return false;
        };
        count(BufReader::new(list), &processes, MOST) >= MOST
    }
}

/// Returns the error of a program that had too many locks.
pub(crate) fn too_many() -> ErrorBody {
    let message = format!(
        "the program and its guest were ended: together its processes held more than {MOST} record locks on files, whose memory in the kernel no limit counts; let the program release locks, or lock whole files"
    );
    ErrorBody::new(ErrorCode::MemoryLimit, message).with("limitLocks", MOST)
}

/// Counts the locks of these processes in the text of `/proc/locks`, up to `most`.
fn count(list: impl BufRead, processes: &HashSet<i32>, most: usize) -> usize {
    list.lines()
        .map_while(Result::ok)
        .filter(|line| owner(line).is_some_and(|pid| processes.contains(&pid)))
        .take(most)
        .count()
}

/// Returns the process in a line such as `1: POSIX  ADVISORY  WRITE 85 08:02:7 0 EOF`. The line of
/// a process that waits for a lock has an arrow before the kind.
fn owner(line: &str) -> Option<i32> {
    let mut words = line.split_whitespace().filter(|word| *word != "->");
    words.nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FlockOperation, fcntl_lock};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn locks_of_other_processes_are_not_counted_and_waiting_processes_are() {
        let text = "1: POSIX  ADVISORY  WRITE 85 08:02:7 0 EOF\n\
            1: -> POSIX  ADVISORY  WRITE 86 08:02:7 0 EOF\n\
            2: OFDLCK ADVISORY  READ -1 00:01:12 0 EOF\n\
            3: FLOCK  ADVISORY  WRITE 85 08:02:9 0 EOF\n\
            4: POSIX  ADVISORY  WRITE 90 08:02:7 0 EOF\n\
            5:\n";
        let of = |pids: &[i32]| count(text.as_bytes(), &pids.iter().copied().collect(), 9);
        assert_eq!(
            (of(&[85]), of(&[85, 86]), of(&[-1, 90]), of(&[])),
            (2, 3, 2, 0)
        );
        let all = [85, 86, 90].into_iter().collect();
        assert_eq!(count(text.as_bytes(), &all, 3), 3);
    }

    #[test]
    fn kernel_lists_a_lock_of_this_process_under_its_pid() {
        let file = tempfile::tempfile().unwrap();
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let inode = format!(":{} ", file.metadata().unwrap().ino());
        let list = std::fs::read_to_string("/proc/locks").unwrap();
        let own: Vec<_> = list.lines().filter(|line| line.contains(&inode)).collect();
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(own.iter().any(|line| owner(line) == Some(pid)), "{own:?}");
    }

    #[test]
    fn locks_are_counted_after_a_second_of_cpu_time_and_when_a_process_has_ended() {
        let mut counted = LockCount::default();
        let looks = |counted: &mut LockCount, cpu| {
            counted.is_over(i32::MAX, cpu);
            counted.cpu == cpu
        };
        assert!(!looks(&mut counted, 999_999));
        assert!(looks(&mut counted, 1_000_000));
        assert!(!looks(&mut counted, 1_500_000));
        assert!(looks(&mut counted, 900_000));
    }
}
