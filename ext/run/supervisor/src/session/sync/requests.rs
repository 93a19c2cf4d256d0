//! Handles sync requests: files into a held sandbox and out of it.
//!
//! In: a guest program writes the files as the guest's own user. If hostile code in the guest
//! changes directories meanwhile, paths still resolve inside the guest; no host file is opened for
//! writing. Out: differences from the mounts' sources are read on the host, like the final capture;
//! whole trees and single files come from the guest program and are untrusted. Every transferred
//! file is recorded as an event.

use super::program::{Answer, REPLY_TIMEOUT, SyncProgram};
use crate::captured::look;
use crate::session::Session;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use wp_codebox_artifacts::{Change, EntryChange, FileMode, Node, sha256};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, EventType, GuestPath, MAX_LIVE_LINE, MountAccess, SyncIn, SyncOut,
    schema_id,
};

/// Maximum size of a transferred file, in bytes. A file of this size, encoded in base64, still fits
/// into one line of the live protocol.
pub const FILE_BYTES: usize = 1_408 * 1024;
/// Maximum number of files that the list of a file tree contains.
const TREE_FILES: u64 = 50_000;
/// Maximum length of a reply to a client, in bytes.
const ANSWER_BYTES: usize = MAX_LIVE_LINE - 4096;

impl Session<'_, '_> {
    /// Writes or deletes one file within `left`, the remaining lifetime of the sandbox.
    pub(crate) fn sync_in(
        &mut self,
        request: &SyncIn,
        actor: &str,
        left: Duration,
    ) -> Result<Value, ErrorBody> {
        let until = Instant::now() + left;
        let path = self.writable(&request.path)?;
        if let Some(base) = &request.base_sha256 {
            let digest = base.len() == 64 && base.bytes().all(|b| b.is_ascii_hexdigit());
            if !base.is_empty() && !digest {
                return Err(invalid(
                    "base_sha256 must be 64 hex digits, or empty if the file must not exist",
                ));
            }
        }
        let base = request
            .base_sha256
            .as_ref()
            .map(|base| base.to_ascii_lowercase());
        let mut answer = json!({
            "schema": schema_id::SANDBOX_SYNC, "direction": "in", "path": path,
        });
        let mut event = json!({"direction": "in", "path": path, "actor": actor});
        let done = match &request.base64 {
            Some(base64) => {
                let bytes = STANDARD
                    .decode(base64)
                    .map_err(|_| invalid("the content is not base64"))?;
                if bytes.len() > FILE_BYTES {
                    return Err(too_large(path.as_str()));
                }
                let digest = sha256(&bytes);
                answer["sha256"] = json!(digest);
                answer["bytes"] = json!(bytes.len());
                event["sha256"] = json!(digest);
                let mode = if request.executable { 0o755 } else { 0o644 };
                let question = json!({
                    "op": "put", "path": path, "length": bytes.len(), "sha256": base, "mode": mode,
                });
                self.ask_sync(&question, &bytes, until)?
            }
            None => {
                let question = json!({"op": "remove", "path": path, "sha256": base});
                self.ask_sync(&question, &[], until)?
            }
        };
        let members = accepted(done, &path, base.as_deref())?.members;
        answer["existed"] = json!(members.get("existed") == Some(&Value::Bool(true)));
        self.recorder.event(EventType::FilesSynced, None, event)?;
        Ok(answer)
    }

    /// Returns changes, a file list or one file of the sandbox. `left` is the remaining lifetime of
    /// the sandbox.
    pub(crate) fn sync_out(
        &mut self,
        request: &SyncOut,
        actor: &str,
        left: Duration,
    ) -> Result<Value, ErrorBody> {
        let until = Instant::now() + left;
        let below = match &request.path {
            Some(path) => Some(self.writable(path)?),
            None => None,
        };
        let mut answer = json!({
            "schema": schema_id::SANDBOX_SYNC, "direction": "out", "mounts": self.places(),
        });
        if let Some(below) = &below {
            answer["path"] = json!(below);
        }
        let mut left_out = Vec::new();
        let rows = match (&below, request.content, request.everything) {
            (Some(path), true, _) => match self.one_file(path, actor, until)? {
                Some(row) => vec![row],
                None => self.changes(below.as_ref())?,
            },
            (None, true, _) => {
                return Err(invalid(
                    "content can be requested for one file only: set `path` to this file",
                ));
            }
            (_, false, true) => {
                let tree = self.tree(below.as_ref(), until)?;
                left_out = tree.left_out;
                tree.files
            }
            (_, false, false) => self.changes(below.as_ref())?,
        };
        answer["files"] = json!(rows);
        if !left_out.is_empty() {
            answer["leftOut"] = json!(left_out);
        }
        if serde_json::to_string(&answer).map_or(0, |text| text.len()) > ANSWER_BYTES {
            return Err(invalid(
                "there are too many files for one answer: set the path to a subdirectory",
            ));
        }
        Ok(answer)
    }

    /// Returns the targets of the writable mounts. Replies name files below these paths.
    fn places(&self) -> Vec<&GuestPath> {
        let mounts = self.context.guest_mounts.iter();
        mounts
            .filter(|mount| mount.access == MountAccess::Readwrite)
            .map(|mount| &mount.target)
            .collect()
    }

    /// Checks that the path lies in a writable mount, and returns the file's path below the mount's
    /// target, which replies use.
    fn writable(&self, path: &GuestPath) -> Result<GuestPath, ErrorBody> {
        for mount in &self.context.guest_mounts {
            if mount.access != MountAccess::Readwrite {
                continue;
            }
            for name in mount.names() {
                if name.contains(path) {
                    let rest = path.as_str().get(name.as_str().len()..).unwrap_or_default();
                    return GuestPath::new(format!("{}{rest}", mount.target.as_str()))
                        .map_err(|e| invalid(&e.to_string()));
                }
            }
        }
        let places: Vec<&str> = self.places().iter().map(|path| path.as_str()).collect();
        Err(invalid(&format!("{path} is not below a writable mount"))
            .hint(format!("writable mounts: {}", places.join(", "))))
    }

    /// Returns one file with its content; `None` when there is no regular file at this path.
    fn one_file(
        &mut self,
        path: &GuestPath,
        actor: &str,
        until: Instant,
    ) -> Result<Option<Value>, ErrorBody> {
        let question = json!({"op": "read", "path": path, "most": FILE_BYTES});
        let answer = self.ask_sync(&question, &[], until)?;
        let code = answer.members.get("code").and_then(Value::as_str);
        match code {
            Some("kind" | "missing") => return Ok(None),
            Some("limit") => return Err(too_large(path.as_str())),
            Some(_) | None => {}
        }
        let answer = accepted(answer, path, None)?;
        let digest = sha256(&answer.bytes);
        let event = json!({"direction": "out", "path": path, "sha256": digest, "actor": actor});
        self.recorder.event(EventType::FilesSynced, None, event)?;
        Ok(Some(json!({
            "path": path, "sha256": digest, "bytes": answer.bytes.len(),
            "executable": answer.members.get("executable") == Some(&Value::Bool(true)),
            "base64": STANDARD.encode(&answer.bytes),
        })))
    }

    /// Returns the list of files that the guest program reports. `below` restricts it to one
    /// directory.
    fn tree(&mut self, below: Option<&GuestPath>, until: Instant) -> Result<Tree, ErrorBody> {
        let tops: Vec<GuestPath> = match below {
            Some(path) => vec![path.clone()],
            None => self.places().into_iter().cloned().collect(),
        };
        let mut tree = Tree::default();
        for top in tops {
            let question = json!({"op": "tree", "path": top, "most": TREE_FILES});
            let answer = accepted(self.ask_sync(&question, &[], until)?, &top, None)?;
            let list = |name: &str| answer.members.get(name).and_then(Value::as_array);
            let files = list("files").into_iter().flatten();
            tree.files
                .extend(files.filter_map(|row| tree_row(&top, row)));
            let left = list("left").into_iter().flatten();
            tree.left_out
                .extend(left.filter_map(|row| left_row(&top, row)));
        }
        Ok(tree)
    }

    /// Returns how the mounts differ from their sources, read on the host. `below` restricts this
    /// to one directory.
    fn changes(&mut self, below: Option<&GuestPath>) -> Result<Vec<Value>, ErrorBody> {
        let seen = look(self.context, self.guest.runtime.as_ref())?;
        let mut rows = Vec::new();
        for (changes, mount) in seen.iter().zip(&self.context.guest_mounts) {
            for entry in changes.iter().flat_map(|changes| &changes.entries) {
                let Ok(name) = std::str::from_utf8(&entry.path) else {
                    continue;
                };
                let Ok(path) = GuestPath::new(format!("{}/{name}", mount.target.as_str())) else {
                    continue;
                };
                if below.is_none_or(|below| below.contains(&path)) {
                    rows.extend(change_row(&path, entry));
                }
            }
        }
        Ok(rows)
    }
}

impl Session<'_, '_> {
    /// Sends a request to the transfer program, which is started if necessary. A program that fails
    /// is killed; the next request starts another.
    fn ask_sync(
        &mut self,
        question: &Value,
        bytes: &[u8],
        until: Instant,
    ) -> Result<Answer, ErrorBody> {
        let until = until.min(Instant::now() + REPLY_TIMEOUT);
        let mut program = match self.guest.syncing.take() {
            Some(program) => program,
            None => {
                self.guest.syncs += 1;
                let (mounts, runtime) = (&self.context.guest_mounts, self.guest.runtime.as_mut());
                SyncProgram::start(self.guest.syncs, mounts, runtime, until)?
            }
        };
        match program.ask(question, bytes, until) {
            Ok(answer) => {
                self.guest.syncing = Some(program);
                Ok(answer)
            }
            Err(why) => {
                let _ = self.guest.runtime.stop(&program.id);
                let message = format!("files cannot be synced: {why}");
                Err(ErrorBody::new(ErrorCode::RunFailed, message))
            }
        }
    }

    /// Stops the transfer program, for example before a snapshot. The next transfer starts it
    /// again.
    pub(crate) fn stop_sync_program(&mut self) {
        if let Some(program) = self.guest.syncing.take() {
            let _ = self.guest.runtime.stop(&program.id);
        }
    }
}

/// List of files that the guest program reports.
#[derive(Debug, Default)]
struct Tree {
    /// Rows of all regular files.
    files: Vec<Value>,
    /// Rows of other entries, with the reason why they cannot be transferred.
    left_out: Vec<Value>,
}

/// Validates the guest program's row about a file; `None` when it is invalid.
fn tree_row(top: &GuestPath, file: &Value) -> Option<Value> {
    let path = GuestPath::new(file.get(0)?.as_str()?).ok()?;
    let digest = file.get(1)?.as_str()?;
    let known = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    (top.contains(&path) && known).then(|| {
        json!({
            "path": path, "sha256": digest, "bytes": file.get(2).and_then(Value::as_u64),
            "executable": file.get(3) == Some(&Value::Bool(true)),
        })
    })
}

/// Validates a row about an entry that cannot be transferred. The entry's name may be invalid as a
/// path.
fn left_row(top: &GuestPath, row: &Value) -> Option<Value> {
    let path = row.get(0)?.as_str()?;
    let below = path.strip_prefix(top.as_str())?;
    let reason = match row.get(1)?.as_str()? {
        "name" => "its name cannot be transferred",
        "kind" => "it is not a regular file in the sandbox",
        "unreadable" => "it cannot be read in the sandbox",
        _ => return None,
    };
    (below.is_empty() || below.starts_with('/')).then(|| json!({"path": path, "reason": reason}))
}

/// Returns the row about a change; `None` for a directory, which is implied by the files in it.
fn change_row(path: &GuestPath, entry: &EntryChange) -> Option<Value> {
    let status = match entry.change {
        Change::Added(_) => "added",
        Change::Modified { .. } => "modified",
        Change::Deleted(_) => "deleted",
    };
    let mut row = Map::new();
    row.insert("path".to_owned(), json!(path));
    row.insert("status".to_owned(), json!(status));
    let mut files = 0;
    if let Some(Node::File { bytes, .. }) = entry.change.before() {
        row.insert("sourceSha256".to_owned(), json!(sha256(bytes)));
        files += 1;
    }
    match entry.change.after() {
        Some(Node::File { mode, bytes }) => {
            row.insert("sha256".to_owned(), json!(sha256(bytes)));
            row.insert("bytes".to_owned(), json!(bytes.len()));
            row.insert(
                "executable".to_owned(),
                json!(*mode == FileMode::Executable),
            );
            files += 1;
        }
        Some(Node::Symlink { .. }) => {
            row.insert("link".to_owned(), json!(true));
            files += 1;
        }
        Some(Node::Directory) | None => {}
    }
    (files > 0).then_some(Value::Object(row))
}

/// Returns the reply of the guest program, or an error if it refused the request.
fn accepted(answer: Answer, path: &GuestPath, expected: Option<&str>) -> Result<Answer, ErrorBody> {
    if answer.members.get("ok") == Some(&Value::Bool(true)) {
        return Ok(answer);
    }
    let text = |name: &str| {
        answer
            .members
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let message: String = text("message").chars().take(500).collect();
    match text("code") {
        "changed" => {
            let found: String = text("found").chars().take(64).collect();
            let message = format!(
                "{path} in the sandbox differs from the version that the client last synced"
            );
            Err(ErrorBody::new(ErrorCode::SyncConflict, message)
                .hint(
                    "compare the client's file with the sandbox's file, then sync the one to keep",
                )
                .with("path", path.as_str())
                .with("expected", expected.unwrap_or_default())
                .with("found", found))
        }
        "limit" | "outside" | "git" | "kind" | "request" | "missing" => Err(invalid(&message)),
        _ => Err(ErrorBody::new(ErrorCode::RunFailed, message)),
    }
}

fn too_large(path: &str) -> ErrorBody {
    let most = FILE_BYTES / 1024;
    invalid(&format!(
        "{path} is larger than {most} KiB, the limit of a sync"
    ))
    .hint("start the sandbox with this file as a staged file or in a mount")
}

fn invalid(message: &str) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_files_outside_the_requested_directory_or_with_invalid_digests_are_dropped() {
        let top = GuestPath::new("/workspace/x").unwrap();
        let digest = "0".repeat(64);
        let row = |path: &str, digest: &str| tree_row(&top, &json!([path, digest, 3, true]));
        let good = row("/workspace/x/a", &digest).unwrap();
        assert_eq!(
            (&good["bytes"], &good["executable"]),
            (&json!(3), &json!(true))
        );
        for path in ["/workspace/xy/a", "/etc/a", "/workspace/x/../a", "a", ""] {
            assert_eq!(row(path, &digest), None, "{path}");
        }
        for digest in ["", "x", &"g".repeat(64), &"0".repeat(63)] {
            assert_eq!(row("/workspace/x/a", digest), None, "{digest}");
        }
        assert_eq!(tree_row(&top, &json!({"path": "/workspace/x/a"})), None);
        let left = |path: &str, why: &str| left_row(&top, &json!([path, why]));
        assert!(left("/workspace/x/a\nb", "name").is_some());
        assert!(left("/workspace/x", "unreadable").is_some());
        assert_eq!(left("/workspace/xy", "name"), None);
        assert_eq!(left("/workspace/x/a", "\u{1b}[2J"), None);
    }
}
