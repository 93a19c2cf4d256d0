//! Finds out why a supervisor process died before it could write its run's final record.
//!
//! A killed process writes nothing, so the facts are written in advance: `run.json` has the boot id
//! of the host and its count of OOM kills, and `crash` the source location of a panic. The file
//! `crash` contains no values of the run.

use crate::document::replace_file;
use crate::host_note::HostNote;
use crate::run_record::{Ending, RunRecord};
use serde_json::json;
use std::fs;
use std::io::Read;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::Durability;

/// File in a run directory with the location of the last panic in a thread of the supervisor.
pub(crate) const CRASH: &str = "crash";
/// Maximum number of bytes that are read from the file `crash`.
const NOTE: u64 = 512;

/// Returns a panic hook that writes source location and thread to a run directory. The panic
/// message may contain values of the run, so it is not written.
pub fn crash_note(run: PathBuf) -> impl Fn(&PanicHookInfo<'_>) + Send + Sync + 'static {
    move |info| {
        let thread = std::thread::current();
        let place = info.location().map_or_else(
            || "an unknown place".to_owned(),
            |at| format!("{}:{}", at.file(), at.line()),
        );
        let note = format!("{place}, thread {}", thread.name().unwrap_or("unnamed"));
        // If the write fails, the run's record only lacks the location.
        let _ = replace_file(&run, CRASH, note.as_bytes(), Durability::Unsynced);
    }
}

/// Cause of the supervisor's death: a restart of the host, a panic, or a kill.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cause {
    Restart,
    Crash { place: String },
    Killed,
}

/// Adds the cause of the supervisor's death to the error of `ending`, if it has one.
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
            "its process was killed by a signal, or it could not write the run's record".to_owned(),
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
            "; meanwhile the kernel ended {kills} process(es) of this host because memory ran out"
        ));
    }
    error.message.push(')');
    ending.error = Some(error.with("supervisor", told));
    ending
}

/// Returns why the supervisor died, and how many processes the host's OOM killer has killed since
/// the start of the run (0 unless the supervisor was killed).
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
    fn cause_of_supervisor_death_is_a_recorded_panic_else_a_host_restart_else_a_kill() {
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
    fn crash_note_has_location_of_panic_without_message() {
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
