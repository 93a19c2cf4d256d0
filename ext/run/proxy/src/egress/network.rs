//! Name resolution and connections of the bridge.
//!
//! The resolver cannot connect and the connector cannot resolve, so the bridge connects to exactly
//! the address it checked.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use tokio::net::TcpStream;

/// Future in a box, so that the traits below can be used as trait objects.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Resolves host names to addresses.
pub trait Resolve: Send + Sync {
    /// Returns all addresses of the name `host`, from a single lookup.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>>;
}

/// Opens TCP connections to addresses.
pub trait Connect: Send + Sync {
    /// Connects to exactly this address, which the bridge has checked.
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>>;
}

/// Resolver that calls the host's `getaddrinfo`: hosts file first, then name servers.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// Connector that opens plain TCP connections from this host.
pub(super) struct DirectConnector;

impl Connect for DirectConnector {
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }
}
