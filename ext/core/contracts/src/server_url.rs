//! Address of the message server of a cluster.

use crate::{ErrorBody, ErrorCode};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Default port of the message server.
const PORT: u16 = 4222;

/// Address of a message server: `tls://HOST[:PORT]` or `nats://HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    has_tls: bool,
    /// Name or address; an IPv6 address without its brackets.
    host: String,
    port: u16,
}

impl ServerUrl {
    /// Reads an address; the port is 4222 by default.
    ///
    /// # Errors
    /// `wp_codebox_input_invalid` for another form, and for user names or passwords in an address:
    /// arguments of a process are visible for all users of a machine. The text does not repeat the
    /// address, because a person may have written a password into it.
    pub fn parse(text: &str) -> Result<Self, ErrorBody> {
        let (has_tls, rest) = match text.split_once("://") {
            Some(("tls", rest)) => (true, rest),
            Some(("nats", rest)) => (false, rest),
            Some(_) | None => return Err(wrong("has no known scheme")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, after) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong(
                "has a user name or password, which belong in a credentials file",
            ));
        }
        if !matches!(after, "" | "/") {
            return Err(wrong("has a part after the port"));
        }
        let unreadable = || wrong("cannot be parsed");
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, port) = bracketed.split_once(']').ok_or_else(unreadable)?;
                host.parse::<Ipv6Addr>().map_err(|_| unreadable())?;
                let port = match port {
                    "" => None,
                    port => Some(port.strip_prefix(':').ok_or_else(unreadable)?),
                };
                (host, port)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return Err(wrong("has no host"));
        }
        let is_bracketed = authority.starts_with('[');
        let in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if !is_bracketed && !host.bytes().all(in_name) {
            return Err(unreadable());
        }
        let is_number = |port: &&str| port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            None => PORT,
            Some(port) => Some(port)
                .filter(is_number)
                .and_then(|port| port.parse().ok())
                .ok_or_else(unreadable)?,
        };
        Ok(Self {
            has_tls,
            host: host.to_owned(),
            port,
        })
    }

    /// Returns whether the address demands TLS.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.has_tls
    }

    /// Returns whether packets to this address stay on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let is_loopback = |ip: IpAddr| ip.is_loopback();
        self.host == "localhost" || self.host.parse().is_ok_and(is_loopback)
    }

    /// Returns host and port, as in the address.
    #[must_use]
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "tls" } else { "nats" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

fn wrong(problem: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::InputInvalid,
        format!(
            "the address of the message server {problem}; an address is tls://HOST:PORT or, on this machine, nats://HOST:PORT"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_a_scheme_a_host_and_perhaps_a_port() {
        for (text, shown) in [
            ("nats://127.0.0.1", "nats://127.0.0.1:4222"),
            ("tls://nats.example:4443/", "tls://nats.example:4443"),
            ("nats://[::1]:1", "nats://[::1]:1"),
            ("tls://[2001:db8::1]", "tls://[2001:db8::1]:4222"),
        ] {
            assert_eq!(ServerUrl::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn address_without_scheme_or_with_password_or_path_is_refused_and_the_error_does_not_show_it() {
        for text in [
            "",
            "secret.example",
            "ws://secret.example",
            "nats://",
            "nats://:1",
            "nats://user:secret@127.0.0.1",
            "nats://secret@127.0.0.1",
            "nats://127.0.0.1/secret",
            "nats://127.0.0.1?secret",
            "nats://127.0.0.1#secret",
            "tls://secret:99999",
            "tls://secret:+1",
            "tls://secret:",
            "tls://secret:1:1",
            "tls://[secret]",
            "tls://[::1]secret",
            "tls://se cret",
            "tls://secret%2f",
        ] {
            let error = ServerUrl::parse(text).unwrap_err();
            assert_eq!(error.code, ErrorCode::InputInvalid, "{text}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }
}
