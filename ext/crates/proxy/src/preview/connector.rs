//! How a preview gets a connection to the guest's web server.

use std::os::fd::OwnedFd;
use tokio::sync::oneshot;
use wp_codebox_contracts::ErrorBody;

/// Where the answer to [`GuestConnector::connect`] goes. Dropped, it means no.
pub type ConnectReply = oneshot::Sender<Result<OwnedFd, ErrorBody>>;

/// Opens connections to the guest's web server. It answers later, from another thread.
pub trait GuestConnector: Send + Sync {
    /// Asks for one connection.
    fn connect(&self, reply: ConnectReply);
}
