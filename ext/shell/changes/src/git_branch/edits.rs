//! Converts the approved change to edits of a commit's tree.

use super::error::GitBranchError;
use super::program::Git;
use super::tree::{Tree, TreeFile};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{
    Conflict, FileMode, Node, Preflight, parse_patch, quote_name, unquote_name,
};
use wp_codebox_contracts::{ChangedFile, CodedError, ErrorBody, ErrorCode, SiteCommit};

/// New mode and contents of each changed file by path in the repository; `None` removes the file.
pub(super) type Edits = BTreeMap<Vec<u8>, Option<TreeFile>>;

/// Copies of those files of the tree that the change modifies, one directory for each mount. The
/// preflight compares them with the files that the run started from.
pub(super) struct Bases(BTreeMap<String, Base>);

struct Base {
    copy: PathBuf,
    /// Directory of the mount's code in the repository, with a slash at its end; empty for the
    /// root.
    prefix: Vec<u8>,
}

impl Bases {
    pub(super) fn copy(
        git: &Git<'_>,
        tree: &Tree,
        ready: &Preflight,
        request: &SiteCommit,
        work: &Path,
    ) -> Result<Self, ErrorBody> {
        let mut bases = BTreeMap::new();
        for patch in &ready.mount_patches {
            let mount = patch.mount_target.to_string();
            let Some(directory) = request.directories.get(&mount) else {
                let message = format!(
                    "it is not known which directory of the repository has the code of {mount}; set it in the settings of the git branch"
                );
                return Err(ErrorBody::new(ErrorCode::ApplyTargetMismatch, message));
            };
            let base = Base {
                copy: work.join(format!("base-{}", patch.mount_index)),
                prefix: prefix(directory)?,
            };
            let entries = || {
                let all = ready.changed_files.iter();
                all.filter(|entry| entry.mount_index == patch.mount_index)
            };
            let mut paths: Vec<Vec<u8>> = entries().map(raw).collect();
            // A patch of a renamed file needs the contents at its old path.
            let blocks = parse_patch(patch.patch.as_bytes());
            let blocks =
                blocks.map_err(|e| ErrorBody::new(ErrorCode::PatchUnfilterable, e.to_string()))?;
            paths.extend(blocks.into_iter().filter_map(|block| block.old_name));
            paths.sort();
            paths.dedup();
            let copied = fs::create_dir(&base.copy)
                .map_err(GitBranchError::from)
                .and_then(|()| tree.copy(git, &base.prefix, &paths, &base.copy));
            copied?;
            for entry in entries().filter(|e| e.before_mode.as_deref() == Some("040000")) {
                // Git stores no empty directories, so create the directories that the change
                // removes.
                let _ = fs::create_dir_all(base.copy.join(OsStr::from_bytes(&raw(entry))));
            }
            bases.insert(mount, base);
        }
        Ok(Self(bases))
    }

    pub(super) fn targets(&self) -> BTreeMap<String, PathBuf> {
        let rows = self.0.iter();
        rows.map(|(mount, base)| (mount.clone(), base.copy.clone()))
            .collect()
    }
}

/// Returns the edits of the tree. Writes all new contents into the repository as loose objects.
pub(super) fn edits(
    git: &Git<'_>,
    tree: &Tree,
    ready: &Preflight,
    bases: &Bases,
    work: &Path,
) -> Result<Edits, ErrorBody> {
    let failed = |e: GitBranchError| e.body();
    let mut edits = Edits::new();
    let mut blobs = Vec::new();
    let new = work.join("new");
    fs::create_dir(&new).map_err(|e| failed(e.into()))?;
    for patch in &ready.mount_patches {
        let Some(base) = bases.0.get(patch.mount_target.as_str()) else {
            continue;
        };
        let changes = ready.changes(patch, &base.copy)?;
        for entry in changes.entries {
            let full = [base.prefix.as_slice(), &entry.path].concat();
            let (mode, bytes) = match entry.change.after() {
                Some(Node::File { mode, bytes }) => (file_mode(*mode), bytes),
                Some(Node::Symlink { target }) => ("120000", target),
                Some(Node::Directory) | None => {
                    if tree.files.contains_key(&full) {
                        edits.insert(full, None);
                    }
                    continue;
                }
            };
            let file = new.join(blobs.len().to_string());
            fs::write(&file, bytes).map_err(|e| failed(e.into()))?;
            let same = ready.changed_files.iter().any(|file| {
                file.mount_index == patch.mount_index
                    && raw(file) == entry.path
                    && file.before_mode == file.after_mode
            });
            // If the run did not change the mode, keep the mode in the tree, which may be
            // different.
            let mode = match tree.files.get(&full) {
                Some(old) if same && mode != "120000" => old.mode.clone(),
                _ => mode.to_owned(),
            };
            blobs.push((full, mode, file));
        }
    }
    let names = blobs.iter().map(|(_, _, file)| file.to_string_lossy());
    let input = names.map(|name| format!("{name}\n")).collect::<String>();
    let write = ["hash-object", "-w", "--no-filters", "--stdin-paths"].map(OsStr::new);
    let output = git.run(&write, input.as_bytes()).map_err(failed)?;
    let output = String::from_utf8_lossy(&output);
    for ((path, mode, _), object) in blobs.into_iter().zip(output.lines()) {
        let file = TreeFile {
            mode,
            object: object.to_owned(),
        };
        if tree.files.get(&path) != Some(&file) {
            edits.insert(path, Some(file));
        }
    }
    check_places(tree, &edits).map_err(failed)?;
    Ok(edits)
}

const fn file_mode(mode: FileMode) -> &'static str {
    match mode {
        FileMode::Executable => "100755",
        FileMode::Regular => "100644",
    }
}

/// Fails if a new file would be below another file of the commit, or at the path of a directory.
fn check_places(tree: &Tree, edits: &Edits) -> Result<(), GitBranchError> {
    let stays = |path: &[u8]| match edits.get(path) {
        Some(edit) => edit.is_some(),
        None => tree.files.contains_key(path),
    };
    let mut conflicts = Vec::new();
    for (path, file) in edits {
        if file.is_none() {
            continue;
        }
        let cuts = path.iter().enumerate().filter(|(_, b)| **b == b'/');
        let below_file = { cuts }.any(|(at, _)| stays(&path[..at]));
        let start = [path.as_slice(), b"/"].concat();
        let mut below = tree.files.range(start.clone()..).map(|(path, _)| path);
        let over_directory = below
            .by_ref()
            .take_while(|path| path.starts_with(&start))
            .any(|path| stays(path));
        if below_file || over_directory {
            conflicts.push(Conflict {
                path: quote_name(path),
                reason: "another type",
            });
        }
    }
    match conflicts.first() {
        None => Ok(()),
        Some(first) => Err(GitBranchError::Conflict {
            count: conflicts.len(),
            first: first.path.clone(),
            conflicts,
        }),
    }
}

/// Returns the prefix of all paths in a directory of the repository: its path with a slash at the
/// end, or nothing for the root. Fails if the path has an empty, `.` or `..` segment or a control
/// character.
fn prefix(directory: &str) -> Result<Vec<u8>, GitBranchError> {
    if directory.is_empty() {
        return Ok(Vec::new());
    }
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    match directory.split('/').all(is_plain) && !directory.contains(char::is_control) {
        true => Ok(format!("{directory}/").into_bytes()),
        false => Err(GitBranchError::Name {
            what: format!(
                "the directory {directory:?} in the repository, which has an empty, . or .. part or a control character,"
            ),
        }),
    }
}

/// Returns the bytes of an entry's path relative to its mount.
fn raw(entry: &ChangedFile) -> Vec<u8> {
    let text = entry.relative_path.as_bytes();
    match entry.path_encoding.as_deref() {
        Some("git-quoted") => unquote_name(text).map_or_else(|| text.to_vec(), |(name, _)| name),
        _ => text.to_vec(),
    }
}

/// Returns the approved entries that git can store: all except directories.
pub(super) fn carried(ready: &Preflight) -> impl Iterator<Item = &ChangedFile> {
    let is_carried = |mode: &Option<String>| mode.as_deref().is_some_and(|mode| mode != "040000");
    ready.changed_files.iter().filter(move |entry| {
        let no_modes = entry.before_mode.is_none() && entry.after_mode.is_none();
        no_modes || is_carried(&entry.before_mode) || is_carried(&entry.after_mode)
    })
}
