//! Reads the files of a bundle to import from an archive or directory, with limits.
//!
//! Reading and storing are separate steps, so that a caller can read as one user and store as
//! another. Between the steps, names are in memory and contents in a temporary file that the
//! reading user creates. The reader only ensures that the names are safe to create; the bundle is
//! verified after it was stored.

use super::contents::{AppendError, ContentRange, Contents};
use crate::attestation::MANIFEST_PATH;
use crate::digest::sha256_of;
use crate::dirfd::{Dir, Listing, size_of};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use wp_codebox_contracts::{CodedError, Sha256Hex};

/// Maximum size of a bundle to import in bytes.
pub(crate) const MAX_TOTAL: u64 = 256 * 1024 * 1024;
/// Maximum number of files in a bundle to import; no valid manifest lists more.
const MAX_MEMBERS: usize = 2_000;
/// Maximum length of a file's path in a bundle to import, in bytes.
pub(super) const MAX_PATH: usize = 4_096;
/// Maximum number of path components of a file in a bundle to import.
const MAX_LEVELS: usize = 256;

/// Reason why an archive or directory cannot be imported. Callers print the message after
/// `the source cannot be imported: `.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(ArtifactImportSourceInvalid)]
pub enum MembersError {
    /// The archive, the directory or a file in it cannot be read.
    #[error("the import cannot read {what}: {source}")]
    Unreadable {
        /// Path of the unreadable file, or a name for the whole archive or directory.
        what: String,
        /// I/O error of the failed read.
        source: std::io::Error,
    },
    /// The bundle contains a link, device, FIFO or another special file.
    #[error(
        "the bundle's entry {member} is not a regular file; a bundle may contain only regular files"
    )]
    Special {
        /// Path of the file that is not regular.
        member: String,
    },
    /// The bundle contains a file whose path leads out of the bundle, is too long, or has
    /// characters that no path in a bundle has, e.g. spaces.
    #[error(
        "the bundle's file name {member:?} is not allowed; names are short relative paths of visible ASCII without backslashes and without empty, `.` or `..` components"
    )]
    Name {
        /// The name that is not allowed, shortened.
        member: String,
    },
    /// The bundle contains two files with the same name.
    #[error("two files of the bundle have the path {member}; export the bundle again")]
    Twice {
        /// The name that two files have.
        member: String,
    },
    /// The bundle has too many files or bytes.
    #[error(
        "the bundle has more than {MAX_MEMBERS} files or {MAX_TOTAL} bytes, which no bundle may have"
    )]
    #[code(ArtifactTooLarge)]
    TooLarge,
    /// The bundle has no `manifest.json`.
    #[error(
        "the archive or directory is not a bundle, because it has no manifest.json at its top; name another one"
    )]
    NoManifest,
    /// The contents could not be written to the temporary file.
    #[error(
        "the import cannot write the bundle's contents to a temporary file: {source}; check free space for temporary files"
    )]
    #[code(ArtifactImportCopyFailed)]
    Temporary {
        /// I/O error of the failed write.
        source: std::io::Error,
    },
}

/// The files of a bundle to import: names, and a temporary file with their contents.
#[derive(Debug)]
pub struct MemberSet {
    members: BTreeMap<String, ContentRange>,
    contents: Contents,
}

impl MemberSet {
    pub(super) fn new() -> Result<Self, MembersError> {
        let contents = Contents::new().map_err(|source| MembersError::Temporary { source })?;
        Ok(Self {
            members: BTreeMap::new(),
            contents,
        })
    }

    /// Reads a bundle directory. A symbolic link in it is an error, even if it leads to a file of
    /// the bundle.
    pub fn from_directory(directory: &Dir) -> Result<Self, MembersError> {
        let mut set = Self::new()?;
        set.walk(directory, "", 1)?;
        set.complete()
    }

    fn walk(&mut self, directory: &Dir, above: &str, level: usize) -> Result<(), MembersError> {
        let fail = |name: &str, e: Errno| unreadable(name, e.into());
        let Listing::Names(names) = directory
            .names_within(MAX_MEMBERS as u64)
            .map_err(|e| fail(above, e))?
        else {
            return Err(MembersError::TooLarge);
        };
        for name in names {
            let path = crate::dirfd::join(above.as_bytes(), &name);
            let shown = shown(&path);
            let stat = directory.stat(&name).map_err(|e| fail(&shown, e))?;
            let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
            match kind {
                Some(FileType::Directory) if level < MAX_LEVELS => {
                    let below = directory.dir(&name).map_err(|e| fail(&shown, e))?;
                    let path = String::from_utf8(path)
                        .map_err(|_| MembersError::Name { member: shown })?;
                    self.walk(&below, &path, level + 1)?;
                }
                Some(FileType::Directory) => return Err(MembersError::Name { member: shown }),
                Some(FileType::RegularFile) => {
                    let (file, stat) = directory.open_file(&name).map_err(|e| fail(&shown, e))?;
                    self.insert(&path, size_of(&stat), File::from(file))?;
                }
                Some(_) => return Err(MembersError::Special { member: shown }),
                None => {}
            }
        }
        Ok(())
    }

    /// Adds a file. `size` is the size that the archive or the file's attributes state. At most the
    /// bytes that the limits allow are read, even if `content` is longer than `size`.
    pub(super) fn insert(
        &mut self,
        name: &[u8],
        size: u64,
        content: impl Read,
    ) -> Result<(), MembersError> {
        let path = safe_name(name).ok_or_else(|| MembersError::Name {
            member: shown(name),
        })?;
        let room = MAX_TOTAL - self.contents.length();
        if self.members.len() >= MAX_MEMBERS || size > room {
            return Err(MembersError::TooLarge);
        }
        let place = match self.contents.append(content, room) {
            Ok(place) => place,
            Err(AppendError::TooLong) => return Err(MembersError::TooLarge),
            Err(AppendError::Read(source)) => return Err(unreadable(path, source)),
            Err(AppendError::Write(source)) => return Err(MembersError::Temporary { source }),
        };
        match self.members.insert(path.to_owned(), place) {
            None => Ok(()),
            Some(_) => Err(MembersError::Twice {
                member: path.to_owned(),
            }),
        }
    }

    /// Removes the common top directory from all paths, unless `manifest.json` is at the top. Fails
    /// if some path does not begin with that directory.
    pub(super) fn without_top(mut self) -> Result<Self, MembersError> {
        if self.members.contains_key(MANIFEST_PATH) {
            return Ok(self);
        }
        let top = self
            .members
            .keys()
            .next()
            .and_then(|name| name.split_once('/'))
            .map(|(top, _)| format!("{top}/"))
            .ok_or(MembersError::NoManifest)?;
        let members = std::mem::take(&mut self.members);
        for (name, place) in members {
            match name.strip_prefix(&top) {
                Some(rest) => self.members.insert(rest.to_owned(), place),
                None => return Err(MembersError::NoManifest),
            };
        }
        Ok(self)
    }

    pub(super) fn complete(self) -> Result<Self, MembersError> {
        if self.members.contains_key(MANIFEST_PATH) {
            Ok(self)
        } else {
            Err(MembersError::NoManifest)
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, impl Read)> {
        self.members
            .iter()
            .map(|(path, place)| (path.as_str(), self.contents.reader(*place)))
    }

    pub(super) fn manifest_sha256(&self) -> std::io::Result<Sha256Hex> {
        let place = self.members.get(MANIFEST_PATH).copied();
        sha256_of(self.contents.reader(place.unwrap_or_default()))
    }
}

/// Returns the name as text if it is a relative path of visible ASCII characters other than `\`,
/// without empty, `.` and `..` components.
fn safe_name(name: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(name).ok()?;
    let name = name.strip_prefix("./").unwrap_or(name);
    let fits = name.len() <= MAX_PATH && name.split('/').count() <= MAX_LEVELS;
    let parts = name
        .split('/')
        .all(|part| !matches!(part, "" | "." | "..") && part.len() <= 255);
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    (fits && parts && plain).then_some(name)
}

pub(super) fn unreadable(what: &str, source: std::io::Error) -> MembersError {
    MembersError::Unreadable {
        what: if what.is_empty() {
            "the bundle".to_owned()
        } else {
            what.to_owned()
        },
        source,
    }
}

pub(super) fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars()
        .take(120)
        .flat_map(char::escape_debug)
        .collect()
}
