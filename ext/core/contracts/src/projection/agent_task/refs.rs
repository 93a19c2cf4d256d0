//! References to the bundle of an ended task and to the files in it.

use super::Facts;
use crate::string_enum;
use serde_json::{Map, Value, json};

string_enum! {
    /// Kind of an object that a reference names.
    pub(super) enum ReferenceKind {
        /// The bundle directory.
        Bundle = "codebox-artifact-bundle",
        /// List of the changed files.
        ChangedFiles = "codebox-changed-files",
        /// Patch of all changes.
        Patch = "codebox-patch",
        /// Output of the agent.
        Transcript = "codebox-transcript",
        /// Events of the run.
        RuntimeLog = "codebox-runtime-log",
        /// Commands of the run.
        CommandLog = "codebox-command-log",
        /// The run itself.
        Runtime = "codebox-runtime",
        /// Documents with which a reviewer can check the run.
        EvidenceBundle = "codebox-evidence-bundle",
    }
}

impl ReferenceKind {
    /// Returns the name of the list in `refs` that contains references of this kind.
    const fn list(self) -> &'static str {
        match self {
            ReferenceKind::Bundle => "artifact_bundles",
            ReferenceKind::ChangedFiles => "changed_files",
            ReferenceKind::Patch => "patches",
            ReferenceKind::Transcript => "transcripts",
            ReferenceKind::RuntimeLog | ReferenceKind::CommandLog => "logs",
            ReferenceKind::Runtime => "runtimes",
            ReferenceKind::EvidenceBundle => "evidence_bundles",
        }
    }

    /// Returns whether the reference counts as an artifact: all except those to the run itself and
    /// to the directory of its evidence.
    const fn is_artifact(self) -> bool {
        !matches!(self, ReferenceKind::Runtime | ReferenceKind::EvidenceBundle)
    }

    /// Returns whether the reference is evidence of how the run worked. False for what the run
    /// produced: the bundle, the list of changed files and the patch.
    const fn is_evidence(self) -> bool {
        !matches!(
            self,
            ReferenceKind::Bundle | ReferenceKind::ChangedFiles | ReferenceKind::Patch
        )
    }
}

/// A reference: `{id, kind, path, sha256?, size_bytes?}`.
#[derive(Debug)]
pub(super) struct Reference {
    pub kind: ReferenceKind,
    pub id: String,
    /// Absolute path on the host; empty for the run itself.
    pub path: String,
    /// Further known members.
    more: Map<String, Value>,
}

impl Reference {
    fn shown(&self) -> Value {
        let mut row = Map::from_iter([
            ("id".to_owned(), self.id.as_str().into()),
            ("kind".to_owned(), self.kind.as_str().into()),
        ]);
        if !self.path.is_empty() {
            row.insert("path".to_owned(), self.path.as_str().into());
        }
        row.extend(self.more.clone());
        Value::Object(row)
    }
}

/// Returns the references of an ended run: the run itself, and its bundle with the files that every
/// bundle contains.
pub(super) fn references(facts: &Facts<'_>) -> Vec<Reference> {
    let plain = |kind, id: &str, path: String| Reference {
        kind,
        id: id.to_owned(),
        path,
        more: Map::new(),
    };
    // The run has a result, so its supervisor has already ended every guest.
    let mut runtime = plain(ReferenceKind::Runtime, facts.run_id, String::new());
    runtime.more.insert("status".to_owned(), "destroyed".into());
    let mut rows = vec![runtime];
    let (Some(directory), Some(bundle)) = (facts.directory, facts.bundle_id) else {
        return rows;
    };
    let mut own = plain(ReferenceKind::Bundle, bundle, directory.to_owned());
    if let Some(digest) = facts.manifest_sha256 {
        let metadata = json!({"manifest_sha256": digest, "run_id": facts.run_id});
        own.more.insert("metadata".to_owned(), metadata);
    }
    rows.push(own);
    for (kind, id, name) in [
        (
            ReferenceKind::ChangedFiles,
            "changed-files",
            "files/changed-files.json",
        ),
        (ReferenceKind::Patch, "patch", "files/patch.diff"),
        (
            ReferenceKind::Transcript,
            "transcript",
            "files/transcript.json",
        ),
        (ReferenceKind::RuntimeLog, "events", "events.jsonl"),
        (ReferenceKind::CommandLog, "commands", "commands.jsonl"),
        (
            ReferenceKind::EvidenceBundle,
            "runtime-evidence",
            "files/runtime-evidence",
        ),
    ] {
        let mut row = plain(kind, id, format!("{directory}/{name}"));
        if kind == ReferenceKind::Patch {
            for (from, to) in [("sha256", "sha256"), ("bytes", "size_bytes")] {
                if let Some(value) = facts.patch(from) {
                    row.more.insert(to.to_owned(), value.clone());
                }
            }
        }
        rows.push(row);
    }
    rows
}

/// Returns the references by list, `{artifact_bundles, changed_files, …}`; a list may be empty.
pub(super) fn by_list(references: &[Reference]) -> Value {
    let mut lists = Map::new();
    for kind in ReferenceKind::ALL {
        let rows = references.iter().filter(|row| row.kind == *kind);
        let rows = rows.map(Reference::shown);
        match lists.entry(kind.list()).or_insert_with(|| json!([])) {
            Value::Array(list) => list.extend(rows),
            _ => continue,
        }
    }
    Value::Object(lists)
}

/// Returns the references that count as artifacts ([`ReferenceKind::is_artifact`]).
pub(super) fn artifacts(references: &[Reference]) -> Vec<Value> {
    let rows = references.iter().filter(|row| row.kind.is_artifact());
    rows.map(Reference::shown).collect()
}

/// Returns the references to evidence of the run.
pub(super) fn evidence(references: &[Reference]) -> Vec<Value> {
    let rows = references.iter().filter(|row| row.kind.is_evidence());
    rows.map(Reference::shown).collect()
}

/// Returns the references of one kind.
pub(super) fn of_kind(references: &[Reference], kind: ReferenceKind) -> Vec<Value> {
    let rows = references.iter().filter(|row| row.kind == kind);
    rows.map(Reference::shown).collect()
}
