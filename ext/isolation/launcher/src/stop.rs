//! Kills or signals one program without ending the guest.
//!
//! Every program is a session leader. When a program is killed, all processes of its session and
//! all its descendants are killed too. A daemon (a process that created its own session and whose
//! parent has ended) is neither in the session nor a descendant, and keeps running.

use std::collections::BTreeSet;

/// Maximum number of scans of the process list. A scan may miss a process that is forked during the
/// scan; the next scan finds it.
const SCANS: usize = 4;

/// Kills the session that `leader` leads, and every descendant of `leader`.
///
/// All processes are stopped with SIGSTOP before the first is killed. Otherwise the leader could
/// notice a child's death and exit with a status of its own choice, or fork after the last scan.
pub(crate) fn end_session(leader: i32) {
    let mut halted = BTreeSet::new();
    for _ in 0..SCANS {
        let found = session(leader, &processes());
        if found.is_subset(&halted) {
            break;
        }
        for pid in &found {
            send(*pid, libc::SIGSTOP);
        }
        halted.extend(found);
    }
    send(leader, libc::SIGKILL);
    send(-leader, libc::SIGKILL);
    for pid in halted {
        send(pid, libc::SIGKILL);
    }
}

/// Sends a signal to the foreground process group of the terminal of `leader`'s session. Without a
/// terminal, or if the status of `leader` cannot be read, sends it to `leader`'s own process group.
pub(crate) fn signal_foreground(leader: i32, signal: i32) {
    let foreground = std::fs::read(format!("/proc/{leader}/stat"))
        .ok()
        .and_then(|stat| parse(&stat))
        .map(|stat| stat.foreground);
    // `kill` takes group 0 as the caller's own group and group -1 as every process, so both are
    // excluded.
    let group = match foreground {
        Some(group) if group > 1 => group,
        Some(_) | None => leader,
    };
    if group > 1 && signal > 0 {
        // SAFETY: no memory is involved; ESRCH of an ended group is acceptable.
        let sent = unsafe { libc::kill(-group, signal) };
        // If there is no such group, only the process `leader` gets the signal. This happens after
        // the fork of `leader`, before `leader` has created its own group.
        if sent < 0 {
            send(leader, signal);
        }
    }
}

fn send(pid: i32, signal: i32) {
    // SAFETY: no memory is involved. ESRCH of an ended process is acceptable; its pid is not reused
    // before it is reaped, which only this thread does.
    let _ = unsafe { libc::kill(pid, signal) };
}

/// Pid, parent pid and session id of a process.
type Process = (i32, i32, i32);

fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read(entry.path().join("stat")).ok()?;
            let stat = parse(&stat)?;
            Some((pid, stat.parent, stat.session))
        })
        .collect()
}

/// Fields of `/proc/PID/stat` that this module uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: i32,
    session: i32,
    /// Foreground process group of the controlling terminal; below 1 when there is none.
    foreground: i32,
}

/// Parses a `stat` line. The process name may contain any byte, including `)`.
fn parse(stat: &[u8]) -> Option<Stat> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let foreground = fields.nth(1)?.parse().ok()?;
    Some(Stat {
        parent,
        session,
        foreground,
    })
}

/// Returns the pids of the session's members and of all descendants of its leader.
fn session(leader: i32, all: &[Process]) -> BTreeSet<i32> {
    let mut found = BTreeSet::from([leader]);
    loop {
        let before = found.len();
        for &(pid, parent, session) in all {
            if pid > 1 && (session == leader || found.contains(&parent)) {
                found.insert(pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_parser_ignores_parentheses_in_process_names() {
        let stat = |parent, session, foreground| {
            Some(Stat {
                parent,
                session,
                foreground,
            })
        };
        assert_eq!(parse(b"7 (a) S 1 1 1) S 3 7 5 0 -1"), stat(3, 5, -1));
        assert_eq!(parse(b"7 (sh) S 2 7 7 34816 9 1"), stat(2, 7, 9));
        assert_eq!(parse(b"7 (sh"), None);
        assert_eq!(parse(b"7 (sh) S x"), None);
    }

    #[test]
    fn process_session_contains_its_members_and_descendants_of_its_leader() {
        // Pid, parent pid and session id of each process.
        let all = [
            (1, 0, 1),
            (10, 1, 10),
            (11, 10, 10),
            (12, 1, 10),
            (13, 11, 13),
            (14, 13, 13),
            (20, 1, 20),
            (21, 1, 13),
        ];
        assert_eq!(session(10, &all), BTreeSet::from([10, 11, 12, 13, 14]));
        assert_eq!(session(20, &all), BTreeSet::from([20]));
    }
}
