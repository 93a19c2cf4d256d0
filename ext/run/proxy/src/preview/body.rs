//! Body filters of the preview: enforce size limits and the idle timeout in both directions.

use crate::relay::{BodyFilter, FilteredBody};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Body of a request or response that the preview forwards piece by piece.
pub(super) type StreamedBody = UnsyncBoxBody<Bytes, BodyError>;

/// Reason why the preview aborted a request or response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    /// The body exceeds its size limit.
    #[error("the body of a request to the preview, or of the response, exceeds its size limit")]
    TooLarge,
    /// No data arrived within the idle timeout.
    #[error(
        "no data of the body of a request to the preview, or of the response, arrived within the idle timeout"
    )]
    Idle,
    /// The sender closed the connection before the end of the body.
    #[error(
        "the sender of a request to the preview, or of the response, closed the connection before the end of the body"
    )]
    Gone,
}

/// Returns a body that consists of this text.
pub(super) fn words(text: &str) -> StreamedBody {
    Full::new(Bytes::from(text.to_owned()))
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Wraps a body with a size limit and an idle timeout. `attached` is dropped with the body.
pub(super) fn bounded<K: Send + Unpin + 'static>(
    inner: Incoming,
    most: u64,
    idle: Duration,
    attached: K,
) -> StreamedBody {
    let bounds = Bounds {
        left: most,
        idle,
        timer: Box::pin(sleep(idle)),
    };
    FilteredBody::new(inner, bounds, attached).boxed_unsync()
}

struct Bounds {
    left: u64,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
}

impl BodyFilter for Bounds {
    type Error = BodyError;

    fn data(&mut self, data: Bytes) -> Result<Bytes, BodyError> {
        let idle = self.idle;
        self.timer.as_mut().reset(Instant::now() + idle);
        self.left = self
            .left
            .checked_sub(data.len() as u64)
            .ok_or(BodyError::TooLarge)?;
        Ok(data)
    }

    fn aborted(&mut self) -> BodyError {
        BodyError::Gone
    }

    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<BodyError> {
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(BodyError::Idle)
    }
}
