//! Destinations to which the egress bridge may send the value of a secret.

use super::{Authority, Host, HostError};

/// A destination to which the bridge may send the value of a secret.
///
/// `host` and `host:port` mean TLS only; `http://host[:port]` allows plain HTTP to that host
/// and port. Default port: 443, or 80 for `http://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretScope {
    host: Host,
    port: u16,
    transport: Transport,
}

/// Transport over which the bridge sends a request to its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Plain HTTP.
    Plain,
    /// HTTP over TLS with a verified certificate.
    Tls,
}

impl Transport {
    /// Returns the port that applies if a URL contains no port.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Plain => 80,
            Self::Tls => 443,
        }
    }

    /// Returns the scheme of a URL, `http` or `https`.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Plain => "http",
            Self::Tls => "https",
        }
    }
}

impl SecretScope {
    /// Parses one entry in the list of hosts of a secret.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let (transport, rest) = match text.strip_prefix("http://") {
            Some(rest) => (Transport::Plain, rest),
            None => (
                Transport::Tls,
                text.strip_prefix("https://").unwrap_or(text),
            ),
        };
        let authority = Authority::parse(rest)?;
        Ok(Self {
            host: authority.host,
            port: authority.port.unwrap_or(transport.default_port()),
            transport,
        })
    }

    /// Returns host and port of the destination, for comparison with the rules.
    #[must_use]
    pub fn authority(&self) -> Authority {
        Authority {
            host: self.host.clone(),
            port: Some(self.port),
        }
    }

    /// Returns whether the secret may be sent to this host and port over this transport.
    #[must_use]
    pub fn covers(&self, transport: Transport, host: &Host, port: u16) -> bool {
        self.transport == transport && self.host == *host && self.port == port
    }

    /// Returns whether the secret may be sent to this host at some port.
    #[must_use]
    pub fn binds(&self, host: &Host) -> bool {
        self.host == *host
    }
}
