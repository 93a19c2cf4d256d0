//! Opens connections to hosts by name.
//!
//! The bridge resolves a name once. If any of the name's addresses is not allowed, the bridge
//! refuses the request; otherwise it connects to one of these addresses.

use super::config::{BridgeLimits, Network, Trust};
use super::denial::Reason;
use super::error::EgressError;
use super::metered::Metered;
use super::route::Target;
use super::stream::Io;
use super::tls::client_tls;
use super::trace::Trace;
use rustls::pki_types::ServerName;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use wp_codebox_policy::{Host, ModelBase, Transport, check_address};
use wp_codebox_runtime::UsageMeter;

/// Maximum number of a name's addresses to which the bridge tries to connect.
const ATTEMPTS: usize = 4;

/// Which addresses a host name may resolve to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Allowed<'a> {
    /// Host named by the guest: public addresses only. The log shows the address.
    Public,
    /// Model endpoint named by the host's settings: the addresses that these settings allow. The
    /// log omits the address.
    Model(&'a ModelBase),
}

impl Allowed<'_> {
    fn judge(self, address: IpAddr) -> Result<(), Reason> {
        match self {
            Self::Public => check_address(address).map_err(|_| Reason::PrivateAddress),
            Self::Model(base) => base
                .check_address(address)
                .map_err(|_| Reason::ModelAddress),
        }
    }
}

/// Opens connections of the bridge to hosts.
pub(super) struct Upstream {
    network: Network,
    tls: TlsConnector,
    limits: BridgeLimits,
    used: Arc<UsageMeter>,
}

impl Upstream {
    pub(super) fn new(
        network: Network,
        trust: &Trust,
        limits: BridgeLimits,
        used: Arc<UsageMeter>,
    ) -> Result<Self, EgressError> {
        let mut config = client_tls(trust)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            network,
            tls: TlsConnector::from(Arc::new(config)),
            limits,
            used,
        })
    }

    /// Opens a TCP connection without TLS, for a guest's tunnel.
    pub(super) async fn tunnel(&self, host: &Host, port: u16, trace: &Trace) -> Result<Io, Reason> {
        let opening = self.reach(host, port, Allowed::Public, trace);
        match tokio::time::timeout(self.limits.connect_timeout, opening).await {
            Ok(stream) => Ok(Box::new(stream?) as Io),
            Err(_) => Err(Reason::ConnectTimeout),
        }
    }

    /// Opens a connection for a request; completes the TLS handshake when the target uses TLS.
    pub(super) async fn open(
        &self,
        target: &Target,
        allowed: Allowed<'_>,
        trace: &Trace,
    ) -> Result<Io, Reason> {
        let host = &target.host;
        let opening = async {
            let stream = self.reach(host, target.port, allowed, trace).await?;
            match target.transport {
                Transport::Plain => Ok(Box::new(stream) as Io),
                Transport::Tls => {
                    let name = match host.address() {
                        Some(address) => ServerName::from(address),
                        None => ServerName::try_from(host.as_str().to_owned())
                            .map_err(|_| Reason::HostInvalid)?,
                    };
                    let stream = self
                        .tls
                        .connect(name, stream)
                        .await
                        .map_err(|_| Reason::TlsFailed)?;
                    Ok(Box::new(stream) as Io)
                }
            }
        };
        tokio::time::timeout(self.limits.connect_timeout, opening)
            .await
            .unwrap_or(Err(Reason::ConnectTimeout))
    }

    async fn reach(
        &self,
        host: &Host,
        port: u16,
        allowed: Allowed<'_>,
        trace: &Trace,
    ) -> Result<Metered<TcpStream>, Reason> {
        let addresses = self.addresses(host, port, allowed).await?;
        let tries = addresses.len().clamp(1, ATTEMPTS);
        let share = self.limits.connect_timeout / u32::try_from(tries).unwrap_or(1);
        let mut answer = Reason::ConnectFailed;
        for address in addresses.into_iter().take(ATTEMPTS) {
            match allowed {
                Allowed::Public => trace.describe(|row| row.address = address.ip().to_string()),
                Allowed::Model(_) => {}
            }
            let attempt = self.network.connector.connect(address);
            match tokio::time::timeout(share, attempt).await {
                Ok(Ok(stream)) => {
                    // Nagle's algorithm would delay the small writes of a streamed body.
                    let _ = stream.set_nodelay(true);
                    return Ok(Metered::new(stream, Arc::clone(&self.used)));
                }
                Ok(Err(_)) => answer = Reason::ConnectFailed,
                Err(_) => answer = Reason::ConnectTimeout,
            }
        }
        Err(answer)
    }

    async fn addresses(
        &self,
        host: &Host,
        port: u16,
        allowed: Allowed<'_>,
    ) -> Result<Vec<SocketAddr>, Reason> {
        let found: Vec<IpAddr> = match host.address() {
            Some(address) => vec![address],
            None => self
                .network
                .resolver
                .resolve(host.as_str(), port)
                .await
                .map_err(|_| Reason::NameNotFound)?
                .into_iter()
                .map(|address| address.ip())
                .collect(),
        };
        if found.is_empty() {
            return Err(Reason::NameNotFound);
        }
        for &address in &found {
            allowed.judge(address)?;
        }
        Ok(found
            .into_iter()
            .map(|address| SocketAddr::new(address, port))
            .collect())
    }
}
