//! Reads and replaces the documents of a run directory.
//!
//! Only a file that does not exist counts as absent. A document that exists but cannot be read is an
//! error: a caller that took it for absent would write over it, or delete what only it describes.

use rustix::fs::{Mode, OFlags};
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wp_codebox_artifacts::{Durability, StoreError};
use wp_codebox_contracts::CodedError;

/// Reason why a document of a run cannot be used. The document and everything else of the run stay
/// as they are.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(StateDirInvalid)]
pub enum DocumentError {
    /// The document exists, or may exist, and cannot be read.
    #[error(
        "{name} cannot be read: {source}; check its owner and mode, the limit of open files, and the disk"
    )]
    Unreadable {
        /// File name in the run directory.
        name: &'static str,
        /// I/O error of the failed operation.
        source: io::Error,
    },
    /// The document has more bytes than this program reads.
    #[error("{name} is damaged: it has more than {most} bytes; restore it from a backup")]
    TooLarge {
        /// File name in the run directory.
        name: &'static str,
        /// Maximum size in bytes.
        most: u64,
    },
    /// A newer version of this program wrote the document.
    #[error(
        "{name} has the version {found}, and this program reads versions up to {newest}; use the newer wp-codebox that wrote it"
    )]
    Newer {
        /// File name in the run directory.
        name: &'static str,
        /// Version in the document.
        found: u64,
        /// Newest version that this program reads.
        newest: u64,
    },
    /// The content is not a document of this kind.
    #[error("{name} is damaged ({why}); restore it from a backup")]
    Damaged {
        /// File name in the run directory.
        name: &'static str,
        /// What is wrong with the content.
        why: String,
    },
    /// The document does not exist, but the run directory has files that are created after it.
    #[error("{name} is missing, but the run directory contains {beside}; restore it from a backup")]
    Missing {
        /// File name in the run directory.
        name: &'static str,
        /// Name of a file or directory that is created after the document.
        beside: String,
    },
    /// The bundles of the site, or the recovery bundle of the run, cannot be read.
    #[error("the bundle of the run cannot be read: {0}")]
    Bundle(#[from] StoreError),
    /// The recovery bundle of the run cannot be written or moved to the bundles of the site.
    #[error(
        "the recovery bundle of the run cannot be stored: {source}; check free space and permissions of the state directory"
    )]
    Recovery {
        /// I/O error of the failed operation.
        source: io::Error,
    },
}

/// Reads the file `name` of a directory. Returns `None` if the file does not exist.
pub(crate) fn read_document(
    directory: &Path,
    name: &'static str,
    most: u64,
) -> Result<Option<Vec<u8>>, DocumentError> {
    let unreadable = |source| DocumentError::Unreadable { name, source };
    let file = match fs::File::open(directory.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(unreadable)?,
    };
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > most {
        return Err(DocumentError::TooLarge { name, most });
    }
    Ok(Some(bytes))
}

/// Parses the content of the document `name`.
pub(crate) fn parse<T: DeserializeOwned>(
    name: &'static str,
    bytes: &[u8],
) -> Result<T, DocumentError> {
    serde_json::from_slice(bytes).map_err(|error| DocumentError::Damaged {
        name,
        why: error.to_string(),
    })
}

/// Checks the schema id that the document `name` states, such as `wp-codebox/run-result/v1`.
pub(crate) fn check_schema(
    name: &'static str,
    stated: &str,
    known: &str,
) -> Result<(), DocumentError> {
    let family = known.trim_end_matches(|c: char| c.is_ascii_digit());
    let version = |id: &str| id.strip_prefix(family).and_then(|v| v.parse::<u64>().ok());
    match (version(stated), version(known)) {
        (Some(found), Some(newest)) if found > newest => Err(DocumentError::Newer {
            name,
            found,
            newest,
        }),
        _ if stated == known => Ok(()),
        _ => Err(DocumentError::Damaged {
            name,
            why: "it states the schema of another document".to_owned(),
        }),
    }
}

/// Returns whether a directory exists. Only `ENOENT` means that it does not.
pub(crate) fn directory_exists(path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the name that a file of a run directory has until it is completely written.
pub(crate) fn unfinished(name: &str) -> String {
    format!(".{name}.new")
}

/// Writes a file with mode 0600 under a temporary name, then renames it, replacing an existing
/// file. With [`Durability::Synced`], a power loss during or after the call leaves the old content or
/// the new one: without the first `fsync`, a file system may store the new name before the content,
/// and the file would be empty.
pub(crate) fn replace_file(
    directory: &Path,
    name: &str,
    bytes: &[u8],
    durability: Durability,
) -> io::Result<()> {
    let temp = directory.join(unfinished(name));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temp)?;
    file.write_all(bytes)?;
    match durability {
        Durability::Unsynced => fs::rename(temp, directory.join(name)),
        Durability::Synced => {
            file.sync_all()?;
            fs::rename(temp, directory.join(name))?;
            sync_directory(directory)
        }
    }
}

/// Writes the entries of a directory to the disk.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    Ok(rustix::fs::fsync(&directory)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_does_not_exist_counts_as_an_absent_document() {
        let temp = tempfile::tempdir().unwrap();
        let read = |most| read_document(temp.path(), "x.json", most);
        assert!(read(4).unwrap().is_none());
        fs::write(temp.path().join("x.json"), "1234").unwrap();
        assert_eq!(read(4).unwrap().unwrap(), b"1234");
        assert!(matches!(read(3), Err(DocumentError::TooLarge { .. })));
        fs::remove_file(temp.path().join("x.json")).unwrap();
        // A link to itself fails with ELOOP and a directory with EISDIR, also for root.
        std::os::unix::fs::symlink("x.json", temp.path().join("x.json")).unwrap();
        assert!(matches!(read(4), Err(DocumentError::Unreadable { .. })));
        fs::remove_file(temp.path().join("x.json")).unwrap();
        fs::create_dir(temp.path().join("x.json")).unwrap();
        assert!(matches!(read(4), Err(DocumentError::Unreadable { .. })));
    }
}
