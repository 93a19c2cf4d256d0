//! Checks the references of `metadata.json` and of the review to files of the bundle.

use super::files::Session;
use super::shape::text;
use crate::json::Json;
use std::collections::BTreeSet;
use wp_codebox_contracts::ViolationCode;

const METADATA: &str = "metadata.json";
const REVIEW: &str = "files/review.json";

/// Checks that the manifest lists every path in `artifacts` of `metadata.json`. If `metadata.json`
/// is missing or not JSON, this check reports nothing.
pub(super) fn check_metadata(session: &mut Session<'_>) {
    let Some(document) = parsed(session, METADATA) else {
        return;
    };
    let artifacts = document.get("artifacts").and_then(Json::as_object);
    for (key, value) in artifacts.unwrap_or_default() {
        let field = format!("metadata.artifacts.{}", key.as_str().unwrap_or("?"));
        let references: Vec<&str> = match value {
            Json::Array(items) if items.iter().all(|i| i.as_str().is_some()) => {
                items.iter().filter_map(Json::as_str).collect()
            }
            other => other.as_str().into_iter().collect(),
        };
        for reference in references {
            session.check_reference(&field, reference);
        }
    }
}

fn parsed(session: &mut Session<'_>, path: &str) -> Option<Json> {
    Json::parse(&session.document(path)?).ok()
}

/// Checks that the review states this bundle's content digest, patch and changed files, and refers
/// only to listed files. If the review is missing or not JSON, this check reports nothing.
pub(super) fn check_review(session: &mut Session<'_>) {
    let Some(review) = parsed(session, REVIEW) else {
        return;
    };
    let Some(evidence) = review.get("evidence").filter(|e| e.as_object().is_some()) else {
        let message = "the review has no evidence object";
        session.add(
            ViolationCode::MalformedReference,
            REVIEW,
            Some(REVIEW),
            message,
        );
        return;
    };
    let mismatch = ViolationCode::ReviewEvidenceMismatch;
    let field = |name: &str| format!("{REVIEW}:evidence.{name}");
    let identity = session
        .manifest
        .get("contentDigest")
        .and_then(|d| text(d, "value"))
        .map(str::to_owned);
    if let Some(stated) = text(evidence, "artifactContentDigest")
        && Some(stated) != identity.as_deref()
    {
        let message = "the content digest in the review is not that of the bundle";
        session.add(
            mismatch,
            field("artifactContentDigest"),
            Some(REVIEW),
            message,
        );
    }
    if let Some(patch) = text(evidence, "patch")
        && session.check_reference(&field("patch"), patch)
        && let Some(stated) = text(evidence, "patchSha256")
        && session
            .file_hash(patch)
            .is_none_or(|hash| hash.as_str() != stated)
    {
        let message = "the review is about another patch";
        session.add(mismatch, field("patchSha256"), Some(REVIEW), message);
    }
    if let Some(path) = text(evidence, "changedFiles")
        && session.check_reference(&field("changedFiles"), path)
    {
        check_changed_files(session, &review, path);
    }
    for name in [
        "runtimeEpisodeTrace",
        "runtimeReferenceManifest",
        "runtimeReplayReferenceIndex",
    ] {
        if let Some(path) = text(evidence, name) {
            session.check_reference(&field(name), path);
        }
    }
}

/// Checks that each file in the review is also in `changed-files.json`, with the same status.
fn check_changed_files(session: &mut Session<'_>, review: &Json, path: &str) {
    let mismatch = ViolationCode::ReviewEvidenceMismatch;
    let Some(document) = parsed(session, path) else {
        let message = "the list of changed files that the review refers to cannot be read";
        let field = format!("{REVIEW}:evidence.changedFiles");
        session.add(mismatch, field, Some(path), message);
        return;
    };
    let rows = |value: &Json, key: &str| value.get(key).and_then(Json::as_array).map(<[_]>::to_vec);
    let (Some(changed), Some(reviewed)) = (rows(&document, "files"), rows(review, "changedFiles"))
    else {
        return;
    };
    let key = |row: &Json| {
        (
            text(row, "path").map(str::to_owned),
            text(row, "status").map(str::to_owned),
        )
    };
    let known: BTreeSet<_> = changed
        .iter()
        .filter(|r| r.as_object().is_some())
        .map(key)
        .collect();
    for row in reviewed.iter().filter(|r| r.as_object().is_some()) {
        if !known.contains(&key(row)) {
            let message = format!(
                "the review lists {:?}, but no changed file has this path and status",
                text(row, "path").unwrap_or_default()
            );
            session.add(
                mismatch,
                format!("{REVIEW}:changedFiles"),
                Some(REVIEW),
                message,
            );
        }
    }
}
