//! The members of a bundle to import, read with limits.
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
use wp_codebox_contracts::{ErrorCode, Sha256Hex};

/// Maximum size of a bundle to import in bytes.
pub(crate) const MAX_TOTAL: u64 = 256 * 1024 * 1024;
/// Maximum number of members; a valid manifest lists fewer.
const MAX_MEMBERS: usize = 2_000;
/// Maximum length of a member's path in bytes.
pub(super) const MAX_PATH: usize = 4_096;
/// Maximum number of path components of a member.
const MAX_LEVELS: usize = 256;

/// Reason why a source cannot be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MembersError {
    /// The source cannot be read.
    #[error("{what} cannot be read ({source})")]
    Unreadable {
        /// Path of the member, or the source itself.
        what: String,
        /// Error of the failed operation.
        source: std::io::Error,
    },
    /// A member is a link, device, FIFO or the like.
    #[error("{member} is not a regular file; a bundle may contain only regular files")]
    Special {
        /// Path of the member.
        member: String,
    },
    /// A member has a name that leaves the bundle or that bundles do not use.
    #[error("{member:?} is not an allowed name for a member of a bundle")]
    Name {
        /// Name as given, shortened.
        member: String,
    },
    /// Two members have the same name.
    #[error("{member} occurs twice")]
    Twice {
        /// Path of the member.
        member: String,
    },
    /// The source exceeds a limit.
    #[error("it has more than {MAX_MEMBERS} members or {MAX_TOTAL} bytes")]
    TooLarge,
    /// The source has no `manifest.json`.
    #[error("it holds no manifest.json")]
    NoManifest,
    /// The contents could not be written to the temporary file.
    #[error("its contents cannot be written to a temporary file ({source})")]
    Temporary {
        /// Error of the failed operation.
        source: std::io::Error,
    },
}

impl MembersError {
    /// Returns the stable error code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::TooLarge => ErrorCode::ArtifactTooLarge,
            Self::Unreadable { .. }
            | Self::Special { .. }
            | Self::Name { .. }
            | Self::Twice { .. }
            | Self::NoManifest => ErrorCode::ArtifactImportSourceInvalid,
            Self::Temporary { .. } => ErrorCode::ArtifactImportCopyFailed,
        }
    }
}

/// Members by path.
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

    /// Reads a bundle directory. Links are not followed, not even inside the bundle.
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

    /// Adds a member. `size` is the declared size; a file may turn out to be longer.
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

    /// Removes the single top directory from all paths if there is one.
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

/// Returns the name if it is a relative path without components that are special to a file
/// system.
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
