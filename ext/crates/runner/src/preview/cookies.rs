//! Cookies between a visitor and a guest.
//!
//! Browsers keep cookies by host, whatever the port: on 127.0.0.1 those of every program of that
//! machine are sent along. The guest gets the ones that it set itself in this preview, and sets
//! them for this host only.

use super::token::Token;
use hyper::header::{self, HeaderMap, HeaderValue};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Cookies that one guest may set.
const MOST: usize = 256;

/// The names that the guest set, and the one that is ours.
#[derive(Debug)]
pub(super) struct Cookies {
    set: Mutex<BTreeSet<String>>,
    /// Name of the token's cookie; it differs by port, since browsers do not.
    own: String,
}

impl Cookies {
    pub(super) fn new(port: u16) -> Self {
        Self {
            set: Mutex::default(),
            own: format!("codebox_preview_{port}"),
        }
    }

    /// Whether the request has the token's cookie.
    pub(super) fn has_token(&self, headers: &HeaderMap, token: &Token) -> bool {
        pairs(headers).any(|(name, value)| name == self.own && token.is(value))
    }

    /// The cookie that stands for the token from now on.
    pub(super) fn token_cookie(&self, token: &Token, secure: bool) -> Option<HeaderValue> {
        let secure = if secure { "; Secure" } else { "" };
        let text = format!(
            "{}={}; Path=/; HttpOnly; SameSite=Lax{secure}",
            self.own,
            token.reveal()
        );
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The cookies of a request that the guest may see.
    pub(super) fn for_guest(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let set = self.names();
        let kept: Vec<String> = pairs(headers)
            .filter(|(name, _)| set.contains(*name))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if kept.is_empty() {
            return None;
        }
        HeaderValue::from_str(&kept.join("; ")).ok()
    }

    /// A cookie of the guest as the visitor may have it: for this host only, and never ours.
    pub(super) fn for_visitor(&self, given: &HeaderValue) -> Option<HeaderValue> {
        let mut parts = given.to_str().ok()?.split(';');
        let pair = parts.next()?.trim();
        let name = pair.split_once('=').map_or("", |(name, _)| name.trim());
        if name.is_empty() || name == self.own {
            return None;
        }
        let mut set = self.names();
        if !set.contains(name) {
            if set.len() >= MOST {
                return None;
            }
            set.insert(name.to_owned());
        }
        drop(set);
        let mut kept = vec![pair];
        kept.extend(parts.map(str::trim).filter(|attribute| {
            let name = attribute.split('=').next().unwrap_or_default().trim();
            !name.eq_ignore_ascii_case("domain")
        }));
        HeaderValue::from_str(&kept.join("; ")).ok()
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

#[cfg(test)]
mod unit {
    use super::*;

    fn asked(line: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(line))])
    }

    #[test]
    fn the_guest_sees_its_own_cookies_and_nobody_elses() {
        let cookies = Cookies::new(4321);
        let given = HeaderValue::from_static(
            "wordpress_test=1; path=/; Domain=example.org; domain = .example.org; HttpOnly",
        );
        let set = cookies.for_visitor(&given).unwrap();
        assert_eq!(set, "wordpress_test=1; path=/; HttpOnly");
        let request = asked("session_of_another=secret; wordpress_test=1; codebox_preview_4321=t");
        assert_eq!(cookies.for_guest(&request).unwrap(), "wordpress_test=1");
        assert_eq!(Cookies::new(1).for_guest(&request), None);
    }

    #[test]
    fn the_tokens_cookie_is_ours() {
        let cookies = Cookies::new(4321);
        let token = Token::given("abcdefghijklmnop").unwrap();
        let ours = cookies.token_cookie(&token, true).unwrap();
        assert!(ours.to_str().unwrap().ends_with("; Secure"));
        let forged = HeaderValue::from_static("codebox_preview_4321=abcdefghijklmnop; Path=/");
        assert_eq!(cookies.for_visitor(&forged), None);
        assert!(cookies.has_token(&asked("a=1; codebox_preview_4321=abcdefghijklmnop"), &token));
        assert!(!cookies.has_token(&asked("codebox_preview_4321=abcdefghijklmnoq"), &token));
        assert!(!cookies.has_token(&asked("codebox_preview_4322=abcdefghijklmnop"), &token));
    }

    #[test]
    fn a_guest_sets_a_bounded_number() {
        let cookies = Cookies::new(1);
        let set = (0..MOST + 10).filter(|index| {
            let text = format!("name{index}=1");
            cookies
                .for_visitor(&HeaderValue::from_str(&text).unwrap())
                .is_some()
        });
        assert_eq!(set.count(), MOST);
        assert!(
            cookies
                .for_visitor(&HeaderValue::from_static("name0=2"))
                .is_some()
        );
        assert!(
            cookies
                .for_visitor(&HeaderValue::from_static("nothing"))
                .is_none()
        );
    }
}
