//! Ending one program, or signalling it, without ending the guest.
//!
//! Every program is the leader of a session of its own. What shares its session or descends
//! from it ends with it; what made a session of its own and lost its parent is a daemon, and
//! lives on like any other background process.

use std::collections::BTreeSet;

/// Times that what is left is looked for: a process that forks while it is read is found by the
/// next look.
const LOOKS: usize = 4;

/// Kills the session that `leader` leads, and every descendant of `leader`.
///
/// All of them are halted before one dies. Otherwise the leader could see a child's death, leave
/// by itself, and be reported with a status of its own choice; or fork past the last look.
pub(crate) fn end_session(leader: i32) {
    let mut halted = BTreeSet::new();
    for _ in 0..LOOKS {
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

/// Sends a signal to the process group in the foreground of the terminal that `leader`'s session
/// has, or to `leader`'s own group when it has none or its status cannot be read.
pub(crate) fn signal_foreground(leader: i32, signal: i32) {
    let foreground = std::fs::read(format!("/proc/{leader}/stat"))
        .ok()
        .and_then(|stat| parse(&stat))
        .map(|stat| stat.foreground);
    // Neither 0 nor 1: these mean this process's own group and every process.
    let group = match foreground {
        Some(group) if group > 1 => group,
        Some(_) | None => leader,
    };
    if group > 1 && signal > 0 {
        // SAFETY: no memory is involved; a group that is gone is no failure.
        let sent = unsafe { libc::kill(-group, signal) };
        // A child that has just been forked leads no group yet.
        if sent < 0 {
            send(leader, signal);
        }
    }
}

fn send(pid: i32, signal: i32) {
    // SAFETY: no memory is involved. A process that is gone already is no failure; its number
    // is not used again before it is reaped, which only this thread does.
    let _ = unsafe { libc::kill(pid, signal) };
}

/// A process: itself, its parent, its session.
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

/// What matters of a `stat` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: i32,
    session: i32,
    /// Process group in the foreground of its terminal; below 1: there is none.
    foreground: i32,
}

/// Reads a `stat` line. A name may hold anything, a `)` too.
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

/// Members of the session and descendants of its leader.
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
    fn a_name_cannot_pretend_to_be_fields() {
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
    fn a_session_is_its_members_and_the_descendants_of_its_leader() {
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
