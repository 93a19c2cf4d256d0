//! Interface by which a preview gets connections to the guest's web server.

use std::os::fd::OwnedFd;
use tokio::sync::oneshot;
use wp_codebox_contracts::ErrorBody;

/// One-time channel on which a [`GuestConnector`] sends the connection or an error. Dropping it
/// without sending means failure.
pub type ConnectReply = oneshot::Sender<Result<OwnedFd, ErrorBody>>;

/// Opens connections to the guest's web server. The reply comes later, from another thread.
pub trait GuestConnector: Send + Sync {
    /// Requests one connection; the result is sent on `reply`.
    fn connect(&self, reply: ConnectReply);
}
