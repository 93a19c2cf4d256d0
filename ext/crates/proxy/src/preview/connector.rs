//! Interface by which a preview gets connections to the guest's web server.

use std::os::fd::OwnedFd;
use tokio::sync::oneshot;
use wp_codebox_contracts::ErrorBody;

/// Receiver of the result of [`GuestConnector::connect`]. Dropping it means failure.
pub type ConnectReply = oneshot::Sender<Result<OwnedFd, ErrorBody>>;

/// Opens connections to the guest's web server. The reply comes later, from another thread.
pub trait GuestConnector: Send + Sync {
    /// Requests one connection.
    fn connect(&self, reply: ConnectReply);
}
