//! Contents of imported members in an unnamed temporary file.
//!
//! A gzip stream of some kilobytes can expand to the size limit of an import, so contents are not
//! held in memory. The file is created in `/var/tmp`, which unlike `/tmp` is rarely a tmpfs, or
//! else in the default directory for temporary files. The kernel frees the file when it is
//! closed.

use std::fs::File;
use std::io::{ErrorKind, Read, Result, Write};
use std::os::unix::fs::FileExt;

/// Position and length of one member's content in the temporary file, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ContentRange {
    at: u64,
    length: u64,
}

/// Reason why a member's content was not stored in the temporary file.
#[derive(Debug)]
pub(super) enum AppendError {
    /// The content is longer than the given limit.
    TooLong,
    /// The archive or directory with the member cannot be read.
    Read(std::io::Error),
    /// The temporary file cannot be written.
    Write(std::io::Error),
}

#[derive(Debug)]
pub(super) struct Contents {
    file: File,
    length: u64,
}

impl Contents {
    pub(super) fn new() -> Result<Self> {
        // A systemd service may have a read-only `/var/tmp`.
        let file = tempfile::tempfile_in("/var/tmp").or_else(|_| tempfile::tempfile());
        Ok(Self {
            file: file?,
            length: 0,
        })
    }

    /// Returns the total length of all stored contents in bytes.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Stores everything that `content` returns. Fails if that is more than `room` bytes.
    pub(super) fn append(
        &mut self,
        mut content: impl Read,
        room: u64,
    ) -> std::result::Result<ContentRange, AppendError> {
        let at = self.length;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(AppendError::Read(error)),
            };
            let length = self.length + count as u64;
            if length - at > room {
                return Err(AppendError::TooLong);
            }
            let piece = buffer.get(..count).unwrap_or_default();
            self.file.write_all(piece).map_err(AppendError::Write)?;
            self.length = length;
        }
        Ok(ContentRange {
            at,
            length: self.length - at,
        })
    }

    pub(super) fn reader(&self, place: ContentRange) -> impl Read {
        Piece {
            file: &self.file,
            place,
        }
    }
}

/// Reader of one member's content. It has its own position, because all readers share the file
/// descriptor and its offset.
struct Piece<'c> {
    file: &'c File,
    place: ContentRange,
}

impl Read for Piece<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let most = usize::try_from(self.place.length).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let Some(buffer) = buffer.get_mut(..most).filter(|b| !b.is_empty()) else {
            return Ok(0);
        };
        let count = self.file.read_at(buffer, self.place.at)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.place.at += count as u64;
        self.place.length -= count as u64;
        Ok(count)
    }
}
