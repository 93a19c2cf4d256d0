//! The record of a run, `run.json`, from which later queries are answered. It contains host paths
//! and is never part of a bundle.
//!
//! A rename replaces the file, which is never written in place, so a reader sees a complete file,
//! also after a power loss. A record with status `ended` is never changed, except that
//! [`crate::recover_run`] adds the id of a recovery bundle.

use crate::document::{DocumentError, parse, read_document, replace_file};
use crate::host_note::HostNote;
use crate::{event_log, now_rfc3339};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wp_codebox_artifacts::Durability;
use wp_codebox_contracts::{
    Agent, CancellationNote, ErrorBody, Outcome, RequesterShare, RunFacts, RunId, RunMode,
    RunStatus, RunSummary, RunView, schema_id,
};

/// File name of the record.
const FILE: &str = "run.json";
/// Files that a run directory can have before the record is written for the first time.
const BEFORE_RECORD: &[&str] = &["lease", ".run.json.new"];
/// Maximum size of a record in bytes. A larger one is neither written nor read.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Version of the records that this program writes. Every change of the members or their values
/// raises it, so that an older program can tell a newer record from a damaged one. Version 1 is the
/// version of the records that state none.
const VERSION: u32 = 2;

fn first_version() -> u32 {
    1
}

/// Data about a run that are known before it starts. Secrets in texts are redacted.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Id of the run.
    pub run_id: RunId,
    /// Whether the run is attached to its caller, i.e. is cancelled when the caller disconnects.
    pub mode: RunMode,
    /// What the request says about the run.
    pub facts: RunFacts,
    /// Directories, agent and checks of the run. A later run that repeats this one needs them, and
    /// so does the command that applies the run's changes.
    pub work: RecordedWork,
    /// Share of the site that the requester may have; `None`: the whole site.
    pub share: Option<RequesterShare>,
}

/// Directories, agent and checks of a run, as its record stores them for later commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordedWork {
    /// Host directory of each mount, by its guest path. These paths are in no bundle.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, PathBuf>,
    /// Agent of the run; absent if no agent worked in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// Command lines of the checks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Whether the run was sent to a cluster. Its journal is empty until a node has claimed it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_placed: bool,
}

impl RecordedWork {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl NewRun {
    /// Creates the facts about a run that is attached to its caller and has no goal.
    #[must_use]
    pub fn new(run_id: RunId) -> Self {
        Self {
            run_id,
            mode: RunMode::Attached,
            facts: RunFacts::default(),
            work: RecordedWork::default(),
            share: None,
        }
    }
}

/// How a run ended. Secrets in texts are redacted.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Outcome of the run, e.g. succeeded or failed.
    pub outcome: Outcome,
    /// Summary of the outcome in one sentence.
    pub summary: String,
    /// Summary as a code with parameters; absent if the summary is an error message.
    pub summary_detail: Option<RunSummary>,
    /// Why the run did not succeed; `None` if it did.
    pub error: Option<ErrorBody>,
    /// Id of the run's bundle; `None` if it has none.
    pub bundle_id: Option<String>,
}

/// Content of the record of a run, `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Version of the record's format.
    #[serde(default = "first_version")]
    version: u32,
    /// Id of the run.
    pub run_id: RunId,
    /// Time at which the run started, in RFC 3339.
    pub created_at: String,
    /// Time at which the record was last changed, in RFC 3339.
    pub updated_at: String,
    /// Status of the run. If the supervisor died, it is `running` until another process settles the
    /// run.
    pub status: RunStatus,
    /// Whether the run is attached to its caller, i.e. is cancelled when the caller disconnects.
    #[serde(default)]
    pub mode: RunMode,
    /// What the request says about the run.
    #[serde(flatten)]
    pub facts: RunFacts,
    /// Outcome of the run; absent while it is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Summary of the outcome in one sentence. Records of the first version call it `reason`.
    #[serde(default, alias = "reason", skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Summary as a code with parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_detail: Option<RunSummary>,
    /// Why the run did not succeed; absent if it did or is still running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Id of the run's bundle; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_id: Option<String>,
    /// Whether the bundle is a recovery bundle of a run whose supervisor died.
    #[serde(default)]
    pub salvaged: bool,
    /// Who cancelled the run first, when and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<CancellationNote>,
    /// Directories, agent and checks of the run.
    #[serde(default, skip_serializing_if = "RecordedWork::is_empty")]
    pub work: RecordedWork,
    /// Boot id and OOM kill count of the host when the run started; absent after its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<HostNote>,
}

impl RunRecord {
    pub(crate) fn begun(run: &NewRun) -> Self {
        let now = now_rfc3339();
        Self {
            version: VERSION,
            run_id: run.run_id.clone(),
            created_at: now.clone(),
            updated_at: now,
            status: RunStatus::Running,
            mode: run.mode,
            facts: run.facts.clone(),
            outcome: None,
            summary: None,
            summary_detail: None,
            error: None,
            bundle_id: None,
            salvaged: false,
            cancellation: None,
            work: run.work.clone(),
            host: Some(HostNote::now()),
        }
    }

    /// Reads the record of a run directory. Returns `None` if the directory does not exist, or if
    /// its creation was not finished: then it has no files but those that are created before the
    /// record.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, DocumentError> {
        #[cfg(test)]
        reads::count();
        if let Some(bytes) = read_document(path, FILE, LARGEST)? {
            return Self::parse(&bytes).map(Some);
        }
        if created_after_record(path)?.is_none() {
            return Ok(None);
        }
        // Another process may have written the record, or renamed the directory, after this one had
        // tried to open the record.
        if let Some(bytes) = read_document(path, FILE, LARGEST)? {
            return Self::parse(&bytes).map(Some);
        }
        match created_after_record(path)? {
            None => Ok(None),
            Some(beside) => Err(DocumentError::Missing { name: FILE, beside }),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        #[derive(Deserialize)]
        struct Versioned {
            #[serde(default)]
            version: u64,
        }
        // The version comes first: the other members of a newer record may have unknown names and
        // values.
        let Versioned { version } = parse(FILE, bytes)?;
        if version > u64::from(VERSION) {
            return Err(DocumentError::Newer {
                name: FILE,
                found: version,
                newest: u64::from(VERSION),
            });
        }
        parse(FILE, bytes)
    }

    /// Returns whether the record is final, i.e. contains the outcome.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.status == RunStatus::Ended
    }

    pub(crate) fn end(&mut self, ending: Ending) {
        self.version = VERSION;
        self.status = RunStatus::Ended;
        self.outcome = Some(ending.outcome);
        self.summary = Some(ending.summary);
        self.summary_detail = ending.summary_detail;
        self.error = ending.error;
        self.bundle_id = ending.bundle_id;
        self.host = None;
        self.updated_at = now_rfc3339();
    }

    /// Converts the record to the form that callers get. It leaves out the host directories of the
    /// mounts.
    pub(crate) fn into_view(
        self,
        path: &Path,
        status: RunStatus,
    ) -> Result<RunView, DocumentError> {
        Ok(RunView {
            schema: schema_id::RUN.to_owned(),
            run_id: self.run_id,
            status,
            mode: self.mode,
            created_at: self.created_at,
            updated_at: self.updated_at,
            facts: self.facts,
            outcome: self.outcome,
            summary: self.summary,
            summary_detail: self.summary_detail,
            error: self.error,
            bundle_id: self.bundle_id,
            salvaged: self.salvaged,
            last_event: event_log::last_event(path).map_err(event_log::unreadable)?,
            result: None,
        })
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        if bytes.len() as u64 > LARGEST {
            let message = format!(
                "the record has more than {LARGEST} bytes; shorten goal, provenance or checks of the run"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        replace_file(path, FILE, &bytes, Durability::Synced)
    }
}

/// Returns the name of an entry of the run directory that is created only after the record, if there
/// is one.
fn created_after_record(path: &Path) -> Result<Option<String>, DocumentError> {
    let unreadable = |source| DocumentError::Unreadable { name: FILE, source };
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(unreadable)?,
    };
    for entry in entries {
        let name = entry.map_err(unreadable)?.file_name();
        let name = name.to_string_lossy();
        if !BEFORE_RECORD.contains(&&*name) {
            return Ok(Some(name.into_owned()));
        }
    }
    Ok(None)
}

/// Number of times that this thread opened a record, for tests of how the work of a list grows.
#[cfg(test)]
pub(crate) mod reads {
    use std::cell::Cell;

    thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

    pub(super) fn count() {
        COUNT.set(COUNT.get() + 1);
    }

    /// Returns the number of reads during a call, and its result.
    pub(crate) fn during<T>(call: impl FnOnce() -> T) -> (usize, T) {
        let before = COUNT.get();
        let result = call();
        (COUNT.get() - before, result)
    }
}

/// The members of a record by which lists of runs are filtered and sorted. They come first in the
/// file, so usually only its beginning is read. If the beginning cannot be parsed, the whole file
/// is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordHead {
    pub created_at: String,
    pub status: RunStatus,
}

impl RecordHead {
    /// Number of bytes at the beginning of `run.json` that contain the members `created_at` and
    /// `status`.
    const LENGTH: usize = 320;

    /// Reads `created_at` and `status` from a run's record; returns `None` if there is no record.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, DocumentError> {
        if let Some(head) = Self::beginning(path) {
            return Ok(Some(head));
        }
        Ok(RunRecord::read(path)?.map(|record| Self {
            created_at: record.created_at,
            status: record.status,
        }))
    }

    fn beginning(path: &Path) -> Option<Self> {
        use std::io::Read;
        #[cfg(test)]
        reads::count();
        let mut file = fs::File::open(path.join(FILE)).ok()?;
        let mut bytes = [0_u8; Self::LENGTH];
        let read = file.read(&mut bytes).ok()?;
        Self::parse(std::str::from_utf8(bytes.get(..read)?).ok()?)
    }

    fn parse(head: &str) -> Option<Self> {
        let mut lines = head.lines();
        (lines.next()? == "{").then_some(())?;
        (lines.next()? == format!("  \"version\": {VERSION},")).then_some(())?;
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

/// The record of a live run, with a mutex that serialises writers.
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

    /// Returns the time at which the run started, in RFC 3339.
    #[must_use]
    pub fn created_at(&self) -> String {
        self.lock().created_at.clone()
    }

    /// Records that the caller detached from the run; ignored after the run has ended. A write
    /// error is ignored: the run is detached already, and the record only informs other processes.
    pub fn detached(&self) {
        let mut record = self.lock();
        if record.is_terminal() || record.mode == RunMode::Detached {
            return;
        }
        record.mode = RunMode::Detached;
        record.updated_at = now_rfc3339();
        let _ = record.write(&self.path);
    }

    /// Records a cancellation request. Only the first request is recorded, and none after the run
    /// has ended. A write error is ignored, as in [`Self::detached`]. The caller must have redacted
    /// the texts.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;
    use wp_codebox_contracts::{ErrorCode, SummaryCode, TaskTexts};

    fn run() -> RunId {
        RunId::new(format!("run_{:032x}", 7)).unwrap()
    }

    #[test]
    fn run_record_of_the_first_format_version_can_be_read() {
        let temp = tempfile::tempdir().unwrap();
        let old = format!(
            r#"{{"run_id":"{}","created_at":"a","updated_at":"b","status":"ended","outcome":"failed","reason":"why"}}"#,
            run()
        );
        fs::write(temp.path().join("run.json"), old).unwrap();
        let record = RunRecord::read(temp.path()).unwrap().unwrap();
        assert!(record.is_terminal() && !record.salvaged);
        assert_eq!(record.mode, RunMode::Attached);
        assert_eq!(record.summary.as_deref(), Some("why"));

        // The end of such a run writes members of the present version.
        let mut record = record;
        record.end(Ending {
            outcome: Outcome::Failed,
            summary: "why".to_owned(),
            summary_detail: None,
            error: None,
            bundle_id: None,
        });
        assert_eq!(record.version, VERSION);
    }

    #[test]
    fn status_and_time_read_from_the_beginning_of_a_run_record_match_the_complete_record() {
        let temp = tempfile::tempdir().unwrap();
        let mut record = RunRecord::begun(&NewRun {
            facts: RunFacts::new(
                TaskTexts::of_goal("\"status\": \"ended\",\n".repeat(50)),
                Map::new(),
            ),
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
            // `parse` needs only the beginning of the file, and `read` also accepts a record
            // without line breaks.
            assert_eq!(RecordHead::parse(head), Some(read.clone()));
            assert_eq!(RecordHead::read(temp.path()).unwrap(), Some(read.clone()));
            fs::write(
                temp.path().join("run.json"),
                serde_json::to_vec(&record).unwrap(),
            )
            .unwrap();
            assert_eq!(RecordHead::read(temp.path()).unwrap(), Some(read));
        }
        fs::write(temp.path().join("run.json"), "{\n").unwrap();
        assert!(matches!(
            RecordHead::read(temp.path()),
            Err(DocumentError::Damaged { .. })
        ));
        // In a newer record the same members may mean something else.
        record.version = VERSION + 1;
        record.write(temp.path()).unwrap();
        assert!(matches!(
            RecordHead::read(temp.path()),
            Err(DocumentError::Newer { .. })
        ));
    }

    /// A record of this version has exactly these members. Whoever changes them raises `VERSION`, or
    /// older programs would report the new records as damaged.
    #[test]
    fn members_of_a_record_belong_to_its_version() {
        let facts = RunFacts::new(
            TaskTexts::of_goal("mend it".to_owned()),
            Map::from_iter([("requester".to_owned(), "a test".into())]),
        );
        let work = RecordedWork {
            checks: vec!["true".to_owned()],
            ..RecordedWork::default()
        };
        let begun = NewRun {
            facts,
            work,
            ..NewRun::new(run())
        };
        let body = ErrorBody::new(ErrorCode::RunCancelled, "cancelled");
        let record = RunRecord {
            outcome: Some(Outcome::Cancelled),
            summary: Some("cancelled".to_owned()),
            summary_detail: Some(RunSummary::new(SummaryCode::InterruptedHeld)),
            error: Some(body),
            bundle_id: Some("bundle".to_owned()),
            cancellation: Some(CancellationNote {
                requested_at: "then".to_owned(),
                reason: None,
                requested_by: None,
            }),
            ..RunRecord::begun(&begun)
        };
        let mut value = serde_json::to_value(&record).unwrap();
        assert_eq!(value["version"], 2);
        let members: Vec<&String> = value.as_object().unwrap().keys().collect();
        let expected = "version run_id created_at updated_at status mode goal provenance outcome summary summary_detail error bundle_id salvaged cancellation work host";
        assert_eq!(members, expected.split(' ').collect::<Vec<_>>());
        value["unknown"] = 1.into();
        let error = serde_json::from_value::<RunRecord>(value).unwrap_err();
        assert!(
            error.to_string().contains("unknown field `unknown`"),
            "{error}"
        );
    }

    #[test]
    fn newer_record_needs_the_newer_program_and_a_damaged_one_a_backup() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("run.json");
        let record = serde_json::to_value(RunRecord::begun(&NewRun::new(run()))).unwrap();
        let message = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut changed = record.clone();
            change(&mut changed);
            fs::write(&file, changed.to_string()).unwrap();
            RunRecord::read(temp.path()).map_err(|e| e.to_string())
        };
        assert!(message(&|_| {}).unwrap().is_some(), "control");
        let newer = [
            message(&|record| record["version"] = 3.into()),
            message(&|record| {
                record["version"] = 3.into();
                record["outcome"] = "improved".into();
                record["added"] = true.into();
            }),
        ];
        for error in newer.map(Result::unwrap_err) {
            assert!(
                error.ends_with("use the newer wp-codebox that wrote it"),
                "{error}"
            );
        }
        let damaged = [
            message(&|record| record["outcome"] = "improved".into()),
            message(&|record| record["added"] = true.into()),
            message(&|record| record["version"] = "3".into()),
            message(&|record| *record = "{}".into()),
        ];
        for error in damaged.map(Result::unwrap_err) {
            assert!(error.ends_with("restore it from a backup"), "{error}");
        }
        fs::write(&file, "").unwrap();
        let error = RunRecord::read(temp.path()).unwrap_err().to_string();
        assert!(error.ends_with("restore it from a backup"), "{error}");
    }

    #[test]
    fn only_the_first_cancellation_request_before_the_end_of_a_run_is_recorded() {
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
        let read = || RunRecord::read(temp.path()).unwrap().unwrap();
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
    fn detach_is_recorded_for_a_live_run_and_not_after_the_run_has_ended() {
        let temp = tempfile::tempdir().unwrap();
        let record = RunRecord::begun(&NewRun::new(run()));
        record.write(temp.path()).unwrap();
        let live = LiveRecord::new(temp.path().to_owned(), record);
        live.detached();
        let read = RunRecord::read(temp.path()).unwrap().unwrap();
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
        let read = RunRecord::read(temp.path()).unwrap().unwrap();
        assert_eq!((read.mode, read.is_terminal()), (RunMode::Attached, true));
    }
}
