//! Requests of a browser to the site in the run's work guest, in which commands and agent run:
//! `http://localhost/…`, no other port.
//!
//! Only the bridge of a browser's guest has a site. The code that owns the work guest opens the
//! connection. The bridge requests a connection but cannot choose its port, so no other port of the
//! work guest or of the host is reachable.

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

/// Opens connections to the web server in the run's work guest.
pub trait SiteConnector: Send + Sync {
    /// Opens a new connection to the web server.
    fn connect(&self) -> Pending<'_, io::Result<TcpStream>>;
}

/// The site that a browser may visit through a bridge.
#[derive(Clone)]
pub struct Site(pub Arc<dyn SiteConnector>);

/// Returns the destination when the request is for the site; `None` for any other request.
pub(super) fn target(head: &Head) -> Option<Result<Target, Reason>> {
    let rest = head.target.strip_prefix(SITE_ORIGIN)?;
    let rest = rest.strip_prefix(":80").unwrap_or(rest);
    // `origin_form` rejects `localhost.example`, `localhost:8080` and `localhost@example`.
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
    fn only_http_localhost_on_port_80_is_routed_to_the_guests_site() {
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
