//! The connection to the PHP extension that requested the change.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use wp_codebox_backend_native::inherited_descriptor;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, MAX_FRAME_BYTES, SiteChangeMessage, SiteChangeRequest,
};

/// Descriptor of the frame socket, over which this process and the extension exchange messages.
const SOCKET: i32 = 3;
/// Maximum length of the line with which the caller answers, in bytes.
const LINE: u64 = 64;
/// Time limit of one read from the caller or write to it. The caller answers after it has dropped
/// the written files from its opcode cache.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether the caller answered after files were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallerAnswers {
    /// The caller has dropped the files from its opcode cache.
    Yes,
    /// The caller exited or does not answer; PHP notices the new files only when its opcode cache
    /// checks them again.
    No,
}

/// The extension, which waits for the end of the change.
pub(super) struct Caller {
    reader: BufReader<UnixStream>,
    answers: CallerAnswers,
}

impl Caller {
    /// Takes over the inherited frame socket.
    pub(super) fn inherited() -> std::io::Result<Self> {
        let stream = UnixStream::from(inherited_descriptor(SOCKET)?);
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            reader: BufReader::new(stream),
            answers: CallerAnswers::Yes,
        })
    }

    /// Reads the request.
    pub(super) fn request(&mut self) -> Result<SiteChangeRequest, ErrorBody> {
        let invalid = |why: String| {
            let message = format!("the request for a change of files cannot be read: {why}");
            ErrorBody::new(ErrorCode::InputInvalid, message)
        };
        let mut line = Vec::new();
        let longest = MAX_FRAME_BYTES as u64;
        self.reader
            .by_ref()
            .take(longest)
            .read_until(b'\n', &mut line)
            .map_err(|e| invalid(e.to_string()))?;
        if !line.ends_with(b"\n") {
            return Err(invalid("it is incomplete".to_owned()));
        }
        serde_json::from_slice(&line).map_err(|e| invalid(e.to_string()))
    }

    /// Tells the caller that files were written, and waits until it has dropped them from its opcode
    /// cache.
    pub(super) fn written(&mut self, files: &[PathBuf]) -> CallerAnswers {
        let files = files.iter().map(|path| path.display().to_string());
        self.send(&SiteChangeMessage::Written {
            files: files.collect(),
        });
        if self.answers == CallerAnswers::Yes {
            // Reads the whole line: its rest would count as the answer to the next message.
            let mut line = Vec::new();
            let read = self.reader.by_ref().take(LINE).read_until(b'\n', &mut line);
            if read.is_err() || !line.ends_with(b"\n") {
                self.answers = CallerAnswers::No;
            }
        }
        self.answers
    }

    /// Sends a message; does nothing if the caller is gone.
    pub(super) fn send(&mut self, message: &SiteChangeMessage) {
        let Ok(mut line) = serde_json::to_vec(message) else {
            self.answers = CallerAnswers::No;
            return;
        };
        line.push(b'\n');
        if self.reader.get_mut().write_all(&line).is_err() {
            self.answers = CallerAnswers::No;
        }
    }
}
