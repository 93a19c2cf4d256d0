//! Requests to the site of the run's working guest: `http://localhost/…`, no other port.
//!
//! Only the bridge of a browser's guest has a site. The code that owns the working guest opens the
//! connection, and the bridge only asks for one without naming a port, so no other port of the
//! working guest or of the host is reachable.

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

/// Connects to the web server of the run's working guest.
pub trait SiteConnector: Send + Sync {
    /// Opens a new connection.
    fn connect(&self) -> Pending<'_, io::Result<TcpStream>>;
}

/// Site of a bridge.
#[derive(Clone)]
pub struct Site(pub Arc<dyn SiteConnector>);

/// Returns the target when the request addresses the site; `None` for any other request.
pub(super) fn target(head: &Head) -> Option<Result<Target, Reason>> {
    let rest = head.target.strip_prefix(SITE_ORIGIN)?;
    let rest = rest.strip_prefix(":80").unwrap_or(rest);
    // Rejects `localhost.example`, `localhost:8080` and `localhost@example`.
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
    fn only_http_localhost_on_port_80_addresses_the_guests_site() {
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
