//! Bodies on their way through this process, in either direction: judged piece by piece, without
//! trailers, together with the connection that they come from.
//!
//! Who relays says what holds for its bodies with a [`Judge`]; what a body is and when it has ended
//! is said here once.

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::task::AbortHandle;

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
