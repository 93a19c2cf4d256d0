//! Addresses to which the server sends events: public ones, and those that the operator allows.
//!
//! The address that counts is the one of the connection. A name is resolved once for each connection,
//! and all of its addresses must be allowed, so a name that resolves differently later reaches no other
//! address. The list of addresses that are not public is that of the egress bridge.

use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_policy::{Forbidden, check_address, split_port};

/// Maximum length of a webhook's URL in bytes.
const LONGEST: usize = 2048;

/// Why events cannot go to a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TargetError {
    /// The URL has another form than those of webhooks.
    #[error(
        "url must be https, or http to a loopback address, without user, password and fragment, of at most {LONGEST} bytes; a port is a number from 1 to 65535"
    )]
    Form,
    /// The address is not public.
    #[error(
        "{0}; a webhook reaches only public addresses, and those that the operator of this service allows (--webhook-allow)"
    )]
    Address(#[from] Forbidden),
}

/// A destination that the operator allows although its address is not public.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    /// All addresses whose first bits are these.
    Network { address: IpAddr, prefix: u32 },
    /// This host name, whatever it resolves to.
    Name(String),
}

/// Destinations of webhooks besides public addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookTargets(Vec<Allowed>);

impl WebhookTargets {
    /// Allows an IP address, a network such as `10.1.0.0/16`, or a host name.
    ///
    /// # Errors
    /// `wp_codebox_input_invalid` for another text.
    pub fn allow(&mut self, text: &str) -> Result<(), ErrorBody> {
        let invalid = || {
            let message = format!(
                "{text:?} is no destination of webhooks; write an IP address, a network such as 10.1.0.0/16, or a host name"
            );
            ErrorBody::new(ErrorCode::InputInvalid, message)
        };
        let allowed = match text.split_once('/') {
            Some((address, prefix)) => {
                let address: IpAddr = address.parse().map_err(|_| invalid())?;
                let digits = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
                let prefix = prefix
                    .parse()
                    .ok()
                    .filter(|prefix| *prefix <= bits(address));
                let prefix = prefix.filter(|_| digits).ok_or_else(invalid)?;
                Allowed::Network { address, prefix }
            }
            None => match text.parse() {
                Ok(address) => Allowed::Network {
                    address,
                    prefix: bits(address),
                },
                Err(_) => {
                    let name = text.to_ascii_lowercase();
                    let url = Url::parse(&format!("https://{name}/")).map_err(|_| invalid())?;
                    match url.host_str() == Some(&name) {
                        true => Allowed::Name(name),
                        // Another notation of an address, or more than a host.
                        false => return Err(invalid()),
                    }
                }
            },
        };
        self.0.push(allowed);
        Ok(())
    }

    fn check(&self, name: Option<&str>, address: IpAddr) -> Result<(), Forbidden> {
        let allowed = self.0.iter().any(|allowed| match allowed {
            Allowed::Name(allowed) => name == Some(allowed),
            Allowed::Network {
                address: net,
                prefix,
            } => contains(*net, *prefix, address),
        });
        match allowed {
            true => Ok(()),
            false => check_address(address),
        }
    }

    /// Parses the URL of a webhook. A name is checked when it is resolved.
    pub(crate) fn parse(&self, text: &str) -> Result<Url, TargetError> {
        // The parser removes some of these characters, and takes `\` for `/`.
        let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'\\' | b'#');
        if text.len() > LONGEST || !text.bytes().all(plain) {
            return Err(TargetError::Form);
        }
        let (_, rest) = text.split_once("://").ok_or(TargetError::Form)?;
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        if authority.is_empty() || authority.contains('@') {
            return Err(TargetError::Form);
        }
        split_port(authority).map_err(|_| TargetError::Form)?;
        let url = Url::parse(text).map_err(|_| TargetError::Form)?;
        // The parser writes an address in each of its notations in one form.
        let host = url.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let is_here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        match url.scheme() {
            "https" => {}
            "http" if is_here => {}
            _ => return Err(TargetError::Form),
        }
        if let Some(address) = address {
            self.check(None, address)?;
        }
        Ok(url)
    }
}

const fn bits(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn contains(network: IpAddr, prefix: u32, address: IpAddr) -> bool {
    let differ = match (network, address) {
        (IpAddr::V4(one), IpAddr::V4(other)) => u128::from(one.to_bits() ^ other.to_bits()),
        (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
        _ => return false,
    };
    differ.checked_shr(bits(network) - prefix).unwrap_or(0) == 0
}

/// Finds the addresses of a name.
pub(crate) type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Finds the addresses of a name in the DNS.
pub(crate) fn dns(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
}

/// Resolver of an HTTP client that connects only to allowed addresses.
pub(crate) struct TargetResolver {
    pub targets: Arc<WebhookTargets>,
    pub lookup: Lookup,
}

impl Resolve for TargetResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (targets, lookup) = (Arc::clone(&self.targets), self.lookup);
        Box::pin(async move {
            let addresses = lookup(name.as_str().to_owned()).await?;
            for address in &addresses {
                let checked = targets.check(Some(name.as_str()), address.ip());
                checked.map_err(TargetError::from)?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(allowed: &[&str]) -> WebhookTargets {
        let mut targets = WebhookTargets::default();
        for text in allowed {
            targets.allow(text).unwrap();
        }
        targets
    }

    #[test]
    fn webhook_url_must_be_https_or_loopback_without_credentials_and_fragment() {
        let targets = targets(&["127.0.0.0/8", "::1"]);
        for url in [
            "https://hooks.example/x?y=1",
            "https://hooks.example:8443/@x",
            "http://127.0.0.1:8080/",
            "http://[::1]/x",
            "http://localhost/x",
        ] {
            targets.parse(url).unwrap();
        }
        for url in [
            "http://hooks.example/",
            "http://10.0.0.1/",
            "http://127.0.0.1.example/",
            "https://user:password@hooks.example/",
            "https://@hooks.example/",
            "http://127.0.0.1@hooks.example/",
            "https://hooks.example/#x",
            "https://hooks.example:1*/",
            "https://hooks.example:+80/",
            "https://hooks.example:080/",
            "https://hooks.example:65536/",
            "https://hooks.example:0/",
            "https://hooks.example:/",
            "https:hooks.example/",
            "https:///hooks.example/",
            "https://hooks.example\\@127.0.0.1/",
            "https://hooks.example/\u{e9}",
            "https://hooks.example/ x",
            "ftp://127.0.0.1/",
            "/x",
            "",
        ] {
            assert_eq!(targets.parse(url), Err(TargetError::Form), "{url}");
        }
    }

    #[test]
    fn addresses_that_are_not_public_are_refused_in_every_notation() {
        let none = WebhookTargets::default();
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "168.63.129.16",
            "0.0.0.0",
            "[::1]",
            "[::]",
            "[::ffff:10.0.0.1]",
            "[::ffff:a9fe:a9fe]",
            "[fe80::1]",
            "[fd00::1]",
            "[64:ff9b::a00:1]",
        ] {
            let found = none.parse(&format!("https://{host}/"));
            assert!(
                matches!(found, Err(TargetError::Address(_))),
                "{host}: {found:?}"
            );
        }
        none.parse("https://203.0.113.7/").unwrap();
        none.parse("https://[2001:db8::1]/").unwrap();
    }

    #[test]
    fn operator_allows_single_addresses_networks_and_names() {
        let allowed = targets(&["10.1.0.0/16", "192.168.0.9", "fd00::/8", "hooks.internal"]);
        let check = |name, address: &str| allowed.check(name, address.parse().unwrap()).is_ok();
        for address in ["10.1.255.3", "192.168.0.9", "fd12::1"] {
            assert!(check(None, address), "{address}");
            assert!(check(Some("other.example"), address), "{address}");
        }
        for address in [
            "10.2.0.1",
            "192.168.0.8",
            "fe80::1",
            "127.0.0.1",
            "::ffff:10.1.0.1",
        ] {
            assert!(!check(None, address), "{address}");
            assert!(!check(Some("other.internal"), address), "{address}");
            assert!(check(Some("hooks.internal"), address), "{address}");
        }
        assert!(
            targets(&["0.0.0.0/0"])
                .check(None, "10.0.0.1".parse().unwrap())
                .is_ok()
        );
        for wrong in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "::/129",
            "a b",
            "127.1",
            "http://x",
            "x:80",
        ] {
            WebhookTargets::default().allow(wrong).unwrap_err();
        }
    }

    #[tokio::test]
    async fn name_is_refused_if_any_of_its_addresses_is_not_allowed() {
        // In this name service, `rebound.example` is what an attacker makes of it.
        fn lookup(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
            let addresses = match name.as_str() {
                "public.example" => vec!["203.0.113.7", "2001:db8::1"],
                "rebound.example" => vec!["203.0.113.7", "169.254.169.254"],
                "mapped.example" => vec!["::ffff:127.0.0.1"],
                _ => vec!["10.0.0.1"],
            };
            let address = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
            let addresses = addresses.into_iter().map(address).collect();
            Box::pin(async { Ok(addresses) })
        }
        let resolver = TargetResolver {
            targets: Arc::new(targets(&["hooks.internal"])),
            lookup,
        };
        for (name, allowed) in [
            ("public.example", true),
            ("hooks.internal", true),
            ("rebound.example", false),
            ("mapped.example", false),
            ("other.internal", false),
        ] {
            let found = resolver.resolve(name.parse().unwrap()).await;
            assert_eq!(found.is_ok(), allowed, "{name}");
        }
    }
}
