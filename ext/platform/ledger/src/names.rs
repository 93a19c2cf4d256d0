//! Names in the ledger and texts for people. Each has a bounded length and no control characters.

use serde::{Deserialize, Serialize};
use wp_codebox_contracts::CodedError;
use wp_codebox_contracts::terminal_text::is_hidden;

/// Error for a text that is not a valid name or note.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[error("the {what} is not valid; it must be {rule}")]
#[code(InputInvalid)]
pub struct NameError {
    what: &'static str,
    rule: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Creates the value from a text; fails if the text does not have the required form.
            pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text)) } else { Err(NameError { what: $what, rule: $rule }) }
            }
        }
        wp_codebox_contracts::checked_text!($name, NameError);
    };
}

fn is_token(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':' | b'@'))
}

name!(
    /// Name of an account: 1 to 64 of `A-Z a-z 0-9 _ - . : @`.
    AccountId, "account name", "1 to 64 letters, digits, _, -, ., : or @", |t| is_token(t, 64)
);
name!(
    /// Id of a sandbox as its extension names it: 1 to 128 of `A-Z a-z 0-9 _ - . : @`.
    SandboxKey, "sandbox id", "1 to 128 letters, digits, _, -, ., : or @", |t| is_token(t, 128)
);
name!(
    /// Reference of a grant, such as an invoice number: 1 to 128 of `A-Z a-z 0-9 _ - . : @`.
    GrantReference, "reference of the grant", "1 to 128 letters, digits, _, -, ., : or @",
    |t| is_token(t, 128)
);
name!(
    /// Text for people, such as a reason: 1 to 200 bytes without control or invisible characters.
    Note, "text", "1 to 200 bytes without control or invisible characters",
    |t| (1..=200).contains(&t.len()) && !t.chars().any(|c| c.is_control() || is_hidden(c))
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_huge_and_malformed_names_are_refused() {
        assert!(AccountId::new("team@shop.example:eu-1").is_ok());
        assert!(AccountId::new("a".repeat(64)).is_ok());
        assert!(SandboxKey::new("a".repeat(128)).is_ok());
        for bad in [
            "",
            "a b",
            "a/b",
            "a\0",
            "a\n",
            "é",
            "'; DROP TABLE entries; --",
        ] {
            assert!(AccountId::new(bad).is_err(), "{bad:?}");
            assert!(SandboxKey::new(bad).is_err(), "{bad:?}");
        }
        assert!(AccountId::new("a".repeat(65)).is_err());
        assert!(AccountId::new("a".repeat(10_000_000)).is_err());
        assert!(SandboxKey::new("a".repeat(129)).is_err());
        assert!(serde_json::from_str::<AccountId>("\"a b\"").is_err());
        assert!(Note::new("Invoice 7: thank you, naïve reader").is_ok());
        for bad in [
            String::new(),
            "a\nb".to_owned(),
            "a\u{1b}[0m".to_owned(),
            "x".repeat(201),
        ] {
            assert!(Note::new(bad.clone()).is_err(), "{bad:?}");
        }
    }
}
