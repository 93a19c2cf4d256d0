//! Access token of a preview, and its one-time sign-in link.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use subtle::ConstantTimeEq as _;
use wp_codebox_contracts::{ErrorBody, ErrorCode, hex};
use zeroize::Zeroizing;

/// Query parameter that contains the access token in a preview's link.
pub const PARAMETER: &str = "preview_token";
/// Minimum number of characters of a token that the caller chose.
const SHORTEST: usize = 16;
/// Maximum number of characters of a token that the caller chose.
const LONGEST: usize = 256;

/// Access token of a preview. Only [`Token::reveal`] exposes its text.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Generates a token of 256 random bits.
    pub fn random() -> Result<Self, ErrorBody> {
        let mut bytes = Zeroizing::new([0_u8; 32]);
        getrandom::fill(bytes.as_mut_slice())
            .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
        Ok(Self(Zeroizing::new(hex(bytes.as_slice()))))
    }

    /// Validates a token chosen by the caller.
    pub fn given(text: &str) -> Result<Self, ErrorBody> {
        let fits = (SHORTEST..=LONGEST).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if fits {
            return Ok(Self(Zeroizing::new(text.to_owned())));
        }
        let message =
            "the preview's token must have 16 to 256 letters, digits, hyphens or underscores";
        Err(ErrorBody::new(ErrorCode::InputInvalid, message))
    }

    /// Returns the token text, for a cookie or for the caller that opened the preview.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns whether the token's text equals `other`; the comparison takes constant time.
    pub fn is(&self, other: &str) -> bool {
        self.0.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

/// Query parameter that contains the key of a sign-in link.
pub const LOGIN_PARAMETER: &str = "preview_login";

/// Key and user of the preview's valid sign-in link; none once the link has been used.
#[derive(Debug, Clone, Default)]
pub struct Logins(Arc<Mutex<Option<(Token, String)>>>);

impl Logins {
    /// Makes the link with this key valid for signing in `user`; the previous link becomes invalid.
    pub fn offer(&self, key: Token, user: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, user));
    }

    /// Returns the user of the link with this key and makes the link invalid. `None` for a wrong
    /// key.
    pub(super) fn take(&self, key: &str) -> Option<String> {
        let mut offered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, user) = offered.take_if(|(own, _)| own.is(key))?;
        Some(user)
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn only_the_latest_sign_in_link_is_accepted_and_only_once() {
        let key = |text| Token::given(text).unwrap();
        let logins = Logins::default();
        assert_eq!(logins.take("aaaaaaaaaaaaaaaa"), None);
        logins.offer(key("aaaaaaaaaaaaaaaa"), "one".to_owned());
        logins.offer(key("bbbbbbbbbbbbbbbb"), "two".to_owned());
        assert_eq!(logins.take("aaaaaaaaaaaaaaaa"), None);
        assert_eq!(logins.take("bbbbbbbbbbbbbbbb").as_deref(), Some("two"));
        assert_eq!(logins.take("bbbbbbbbbbbbbbbb"), None);
    }

    #[test]
    fn preview_token_matches_only_identical_text_and_a_malformed_token_is_refused() {
        let token = Token::given("abcdefghijklmnop").unwrap();
        assert!(token.is("abcdefghijklmnop"));
        for other in [
            "",
            "abcdefghijklmno",
            "abcdefghijklmnoP",
            "abcdefghijklmnopq",
        ] {
            assert!(!token.is(other), "{other}");
        }
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one.is(one.reveal()) && !one.is(other.reveal()));
        assert_eq!(
            (one.reveal().len(), format!("{one:?}")),
            (64, "Token".to_owned())
        );
        for bad in [
            "short",
            "with a space in it",
            "quote\"quote\"quote\"",
            &"x".repeat(257),
        ] {
            assert!(Token::given(bad).is_err(), "{bad}");
        }
    }
}
