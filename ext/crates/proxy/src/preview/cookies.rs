//! Cookies between a visitor and a guest.
//!
//! Browsers keep cookies by host, whatever the port: on 127.0.0.1 those of every program of that
//! machine are sent along. The guest gets the ones that it set itself in this preview, with the
//! values that it gave them: who gives a cookie the name of another program's would otherwise be
//! told that one's value. It sets them for this host only, and never those of previews.

use super::token::Token;
use hyper::header::{self, HeaderMap, HeaderValue};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Cookies of one guest that are known; of more than that the first are forgotten.
const MOST: usize = 1024;
/// Longest name and value together; browsers take no longer ones.
const LONGEST: usize = 4096;
/// What the names of the token's cookies begin with, in every preview of this host.
const OWN: &str = "codebox_preview_";

/// Names and values that the guest set, and when of all.
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
        if self.pairs.len() > MOST {
            let first = self.pairs.iter().min_by_key(|(_, at)| **at);
            if let Some(first) = first.map(|(pair, _)| pair.clone()) {
                self.pairs.remove(&first);
            }
        }
    }
}

/// The cookies that the guest set, and the one that is ours.
#[derive(Debug)]
pub(super) struct Cookies {
    given: Mutex<Given>,
    /// Name of the token's cookie; it differs by port, since browsers do not.
    own: String,
}

impl Cookies {
    pub(super) fn new(port: u16) -> Self {
        Self {
            given: Mutex::default(),
            own: format!("{OWN}{port}"),
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
        let given = self.given();
        let kept: Vec<String> = pairs(headers)
            .filter(|(name, value)| {
                let pair = (name.trim().to_owned(), value.trim().to_owned());
                given.pairs.contains_key(&pair)
            })
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
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || name.starts_with(OWN) || pair.len() > LONGEST {
            return None;
        }
        self.given().add(name, value);
        let mut kept = vec![pair];
        kept.extend(parts.map(str::trim).filter(|attribute| {
            let name = attribute.split('=').next().unwrap_or_default().trim();
            !name.eq_ignore_ascii_case("domain")
        }));
        HeaderValue::from_str(&kept.join("; ")).ok()
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
    fn a_name_does_not_open_the_value_of_another() {
        let cookies = Cookies::new(4321);
        for set in ["session=mine; Path=/nowhere", "other=1; Max-Age=0"] {
            let given = HeaderValue::from_str(set).unwrap();
            assert!(cookies.for_visitor(&given).is_some());
        }
        let request = asked("session=secret; session=mine; other=secret");
        assert_eq!(cookies.for_guest(&request).unwrap(), "session=mine");
        let long = format!("long={}", "x".repeat(LONGEST));
        let long = HeaderValue::from_str(&long).unwrap();
        assert_eq!(cookies.for_visitor(&long), None);
        let of_another = HeaderValue::from_static("codebox_preview_9999=abc");
        assert_eq!(cookies.for_visitor(&of_another), None);
    }

    #[test]
    fn a_bounded_number_is_known() {
        let cookies = Cookies::new(1);
        for index in 0..MOST + 10 {
            let text = HeaderValue::from_str(&format!("name{index}=1")).unwrap();
            assert!(cookies.for_visitor(&text).is_some());
        }
        assert_eq!(cookies.given().pairs.len(), MOST);
        assert_eq!(cookies.for_guest(&asked("name9=1")), None);
        assert!(cookies.for_guest(&asked("name10=1")).is_some());
        let nothing = HeaderValue::from_static("nothing");
        assert!(cookies.for_visitor(&nothing).is_none());
    }
}
