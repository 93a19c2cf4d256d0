//! Reads and writes frames of the supervisor protocol on a stream socket: one JSON document per line.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Write};
use std::os::unix::net::UnixStream;
use wp_codebox_contracts::{Frame, MAX_FRAME_BYTES};

/// Reader of frames. A line that is too long or cannot be parsed is an error, after which callers
/// close the connection.
#[derive(Debug)]
pub struct FrameReader {
    stream: BufReader<Chain<Cursor<Vec<u8>>, UnixStream>>,
}

impl FrameReader {
    /// Creates a reader over a blocking socket.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Self::resume(stream, Vec::new())
    }

    /// Creates a reader that first returns the frames in `buffered`, bytes that an earlier reader
    /// has read from the socket.
    #[must_use]
    pub fn resume(stream: UnixStream, buffered: Vec<u8>) -> Self {
        Self {
            stream: BufReader::new(Cursor::new(buffered).chain(stream)),
        }
    }

    /// Returns the socket, and the bytes that were read from it beyond the last returned frame.
    #[must_use]
    pub fn into_parts(self) -> (UnixStream, Vec<u8>) {
        let buffered = self.stream.buffer().to_vec();
        (self.stream.into_inner().into_inner().1, buffered)
    }

    /// Returns the next frame, or `None` at end of file.
    ///
    /// # Errors
    /// Fails with the socket's error, or with `InvalidData` for a line that is too long,
    /// truncated or not a frame.
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
        // The parser's message may quote a secret from the document, so only line and column are
        // passed on.
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

/// Writes one frame; blocks while the socket buffer is full.
///
/// # Errors
/// Fails with the socket's error, or with `InvalidData` for a frame that is too long.
pub fn write_frame(mut stream: &UnixStream, frame: &Frame) -> io::Result<()> {
    stream.write_all(&frame_bytes(frame)?)
}

/// Serializes one frame to a line with its newline.
///
/// # Errors
/// Fails with `InvalidData` for a frame that is too long.
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
    fn frame_reader_returns_a_written_frame_and_fails_on_a_frame_of_unknown_type() {
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

    /// Regression test for a bug that the fuzzer found: serialising and parsing a frame changed the
    /// last bit of a double.
    #[test]
    fn floating_point_numbers_in_frames_are_read_back_bit_for_bit() {
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
    fn frame_reader_resumed_with_its_buffer_returns_frames_already_read_ahead() {
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

    /// Without a seed that the reader accepts, the fuzzer would not reach the code that handles
    /// parsed frames.
    #[test]
    fn fuzzer_seeds_contain_valid_frames() {
        let root = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        for (name, frames) in [("start", 2), ("accepted", 1), ("events", 3), ("double", 1)] {
            let path = format!("{root}/../../../tests/fuzz/corpus/frames/{name}");
            let (_, reader) = UnixStream::pair().unwrap();
            // The first byte of a seed is the offset at which the fuzzer splits the remaining
            // bytes.
            let mut reader =
                FrameReader::resume(reader, std::fs::read(path).unwrap()[1..].to_vec());
            let taken = std::iter::from_fn(|| reader.next_frame().ok().flatten()).count();
            assert_eq!(taken, frames, "{name}");
        }
    }

    #[test]
    fn frame_above_the_size_limit_is_refused_before_its_end_arrives() {
        let (a, b) = UnixStream::pair().unwrap();
        let writer = std::thread::spawn(move || {
            let _ = (&a).write_all(&vec![b' '; MAX_FRAME_BYTES + 65_536]);
            let _ = (&a).write_all(b"\n");
        });
        let mut reader = FrameReader::new(b);
        let error = reader.next_frame().unwrap_err();
        assert_eq!(error.to_string(), "a frame is longer than 16 MiB");
        drop(reader);
        writer.join().unwrap();
    }

    #[test]
    fn frame_without_its_newline_at_end_of_stream_is_an_error() {
        let (a, b) = UnixStream::pair().unwrap();
        (&a).write_all(b"{\"type\":\"cancel\"").unwrap();
        drop(a);
        assert!(FrameReader::new(b).next_frame().is_err());
    }
}
