//! Bundles below a directory, and files that belong to no complete bundle, as `wp-codebox/partial-artifact-discovery/v1`.

use rustix::fs::{FileType, Stat};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wp_codebox_artifacts::Dir;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Manifest};

/// Schema id of the document.
const PARTIAL_ARTIFACT_DISCOVERY: &str = "wp-codebox/partial-artifact-discovery/v1";
/// Maximum depth of directories below the one that `--artifacts` names.
const MAX_DEPTH: usize = 8;
/// Maximum number of entries that are examined.
const MAX_ENTRIES: usize = 20_000;
/// Maximum size of a manifest, in bytes.
const MAX_MANIFEST: u64 = 16 * 1024 * 1024;

/// What a search looks for.
#[derive(Debug)]
pub struct PartialSearch {
    /// Directory with bundles.
    pub artifacts: PathBuf,
    /// Id that a path contains, or that is the id of a bundle's run.
    pub session_id: Option<String>,
    /// Earliest modification time, in RFC 3339.
    pub started_at: Option<String>,
    /// Latest modification time, in RFC 3339.
    pub finished_at: Option<String>,
}

/// Lists the bundles below a directory and the files that belong to no complete bundle.
///
/// # Errors
/// `wp_codebox_input_invalid` if the directory cannot be read or a time is not valid.
pub fn discover_partial(args: &PartialSearch) -> Result<Value, ErrorBody> {
    let unreadable = |why: String| {
        let message = format!(
            "--artifacts {} cannot be read: {why}",
            args.artifacts.display()
        );
        ErrorBody::new(ErrorCode::InputInvalid, message)
    };
    let path = args
        .artifacts
        .canonicalize()
        .map_err(|e| unreadable(e.to_string()))?;
    let root = Dir::open(&path).map_err(|e| unreadable(e.to_string()))?;
    let mut search = Search {
        session: args.session_id.as_deref().filter(|id| !id.is_empty()),
        from: time("--started-at", args.started_at.as_deref())?,
        until: time("--finished-at", args.finished_at.as_deref())?,
        examined: 0,
        bundles: Vec::new(),
        files: Vec::new(),
        skipped: Vec::new(),
    };
    search.directory(&root, "", 0);
    Ok(search.document(&path.to_string_lossy(), args))
}

fn time(option: &str, given: Option<&str>) -> Result<Option<SystemTime>, ErrorBody> {
    let read = |text: &str| {
        humantime::parse_rfc3339_weak(text).map_err(|e| {
            let message =
                format!("{option} {text:?} is not a time such as 2026-11-26T08:00:00Z: {e}");
            ErrorBody::new(ErrorCode::InputInvalid, message)
        })
    };
    given.map(read).transpose()
}

/// Walks the directories and collects bundles and files that were modified between `from` and
/// `until` and whose path contains the session id, and bundles of the run with this id.
struct Search<'a> {
    session: Option<&'a str>,
    from: Option<SystemTime>,
    until: Option<SystemTime>,
    examined: usize,
    bundles: Vec<Value>,
    files: Vec<Value>,
    skipped: Vec<Value>,
}

impl Search<'_> {
    /// Examines a directory. Neither a link nor another file system is entered.
    fn directory(&mut self, dir: &Dir, path: &str, depth: usize) {
        if let Some(manifest) = manifest(dir) {
            return self.bundle(dir, path, &manifest);
        }
        let names = match dir.names() {
            Ok(names) => names,
            Err(e) => return self.skip(path, &format!("it cannot be read: {e}")),
        };
        for name in names {
            self.examined += 1;
            if self.examined > MAX_ENTRIES {
                return self.skip(
                    path,
                    &format!("one search examines at most {MAX_ENTRIES} files and directories; name a smaller directory with --artifacts"),
                );
            }
            // A name that is not UTF-8 is shown with replacement characters.
            let text = String::from_utf8_lossy(&name);
            let below = match path {
                "" => text.into_owned(),
                path => format!("{path}/{text}"),
            };
            let Ok(Some(stat)) = dir.stat(&name) else {
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if depth >= MAX_DEPTH => {
                    self.skip(&below, "it is too deep below the directory");
                }
                FileType::Directory => match dir.dir(&name) {
                    Ok(dir) => self.directory(&dir, &below, depth + 1),
                    Err(e) => self.skip(&below, &format!("it cannot be opened: {e}")),
                },
                FileType::RegularFile => self.file(&below, &stat),
                _ => {}
            }
        }
    }

    fn bundle(&mut self, dir: &Dir, path: &str, manifest: &Manifest) {
        let run = &manifest.runtime.id;
        let of_session = self
            .session
            .is_none_or(|session| path.contains(session) || *run == session);
        let Ok(Some(stat)) = dir.stat(b"manifest.json") else {
            return;
        };
        if of_session && self.is_in_time(&stat) {
            self.bundles.push(json!({
                "path": path,
                "id": manifest.id,
                "runtimeId": run,
                "createdAt": manifest.created_at,
                "modifiedAt": shown(modified(&stat)),
                "files": manifest.files.len(),
                "complete": true,
            }));
        }
    }

    fn file(&mut self, path: &str, stat: &Stat) {
        let of_session = self.session.is_none_or(|session| path.contains(session));
        if of_session && self.is_in_time(stat) {
            self.files.push(json!({
                "path": path,
                "kind": kind(path),
                "bytes": stat.st_size,
                "modifiedAt": shown(modified(stat)),
                "complete": false,
            }));
        }
    }

    fn is_in_time(&self, stat: &Stat) -> bool {
        let modified = modified(stat);
        self.from.is_none_or(|from| modified >= from)
            && self.until.is_none_or(|until| modified <= until)
    }

    fn skip(&mut self, path: &str, why: &str) {
        let shown = match path {
            "" => ".",
            path => path,
        };
        self.skipped.push(json!({
            "severity": "warning",
            "code": "not-examined",
            "path": shown,
            "message": format!("{shown} was not examined: {why}"),
        }));
    }

    fn document(&self, directory: &str, args: &PartialSearch) -> Value {
        let found = self.bundles.len() + self.files.len();
        json!({
            "success": true,
            "schema": PARTIAL_ARTIFACT_DISCOVERY,
            "status": if found == 0 { "none" } else { "found" },
            "artifactsDirectory": directory,
            "sessionId": args.session_id,
            "startedAt": args.started_at,
            "finishedAt": args.finished_at,
            "bundles": self.bundles,
            "artifacts": self.files,
            "summary": {"bundles": self.bundles.len(), "partial": self.files.len()},
            "diagnostics": self.skipped,
        })
    }
}

/// Returns the manifest of a complete bundle: one whose files all exist.
fn manifest(dir: &Dir) -> Option<Manifest> {
    let bytes = dir.file_bytes("manifest.json", MAX_MANIFEST).ok()?;
    let manifest: Manifest = serde_json::from_slice(&bytes).ok()?;
    let exists = |path: &str| {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let found = match parent {
            "" => dir.stat(name.as_bytes()),
            parent => dir
                .dir(parent.as_bytes())
                .and_then(|dir| dir.stat(name.as_bytes())),
        };
        matches!(found, Ok(Some(stat)) if FileType::from_raw_mode(stat.st_mode).is_file())
    };
    let complete = manifest.files.iter().all(|file| exists(&file.path));
    complete.then_some(manifest)
}

fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn shown(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Returns the kind of a file by its name.
fn kind(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        _ if name == "manifest.json" => "manifest",
        Some("json") => "json",
        Some("jsonl") => "events",
        Some("log" | "txt") => "log",
        Some("diff" | "patch") => "patch",
        Some("png" | "jpg" | "jpeg" | "webp") => "screenshot",
        Some(_) | None => "file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn search<'a>(root: &std::path::Path, session: Option<&'a str>) -> Search<'a> {
        let mut search = Search {
            session,
            from: None,
            until: None,
            examined: 0,
            bundles: Vec::new(),
            files: Vec::new(),
            skipped: Vec::new(),
        };
        search.directory(&Dir::open(root).unwrap(), "", 0);
        search
    }

    fn paths(rows: &[Value]) -> Vec<&str> {
        rows.iter().filter_map(|row| row["path"].as_str()).collect()
    }

    #[test]
    fn files_of_incomplete_bundles_are_found_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret.txt"), "x").unwrap();
        fs::create_dir_all(root.path().join("run_1f/files")).unwrap();
        fs::write(root.path().join("run_1f/files/patch.diff"), "x").unwrap();
        fs::write(root.path().join("run_1f/manifest.json"), "{").unwrap();
        fs::create_dir(root.path().join("run_2a")).unwrap();
        fs::write(root.path().join("run_2a/events.jsonl"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
        let all = search(root.path(), None);
        let expected = [
            "run_1f/files/patch.diff",
            "run_1f/manifest.json",
            "run_2a/events.jsonl",
        ];
        assert_eq!(paths(&all.files), expected);
        assert_eq!(all.files[2]["kind"], "events");
        assert_eq!(
            paths(&search(root.path(), Some("run_2a")).files),
            ["run_2a/events.jsonl"]
        );
        assert!(search(root.path(), Some("run_3")).files.is_empty());
    }

    #[test]
    fn file_modified_before_from_or_after_until_is_not_listed() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a.txt"), "x").unwrap();
        let found = |from: Option<&str>, until: Option<&str>| {
            let mut search = search(root.path(), None);
            (search.from, search.until) = (time("", from).unwrap(), time("", until).unwrap());
            search.files.clear();
            search.directory(&Dir::open(root.path()).unwrap(), "", 0);
            search.files.len()
        };
        assert_eq!(found(Some("2001-01-01T00:00:00Z"), None), 1);
        assert_eq!(found(Some("2101-01-01T00:00:00Z"), None), 0);
        assert_eq!(found(None, Some("2001-01-01 00:00:00")), 0);
        assert!(time("--started-at", Some("yesterday")).is_err());
    }
}
