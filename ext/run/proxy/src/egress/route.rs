//! Parses what a request asks for: how the guest addressed the bridge, the host and the path.

use super::denial::Reason;
use super::head::Head;
use super::log::EgressMode;
use hyper::http::uri::PathAndQuery;
use wp_codebox_policy::{Authority, Host, RequestPath, Transport};

/// What a request asks the bridge for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// A tunnel to this host and port (CONNECT).
    Connect { host: Host, port: u16 },
    /// A request that the bridge sends to a host.
    Forward(Target),
    /// A request to the run's model, with the path below the model's base URL.
    Model(RequestPath),
}

/// Destination of a request that the bridge sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub mode: EgressMode,
    pub transport: Transport,
    pub host: Host,
    pub port: u16,
    pub path: RequestPath,
}

impl Target {
    /// Returns the value for the `Host` header; it omits the scheme's default port.
    pub(super) fn host_header(&self) -> String {
        if self.port == self.transport.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Returns the route of a request that a program in the guest sends to the proxy itself, not inside
/// a CONNECT tunnel.
pub(super) fn outer(head: &Head) -> Result<Route, Reason> {
    if head.method == "CONNECT" {
        let authority = authority(&head.target)?;
        return match authority.port {
            Some(port) => Ok(Route::Connect {
                host: authority.host,
                port,
            }),
            None => Err(Reason::HostInvalid),
        };
    }
    let by_host = by_host_header(head);
    if let Some(path) = model_path(head)
        && by_host.is_none()
    {
        return Ok(Route::Model(request_path(&path)?));
    }
    let (mode, transport, rest) = if let Some((transport, rest)) = scheme(&head.target) {
        (EgressMode::Absolute, transport, rest)
    } else if let Some(rest) = head.target.strip_prefix("/https/") {
        (EgressMode::BaseUrl, Transport::Tls, rest)
    } else if let Some(rest) = head.target.strip_prefix("/http/") {
        (EgressMode::BaseUrl, Transport::Plain, rest)
    } else if let Some(rest) = &by_host {
        (EgressMode::Absolute, Transport::Plain, rest.as_str())
    } else {
        return Err(Reason::NotAProxyRequest);
    };
    let split = rest.find(['/', '?']).unwrap_or(rest.len());
    let (name, path) = rest.split_at(split);
    let authority = authority(name)?;
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Ok(Route::Forward(Target {
        mode,
        transport,
        port: authority.port.unwrap_or(transport.default_port()),
        host: authority.host,
        path: request_path(&path)?,
    }))
}

/// Returns the path after `/model` if the request is for the model, otherwise `None`. Ignores
/// `Host`, because a client that treats the bridge as its server sends the bridge's name there. The
/// caller excludes requests whose `Host` is a full host name.
fn model_path(head: &Head) -> Option<String> {
    origin_form(head.target.strip_prefix("/model")?)
}

/// Returns path and query from what follows the prefix of a request target, with a leading slash
/// added if missing. Returns `None` when the prefix ended within a name, as in `/models` or
/// `http://localhost.example`.
pub(super) fn origin_form(rest: &str) -> Option<String> {
    match rest.as_bytes().first() {
        None | Some(b'?') => Some(format!("/{rest}")),
        Some(b'/') => Some(rest.to_owned()),
        Some(_) => None,
    }
}

/// Returns `host/path` for a client that treats the bridge as the host and names the real host only
/// in `Host`. PHP's stream wrapper does so unless `request_fulluri` is set. That option would send
/// the full URL through tunnels too, where many hosts reject it. Returns `None` when `Host` is not
/// a full host name, for example the bridge's own name.
fn by_host_header(head: &Head) -> Option<String> {
    let host = head.host.as_deref()?;
    let meant = head.target.starts_with('/') && Authority::parse(host).is_ok();
    meant.then(|| format!("{host}{}", head.target))
}

/// Parses the destination of a request inside a tunnel to `host:port` whose TLS the bridge
/// decrypts.
pub(super) fn inner(head: &Head, host: &Host, port: u16) -> Result<Target, Reason> {
    if head.method == "CONNECT" || !head.target.starts_with('/') {
        return Err(Reason::MalformedRequest);
    }
    let said = authority(head.host.as_deref().unwrap_or_default())?;
    if said.host != *host || said.port.unwrap_or(Transport::Tls.default_port()) != port {
        return Err(Reason::HostMismatch);
    }
    Ok(Target {
        mode: EgressMode::Terminate,
        transport: Transport::Tls,
        host: host.clone(),
        port,
        path: request_path(&head.target)?,
    })
}

fn scheme(target: &str) -> Option<(Transport, &str)> {
    [("http://", Transport::Plain), ("https://", Transport::Tls)]
        .into_iter()
        .find_map(|(prefix, transport)| {
            let given = target.get(..prefix.len())?;
            given
                .eq_ignore_ascii_case(prefix)
                .then(|| (transport, &target[prefix.len()..]))
        })
}

fn authority(text: &str) -> Result<Authority, Reason> {
    use wp_codebox_policy::HostError;
    Authority::parse(text).map_err(|why| match why {
        HostError::Private(_) => Reason::PrivateAddress,
        _ => Reason::HostInvalid,
    })
}

fn request_path(text: &str) -> Result<RequestPath, Reason> {
    let path = RequestPath::parse(text).map_err(|_| Reason::MalformedRequest)?;
    // A target that the HTTP library cannot represent is refused already here, while the bridge can
    // still send a response and log it.
    match text.parse::<PathAndQuery>() {
        Ok(_) => Ok(path),
        Err(_) => Err(Reason::MalformedRequest),
    }
}

#[cfg(test)]
mod tests {
    use super::super::head::parse;
    use super::*;

    fn head(method: &str, target: &str, host: &str) -> Head {
        parse(format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap()
    }

    fn shown(target: &Target) -> String {
        format!(
            "{} {}:{} {}?{}",
            target.transport.scheme(),
            target.host,
            target.port,
            target.path.path(),
            target.path.query().unwrap_or("-")
        )
    }

    #[test]
    fn each_form_of_request_to_the_egress_bridge_is_routed_to_the_host_that_it_names() {
        for (target, expected) in [
            ("http://A.example/x?y=1", "http a.example:80 /x?y=1"),
            ("HTTP://a.example", "http a.example:80 /?-"),
            ("http://a.example:8080?q", "http a.example:8080 /?q"),
            ("https://a.example/", "https a.example:443 /?-"),
            ("/https/a.example/v1/x?y", "https a.example:443 /v1/x?y"),
            ("/https/a.example:8443", "https a.example:8443 /?-"),
            ("/http/a.example/x", "http a.example:80 /x?-"),
            (
                "/https/[2606:4700::1]:443/x",
                "https [2606:4700::1]:443 /x?-",
            ),
        ] {
            match outer(&head("GET", target, "ignored")).unwrap() {
                Route::Forward(found) => assert_eq!(shown(&found), expected),
                Route::Connect { .. } | Route::Model(_) => panic!("{target}"),
            }
        }
        assert_eq!(
            outer(&head("CONNECT", "a.example:443", "x")).unwrap(),
            Route::Connect {
                host: Host::parse("a.example").unwrap(),
                port: 443
            }
        );
    }

    #[test]
    fn origin_form_request_needs_a_host_in_its_path_or_a_full_host_name_in_the_host_header() {
        for (target, host, expected) in [
            ("/x?y", "A.example", "http a.example:80 /x?y"),
            ("/x", "a.example:8080", "http a.example:8080 /x?-"),
            // A path `/http/<host>/…` names the host itself, so `Host` is ignored.
            ("/http/b.example/x", "a.example", "http b.example:80 /x?-"),
        ] {
            match outer(&head("GET", target, host)).unwrap() {
                Route::Forward(found) => assert_eq!(shown(&found), expected),
                Route::Connect { .. } | Route::Model(_) => panic!("{target}"),
            }
        }
        for host in ["localhost", "127.0.0.1:3128", "10.0.0.1", "a@b.example", ""] {
            let refused = Err(Reason::NotAProxyRequest);
            assert_eq!(outer(&head("GET", "/x", host)), refused, "{host}");
        }
    }

    #[test]
    fn model_path_is_routed_to_the_model_if_host_is_not_a_full_host_name() {
        for (target, expected) in [
            ("/model/chat/completions?x=1", "/chat/completions"),
            ("/model", "/"),
            ("/model?x", "/"),
            ("/model/../https/a.example/", "/../https/a.example/"),
        ] {
            for host in ["127.0.0.1:3128", "localhost", ""] {
                match outer(&head("POST", target, host)).unwrap() {
                    Route::Model(path) => assert_eq!(path.path(), expected),
                    other => panic!("{target} {host} {other:?}"),
                }
            }
        }
        match outer(&head("GET", "/model/x", "a.example")).unwrap() {
            Route::Forward(found) => assert_eq!(shown(&found), "http a.example:80 /model/x?-"),
            other => panic!("{other:?}"),
        }
        let refused = Err(Reason::NotAProxyRequest);
        assert_eq!(outer(&head("POST", "/models", "localhost")), refused);
    }

    #[test]
    fn egress_bridge_requests_with_a_malformed_or_private_target_are_refused() {
        for (method, target, reason) in [
            ("CONNECT", "a.example", Reason::HostInvalid),
            ("CONNECT", "127.0.0.1:443", Reason::PrivateAddress),
            ("CONNECT", "a.example.:443", Reason::HostInvalid),
            ("CONNECT", "http://a.example/", Reason::HostInvalid),
            ("GET", "http://user:pass@a.example/", Reason::HostInvalid),
            ("GET", "http://a.example@b.example/", Reason::HostInvalid),
            ("GET", "http://a.example\\@b.example/", Reason::HostInvalid),
            ("GET", "http://a.example#@b.example/", Reason::HostInvalid),
            ("GET", "http:///x", Reason::HostInvalid),
            (
                "GET",
                "http://169.254.169.254/latest",
                Reason::PrivateAddress,
            ),
            ("GET", "http://[::]/", Reason::PrivateAddress),
            ("GET", "http://[::ffff:10.0.0.1]/", Reason::PrivateAddress),
            ("GET", "http://2130706433/", Reason::HostInvalid),
            ("GET", "http://a.example/#x", Reason::MalformedRequest),
            ("GET", "/https/", Reason::HostInvalid),
            ("GET", "/https//x", Reason::HostInvalid),
            ("GET", "/", Reason::NotAProxyRequest),
            ("GET", "/etc/passwd", Reason::NotAProxyRequest),
            ("GET", "ftp://a.example/", Reason::NotAProxyRequest),
            ("OPTIONS", "*", Reason::NotAProxyRequest),
        ] {
            assert_eq!(
                outer(&head(method, target, "x")),
                Err(reason),
                "{method} {target}"
            );
        }
    }

    #[test]
    fn host_header_in_a_terminated_tunnel_must_equal_the_connect_target() {
        let host = Host::parse("a.example").unwrap();
        assert!(inner(&head("GET", "/x", "A.example"), &host, 443).is_ok());
        assert!(inner(&head("GET", "/x", "a.example:8443"), &host, 8443).is_ok());
        for (target, said, port, reason) in [
            ("/x", "b.example", 443, Reason::HostMismatch),
            ("/x", "a.example:444", 443, Reason::HostMismatch),
            ("/x", "a.example", 8443, Reason::HostMismatch),
            (
                "http://b.example/",
                "a.example",
                443,
                Reason::MalformedRequest,
            ),
        ] {
            assert_eq!(
                inner(&head("GET", target, said), &host, port),
                Err(reason),
                "{target} {said}"
            );
        }
    }
}
