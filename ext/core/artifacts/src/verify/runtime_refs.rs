//! Checks runtime reference manifests and replay reference indexes.

use super::files::Session;
use super::shape::{digest, file_row, optional_text, text};
use crate::canonical::OverLimit;
use crate::digest::{reference_manifest_digest, replay_index_digest};
use crate::json::Json;
use wp_codebox_contracts::{Sha256Hex, ViolationCode, schema_id};

/// The rules that differ between runtime reference manifests and replay reference indexes.
struct Kind {
    kind: &'static str,
    id_prefix: &'static str,
    shape: fn(&Json) -> bool,
    digest: fn(&Json) -> Option<Sha256Hex>,
}

const KINDS: [Kind; 2] = [
    Kind {
        kind: "runtime-reference-manifest",
        id_prefix: "runtime-reference-manifest-sha256-",
        shape: is_reference_manifest,
        digest: |d| reference_manifest_digest(d, OverLimit::Drop).ok(),
    },
    Kind {
        kind: "runtime-replay-index",
        id_prefix: "runtime-replay-reference-index-sha256-",
        shape: is_replay_index,
        digest: |d| replay_index_digest(d, OverLimit::Drop).ok(),
    },
];

pub(super) fn check(session: &mut Session<'_>) {
    for kind in &KINDS {
        for path in session.of_kind(kind.kind) {
            let document = session.document(&path).and_then(|b| Json::parse(&b).ok());
            match document.filter(|d| (kind.shape)(d)) {
                Some(document) => check_one(session, kind, &path, &document),
                None => {
                    let message = format!("{path:?} is not a {} document", kind.kind);
                    let code = ViolationCode::MalformedReference;
                    session.add(code, &path, Some(&path), message);
                }
            }
        }
    }
}

fn check_one(session: &mut Session<'_>, kind: &Kind, path: &str, document: &Json) {
    let stated = digest(document.get("digest")).unwrap_or_default();
    if (kind.digest)(document).is_none_or(|value| value.as_str() != stated) {
        let message = "the document's digest does not match the references in it";
        let field = format!("{path}:digest");
        session.add(ViolationCode::DigestMismatch, field, Some(path), message);
    }
    if text(document, "id").and_then(|id| id.strip_prefix(kind.id_prefix)) != Some(stated) {
        let message = "the document's id does not match its digest";
        let field = format!("{path}:id");
        session.add(ViolationCode::BundleIdMismatch, field, Some(path), message);
    }
    let bundle = document.get("artifactBundle");
    let identity = session
        .manifest
        .get("contentDigest")
        .and_then(|d| text(d, "value"));
    let same = bundle.and_then(|b| text(b, "id")) == text(&session.manifest, "id")
        && bundle.and_then(|b| digest(b.get("digest"))) == identity;
    if !same {
        let message = "the document states the id or digest of another bundle";
        let field = format!("{path}:artifactBundle");
        session.add(
            ViolationCode::ReviewEvidenceMismatch,
            field,
            Some(path),
            message,
        );
    }
    let items = |key| {
        document
            .get(key)
            .and_then(Json::as_array)
            .unwrap_or_default()
    };
    for (index, file) in items("files").iter().enumerate() {
        check_file(session, &format!("{path}:files[{index}]"), file);
    }
    for key in ["trace", "events"] {
        if let Some(file) = document.get(key) {
            check_file(session, &format!("{path}:{key}"), file);
        }
    }
    let references = document.get("references").and_then(Json::as_object);
    for (key, file) in references.unwrap_or_default() {
        let key = key.as_str().unwrap_or("?");
        check_file(session, &format!("{path}:references.{key}"), file);
    }
    for group in ["observations", "snapshots"] {
        for (index, row) in items(group).iter().enumerate() {
            let refs = row.get("artifactRefs").and_then(Json::as_array);
            for (at, reference) in refs.unwrap_or_default().iter().enumerate() {
                let field = format!("{path}:{group}[{index}].artifactRefs[{at}]");
                check_trace_ref(session, &field, reference);
            }
        }
    }
}

fn check_file(session: &mut Session<'_>, field: &str, file: &Json) {
    let path = text(file, "path").unwrap_or_default();
    if session.check_reference(&format!("{field}.path"), path) {
        let stated = digest(file.get("sha256"));
        session.check_referenced_hash(&format!("{field}.sha256"), path, stated);
    }
}

fn check_trace_ref(session: &mut Session<'_>, field: &str, reference: &Json) {
    if let Some(path) = text(reference, "path")
        && session.check_reference(&format!("{field}.path"), path)
    {
        let stated = digest(reference.get("digest"));
        session.check_referenced_hash(&format!("{field}.digest"), path, stated);
    }
}

fn all(value: Option<&Json>, check: fn(&Json) -> bool) -> bool {
    value
        .and_then(Json::as_array)
        .is_some_and(|items| items.iter().all(check))
}

fn is_text(value: &Json) -> bool {
    matches!(value, Json::String(_))
}

fn common(document: &Json, schema: &str) -> bool {
    let bundle = document.get("artifactBundle");
    text(document, "schema") == Some(schema)
        && document.get("version").and_then(Json::as_f64) == Some(1.0)
        && text(document, "id").is_some()
        && text(document, "createdAt").is_some()
        && digest(document.get("digest")).is_some()
        && document
            .get("runtime")
            .is_some_and(|r| r.as_object().is_some())
        && bundle.is_some_and(|b| {
            text(b, "kind") == Some("artifact-bundle")
                && text(b, "id").is_some()
                && digest(b.get("digest")).is_some()
        })
        && all(document.get("snapshots"), is_snapshot)
}

fn is_reference_manifest(document: &Json) -> bool {
    common(document, schema_id::RUNTIME_REFERENCE_MANIFEST)
        && all(document.get("files"), is_file)
        && document.get("trace").is_none_or(is_file)
        && document.get("events").is_none_or(is_file)
}

fn is_replay_index(document: &Json) -> bool {
    let replay = document.get("replay");
    common(document, schema_id::RUNTIME_REPLAY_INDEX)
        && document
            .get("references")
            .and_then(Json::as_object)
            .is_some_and(|members| members.iter().all(|(_, file)| is_file(file)))
        && all(document.get("actions"), is_action)
        && all(document.get("observations"), is_observation)
        && replay.is_some_and(|r| {
            text(r, "status").is_some()
                && all(r.get("instructions"), is_text)
                && all(r.get("limitations"), is_text)
        })
}

fn is_file(file: &Json) -> bool {
    file_row(file) && digest(file.get("sha256")).is_some()
}

fn is_snapshot(snapshot: &Json) -> bool {
    text(snapshot, "id").is_some()
        && text(snapshot, "semantics").is_some()
        && digest(snapshot.get("digest")).is_some()
        && snapshot.get("replay").is_some_and(|replay| {
            text(replay, "status").is_some() && all(replay.get("limitations"), is_text)
        })
        && all(snapshot.get("artifactRefs"), |reference| {
            text(reference, "kind").is_some()
                && text(reference, "id").is_some()
                && digest(reference.get("digest")).is_some()
        })
}

fn is_action(action: &Json) -> bool {
    action.get("index").and_then(Json::as_f64).is_some()
        && text(action, "id").is_some()
        && action.get("actionRef").is_some_and(is_trace_ref)
        && action.get("executionRef").is_some_and(is_trace_ref)
        && action.get("observationRef").is_none_or(is_trace_ref)
}

fn is_observation(observation: &Json) -> bool {
    text(observation, "id").is_some()
        && text(observation, "type").is_some()
        && observation.get("ref").is_some_and(is_trace_ref)
        && all(observation.get("artifactRefs"), is_trace_ref)
}

fn is_trace_ref(reference: &Json) -> bool {
    text(reference, "kind").is_some()
        && text(reference, "id").is_some()
        && (reference.get("digest").is_none() || digest(reference.get("digest")).is_some())
        && optional_text(reference, "artifactId")
        && optional_text(reference, "path")
}
