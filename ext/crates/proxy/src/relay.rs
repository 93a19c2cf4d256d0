//! Bodies on their way through this process, in either direction: judged piece by piece, without
//! trailers, together with the connection that they come from.
//!
//! Who relays says what holds for its bodies with a [`Judge`]; what a body is and when it has ended
//! is said here once.

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};
use tokio::task::AbortHandle;

/// Bytes that one side sends in its turn.
const TURN: u64 = 16 * 1024;

/// What holds for a body.
pub(crate) trait Judge: Unpin {
    /// Why one breaks off.
    type Broken;

    /// Data came. What of it goes on; nothing: it is held back for now.
    fn data(&mut self, data: Bytes) -> Result<Bytes, Self::Broken>;

    /// The side that it comes from broke off in its middle.
    fn gone(&mut self) -> Self::Broken;

    /// It has come to its end. What was held back goes on.
    fn end(&mut self) -> Bytes {
        Bytes::new()
    }

    /// Whether something is held back.
    fn holds(&self) -> bool {
        false
    }

    /// Whether what goes on is as long as what comes.
    fn keeps_length(&self) -> bool {
        true
    }

    /// Nothing came yet. Ready: it was waited for too long.
    fn wait(&mut self, _cx: &mut Context<'_>) -> Poll<Self::Broken> {
        Poll::Pending
    }
}

/// The task that moves a connection; it ends with whoever holds this.
pub(crate) struct Connection(AbortHandle);

impl Connection {
    pub(crate) fn spawn(task: impl Future<Output = hyper::Result<()>> + Send + 'static) -> Self {
        Self(tokio::spawn(task).abort_handle())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection that is read in turns with everybody else's. Heads without end, which a library
/// reads on and on, would keep the only thread for themselves: no timer would end them.
pub(crate) struct Fair<S>(Take<S>);

impl<S: AsyncRead> Fair<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self(inner.take(TURN))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Fair<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.limit() == 0 {
            self.0.set_limit(TURN);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let read = Pin::new(&mut self.0).poll_read(cx, buffer);
        if read.is_pending() {
            self.0.set_limit(TURN);
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Fair<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.0.get_mut()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.0.get_mut()).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.0.get_mut()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.0.get_mut()).poll_shutdown(cx)
    }
}

/// A body that goes through, and what lives as long as it does.
pub(crate) struct Passing<J, K> {
    inner: Incoming,
    judge: J,
    over: bool,
    _keeps: K,
}

impl<J: Judge, K> Passing<J, K> {
    /// `keeps` is dropped with the body.
    pub(crate) fn new(inner: Incoming, judge: J, keeps: K) -> Self {
        let mut body = Self {
            inner,
            judge,
            over: false,
            _keeps: keeps,
        };
        body.notice_end();
        body
    }

    /// Whoever sends a body on does not ask an ended one for its end.
    fn notice_end(&mut self) {
        if self.inner.is_end_stream() && !self.judge.holds() {
            self.over = true;
            self.judge.end();
        }
    }
}

impl<J: Judge, K: Unpin> Body for Passing<J, K> {
    type Data = Bytes;
    type Error = J::Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, J::Broken>>> {
        loop {
            if self.over {
                return Poll::Ready(None);
            }
            let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
                let broken = ready!(self.judge.wait(cx));
                self.over = true;
                return Poll::Ready(Some(Err(broken)));
            };
            let passed = match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.judge.data(data),
                    // Trailers could carry what a header may not.
                    Err(_) => continue,
                },
                Some(Err(_)) => Err(self.judge.gone()),
                None => {
                    self.over = true;
                    Ok(self.judge.end())
                }
            };
            match passed {
                Ok(data) => {
                    if !self.over {
                        self.notice_end();
                    }
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                Err(broken) => {
                    self.over = true;
                    return Poll::Ready(Some(Err(broken)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.over
    }

    fn size_hint(&self) -> SizeHint {
        match (self.over, self.judge.keeps_length()) {
            (true, _) => SizeHint::with_exact(0),
            (false, true) => self.inner.size_hint(),
            (false, false) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn who_always_has_more_to_say_gives_way_and_loses_nothing() {
        let said: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        let mut stream = Fair::new(said.as_slice());
        let mut cx = Context::from_waker(Waker::noop());
        let (mut heard, mut turn, mut turns) = (Vec::new(), 0, 0);
        loop {
            let mut room = [0; 5000];
            let mut buffer = ReadBuf::new(&mut room);
            match Pin::new(&mut stream).poll_read(&mut cx, &mut buffer) {
                Poll::Pending => (turn, turns) = (0, turns + 1),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => break,
                Poll::Ready(read) => {
                    read.unwrap();
                    turn += buffer.filled().len() as u64;
                    assert!(turn <= TURN, "{turn}");
                    heard.extend_from_slice(buffer.filled());
                }
            }
        }
        assert_eq!(heard, said);
        assert_eq!(turns, 12, "16 KiB each");
    }
}
