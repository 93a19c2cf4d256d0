//! Filters cookies between a visitor and a guest.
//!
//! Browsers store cookies by host and ignore the port. To a preview on 127.0.0.1, a browser
//! therefore also sends the cookies that other web servers of that machine have set. The forwarder
//! passes on only cookies that this guest set during this preview, and only with the value the
//! guest gave them: otherwise a guest could set a cookie under another program's cookie name and
//! read that program's value. The guest can set cookies for this host only, and cannot set the
//! preview's token cookies.

use super::token::Token;
use hyper::header::{self, HeaderMap, HeaderValue};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of cookies of one guest that the forwarder remembers; above it, the oldest are
/// forgotten.
const MAX_COOKIES: usize = 1024;
/// Maximum length in bytes of a cookie's name and value together. Browsers reject cookies that are
/// longer.
const MAX_COOKIE_BYTES: usize = 4096;
/// Prefix of the names of the cookies that store access tokens, for all previews on this host.
const TOKEN_COOKIE_PREFIX: &str = "codebox_preview_";

/// Names and values of the cookies that the guest has set, with the order in which it set them.
#[derive(Debug, Default)]
struct Given {
    pairs: BTreeMap<(String, String), u64>,
    count: u64,
}

impl Given {
    fn add(&mut self, name: &str, value: &str) {
        self.count += 1;
        self.pairs
            .insert((name.to_owned(), value.to_owned()), self.count);
        if self.pairs.len() > MAX_COOKIES {
            let first = self.pairs.iter().min_by_key(|(_, at)| **at);
            if let Some(first) = first.map(|(pair, _)| pair.clone()) {
                self.pairs.remove(&first);
            }
        }
    }
}

/// Cookies that the guest has set, and the name of the cookie with the visitor's access token.
#[derive(Debug)]
pub(super) struct Cookies {
    given: Mutex<Given>,
    /// Name of the cookie with the visitor's access token. It contains the port, because browsers
    /// do not separate cookies by port.
    own: String,
}

impl Cookies {
    pub(super) fn new(port: u16) -> Self {
        Self {
            given: Mutex::default(),
            own: format!("{TOKEN_COOKIE_PREFIX}{port}"),
        }
    }

    /// Returns whether the request has a cookie with the preview's access token.
    pub(super) fn has_token(&self, headers: &HeaderMap, token: &Token) -> bool {
        pairs(headers).any(|(name, value)| name == self.own && token.is(value))
    }

    /// Returns the `Set-Cookie` value that stores the access token in the visitor's browser.
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

    /// Returns the `Cookie` header for the guest, with only the cookies that the guest itself has
    /// set; `None` if the request has no such cookie.
    pub(super) fn for_guest(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let given = self.given();
        let forwarded: Vec<String> = pairs(headers)
            .filter(|(name, value)| {
                let pair = (name.trim().to_owned(), value.trim().to_owned());
                given.pairs.contains_key(&pair)
            })
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if forwarded.is_empty() {
            return None;
        }
        HeaderValue::from_str(&forwarded.join("; ")).ok()
    }

    /// Returns a `Set-Cookie` header of the guest, restricted to this host; `None` if the cookie is
    /// malformed, too long or named like a token cookie.
    pub(super) fn for_visitor(&self, given: &HeaderValue) -> Option<HeaderValue> {
        let mut parts = given.to_str().ok()?.split(';');
        let pair = parts.next()?.trim();
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || name.starts_with(TOKEN_COOKIE_PREFIX) || pair.len() > MAX_COOKIE_BYTES
        {
            return None;
        }
        self.given().add(name, value);
        let mut forwarded = vec![pair];
        forwarded.extend(parts.map(str::trim).filter(|attribute| {
            let name = attribute.split('=').next().unwrap_or_default().trim();
            !name.eq_ignore_ascii_case("domain")
        }));
        HeaderValue::from_str(&forwarded.join("; ")).ok()
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn guest_receives_only_cookies_that_it_set_itself() {
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
    fn guest_cannot_set_the_token_cookie_and_only_its_exact_name_and_value_are_accepted() {
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
    fn cookie_value_that_the_guest_did_not_set_and_overlong_or_token_cookie_are_dropped() {
        let cookies = Cookies::new(4321);
        for set in ["session=mine; Path=/nowhere", "other=1; Max-Age=0"] {
            let given = HeaderValue::from_str(set).unwrap();
            assert!(cookies.for_visitor(&given).is_some());
        }
        let request = asked("session=secret; session=mine; other=secret");
        assert_eq!(cookies.for_guest(&request).unwrap(), "session=mine");
        let long = format!("long={}", "x".repeat(MAX_COOKIE_BYTES));
        let long = HeaderValue::from_str(&long).unwrap();
        assert_eq!(cookies.for_visitor(&long), None);
        let of_another = HeaderValue::from_static("codebox_preview_9999=abc");
        assert_eq!(cookies.for_visitor(&of_another), None);
    }

    #[test]
    fn only_the_newest_preview_cookies_are_remembered_up_to_a_limit() {
        let cookies = Cookies::new(1);
        for index in 0..MAX_COOKIES + 10 {
            let text = HeaderValue::from_str(&format!("name{index}=1")).unwrap();
            assert!(cookies.for_visitor(&text).is_some());
        }
        assert_eq!(cookies.given().pairs.len(), MAX_COOKIES);
        assert_eq!(cookies.for_guest(&asked("name9=1")), None);
        assert!(cookies.for_guest(&asked("name10=1")).is_some());
        let nothing = HeaderValue::from_static("nothing");
        assert!(cookies.for_visitor(&nothing).is_none());
    }
}
