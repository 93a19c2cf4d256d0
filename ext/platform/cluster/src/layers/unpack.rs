//! Unpacks a layer of any origin into a new directory.
//!
//! Invariants: each record creates one new entry in a directory that this function created and has
//! open, so no earlier record can redirect a later one: a name is one component, an existing entry is
//! never opened, and links are only created. When anything is wrong, the whole directory is removed.

use super::error::{LayerError, shown};
use super::stream::{Record, StreamReader};
use flate2::read::GzDecoder;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use std::io::{BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use wp_codebox_artifacts::{CaptureLimits, Dir, SparseWriter, remove_tree};
use wp_codebox_contracts::Sha256Hex;

/// What was unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unpacked {
    /// Number of entries.
    pub entries: u64,
    /// Total size of the files in bytes.
    pub bytes: u64,
}

/// Unpacks a compressed layer into the directory `into`, which must not exist. The entries belong
/// to the user of this process; modes are 0755 and 0644 whatever the umask.
///
/// # Errors
/// [`LayerError::Damaged`], [`LayerError::Digest`] and [`LayerError::TooLarge`] about the layer,
/// [`LayerError::Write`] about the disk. `into` does not exist then, unless it existed before.
pub fn unpack(
    compressed: impl Read,
    digest: &Sha256Hex,
    into: &Path,
    limits: &CaptureLimits,
) -> Result<Unpacked, LayerError> {
    fs::mkdir(into, Mode::RWXU).map_err(|e| write(into.as_os_str().as_bytes(), e))?;
    let unpacked = unpack_into(compressed, digest, into, limits);
    if unpacked.is_err() {
        // The first error is the one to report. A directory that remains is not taken for a layer,
        // because its name is not a digest.
        let _ = remove_tree(into);
    }
    unpacked
}

fn unpack_into(
    compressed: impl Read,
    digest: &Sha256Hex,
    into: &Path,
    limits: &CaptureLimits,
) -> Result<Unpacked, LayerError> {
    let root = Dir::open(into).map_err(|e| write(b"", e))?;
    fs::fchmod(&root, Mode::from_raw_mode(0o755)).map_err(|e| write(b"", e))?;
    let mut open = vec![root];
    let mut entries = 0;
    let plain = BufReader::with_capacity(64 * 1024, GzDecoder::new(compressed));
    let mut stream = StreamReader::new(plain, limits)?;
    loop {
        let record = stream.record()?;
        let dir = open.last().ok_or_else(|| write(b"", Errno::BADF))?;
        match record {
            Record::Enter { name } => {
                let made = directory(dir, &name).map_err(|e| write(&name, e))?;
                open.push(made);
            }
            Record::Leave => {
                open.pop();
                continue;
            }
            Record::File {
                name,
                is_executable,
                size,
            } => {
                let fail = |e| write(&name, e);
                let file = file(dir, &name).map_err(fail)?;
                let mut sparse = SparseWriter::new(&file);
                stream.content(size, |piece| sparse.write(piece).map_err(fail))?;
                let mode = if is_executable { 0o755 } else { 0o644 };
                sparse
                    .finish()
                    .and_then(|()| fs::fchmod(&file, Mode::from_raw_mode(mode)))
                    .map_err(fail)?;
            }
            Record::Link { name, target } => {
                fs::symlinkat(target.as_slice(), dir.as_fd(), name.as_slice())
                    .map_err(|e| write(&name, e))?;
            }
            Record::End => break,
        }
        entries += 1;
    }
    let bytes = stream.content_bytes();
    let found = stream.finish()?;
    if found == *digest {
        Ok(Unpacked { entries, bytes })
    } else {
        Err(LayerError::Digest {
            expected: digest.clone(),
            found,
        })
    }
}

fn directory(parent: &Dir, name: &[u8]) -> Result<Dir, Errno> {
    fs::mkdirat(parent, name, Mode::RWXU)?;
    let made = parent.dir(name)?;
    // The mode of mkdirat is reduced by the umask.
    fs::fchmod(&made, Mode::from_raw_mode(0o755))?;
    Ok(made)
}

fn file(parent: &Dir, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR)
}

fn write(path: &[u8], source: Errno) -> LayerError {
    LayerError::Write {
        path: shown(path),
        source,
    }
}
