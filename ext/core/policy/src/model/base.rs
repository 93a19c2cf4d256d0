//! Base URL of a model: its canonical form, and the IP addresses that its host name may resolve
//! to.

use crate::network::{Forbidden, Host, HostError, Transport, check_address, split_port};
use std::net::{IpAddr, Ipv6Addr};

/// Maximum length of a base URL in bytes.
const MAX_URL: usize = 2_048;
/// Address of the AWS metadata service, which lies in the otherwise private unique-local range.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Why the base URL of a model (`base_url`) is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaseUrlError {
    /// The URL is too long, or contains characters that different programs interpret differently.
    #[error(
        "the base URL must have at most {MAX_URL} characters and only letters, digits, - . _ ~ / : @ +, and [ ] around an IPv6 address"
    )]
    Character,
    /// The scheme is neither `https` nor `http`.
    #[error(
        "the base URL must begin with https://, or with http:// if the model is on this host or in its private network"
    )]
    Scheme,
    /// The URL contains a user or password.
    #[error("the base URL must not contain a user name or a key; use a secret instead")]
    UserInfo,
    /// The URL contains a query or fragment.
    #[error(
        "the base URL must have no query and no fragment; remove ? or # and everything after it"
    )]
    Query,
    /// The URL ends in `/`, or its path has an empty, `.` or `..` segment.
    #[error("the base URL must not end in / and must have no empty, . or .. segment in its path")]
    Path,
    /// The host in the URL is invalid.
    #[error("the base URL contains an invalid host: {0}")]
    Host(HostError),
    /// The host in the URL is an IP address that is not allowed.
    #[error("the host of the base URL has an address that is not allowed: {0}")]
    Address(AddressRefusal),
    /// The URL has the scheme `http` and a public host.
    #[error(
        "the base URL must begin with https://; http:// is allowed only for localhost, private addresses, and names without a dot or ending in .local or .internal"
    )]
    Plain,
}

/// Why an IP address is refused for a model. The address is the host in `base_url`, or a result of
/// resolving the host name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressRefusal {
    /// The address is of a kind that no model can have, e.g. a multicast address.
    #[error("{0}; a model cannot have such an address")]
    Forbidden(Forbidden),
    /// The address is public and the connection would be plain HTTP.
    #[error("the address is public, so base_url must begin with https://")]
    Public,
    /// The address is not a loopback address, but the host is `localhost`.
    #[error(
        "the host localhost resolves to an address that is not loopback; correct the name resolution of this machine"
    )]
    NotHere,
    /// The address is loopback or private, and the operator did not allow the host.
    #[error(
        "the address is on this host or in a private network; the operator must allow the host in wp_codebox.private_models of php.ini"
    )]
    Private,
}

/// IP addresses that the host name of a model may resolve to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Loopback addresses only.
    Loopback,
    /// Loopback and private addresses.
    Private,
    /// Loopback, private, carrier-grade NAT and public addresses, because TLS authenticates the
    /// server.
    Anywhere,
    /// Public addresses only.
    Public,
}

/// Base URL of a model in canonical form: equal URLs have equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelBase {
    transport: Transport,
    /// Host as it is written in a URL: an IPv6 literal has brackets.
    host: String,
    address: Option<IpAddr>,
    port: u16,
    /// Path of the base URL: empty, or beginning with `/`.
    path: String,
    reach: Reach,
}

impl ModelBase {
    /// Parses a base URL. Private and loopback addresses are valid here; `public_only` refuses
    /// them.
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        let (transport, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Transport::Tls, rest),
            Some(("http", rest)) => (Transport::Plain, rest),
            Some(_) | None => return Err(BaseUrlError::Scheme),
        };
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(BaseUrlError::UserInfo);
        }
        if path.contains(['?', '#']) {
            return Err(BaseUrlError::Query);
        }
        let accepted = |b: u8| b.is_ascii_alphanumeric() || b"-._~/:@+[]".contains(&b);
        if text.len() > MAX_URL || !text.bytes().all(accepted) || path.contains(['[', ']']) {
            return Err(BaseUrlError::Character);
        }
        let bad = |part: &str| matches!(part, "" | "." | "..");
        if !path.is_empty() && path.split('/').skip(1).any(bad) {
            return Err(BaseUrlError::Path);
        }
        let (host, port) = split_port(authority).map_err(BaseUrlError::Host)?;
        let port = port.unwrap_or(transport.default_port());
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
        match address.map(|address| base.check_address(address)) {
            None | Some(Ok(())) => Ok(base),
            Some(Err(why)) => Err(BaseUrlError::Address(why)),
        }
    }

    /// Restricts the URL to public addresses. Refuses `http://`, because that scheme is valid for
    /// non-public hosts only.
    pub(super) fn public_only(self) -> Result<Self, BaseUrlError> {
        let base = match self.reach {
            Reach::Loopback | Reach::Private => {
                return Err(BaseUrlError::Address(AddressRefusal::Private));
            }
            Reach::Anywhere | Reach::Public => Self {
                reach: Reach::Public,
                ..self
            },
        };
        match base.address.map(|address| base.check_address(address)) {
            None | Some(Ok(())) => Ok(base),
            Some(Err(why)) => Err(BaseUrlError::Address(why)),
        }
    }

    /// Returns whether requests are sent as plain HTTP or over TLS.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Returns the host as it is written in a URL.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the IP address, if the host is an IP literal.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Returns the port; if the base URL has none, the default port of its scheme.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path, to which request paths are appended; empty or beginning with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the IP addresses that the host name may resolve to.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// Returns scheme, host and port; the port is omitted if it is the scheme's default.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = self.transport.scheme();
        if self.port == self.transport.default_port() {
            format!("{scheme}://{}", self.host)
        } else {
            format!("{scheme}://{}:{}", self.host, self.port)
        }
    }

    /// Returns the URL of a path below the base; `path` begins with `/`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin(), self.path)
    }

    /// Checks that the model may have this IP address, to which its host name resolved.
    pub fn check_address(&self, address: IpAddr) -> Result<(), AddressRefusal> {
        if address == IpAddr::V6(METADATA_V6) {
            return Err(AddressRefusal::Forbidden(Forbidden::Metadata));
        }
        match (self.reach, check_address(address)) {
            (
                Reach::Public,
                Err(
                    Forbidden::Loopback
                    | Forbidden::Private
                    | Forbidden::UniqueLocal
                    | Forbidden::CarrierGrade,
                ),
            ) => Err(AddressRefusal::Private),
            (_, Err(Forbidden::Loopback)) => Ok(()),
            (Reach::Loopback, _) => Err(AddressRefusal::NotHere),
            (_, Err(Forbidden::Private | Forbidden::UniqueLocal)) => Ok(()),
            (Reach::Private, Ok(())) => Err(AddressRefusal::Public),
            // Overlay networks such as VPN meshes use the carrier-grade NAT range.
            (Reach::Anywhere, Ok(()) | Err(Forbidden::CarrierGrade)) | (Reach::Public, Ok(())) => {
                Ok(())
            }
            (Reach::Private | Reach::Anywhere | Reach::Public, Err(why)) => {
                Err(AddressRefusal::Forbidden(why))
            }
        }
    }

    /// Checks that an API key may be sent to this URL. The error says what the caller can do.
    pub(super) fn takes_key(&self) -> Result<(), &'static str> {
        match self.reach {
            Reach::Loopback | Reach::Anywhere | Reach::Public => Ok(()),
            Reach::Private => Err(
                "the base URL would send the key in the clear through a network; use https://, or a model that needs no key",
            ),
        }
    }
}

/// Parses the host into its canonical form. Unlike in [`Host::parse`], names without a dot and
/// private addresses are valid.
fn host_of(text: &str) -> Result<(String, Option<IpAddr>), BaseUrlError> {
    match Host::parse(text) {
        Ok(host) => Ok((host.as_str().to_owned(), host.address())),
        Err(HostError::NotQualified) => Ok((text.to_ascii_lowercase(), None)),
        Err(HostError::Private(why)) => {
            let bare = text.trim_start_matches('[').trim_end_matches(']');
            let address: IpAddr = bare
                .parse()
                .map_err(|_| BaseUrlError::Address(AddressRefusal::Forbidden(why)))?;
            let host = match address {
                IpAddr::V4(v4) => v4.to_string(),
                IpAddr::V6(v6) => format!("[{v6}]"),
            };
            Ok((host, Some(address)))
        }
        Err(why) => Err(BaseUrlError::Host(why)),
    }
}

fn reach_of(
    transport: Transport,
    host: &str,
    address: Option<IpAddr>,
) -> Result<Reach, BaseUrlError> {
    match (transport, address) {
        (Transport::Tls, _) => Ok(Reach::Anywhere),
        (Transport::Plain, Some(address)) => match check_address(address) {
            Err(Forbidden::Loopback) => Ok(Reach::Loopback),
            Err(_) => Ok(Reach::Private),
            Ok(()) => Err(BaseUrlError::Plain),
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
                Err(BaseUrlError::Plain)
            }
        }
    }
}

impl Host {
    /// Returns the host of a run's model. The base URL comes from the settings of this machine,
    /// never from a guest, so the host may be a private or loopback address or a name without a
    /// dot.
    #[must_use]
    pub fn of_model(base: &ModelBase) -> Self {
        Self::of_settings(base.host(), base.address())
    }
}
