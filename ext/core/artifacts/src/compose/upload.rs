//! Checks of uploaded paths and contents.

use super::ComposeError;
use super::root::{ComposeRoot, ComposeScope};
use crate::capture::is_git_directory;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of uploaded and deleted files.
pub const MAX_UPLOADED_FILES: usize = 5_000;
/// Maximum size of all uploaded files together in bytes.
pub const MAX_UPLOADED_BYTES: usize = 50 * 1024 * 1024;
/// Maximum length of an uploaded path in bytes.
const MAX_PATH: usize = 1_024;
/// Maximum length of one component of a path in bytes, as in most file systems.
const MAX_NAME: usize = 255;

/// A file that a browser uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadedFile {
    /// Path below `wp-content`, e.g. `plugins/foo/foo.php`.
    pub path: String,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

/// The uploaded part of one directory. Paths are relative to the directory.
#[derive(Debug, Default)]
pub(super) struct RootUpload {
    pub files: BTreeMap<String, Vec<u8>>,
    pub deleted: BTreeSet<String>,
}

/// Checks paths and limits, and assigns each path to its directory. A directory with an empty name
/// stands for every path.
pub(super) fn assign(
    roots: &[ComposeRoot],
    files: Vec<UploadedFile>,
    deleted: Vec<String>,
) -> Result<Vec<RootUpload>, ComposeError> {
    if files.is_empty() && deleted.is_empty() {
        return Err(ComposeError::NoFiles);
    }
    if files.len().saturating_add(deleted.len()) > MAX_UPLOADED_FILES {
        return Err(ComposeError::TooMany {
            limit: MAX_UPLOADED_FILES,
        });
    }
    let sizes = files.iter().map(|file| file.bytes.len());
    if sizes.fold(0, usize::saturating_add) > MAX_UPLOADED_BYTES {
        return Err(ComposeError::TooLarge {
            limit: MAX_UPLOADED_BYTES,
        });
    }
    let mut uploads: Vec<RootUpload> = roots.iter().map(|_| RootUpload::default()).collect();
    for UploadedFile { path, bytes } in files {
        let (upload, relative) = place(roots, &mut uploads, &path)?;
        if upload.files.insert(relative, bytes).is_some() {
            return Err(twice(&path));
        }
    }
    for path in deleted {
        let (upload, relative) = place(roots, &mut uploads, &path)?;
        if upload.files.contains_key(&relative) || !upload.deleted.insert(relative) {
            return Err(twice(&path));
        }
    }
    Ok(uploads)
}

fn twice(path: &str) -> ComposeError {
    ComposeError::Duplicate {
        path: shown(path),
        other: shown(path),
    }
}

fn place<'u>(
    roots: &[ComposeRoot],
    uploads: &'u mut [RootUpload],
    path: &str,
) -> Result<(&'u mut RootUpload, String), ComposeError> {
    check(path)?;
    let below = |root: &ComposeRoot| {
        let relative = match root.name.as_str() {
            "" => path,
            name => path.strip_prefix(name)?.strip_prefix('/')?,
        };
        match &root.scope {
            ComposeScope::Everything => Some(relative),
            ComposeScope::Files(files) => files.contains(relative).then_some(relative),
        }
    };
    let named = roots.iter().zip(uploads);
    let fitting = named.filter_map(|(root, upload)| Some((root.name.len(), below(root)?, upload)));
    // The longest name is the innermost directory.
    match fitting.max_by_key(|(length, ..)| *length) {
        Some((_, relative, upload)) => Ok((upload, relative.to_owned())),
        None => Err(ComposeError::Outside {
            path: shown(path),
            roots: roots.iter().map(places).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Returns the directory of a session, or its files, as text.
fn places(root: &ComposeRoot) -> String {
    match &root.scope {
        ComposeScope::Everything => root.name.clone(),
        ComposeScope::Files(files) => {
            let files = files.iter().map(|file| format!("{}/{file}", root.name));
            files.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Fails for a path that is not a plain relative path, or that names git metadata or a
/// `wp-config.php`.
fn check(path: &str) -> Result<(), ComposeError> {
    let rule = |rule| {
        Err(ComposeError::Path {
            path: shown(path),
            rule,
        })
    };
    if path.is_empty() || path.len() > MAX_PATH {
        return rule("it is empty or longer than 1,024 bytes");
    }
    if path.starts_with('/') || path.contains('\\') || path.contains(char::is_control) {
        return rule("it is absolute, or has a backslash or a control character");
    }
    for part in path.split('/') {
        if matches!(part, "" | "." | "..") || part.len() > MAX_NAME {
            return rule("it has an empty, `.` or `..` component, or one longer than 255 bytes");
        }
        if part.ends_with(['.', ' ']) || part.contains(':') {
            return rule("a component ends with a dot or a space, or has a colon");
        }
        if is_git_directory(part.as_bytes()) {
            return rule("it names git metadata");
        }
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.to_lowercase() == "wp-config.php" {
        return rule("no bundle may contain the configuration of a WordPress");
    }
    Ok(())
}

/// The spellings of paths that exist, by their lower-case form.
#[derive(Debug, Default)]
pub(super) struct Spellings(HashMap<String, Vec<u8>>);

impl Spellings {
    /// Adds an existing path and the directories above it.
    pub(super) fn add(&mut self, path: &[u8]) {
        for part in prefixes(path) {
            let lower = String::from_utf8_lossy(part).to_lowercase();
            self.0.entry(lower).or_insert_with(|| part.to_vec());
        }
    }

    /// Adds an uploaded path; fails if a path with another spelling exists.
    pub(super) fn add_uploaded(&mut self, path: &str) -> Result<(), ComposeError> {
        for part in prefixes(path.as_bytes()) {
            let lower = String::from_utf8_lossy(part).to_lowercase();
            let known = self.0.entry(lower).or_insert_with(|| part.to_vec());
            if known != part {
                return Err(ComposeError::Duplicate {
                    path: shown(path),
                    other: shown(&String::from_utf8_lossy(known)),
                });
            }
        }
        Ok(())
    }
}

/// Returns the directories above a path, outermost first, then the path itself.
pub(super) fn prefixes(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let cuts = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let above = cuts.filter_map(|(at, _)| path.get(..at));
    above.chain(std::iter::once(path))
}

/// Shortens a path for an error message.
pub(super) fn shown(path: &str) -> String {
    path.chars().take(200).collect()
}
