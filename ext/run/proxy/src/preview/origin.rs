//! Origins (scheme, host and port) of a preview, and the check of `Host` headers against them.

use hyper::http::uri::{Authority, Uri};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_policy::split_port;

/// An origin: scheme, host and port, written as a browser writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: Scheme,
    /// Host and port in lower case, without the scheme's default port.
    authority: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}", self.authority)
    }
}

impl Origin {
    /// Parses the public URL of a preview. It must be an origin without a path, because the guest's
    /// scripts can access everything else at the same origin.
    pub fn public(given: &str) -> Result<Self, ErrorBody> {
        let invalid = |why: &str| {
            let message = format!("the preview's public URL {why}");
            ErrorBody::new(ErrorCode::InputInvalid, message)
                .hint("give scheme, host and port of an origin that nothing else uses, such as https://preview.example.org")
        };
        let uri: Uri = given
            .parse()
            .map_err(|_| invalid("cannot be read as a URL"))?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            Some(_) | None => return Err(invalid("must begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| invalid("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(invalid("must not contain a user name"));
        }
        if uri.path() != "/" || uri.query().is_some() || given.contains('#') {
            return Err(invalid("must be an origin, without a path"));
        }
        let authority =
            written(authority, scheme).ok_or_else(|| invalid("has an invalid host name"))?;
        Ok(Self { scheme, authority })
    }

    /// Returns the origin under which browsers reach a listener at this address: `http` and the
    /// address.
    pub fn local(address: SocketAddr) -> Self {
        let port = Scheme::Http.port();
        let authority = match address.port() {
            own if own == port => host_of(address.ip()),
            _ => address.to_string(),
        };
        Self {
            scheme: Scheme::Http,
            authority,
        }
    }

    /// Returns whether the origin uses TLS, so that its cookies can be marked `Secure`.
    pub fn is_secure(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// Returns whether the origin's host is a loopback name or address.
    pub fn is_loopback(&self) -> bool {
        let host = match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            Some(_) | None => &self.authority,
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Returns host and port as in a `Host` header.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Returns host and port as a browser writes them: in lower case, without the scheme's default
/// port.
fn written(authority: &Authority, scheme: Scheme) -> Option<String> {
    let (host, port) = split_port(authority.as_str()).ok()?;
    if host != authority.host() {
        return None;
    }
    let host = host.to_ascii_lowercase();
    let plain = host.bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'[' | b']' | b':')
    });
    if host.is_empty() || !plain {
        return None;
    }
    match port {
        Some(port) if port != scheme.port() => Some(format!("{host}:{port}")),
        Some(_) | None => Some(host),
    }
}

/// The values that are accepted in a visitor's `Host` header.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    pub public: Option<Origin>,
}

impl Hosts {
    /// Returns the origin that a request with this `Host` addresses, or `None` when it is not this
    /// preview. `arrived` is the local address of the connection. Accepted are the host of the
    /// public URL, the address `arrived`, and `localhost` if `arrived` is a loopback address. Any
    /// other name that resolves to `arrived` is refused (DNS rebinding).
    pub(super) fn judge(&self, host: &str, arrived: SocketAddr) -> Option<Origin> {
        let authority: Authority = host.parse().ok()?;
        if authority.as_str().contains('@') {
            return None;
        }
        // A socket that listens on [::] accepts IPv4 connections with IPv4-mapped addresses, which
        // no `Host` header uses.
        let arrived = SocketAddr::new(arrived.ip().to_canonical(), arrived.port());
        if let Some(public) = &self.public
            && written(&authority, public.scheme)? == public.authority
        {
            return Some(public.clone());
        }
        let asked = written(&authority, Scheme::Http)?;
        let local = Origin::local(arrived);
        if asked == local.authority {
            return Some(local);
        }
        let name = match arrived.port() {
            80 => "localhost".to_owned(),
            port => format!("localhost:{port}"),
        };
        (arrived.ip().is_loopback() && asked == name).then_some(Origin {
            scheme: Scheme::Http,
            authority: asked,
        })
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn public_preview_url_must_be_an_http_origin_without_path_and_credentials() {
        for (given, shown) in [
            ("https://Preview.Example.org", "https://preview.example.org"),
            (
                "https://preview.example.org:443/",
                "https://preview.example.org",
            ),
            (
                "http://preview.example.org:8081",
                "http://preview.example.org:8081",
            ),
            ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
        ] {
            assert_eq!(Origin::public(given).unwrap().to_string(), shown);
        }
        for bad in [
            "preview.example.org",
            "ftp://preview.example.org",
            "https://user@preview.example.org",
            "https://preview.example.org/sub",
            "https://preview.example.org/?a=1",
            "https://preview.example.org/#a",
            "https://preview.example.org:99999",
            "https://preview.example.org:1*",
            "https://preview.example.org:+443",
            "https://preview.example.org:0443",
            "https://preview.example.org:",
            "https://pre view",
            "",
        ] {
            let error = Origin::public(bad).unwrap_err();
            assert_eq!(error.code, ErrorCode::InputInvalid, "{bad}");
        }
    }

    #[test]
    fn host_header_of_a_visitor_must_name_this_preview() {
        let hosts = Hosts {
            public: Some(Origin::public("https://preview.example.org").unwrap()),
        };
        let here = address("127.0.0.1:4321");
        let answered = |host: &str| hosts.judge(host, here).map(|origin| origin.to_string());
        for (host, origin) in [
            ("preview.example.org", "https://preview.example.org"),
            ("PREVIEW.example.org:443", "https://preview.example.org"),
            ("127.0.0.1:4321", "http://127.0.0.1:4321"),
            ("localhost:4321", "http://localhost:4321"),
        ] {
            assert_eq!(answered(host).as_deref(), Some(origin), "{host}");
        }
        for host in [
            "rebound.example.net:4321",
            "127.0.0.1",
            "127.0.0.1:4322",
            "preview.example.org:80",
            "preview.example.org.",
            "x@127.0.0.1:4321",
            "127.0.0.1:4321:1",
            "127.0.0.1:+4321",
            "127.0.0.1:04321",
            "127.0.0.1:4321*",
            "localhost",
            "",
        ] {
            assert_eq!(answered(host), None, "{host}");
        }
        let elsewhere = Hosts { public: None };
        let lan = address("192.0.2.7:80");
        assert!(elsewhere.judge("192.0.2.7", lan).is_some());
        assert!(elsewhere.judge("localhost", lan).is_none());
        // A listener on [::] also accepts IPv4.
        let mapped = address("[::ffff:192.0.2.7]:4321");
        assert!(elsewhere.judge("192.0.2.7:4321", mapped).is_some());
        assert!(elsewhere.judge("localhost:4321", mapped).is_none());
    }
}
