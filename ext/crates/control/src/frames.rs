//! Frames of the runner protocol on a stream socket: one JSON document a line.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Write};
use std::os::unix::net::UnixStream;
use wp_codebox_contracts::{Frame, MAX_FRAME_BYTES};

/// Reads frames. A line that is too long or no frame ends the conversation.
#[derive(Debug)]
pub struct FrameReader {
    stream: BufReader<Chain<Cursor<Vec<u8>>, UnixStream>>,
}

impl FrameReader {
    /// Over a blocking socket.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Self::resume(stream, Vec::new())
    }

    /// A reader that first sees what another one had read ahead.
    #[must_use]
    pub fn resume(stream: UnixStream, buffered: Vec<u8>) -> Self {
        Self {
            stream: BufReader::new(Cursor::new(buffered).chain(stream)),
        }
    }

    /// The socket and what was read ahead of the last frame.
    #[must_use]
    pub fn into_parts(self) -> (UnixStream, Vec<u8>) {
        let buffered = self.stream.buffer().to_vec();
        (self.stream.into_inner().into_inner().1, buffered)
    }

    /// The next frame; `None` at the end of the stream.
    ///
    /// # Errors
    /// The socket's, or `InvalidData` for a line that is too long, cut or no frame.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        let mut line = Vec::new();
        let limit = MAX_FRAME_BYTES as u64;
        if self
            .stream
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut line)?
            == 0
        {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            let reason = if line.len() >= MAX_FRAME_BYTES {
                "a frame is longer than 16 MiB"
            } else {
                "the stream ended inside a frame"
            };
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        // The document may hold a secret: the parser's message is not passed on.
        serde_json::from_slice(&line).map(Some).map_err(|e| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "a frame is not valid (line {}, column {})",
                    e.line(),
                    e.column()
                ),
            )
        })
    }
}

/// Writes one frame; blocks while the socket is full.
///
/// # Errors
/// The socket's, or `InvalidData` for a frame that is too long.
pub fn write_frame(mut stream: &UnixStream, frame: &Frame) -> io::Result<()> {
    stream.write_all(&frame_bytes(frame)?)
}

/// One frame as a line.
///
/// # Errors
/// `InvalidData` for a frame that is too long.
pub fn frame_bytes(frame: &Frame) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    if line.len() > MAX_FRAME_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a frame is longer than 16 MiB",
        ));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_cross_and_garbage_ends_the_conversation() {
        let (a, b) = UnixStream::pair().unwrap();
        write_frame(&a, &Frame::Cancel).unwrap();
        (&a).write_all(b"{\"type\":\"nope\"}\n").unwrap();
        drop(a);
        let mut reader = FrameReader::new(b);
        assert_eq!(reader.next_frame().unwrap(), Some(Frame::Cancel));
        assert_eq!(
            reader.next_frame().unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        assert_eq!(reader.next_frame().unwrap(), None);
    }

    /// Found by fuzzing: the last bit of a double changed between caller and runner.
    #[test]
    fn doubles_cross_unchanged() {
        for number in [
            "118446744073709570000.0",
            "0.1",
            "-1.7976931348623157e308",
            "5e-324",
        ] {
            let frame = format!(
                "{{\"type\":\"error\",\"error\":{{\"code\":\"wp_codebox_busy\",\"message\":\"m\",\"data\":{{\"n\":{number}}}}}}}\n"
            );
            let (a, b) = UnixStream::pair().unwrap();
            (&a).write_all(frame.as_bytes()).unwrap();
            let Some(Frame::Error { error }) = FrameReader::new(b).next_frame().unwrap() else {
                panic!("no error frame")
            };
            let read = error.data.unwrap()["n"].as_f64();
            assert_eq!(read, number.parse().ok(), "{number}");
        }
    }

    #[test]
    fn what_was_read_ahead_is_not_lost() {
        let (a, b) = UnixStream::pair().unwrap();
        write_frame(&a, &Frame::Cancel).unwrap();
        write_frame(&a, &Frame::Cancel).unwrap();
        drop(a);
        let mut reader = FrameReader::new(b);
        assert_eq!(reader.next_frame().unwrap(), Some(Frame::Cancel));
        let (stream, buffered) = reader.into_parts();
        let mut resumed = FrameReader::resume(stream, buffered);
        assert_eq!(resumed.next_frame().unwrap(), Some(Frame::Cancel));
        assert_eq!(resumed.next_frame().unwrap(), None);
    }

    /// A seed that is refused as a whole shows the fuzzer nothing behind the reader.
    #[test]
    fn seeds_of_the_fuzzer_have_frames() {
        let root = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        for (name, frames) in [("start", 2), ("accepted", 1), ("events", 3), ("double", 1)] {
            let path = format!("{root}/../../../tests/fuzz/corpus/frames/{name}");
            let (_, reader) = UnixStream::pair().unwrap();
            // The first byte says where the fuzzer cuts the rest.
            let mut reader =
                FrameReader::resume(reader, std::fs::read(path).unwrap()[1..].to_vec());
            let taken = std::iter::from_fn(|| reader.next_frame().ok().flatten()).count();
            assert_eq!(taken, frames, "{name}");
        }
    }

    #[test]
    fn a_cut_frame_is_an_error() {
        let (a, b) = UnixStream::pair().unwrap();
        (&a).write_all(b"{\"type\":\"cancel\"").unwrap();
        drop(a);
        assert!(FrameReader::new(b).next_frame().is_err());
    }
}
