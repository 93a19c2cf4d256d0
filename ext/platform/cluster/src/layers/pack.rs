//! Packs a directory as a layer.
//!
//! Invariants: every entry is opened beneath the directory with `openat2` and without following
//! links; a mount point, a FIFO, a socket, a device and a file with a set-id bit are errors. Content,
//! name, link target and the executable bit decide the digest; owner, time, other mode bits, extended
//! attributes, holes of sparse files and hard links do not. Entries with a name that git treats as
//! `.git` are left out at any depth, as every guest's view of a mount leaves them out.

use super::error::{LayerError, shown};
use super::rules::{Choice, PackRules};
use super::stream::StreamWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use wp_codebox_artifacts::{Dir, ExcludeRules, TreeError};
use wp_codebox_contracts::Sha256Hex;

/// Bits of a mode that make a program run with another user's or group's rights.
const SET_ID: u32 = 0o6000;

/// What a layer contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Digest of the layer.
    pub digest: Sha256Hex,
    /// Number of entries.
    pub entries: u64,
    /// Total size of the files in bytes.
    pub bytes: u64,
    /// Number of entries that were left out because they belong to git.
    pub git_entries: u64,
}

/// A layer in an unnamed temporary file, compressed.
#[derive(Debug)]
pub struct Layer {
    /// What the layer contains.
    pub packed: Packed,
    /// The compressed layer; the file position is at its beginning.
    pub file: File,
    /// Size of the compressed layer in bytes.
    pub compressed_bytes: u64,
}

/// Writes the layer of a directory without compression. `std::io::sink()` as `out` gives only the
/// digest.
///
/// # Errors
/// [`LayerError::Source`] and [`LayerError::Changed`] about the directory, [`LayerError::Temporary`]
/// if `out` fails.
pub fn pack_to(
    root: BorrowedFd<'_>,
    rules: &PackRules,
    out: impl Write,
) -> Result<Packed, LayerError> {
    Ok(packed(root, rules, out)?.0)
}

/// Packs a directory into an unnamed temporary file below `temporary`.
///
/// # Errors
/// As [`pack_to`].
pub fn pack(
    root: BorrowedFd<'_>,
    rules: &PackRules,
    temporary: &Path,
) -> Result<Layer, LayerError> {
    let file = tempfile::tempfile_in(temporary).map_err(|e| failed("created", e))?;
    let encoder = GzEncoder::new(file, Compression::fast());
    let (packed, encoder) = packed(root, rules, encoder)?;
    compressed(packed, encoder)
}

/// Packs files into one layer, each under a name of its own; all get mode 0644.
///
/// # Errors
/// As [`pack_to`]; also [`LayerError::Damaged`] unless the names are distinct and in ascending
/// order.
pub fn pack_files(files: &mut [(String, File)], temporary: &Path) -> Result<Layer, LayerError> {
    let written = |e| failed("written", e);
    let file = tempfile::tempfile_in(temporary).map_err(|e| failed("created", e))?;
    let encoder = GzEncoder::new(file, Compression::fast());
    let mut out = StreamWriter::new(encoder).map_err(written)?;
    let mut packed = Packed {
        digest: Sha256Hex::zero(),
        entries: 0,
        bytes: 0,
        git_entries: 0,
    };
    if files
        .windows(2)
        .any(|two| matches!(two, [one, other] if one.0 >= other.0))
    {
        return Err(super::stream::damaged("its names are not sorted"));
    }
    for (name, file) in files {
        file.rewind().map_err(|e| failed("read", e))?;
        let stat = rustix::fs::fstat(&*file).map_err(|e| unreadable(name.as_bytes(), e))?;
        copy(
            &mut out,
            name.as_bytes(),
            name.as_bytes(),
            (file, &stat),
            false,
        )?;
        packed.entries += 1;
        packed.bytes += size_of(&stat);
    }
    let (digest, encoder) = out.finish().map_err(written)?;
    packed.digest = digest;
    compressed(packed, encoder)
}

fn compressed(packed: Packed, encoder: GzEncoder<File>) -> Result<Layer, LayerError> {
    let mut file = encoder.finish().map_err(|e| failed("written", e))?;
    let compressed_bytes = file.stream_position().map_err(|e| failed("written", e))?;
    file.rewind().map_err(|e| failed("read", e))?;
    Ok(Layer {
        packed,
        file,
        compressed_bytes,
    })
}

fn packed<W: Write>(
    root: BorrowedFd<'_>,
    rules: &PackRules,
    out: W,
) -> Result<(Packed, W), LayerError> {
    let root = Dir::reopen(root).map_err(|e| unreadable(b"", e))?;
    let mut walk = Walk {
        rules,
        git: ExcludeRules::default(),
        out: StreamWriter::new(out).map_err(|e| failed("written", e))?,
        packed: Packed {
            digest: Sha256Hex::zero(),
            entries: 0,
            bytes: 0,
            git_entries: 0,
        },
    };
    walk.directory(&root, b"", 0)?;
    let (digest, out) = walk.out.finish().map_err(|e| failed("written", e))?;
    let packed = Packed {
        digest,
        ..walk.packed
    };
    Ok((packed, out))
}

struct Walk<'r, W> {
    rules: &'r PackRules,
    git: ExcludeRules,
    out: StreamWriter<W>,
    packed: Packed,
}

impl<W: Write> Walk<'_, W> {
    /// Writes the entries of a directory. The depth is limited, and with it the recursion.
    fn directory(&mut self, dir: &Dir, path: &[u8], depth: usize) -> Result<(), LayerError> {
        let limits = self.rules.limits();
        if depth > limits.depth {
            return Err(limit("directory levels", limits.depth as u64));
        }
        for name in dir.names().map_err(|e| unreadable(path, e))? {
            let at = join(path, &name);
            if self.git.excludes(&name) {
                self.packed.git_entries += 1;
                continue;
            }
            let choice = self.rules.choice(&at);
            if choice == Choice::LeaveOut {
                continue;
            }
            if at.len() > limits.path_bytes {
                return Err(limit("bytes in one path", limits.path_bytes as u64));
            }
            let stat = dir.stat(&name).map_err(|e| unreadable(&at, e))?;
            let stat = stat.ok_or_else(|| changed(&at))?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            if choice == Choice::OnlyBelow && kind != FileType::Directory {
                continue;
            }
            self.packed.entries += 1;
            if self.packed.entries > limits.entries {
                return Err(limit("entries", limits.entries));
            }
            self.entry(dir, &name, &at, &stat, depth)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        dir: &Dir,
        name: &[u8],
        path: &[u8],
        stat: &Stat,
        depth: usize,
    ) -> Result<(), LayerError> {
        let written = |e| failed("written", e);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let below = dir.dir(name).map_err(|e| gone(path, e))?;
                self.out.enter(name).map_err(written)?;
                self.directory(&below, path, depth + 1)?;
                self.out.leave().map_err(written)
            }
            FileType::Symlink => {
                let target = dir.link_text(name).map_err(|e| gone(path, e))?;
                self.out.link(name, &target).map_err(written)
            }
            FileType::RegularFile => {
                if stat.st_mode & SET_ID != 0 {
                    return Err(special(path, "file with a set-user-id or set-group-id bit"));
                }
                let limits = self.rules.limits();
                let (fd, stat) = dir.open_file(name).map_err(|e| gone(path, e))?;
                let size = size_of(&stat);
                if size > limits.file_bytes {
                    return Err(limit("bytes in one file", limits.file_bytes));
                }
                self.packed.bytes = self.packed.bytes.saturating_add(size);
                if self.packed.bytes > limits.total_bytes {
                    return Err(limit("bytes", limits.total_bytes));
                }
                let is_executable = stat.st_mode & 0o111 != 0;
                let file = &mut File::from(fd);
                copy(&mut self.out, name, path, (file, &stat), is_executable)
            }
            FileType::Fifo => Err(special(path, "FIFO")),
            FileType::Socket => Err(special(path, "socket")),
            FileType::BlockDevice => Err(special(path, "block device")),
            FileType::CharacterDevice => Err(special(path, "character device")),
            FileType::Unknown => Err(special(path, "file of unknown type")),
        }
    }
}

/// Writes a file. A file that has another size or time after it was read is an error: the layer
/// would contain a state that the file never had.
fn copy<W: Write>(
    out: &mut StreamWriter<W>,
    name: &[u8],
    path: &[u8],
    (file, stat): (&mut File, &Stat),
    is_executable: bool,
) -> Result<(), LayerError> {
    let written = |e| failed("written", e);
    let mut left = size_of(stat);
    out.file(name, is_executable, left).map_err(written)?;
    let mut buffer = vec![0; 128 * 1024];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let source = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(unreadable(path, source));
            }
        };
        left = left
            .checked_sub(count as u64)
            .ok_or_else(|| changed(path))?;
        out.content(buffer.get(..count).unwrap_or_default())
            .map_err(written)?;
    }
    let after = rustix::fs::fstat(&*file).map_err(|e| unreadable(path, e))?;
    let times = |stat: &Stat| {
        let modified = (stat.st_mtime, stat.st_mtime_nsec);
        (stat.st_size, modified, (stat.st_ctime, stat.st_ctime_nsec))
    };
    if left == 0 && times(stat) == times(&after) {
        Ok(())
    } else {
        Err(changed(path))
    }
}

pub(super) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    if parent.is_empty() {
        return name.to_vec();
    }
    [parent, b"/", name].concat()
}

fn failed(step: &'static str, source: std::io::Error) -> LayerError {
    LayerError::Temporary { step, source }
}

fn changed(path: &[u8]) -> LayerError {
    LayerError::Changed { path: shown(path) }
}

/// Returns the error for an entry that was listed but could not be opened: "changed" if the entry
/// is gone or of another type by now.
fn gone(path: &[u8], source: Errno) -> LayerError {
    match source {
        Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::AGAIN | Errno::LOOP => changed(path),
        _ => unreadable(path, source),
    }
}

pub(super) fn unreadable(path: &[u8], source: Errno) -> LayerError {
    let path = shown(if path.is_empty() { b"." } else { path });
    LayerError::Source(match source {
        Errno::XDEV => TreeError::MountPoint { path },
        _ => TreeError::Unreadable { path, source },
    })
}

fn special(path: &[u8], kind: &'static str) -> LayerError {
    let path = shown(path);
    LayerError::Source(TreeError::Special { path, kind })
}

const fn limit(what: &'static str, limit: u64) -> LayerError {
    LayerError::Source(TreeError::Limit { what, limit })
}
