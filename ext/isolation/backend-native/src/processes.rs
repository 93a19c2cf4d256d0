//! Processes of a guest and what they use, from the host's `/proc`.

use std::collections::HashMap;
use std::fs;

/// Maximum number of processes read at once; more than any `processes` limit.
const PROCESSES: usize = 8192;
/// Pause from one expensive measurement of a guest to the next, in durations of the measurement: it
/// takes at most this fraction of one processor's time.
pub(crate) const SHARE_OF_TIME: u32 = 20;
/// Microseconds of a clock tick, the unit of CPU times in `/proc`.
const TICK: u64 = 10_000;

/// Memory and CPU time of all processes of a guest at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Upper bound of the memory of all processes in bytes: anonymous and shared memory, page
    /// tables and swapped memory, plus the file-backed memory of the one process that has most of
    /// it. Pages that several processes share count once for each of them.
    pub(crate) memory: u64,
    /// CPU time of all living processes of the guest except pid 1, in microseconds.
    pub(crate) cpu: u64,
}

/// Returns `pid` and all its descendants.
pub(crate) fn tree(pid: i32) -> Vec<i32> {
    let mut all = vec![pid];
    let mut parents = None;
    let mut next = 0;
    while next < all.len() && next < PROCESSES {
        let parent = all[next];
        children(parent, &mut all, &mut parents);
        next += 1;
    }
    all
}

/// Measures `pid` and all its descendants.
pub(crate) fn survey(pid: i32) -> Survey {
    let mut seen = Survey::default();
    let mut files = 0;
    for process in tree(pid) {
        let memory = memory_of(process);
        seen.memory = seen.memory.saturating_add(memory.resident + memory.other);
        files = files.max(memory.file);
        if process != pid {
            seen.cpu = seen.cpu.saturating_add(cpu_of(process));
        }
    }
    seen.memory = seen.memory.saturating_add(files);
    seen
}

/// Returns the memory of `pid` and all its descendants in bytes like [`Survey::memory`], but counts
/// a page that several processes share once. Takes milliseconds, because the kernel walks all page
/// tables. Processes whose page tables this process may not read count as in [`survey`].
pub(crate) fn shared_once(pid: i32) -> u64 {
    let mut files = 0;
    let mut sum = 0_u64;
    for process in tree(pid) {
        let memory = memory_of(process);
        let resident = proportional(process).unwrap_or(memory.resident);
        sum = sum.saturating_add(resident + memory.other);
        files = files.max(memory.file);
    }
    sum.saturating_add(files)
}

/// Returns how many file descriptors these processes have open (Linux 6.2; 0 before).
pub(crate) fn descriptors(processes: &[i32]) -> u64 {
    let of = |pid: &i32| fs::metadata(format!("/proc/{pid}/fd")).map_or(0, |meta| meta.len());
    processes.iter().map(of).sum()
}

/// Memory of one process in bytes.
struct Memory {
    /// Resident anonymous and shared memory.
    resident: u64,
    /// Page tables and swapped memory.
    other: u64,
    /// Resident file-backed memory.
    file: u64,
}

fn memory_of(pid: i32) -> Memory {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let of = |name| field(&status, name).unwrap_or_default();
    Memory {
        resident: of("RssAnon:") + of("RssShmem:"),
        other: of("VmPTE:") + of("VmSwap:"),
        file: of("RssFile:"),
    }
}

/// Returns the resident anonymous and shared memory of a process in bytes, of which each page
/// counts as its size divided by the number of processes that share it; `None` if this process may
/// not read the page tables.
fn proportional(pid: i32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(field(&rollup, "Pss_Anon:")? + field(&rollup, "Pss_Shmem:")?)
}

/// Returns the number of bytes in a line such as `RssAnon:   112 kB`.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = rest.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(number.saturating_mul(1024))
}

/// Returns the CPU time of a process in microseconds. The process's sum has the unit of a clock
/// tick, in which many processes that ran for a moment seem to have used none; so the exact time of
/// the main thread counts if it is longer.
fn cpu_of(pid: i32) -> u64 {
    let ticks = stat_fields(pid).map_or(0, |fields| {
        [11, 12]
            .into_iter()
            .filter_map(|i| fields.get(i)?.parse::<u64>().ok())
            .sum()
    });
    let main_thread = fs::read_to_string(format!("/proc/{pid}/schedstat"))
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(0, |nanoseconds| nanoseconds / 1000);
    TICK.saturating_mul(ticks).max(main_thread)
}

/// Returns the fields of `/proc/<pid>/stat` after the program name, which may contain any byte.
fn stat_fields(pid: i32) -> Option<Vec<String>> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// Appends the child pids of `pid` to `queue`. On kernels without the file
/// `/proc/<pid>/task/<tid>/children`, uses the parent pids of all processes.
fn children(pid: i32, queue: &mut Vec<i32>, parents: &mut Option<HashMap<i32, Vec<i32>>>) {
    let mut listed = false;
    if let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) {
        for task in tasks.flatten() {
            if let Ok(text) = fs::read_to_string(task.path().join("children")) {
                listed = true;
                queue.extend(
                    text.split_whitespace()
                        .filter_map(|n| n.parse::<i32>().ok()),
                );
            }
        }
        if !listed {
            let map = parents.get_or_insert_with(parent_map);
            queue.extend(map.get(&pid).into_iter().flatten());
        }
    }
}

fn parent_map() -> HashMap<i32, Vec<i32>> {
    let mut map: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let parent = stat_fields(pid).and_then(|fields| fields.get(1)?.parse().ok());
        if let Some(parent) = parent {
            map.entry(parent).or_default().push(pid);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn child_scan_lists_a_living_child_process_but_not_an_ended_child_process() {
        let me = i32::try_from(std::process::id()).unwrap();
        let before = survey(me);
        assert!(before.memory > 0);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let child_pid = i32::try_from(child.id()).unwrap();
        let mut queue = Vec::new();
        children(me, &mut queue, &mut None);
        assert!(queue.contains(&child_pid));
        assert!(parent_map()[&me].contains(&child_pid));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut queue = Vec::new();
        children(me, &mut queue, &mut None);
        assert!(!queue.contains(&child_pid));
    }

    #[test]
    fn survey_of_a_nonexistent_process_is_zero() {
        assert_eq!(survey(i32::MAX), Survey::default());
    }
}
