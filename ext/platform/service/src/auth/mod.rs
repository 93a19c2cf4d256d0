//! Who makes a request, and what it may do.

mod principal;
mod scope;
mod throttle;
mod token;

pub(crate) use principal::{Origin, Peer, Principal, authenticate};
pub use scope::{Grant, Scope, ScopeError, Scopes};
pub(crate) use throttle::{Permit, Throttle};
pub use token::{NewToken, TokenSpec, TokenStore};
pub(crate) use token::{parse as parse_token, random};
