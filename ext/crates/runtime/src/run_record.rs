//! `run.json`: what a later call can know about a run. Holds host paths; never in a bundle.
//!
//! It is replaced by a rename, never written in place, so a reader sees a whole one. After
//! `ended` nothing changes it.

use crate::host_note::HostNote;
use crate::{event_log, now_rfc3339};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wp_codebox_contracts::{
    CancellationNote, ErrorBody, Outcome, RunId, RunMode, RunStatus, RunSummary, RunView, schema_id,
};

/// Largest record read, bytes.
const LARGEST: u64 = 4 * 1024 * 1024;

/// What is known of a run before it begins. Texts are redacted.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The run.
    pub run_id: RunId,
    /// Whether it belongs to its caller.
    pub mode: RunMode,
    /// Goal of its task.
    pub goal: Option<String>,
    /// Who asked.
    pub provenance: Map<String, Value>,
}

impl NewRun {
    /// An attached run of which nothing else is known.
    #[must_use]
    pub fn new(run_id: RunId) -> Self {
        Self {
            run_id,
            mode: RunMode::Attached,
            goal: None,
            provenance: Map::new(),
        }
    }
}

/// How a run ended. Texts are redacted.
#[derive(Debug, Clone)]
pub struct Ending {
    /// What it came to.
    pub outcome: Outcome,
    /// That in one sentence.
    pub summary: String,
    /// That as data; absent when it is the message of an error.
    pub summary_detail: Option<RunSummary>,
    /// Why it is not what was asked for.
    pub error: Option<ErrorBody>,
    /// Its bundle.
    pub bundle_id: Option<String>,
}

/// The record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run.
    pub run_id: RunId,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
    /// What it says of itself; a run whose supervisor died still says `running`.
    pub status: RunStatus,
    /// Whether it belongs to its caller.
    #[serde(default)]
    pub mode: RunMode,
    /// Goal of its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What it came to, when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// That in one sentence. Records of the first version call it `reason`.
    #[serde(default, alias = "reason", skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// That as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_detail: Option<RunSummary>,
    /// Why it is not what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Bundle id, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<String>,
    /// Whether the bundle was saved from a run whose supervisor died.
    #[serde(default)]
    pub salvaged: bool,
    /// Who asked for its end first, when and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<CancellationNote>,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provenance: Map<String, Value>,
    /// What the host was when it began; of a run that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<HostNote>,
}

impl RunRecord {
    pub(crate) fn begun(run: &NewRun) -> Self {
        let now = now_rfc3339();
        Self {
            run_id: run.run_id.clone(),
            created_at: now.clone(),
            updated_at: now,
            status: RunStatus::Running,
            mode: run.mode,
            goal: run.goal.clone(),
            outcome: None,
            summary: None,
            summary_detail: None,
            error: None,
            bundle_id: None,
            salvaged: false,
            cancellation: None,
            provenance: run.provenance.clone(),
            host: Some(HostNote::now()),
        }
    }

    /// The record of a run directory, when it can be read.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        use std::io::Read;
        let file = fs::File::open(path.join("run.json")).ok()?;
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Whether it says what the run came to.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.status == RunStatus::Ended
    }

    pub(crate) fn end(&mut self, ending: Ending) {
        self.status = RunStatus::Ended;
        self.outcome = Some(ending.outcome);
        self.summary = Some(ending.summary);
        self.summary_detail = ending.summary_detail;
        self.error = ending.error;
        self.bundle_id = ending.bundle_id;
        self.host = None;
        self.updated_at = now_rfc3339();
    }

    /// The run as others see it.
    pub(crate) fn into_view(self, path: &Path, status: RunStatus) -> RunView {
        RunView {
            schema: schema_id::RUN.to_owned(),
            run_id: self.run_id,
            status,
            mode: self.mode,
            created_at: self.created_at,
            updated_at: self.updated_at,
            goal: self.goal,
            outcome: self.outcome,
            summary: self.summary,
            summary_detail: self.summary_detail,
            error: self.error,
            bundle_id: self.bundle_id,
            salvaged: self.salvaged,
            last_event: event_log::last_event(path).unwrap_or(0),
            provenance: self.provenance,
            result: None,
        }
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        replace_file(path, "run.json", &bytes)
    }
}

/// What a list needs of every record: its first lines. A record is written in the order of its
/// members, so they say it without the rest being read; what looks otherwise is read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordHead {
    pub created_at: String,
    pub status: RunStatus,
}

impl RecordHead {
    /// Bytes that hold the first members.
    const LENGTH: usize = 320;

    /// The head of the record of a run directory, when there is a record.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        use std::io::Read;
        let mut file = fs::File::open(path.join("run.json")).ok()?;
        let mut bytes = [0_u8; Self::LENGTH];
        let read = file.read(&mut bytes).ok()?;
        let head = std::str::from_utf8(bytes.get(..read)?).ok();
        head.and_then(Self::parse).or_else(|| {
            let record = RunRecord::read(path)?;
            Some(Self {
                created_at: record.created_at,
                status: record.status,
            })
        })
    }

    fn parse(head: &str) -> Option<Self> {
        let mut lines = head.lines();
        (lines.next()? == "{").then_some(())?;
        let mut member = |name: &str| {
            let rest = lines.next()?.strip_prefix("  \"")?.strip_prefix(name)?;
            rest.strip_prefix("\": \"")?.strip_suffix("\",")
        };
        member("run_id")?;
        let created_at = member("created_at")?.to_owned();
        member("updated_at")?;
        let status = match member("status")? {
            "running" => RunStatus::Running,
            "ended" => RunStatus::Ended,
            _ => return None,
        };
        Some(Self { created_at, status })
    }
}

/// The record of a living run: one writer at a time.
#[derive(Debug)]
pub struct LiveRecord {
    path: PathBuf,
    record: Mutex<RunRecord>,
}

impl LiveRecord {
    pub(crate) fn new(path: PathBuf, record: RunRecord) -> Self {
        Self {
            path,
            record: Mutex::new(record),
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the run began.
    #[must_use]
    pub fn created_at(&self) -> String {
        self.lock().created_at.clone()
    }

    /// Its caller left it. Best effort, and nothing after the end: that it is detached is
    /// already true, the record only tells others.
    pub fn detached(&self) {
        let mut record = self.lock();
        if record.is_terminal() || record.mode == RunMode::Detached {
            return;
        }
        record.mode = RunMode::Detached;
        record.updated_at = now_rfc3339();
        let _ = record.write(&self.path);
    }

    /// Somebody asked for its end: the first one stays, and nothing after the end. Best
    /// effort, like the above; the texts are redacted.
    pub fn cancelled(&self, note: CancellationNote) {
        let mut record = self.lock();
        if record.is_terminal() || record.cancellation.is_some() {
            return;
        }
        record.cancellation = Some(note);
        record.updated_at = now_rfc3339();
        let _ = record.write(&self.path);
    }

    pub(crate) fn end(&self, ending: Ending) -> io::Result<()> {
        let mut record = self.lock();
        record.end(ending);
        record.write(&self.path)
    }
}

/// Name of a file of a run directory while it is written.
pub(crate) fn unfinished(name: &str) -> String {
    format!(".{name}.new")
}

/// Puts a private file into a run directory, whole or not at all.
pub(crate) fn replace_file(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temp = directory.join(unfinished(name));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temp)?;
    file.write_all(bytes)?;
    fs::rename(temp, directory.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        RunId::new(format!("run_{:032x}", 7)).unwrap()
    }

    #[test]
    fn records_of_the_first_version_are_read() {
        let temp = tempfile::tempdir().unwrap();
        let old = format!(
            r#"{{"run_id":"{}","created_at":"a","updated_at":"b","status":"ended","outcome":"failed","reason":"why"}}"#,
            run()
        );
        fs::write(temp.path().join("run.json"), old).unwrap();
        let record = RunRecord::read(temp.path()).unwrap();
        assert!(record.is_terminal() && !record.salvaged);
        assert_eq!(record.mode, RunMode::Attached);
        assert_eq!(record.summary.as_deref(), Some("why"));
    }

    #[test]
    fn a_head_says_what_the_record_says() {
        let temp = tempfile::tempdir().unwrap();
        let mut record = RunRecord::begun(&NewRun {
            goal: Some("\"status\": \"ended\",\n".repeat(50)),
            ..NewRun::new(run())
        });
        for status in [RunStatus::Running, RunStatus::Ended] {
            record.status = status;
            record.write(temp.path()).unwrap();
            let bytes = fs::read(temp.path().join("run.json")).unwrap();
            let head = std::str::from_utf8(&bytes[..RecordHead::LENGTH]).unwrap_or_default();
            let read = RecordHead {
                created_at: record.created_at.clone(),
                status,
            };
            // Without the rest, and whatever form the file has.
            assert_eq!(RecordHead::parse(head), Some(read.clone()));
            assert_eq!(RecordHead::read(temp.path()), Some(read.clone()));
            fs::write(
                temp.path().join("run.json"),
                serde_json::to_vec(&record).unwrap(),
            )
            .unwrap();
            assert_eq!(RecordHead::read(temp.path()), Some(read));
        }
        fs::write(temp.path().join("run.json"), "{\n").unwrap();
        assert_eq!(RecordHead::read(temp.path()), None);
    }

    #[test]
    fn the_first_who_cancels_stays_on_record() {
        let temp = tempfile::tempdir().unwrap();
        let note = |who: &str| CancellationNote {
            requested_at: "t".to_owned(),
            reason: None,
            requested_by: Some(who.to_owned()),
        };
        let live = LiveRecord::new(
            temp.path().to_owned(),
            RunRecord::begun(&NewRun::new(run())),
        );
        live.cancelled(note("one"));
        live.cancelled(note("two"));
        let read = || RunRecord::read(temp.path()).unwrap();
        assert_eq!(read().cancellation, Some(note("one")));
        live.end(Ending {
            outcome: Outcome::Cancelled,
            summary: "stopped".to_owned(),
            summary_detail: None,
            error: None,
            bundle_id: None,
        })
        .unwrap();
        assert_eq!(read().cancellation, Some(note("one")));

        let live = LiveRecord::new(temp.path().to_owned(), read());
        live.cancelled(note("too late"));
        assert_eq!(read().cancellation, Some(note("one")));
    }

    #[test]
    fn a_run_is_detached_once_and_not_after_its_end() {
        let temp = tempfile::tempdir().unwrap();
        let record = RunRecord::begun(&NewRun::new(run()));
        record.write(temp.path()).unwrap();
        let live = LiveRecord::new(temp.path().to_owned(), record);
        live.detached();
        let read = RunRecord::read(temp.path()).unwrap();
        assert_eq!((read.mode, read.is_terminal()), (RunMode::Detached, false));

        let record = RunRecord::begun(&NewRun::new(run()));
        let live = LiveRecord::new(temp.path().to_owned(), record);
        live.end(Ending {
            outcome: Outcome::Succeeded,
            summary: "done".to_owned(),
            summary_detail: None,
            error: None,
            bundle_id: None,
        })
        .unwrap();
        live.detached();
        let read = RunRecord::read(temp.path()).unwrap();
        assert_eq!((read.mode, read.is_terminal()), (RunMode::Attached, true));
    }
}
