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
//! - Directories of merged overlays that are open: the kernel keeps the names of each, up to 512
//!   bytes a name. The launcher counts them.
//! - Areas in the memory maps of processes: the kernel limits them only for each process. A file
//!   that is mapped and closed takes a place among the open files of the host, too. The launcher
//!   counts the areas when the kernel memory of the guest shows that there may be many.
//! - Sockets of the guest's network: a connection that waits for `accept` takes 850 bytes that no
//!   cgroup counts, and no descriptor when its client has closed.
//!
//! Without a bound, one program of a guest could take the memory of the host. Below the bounds,
//! the memory of these objects counts against the memory limit of the guest by an estimate: the
//! most that the kernel can have allocated for each of them.

use crate::processes::{SHARE_OF_TIME, descriptors, tree};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestObjects, Limits};

/// Maximum number of locks. The kernel needs a time that grows with the square of the number of all
/// locks on the host to print their list.
const LOCKS: usize = 2048;
/// Maximum number of TCP sockets.
const SOCKETS: u64 = 2048;
/// Maximum number of file descriptors, besides those in [`DESCRIPTORS_PER_PROCESS`].
const DESCRIPTORS: u64 = 8192;
/// File descriptors that each process of the process limit adds to the maximum.
const DESCRIPTORS_PER_PROCESS: u64 = 16;
/// Maximum number of open directories of merged overlays.
const DIRECTORIES: u64 = 128;
/// Maximum number of names in these directories; a name counts once for each descriptor.
const NAMES: u64 = 32_768;
/// Maximum number of memory areas, besides those in [`AREAS_PER_PROCESS`].
const AREAS: u64 = 131_072;
/// Memory areas that each process of the process limit adds to the maximum.
const AREAS_PER_PROCESS: u64 = 1024;
/// Kernel memory in bytes, charged to the guest's cgroup, up to which its areas are not counted: an
/// area takes 200 bytes of it.
const KERNEL_MEMORY_WITHOUT_COUNT: u64 = 32 << 20;
/// Most bytes of one descriptor that no cgroup counts: a timer, and what a file can have besides.
const DESCRIPTOR_BYTES: u64 = 472;
/// Most bytes of one socket that no cgroup counts, besides [`DESCRIPTOR_BYTES`].
const SOCKET_BYTES: u64 = 849;
/// Most bytes of one TCP socket that no cgroup counts: a receive buffer full of reports.
const TCP_SOCKET_BYTES: u64 = 135_000;
/// Most bytes of a name in an open directory of a merged overlay.
const NAME_BYTES: u64 = 512;
/// Most bytes of an area, with a file that is mapped there and closed. The kernel charges nearly all
/// of it to a cgroup, so it counts as memory only without one.
const AREA_BYTES: u64 = 700;
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
    /// Whether a cgroup counts the kernel memory of its processes.
    in_group: bool,
    /// Maximum numbers for the limits of the guest.
    most: Most,
    found: Objects,
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
    pub(crate) fn new(pid: i32, own_network: bool, in_group: bool, limits: &Limits) -> Self {
        Self {
            pid,
            own_network,
            in_group,
            most: Most::new(limits),
            found: Objects::default(),
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
        self.found = Objects {
            descriptors: descriptors(&processes),
            locks: locks(&processes),
            sockets: self.sockets(),
            of_launcher: self.found.of_launcher,
        };
        let too_many = self.found.are_more_than(&self.most);
        let pause = start.elapsed().saturating_mul(SHARE_OF_TIME);
        self.next = Instant::now() + pause.min(LONGEST_PAUSE);
        if too_many { Count::TooMany } else { Count::Few }
    }

    /// Returns up to how many memory areas the launcher shall count, for a guest whose cgroup counts
    /// `kernel` bytes of kernel memory.
    pub(crate) fn areas_to_count(&self, kernel: u64) -> u64 {
        if self.in_group && kernel < KERNEL_MEMORY_WITHOUT_COUNT {
            0
        } else {
            self.most.areas
        }
    }

    /// Takes over a count of the launcher. Returns whether there are too many objects of a kind.
    pub(crate) fn add(&mut self, of_launcher: GuestObjects) -> bool {
        self.found.of_launcher = of_launcher;
        self.found.are_more_than(&self.most)
    }

    /// Returns the memory in bytes that the objects of the last counts can take in the kernel, as far
    /// as no cgroup counts it. Locks are left out: their bound is low.
    pub(crate) fn uncounted(&self) -> u64 {
        let areas = if self.in_group { 0 } else { AREA_BYTES };
        self.found.uncounted(areas)
    }

    /// Returns the sockets of the guest's network; none if it has no network of its own.
    fn sockets(&self) -> Sockets {
        if !self.own_network {
            return Sockets::default();
        }
        let read = |name: &str| {
            let path = format!("/proc/{}/net/{name}", self.pid);
            Sockets::parse(&fs::read_to_string(path).unwrap_or_default())
        };
        let sockets = read("sockstat");
        let tcp = sockets.tcp + read("sockstat6").tcp;
        Sockets { tcp, ..sockets }
    }
}

/// Maximum numbers that depend on the limits of a guest.
#[derive(Debug)]
struct Most {
    /// File descriptors of all processes, and sockets of the network.
    descriptors: u64,
    /// Memory areas of all processes.
    areas: u64,
}

impl Most {
    fn new(limits: &Limits) -> Self {
        let with = |all: u64, of_each: u64| all + of_each.saturating_mul(limits.processes);
        Self {
            descriptors: with(DESCRIPTORS, DESCRIPTORS_PER_PROCESS),
            areas: with(AREAS, AREAS_PER_PROCESS),
        }
    }
}

/// Returns the error of a program whose guest had too many kernel objects.
pub(crate) fn too_many(limits: &Limits) -> ErrorBody {
    let Most { descriptors, areas } = Most::new(limits);
    let message = format!(
        "the guest was ended, because its processes together had more than {LOCKS} locks on files, {SOCKETS} TCP sockets, {descriptors} open file descriptors or sockets, {areas} memory areas, or {DIRECTORIES} open directories of a mount that they changed, or more than {NAMES} names in these; let the program release locks, accept connections, unmap files, and close connections, files and directories"
    );
    ErrorBody::new(ErrorCode::MemoryLimit, message)
        .with("limitLocks", LOCKS)
        .with("limitSockets", SOCKETS)
        .with("limitDescriptors", descriptors)
        .with("limitAreas", areas)
        .with("limitDirectories", DIRECTORIES)
        .with("limitNames", NAMES)
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

/// Kernel objects of a guest.
#[derive(Debug, Default)]
struct Objects {
    descriptors: u64,
    locks: usize,
    sockets: Sockets,
    of_launcher: GuestObjects,
}

impl Objects {
    /// Returns whether there are more objects of a kind than a guest may have.
    fn are_more_than(&self, most: &Most) -> bool {
        self.descriptors > most.descriptors
            || self.sockets.all > most.descriptors
            || self.sockets.tcp > SOCKETS
            || self.locks > LOCKS
            || self.of_launcher.directories > DIRECTORIES
            || self.of_launcher.names > NAMES
            || self.of_launcher.areas > most.areas
    }

    /// Returns the most memory in bytes that they take and no cgroup counts; `area_bytes` of each
    /// memory area.
    fn uncounted(&self, area_bytes: u64) -> u64 {
        [
            (self.descriptors, DESCRIPTOR_BYTES),
            (self.sockets.all, SOCKET_BYTES),
            (self.sockets.tcp, TCP_SOCKET_BYTES),
            (self.of_launcher.names, NAME_BYTES),
            (self.of_launcher.areas, area_bytes),
        ]
        .into_iter()
        .fold(0, |sum, (count, bytes)| {
            sum.saturating_add(count.saturating_mul(bytes))
        })
    }
}

/// Sockets of a network namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sockets {
    /// Sockets of all kinds, those included that wait for `accept`.
    all: u64,
    /// TCP sockets.
    tcp: u64,
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
    fn only_sockets_of_a_network_of_its_own_are_those_of_the_guest() {
        let own = i32::try_from(std::process::id()).unwrap();
        let (_one, _two) = UnixStream::pair().unwrap();
        let sockets = |own_network| {
            KernelObjects::new(own, own_network, true, &Limits::default())
                .sockets()
                .all
        };
        assert!(sockets(true) >= 2);
        assert_eq!(sockets(false), 0);
    }

    #[test]
    fn each_kind_of_object_has_a_bound_and_those_without_a_low_bound_count_as_memory() {
        let most = Most::new(&Limits::default());
        assert_eq!((most.descriptors, most.areas), (10_240, 262_144));
        let with = |change: fn(&mut Objects)| {
            let mut objects = Objects {
                descriptors: most.descriptors,
                locks: LOCKS,
                sockets: Sockets {
                    all: most.descriptors,
                    tcp: SOCKETS,
                },
                of_launcher: GuestObjects {
                    directories: DIRECTORIES,
                    names: NAMES,
                    areas: most.areas,
                },
            };
            change(&mut objects);
            (objects.are_more_than(&most), objects.uncounted(700))
        };
        let (over, bytes) = with(|_| ());
        assert!(!over);
        assert_eq!(with(|one| one.descriptors += 1), (true, bytes + 472));
        assert_eq!(with(|one| one.sockets.all += 1), (true, bytes + 849));
        assert_eq!(with(|one| one.sockets.tcp += 1), (true, bytes + 135_000));
        assert_eq!(with(|one| one.locks += 1), (true, bytes));
        assert_eq!(with(|one| one.of_launcher.directories += 1), (true, bytes));
        assert_eq!(with(|one| one.of_launcher.names += 1), (true, bytes + 512));
        assert_eq!(with(|one| one.of_launcher.areas += 1), (true, bytes + 700));
    }

    #[test]
    fn areas_count_as_memory_only_without_a_cgroup_and_are_counted_only_where_there_may_be_many() {
        let limits = Limits::default();
        let one_area = GuestObjects {
            areas: 1,
            ..GuestObjects::default()
        };
        let counted = |in_group| {
            let mut objects = KernelObjects::new(i32::MAX, true, in_group, &limits);
            assert!(!objects.add(one_area));
            let to_count =
                [0, KERNEL_MEMORY_WITHOUT_COUNT].map(|kernel| objects.areas_to_count(kernel));
            (objects.uncounted(), to_count)
        };
        assert_eq!(counted(true), (0, [0, 262_144]));
        assert_eq!(counted(false), (700, [262_144, 262_144]));
    }

    /// The sum of the CPU times shrinks only when a process has ended.
    #[test]
    fn kernel_objects_are_counted_after_25_ms_of_cpu_time_and_when_a_process_has_ended() {
        let mut objects = KernelObjects::new(i32::MAX, true, true, &Limits::default());
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
        let mut objects = KernelObjects::new(i32::MAX, true, true, &Limits::default());
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
        let mut objects = KernelObjects::new(own, false, true, &Limits::default());
        assert_eq!(objects.uncounted(), 0);
        assert_eq!(objects.count(100_000), Count::Few, "control");
        assert!(objects.uncounted() >= 3 * DESCRIPTOR_BYTES);
        objects.next = Instant::now();
        objects.most.descriptors = 2;
        assert_eq!(objects.count(200_000), Count::TooMany);
    }
}
