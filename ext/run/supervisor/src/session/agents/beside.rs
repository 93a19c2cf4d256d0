//! What an agent changed beside the mounts, which are the result: the database of the guest and
//! files in its `wp-content`. It is named in the result and discarded with the guest.
//!
//! A program of the guest summarises the database, so this is a claim of the guest, for honest
//! agents: it keeps a result from saying that nothing was changed when an option was set.

use crate::prepared::context::RunContext;
use crate::session::guest::GuestContext;
use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use wp_codebox_backend_native::WP_CONTENT_LAYER;
use wp_codebox_contracts::{ErrorBody, ErrorCode, ExecutionId, OutputStream};
use wp_codebox_runtime::{CapturedMounts, Execution};

/// Maximum size of a summary in bytes.
const SUMMARY_BYTES: u64 = 1024 * 1024;
/// Maximum time for a summary.
const SUMMARY_TIME: Duration = Duration::from_secs(30);
/// Maximum number of names of one kind in a notice.
const NAMED: usize = 5;
/// Maximum number of files that are counted.
const MOST_FILES: usize = 10_000;
/// Maximum depth of a directory in `wp-content`.
const MOST_LEVELS: usize = 16;
/// Directory of the guest's `wp-content` in which WordPress or this product writes by itself.
const OWN: &[&str] = &["database", "upgrade", "mu-plugins/wp-codebox-guest.php"];

/// Summary of the database of a guest, as its program reports it.
#[derive(Debug, Default)]
pub(super) struct DatabaseSummary(Map<String, Value>);

/// Returns a summary of the guest's database; `None` if the database cannot be read. The program is
/// not a command of the run and not in its transcript.
pub(super) fn database(
    guest: &mut GuestContext<'_, '_>,
) -> Result<Option<DatabaseSummary>, ErrorBody> {
    let execution = Execution {
        id: ExecutionId::new("database-summary")
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?,
        argv: ["php", "/opt/codebox/guest/database-summary.php"]
            .map(str::to_owned)
            .into(),
        env: BTreeMap::new(),
        cwd: guest.run.cwd.clone(),
        stdin: None,
        output_bytes: SUMMARY_BYTES,
        stop_at: (Instant::now() + SUMMARY_TIME).min(guest.deadline()),
        deadline: guest.run.clock.deadline,
    };
    let mut printed = Vec::new();
    guest.runtime.execute(&execution, &mut |stream, bytes| {
        if let OutputStream::Stdout = stream {
            printed.extend_from_slice(bytes);
        }
    })?;
    Ok(serde_json::from_slice(&printed).ok().map(DatabaseSummary))
}

impl DatabaseSummary {
    /// Returns a notice on what differs in a later summary; `None` if nothing does.
    pub(super) fn difference(&self, later: &Self) -> Option<String> {
        let rows = |summary: &Map<String, Value>, name: &str| {
            summary
                .get(name)
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default()
        };
        let changed = |name: &str| {
            let (before, after) = (rows(&self.0, name), rows(&later.0, name));
            let mut names: Vec<String> = after
                .iter()
                .filter(|(name, value)| before.get(*name) != Some(value))
                .map(|(name, _)| name.clone())
                .collect();
            names.extend(
                before
                    .keys()
                    .filter(|name| !after.contains_key(*name))
                    .cloned(),
            );
            names
        };
        let options = changed("options");
        let mut tables = changed("tables");
        // The options are named one by one.
        tables.retain(|table| !table.ends_with("_options"));
        let parts = [("options", options), ("tables", tables)];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{what} {}", listed(&names)))
            .collect();
        (!parts.is_empty()).then(|| {
            format!(
                "while the agent worked, the sandbox's database changed ({}); the result has files of the mounts only",
                parts.join("; ")
            )
        })
    }
}

/// Returns a notice on files that were changed in `wp-content` outside of the mounts; `None` if
/// there are none, or if the guest's level does not tell.
pub(crate) fn content(context: &RunContext<'_>, left: &CapturedMounts) -> Option<String> {
    let CapturedMounts::Layers(layers) = left else {
        return None;
    };
    let top = layers.get(&WP_CONTENT_LAYER)?;
    let mounted = context.shown().filter_map(|mount| {
        let below = mount
            .mount
            .target
            .as_str()
            .strip_prefix("/wordpress/wp-content/")?;
        Some(below.to_owned())
    });
    let skipped: Vec<String> = mounted
        .chain(OWN.iter().map(|own| (*own).to_owned()))
        .collect();
    let mut files = Vec::new();
    let directory = openat(
        top.as_fd(),
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    walk(directory, "", &skipped, &mut files);
    files.sort();
    (!files.is_empty()).then(|| {
        format!(
            "files outside of the mounts were changed in wp-content and are not in the result: {}",
            listed(&files)
        )
    })
}

/// Adds the paths of all entries below the directory that are not directories.
fn walk(directory: OwnedFd, at: &str, skipped: &[String], files: &mut Vec<String>) {
    let Ok(entries) = Dir::read_from(&directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy();
        if matches!(&*name, "." | "..") || files.len() >= MOST_FILES {
            continue;
        }
        let path = match at {
            "" => name.into_owned(),
            at => format!("{at}/{name}"),
        };
        if skipped.contains(&path) {
            continue;
        }
        match opened(directory.as_fd(), &entry) {
            Some(inner) if path.matches('/').count() < MOST_LEVELS => {
                walk(inner, &path, skipped, files)
            }
            Some(_) => {}
            None => files.push(path),
        }
    }
}

/// Opens the entry if it is a directory.
fn opened(directory: BorrowedFd<'_>, entry: &rustix::fs::DirEntry) -> Option<OwnedFd> {
    let may_be = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    may_be.then(|| openat(directory, entry.file_name(), flags, Mode::empty()).ok())?
}

fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    super::answer::sentence(&shown.join(", ")) + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summary(document: Value) -> DatabaseSummary {
        DatabaseSummary(document.as_object().cloned().unwrap())
    }

    #[test]
    fn difference_of_two_summaries_names_changed_options_and_tables() {
        let before = || {
            summary(json!({
                "tables": {"wp_posts": {"rows": 1, "digest": "a"}, "wp_options": {"rows": 2}},
                "options": {"blogname": "x", "gone": "y"},
            }))
        };
        assert_eq!(before().difference(&before()), None);
        let after = summary(json!({
            "tables": {"wp_posts": {"rows": 2, "digest": "b"}, "wp_options": {"rows": 3}, "wp_new": {"rows": 0}},
            "options": {"blogname": "z", "added": "1"},
        }));
        let notice = before().difference(&after).unwrap();
        assert!(
            notice.contains("(options blogname, added, gone; tables wp_posts, wp_new)"),
            "{notice}"
        );
        let many: Map<String, Value> = (0..9).map(|n| (format!("o{n}"), json!("1"))).collect();
        let notice = before()
            .difference(&summary(json!({"options": many})))
            .unwrap();
        assert!(notice.contains("o0, o1, o2, o3, o4 and 6 more"), "{notice}");
    }

    #[test]
    fn changed_files_are_found_below_directories_without_following_links() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("uploads/2026")).unwrap();
        std::fs::create_dir_all(root.path().join("plugins/mounted")).unwrap();
        std::fs::write(root.path().join("uploads/2026/a.png"), "").unwrap();
        std::fs::write(root.path().join("plugins/mounted/x.php"), "").unwrap();
        std::os::unix::fs::symlink("/etc", root.path().join("uploads/link")).unwrap();
        let open = std::fs::File::open(root.path()).unwrap();
        let mut files = Vec::new();
        walk(open.into(), "", &["plugins/mounted".to_owned()], &mut files);
        files.sort();
        assert_eq!(files, ["uploads/2026/a.png", "uploads/link"]);
    }
}
