//! Synchronizes a local directory with one in a held sandbox.
//!
//! Each sync compares the two directories with their state at the last sync. Before the sandbox
//! writes a file, it checks that the file still has the digest that was compared. This module does
//! the same before it writes a local file. Local changes are never overwritten unless requested.

mod compare;
mod local;
mod record;
mod report;

pub use compare::Verdict;
pub use report::{Carried, Direction, SyncReport};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use compare::{File, Sides, compare};
use local::Local;
use record::Record;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use wp_codebox_artifacts::sha256;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPath, LiveRequest, SyncIn, SyncOut};
use wp_codebox_runtime::FoundRun;

/// Maximum size of a synced file, in bytes.
const MOST: usize = wp_codebox_supervisor::SYNC_FILE_BYTES;

/// Side that wins if both changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// Neither side: copy nothing and list every conflict.
    Fail,
    /// The sandbox.
    Theirs,
    /// The local directory.
    Ours,
}

/// Direction of a sync, and how it treats conflicts and existing local files.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// [`Verdict::Push`] or [`Verdict::Pull`].
    pub verdict: Verdict,
    /// Side that wins if both changed.
    pub on_conflict: OnConflict,
    /// Whether a pull also changes and removes existing local files.
    pub write_back: bool,
    /// Whether files are copied; otherwise the report only lists them.
    pub carry: bool,
}

/// Sends a request to the supervisor of the sandbox and waits for its reply.
pub type Ask<'a> = &'a dyn Fn(LiveRequest) -> Result<Value, ErrorBody>;

/// Synchronizes `directory` with a directory in the sandbox of `run`: with `guest`, or with the only
/// writable mount. Without a way, only compares them.
///
/// # Errors
/// `wp_codebox_sync_conflict` if both sides changed a file and the way does not say which wins.
pub fn sync(
    line: Ask<'_>,
    run: &FoundRun,
    directory: &Path,
    guest: Option<String>,
    way: Option<Way>,
) -> Result<SyncReport, ErrorBody> {
    if way.is_some_and(|way| way.carry && way.verdict == Verdict::Pull) {
        // The local directory need not exist before the first pull.
        let _ = std::fs::create_dir(directory);
    }
    let local = Local::open(directory)?;
    let guest = guest.map(GuestPath::new).transpose();
    let guest = guest.map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, e.to_string()))?;
    let (top, mut seen, mut left_out) = look(line, guest)?;
    let here = local.files(MOST)?;
    left_out.extend(
        here.left_out
            .iter()
            .map(|(path, why)| (path.clone(), (*why).to_owned())),
    );
    let record = Record::of(&run.path, directory, top.as_str())?;
    seen.local = here.files;
    seen.base = record.load()?;
    let verdicts: BTreeMap<String, Verdict> = compare(&seen)
        .into_iter()
        .filter(|(path, _)| !is_left_out(&left_out, path))
        .collect();
    let mut sync = Sync {
        line,
        local: &local,
        top: &top,
        seen,
        report: SyncReport::new(
            way.map(|way| way.verdict),
            run.run_id.as_str(),
            &top,
            left_out,
        ),
    };
    sync.decide(&verdicts, way)?;
    let begun = sync.seen.base.clone();
    let carried = sync.carry(way);
    // Record the files that were copied even if a later one failed.
    let base = sync.agreed();
    if base != begun && way.is_some_and(|way| way.carry) {
        record.save(base)?;
    }
    carried?;
    Ok(sync.report)
}

/// Returns true if the path or one of its parent directories is excluded from the sync.
fn is_left_out(left_out: &[(String, String)], path: &str) -> bool {
    left_out.iter().any(|(out, _)| {
        let below = path.strip_prefix(out.as_str());
        // An excluded top directory excludes everything.
        out.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

type Looked = (GuestPath, Sides, Vec<(String, String)>);

/// Asks the sandbox for its files and for what changed in them since its start.
fn look(line: Ask<'_>, guest: Option<GuestPath>) -> Result<Looked, ErrorBody> {
    let changes = line(LiveRequest::SyncOut(SyncOut {
        path: guest,
        content: false,
        everything: false,
    }))?;
    let mounts: Vec<&str> = texts(&changes["mounts"]);
    let top = match (changes["path"].as_str(), mounts.as_slice()) {
        (Some(path), _) => path,
        (None, [only]) => only,
        (None, []) => {
            let message =
                "the sandbox has no writable mount, so no files can be synchronised with it";
            return Err(ErrorBody::new(ErrorCode::InputInvalid, message)
                .hint("create it with a workspace or a mount in the mode rw"));
        }
        (None, several) => {
            let message = "the sandbox has several writable mounts; give the directory in the sandbox too: LOCALDIR:GUEST";
            return Err(ErrorBody::new(ErrorCode::InputInvalid, message)
                .hint(format!("writable mounts: {}", several.join(", "))));
        }
    };
    let top =
        GuestPath::new(top).map_err(|e| ErrorBody::new(ErrorCode::RunFailed, e.to_string()))?;
    let tree = line(LiveRequest::SyncOut(SyncOut {
        path: Some(top.clone()),
        content: false,
        everything: true,
    }))?;
    let mut seen = Sides::default();
    let mut left_out = Vec::new();
    for row in rows(&changes) {
        let Some(path) = below(&top, row) else {
            continue;
        };
        if row["link"] == Value::Bool(true) {
            left_out.push((path, "it is a link in the sandbox".to_owned()));
            continue;
        }
        let began = row["sourceSha256"].as_str().map(str::to_owned);
        seen.began.insert(path, began);
    }
    for row in tree["leftOut"].as_array().into_iter().flatten() {
        let path = row["path"].as_str();
        if let Some(path) = path.and_then(|path| path.strip_prefix(top.as_str())) {
            let reason = row["reason"].as_str().unwrap_or_default();
            left_out.push((path.trim_start_matches('/').to_owned(), reason.to_owned()));
        }
    }
    for row in rows(&tree) {
        let (Some(path), Some(digest)) = (below(&top, row), row["sha256"].as_str()) else {
            continue;
        };
        if row["bytes"]
            .as_u64()
            .is_none_or(|bytes| bytes > MOST as u64)
        {
            left_out.push((path, "it is too large in the sandbox".to_owned()));
            continue;
        }
        let file = File {
            sha256: digest.to_owned(),
            executable: row["executable"] == Value::Bool(true),
        };
        seen.guest.insert(path, file);
    }
    Ok((top, seen, left_out))
}

/// A file of a sandbox.
pub struct Content {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether its owner may execute it.
    pub executable: bool,
}

/// Returns the file in the sandbox's answer to a request for the content of `path`; `None` if there
/// is no regular file.
///
/// # Errors
/// When the content has a secret of the run, which the answer shows redacted.
pub fn file_content(answer: &Value, path: &str) -> Result<Option<Content>, ErrorBody> {
    let row = rows(answer).first().filter(|row| row["base64"].is_string());
    let Some(row) = row else {
        return Ok(None);
    };
    let bytes = STANDARD
        .decode(row["base64"].as_str().unwrap_or_default())
        .map_err(|e| ErrorBody::new(ErrorCode::RunFailed, e.to_string()))?;
    if row["sha256"] != sha256(&bytes).as_str() {
        let message = format!("{path} contains a secret of the run, so it is not copied");
        return Err(ErrorBody::new(ErrorCode::RunFailed, message));
    }
    Ok(Some(Content {
        bytes,
        executable: row["executable"] == Value::Bool(true),
    }))
}

fn rows(answer: &Value) -> &[Value] {
    answer["files"].as_array().map_or(&[], Vec::as_slice)
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array()
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Returns the path of a row relative to the synced directory. The path comes from the guest and is
/// not checked here: opening the local file checks it.
fn below(top: &GuestPath, row: &Value) -> Option<String> {
    let rest = row["path"].as_str()?.strip_prefix(top.as_str())?;
    let rest = rest.strip_prefix('/')?;
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// A sync in progress: the two sides and what was copied so far.
struct Sync<'a> {
    line: Ask<'a>,
    local: &'a Local,
    top: &'a GuestPath,
    seen: Sides,
    report: SyncReport,
}

impl Sync<'_> {
    /// Selects the files to copy. Fails if there are conflicts that `--on-conflict` does not
    /// resolve.
    fn decide(
        &mut self,
        verdicts: &BTreeMap<String, Verdict>,
        way: Option<Way>,
    ) -> Result<(), ErrorBody> {
        for (path, verdict) in verdicts {
            let Some(way) = way else {
                self.report.pending(path, *verdict);
                continue;
            };
            let wins = match (way.verdict, way.on_conflict) {
                (Verdict::Push, OnConflict::Ours) | (Verdict::Pull, OnConflict::Theirs) => true,
                (_, OnConflict::Fail | OnConflict::Ours | OnConflict::Theirs) => false,
            };
            match verdict {
                Verdict::Conflict if way.on_conflict == OnConflict::Fail => {
                    self.report.conflict(path, &self.seen);
                }
                Verdict::Conflict if !wins => {
                    self.report.left_out(
                        path,
                        "both sides changed the file, and --on-conflict keeps the version that this copy would replace",
                    );
                }
                verdict if *verdict == way.verdict || *verdict == Verdict::Conflict => {
                    let exists = self.seen.local.contains_key(path);
                    if way.verdict == Verdict::Pull && exists && !way.write_back {
                        self.report
                            .left_out(path, "the local file exists; only --write-back replaces it");
                    } else {
                        self.report.pending(path, way.verdict);
                    }
                }
                _ => {}
            }
        }
        match way {
            Some(_) => self.report.assert_no_conflict(),
            None => Ok(()),
        }
    }

    fn carry(&mut self, way: Option<Way>) -> Result<(), ErrorBody> {
        let Some(way) = way.filter(|way| way.carry) else {
            return Ok(());
        };
        for path in self.report.take_pending() {
            let carried = match way.verdict {
                Verdict::Push => self.push(&path),
                Verdict::Pull | Verdict::Conflict => self.pull(&path),
            };
            match carried {
                Ok(carried) => self.report.carried(&path, carried),
                Err(error) if error.code == ErrorCode::SyncConflict => {
                    self.report.conflict(&path, &self.seen);
                }
                Err(error) => return Err(error),
            }
        }
        self.report.assert_no_conflict()
    }

    fn at(&self, path: &str) -> Result<GuestPath, ErrorBody> {
        GuestPath::new(format!("{}/{path}", self.top.as_str()))
            .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, e.to_string()))
    }

    fn push(&mut self, path: &str) -> Result<Carried, ErrorBody> {
        let base = self.seen.guest.get(path).map(|file| file.sha256.clone());
        let file = match self.seen.local.get(path) {
            Some(_) => Some(self.local.read(path, MOST)?),
            None => None,
        };
        (self.line)(LiveRequest::SyncIn(SyncIn {
            path: self.at(path)?,
            base64: file.as_ref().map(|(bytes, _)| STANDARD.encode(bytes)),
            executable: file.as_ref().is_some_and(|(_, executable)| *executable),
            base_sha256: Some(base.unwrap_or_default()),
        }))?;
        match file {
            Some((bytes, executable)) => {
                let sha256 = sha256(&bytes).as_str().to_owned();
                let file = File { sha256, executable };
                self.seen.guest.insert(path.to_owned(), file.clone());
                self.seen.local.insert(path.to_owned(), file);
                Ok(Carried::Written)
            }
            None => {
                self.seen.guest.remove(path);
                Ok(Carried::Deleted)
            }
        }
    }

    fn pull(&mut self, path: &str) -> Result<Carried, ErrorBody> {
        // Fail if the local file was changed after the comparison, so that the change is not lost.
        let now = self.local.look(path, MOST)?;
        if !compare::same(now.as_ref(), self.seen.local.get(path)) {
            let message = format!("{path} was changed locally during the sync; try again");
            return Err(ErrorBody::new(ErrorCode::SyncConflict, message));
        }
        if !self.seen.guest.contains_key(path) {
            self.local.remove(path)?;
            self.seen.local.remove(path);
            return Ok(Carried::Deleted);
        }
        let answer = (self.line)(LiveRequest::SyncOut(SyncOut {
            path: Some(self.at(path)?),
            content: true,
            everything: false,
        }))?;
        let Some(Content { bytes, executable }) = file_content(&answer, path)? else {
            let message = format!("{path} is no longer a file in the sandbox");
            return Err(ErrorBody::new(ErrorCode::SyncConflict, message));
        };
        self.local.write(path, &bytes, executable)?;
        let sha256 = sha256(&bytes).as_str().to_owned();
        let file = File { sha256, executable };
        self.seen.guest.insert(path.to_owned(), file.clone());
        self.seen.local.insert(path.to_owned(), file);
        Ok(Carried::Written)
    }

    /// Returns the files for the record: the present state of those that are now the same on both
    /// sides, and the last synced state of all others.
    fn agreed(&self) -> compare::Files {
        let seen = &self.seen;
        let mut agreed: compare::Files = seen
            .local
            .iter()
            .filter(|(path, file)| seen.guest.get(*path) == Some(file))
            .map(|(path, file)| (path.clone(), file.clone()))
            .collect();
        for (path, file) in &seen.base {
            let gone = !seen.local.contains_key(path) && !seen.guest.contains_key(path);
            if !gone {
                agreed.entry(path.clone()).or_insert_with(|| file.clone());
            }
        }
        agreed
    }
}
