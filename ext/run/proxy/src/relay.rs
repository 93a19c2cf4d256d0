//! Filters HTTP bodies that pass through this process: checks each piece, drops trailers, and keeps
//! a value (such as a connection) alive as long as the body.
//!
//! A [`BodyFilter`] checks and changes the data. This module handles body frames and the end of a
//! body, for both the egress bridge and the preview.

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};
use tokio::task::AbortHandle;

/// Number of bytes that a task reads from a connection before it lets other tasks run.
const READ_TURN: u64 = 16 * 1024;

/// Checks and changes the data of one body.
pub(crate) trait BodyFilter: Unpin {
    /// Error that aborts the body.
    type Error;

    /// Filters a piece of received data. Returns the data to forward; empty when the filter holds
    /// it back.
    fn data(&mut self, data: Bytes) -> Result<Bytes, Self::Error>;

    /// Returns the error for a body whose sender closed the connection early.
    fn aborted(&mut self) -> Self::Error;

    /// Called at the end of the body. Returns the data held back so far.
    fn end(&mut self) -> Bytes {
        Bytes::new()
    }

    /// Returns whether the filter holds data back.
    fn holds_back(&self) -> bool {
        false
    }

    /// Returns true if the filter never changes the length of the body.
    fn keeps_length(&self) -> bool {
        true
    }

    /// Called when no data is available. Returns `Ready` with an error after the idle timeout.
    fn wait(&mut self, _cx: &mut Context<'_>) -> Poll<Self::Error> {
        Poll::Pending
    }
}

/// Task that runs an HTTP connection; the task is aborted when this value is dropped.
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

/// Connection that lets other tasks run after every [`READ_TURN`] bytes. Otherwise the HTTP library
/// would read an endless head without pause and block the only thread, so that no timer could fire.
pub(crate) struct YieldingReader<S>(Take<S>);

impl<S: AsyncRead> YieldingReader<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self(inner.take(READ_TURN))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for YieldingReader<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.limit() == 0 {
            self.0.set_limit(READ_TURN);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let read = Pin::new(&mut self.0).poll_read(cx, buffer);
        if read.is_pending() {
            self.0.set_limit(READ_TURN);
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for YieldingReader<S> {
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

/// Body whose data passes through a filter, with an attached value that is dropped together with
/// it.
pub(crate) struct FilteredBody<F, K> {
    inner: Incoming,
    filter: F,
    ended: bool,
    _attached: K,
}

impl<F: BodyFilter, K> FilteredBody<F, K> {
    /// Wraps `inner`. `attached` is dropped with the body.
    pub(crate) fn new(inner: Incoming, filter: F, attached: K) -> Self {
        let mut body = Self {
            inner,
            filter,
            ended: false,
            _attached: attached,
        };
        body.notice_end();
        body
    }

    /// Checks for the end of the body. The HTTP library stops polling once `is_end_stream` is true,
    /// so no later poll would notice the end.
    fn notice_end(&mut self) {
        if self.inner.is_end_stream() && !self.filter.holds_back() {
            self.ended = true;
            self.filter.end();
        }
    }
}

impl<F: BodyFilter, K: Unpin> Body for FilteredBody<F, K> {
    type Data = Bytes;
    type Error = F::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, F::Error>>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
                let error = ready!(self.filter.wait(cx));
                self.ended = true;
                return Poll::Ready(Some(Err(error)));
            };
            let filtered = match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.filter.data(data),
                    // Drops trailers: a trailer could carry a field that is refused as a header.
                    Err(_) => continue,
                },
                Some(Err(_)) => Err(self.filter.aborted()),
                None => {
                    self.ended = true;
                    Ok(self.filter.end())
                }
            };
            match filtered {
                Ok(data) => {
                    if !self.ended {
                        self.notice_end();
                    }
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                Err(error) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        match (self.ended, self.filter.keeps_length()) {
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
    fn relay_reader_yields_to_the_scheduler_after_every_16_kib_and_loses_no_byte() {
        let sent: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        let mut stream = YieldingReader::new(sent.as_slice());
        let mut cx = Context::from_waker(Waker::noop());
        let (mut received, mut turn, mut turns) = (Vec::new(), 0, 0);
        loop {
            let mut storage = [0; 5000];
            let mut buffer = ReadBuf::new(&mut storage);
            match Pin::new(&mut stream).poll_read(&mut cx, &mut buffer) {
                Poll::Pending => (turn, turns) = (0, turns + 1),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => break,
                Poll::Ready(read) => {
                    read.unwrap();
                    turn += buffer.filled().len() as u64;
                    assert!(turn <= READ_TURN, "{turn}");
                    received.extend_from_slice(buffer.filled());
                }
            }
        }
        assert_eq!(received, sent);
        assert_eq!(turns, 12, "16 KiB each");
    }
}
