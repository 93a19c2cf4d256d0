//! Tools that change files in the guest's mounts: write, edit, patch, delete.
//!
//! The host process computes the new content: it fetches a file from the guest and sends the result
//! back together with the digest of the fetched bytes. The guest refuses to store the result if the
//! file has changed in between.

use super::reading::{QUICK, answer_of, number, rows};
use super::shown;
use super::{Arguments, GuestExecutor, ToolError, ToolOutput, ToolResult, Tools};
use crate::edit::{Files, Scope, apply, parse, replace};
use base64::Engine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use wp_codebox_artifacts::sha256;

/// Maximum size of the guest program's output for one fetch, in bytes: a first line of JSON, then
/// the contents of the files.
const FETCH_BYTES: u64 = 6 * 1024 * 1024;
/// Maximum size of the content that one write call may store, in bytes.
const WRITE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of line numbers that the result of an edit lists.
const PLACES: usize = 20;

/// File that was fetched from the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fetched {
    /// Content of the file; `None` when the file does not exist.
    pub bytes: Option<Vec<u8>>,
    /// Digest of the content; empty when the file does not exist.
    pub sha256: String,
}

/// Change of one file in the guest.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub path: &'a str,
    /// New content; `None` deletes the file.
    pub bytes: Option<&'a [u8]>,
    /// SHA-256 that the file must still have before the change; an empty text if the file must not
    /// exist; null skips this check.
    pub before: Value,
    pub mode: Option<u32>,
}

impl<H: GuestExecutor> Tools<H> {
    /// Fetches whole files from the guest.
    pub(super) fn fetch(&mut self, tool: &str, paths: &[&str]) -> Result<Vec<Fetched>, ToolError> {
        let request = json!({"op": "fetch", "paths": paths});
        let call = self.workspace_call(tool, request, &[]);
        let taken = self.executor.take(&call, QUICK, FETCH_BYTES)?;
        self.go_on(&taken.step)?;
        let (answer, mut bytes) = answer_of(&taken.bytes, &taken.step.stderr)?;
        let broken = || "the sandbox returned incomplete file contents; try again".into();
        let rows = rows(&answer, "files");
        if rows.len() != paths.len() {
            return Err(broken());
        }
        let mut files = Vec::new();
        for row in rows {
            if row.get("exists") != Some(&Value::Bool(true)) {
                files.push(Fetched {
                    bytes: None,
                    sha256: String::new(),
                });
                continue;
            }
            let length = usize::try_from(number(row, "length")).map_err(|_| broken())?;
            let (file, rest) = bytes.split_at_checked(length).ok_or_else(broken)?;
            bytes = rest;
            // The digest is computed from the received bytes; the guest's own value is untrusted.
            files.push(Fetched {
                sha256: sha256(file).to_string(),
                bytes: Some(file.to_vec()),
            });
        }
        Ok(files)
    }

    /// Stores all changes in the guest, or none of them.
    pub(super) fn store(&mut self, tool: &str, changes: &[Change<'_>]) -> Result<(), ToolError> {
        let rows: Vec<Value> = changes
            .iter()
            .map(|change| {
                let mut row = json!({
                    "path": change.path,
                    "action": if change.bytes.is_some() { "write" } else { "delete" },
                    "length": change.bytes.map_or(0, <[u8]>::len),
                    "sha256": change.before,
                });
                if let Some(mode) = change.mode {
                    row["mode"] = json!(mode);
                }
                row
            })
            .collect();
        let bytes: Vec<u8> = changes
            .iter()
            .filter_map(|change| change.bytes)
            .flatten()
            .copied()
            .collect();
        let answer = self.workspace(tool, json!({"op": "store", "changes": rows}), &bytes)?;
        match super::reading::rows(&answer, "files").len() == changes.len() {
            true => Ok(()),
            false => Err(
                "the sandbox did not confirm the change; check the file with workspace.read".into(),
            ),
        }
    }

    pub(super) fn write(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let path = arguments.text("path")?;
        let content = arguments.text("content")?;
        let bytes = match arguments.text_or("encoding", "text")? {
            "text" => content.as_bytes().to_vec(),
            "base64" => base64::engine::general_purpose::STANDARD
                .decode(content.split_whitespace().collect::<String>())
                .map_err(|_| "content is not valid base64; correct it, or set encoding to text")?,
            other => {
                return Err(ToolError::InvalidCall(format!(
                    "encoding is {other:?}, but must be text or base64"
                )));
            }
        };
        if bytes.len() > WRITE_BYTES {
            return Err("content is larger than 4 MiB; create the file with terminal.run".into());
        }
        let change = Change {
            path,
            bytes: Some(&bytes),
            before: Value::Null,
            mode: None,
        };
        self.store(arguments.tool(), &[change])?;
        Ok(ToolOutput::ok(format!(
            "wrote {} bytes to {}",
            bytes.len(),
            shown::name(path)
        )))
    }

    pub(super) fn edit(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let path = arguments.text("path")?;
        let old = arguments.text("old_text")?;
        let new = arguments.text("new_text")?;
        let scope = match arguments.flag("replace_all")? {
            true => Scope::All,
            false => Scope::Once,
        };
        let file = self.fetch(arguments.tool(), &[path])?.pop();
        let Some((bytes, digest)) = file.and_then(|file| Some((file.bytes?, file.sha256))) else {
            return Err(ToolError::InvalidCall(format!(
                "{} does not exist; create it with workspace.write",
                shown::name(path)
            )));
        };
        let replaced =
            replace(&bytes, old, new, scope).map_err(|e| format!("{}: {e}", shown::name(path)))?;
        let change = Change {
            path,
            bytes: Some(&replaced.bytes),
            before: json!(digest),
            mode: None,
        };
        self.store(arguments.tool(), &[change])?;
        let lines: Vec<String> = replaced
            .lines
            .iter()
            .take(PLACES)
            .map(ToString::to_string)
            .collect();
        Ok(ToolOutput::ok(format!(
            "replaced {} place(s) in {}, at line(s) {}",
            replaced.lines.len(),
            shown::name(path),
            lines.join(", ")
        )))
    }

    pub(super) fn patch(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let patch = parse(arguments.text("patch")?).map_err(|e| e.to_string())?;
        let paths = patch.paths();
        let names: Vec<&str> = paths.iter().map(String::as_str).collect();
        let fetched = self.fetch(arguments.tool(), &names)?;
        let before: Files = paths
            .iter()
            .cloned()
            .zip(fetched.iter().map(|file| file.bytes.clone()))
            .collect();
        let digests: BTreeMap<&str, &str> = names
            .iter()
            .copied()
            .zip(fetched.iter().map(|file| file.sha256.as_str()))
            .collect();
        let mut applied = apply(&patch, &before).map_err(|e| e.to_string())?;
        // A file of which the patch changes only the mode is stored with its current content.
        for path in applied.modes.keys() {
            if let Some(bytes) = before.get(path) {
                applied
                    .files
                    .entry(path.clone())
                    .or_insert_with(|| bytes.clone());
            }
        }
        let changes: Vec<Change<'_>> = applied
            .files
            .iter()
            .map(|(path, bytes)| Change {
                path,
                bytes: bytes.as_deref(),
                before: json!(digests.get(path.as_str()).copied().unwrap_or_default()),
                mode: applied.modes.get(path).copied(),
            })
            .collect();
        self.store(arguments.tool(), &changes)?;
        let mut text = String::from("applied\n");
        for (path, bytes) in &applied.files {
            let word = match (before.get(path).and_then(Option::as_ref), bytes) {
                (_, None) => "deleted",
                (None, Some(_)) => "added",
                (Some(_), Some(_)) => "changed",
            };
            let _ = writeln!(text, "{word} {}", shown::name(path));
        }
        for note in &applied.notes {
            let _ = writeln!(text, "note: {note}");
        }
        Ok(ToolOutput::ok(text))
    }

    pub(super) fn delete(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let path = arguments.text("path")?;
        let request = json!({
            "op": "delete", "path": path,
            "recursive": arguments.flag("recursive")?,
        });
        let answer = self.workspace(arguments.tool(), request, &[])?;
        Ok(ToolOutput::ok(format!(
            "deleted {} ({} entries)",
            shown::name(path),
            number(&answer, "removed")
        )))
    }
}
