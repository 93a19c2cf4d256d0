//! Body filters of the egress bridge: count bytes, enforce limits, remove secret values from
//! responses.

use super::budget::Budget;
use super::denial::Reason;
use super::secrets::Scrubber;
use super::trace::Trace;
use crate::relay::BodyFilter;
use bytes::Bytes;
use std::sync::Arc;

/// Reason why the bridge aborted a request or response body; the egress log has the same reason.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.as_str())]
pub(super) struct BodyError(pub Reason);

/// Filter of a request body, from the guest to a host.
pub(super) struct RequestFilter {
    pub trace: Arc<Trace>,
    pub budget: Arc<Budget>,
}

impl BodyFilter for RequestFilter {
    type Error = BodyError;

    fn data(&mut self, data: Bytes) -> Result<Bytes, BodyError> {
        let new = data.len() as u64;
        let sum = self.trace.sent(new);
        match self.budget.sent(sum, new) {
            Ok(()) => Ok(data),
            Err(reason) => Err(BodyError(self.trace.stopped(reason))),
        }
    }

    fn aborted(&mut self) -> BodyError {
        BodyError(self.trace.stopped(Reason::ClientGone))
    }
}

/// Filter of a response body, from a host to the guest.
pub(super) struct ResponseFilter {
    pub trace: Arc<Trace>,
    pub budget: Arc<Budget>,
    /// Replaces secret values by placeholders; `None` forwards the body unchanged.
    pub scrubber: Option<Scrubber>,
}

impl BodyFilter for ResponseFilter {
    type Error = BodyError;

    fn data(&mut self, data: Bytes) -> Result<Bytes, BodyError> {
        let new = data.len() as u64;
        let sum = self.trace.received(new);
        if let Err(reason) = self.budget.received(sum, new) {
            return Err(BodyError(self.trace.stopped(reason)));
        }
        Ok(match &mut self.scrubber {
            Some(scrubber) => scrubber.push(&data),
            None => data,
        })
    }

    fn aborted(&mut self) -> BodyError {
        BodyError(self.trace.stopped(Reason::UpstreamFailed))
    }

    fn end(&mut self) -> Bytes {
        self.trace.passed();
        self.scrubber
            .as_mut()
            .map(Scrubber::finish)
            .unwrap_or_default()
    }

    fn holds_back(&self) -> bool {
        self.scrubber.as_ref().is_some_and(Scrubber::holds_back)
    }

    /// Returns true only without a scrubber, because replacing values changes the length.
    fn keeps_length(&self) -> bool {
        self.scrubber.is_none()
    }
}
