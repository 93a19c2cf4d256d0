//! Counts the objects of a guest in the kernel whose memory counts against no limit.
//!
//! - Record locks (`fcntl`): the kernel neither limits their number nor charges them to a cgroup.
//!   They take 190 bytes each; a second of CPU time makes 300,000 to 600,000.
//! - TCP sockets: the kernel charges the accepting end of a connection when a program accepts it.
//!   A connection that waits takes 4 KB; a second of CPU time makes 25,000. Unread reports of sent
//!   packets (SO_TIMESTAMPING) can fill the receive buffer of a socket, of 128 KiB.
//! - File descriptors: a timer (`timerfd`), a lock of a whole file (`flock`) and other objects
//!   behind a descriptor are charged to no cgroup. `/proc/locks` does not name the owner of a lock
//!   whose process has ended, but a descriptor holds each such lock. The number of open files of
//!   the whole host is limited, too (`fs.file-max`).
//! - Sockets of the guest's network: a connection that waits for `accept` takes 850 bytes that no
//!   cgroup counts, and no descriptor when its client has closed.
//!
//! Without a bound, one program of a guest could take the memory of the host.

use crate::processes::{SHARE_OF_TIME, descriptors, tree};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, FIXED_LIMITS, Limits};

/// Maximum number of locks. The kernel needs a time that grows with the square of the number of all
/// locks on the host to print their list.
const LOCKS: usize = 2048;
/// Maximum number of TCP sockets.
const SOCKETS: usize = 2048;
/// Maximum number of file descriptors, besides those in [`DESCRIPTORS_PER_PROCESS`].
const DESCRIPTORS: u64 = 8192;
/// File descriptors that each process of the process limit adds to the maximum.
const DESCRIPTORS_PER_PROCESS: u64 = 16;
/// Microseconds of the guest's CPU time from one count to the next. Idle guests are left alone,
/// because the kernel stops all locking of the host for a moment to print the list of locks.
const CPU_PER_COUNT: u64 = 25_000;
/// Longest pause between two counts of a guest that uses CPU time.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Counts the kernel objects of one guest.
#[derive(Debug)]
pub(crate) struct KernelObjects {
    /// Process id of the guest's pid 1.
    pid: i32,
    /// Whether the guest has a network namespace of its own. Otherwise it can make no TCP socket.
    own_network: bool,
    /// Maximum number of file descriptors of all processes, and of sockets of its network.
    descriptors: u64,
    /// CPU time of the guest's processes at the last count, in microseconds.
    cpu: u64,
    /// Time before which the objects are not counted again: a count may take long.
    next: Instant,
}

/// Result of a count of the kernel objects of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// The guest has used little CPU time since the last count, or that was too short ago.
    NotDue,
    /// The guest has no more objects of any kind than it may have.
    Few,
    /// The guest has too many objects of a kind.
    TooMany,
}

impl KernelObjects {
    pub(crate) fn new(pid: i32, own_network: bool, limits: &Limits) -> Self {
        Self {
            pid,
            own_network,
            descriptors: most_descriptors(limits),
            cpu: 0,
            next: Instant::now(),
        }
    }

    /// Counts the objects. `cpu` is the CPU time of the guest's processes in microseconds; it may
    /// shrink when processes end.
    pub(crate) fn count(&mut self, cpu: u64) -> Count {
        let start = Instant::now();
        let idle = self.cpu <= cpu && cpu - self.cpu < CPU_PER_COUNT;
        if idle || start < self.next {
            return Count::NotDue;
        }
        self.cpu = cpu;
        let processes = tree(self.pid);
        let too_many = descriptors(&processes) > self.descriptors
            || locks(&processes) > LOCKS
            || (self.own_network && self.too_many_sockets());
        let pause = start.elapsed().saturating_mul(SHARE_OF_TIME);
        self.next = Instant::now() + pause.min(LONGEST_PAUSE);
        if too_many { Count::TooMany } else { Count::Few }
    }

    fn too_many_sockets(&self) -> bool {
        let read = |name: &str| {
            let path = format!("/proc/{}/net/{name}", self.pid);
            fs::read_to_string(path).unwrap_or_default()
        };
        let sockets = Sockets::parse(&read("sockstat"));
        let tcp = sockets.tcp + Sockets::parse(&read("sockstat6")).tcp;
        tcp > SOCKETS || sockets.all > self.descriptors
    }
}

/// Returns how many file descriptors all processes of a guest may have open.
fn most_descriptors(limits: &Limits) -> u64 {
    DESCRIPTORS + DESCRIPTORS_PER_PROCESS.saturating_mul(limits.processes)
}

/// Returns the error of a program whose guest had too many kernel objects.
pub(crate) fn too_many(limits: &Limits) -> ErrorBody {
    let descriptors = most_descriptors(limits);
    let directories = FIXED_LIMITS.merged_directories;
    let message = format!(
        "the guest was ended, because its processes together had more than {LOCKS} locks on files, {SOCKETS} TCP sockets, {descriptors} open file descriptors or sockets, or {directories} open directories of a mount that they changed, whose memory in the kernel counts against no limit; let the program release locks, accept connections, and close connections, files and directories"
    );
    ErrorBody::new(ErrorCode::MemoryLimit, message)
        .with("limitLocks", LOCKS)
        .with("limitSockets", SOCKETS)
        .with("limitDescriptors", descriptors)
        .with("limitDirectories", directories)
}

fn locks(processes: &[i32]) -> usize {
    let processes = processes.iter().copied().collect();
    File::open("/proc/locks").map_or(0, |list| {
        count_locks(BufReader::new(list), &processes, LOCKS + 1)
    })
}

/// Counts the locks of these processes in the text of `/proc/locks`, up to `most`.
fn count_locks(list: impl BufRead, processes: &HashSet<i32>, most: usize) -> usize {
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

/// Sockets of a network namespace.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sockets {
    /// Sockets of all kinds, those included that wait for `accept`.
    all: u64,
    /// TCP sockets.
    tcp: usize,
}

impl Sockets {
    /// Reads a text with lines such as `sockets: used 9` and `TCP: inuse 5 orphan 0 tw 2`.
    fn parse(text: &str) -> Self {
        let mut sockets = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some("sockets:"), Some("used"), Some(count)) => {
                    sockets.all = count.parse().unwrap_or(0);
                }
                (Some("TCP:" | "TCP6:"), Some("inuse"), Some(count)) => {
                    sockets.tcp = count.parse().unwrap_or(0);
                }
                _ => {}
            }
        }
        sockets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FlockOperation, fcntl_lock};
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn lock_count_includes_waiting_lock_requests_and_excludes_locks_of_other_processes() {
        let text = "1: POSIX  ADVISORY  WRITE 85 08:02:7 0 EOF\n\
            1: -> POSIX  ADVISORY  WRITE 86 08:02:7 0 EOF\n\
            2: OFDLCK ADVISORY  READ -1 00:01:12 0 EOF\n\
            3: FLOCK  ADVISORY  WRITE 85 08:02:9 0 EOF\n\
            4: POSIX  ADVISORY  WRITE 90 08:02:7 0 EOF\n\
            5:\n";
        let of = |pids: &[i32]| count_locks(text.as_bytes(), &pids.iter().copied().collect(), 9);
        assert_eq!((of(&[85]), of(&[85, 86]), of(&[90]), of(&[])), (2, 3, 1, 0));
        let all = [85, 86, 90].into_iter().collect();
        assert_eq!(count_locks(text.as_bytes(), &all, 3), 3);
    }

    #[test]
    fn kernel_lists_a_lock_of_this_process_under_its_pid() {
        let file = tempfile::tempfile().unwrap();
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let inode = format!(":{} ", file.metadata().unwrap().ino());
        let list = fs::read_to_string("/proc/locks").unwrap();
        let own: Vec<_> = list.lines().filter(|line| line.contains(&inode)).collect();
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(own.iter().any(|line| owner(line) == Some(pid)), "{own:?}");
    }

    #[test]
    fn sockets_in_use_are_counted_all_together_and_those_of_tcp() {
        let text =
            "sockets: used 9\nTCP: inuse 5 orphan 1 tw 2 alloc 6 mem 0\nUDP: inuse 3 mem 0\n";
        assert_eq!(Sockets::parse(text), Sockets { all: 9, tcp: 5 });
        assert_eq!(Sockets::parse("TCP6: inuse 4\n").tcp, 4);
    }

    #[test]
    fn guest_with_more_sockets_than_descriptors_allowed_has_too_many_objects() {
        let own = i32::try_from(std::process::id()).unwrap();
        let (_one, _two) = UnixStream::pair().unwrap();
        let mut objects = KernelObjects::new(own, true, &Limits::default());
        assert!(!objects.too_many_sockets(), "control");
        objects.descriptors = 1;
        assert!(objects.too_many_sockets());
    }

    /// The sum of the CPU times shrinks only when a process has ended.
    #[test]
    fn kernel_objects_are_counted_after_25_ms_of_cpu_time_and_when_a_process_has_ended() {
        let mut objects = KernelObjects::new(i32::MAX, true, &Limits::default());
        let mut counts = |cpu| {
            objects.next = Instant::now();
            objects.count(cpu) != Count::NotDue
        };
        assert!(!counts(24_999));
        assert!(counts(25_000));
        assert!(!counts(49_999));
        assert!(counts(24_000));
    }

    #[test]
    fn next_count_waits_for_a_multiple_of_the_duration_of_the_last() {
        let mut objects = KernelObjects::new(i32::MAX, true, &Limits::default());
        assert_eq!(objects.count(100_000), Count::Few);
        let pause = objects.next.saturating_duration_since(Instant::now());
        assert!(
            pause > Duration::ZERO && pause <= LONGEST_PAUSE,
            "{pause:?}"
        );
        assert_eq!(objects.count(900_000), Count::NotDue);
    }

    #[test]
    fn guest_with_more_descriptors_than_its_limit_has_too_many_objects() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut objects = KernelObjects::new(own, false, &Limits::default());
        assert_eq!(objects.count(100_000), Count::Few, "control");
        objects.next = Instant::now();
        objects.descriptors = 2;
        assert_eq!(objects.count(200_000), Count::TooMany);
    }
}
