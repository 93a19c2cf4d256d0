//! Bodies in both directions: bounded in size, ended when nothing moves, without trailers.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep, sleep};

/// A body of either direction.
pub(super) type Carried = UnsyncBoxBody<Bytes, Broken>;

/// Why a body broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    /// More than it may have.
    #[error("too large")]
    TooLarge,
    /// Nothing came for too long.
    #[error("nothing came")]
    Idle,
    /// The other side ended in its middle.
    #[error("broken off")]
    Gone,
}

/// Words of our own.
pub(super) fn words(text: &str) -> Carried {
    Full::new(Bytes::from(text.to_owned()))
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// The task that moves the guest's connection; it ends with whoever holds this.
pub(super) struct Connection(AbortHandle);

impl Connection {
    pub(super) fn spawn(task: impl Future<Output = hyper::Result<()>> + Send + 'static) -> Self {
        Self(tokio::spawn(task).abort_handle())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A body with bounds.
pub(super) struct Bounded {
    inner: Incoming,
    left: u64,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    /// Ends with the body.
    _connection: Option<Connection>,
}

impl Bounded {
    pub(super) fn new(
        inner: Incoming,
        most: u64,
        idle: Duration,
        connection: Option<Connection>,
    ) -> Self {
        Self {
            inner,
            left: most,
            idle,
            timer: Box::pin(sleep(idle)),
            _connection: connection,
        }
    }
}

impl Body for Bounded {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
                ready!(self.timer.as_mut().poll(cx));
                return Poll::Ready(Some(Err(Broken::Idle)));
            };
            let idle = self.idle;
            self.timer.as_mut().reset(Instant::now() + idle);
            let data = match frame {
                None => return Poll::Ready(None),
                Some(Err(_)) => return Poll::Ready(Some(Err(Broken::Gone))),
                // Trailers could carry what a header may not.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(_) => continue,
                },
            };
            let Some(left) = self.left.checked_sub(data.len() as u64) else {
                return Poll::Ready(Some(Err(Broken::TooLarge)));
            };
            self.left = left;
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
