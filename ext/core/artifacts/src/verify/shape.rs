//! Checks that documents have the members and types that later rules rely on.

use crate::json::Json;
use wp_codebox_contracts::Sha256Hex;

/// Returns the hash if `value` is `{algorithm: "sha256", value: 64 lowercase hex digits}`.
pub(crate) fn digest(value: Option<&Json>) -> Option<&str> {
    let value = value?;
    if value.get("algorithm").and_then(Json::as_str) != Some("sha256") {
        return None;
    }
    hex64(value.get("value"))
}

/// Returns the text of a JSON string of 64 lowercase hex digits; `None` for anything else.
pub(super) fn hex64(value: Option<&Json>) -> Option<&str> {
    value
        .and_then(Json::as_str)
        .filter(|text| Sha256Hex::new(*text).is_ok())
}

/// Returns the member `key` if it is a string without lone surrogates.
pub(crate) fn text<'j>(object: &'j Json, key: &str) -> Option<&'j str> {
    object.get(key).and_then(Json::as_str)
}

/// Returns the member `key` if it is a non-empty string without lone surrogates.
pub(crate) fn full_text<'j>(object: &'j Json, key: &str) -> Option<&'j str> {
    text(object, key).filter(|t| !t.is_empty())
}

/// Returns whether the member `key` is absent or a string.
pub(super) fn optional_text(object: &Json, key: &str) -> bool {
    object.get(key).is_none() || text(object, key).is_some()
}

fn is_object(value: Option<&Json>) -> bool {
    value.is_some_and(|v| v.as_object().is_some())
}

/// Returns whether all of `path`, `kind` and `contentType` are strings.
pub(super) fn file_row(row: &Json) -> bool {
    ["path", "kind", "contentType"]
        .iter()
        .all(|key| text(row, key).is_some())
}

/// Checks that a manifest has all required members with the right types. The error names the first
/// one that is missing or wrong.
pub(super) fn manifest(manifest: &Json) -> Result<(), String> {
    for key in ["id", "createdAt"] {
        if text(manifest, key).is_none() {
            return Err(key.to_owned());
        }
    }
    if !is_object(manifest.get("runtime")) {
        return Err("runtime".to_owned());
    }
    let digest = manifest.get("contentDigest");
    let inputs = digest
        .and_then(|d| d.get("inputs"))
        .and_then(Json::as_array);
    let digest_fits = digest
        .is_some_and(|d| text(d, "algorithm") == Some("sha256") && text(d, "value").is_some())
        && inputs.is_some_and(|rows| rows.iter().all(|row| row.as_str().is_some()));
    if !digest_fits {
        return Err("contentDigest".to_owned());
    }
    let Some(files) = manifest.get("files").and_then(Json::as_array) else {
        return Err("files".to_owned());
    };
    if let Some(index) = files.iter().position(|row| !file_row(row)) {
        return Err(format!("files[{index}]"));
    }
    match manifest.get("cases") {
        None => Ok(()),
        Some(cases) => match cases.as_array() {
            None => Err("cases".to_owned()),
            Some(rows) => match rows.iter().position(|row| !case(row)) {
                None => Ok(()),
                Some(index) => Err(format!("cases[{index}]")),
            },
        },
    }
}

fn case(case: &Json) -> bool {
    let digest_or_none = |key| case.get(key).is_none() || digest(case.get(key)).is_some();
    let verification_fits = match case.get("verification") {
        None => true,
        Some(verification) => {
            text(verification, "status").is_some() && optional_text(verification, "verifiedAt")
        }
    };
    text(case, "id").is_some_and(|id| !id.trim().is_empty())
        && digest_or_none("hash")
        && digest_or_none("digest")
        && verification_fits
        && case
            .get("artifacts")
            .and_then(Json::as_array)
            .is_some_and(|rows| rows.iter().all(case_artifact))
}

fn case_artifact(row: &Json) -> bool {
    text(row, "path").is_some()
        && text(row, "kind").is_some()
        && optional_text(row, "contentType")
        && optional_text(row, "publicUrl")
        && (row.get("sha256").is_none() || digest(row.get("sha256")).is_some())
}
