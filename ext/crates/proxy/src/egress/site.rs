//! The way to the site that the working guest serves: `http://localhost/…` and nothing else there.
//!
//! A bridge of a browser's guest has it. Whoever holds the working guest makes the connection:
//! the bridge only names the origin, so no other port of that guest, or of the host, is a target.

use super::denial::Reason;
use super::head::Head;
use super::log::EgressMode;
use super::network::Pending;
use super::route::{Target, origin_form};
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use wp_codebox_contracts::SITE_ORIGIN;
use wp_codebox_policy::{Host, RequestPath, Transport};

/// Whoever can connect to the site's server.
pub trait ReachSite: Send + Sync {
    /// A new connection.
    fn reach(&self) -> Pending<'_, io::Result<TcpStream>>;
}

/// The site of a bridge.
#[derive(Clone)]
pub struct Site(pub Arc<dyn ReachSite>);

/// What a request asks of the site; none when it is for somebody else.
pub(super) fn target(head: &Head) -> Option<Result<Target, Reason>> {
    let rest = head.target.strip_prefix(SITE_ORIGIN)?;
    let rest = rest.strip_prefix(":80").unwrap_or(rest);
    // Not `localhost.example`, `localhost:8080` or `localhost@example`.
    let path = origin_form(rest)?;
    let path = RequestPath::parse(&path).map_err(|_| Reason::MalformedRequest);
    Some(path.map(|path| Target {
        mode: EgressMode::Site,
        transport: Transport::Plain,
        host: Host::of_site(),
        port: 80,
        path,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::head::Framing;
    use super::*;

    fn path_of(target: &str) -> Option<String> {
        let head = Head {
            method: "GET".to_owned(),
            target: target.to_owned(),
            host: None,
            names: Vec::new(),
            body: Framing::Empty,
            length: 0,
        };
        super::target(&head).map(|found| found.unwrap().path.path().to_owned())
    }

    #[test]
    fn one_origin_is_the_site() {
        for (target, path) in [
            ("http://localhost", "/"),
            ("http://localhost/", "/"),
            ("http://localhost:80/wp-admin/", "/wp-admin/"),
            ("http://localhost?p=1", "/"),
        ] {
            assert_eq!(path_of(target).as_deref(), Some(path), "{target}");
        }
        for target in [
            "http://localhost:8080/",
            "http://localhost:3128/",
            "http://localhost:800/",
            "http://localhost.example/",
            "http://localhost@example.com/",
            "http://127.0.0.1/",
            "https://localhost/",
            "/",
        ] {
            assert_eq!(path_of(target), None, "{target}");
        }
    }
}
