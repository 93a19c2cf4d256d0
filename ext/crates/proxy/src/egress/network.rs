//! The way out of the bridge: names to addresses, addresses to connections.
//!
//! Whoever resolves does not connect and whoever connects does not resolve, so an answer
//! that was judged is the address that is reached.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use tokio::net::TcpStream;

/// A future that can be kept behind a trait object.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Names to addresses.
pub trait Resolve: Send + Sync {
    /// Every address of a name, asked once.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>>;
}

/// Addresses to connections.
pub trait Connect: Send + Sync {
    /// A connection to exactly this address, which was judged.
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>>;
}

/// getaddrinfo of this host: its hosts file, then its name servers.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// A plain connection.
pub(super) struct DirectConnector;

impl Connect for DirectConnector {
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }
}
