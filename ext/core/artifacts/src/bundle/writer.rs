//! The writer of bundles.
//!
//! Order: changes → bundle id and content digest → files that contain them → hashes of the files →
//! documents that list the hashes → attestation → manifest with its self hash.

use super::documents::{Identity, completed, metadata, review, test_results};
use super::follow_up::{self, FollowUpDocuments};
use super::inputs::{ArtifactContent, BundleInputs};
use super::mounts::{blueprint, change_set, mount_rows};
use super::records::{Scrubber, commands, commands_log, events, lines, runtime_log};
use super::references::{Head, reference_manifest, replay_index};
use super::secrets::find_secret;
use super::staging::{Staging, canonical};
use super::{BundleError, BundleSigner, Durability, WrittenBundle};
use crate::attestation::{ATTESTATION_PATH, MANIFEST_PATH, make_envelope};
use crate::canonical::{MAX_ITEMS, OverLimit, canonical_value};
use crate::digest::{CONTENT_INPUTS, MAX_DOCUMENT, content_digest, manifest_self_hash, sha256};
use crate::dirfd::Dir;
use crate::json::Json;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wp_codebox_contracts::{
    BundleId, ChangedFiles, DigestAlgorithm, FileDigest, FollowUpRecord, Manifest, ManifestFile,
    RunId, Sha256Hex, schema_id,
};
use wp_codebox_policy::Redactor;

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";
const DIFF: &str = "text/x-diff";

/// One file of the bundle to be written.
struct Member {
    path: String,
    kind: &'static str,
    media: &'static str,
    bytes: Vec<u8>,
}

/// Files of the bundle in manifest order, and the names by which `metadata.json` refers to them.
#[derive(Default)]
struct Members {
    list: Vec<Member>,
    names: Map<String, Value>,
}

impl Members {
    fn add(&mut self, path: &str, kind: &'static str, media: &'static str, bytes: Vec<u8>) {
        self.list.push(Member {
            path: path.to_owned(),
            kind,
            media,
            bytes,
        });
    }

    fn named(
        &mut self,
        name: &str,
        path: &str,
        kind: &'static str,
        media: &'static str,
        bytes: Vec<u8>,
    ) {
        self.names.insert(name.to_owned(), path.into());
        self.add(path, kind, media, bytes);
    }

    fn rows(&self) -> Vec<ManifestFile> {
        self.list.iter().map(row).collect()
    }
}

fn row(member: &Member) -> ManifestFile {
    entry(
        &member.path,
        member.kind,
        member.media,
        sha256(&member.bytes),
    )
}

fn entry(path: &str, kind: &str, media: &str, hash: Sha256Hex) -> ManifestFile {
    ManifestFile {
        path: path.to_owned(),
        kind: kind.to_owned(),
        content_type: media.to_owned(),
        sha256: FileDigest {
            algorithm: DigestAlgorithm::Sha256,
            value: hash,
        },
        redaction: None,
    }
}

/// Serialises a document with two-space indentation and a final line feed.
fn pretty<T: serde::Serialize>(document: &T) -> Vec<u8> {
    // These types have only string keys, so serialisation cannot fail.
    let mut bytes = serde_json::to_vec_pretty(document).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Writes the bundle `<parent>/<run id>` atomically.
///
/// Fails if the change set contains a secret ([`BundleError::Secret`]), the disk is full, another
/// I/O operation fails, a document exceeds the limits of canonical JSON, or a bundle of that run
/// exists.
pub fn write_bundle(
    parent: &Dir,
    run: &RunId,
    inputs: &BundleInputs,
    redactor: &Redactor,
    signer: BundleSigner<'_>,
) -> Result<WrittenBundle, BundleError> {
    write_bundle_as(parent, run, inputs, redactor, signer, Durability::Synced)
}

/// Writes a bundle like [`write_bundle`], but lets the caller choose whether it is synced to disk.
pub fn write_bundle_as(
    parent: &Dir,
    run: &RunId,
    inputs: &BundleInputs,
    redactor: &Redactor,
    signer: BundleSigner<'_>,
    durability: Durability,
) -> Result<WrittenBundle, BundleError> {
    refuse_secrets(inputs, redactor)?;
    let scrub = Scrubber::new(redactor);
    let set = change_set(inputs, redactor);
    if set.patch.len() as u64 > MAX_DOCUMENT {
        return Err(BundleError::PatchTooLarge {
            bytes: set.patch.len() as u64,
            limit: MAX_DOCUMENT,
        });
    }
    let changed_files = pretty(&ChangedFiles::new(set.entries.clone()));
    let content = content_digest(&[
        (CONTENT_INPUTS[0], &changed_files),
        (CONTENT_INPUTS[1], &set.patch),
    ]);
    let id = BundleId::from_digest(&content.value);
    let identity = Identity {
        id: &id,
        content: &content,
    };

    let mut members = Members::default();
    let clean_events = events(&inputs.events, &scrub);
    let clean_commands = commands(&inputs.commands, &scrub);
    let observations: Vec<Value> = inputs.observations.iter().map(|o| scrub.value(o)).collect();
    let m = &mut members;
    let after = pretty(&blueprint(inputs, redactor));
    m.named(
        "blueprintAfter",
        "blueprint.after.json",
        "blueprint-after",
        JSON,
        after,
    );
    m.named(
        "events",
        "events.jsonl",
        "events",
        NDJSON,
        lines(&clean_events),
    );
    m.named(
        "commands",
        "commands.jsonl",
        "commands",
        NDJSON,
        lines(&clean_commands),
    );
    m.named(
        "observations",
        "observations.jsonl",
        "observations",
        NDJSON,
        lines(&observations),
    );
    let log = runtime_log(&clean_events).into_bytes();
    m.named("runtimeLog", "logs/runtime.log", "log", "text/plain", log);
    let log = commands_log(&clean_commands).into_bytes();
    m.named("commandsLog", "logs/commands.log", "log", "text/plain", log);
    let rows = lines(&mount_rows(inputs, &scrub));
    m.named("mounts", "files/mounts.jsonl", "mounts", NDJSON, rows);
    let copies = pretty(&set.mounted_files);
    m.named(
        "mountedFiles",
        "files/mounted-files.json",
        "mounted-files",
        JSON,
        copies,
    );
    m.named(
        "mountDiffs",
        "files/diffs.json",
        "mount-diffs",
        JSON,
        pretty(&set.diffs),
    );
    m.named(
        "changedFiles",
        CONTENT_INPUTS[0],
        "changed-files",
        JSON,
        changed_files,
    );
    m.named("patch", CONTENT_INPUTS[1], "patch", DIFF, set.patch.clone());
    let tests = pretty(&test_results(inputs, &scrub));
    m.named(
        "testResults",
        "files/test-results.json",
        "test-results",
        JSON,
        tests,
    );

    let part = |given: &Option<Map<String, Value>>, schema| {
        given.as_ref().map_or(Value::Null, |g| {
            completed(g, schema, &identity, &set, &scrub)
        })
    };
    let outcome = part(&inputs.completion_outcome, schema_id::COMPLETION_OUTCOME);
    let result = part(&inputs.agent_result, schema_id::AGENT_RESULT);
    let transcript = inputs
        .transcript
        .as_ref()
        .map_or(Value::Null, |t| scrub.value(t));
    for (name, path, kind, document) in [
        (
            "completionOutcome",
            "files/completion-outcome.json",
            "completion-outcome",
            &outcome,
        ),
        (
            "agentResult",
            "files/agent-result.json",
            "agent-result",
            &result,
        ),
        (
            "transcript",
            "files/transcript.json",
            "transcript",
            &transcript,
        ),
    ] {
        if !document.is_null() {
            m.named(name, path, kind, JSON, pretty(document));
        }
    }
    for document in &inputs.evidence {
        let values: Vec<Value> = document.values.iter().map(|v| scrub.value(v)).collect();
        let (media, bytes) = if document.name.ends_with(".jsonl") {
            (NDJSON, lines(&values))
        } else {
            (JSON, values.first().map(pretty).unwrap_or_default())
        };
        let path = format!("files/runtime-evidence/{}", document.name);
        m.named(document.key, &path, document.kind, media, bytes);
    }
    if let Some(episode) = &inputs.episode {
        m.named(
            "runtimeEpisodeTrace",
            "files/runtime-episode-trace.json",
            "runtime-episode-trace",
            JSON,
            episode.trace.clone(),
        );
        m.named(
            "runtimeEpisode",
            "files/runtime-episode.jsonl",
            "runtime-episode",
            NDJSON,
            episode.records.clone(),
        );
    }
    if let Some(given) = &inputs.follow_up {
        let FollowUpDocuments { record, patch } = follow_up::documents(inputs, given, &scrub);
        let (path, kind) = (FollowUpRecord::PATH, "follow-up");
        m.named("followUp", path, kind, JSON, pretty(&record));
        let (path, kind) = (FollowUpRecord::PATCH_PATH, "follow-up-patch");
        m.named("followUpPatch", path, kind, DIFF, patch);
    }
    for file in &inputs.files {
        let bytes = match &file.content {
            ArtifactContent::Text(text) => scrub.text(text).into_bytes(),
            ArtifactContent::Document(value) => pretty(&scrub.value(value)),
            ArtifactContent::Bytes(bytes) => bytes.clone(),
        };
        m.add(&file.path, file.kind, file.media, bytes);
    }
    for (path, bytes) in &set.mount_patches {
        m.add(path, "diff", DIFF, bytes.clone());
    }
    for (path, bytes, media) in &set.copies {
        m.add(path, "file", media, bytes.clone());
    }

    let head = Head {
        created_at: &inputs.created_at,
        runtime: &inputs.runtime,
        id: &id,
        content: &content,
    };
    let rows = members.rows();
    let references: Vec<&ManifestFile> = rows.iter().collect();
    let document = pretty(&reference_manifest(&head, &references)?);
    let (path, kind) = (
        "files/runtime-reference-manifest.json",
        "runtime-reference-manifest",
    );
    members.named("runtimeReferenceManifest", path, kind, JSON, document);
    let rows = members.rows();
    let references: Vec<&ManifestFile> = rows.iter().collect();
    let document = pretty(&replay_index(&head, &references)?);
    let path = "files/runtime-replay-index.json";
    members.named(
        "runtimeReplayIndex",
        path,
        "runtime-replay-index",
        JSON,
        document,
    );

    let document = pretty(&review(inputs, &identity, &set, &scrub));
    members.named("review", "files/review.json", "review", JSON, document);
    let mut names = members.names.clone();
    let (key, origin) = signer.parts();
    if key.is_some() {
        names.insert("attestation".to_owned(), ATTESTATION_PATH.into());
    }
    let document = pretty(&metadata(inputs, &identity, names, origin, &scrub));
    members.add("metadata.json", "metadata", JSON, document);

    let manifest = finish_manifest(inputs, &identity, &mut members, signer)?;
    let mut staging = Staging::new(parent, run)?;
    for member in &members.list {
        staging.write(&member.path, member.bytes.as_slice())?;
    }
    staging.write(MANIFEST_PATH, manifest.as_slice())?;
    staging.place(run.as_str(), durability)?;
    Ok(WrittenBundle {
        id,
        content_digest: content,
        manifest_sha256: sha256(&manifest),
        notices: notices(inputs, &set.mounted_files),
        changed_files: set.entries,
        completion_outcome: outcome,
        agent_result: result,
        transcript,
    })
}

/// Fails if the change set, or the patch since an earlier bundle, contains a secret, because a
/// patch must not be edited.
fn refuse_secrets(inputs: &BundleInputs, redactor: &Redactor) -> Result<(), BundleError> {
    for mount in &inputs.mounts {
        let follow_up = inputs.follow_up.as_ref();
        // The patch since an earlier bundle also contains lines that only the earlier bundle has.
        let since = follow_up.and_then(|follow_up| follow_up.since.get(&mount.index));
        let mut changes = mount.changes.iter().chain(since);
        if let Some(found) = changes.find_map(|c| find_secret(c, redactor)) {
            return Err(BundleError::Secret {
                path: format!("{}/{}", mount.target, found.path),
                line: found.line,
                kind: found.kind,
            });
        }
    }
    Ok(())
}

/// Signs the bundle if it has a signer, then serialises the manifest with its self hash.
fn finish_manifest(
    inputs: &BundleInputs,
    identity: &Identity<'_>,
    members: &mut Members,
    signer: BundleSigner<'_>,
) -> Result<Vec<u8>, BundleError> {
    let fail = |e| canonical(MANIFEST_PATH, e);
    let (key, origin) = signer.parts();
    let mut files = vec![entry(MANIFEST_PATH, "manifest", JSON, Sha256Hex::zero())];
    files.extend(members.rows());
    let mut manifest = Manifest {
        id: identity.id.to_string(),
        content_digest: identity.content.clone(),
        created_at: inputs.created_at.clone(),
        runtime: inputs.runtime.clone(),
        origin,
        files,
    };
    if let Some(key) = key {
        let hashes: BTreeMap<String, Sha256Hex> = members
            .rows()
            .into_iter()
            .map(|file| (file.path, file.sha256.value))
            .collect();
        // The signature covers this entry of the envelope, but not its hash, which depends on the
        // signature. Until the envelope is made, the hash is zeros.
        manifest.files.push(entry(
            ATTESTATION_PATH,
            "attestation",
            JSON,
            Sha256Hex::zero(),
        ));
        let envelope = make_envelope(key, &json!(manifest), &hashes, &inputs.isolation);
        members.add(
            ATTESTATION_PATH,
            "attestation",
            JSON,
            pretty(&envelope.map_err(fail)?),
        );
        if let (Some(file), Some(member)) = (manifest.files.last_mut(), members.list.last()) {
            file.sha256.value = sha256(&member.bytes);
        }
    }
    if manifest.files.len() >= MAX_ITEMS {
        return Err(fail(crate::canonical::CanonicalError::Items {
            count: manifest.files.len(),
        }));
    }
    let document = json!(manifest);
    let own = manifest_self_hash(&Json::from(&document), MANIFEST_PATH, OverLimit::Refuse);
    if let Some(file) = manifest.files.first_mut() {
        file.sha256.value = own.map_err(fail)?;
    }
    let ascii = canonical_value(&document, OverLimit::Refuse)
        .map_err(fail)?
        .is_ascii();
    if ascii {
        Ok(pretty(&manifest))
    } else {
        Err(BundleError::NotAscii)
    }
}

fn notices(inputs: &BundleInputs, mounted_files: &Value) -> Vec<String> {
    let mut notices = Vec::new();
    for mount in &inputs.mounts {
        let count = mount.changes.as_ref().map_or(0, |c| c.omitted.len());
        if count > 0 {
            notices.push(format!(
                "{count} paths below {} were left out; files/mounts.jsonl lists them.",
                mount.target
            ));
        }
    }
    let skipped = mounted_files
        .get("skipped")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    if skipped > 0 {
        notices.push(format!(
            "{skipped} changed files are in the patch only, not as copies; files/mounted-files.json lists them."
        ));
    }
    notices
}
