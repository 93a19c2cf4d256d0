//! The principal of a request: a token, or the administrator of the machine.

use super::token::accepts;
use super::{Scopes, parse_token};
use crate::actor::{Actor, ActorClass};
use crate::problem::{ApiResult, Problem};
use crate::store::Store;
use axum::http::{HeaderMap, header};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use wp_codebox_contracts::ErrorCode;

/// Other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A process of this machine, by the uid that the kernel reports.
    Unix {
        /// Effective uid at the time of `connect`.
        uid: u32,
    },
    /// A client of the TLS listener.
    Tls {
        /// Its address.
        address: SocketAddr,
    },
}

/// Who opened a connection, before a request says who it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// User on the unix socket.
    Uid(u32),
    /// IPv4 address, or the first 64 bits of an IPv6 address: one host has all addresses of such a
    /// network.
    Network(IpAddr),
}

impl From<&Peer> for Origin {
    fn from(peer: &Peer) -> Self {
        match peer {
            Peer::Unix { uid } => Self::Uid(*uid),
            Peer::Tls { address } => Self::Network(match address.ip().to_canonical() {
                IpAddr::V4(v4) => IpAddr::V4(v4),
                IpAddr::V6(v6) => {
                    IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)))
                }
            }),
        }
    }
}

/// Who makes a request.
#[derive(Debug, Clone)]
pub(crate) struct Principal {
    /// Id of the token; empty for the administrator of the machine.
    pub token: String,
    pub actor: Actor,
    pub account: Option<String>,
    pub scopes: Scopes,
    /// Requests per minute and concurrent requests that are allowed; `None` for the administrator
    /// of the machine.
    pub limits: Option<(u32, u32)>,
}

impl Principal {
    /// Returns the principal of requests by the owner of the service or by root.
    pub(crate) fn administrator(uid: u32) -> Self {
        Self {
            token: String::new(),
            actor: Actor {
                class: ActorClass::Administrator,
                name: format!("uid-{uid}"),
            },
            account: None,
            scopes: Scopes::everything(),
            limits: None,
        }
    }

    /// Returns whether this is the owner of the service or root, on the unix socket without a token.
    pub(crate) fn is_administrator(&self) -> bool {
        self.token.is_empty()
    }
}

/// Finds the principal of a request. A token wins over the uid, so a process of the owner can act
/// with fewer rights. Blocks.
pub(crate) fn authenticate(
    store: &Store,
    own_uid: u32,
    peer: Peer,
    headers: &HeaderMap,
) -> ApiResult<Principal> {
    let refused = || {
        Problem::new(
            ErrorCode::ServiceTokenRequired,
            "this request needs a valid token in the header Authorization",
        )
        .hint("an administrator creates one with `wp-codebox token create`; send it as `Authorization: Bearer wpcb_…`")
    };
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (first, further) = (values.next(), values.next());
    match (first, peer) {
        (None, Peer::Unix { uid }) if uid == own_uid || uid == 0 => {
            Ok(Principal::administrator(uid))
        }
        (None, _) => Err(refused()),
        (Some(_), _) if further.is_some() => Err(refused()),
        (Some(value), _) => {
            let text = value.to_str().map_err(|_| refused())?;
            let (scheme, token) = text.split_once(' ').ok_or_else(refused)?;
            if !scheme.eq_ignore_ascii_case("bearer") {
                return Err(refused());
            }
            let (id, secret) = parse_token(token.trim()).ok_or_else(refused)?;
            let (row, stored) = store.token(id)?.ok_or_else(refused)?;
            if !accepts(&row, &stored, secret) {
                return Err(refused());
            }
            Ok(Principal {
                token: row.id,
                actor: row.actor,
                account: row.account,
                scopes: row.scopes,
                limits: Some((row.rate_per_minute, row.concurrency)),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_and_mapped_addresses_are_one_origin() {
        let origin = |text: &str| {
            let address = text.parse().unwrap();
            Origin::from(&Peer::Tls { address })
        };
        assert_eq!(origin("[2001:db8::1]:1"), origin("[2001:db8::2:0:0:9]:2"));
        assert_ne!(origin("[2001:db8::1]:1"), origin("[2001:db8:0:1::1]:1"));
        assert_eq!(origin("192.0.2.1:1"), origin("[::ffff:192.0.2.1]:2"));
        assert_ne!(origin("192.0.2.1:1"), origin("192.0.2.2:1"));
        assert_ne!(Origin::from(&Peer::Unix { uid: 0 }), origin("0.0.0.0:1"));
    }
}
