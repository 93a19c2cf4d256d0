//! Paths below a target directory, and their text form in journals and messages.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use wp_codebox_artifacts::{quote_name, unquote_name};

/// Flags for openat2: a path must not leave the directory, follow links or cross a mount.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Opens a directory below another one; `.` opens the directory itself.
pub(crate) fn open_dir(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    fs::openat2(root, path, flags, Mode::empty(), BENEATH)
}

/// Opens a file below a directory for reading, without waiting if it is a FIFO. The caller checks
/// type or contents.
pub(crate) fn open_file(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    fs::openat2(root, path, flags, Mode::empty(), BENEATH)
}

/// Splits a path into its parent directory and its last component. The parent of a path with one
/// component is `.`.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b".", path),
    }
}

/// Returns the directories above a path, deepest first, without the root.
pub(crate) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let cuts = path.iter().enumerate().rev().filter(|(_, b)| **b == b'/');
    cuts.map(|(at, _)| &path[..at])
}

/// Synchronises a directory to the disk.
pub(crate) fn sync(directory: impl AsFd) -> Result<(), Errno> {
    fs::fsync(directory)
}

/// Returns a path as text: unchanged, or quoted like git does.
pub(crate) fn shown(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) => text.to_owned(),
        Err(_) => quote_name(path),
    }
}

/// Serialization of a path in a journal: quoted like git does if it is not plain text.
pub(crate) mod text {
    use super::{quote_name, unquote_name};
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(path: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&quote_name(path))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let path = match text.starts_with('"') {
            false => text.into_bytes(),
            true => match unquote_name(text.as_bytes()) {
                Some((path, taken)) if taken == text.len() => path,
                _ => return Err(de::Error::custom("malformed quoted path")),
            },
        };
        let safe = path
            .split(|b| *b == b'/')
            .all(|part| !matches!(part, b"" | b"." | b".."));
        match safe && !path.contains(&0) {
            true => Ok(path),
            false => Err(de::Error::custom("path leaves its directory")),
        }
    }
}
