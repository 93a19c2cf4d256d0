//! Processes of a guest and what they use, from the host's `/proc`.

use std::collections::HashMap;
use std::fs;

/// Maximum number of processes read at once; more than any `processes` limit.
const PROCESSES: usize = 8192;
/// Microseconds of a clock tick, the unit of CPU times in `/proc`.
const TICK: u64 = 10_000;

/// Memory and CPU time of all processes of a guest at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Anonymous and shared memory of all processes, plus the file-backed memory of the one process
    /// that has most of it, in bytes.
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
    let mut queue = vec![pid];
    let mut done = 0;
    let mut parents = None;
    while let Some(process) = queue.pop() {
        done += 1;
        if done > PROCESSES {
            break;
        }
        let (anonymous, file) = resident(process);
        seen.memory = seen.memory.saturating_add(anonymous);
        files = files.max(file);
        if process != pid {
            seen.cpu = seen.cpu.saturating_add(TICK.saturating_mul(ticks(process)));
        }
        children(process, &mut queue, &mut parents);
    }
    seen.memory = seen.memory.saturating_add(files);
    seen
}

/// Returns two numbers of bytes for a process: its resident anonymous plus shared memory, and its
/// resident file-backed memory.
fn resident(pid: i32) -> (u64, u64) {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return (0, 0);
    };
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|rest| rest.trim().strip_suffix(" kB"))
            .and_then(|number| number.trim().parse::<u64>().ok())
            .unwrap_or_default()
            .saturating_mul(1024)
    };
    (field("RssAnon:") + field("RssShmem:"), field("RssFile:"))
}

fn ticks(pid: i32) -> u64 {
    stat_fields(pid).map_or(0, |fields| {
        [11, 12]
            .into_iter()
            .filter_map(|i| fields.get(i)?.parse::<u64>().ok())
            .sum()
    })
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
