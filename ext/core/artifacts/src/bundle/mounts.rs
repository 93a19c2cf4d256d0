//! Bundle files about mounts: list of mounts, patches, copies of changed files, and the blueprint.

use super::inputs::{BundleInputs, BundleMount, RenameMode};
use super::records::Scrubber;
use crate::capture::{Change, FileMode, Node};
use crate::changed_files::{MountNames, document_name, mount_entries, mount_patch_path};
use crate::digest::sha256;
use crate::patch::{RenderedPatch, find_renames, render_mount_patch};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wp_codebox_contracts::ChangedFile;
use wp_codebox_policy::Redactor;

/// Maximum number of copies of changed files in `files/mounts/`. Further files are only in the
/// patch.
const MAX_COPIES: usize = 200;
/// Maximum size of a file that is copied to `files/mounts/`, in bytes.
const MAX_COPY: usize = 1024 * 1024;
/// Maximum total size of the copies in `files/mounts/`, in bytes.
const MAX_COPIES_TOTAL: usize = 32 * 1024 * 1024;
/// Maximum length of a file name below `files/mounts/`, in bytes: the limit of most file systems.
const MAX_NAME: usize = 255;
/// Maximum length of the path of a copy in the bundle, in bytes.
const MAX_PATH: usize = 2000;
/// Maximum total size of file contents in `blueprint.after.json` in bytes.
const MAX_BLUEPRINT: usize = 1024 * 1024;
/// Maximum number of omitted paths that a bundle lists for one mount.
const MAX_OMITTED: usize = 500;

/// The changes of all mounts as patches, lists and file copies for a bundle.
#[derive(Default)]
pub(super) struct ChangeSet {
    /// Content of `files/patch.diff`.
    pub patch: Vec<u8>,
    pub entries: Vec<ChangedFile>,
    /// For each path in `changed-files.json`: lines before the change plus lines after it.
    pub line_totals: BTreeMap<String, u64>,
    /// Path and content of each `files/diffs/mount-<N>.patch`.
    pub mount_patches: Vec<(String, Vec<u8>)>,
    /// Path, content and media type of each copy of a changed file, `files/mounts/<N>/…`.
    pub copies: Vec<(String, Vec<u8>, &'static str)>,
    /// Content of `files/mounted-files.json`.
    pub mounted_files: Value,
    /// Content of `files/diffs.json`.
    pub diffs: Value,
}

/// Converts the changes of every captured mount to patches, lists and file copies for a bundle.
pub(super) fn change_set(inputs: &BundleInputs, redactor: &Redactor) -> ChangeSet {
    let mut set = ChangeSet::default();
    let mut copies = Copies::new(redactor);
    let mut diffs = Vec::new();
    for mount in &inputs.mounts {
        let mut row = Map::new();
        row.insert("mountIndex".into(), mount.index.into());
        row.insert("target".into(), mount.target.as_str().into());
        if let Some(changes) = &mount.changes {
            let changed = !changes.entries.is_empty();
            if changed {
                add_mount(&mut set, mount, mount_names(inputs, mount), inputs.renames);
                copies.add(mount);
                row.insert("artifactPath".into(), mount_patch_path(mount.index).into());
            }
            row.insert("changed".into(), changed.into());
            let status = if changed { "changed" } else { "unchanged" };
            row.insert("status".into(), status.into());
        } else {
            row.insert("changed".into(), false.into());
            row.insert("status".into(), "skipped".into());
            row.insert("reason".into(), "not-captured".into());
        }
        diffs.push(Value::Object(row));
    }
    set.diffs = Value::Array(diffs);
    set.mounted_files = copies.document();
    set.copies = copies.stored;
    set
}

/// Returns index, guest path and patch prefix of a mount. The names of the mount's files in the
/// bundle are derived from them.
pub(super) fn mount_names(inputs: &BundleInputs, mount: &BundleMount) -> MountNames {
    let captured = inputs.mounts.iter().filter(|m| m.changes.is_some()).count();
    MountNames {
        index: mount.index,
        target: mount.target.clone(),
        // With only one captured mount, file names in the patch have no prefix, as other
        // implementations of the format expect. With several, each mount has its own prefix, so
        // that equal file names do not collide.
        prefix: if captured > 1 {
            format!("{}/", mount.target.as_str().trim_start_matches('/'))
        } else {
            String::new()
        },
    }
}

fn add_mount(set: &mut ChangeSet, mount: &BundleMount, names: MountNames, renames: RenameMode) {
    let Some(changes) = &mount.changes else {
        return;
    };
    let pairs = match renames {
        RenameMode::Separate => Vec::new(),
        RenameMode::Detect => find_renames(changes),
    };
    let patch = render_mount_patch(changes, &names.prefix, &pairs);
    let entries = mount_entries(&names, changes, &patch, &pairs);
    for (entry, change) in entries.iter().zip(&changes.entries) {
        let sides = [change.change.before(), change.change.after()];
        let lines = sides
            .into_iter()
            .flatten()
            .filter_map(Node::blob)
            .map(line_count);
        set.line_totals.insert(entry.path.clone(), lines.sum());
    }
    set.entries.extend(entries);
    let own: RenderedPatch = if names.prefix.is_empty() {
        patch.clone()
    } else {
        render_mount_patch(changes, "", &pairs)
    };
    set.patch.extend_from_slice(&patch.bytes);
    set.mount_patches
        .push((mount_patch_path(mount.index), own.bytes));
}

fn line_count(bytes: &[u8]) -> u64 {
    bytes.split_inclusive(|b| *b == b'\n').count() as u64
}

/// Builds the lines of `files/mounts.jsonl`, one per mount.
pub(super) fn mount_rows(inputs: &BundleInputs, scrub: &Scrubber<'_>) -> Vec<Value> {
    inputs
        .mounts
        .iter()
        .map(|mount| {
            let mut row = Map::new();
            row.insert("index".into(), mount.index.into());
            row.insert("type".into(), "directory".into());
            row.insert("target".into(), mount.target.as_str().into());
            row.insert("mode".into(), json!(mount.access));
            row.insert("view".into(), json!(mount.view));
            row.insert("git".into(), json!(mount.git));
            row.insert("captured".into(), mount.changes.is_some().into());
            row.insert("excluded".into(), mount.exclude.names().into());
            if mount.left_out.count() > 0 {
                let listed = mount
                    .left_out
                    .rows()
                    .take(MAX_OMITTED)
                    .map(|(path, reason)| json!({"path": scrub.text(&path), "reason": reason}));
                row.insert("leftOut".into(), listed.collect());
                row.insert("leftOutCount".into(), mount.left_out.count().into());
            }
            if let Some(changes) = mount.changes.as_ref().filter(|c| !c.omitted.is_empty()) {
                let listed = changes.omitted.iter().take(MAX_OMITTED).map(|omitted| {
                    let path = scrub.text(&document_name(&omitted.path).0);
                    json!({"path": path, "reason": omitted.reason.as_str()})
                });
                row.insert("omitted".into(), listed.collect());
                row.insert("omittedCount".into(), changes.omitted.len().into());
            }
            if let Some(metadata) = mount.metadata.as_ref().filter(|m| !m.is_empty()) {
                row.insert("metadata".into(), Value::Object(scrub.map(metadata)));
            }
            Value::Object(row)
        })
        .collect()
}

struct Copies<'r> {
    redactor: &'r Redactor,
    stored: Vec<(String, Vec<u8>, &'static str)>,
    rows: Vec<Value>,
    skipped: Vec<Value>,
    total: usize,
}

impl<'r> Copies<'r> {
    const fn new(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            stored: Vec::new(),
            rows: Vec::new(),
            skipped: Vec::new(),
            total: 0,
        }
    }

    fn add(&mut self, mount: &BundleMount) {
        for entry in mount.changes.iter().flat_map(|c| &c.entries) {
            let Some(Node::File { bytes, .. }) = entry.change.after() else {
                continue;
            };
            let relative = document_name(&entry.path).0;
            let path = format!(
                "files/mounts/{}/{}",
                mount.index,
                percent_encode(&entry.path)
            );
            let reason = if self.stored.len() >= MAX_COPIES {
                Some("max-files-exceeded")
            } else if bytes.len() > MAX_COPY {
                Some("max-file-bytes-exceeded")
            } else if self.total + bytes.len() > MAX_COPIES_TOTAL {
                Some("max-total-bytes-exceeded")
            } else if path.len() > MAX_PATH || path.split('/').any(|part| part.len() > MAX_NAME) {
                Some("name-too-long")
            } else if self.redactor.find(bytes).is_some() {
                Some("contains-secret")
            } else {
                None
            };
            if let Some(reason) = reason {
                self.skipped.push(json!({
                    "mountIndex": mount.index, "target": mount.target, "relativePath": relative, "reason": reason,
                }));
                continue;
            }
            let media = media_type(bytes);
            self.rows.push(json!({
                "mountIndex": mount.index, "target": mount.target, "relativePath": relative, "artifactPath": path,
                "size": bytes.len(), "sha256": sha256(bytes), "contentType": media, "replayable": true,
            }));
            self.total += bytes.len();
            self.stored.push((path, bytes.clone(), media));
        }
    }

    fn document(&mut self) -> Value {
        json!({
            "files": std::mem::take(&mut self.rows),
            "skipped": std::mem::take(&mut self.skipped),
            "limits": {
                "maxFiles": MAX_COPIES, "maxFileBytes": MAX_COPY, "maxTotalBytes": MAX_COPIES_TOTAL,
                "skippedDirectories": [".git"],
            },
        })
    }
}

fn media_type(bytes: &[u8]) -> &'static str {
    if !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok() {
        "text/plain; charset=utf-8"
    } else {
        "application/octet-stream"
    }
}

/// Encodes a path with ASCII letters, digits, `.`, `_`, `-` and `/`; every other byte becomes
/// `%XX`.
pub(crate) fn percent_encode(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for &byte in path {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'/' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Builds `blueprint.after.json`: steps that repeat the changes of text files on a fresh
/// WordPress. If the blueprint and the patch differ, the patch is correct.
pub(super) fn blueprint(inputs: &BundleInputs, redactor: &Redactor) -> Value {
    let mut steps = Vec::new();
    let mut left_out = 0_u64;
    let mut total = 0;
    for mount in &inputs.mounts {
        for entry in mount.changes.iter().flat_map(|c| &c.entries) {
            let Ok(relative) = std::str::from_utf8(&entry.path) else {
                left_out += 1;
                continue;
            };
            let path = format!("{}/{relative}", mount.target);
            match (&entry.change, entry.change.after()) {
                (Change::Deleted(Node::Directory), _) => {
                    steps.push(json!({"step": "rmdir", "path": path}));
                }
                (_, None) => steps.push(json!({"step": "rm", "path": path})),
                (_, Some(Node::Directory)) => steps.push(json!({"step": "mkdir", "path": path})),
                (_, Some(Node::File { bytes, mode })) => match std::str::from_utf8(bytes) {
                    Ok(text)
                        if *mode == FileMode::Regular
                            && total + text.len() <= MAX_BLUEPRINT
                            && redactor.find(bytes).is_none() =>
                    {
                        total += text.len();
                        steps.push(json!({"step": "writeFile", "path": path, "data": text}));
                    }
                    _ => left_out += 1,
                },
                (_, Some(Node::Symlink { .. })) => left_out += 1,
            }
        }
    }
    let environment = &inputs.runtime.environment;
    let php = environment.php_version.as_deref().unwrap_or("latest");
    let php = php.split('.').take(2).collect::<Vec<_>>().join(".");
    json!({
        "meta": {
            "title": "State after the run",
            "description": format!("{left_out} changed paths are in files/patch.diff only."),
        },
        "preferredVersions": {
            "php": php,
            "wp": environment.version.as_deref().unwrap_or("latest"),
        },
        "steps": steps,
    })
}
