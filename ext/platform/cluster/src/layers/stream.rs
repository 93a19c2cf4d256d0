//! The canonical stream of a layer, whose SHA-256 is the layer's digest.
//!
//! A line names the format. Records follow, each with a kind of one byte:
//!
//! | kind | fields | meaning |
//! |---|---|---|
//! | `D` | name | begins a directory; the next records are its entries |
//! | `F` | name, `x` or `-`, size, content | regular file with mode 0755 or 0644 |
//! | `L` | name, target | symbolic link |
//! | `U` | | ends a directory |
//! | `E` | | ends the layer; nothing follows |
//!
//! Names and targets are bytes after their length (16 bits), sizes have 64 bits, both little-endian.
//! The entries of a directory are sorted by the bytes of their names, so each tree has one stream and
//! each stream gives one tree. A name is one path component: no record can name a path outside of
//! the directories that its stream began. The tar format was not chosen, because it has several
//! encodings of one tree.

use super::error::{LayerError, shown};
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Read, Write};
use wp_codebox_artifacts::CaptureLimits;
use wp_codebox_contracts::Sha256Hex;

const MAGIC: &[u8] = b"wp-codebox layer 1\n";
/// Maximum length of a name in bytes, as in Linux file systems.
const MAX_NAME: usize = 255;
/// Size of the pieces in which contents are read.
const PIECE: usize = 128 * 1024;

/// Writes a stream. The caller passes the names of a directory in ascending order.
pub(super) struct StreamWriter<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> StreamWriter<W> {
    pub(super) fn new(out: W) -> std::io::Result<Self> {
        let mut writer = Self {
            out,
            hash: Sha256::new(),
        };
        writer.content(MAGIC)?;
        Ok(writer)
    }

    pub(super) fn enter(&mut self, name: &[u8]) -> std::io::Result<()> {
        self.content(b"D")?;
        self.text(name)
    }

    pub(super) fn leave(&mut self) -> std::io::Result<()> {
        self.content(b"U")
    }

    /// Begins a file; exactly `size` bytes of [`Self::content`] follow.
    pub(super) fn file(
        &mut self,
        name: &[u8],
        is_executable: bool,
        size: u64,
    ) -> std::io::Result<()> {
        self.content(b"F")?;
        self.text(name)?;
        self.content(if is_executable { b"x" } else { b"-" })?;
        self.content(&size.to_le_bytes())
    }

    pub(super) fn link(&mut self, name: &[u8], target: &[u8]) -> std::io::Result<()> {
        self.content(b"L")?;
        self.text(name)?;
        self.text(target)
    }

    pub(super) fn content(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes)
    }

    /// Ends the layer and returns its digest and the inner writer.
    pub(super) fn finish(mut self) -> std::io::Result<(Sha256Hex, W)> {
        self.content(b"E")?;
        let digest = Sha256Hex::from_bytes(&self.hash.finalize().into());
        Ok((digest, self.out))
    }

    fn text(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let length = u16::try_from(bytes.len()).map_err(|_| ErrorKind::InvalidInput)?;
        self.content(&length.to_le_bytes())?;
        self.content(bytes)
    }
}

/// One record of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    Enter {
        name: Vec<u8>,
    },
    Leave,
    /// The caller reads the content with [`StreamReader::content`] before the next record.
    File {
        name: Vec<u8>,
        is_executable: bool,
        size: u64,
    },
    Link {
        name: Vec<u8>,
        target: Vec<u8>,
    },
    End,
}

/// Reads a stream of any origin. Refuses every stream that [`StreamWriter`] cannot write, and one
/// that exceeds the limits.
pub(super) struct StreamReader<'l, R> {
    input: R,
    hash: Sha256,
    limits: &'l CaptureLimits,
    /// Last name in each open directory, outermost first, and the length of the directory's path.
    open: Vec<(Option<Vec<u8>>, usize)>,
    entries: u64,
    bytes: u64,
}

impl<'l, R: Read> StreamReader<'l, R> {
    pub(super) fn new(input: R, limits: &'l CaptureLimits) -> Result<Self, LayerError> {
        let mut reader = Self {
            input,
            hash: Sha256::new(),
            limits,
            open: vec![(None, 0)],
            entries: 0,
            bytes: 0,
        };
        if reader.bytes(MAGIC.len())? != MAGIC {
            return Err(damaged("it does not begin like a layer"));
        }
        Ok(reader)
    }

    /// Returns the total size of the files so far.
    pub(super) const fn content_bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn record(&mut self) -> Result<Record, LayerError> {
        let kind = self.bytes(1)?;
        match kind.as_slice() {
            b"D" => {
                let name = self.name()?;
                if self.open.len() > self.limits.depth {
                    return Err(too_large("directory levels", self.limits.depth as u64));
                }
                let length = self.path_bytes(&name);
                self.open.push((None, length));
                Ok(Record::Enter { name })
            }
            b"U" if self.open.len() > 1 => {
                self.open.pop();
                Ok(Record::Leave)
            }
            b"U" => Err(damaged("it ends a directory that it did not begin")),
            b"F" => {
                let name = self.name()?;
                let is_executable = match self.bytes(1)?.as_slice() {
                    b"x" => true,
                    b"-" => false,
                    _ => return Err(damaged("a file has an unknown mode")),
                };
                let size = self.size()?;
                Ok(Record::File {
                    name,
                    is_executable,
                    size,
                })
            }
            b"L" => {
                let name = self.name()?;
                let target = self.text()?;
                if target.is_empty() || target.len() > self.limits.path_bytes || target.contains(&0)
                {
                    return Err(damaged("a link has no valid target"));
                }
                Ok(Record::Link { name, target })
            }
            b"E" if self.open.len() == 1 => Ok(Record::End),
            b"E" => Err(damaged("it ends within a directory")),
            _ => Err(damaged("it has a record of unknown kind")),
        }
    }

    /// Reads the content of the file whose record came last and passes each piece to the callback.
    pub(super) fn content(
        &mut self,
        size: u64,
        mut piece: impl FnMut(&[u8]) -> Result<(), LayerError>,
    ) -> Result<(), LayerError> {
        let mut buffer = vec![0; PIECE.min(usize::try_from(size).unwrap_or(PIECE))];
        let mut left = size;
        while left > 0 {
            let most = buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            let room = buffer.get_mut(..most).unwrap_or_default();
            fill(&mut self.input, room)?;
            self.hash.update(&*room);
            piece(room)?;
            left -= most as u64;
        }
        Ok(())
    }

    /// Returns the digest after [`Record::End`]; fails if anything follows.
    pub(super) fn finish(mut self) -> Result<Sha256Hex, LayerError> {
        let mut more = [0; 1];
        loop {
            match self.input.read(&mut more) {
                Ok(0) => return Ok(Sha256Hex::from_bytes(&self.hash.finalize().into())),
                Ok(_) => return Err(damaged("it has data after its end")),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(&error)),
            }
        }
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, LayerError> {
        let mut bytes = vec![0; count];
        fill(&mut self.input, &mut bytes)?;
        self.hash.update(&bytes);
        Ok(bytes)
    }

    fn text(&mut self) -> Result<Vec<u8>, LayerError> {
        let length = self.bytes(2)?;
        let length = <[u8; 2]>::try_from(length.as_slice()).unwrap_or_default();
        self.bytes(usize::from(u16::from_le_bytes(length)))
    }

    fn size(&mut self) -> Result<u64, LayerError> {
        let bytes = self.bytes(8)?;
        let size = u64::from_le_bytes(<[u8; 8]>::try_from(bytes.as_slice()).unwrap_or_default());
        let limits = self.limits;
        if size > limits.file_bytes {
            return Err(too_large("bytes in one file", limits.file_bytes));
        }
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > limits.total_bytes {
            return Err(too_large("bytes", limits.total_bytes));
        }
        Ok(size)
    }

    /// Reads the name of an entry of the innermost open directory.
    fn name(&mut self) -> Result<Vec<u8>, LayerError> {
        let name = self.text()?;
        let is_component = !matches!(name.as_slice(), b"" | b"." | b"..")
            && name.len() <= MAX_NAME
            && !name.contains(&b'/')
            && !name.contains(&0);
        if !is_component {
            return Err(damaged(&format!("{:?} is no name of a file", shown(&name))));
        }
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(too_large("entries", self.limits.entries));
        }
        if self.path_bytes(&name) > self.limits.path_bytes {
            let limit = self.limits.path_bytes as u64;
            return Err(too_large("bytes in one path", limit));
        }
        match self.open.last_mut() {
            Some((last, _)) if last.as_ref().is_none_or(|last| *last < name) => {
                *last = Some(name.clone());
                Ok(name)
            }
            Some(_) | None => Err(damaged(&format!(
                "the name {:?} occurs twice or is not in sorted order",
                shown(&name)
            ))),
        }
    }

    fn path_bytes(&self, name: &[u8]) -> usize {
        let above = self.open.last().map_or(0, |(_, length)| *length);
        above + usize::from(above > 0) + name.len()
    }
}

/// Fills the buffer; the end of the input before that is an error.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> Result<(), LayerError> {
    input
        .read_exact(buffer)
        .map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => damaged("it ends too early"),
            _ => unreadable(&error),
        })
}

fn unreadable(error: &std::io::Error) -> LayerError {
    damaged(&format!("it cannot be decompressed: {error}"))
}

pub(super) fn damaged(detail: &str) -> LayerError {
    LayerError::Damaged {
        detail: detail.to_owned(),
    }
}

pub(super) const fn too_large(what: &'static str, limit: u64) -> LayerError {
    LayerError::TooLarge { what, limit }
}
