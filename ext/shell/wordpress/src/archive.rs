//! Unpacks archives with a core: zip files, and the gzipped tar file of the npm package.

use super::layout::{LOADER, Take};
use super::progress::Step;
use super::unpack::{Tree, UnpackError, checked};
use flate2::read::GzDecoder;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;
use tar::EntryType;
use zip::result::ZipError;

/// Directory in a zip that contains the core, if the core is not at the top level.
const TOP: &str = "wordpress/";
/// Maximum number of bytes that are read to list a zip, more than any release needs. It bounds the
/// memory for the list of a hostile zip.
const LIST_BYTES: u64 = 16 << 20;
/// Mask of the file type bits (`S_IFMT`), and its values for files and directories.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

fn damaged(reason: impl ToString) -> UnpackError {
    UnpackError::Damaged {
        reason: reason.to_string(),
    }
}

/// Reader of a file with a limit. `left` is the number of bytes that may still be read; [`open`]
/// shares it and lifts the limit after the list of entries was read.
struct Metered {
    file: File,
    left: Rc<Cell<u64>>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        match self.left.get().checked_sub(count as u64) {
            Some(left) => self.left.set(left),
            None => return Err(io::Error::other("the list of its entries is too long")),
        }
        Ok(count)
    }
}

impl Seek for Metered {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

type Archive = zip::ZipArchive<BufReader<Metered>>;

fn open(file: File) -> Result<Archive, UnpackError> {
    let left = Rc::new(Cell::new(LIST_BYTES));
    let metered = Metered {
        file,
        left: Rc::clone(&left),
    };
    let archive = Archive::new(BufReader::new(metered)).map_err(damaged)?;
    left.set(u64::MAX);
    Ok(archive)
}

/// Unpacks a zip that has WordPress at its top level or in one directory `wordpress`.
pub(super) fn unpack_zip(
    file: File,
    title: &str,
    take: Take,
    tree: &mut Tree<'_>,
) -> Result<(), UnpackError> {
    let mut archive = open(file)?;
    if archive.has_duplicate_names() {
        return Err(UnpackError::DuplicateEntry);
    }
    let listed = list(&archive, tree)?;
    let has_core = |top: &str| {
        let name = format!("{top}{LOADER}");
        listed.iter().any(|entry| entry.name == name)
    };
    let top = if has_core("") { "" } else { TOP };
    let total: u64 = listed.iter().fold(0, |sum, e| sum.saturating_add(e.size));
    tree.progress().begin(Step::Unpack, title, Some(total));
    for (index, entry) in listed.iter().enumerate() {
        let Some(path) = entry.name.strip_prefix(top) else {
            match take {
                Take::Core => continue,
                Take::All => {
                    return Err(UnpackError::Outside {
                        name: entry.name.clone(),
                    });
                }
            }
        };
        match path.strip_suffix('/') {
            // Skip entries of directories: writing a file creates the directories above it.
            Some(_) => {}
            None if path.is_empty() || !take.takes(path) => {}
            None => {
                let mut content = archive.by_index(index).map_err(decoding)?;
                tree.file(path, &mut content, damaged)?;
            }
        }
    }
    Ok(())
}

/// An entry of a zip, with its name and the size that the archive states.
struct Listed {
    name: String,
    size: u64,
}

/// Returns the entries of a zip. Fails if any entry has an invalid name or a special type, even one
/// that would not be unpacked.
fn list(archive: &Archive, tree: &mut Tree<'_>) -> Result<Vec<Listed>, UnpackError> {
    let mut listed = Vec::new();
    for index in 0..archive.len() {
        tree.count()?;
        let entry = archive.by_index_data(index).map_err(decoding)?;
        let raw = entry.name_raw();
        let name = checked(raw.strip_suffix(b"/").unwrap_or(raw))?;
        if !matches!(
            entry.unix_mode().map(|mode| mode & KIND),
            None | Some(0 | REGULAR | DIRECTORY)
        ) {
            return Err(UnpackError::Special {
                name: name.to_owned(),
                kind: "a link or special file",
            });
        }
        let end = if raw.ends_with(b"/") { "/" } else { "" };
        listed.push(Listed {
            name: format!("{name}{end}"),
            size: entry.size(),
        });
    }
    Ok(listed)
}

fn decoding(error: ZipError) -> UnpackError {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => damaged("it is encrypted"),
        error => damaged(error),
    }
}

/// Unpacks the files below one directory of a gzipped tar archive. The caller must have compared
/// the digest of the archive with the pinned one, so its headers need no further checks against
/// attacks.
pub(super) fn unpack_tgz(
    mut file: File,
    title: &str,
    top: &str,
    take: Take,
    tree: &mut Tree<'_>,
) -> Result<(), UnpackError> {
    file.rewind().map_err(damaged)?;
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    tree.progress().begin(Step::Unpack, title, None);
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = entry.path_bytes().into_owned();
        let Some(path) = name.strip_prefix(top.as_bytes()) else {
            continue;
        };
        tree.count()?;
        let path = path.strip_suffix(b"/").unwrap_or(path);
        if path.is_empty() {
            continue;
        }
        let path = checked(path)?;
        match entry.header().entry_type() {
            EntryType::Directory => {}
            EntryType::Regular | EntryType::Continuous => {
                if take.takes(path) {
                    tree.file(path, &mut entry, damaged)?;
                }
            }
            _ => {
                return Err(UnpackError::Special {
                    name: path.to_owned(),
                    kind: "a link or special file",
                });
            }
        }
    }
    Ok(())
}
