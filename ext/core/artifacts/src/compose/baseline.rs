//! The code with which a browser session began: zip archives and directories of this host.
//!
//! A later source of the same directory replaces entries of an earlier one. Contents are read only
//! for the paths that the upload touches, so the size of untouched files does not matter.

use super::ComposeError;
use crate::capture::{FileMode, is_git_directory};
use crate::digest::sha256_of;
use crate::dirfd::{Dir, ReadOutcome, join};
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use wp_codebox_contracts::Sha256Hex;
use zip::ZipArchive;

/// Maximum number of entries in the baseline of one directory.
const MAX_ENTRIES: usize = 100_000;
/// Maximum depth of a baseline directory.
const MAX_DEPTH: usize = 64;
/// Maximum size of one file that the upload replaces or deletes, in bytes.
const MAX_FILE: u64 = 64 * 1024 * 1024;
/// Mask of the file type in a Unix mode (`S_IFMT`), and the types of files and directories.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

/// Source of the code with which a browser session began.
#[derive(Debug)]
pub enum BaselineSource {
    /// Zip archive whose entries are relative to the directory.
    Archive {
        /// The archive, opened for reading.
        file: File,
        /// SHA-256 that the archive must have.
        sha256: Sha256Hex,
    },
    /// A directory of this host.
    Directory(Dir),
}

/// Entry of a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// Regular file: its mode, the number of its source, and its number in an archive.
    File {
        mode: FileMode,
        source: usize,
        index: usize,
    },
    /// Empty directory.
    Directory,
    /// Link or special file, which is never read, followed or replaced.
    Other,
}

/// Entries of one directory by path, and the open sources from which their contents are read.
pub(super) struct Baseline {
    root: String,
    sources: Vec<Opened>,
    pub entries: BTreeMap<Vec<u8>, Entry>,
}

enum Opened {
    Zip(Box<ZipArchive<BufReader<File>>>),
    Directory(Dir),
}

impl Baseline {
    pub(super) fn new(root: &str) -> Self {
        let name = if root.is_empty() { "the upload" } else { root };
        Self {
            root: name.to_owned(),
            sources: Vec::new(),
            entries: BTreeMap::new(),
        }
    }

    /// Adds the entries of a source.
    pub(super) fn add(&mut self, source: BaselineSource) -> Result<(), ComposeError> {
        let number = self.sources.len();
        let opened = match source {
            BaselineSource::Archive { mut file, sha256 } => {
                let actual = sha256_of(&mut file).map_err(|e| self.bad(unreadable(e)))?;
                if actual != sha256 {
                    return Err(self.bad("is not the archive that the session recorded"));
                }
                file.rewind().map_err(|e| self.bad(unreadable(e)))?;
                let archive =
                    ZipArchive::new(BufReader::new(file)).map_err(|e| self.bad(unreadable(e)))?;
                self.list_zip(&archive, number)?;
                Opened::Zip(Box::new(archive))
            }
            BaselineSource::Directory(directory) => {
                self.list_directory(&directory, b"", number, 0)?;
                Opened::Directory(directory)
            }
        };
        self.sources.push(opened);
        Ok(())
    }

    fn list_zip(
        &mut self,
        archive: &ZipArchive<BufReader<File>>,
        source: usize,
    ) -> Result<(), ComposeError> {
        if archive.has_duplicate_names() {
            return Err(self.bad("has two entries with the same name"));
        }
        for index in 0..archive.len() {
            let entry = archive
                .by_index_data(index)
                .map_err(|e| self.bad(unreadable(e)))?;
            let raw = entry.name_raw();
            let name = raw.strip_suffix(b"/").unwrap_or(raw).to_vec();
            let plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
            if !name.split(|byte| *byte == b'/').all(plain) || name.contains(&0) {
                return Err(self.bad("has an entry whose name leads out of it"));
            }
            let mode = entry.unix_mode().unwrap_or(0o644);
            let found = match mode & KIND {
                _ if raw.ends_with(b"/") => Entry::Directory,
                0 | REGULAR => Entry::File {
                    mode: FileMode::from_raw(mode),
                    source,
                    index,
                },
                DIRECTORY => Entry::Directory,
                _ => Entry::Other,
            };
            self.insert(name, found)?;
        }
        Ok(())
    }

    fn list_directory(
        &mut self,
        directory: &Dir,
        path: &[u8],
        source: usize,
        depth: usize,
    ) -> Result<(), ComposeError> {
        if depth > MAX_DEPTH {
            return Err(self.bad("has too many directory levels"));
        }
        for name in directory.names().map_err(|e| self.bad(unreadable(e)))? {
            let below = join(path, &name);
            let Some(stat) = directory.stat(&name).map_err(|e| self.bad(unreadable(e)))? else {
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => {
                    let mode = FileMode::from_raw(stat.st_mode);
                    let index = 0;
                    let found = Entry::File {
                        mode,
                        source,
                        index,
                    };
                    self.insert(below, found)?;
                }
                FileType::Directory => {
                    self.insert(below.clone(), Entry::Directory)?;
                    let inner = directory.dir(&name).map_err(|e| self.bad(unreadable(e)))?;
                    self.list_directory(&inner, &below, source, depth + 1)?;
                }
                _ => self.insert(below, Entry::Other)?,
            }
        }
        Ok(())
    }

    fn insert(&mut self, path: Vec<u8>, entry: Entry) -> Result<(), ComposeError> {
        // Skips git metadata, which no capture and no patch contains either.
        if path.split(|byte| *byte == b'/').any(is_git_directory) {
            return Ok(());
        }
        self.entries.insert(path, entry);
        if self.entries.len() > MAX_ENTRIES {
            return Err(self.bad("has too many entries"));
        }
        Ok(())
    }

    /// Reads the content of a file of the baseline.
    pub(super) fn read(
        &mut self,
        path: &[u8],
        source: usize,
        index: usize,
    ) -> Result<Vec<u8>, ComposeError> {
        let content = match self.sources.get_mut(source) {
            None => Err("lacks an archive or directory".to_owned()),
            Some(Opened::Zip(archive)) => zip_content(archive, index),
            Some(Opened::Directory(directory)) => match directory.read(path, MAX_FILE) {
                Ok((ReadOutcome::Bytes(bytes), _)) => Ok(bytes),
                Ok((ReadOutcome::TooLarge, _)) => Err(too_large()),
                Err(error) => Err(unreadable(error)),
            },
        };
        content.map_err(|reason| self.bad(reason))
    }

    fn bad(&self, reason: impl ToString) -> ComposeError {
        ComposeError::Baseline {
            root: self.root.clone(),
            reason: reason.to_string(),
        }
    }
}

fn zip_content(archive: &mut ZipArchive<BufReader<File>>, index: usize) -> Result<Vec<u8>, String> {
    let entry = archive.by_index(index).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // The stated size may be wrong, so the limit applies to the bytes that are read.
    let mut limited = entry.take(MAX_FILE + 1);
    let read = limited.read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(too_large());
    }
    Ok(bytes)
}

fn unreadable(error: impl Display) -> String {
    format!("cannot be read: {error}")
}

fn too_large() -> String {
    format!("has a changed file with more than {MAX_FILE} bytes")
}
