//! Collects the files that a recipe declares as results: they are read from the guest up to a
//! maximum size and checked before they are stored.
//!
//! The content is untrusted. A file that seems to contain a secret is not stored; a required file
//! that is missing or of the wrong kind fails the run.

use super::evidence::Evidence;
use crate::session::Session;
use base64::Engine;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;
use wp_codebox_contracts::{CollectedFile, ErrorBody, ErrorCode, hex};
use wp_codebox_runtime::{Bounds, Call};

/// Maximum size of one collected file, in bytes.
const FILE_BYTES: u64 = 1024 * 1024;
/// Maximum size of all collected files together, in bytes.
const ALL_BYTES: usize = 8 * 1024 * 1024;
/// Maximum size of a JSON file whose content the run's result contains, in bytes.
const SHOWN_BYTES: usize = 64 * 1024;
/// Time limit for reading one file in the guest.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// Result of reading a file in the guest.
enum Found {
    Missing,
    TooLarge,
    /// The program that reads the file failed, so its output is ignored.
    Unreadable,
    Content(Vec<u8>),
}

/// Collects the files. Returns an error if a required file is missing, too large or of the wrong
/// kind: the run then fails with this error.
pub(super) fn run(
    session: &mut Session<'_, '_>,
    files: &[CollectedFile],
    evidence: &mut Evidence,
) -> Result<Option<ErrorBody>, ErrorBody> {
    let mut kept = 0;
    let mut lacking: Vec<String> = Vec::new();
    for file in files {
        let mut row = json!({
            "schema": "wp-codebox/recipe-declared-artifact/v1",
            "name": file.name,
            "path": file.path,
            "required": file.required,
        });
        for (name, value) in &file.typed {
            row[name] = value.clone();
        }
        let mut content = None;
        let why = match read(session, file)? {
            Found::Missing => Some(("missing", "does not exist".to_owned())),
            Found::Unreadable => Some(("missing", "cannot be read".to_owned())),
            Found::TooLarge => Some((
                "too-large",
                format!("is larger than {FILE_BYTES} bytes; collect a smaller file"),
            )),
            Found::Content(bytes) if kept + bytes.len() > ALL_BYTES => Some((
                "too-large",
                format!(
                    "would exceed the limit of {ALL_BYTES} bytes for all files together; collect fewer or smaller files"
                ),
            )),
            Found::Content(bytes) => {
                kept += bytes.len();
                row["size"] = json!(bytes.len());
                row["sha256"] = json!(hex(&Sha256::digest(&bytes)));
                check_content(session, file, &bytes, &mut row, &mut content)
            }
        };
        row["status"] = json!(why.as_ref().map_or("collected", |(status, _)| status));
        if let Some((status, what)) = why {
            row["message"] = json!(what);
            // A file that is withheld because it seems to contain a secret exists, so the
            // requirement is met.
            if file.required && status != "sensitive" {
                lacking.push(format!("{} ({}) {what}", file.name, file.path));
            }
        }
        evidence.collected(row, content);
    }
    if lacking.is_empty() {
        return Ok(None);
    }
    let message = format!("the artifact {}", lacking.join("; the artifact "));
    let error = ErrorBody::new(ErrorCode::CollectionFailed, message)
        .hint("let a step write the file, correct its path in the recipe, or set \"required\" to false")
        .with("reason", "recipe-artifact-collection-failed");
    evidence.phase_failed(&error);
    Ok(Some(error))
}

fn read(session: &mut Session<'_, '_>, file: &CollectedFile) -> Result<Found, ErrorBody> {
    let most = FILE_BYTES + 1;
    let argv = ["head", "-c", &most.to_string(), "--", &file.path]
        .map(str::to_owned)
        .to_vec();
    let call = Call {
        command: "artifact.collect".to_owned(),
        args: vec![format!("path={}", file.path)],
        phase: "workflow",
        argv,
        env: BTreeMap::new(),
        cwd: session.context.cwd.clone(),
        stdin: None,
    };
    let call = session.context.work_call(call);
    let bounds = Bounds {
        deadline: session.deadline(),
        timeout: READ_TIMEOUT,
    };
    let runtime = session.guest.runtime.as_mut();
    let (step, bytes) = session.recorder.take(runtime, &call, bounds, most)?;
    Ok(match step.exit_code() {
        Some(0) if bytes.len() as u64 > FILE_BYTES => Found::TooLarge,
        Some(0) => Found::Content(bytes),
        Some(1) => Found::Missing,
        Some(_) | None => Found::Unreadable,
    })
}

type Flaw = (&'static str, String);

/// Checks the content of a file against its declaration, and adds it to `content` if it may be
/// stored.
fn check_content(
    session: &Session<'_, '_>,
    file: &CollectedFile,
    bytes: &[u8],
    row: &mut Value,
    content: &mut Option<Value>,
) -> Option<Flaw> {
    let text = String::from_utf8_lossy(bytes);
    if session.recorder.clean(&text) != text {
        if let Some(row) = row.as_object_mut() {
            // A reader could find a short secret from its digest by trying values, so the row has
            // no digest.
            row.remove("sha256");
        }
        let what = "appears to contain a secret and was not stored".to_owned();
        return Some(("sensitive", what));
    }
    let mut kept = json!({"name": file.name, "path": file.path, "sha256": row["sha256"]});
    match std::str::from_utf8(bytes) {
        Ok(text) => kept["text"] = json!(text),
        Err(_) => {
            let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
            kept["base64"] = json!(encoded);
        }
    }
    *content = Some(kept);
    if !file.parse_json {
        return None;
    }
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else {
        return Some(("invalid", "is not JSON".to_owned()));
    };
    if let Some(wanted) = file.typed.get("payloadSchema")
        && document.get("schema") != Some(wanted)
    {
        let what = format!("does not have the schema {wanted}");
        return Some(("invalid", what));
    }
    if bytes.len() <= SHOWN_BYTES {
        row["json"] = document;
    }
    None
}
