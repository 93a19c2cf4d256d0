//! Two documents that list the files of a bundle: `files/runtime-reference-manifest.json` and
//! `files/runtime-replay-index.json`.
//!
//! Neither document lists the files that are written after it: review, metadata, attestation and
//! manifest.

use super::BundleError;
use super::staging::canonical;
use crate::canonical::OverLimit;
use crate::digest::{reference_manifest_digest, replay_index_digest};
use crate::json::Json;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{
    BundleId, ContentDigest, ManifestFile, RuntimeInfo, Sha256Hex, schema_id,
};

/// Data of the run and the bundle that the reference manifest and the replay index both contain.
pub(super) struct Head<'a> {
    pub created_at: &'a str,
    pub runtime: &'a RuntimeInfo,
    pub id: &'a BundleId,
    pub content: &'a ContentDigest,
}

impl Head<'_> {
    fn bundle(&self) -> Value {
        json!({
            "kind": "artifact-bundle",
            "id": self.id,
            "digest": {"algorithm": "sha256", "value": self.content.value},
        })
    }
}

fn file_ref(file: &ManifestFile) -> Value {
    json!({
        "path": file.path, "kind": file.kind, "contentType": file.content_type, "sha256": file.sha256,
    })
}

/// Builds `files/runtime-reference-manifest.json`, which lists `files` with their hashes.
pub(super) fn reference_manifest(
    head: &Head<'_>,
    files: &[&ManifestFile],
) -> Result<Value, BundleError> {
    let mut rows: Vec<&&ManifestFile> = files.iter().collect();
    rows.sort_by(|a, b| a.path.cmp(&b.path));
    let document = json!({
        "schema": schema_id::RUNTIME_REFERENCE_MANIFEST,
        "version": 1,
        "runtime": head.runtime,
        "artifactBundle": head.bundle(),
        "files": rows.into_iter().map(|f| file_ref(f)).collect::<Vec<_>>(),
        "snapshots": [],
    });
    let value = reference_manifest_digest(&Json::from(&document), OverLimit::Refuse)
        .map_err(|e| canonical("files/runtime-reference-manifest.json", e))?;
    Ok(identified(
        document,
        head,
        "runtime-reference-manifest",
        &value,
    ))
}

/// Builds `files/runtime-replay-index.json`, which refers to those of `files` that help to replay
/// the run.
pub(super) fn replay_index(head: &Head<'_>, files: &[&ManifestFile]) -> Result<Value, BundleError> {
    const NAMES: [(&str, &str); 10] = [
        (
            "runtimeReferenceManifest",
            "files/runtime-reference-manifest.json",
        ),
        ("observations", "observations.jsonl"),
        ("commands", "commands.jsonl"),
        ("runtimeEvents", "events.jsonl"),
        ("blueprintAfter", "blueprint.after.json"),
        ("mountedFiles", "files/mounted-files.json"),
        ("mountDiffs", "files/diffs.json"),
        ("changedFiles", "files/changed-files.json"),
        ("patch", "files/patch.diff"),
        ("testResults", "files/test-results.json"),
    ];
    let references: Map<String, Value> = NAMES
        .iter()
        .filter_map(|(name, path)| {
            let file = files.iter().find(|f| f.path == *path)?;
            Some(((*name).to_owned(), file_ref(file)))
        })
        .collect();
    let document = json!({
        "schema": schema_id::RUNTIME_REPLAY_INDEX,
        "version": 1,
        "runtime": head.runtime,
        "artifactBundle": head.bundle(),
        "references": references,
        "actions": [],
        "observations": [],
        "snapshots": [],
        "replay": {
            "status": "partial",
            "instructions": [
                "Read references.commands for what ran, in order, with its output.",
                "Apply references.patch to the mounted sources; references.changedFiles lists directories a patch cannot carry.",
            ],
            "limitations": ["Database and uploads of the guest are not part of the bundle."],
        },
    });
    let value = replay_index_digest(&Json::from(&document), OverLimit::Refuse)
        .map_err(|e| canonical("files/runtime-replay-index.json", e))?;
    Ok(identified(
        document,
        head,
        "runtime-replay-reference-index",
        &value,
    ))
}

fn identified(mut document: Value, head: &Head<'_>, what: &str, digest: &Sha256Hex) -> Value {
    if let Some(members) = document.as_object_mut() {
        members.insert("id".into(), format!("{what}-sha256-{digest}").into());
        members.insert("createdAt".into(), head.created_at.into());
        members.insert(
            "digest".into(),
            json!({"algorithm": "sha256", "value": digest}),
        );
    }
    document
}
