//! Bodies on their way, in either direction: counted, bounded, cleaned.

use super::budget::Budget;
use super::denial::Reason;
use super::secrets::Scrubber;
use super::trace::Trace;
use crate::relay::Judge;
use bytes::Bytes;
use std::sync::Arc;

/// Why a body broke off; the reason is in the log as well.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.as_str())]
pub(super) struct Broken(pub Reason);

/// The guest's body on its way to a host.
pub(super) struct Outgoing {
    pub trace: Arc<Trace>,
    pub budget: Arc<Budget>,
}

impl Judge for Outgoing {
    type Broken = Broken;

    fn data(&mut self, data: Bytes) -> Result<Bytes, Broken> {
        let new = data.len() as u64;
        let sum = self.trace.sent(new);
        match self.budget.sent(sum, new) {
            Ok(()) => Ok(data),
            Err(reason) => Err(Broken(self.trace.stopped(reason))),
        }
    }

    fn gone(&mut self) -> Broken {
        Broken(self.trace.stopped(Reason::ClientGone))
    }
}

/// A host's body on its way to the guest.
pub(super) struct Returning {
    pub trace: Arc<Trace>,
    pub budget: Arc<Budget>,
    /// None: it goes on as it comes.
    pub scrubber: Option<Scrubber>,
}

impl Judge for Returning {
    type Broken = Broken;

    fn data(&mut self, data: Bytes) -> Result<Bytes, Broken> {
        let new = data.len() as u64;
        let sum = self.trace.received(new);
        if let Err(reason) = self.budget.received(sum, new) {
            return Err(Broken(self.trace.stopped(reason)));
        }
        Ok(match &mut self.scrubber {
            Some(scrubber) => scrubber.push(&data),
            None => data,
        })
    }

    fn gone(&mut self) -> Broken {
        Broken(self.trace.stopped(Reason::UpstreamFailed))
    }

    fn end(&mut self) -> Bytes {
        self.trace.passed();
        self.scrubber
            .as_mut()
            .map(Scrubber::finish)
            .unwrap_or_default()
    }

    fn holds(&self) -> bool {
        self.scrubber.as_ref().is_some_and(Scrubber::holds)
    }

    /// Cleaning changes it.
    fn keeps_length(&self) -> bool {
        self.scrubber.is_none()
    }
}
