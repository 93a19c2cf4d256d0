//! Validates a request for a preview (the guest's site on an address of the host) before the
//! preview starts.

use crate::host::peer::Caller;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, PreviewRequest};
use wp_codebox_proxy::preview::{ListenAddress, Origin, Reservation, Token};
use wp_codebox_runtime::StateDir;

/// Who may use the loopback addresses of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostUsers {
    /// As far as the supervisor knows, only the user of the run.
    One,
    /// Other users, too: a service of root serves them.
    Many,
}

impl HostUsers {
    pub(crate) fn of(caller: &Caller) -> Self {
        match caller {
            Caller::Trusted => Self::One,
            Caller::Other { .. } => Self::Many,
        }
    }
}

/// Validated settings of a preview.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub place: ListenAddress,
    pub public: Option<Origin>,
    pub token: Option<Token>,
    pub ttl: Option<Duration>,
    pub login: Option<(Token, String)>,
}

impl Wanted {
    pub(crate) fn read(request: &PreviewRequest, users: HostUsers) -> Result<Self, ErrorBody> {
        let place = ListenAddress::new(request.bind.as_deref(), request.port)?;
        let public = request.public_url.as_deref();
        let public = public.map(Origin::public).transpose()?;
        let local = place.is_loopback() && public.as_ref().is_none_or(Origin::is_loopback);
        let token = match &request.token {
            Some(given) => Some(Token::given(given)?),
            None if local && users == HostUsers::One => None,
            // A token is the only way to identify visitors, so a preview that other machines or
            // other users can reach needs one.
            None => Some(Token::random()?),
        };
        let login = match &request.login {
            None => None,
            Some(login) => {
                let key = login.key.as_deref().map(Token::given);
                let key = key.unwrap_or_else(Token::random)?;
                Some((key, login.user.clone().unwrap_or_default()))
            }
        };
        Ok(Self {
            place,
            public,
            token,
            login,
            ttl: request.ttl_ms.map(Duration::from_millis),
        })
    }
}

/// Validates the preview that a run request asks for, and reserves its address before the run
/// starts.
pub(crate) fn reserve(
    state: &StateDir,
    request: &PreviewRequest,
    users: HostUsers,
) -> Result<Reservation, ErrorBody> {
    Reservation::of(state, Wanted::read(request, users)?.place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preview_reachable_from_other_hosts_or_by_other_users_requires_a_token() {
        for (bind, public, token) in [
            (None, None, false),
            (Some("127.0.0.2"), None, false),
            (None, Some("http://localhost:8081"), false),
            (None, Some("http://[::1]:8081"), false),
            (Some("0.0.0.0"), None, true),
            (Some("::ffff:127.0.0.1"), None, true),
            (None, Some("https://preview.example.org"), true),
            (None, Some("http://localhost.example.org"), true),
            (Some("::1"), Some("http://192.0.2.7:8081"), true),
        ] {
            let request = PreviewRequest {
                bind: bind.map(str::to_owned),
                public_url: public.map(str::to_owned),
                ..PreviewRequest::default()
            };
            let wanted = |users| Wanted::read(&request, users).unwrap();
            assert_eq!(
                wanted(HostUsers::One).token.is_some(),
                token,
                "{bind:?} {public:?}"
            );
            assert!(
                wanted(HostUsers::Many).token.is_some(),
                "{bind:?} {public:?}"
            );
        }
    }
}
