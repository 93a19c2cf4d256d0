//! Bodies in both directions: bounded in size, ended when nothing moves.

use crate::relay::{Judge, Passing};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
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

/// A body with bounds. `keeps` lives as long as it does.
pub(super) fn bounded<K: Send + Unpin + 'static>(
    inner: Incoming,
    most: u64,
    idle: Duration,
    keeps: K,
) -> Carried {
    let bounds = Bounds {
        left: most,
        idle,
        timer: Box::pin(sleep(idle)),
    };
    Passing::new(inner, bounds, keeps).boxed_unsync()
}

struct Bounds {
    left: u64,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Judge for Bounds {
    type Broken = Broken;

    fn data(&mut self, data: Bytes) -> Result<Bytes, Broken> {
        let idle = self.idle;
        self.timer.as_mut().reset(Instant::now() + idle);
        self.left = self
            .left
            .checked_sub(data.len() as u64)
            .ok_or(Broken::TooLarge)?;
        Ok(data)
    }

    fn gone(&mut self) -> Broken {
        Broken::Gone
    }

    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Broken> {
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(Broken::Idle)
    }
}
