//! The address of a model: one spelling, and whom it may lead to.

use crate::network::{Forbidden, Host, HostError, Transport, judge_address, parse_port};
use std::net::{IpAddr, Ipv6Addr};

/// Longest address, bytes.
const MAX_URL: usize = 2_048;
/// A metadata service in the range of private addresses.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaseError {
    /// Too long, or characters that are read differently by different programs.
    #[error(
        "must be an address of letters, digits and - . _ ~ / : only, at most {MAX_URL} characters"
    )]
    Character,
    /// No scheme that is spoken.
    #[error(
        "must begin with https://, or with http:// where it is on this host or in its private network"
    )]
    Scheme,
    /// Credentials in it.
    #[error("must not hold a user or a key: name a secret instead")]
    UserInfo,
    /// More than a base.
    #[error("must have no query and no fragment")]
    Query,
    /// No path that can be appended to.
    #[error("must not end in / and must have no empty, . or .. part in its path")]
    Path,
    /// No host.
    #[error("has a host that is not accepted: {0}")]
    Host(HostError),
    /// An address that it may not lead to.
    #[error("leads to an address that {0}")]
    Address(Astray),
    /// In the clear over the internet.
    #[error(
        "must begin with https://: http:// is accepted for localhost, private addresses, and names without a dot or ending in .local or .internal"
    )]
    Plain,
}

/// Why an address is not used for a model. Completes "an address that …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Astray {
    /// No model is served at such an address.
    #[error("is {0}, where no model is served")]
    Forbidden(Forbidden),
    /// Public, and spoken to in the clear.
    #[error("is public, which must not be spoken to without TLS")]
    Public,
    /// Not this host, and spoken to as if it were.
    #[error("is not this host")]
    NotHere,
    /// On this host or in its network, and the operator did not name it.
    #[error(
        "is on this host or in a private network: the operator allows the host in wp_codebox.private_models of php.ini"
    )]
    Private,
}

/// How far away a model may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This host only.
    Loopback,
    /// This host and its private network.
    Private,
    /// Anywhere a server may be, because TLS tells who it is.
    Anywhere,
    /// As `Anywhere`, without this host and private networks.
    Public,
}

/// Where a model is. Its text is canonical: equal bytes, equal place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelBase {
    transport: Transport,
    /// As in a URL: an IPv6 literal has brackets.
    host: String,
    address: Option<IpAddr>,
    port: u16,
    /// Empty, or `/` and something.
    path: String,
    reach: Reach,
}

impl ModelBase {
    /// Reads a base address.
    pub fn parse(text: &str) -> Result<Self, BaseError> {
        let (transport, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Transport::Tls, rest),
            Some(("http", rest)) => (Transport::Plain, rest),
            Some(_) | None => return Err(BaseError::Scheme),
        };
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(BaseError::UserInfo);
        }
        if path.contains(['?', '#']) {
            return Err(BaseError::Query);
        }
        let accepted = |b: u8| b.is_ascii_alphanumeric() || b"-._~/:@+[]".contains(&b);
        if text.len() > MAX_URL || !text.bytes().all(accepted) || path.contains(['[', ']']) {
            return Err(BaseError::Character);
        }
        let bad = |part: &str| matches!(part, "" | "." | "..");
        if !path.is_empty() && path.split('/').skip(1).any(bad) {
            return Err(BaseError::Path);
        }
        let (host, port) = match authority.rfind(':') {
            Some(at) if !authority[at..].contains(']') => {
                let port = parse_port(&authority[at + 1..]).map_err(BaseError::Host)?;
                (&authority[..at], port)
            }
            _ => (authority, transport.default_port()),
        };
        let (host, address) = host_of(host)?;
        let reach = reach_of(transport, &host, address)?;
        let base = Self {
            transport,
            host,
            address,
            port,
            path: path.to_owned(),
            reach,
        };
        match address.map(|address| base.judge(address)) {
            None | Some(Ok(())) => Ok(base),
            Some(Err(why)) => Err(BaseError::Address(why)),
        }
    }

    /// The same place with public addresses only. `http://` is refused as a whole: it is
    /// accepted only for hosts that are not public.
    pub(super) fn public_only(self) -> Result<Self, BaseError> {
        let base = match self.reach {
            Reach::Loopback | Reach::Private => return Err(BaseError::Address(Astray::Private)),
            Reach::Anywhere | Reach::Public => Self {
                reach: Reach::Public,
                ..self
            },
        };
        match base.address.map(|address| base.judge(address)) {
            None | Some(Ok(())) => Ok(base),
            Some(Err(why)) => Err(BaseError::Address(why)),
        }
    }

    /// How it is spoken to.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Its host as in a URL.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The address, when the host is one.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The path that others are appended to; empty or beginning with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How far away it may be.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// Scheme, host and port; the port only where it is not the scheme's own.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = self.transport.scheme();
        if self.port == self.transport.default_port() {
            format!("{scheme}://{}", self.host)
        } else {
            format!("{scheme}://{}:{}", self.host, self.port)
        }
    }

    /// The address of something below the base; `path` begins with `/`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin(), self.path)
    }

    /// Whether an address that the host's name leads to may be used.
    pub fn judge(&self, address: IpAddr) -> Result<(), Astray> {
        if address == IpAddr::V6(METADATA_V6) {
            return Err(Astray::Forbidden(Forbidden::Metadata));
        }
        match (self.reach, judge_address(address)) {
            (
                Reach::Public,
                Err(
                    Forbidden::Loopback
                    | Forbidden::Private
                    | Forbidden::UniqueLocal
                    | Forbidden::CarrierGrade,
                ),
            ) => Err(Astray::Private),
            (_, Err(Forbidden::Loopback)) => Ok(()),
            (Reach::Loopback, _) => Err(Astray::NotHere),
            (_, Err(Forbidden::Private | Forbidden::UniqueLocal)) => Ok(()),
            (Reach::Private, Ok(())) => Err(Astray::Public),
            // Networks of tunnels use the carriers' range.
            (Reach::Anywhere, Ok(()) | Err(Forbidden::CarrierGrade)) | (Reach::Public, Ok(())) => {
                Ok(())
            }
            (Reach::Private | Reach::Anywhere | Reach::Public, Err(why)) => {
                Err(Astray::Forbidden(why))
            }
        }
    }

    /// Whether a key may be sent there, or what to do.
    pub(super) fn takes_key(&self) -> Result<(), &'static str> {
        match self.reach {
            Reach::Loopback | Reach::Anywhere | Reach::Public => Ok(()),
            Reach::Private => Err(
                "would send the key in the clear through a network: use https://, or a model that needs no key",
            ),
        }
    }
}

/// The host in its only spelling. Names without a dot and private addresses are hosts here.
fn host_of(text: &str) -> Result<(String, Option<IpAddr>), BaseError> {
    match Host::parse(text) {
        Ok(host) => Ok((host.as_str().to_owned(), host.address())),
        Err(HostError::NotQualified) => Ok((text.to_ascii_lowercase(), None)),
        Err(HostError::Private(why)) => {
            let bare = text.trim_start_matches('[').trim_end_matches(']');
            let address: IpAddr = bare
                .parse()
                .map_err(|_| BaseError::Address(Astray::Forbidden(why)))?;
            let host = match address {
                IpAddr::V4(v4) => v4.to_string(),
                IpAddr::V6(v6) => format!("[{v6}]"),
            };
            Ok((host, Some(address)))
        }
        Err(why) => Err(BaseError::Host(why)),
    }
}

fn reach_of(transport: Transport, host: &str, address: Option<IpAddr>) -> Result<Reach, BaseError> {
    match (transport, address) {
        (Transport::Tls, _) => Ok(Reach::Anywhere),
        (Transport::Plain, Some(address)) => match judge_address(address) {
            Err(Forbidden::Loopback) => Ok(Reach::Loopback),
            Err(_) => Ok(Reach::Private),
            Ok(()) => Err(BaseError::Plain),
        },
        (Transport::Plain, None) if host == "localhost" || host.ends_with(".localhost") => {
            Ok(Reach::Loopback)
        }
        (Transport::Plain, None) => {
            let near =
                !host.contains('.') || host.ends_with(".local") || host.ends_with(".internal");
            if near {
                Ok(Reach::Private)
            } else {
                Err(BaseError::Plain)
            }
        }
    }
}

impl Host {
    /// Where the run's model is. The host's settings say so, never a guest: it may be private,
    /// an address of this machine, or a name without a dot.
    #[must_use]
    pub fn of_model(base: &ModelBase) -> Self {
        Self::of_settings(base.host(), base.address())
    }
}
