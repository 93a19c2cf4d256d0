//! Splits a byte stream that arrives in arbitrary pieces into lines.

/// Buffer of received bytes from which complete lines are taken. Each byte is searched for a
/// newline only once.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
    /// Offset of the first byte that was not yet returned as part of a line.
    start: usize,
    /// The bytes from `start` to this offset contain no newline.
    searched: usize,
}

impl LineBuffer {
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the length of the incomplete line in bytes. Valid after [`LineBuffer::next`]
    /// returned `None`.
    pub(crate) fn unfinished(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Returns the next complete line without its newline.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let from = self.searched.max(self.start);
        let Some(offset) = self.bytes[from..].iter().position(|&byte| byte == b'\n') else {
            self.bytes.drain(..self.start);
            self.start = 0;
            self.searched = self.bytes.len();
            return None;
        };
        let line = self.bytes[self.start..from + offset].to_vec();
        self.start = from + offset + 1;
        self.searched = self.start;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
            self.searched = 0;
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_buffer_returns_whole_lines_for_single_byte_and_multi_line_reads() {
        let text = b"one\n\ntwo three\nrest";
        let wanted = [&b"one"[..], b"", b"two three"];
        let mut single = LineBuffer::default();
        let mut lines = Vec::new();
        for byte in text {
            single.extend(&[*byte]);
            lines.extend(single.next());
        }
        assert_eq!(
            (lines.as_slice(), single.unfinished()),
            (&wanted.map(<[u8]>::to_vec)[..], 4)
        );
        let mut at_once = LineBuffer::default();
        at_once.extend(text);
        let lines: Vec<_> = std::iter::from_fn(|| at_once.next()).collect();
        assert_eq!(
            (lines, at_once.unfinished()),
            (wanted.map(<[u8]>::to_vec).to_vec(), 4)
        );
    }
}
