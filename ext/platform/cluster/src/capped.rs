//! A file that takes a limited number of bytes, so that a server cannot fill the disk.

use std::fs::File;
use std::io::{ErrorKind, Result, Write};

/// A file with a limit.
#[derive(Debug)]
pub(crate) struct Capped {
    pub(crate) file: File,
    /// Whether more bytes came than the limit allows. The error that the download returns then does
    /// not say so.
    pub(crate) is_exceeded: bool,
    left: u64,
}

impl Capped {
    pub(crate) const fn new(file: File, most: u64) -> Self {
        Self {
            file,
            is_exceeded: false,
            left: most,
        }
    }
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            self.is_exceeded = true;
            return Err(ErrorKind::FileTooLarge.into());
        };
        self.file.write_all(bytes)?;
        self.left = left;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}
