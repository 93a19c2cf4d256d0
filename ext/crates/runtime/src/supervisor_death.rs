//! Why a supervisor ended without settling its run.
//!
//! A process that is killed writes nothing, so the facts are written before: in `run.json` the boot
//! of the host and its count of processes ended for want of memory, in `crash` the place of a
//! panic. A note of a panic holds a place in the sources and no value.

use crate::host_note::HostNote;
use crate::run_record::{Ending, RunRecord, replace_file};
use serde_json::json;
use std::fs;
use std::io::Read;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};

/// In a run directory: where a thread of its supervisor panicked last.
pub(crate) const CRASH: &str = "crash";
/// Largest such note, bytes.
const NOTE: u64 = 512;

/// A panic hook that notes place and thread in a run directory. The message of a panic can hold
/// values of the run, so it is not written.
pub fn crash_note(run: PathBuf) -> impl Fn(&PanicHookInfo<'_>) + Send + Sync + 'static {
    move |info| {
        let thread = std::thread::current();
        let place = info.location().map_or_else(
            || "an unknown place".to_owned(),
            |at| format!("{}:{}", at.file(), at.line()),
        );
        let note = format!("{place}, thread {}", thread.name().unwrap_or("unnamed"));
        // Without it the run's record only says less.
        let _ = replace_file(&run, CRASH, note.as_bytes());
    }
}

/// What ended a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cause {
    Restart,
    Crash { place: String },
    Killed,
}

/// `ending` with the reason why the supervisor is gone in its error.
pub(crate) fn explained(mut ending: Ending, record: &RunRecord, run: &Path) -> Ending {
    let Some(mut error) = ending.error.take() else {
        return ending;
    };
    let then = record.host.as_ref();
    let (cause, kills) = cause(then, &HostNote::now(), crashed_at(run));
    let (word, said) = match &cause {
        Cause::Restart => (
            "restart",
            "this host was restarted while the run was going on".to_owned(),
        ),
        Cause::Crash { place } => ("crash", format!("it crashed at {place}")),
        Cause::Killed => (
            "killed",
            "its process was ended by a signal that it could not answer, or it could not write the run's record"
                .to_owned(),
        ),
    };
    let mut told = json!({"cause": word});
    error.message = format!("{} ({said}", error.message);
    if let Cause::Crash { place } = cause {
        told["place"] = json!(place);
    }
    if kills > 0 {
        told["hostOomKills"] = json!(kills);
        error.message.push_str(&format!(
            "; meanwhile the kernel ended {kills} process(es) of this host for want of memory"
        ));
    }
    error.message.push(')');
    ending.error = Some(error.with("supervisor", told));
    ending
}

/// And how many processes the kernel ended for want of memory meanwhile.
fn cause(then: Option<&HostNote>, now: &HostNote, crash: Option<String>) -> (Cause, u64) {
    if let Some(place) = crash {
        return (Cause::Crash { place }, 0);
    }
    match then {
        Some(then) if then.boot_id != now.boot_id => (Cause::Restart, 0),
        Some(then) => (Cause::Killed, now.oom_kills.saturating_sub(then.oom_kills)),
        None => (Cause::Killed, 0),
    }
}

fn crashed_at(run: &Path) -> Option<String> {
    let mut note = String::new();
    let file = fs::File::open(run.join(CRASH)).ok()?;
    file.take(NOTE).read_to_string(&mut note).ok()?;
    Some(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noted_panic_comes_before_a_restart_and_a_restart_before_a_kill() {
        let note = |boot_id: &str, oom_kills| HostNote {
            boot_id: boot_id.to_owned(),
            oom_kills,
        };
        let now = note("b", 7);
        let crash = || Some("src/a.rs:1, thread main".to_owned());
        let crashed = Cause::Crash {
            place: crash().unwrap(),
        };
        assert_eq!(
            cause(Some(&note("b", 5)), &now, None),
            (Cause::Killed, 2),
            "the same boot"
        );
        assert_eq!(
            cause(Some(&note("a", 5)), &now, None),
            (Cause::Restart, 0),
            "another count"
        );
        assert_eq!(cause(Some(&note("a", 5)), &now, crash()), (crashed, 0));
        assert_eq!(cause(None, &now, None), (Cause::Killed, 0));
    }

    #[test]
    fn a_panic_is_noted_by_its_place_and_without_its_message() {
        let run = tempfile::tempdir().unwrap();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(crash_note(run.path().to_owned())));
        let unlucky = std::thread::Builder::new().name("unlucky".to_owned());
        let thread = unlucky.spawn(|| panic!("a value of the run")).unwrap();
        let line = line!() - 1;
        assert!(thread.join().is_err());
        std::panic::set_hook(before);
        assert_eq!(
            crashed_at(run.path()),
            Some(format!("{}:{line}, thread unlucky", file!()))
        );
    }
}
