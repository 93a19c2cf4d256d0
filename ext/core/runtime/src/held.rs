//! Recovery bundle of a held sandbox (one kept open for clients after the commands of its run)
//! whose supervisor died.
//!
//! While a sandbox is held, the file `held.json` in its run directory contains the facts for its
//! bundle, and `episode.jsonl` the trace of its episode (the actions of its clients), one part per
//! line. Together with the journal, these files contain everything except the changes of the guest,
//! which are lost with the guest. The process that settles the run writes the bundle: unsigned,
//! without changes and not approvable. All three files were redacted when they were written.

use crate::document::{DocumentError, parse, read_document, replace_file};
use crate::event_log::{PageLimits, read_events, unreadable};
use crate::now_rfc3339;
use crate::run_dir::{HELD_EPISODE, HELD_FACTS, RunDir, RunDirError, io, recovery_bundle};
use base64::Engine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wp_codebox_artifacts::{
    Approvable, BundleError, BundleInputs, BundleMount, BundleSigner, Dir, Durability,
    EpisodeFiles, EpisodePart, ExcludeRules, ExecutionRecord, LeftOut, RenameMode, cut_episode,
    write_bundle_as,
};
use wp_codebox_contracts::{
    ErrorCode, EventType, GitView, GuestPath, IsolationReport, LifecycleEvent, MountAccess,
    MountView, Outcome, OutputStream, RecoveredChanges, RunId, RunSummary, RuntimeInfo,
    SummaryCode,
};
use wp_codebox_policy::Redactor;

/// Size limit in bytes of each file from which a recovery bundle is written. Bytes beyond it are
/// not read.
const MOST: u64 = 64 * 1024 * 1024;
/// Summary of a run whose supervisor died while it held a sandbox. The recovery bundle and the
/// run's record contain it.
pub(crate) const SUMMARY: &str = SummaryCode::InterruptedHeld.text();

/// A mount of a held sandbox, as its bundle describes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeldMount {
    /// Guest path of the mount, as the request declared it.
    pub target: GuestPath,
    /// Whether the guest may write to the mount.
    pub access: MountAccess,
    /// How the guest sees the mount, e.g. as an overlay or a copy.
    pub view: MountView,
    /// Git repository that the guest got for the mount: none, one commit of its files, or the host's
    /// commits.
    pub git: GitView,
    /// Names of files and directories, at any depth, whose changes are not captured.
    pub exclude: Vec<String>,
    /// Metadata that the caller attached to the mount.
    pub metadata: Option<Map<String, Value>>,
}

/// What the bundle of a held sandbox contains besides the executed commands, stored in `held.json`.
/// Secrets are redacted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeldFacts {
    /// Backend and environment of the guest.
    pub runtime: RuntimeInfo,
    /// Who or what requested the run.
    pub provenance: Map<String, Value>,
    /// The run's task, as the guest saw it.
    pub task: Option<Value>,
    /// Runtime policy of the run.
    pub policy: Value,
    /// Limits, commands and other data of the request from which the run was started.
    pub spec: Map<String, Value>,
    /// Mounts of the run in the order of the request.
    pub mounts: Vec<HeldMount>,
    /// Isolation of the guest, as probes inside it observed before untrusted code ran.
    pub isolation: IsolationReport,
    /// Observations of the guest's state, e.g. of its WordPress, that were made before the sandbox
    /// was held.
    pub observations: Vec<Value>,
}

impl RunDir {
    /// Writes `held.json`, from which a bundle can be written if the supervisor dies. The caller
    /// must have redacted the facts.
    pub fn write_held(&self, facts: &Value) -> Result<(), RunDirError> {
        let failed = io("write the description of the sandbox");
        let bytes = serde_json::to_vec(facts).map_err(|e| failed(e.into()))?;
        replace_file(self.path(), HELD_FACTS, &bytes, Durability::Synced).map_err(failed)
    }

    /// Appends a part of the episode. If the write fails, removes the partial line.
    pub fn append_episode(&self, part: &EpisodePart) -> Result<(), RunDirError> {
        let failed = io("write a part of the episode");
        let mut line = serde_json::to_vec(part).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        let mut options = fs::OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let file = options.open(self.path().join(HELD_EPISODE));
        let mut file = file.map_err(&failed)?;
        let length = file.metadata().map_err(&failed)?.len();
        file.write_all(&line).map_err(|error| {
            let _ = file.set_len(length);
            failed(error)
        })
    }
}

/// If a dead run had a held sandbox, writes its recovery bundle into `salvage/` in the run
/// directory. Returns whether it wrote one: not if the run had no held sandbox, or if its facts make
/// no valid bundle.
pub(crate) fn write_recovery_bundle(path: &Path, run_id: &RunId) -> Result<bool, DocumentError> {
    let Some(bytes) = read_document(path, HELD_FACTS, MOST)? else {
        return Ok(false);
    };
    let inputs = inputs(path, run_id, parse(HELD_FACTS, &bytes)?)?;
    let failed = |source: io::Error| DocumentError::Recovery { source };
    let directory = recovery_bundle(path).map_err(failed)?;
    let written = write_bundle_as(
        &Dir::open(&directory).map_err(|errno| failed(errno.into()))?,
        run_id,
        &inputs,
        &Redactor::new(&[]),
        BundleSigner::Unsigned,
        // Not synced here: [`crate::recovery`] syncs the bundle before it moves the bundle to its
        // final place.
        Durability::Unsynced,
    );
    match written {
        Ok(_) => Ok(true),
        Err(error @ (BundleError::NoSpace | BundleError::Io { .. })) => {
            Err(failed(io::Error::other(error.to_string())))
        }
        // Another attempt would fail in the same way. The journal stays.
        Err(_) => Ok(false),
    }
}

fn inputs(path: &Path, run_id: &RunId, facts: HeldFacts) -> Result<BundleInputs, DocumentError> {
    let limits = PageLimits {
        count: usize::MAX,
        bytes: MOST,
    };
    let page = read_events(path, 0, limits).map_err(unreadable)?;
    let (commands, unfinished) = executions(&page.events);
    let mut notes = vec![SUMMARY.to_owned()];
    if !unfinished.is_empty() {
        let names = unfinished.join(", ");
        notes.push(format!(
            "commands still running when the supervisor died: {names}"
        ));
    }
    if page.more {
        notes.push(format!(
            "journal events beyond the first {MOST} bytes were left out"
        ));
    }
    let (parts, half) = parts(path)?;
    let episode = cut_episode(parts);
    notes.push(match (&episode, half) {
        (Some(_), MissingParts::No) => {
            "the trace of the episode is incomplete: it ends with the last recorded step".to_owned()
        }
        (Some(_), MissingParts::Yes) => {
            "the trace of the episode is incomplete: its last parts cannot be read".to_owned()
        }
        (None, _) => "there is no valid trace of the episode".to_owned(),
    });
    let mut observations = facts.observations;
    let seen = episode.iter().flat_map(|closed| &closed.observations);
    observations.extend(seen.map(|seen| json!(seen)));
    Ok(BundleInputs {
        created_at: now_rfc3339(),
        runtime: RuntimeInfo {
            status: "destroyed".to_owned(),
            ..facts.runtime
        },
        outcome: Outcome::Failed,
        summary: SUMMARY.to_owned(),
        summary_detail: Some(RunSummary::new(SummaryCode::InterruptedHeld)),
        approvable: Approvable::No {
            code: ErrorCode::RunnerUnavailable,
            reason: SUMMARY.to_owned(),
        },
        provenance: facts.provenance,
        task: facts.task,
        policy: facts.policy,
        spec: facts.spec,
        mounts: facts.mounts.into_iter().enumerate().map(mount).collect(),
        renames: RenameMode::Separate,
        events: page.events,
        completion_outcome: Some(completion(run_id, &commands, &notes)),
        commands,
        observations,
        checks: Vec::new(),
        agent_result: None,
        transcript: None,
        isolation: facts.isolation,
        preview: None,
        evidence: Vec::new(),
        files: Vec::new(),
        episode: episode.map(|closed| EpisodeFiles {
            trace: closed.trace_file,
            records: closed.records_file,
        }),
        follow_up: None,
    })
}

/// Returns the bundle's entry for a mount. The entry has no changes, because nothing was captured.
fn mount((index, mount): (usize, HeldMount)) -> BundleMount {
    BundleMount {
        index,
        target: mount.target,
        access: mount.access,
        view: mount.view,
        git: mount.git,
        exclude: ExcludeRules::new(&mount.exclude),
        left_out: LeftOut::default(),
        metadata: mount.metadata,
        changes: None,
    }
}

fn completion(
    run_id: &RunId,
    commands: &[ExecutionRecord],
    notes: &[String],
) -> Map<String, Value> {
    let (status, next_action) = Outcome::Failed.completion(RecoveredChanges::Absent);
    let rows: Vec<Value> = commands
        .iter()
        .map(|row| {
            let mut shown = json!({"command": row.command, "phase": row.phase});
            if let Some(code) = row.exit_code {
                shown["exitCode"] = json!(code);
            }
            shown
        })
        .collect();
    let document = json!({
        "status": status,
        "outcome": Outcome::Failed,
        "summary": SUMMARY,
        "verification": {"commands": rows, "checks": [], "testFilesChanged": []},
        "blockers": [{
            "kind": "runtime-failure", "code": ErrorCode::RunnerUnavailable,
            "message": SUMMARY, "retryable": false,
        }],
        "riskNotes": notes,
        "confidence": "low",
        "nextAction": next_action,
        "provenance": {"runtime": {"id": run_id, "backend": "native"}},
    });
    match document {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Returns the executions in a journal, and the ids of the executions that have no end event.
fn executions(events: &[LifecycleEvent]) -> (Vec<ExecutionRecord>, Vec<String>) {
    let mut rows: Vec<ExecutionRecord> = Vec::new();
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let last = events.last().map(|event| event.timestamp.clone());
    for event in events {
        let Some(id) = event.execution_id.as_ref().map(|id| id.as_str().to_owned()) else {
            continue;
        };
        let text = |name: &str| {
            let value = event.data.get(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        match event.kind {
            EventType::CommandStarted => {
                let args = event.data.get("args").cloned().unwrap_or_default();
                open.insert(id.clone(), rows.len());
                rows.push(ExecutionRecord {
                    id,
                    command: text("command"),
                    args: serde_json::from_value(args).unwrap_or_default(),
                    exit_code: None,
                    stdout: String::new(),
                    stderr: String::new(),
                    started_at: event.timestamp.clone(),
                    finished_at: last.clone().unwrap_or_default(),
                    phase: text("phase"),
                    output_truncated: false,
                });
            }
            EventType::CommandOutput => {
                if let Some(row) = open.get(&id).and_then(|at| rows.get_mut(*at)) {
                    let piece = match event.data.get("base64").and_then(Value::as_str) {
                        None => text("text"),
                        Some(coded) => decoded(coded),
                    };
                    let stderr = event.data.get("stream") == Some(&json!(OutputStream::Stderr));
                    let stream = if stderr {
                        &mut row.stderr
                    } else {
                        &mut row.stdout
                    };
                    stream.push_str(&piece);
                }
            }
            EventType::CommandFinished => {
                if let Some(row) = open.remove(&id).and_then(|at| rows.get_mut(at)) {
                    let code = event.data.get("exitCode").and_then(Value::as_i64);
                    row.exit_code = code.and_then(|code| i32::try_from(code).ok());
                    row.finished_at.clone_from(&event.timestamp);
                    row.output_truncated = event.data.contains_key("outputTruncated");
                }
            }
            _ => {}
        }
    }
    (rows, open.into_keys().collect())
}

fn decoded(text: &str) -> String {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text);
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// Whether a line of the episode file was invalid, so that this part and all later ones are
/// missing.
#[derive(Clone, Copy)]
enum MissingParts {
    No,
    Yes,
}

/// Reads the recorded parts of the episode, up to the first line that is not a valid part. Only the
/// last line can be incomplete after the death of the supervisor.
fn parts(path: &Path) -> Result<(Vec<EpisodePart>, MissingParts), DocumentError> {
    let unreadable = |source| DocumentError::Unreadable {
        name: HELD_EPISODE,
        source,
    };
    let file = match fs::File::open(path.join(HELD_EPISODE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Vec::new(), MissingParts::No));
        }
        opened => opened.map_err(unreadable)?,
    };
    let mut parts = Vec::new();
    for line in BufReader::new(file.take(MOST)).split(b'\n') {
        match serde_json::from_slice(&line.map_err(unreadable)?) {
            Ok(part) => parts.push(part),
            Err(_) => return Ok((parts, MissingParts::Yes)),
        }
    }
    Ok((parts, MissingParts::No))
}
