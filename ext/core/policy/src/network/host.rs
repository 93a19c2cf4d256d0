//! Host names and IP addresses in network rules and requests, in canonical form.
//!
//! A parsed host is lower-case ASCII with exactly one form, so two hosts are equal if and only
//! if their bytes are. Texts that a resolver may interpret differently than the author of a
//! rule (a trailing dot, `127.1`, `0x7f000001`, user information, Unicode) are refused and
//! never corrected.

use super::address::{Forbidden, check_address};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of a DNS name in bytes.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// Why a host is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The host is empty.
    #[error("the host is empty; give a host name, such as api.example.org")]
    Empty,
    /// The host is longer than DNS allows.
    #[error("a host name may have at most 253 bytes, and each part between its dots at most 63")]
    TooLong,
    /// The host contains a byte that host names must not contain.
    #[error(
        "a host name may only have letters, digits, `-`, `_` and `.`; write an international name in its xn-- form"
    )]
    Character,
    /// The host has an empty label (e.g. from a trailing dot), or a label that begins or ends with
    /// `-`.
    #[error(
        "a host name must have no empty label, no trailing dot, and no label that begins or ends with `-`"
    )]
    Label,
    /// The host has no dot: the resolver would append a search domain.
    #[error(
        "the host must be a fully qualified name with at least one dot, such as api.example.org"
    )]
    NotQualified,
    /// The host is a number that resolvers accept as another notation of an IP address, e.g.
    /// `0x7f000001`.
    #[error(
        "the host looks like an IP address in another notation; use dotted decimal, such as 192.0.2.1"
    )]
    OddAddress,
    /// The host is an IP address that is not public.
    #[error("{0}; only public addresses can be reached")]
    Private(Forbidden),
    /// The port is empty, zero or not a number.
    #[error("the port must be a number from 1 to 65535")]
    Port,
}

/// A host name or a public IP address literal, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host {
    text: String,
    address: Literal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Literal {
    Name,
    Address(IpAddr),
}

impl Host {
    /// Parses a host of a rule or a request target; an IPv6 literal has brackets.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Character)?;
            return Self::literal(IpAddr::V6(address));
        }
        if text.len() > MAX_NAME {
            return Err(HostError::TooLong);
        }
        if !text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        {
            return Err(HostError::Character);
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Self::literal(IpAddr::V4(address));
        }
        for label in text.split('.') {
            if label.is_empty() || label.starts_with('-') || label.ends_with('-') {
                return Err(HostError::Label);
            }
            if label.len() > MAX_LABEL {
                return Err(HostError::TooLong);
            }
        }
        // inet_aton accepts `127.1`, `0177.0.0.1`, `0x7f000001` and `2130706433`. No top-level
        // domain is numeric, so a name with a numeric last label is an alternative notation of
        // an address.
        let last = text.rsplit('.').next().unwrap_or_default();
        let hexadecimal = last.len() > 1 && last[..2].eq_ignore_ascii_case("0x");
        if hexadecimal || last.bytes().all(|b| b.is_ascii_digit()) {
            return Err(HostError::OddAddress);
        }
        if !text.contains('.') {
            return Err(HostError::NotQualified);
        }
        Ok(Self {
            text: text.to_ascii_lowercase(),
            address: Literal::Name,
        })
    }

    /// Returns the host of the run's own site in the guest, which previews use. No rule can name
    /// this host.
    #[must_use]
    pub fn of_site() -> Self {
        Self::of_settings("localhost", None)
    }

    /// Creates a host from settings of this machine, never from input of a guest; the checks of
    /// [`Host::parse`] do not apply.
    pub(crate) fn of_settings(text: &str, address: Option<IpAddr>) -> Self {
        Self {
            text: text.to_owned(),
            address: address.map_or(Literal::Name, Literal::Address),
        }
    }

    fn literal(address: IpAddr) -> Result<Self, HostError> {
        check_address(address).map_err(HostError::Private)?;
        let text = match address {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("[{v6}]"),
        };
        Ok(Self {
            text,
            address: Literal::Address(address),
        })
    }

    /// Returns the host as it is written in a URL; an IPv6 literal has brackets.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the IP address, if the host is an IP literal.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        match self.address {
            Literal::Name => None,
            Literal::Address(address) => Some(address),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A host with an optional port, as in a URL or rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port; `None` if the text has none.
    pub port: Option<u16>,
}

impl Authority {
    /// Parses `host` or `host:port`. User information is refused.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let (host, port) = split_port(text)?;
        Ok(Self {
            host: Host::parse(host)?,
            port,
        })
    }
}

/// Splits `host:port` or `host`; the host is not checked. A port is a decimal number from 1 to 65535
/// without sign, leading zero and other characters: programs disagree about all other texts.
pub fn split_port(authority: &str) -> Result<(&str, Option<u16>), HostError> {
    match authority.rfind(':') {
        // The last colon of `[::1]` lies inside the brackets and begins no port.
        Some(at) if !authority[at..].contains(']') => {
            let port = parse_port(&authority[at + 1..])?;
            Ok((&authority[..at], Some(port)))
        }
        _ => Ok((authority, None)),
    }
}

fn parse_port(text: &str) -> Result<u16, HostError> {
    // `u16::from_str` would accept a leading plus sign and leading zeros.
    let canonical = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(port) if canonical => Ok(port),
        _ => Err(HostError::Port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_parse_to_one_canonical_form() {
        for (given, kept) in [
            ("Example.ORG", "example.org"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("_dmarc.example.org", "_dmarc.example.org"),
            ("203.0.113.7", "203.0.113.7"),
            ("[2606:4700::0:1]", "[2606:4700::1]"),
        ] {
            assert_eq!(Host::parse(given).unwrap().as_str(), kept);
        }
    }

    #[test]
    fn malformed_and_ambiguous_host_names_are_refused() {
        for (given, error) in [
            ("", HostError::Empty),
            ("example.org.", HostError::Label),
            (".example.org", HostError::Label),
            ("a..b", HostError::Label),
            ("-a.example", HostError::Label),
            ("bücher.example", HostError::Character),
            ("user@example.org", HostError::Character),
            ("example.org%00.evil.test", HostError::Character),
            ("exa mple.org", HostError::Character),
            ("*.example.org", HostError::Character),
            ("[::1", HostError::Character),
            ("localhost", HostError::NotQualified),
            ("127.1", HostError::OddAddress),
            ("2130706433", HostError::OddAddress),
            ("0x7f000001", HostError::OddAddress),
            ("0x7f.0.0.0x1", HostError::OddAddress),
            ("0177.0.0.01", HostError::OddAddress),
            ("256.1.1.1", HostError::OddAddress),
        ] {
            assert_eq!(Host::parse(given), Err(error), "{given:?}");
        }
        assert_eq!(
            Host::parse(&format!("{}.org", "a".repeat(64))),
            Err(HostError::TooLong)
        );
        assert_eq!(
            Host::parse(&"a.".repeat(127)[..253]).map(|_| ()),
            Ok(()),
            "253 bytes are a name"
        );
    }

    #[test]
    fn private_address_literals_are_refused_as_hosts() {
        for given in [
            "127.0.0.1",
            "10.1.2.3",
            "169.254.169.254",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:10.0.0.1]",
        ] {
            assert!(
                matches!(Host::parse(given), Err(HostError::Private(_))),
                "{given}"
            );
        }
        assert!(Host::parse("8.8.8.8").unwrap().address().is_some());
    }

    #[test]
    fn authority_is_split_into_host_and_optional_port_and_invalid_ports_are_refused() {
        let with = Authority::parse("Example.org:8443").unwrap();
        assert_eq!((with.host.as_str(), with.port), ("example.org", Some(8443)));
        assert_eq!(Authority::parse("example.org").unwrap().port, None);
        let six = Authority::parse("[2606:4700::1]:443").unwrap();
        assert_eq!((six.host.as_str(), six.port), ("[2606:4700::1]", Some(443)));
        assert_eq!(Authority::parse("[2606:4700::1]").unwrap().port, None);
        for bad in [
            "a.b:",
            "a.b:0",
            "a.b:080",
            "a.b:+80",
            "a.b:65536",
            "a.b:80:90",
            "a.b:x",
            "a.b:1*",
            "a.b: 80",
            "[2606:4700::1]:1*",
        ] {
            assert!(Authority::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(
            Authority::parse("u:p@example.org:80").unwrap_err(),
            HostError::Character
        );
    }
}
