//! Bodies on their way, in either direction: counted, bounded, cleaned, without trailers.

use super::budget::Budget;
use super::denial::Reason;
use super::secrets::Scrubber;
use super::trace::Trace;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::AbortHandle;

/// Why a body broke off; the reason is in the log as well.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.as_str())]
pub(super) struct Broken(pub Reason);

/// The guest's body on its way to a host.
pub(super) struct Outgoing {
    pub inner: Incoming,
    pub trace: Arc<Trace>,
    pub budget: Arc<Budget>,
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(_)) => {
                    return Poll::Ready(Some(Err(Broken(self.trace.stopped(Reason::ClientGone)))));
                }
                Some(Ok(frame)) => {
                    // Trailers could carry what a header may not.
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    let new = data.len() as u64;
                    let sum = self.trace.sent(new);
                    return Poll::Ready(Some(match self.budget.sent(sum, new) {
                        Ok(()) => Ok(Frame::data(data)),
                        Err(reason) => Err(Broken(self.trace.stopped(reason))),
                    }));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The task that moves a host's connection; it ends with whoever holds this.
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

/// A host's body on its way to the guest.
pub(super) struct Returning {
    inner: Incoming,
    trace: Arc<Trace>,
    budget: Arc<Budget>,
    scrubber: Option<Scrubber>,
    /// Ends with the body.
    _connection: Connection,
    over: bool,
}

impl Returning {
    pub(super) fn new(
        inner: Incoming,
        trace: Arc<Trace>,
        budget: Arc<Budget>,
        scrubber: Option<Scrubber>,
        connection: Connection,
    ) -> Self {
        let mut body = Self {
            inner,
            trace,
            budget,
            scrubber,
            _connection: connection,
            over: false,
        };
        body.notice_end();
        body
    }

    /// The server does not ask an ended body for its end.
    fn notice_end(&mut self) {
        if self.inner.is_end_stream() && !self.scrubber.as_ref().is_some_and(Scrubber::holds) {
            self.over = true;
            self.trace.passed();
        }
    }
}

impl Body for Returning {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if self.over {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    let new = data.len() as u64;
                    let sum = self.trace.received(new);
                    if let Err(reason) = self.budget.received(sum, new) {
                        self.over = true;
                        return Poll::Ready(Some(Err(Broken(self.trace.stopped(reason)))));
                    }
                    let data = match &mut self.scrubber {
                        Some(scrubber) => scrubber.push(data),
                        None => data,
                    };
                    self.notice_end();
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                Some(Err(_)) => {
                    self.over = true;
                    return Poll::Ready(Some(Err(Broken(
                        self.trace.stopped(Reason::UpstreamFailed),
                    ))));
                }
                None => {
                    self.over = true;
                    self.trace.passed();
                    let rest = self
                        .scrubber
                        .as_mut()
                        .map(Scrubber::finish)
                        .unwrap_or_default();
                    if !rest.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(rest))));
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.over
    }

    fn size_hint(&self) -> SizeHint {
        // Cleaning changes the length.
        match (&self.scrubber, self.over) {
            (_, true) => SizeHint::with_exact(0),
            (None, false) => self.inner.size_hint(),
            (Some(_), false) => SizeHint::default(),
        }
    }
}
