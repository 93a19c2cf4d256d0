//! Output of one execution as the run stores it: complete up to the run's output limit; beyond it,
//! the beginning and the end with a truncation mark in between.
//!
//! The input is already redacted. The journal receives output at once up to the limit, and the end
//! of the output when the execution has ended. Memory use is at most twice the limit for any amount
//! of output.

use super::shown::equal_share;
use std::collections::VecDeque;
use wp_codebox_artifacts::left_out;
use wp_codebox_contracts::OutputStream;
use wp_codebox_runtime::Cut;

/// Maximum number of last bytes that are stored of both streams together once the memory limit is
/// used up.
const SMALL_END: usize = 4 * 1024;

/// Whether there is memory to keep the beginning of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Free,
    Full,
}

/// Output of one execution that is still running.
#[derive(Debug)]
pub(crate) struct RetainedOutput {
    limit: usize,
    /// Number of further output bytes that go to the journal at once; all later output goes to the
    /// streams' tails.
    left: usize,
    tail_room: usize,
    stdout: Stream,
    stderr: Stream,
}

#[derive(Debug, Default)]
struct Stream {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    journalled: u64,
    total: u64,
}

/// Stored output of one execution that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub stdout: String,
    pub stderr: String,
    pub cut: Cut,
    /// Output that the journal has not received yet: truncation mark and end of each stream.
    pub rest: Vec<(OutputStream, Option<String>, Vec<u8>)>,
}

impl RetainedOutput {
    /// Creates the buffer; both streams together store at most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            limit,
            left: limit,
            tail_room: limit / 3,
            stdout: Stream::default(),
            stderr: Stream::default(),
        }
    }

    /// Adds output and returns the part that the journal receives now.
    pub(crate) fn push<'b>(
        &mut self,
        stream: OutputStream,
        bytes: &'b [u8],
        memory: Memory,
    ) -> &'b [u8] {
        let own = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        let at = border(bytes, self.left.min(bytes.len()));
        let (now, later) = bytes.split_at(at);
        // Once output goes to a tail, no later output may be appended to a head, even if `border`
        // left a few bytes of the limit unused.
        self.left = if later.is_empty() { self.left - at } else { 0 };
        own.total += bytes.len() as u64;
        own.journalled += at as u64;
        match memory {
            Memory::Free => own.head.extend_from_slice(now),
            Memory::Full => self.tail_room = self.tail_room.min(SMALL_END),
        }
        own.tail.extend(later);
        self.trim();
        now
    }

    /// Drops the oldest bytes of the two kept ends until both fit into `tail_room`. Each end may
    /// take half of it and what the other end does not need, so that a short message in one stream
    /// survives next to much output in the other.
    fn trim(&mut self) {
        let (room, half) = (self.tail_room, self.tail_room / 2);
        let (stdout, stderr) = (&mut self.stdout.tail, &mut self.stderr.tail);
        let of_stdout = room - stderr.len().min(half);
        let of_stderr = room - stdout.len().min(room - half);
        for (tail, most) in [(stdout, of_stdout), (stderr, of_stderr)] {
            tail.drain(..tail.len().saturating_sub(most));
        }
    }

    /// Returns the number of output bytes in memory.
    pub(crate) fn held(&self) -> usize {
        [&self.stdout, &self.stderr]
            .iter()
            .map(|s| s.head.len() + s.tail.len())
            .sum()
    }

    /// Ends the output and returns the stored parts.
    pub(crate) fn finish(self) -> Ended {
        let sizes = [&self.stdout, &self.stderr].map(|s| s.head.len() + s.tail.len());
        let share = equal_share(sizes.to_vec(), self.limit);
        let mut rest = Vec::new();
        let (stdout, out) = self.stdout.finish(OutputStream::Stdout, share, &mut rest);
        let (stderr, err) = self.stderr.finish(OutputStream::Stderr, share, &mut rest);
        Ended {
            stdout,
            stderr,
            cut: Cut {
                stdout: out,
                stderr: err,
            },
            rest,
        }
    }
}

impl Stream {
    fn finish(
        mut self,
        name: OutputStream,
        share: usize,
        rest: &mut Vec<(OutputStream, Option<String>, Vec<u8>)>,
    ) -> (String, Option<u64>) {
        let tail = self.tail.make_contiguous();
        let missed = self.total - self.journalled - tail.len() as u64;
        let tail = match missed {
            0 => &*tail,
            _ => &tail[begin(tail)..],
        };
        if !tail.is_empty() || missed > 0 {
            let missed = self.total - self.journalled - tail.len() as u64;
            let mark = (missed > 0).then(|| left_out(missed));
            rest.push((name, mark, tail.to_vec()));
        }
        let whole = self.total == (self.head.len() + tail.len()) as u64;
        let mut held = std::mem::take(&mut self.head);
        let head = held.len();
        held.extend_from_slice(tail);
        if whole && held.len() <= share {
            return (String::from_utf8_lossy(&held).into_owned(), None);
        }
        // If no byte was dropped, beginning and end form one contiguous text that can be split
        // anywhere.
        let (first, last) = match whole {
            true => (share - share / 3, share / 3),
            false => (
                (share - share / 3).min(head),
                (share / 3).min(held.len() - head),
            ),
        };
        let first = border(&held, first);
        let last = &held[held.len() - last..];
        let last = &last[begin(last)..];
        let gone = self.total - (first + last.len()) as u64;
        let text = format!(
            "{}{}{}",
            String::from_utf8_lossy(&held[..first]),
            left_out(gone),
            String::from_utf8_lossy(last)
        );
        (text, Some(self.total))
    }
}

/// Returns the last UTF-8 character boundary at or before `at`.
pub(crate) fn border(bytes: &[u8], at: usize) -> usize {
    let inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    // A UTF-8 character has at most three continuation bytes; bytes with more are not text and are
    // cut at `at`.
    (at.saturating_sub(3)..=at)
        .rev()
        .find(|at| !inside(*at))
        .unwrap_or(at)
}

/// Returns the offset of the first complete UTF-8 character.
fn begin(bytes: &[u8]) -> usize {
    (0..=bytes.len().min(3))
        .find(|at| bytes.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use OutputStream::{Stderr, Stdout};

    fn ended(limit: u64, pieces: &[(OutputStream, &[u8])]) -> (Ended, Vec<u8>) {
        let mut kept = RetainedOutput::new(limit);
        let mut live = Vec::new();
        for (stream, bytes) in pieces {
            live.extend_from_slice(kept.push(*stream, bytes, Memory::Free));
        }
        (kept.finish(), live)
    }

    /// `push` returns the bytes that its caller writes to the journal at once: `live`.
    #[test]
    fn program_output_below_the_limit_is_complete_and_journalled_at_once() {
        let (ended, live) = ended(9, &[(Stdout, b"12345"), (Stderr, b"6"), (Stdout, b"789")]);
        assert_eq!(
            (ended.stdout.as_str(), ended.stderr.as_str()),
            ("12345789", "6")
        );
        assert_eq!((ended.cut.any(), ended.rest.len()), (false, 0));
        assert_eq!(live, b"123456789");
    }

    #[test]
    fn program_output_above_the_limit_retains_beginning_and_end() {
        let (one_more, _) = ended(9, &[(Stdout, b"0123456789")]);
        assert_eq!(one_more.stdout, "012345\n[… 1 bytes left out …]\n789");
        assert!(one_more.rest == [(Stdout, None, b"9".to_vec())]);
        let (flood, live) = ended(9, &[(Stdout, b"0123456789abcdefghij"), (Stdout, b"klm")]);
        assert_eq!(flood.stdout, "012345\n[… 14 bytes left out …]\nklm");
        assert_eq!(
            flood.cut,
            Cut {
                stdout: Some(23),
                stderr: None
            }
        );
        assert_eq!(live, b"012345678");
        let mark = "\n[… 11 bytes left out …]\n".to_owned();
        assert!(flood.rest == [(Stdout, Some(mark), b"klm".to_vec())]);
    }

    #[test]
    fn short_stderr_is_complete_next_to_truncated_stdout() {
        let flood = [b'x'; 1000];
        let pieces: [(OutputStream, &[u8]); 3] =
            [(Stdout, &flood), (Stderr, b"why"), (Stdout, &flood)];
        let (ended, _) = ended(90, &pieces);
        assert_eq!(ended.stderr, "why");
        assert_eq!(
            ended.cut,
            Cut {
                stdout: Some(2000),
                stderr: None
            }
        );
    }

    #[test]
    fn output_truncation_splits_no_utf8_character() {
        let text = "aé€😀".repeat(20);
        for limit in 0..60 {
            for size in 1..12 {
                let chars: Vec<char> = text.chars().collect();
                let mut kept = RetainedOutput::new(limit);
                for piece in chars.chunks(size) {
                    let piece: String = piece.iter().collect();
                    let now = kept.push(Stdout, piece.as_bytes(), Memory::Free);
                    assert!(std::str::from_utf8(now).is_ok());
                }
                let ended = kept.finish();
                assert!(
                    !ended.stdout.contains('\u{fffd}'),
                    "{limit} {size}: {}",
                    ended.stdout
                );
                assert!(
                    ended
                        .rest
                        .iter()
                        .all(|(_, _, end)| std::str::from_utf8(end).is_ok())
                );
            }
        }
    }

    #[test]
    fn memory_for_unlimited_program_output_is_bounded() {
        let mut kept = RetainedOutput::new(3000);
        for _ in 0..10_000 {
            kept.push(Stdout, &[b'x'; 100], Memory::Free);
            kept.push(Stderr, &[b'y'; 100], Memory::Free);
            assert!(kept.held() <= 4000, "{}", kept.held());
        }
        let ended = kept.finish();
        let texts = ended.stdout.len() + ended.stderr.len();
        assert!((2800..3100).contains(&texts), "{texts}");
        assert_eq!(
            ended.cut,
            Cut {
                stdout: Some(1_000_000),
                stderr: Some(1_000_000)
            }
        );
    }

    /// `push` returns the bytes for the journal, also while the memory for all output is full.
    #[test]
    fn output_that_memory_does_not_retain_is_still_written_to_the_journal() {
        let mut kept = RetainedOutput::new(90);
        assert_eq!(kept.push(Stdout, b"first ", Memory::Free), b"first ");
        assert_eq!(kept.push(Stdout, b"second", Memory::Full), b"second");
        let ended = kept.finish();
        assert_eq!(ended.stdout, "first \n[… 6 bytes left out …]\n");
        assert!(ended.cut.stdout == Some(12) && ended.rest.is_empty());
    }
}
