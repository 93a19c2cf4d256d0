//! Replaces secrets in text and bytes, and finds them in data that must not change.
//!
//! Known token formats are found by pattern, configured secret values in every encoding of
//! [`SecretEncodings`]. A secret is found only if the input contains the whole of it. A caller that
//! has a part of a stream uses [`Redactor::safe_cut`] to find out how many bytes it can redact and
//! show before more arrive.

use crate::SecretEncodings;
use once_cell::sync::Lazy;
use regex::bytes::Regex;
use serde_json::{Map, Value};
use std::borrow::Cow;
use wp_codebox_contracts::ErrorBody;

struct Pattern {
    kind: &'static str,
    regex: Regex,
}

#[allow(clippy::expect_used)] // The patterns are literals; a test compiles each of them.
static PATTERNS: Lazy<Vec<Pattern>> = Lazy::new(|| {
    [
        ("openai-api-key", r"sk-[A-Za-z0-9_-]{20,}"),
        (
            "github-token",
            r"(?:gh[pousr]_[A-Za-z0-9_]{20,}|github_pat_[A-Za-z0-9_]{20,})",
        ),
        ("slack-token", r"xox[abpors]-[A-Za-z0-9-]{20,}"),
        (
            "jwt",
            r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        ),
        ("aws-access-key", r"A(?:KIA|SIA)[A-Z0-9]{16}"),
        ("private-key", r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"),
    ]
    .into_iter()
    .map(|(kind, text)| Pattern {
        kind,
        regex: Regex::new(text).expect("literal pattern"),
    })
    .collect()
});

/// A header that names credentials: `Authorization: Bearer …` or `Authorization: Basic …`, also in
/// the notations of JSON, PHP and environment variables. The first or second group is the
/// credential; the scheme before it stays readable. The match does not go beyond its line, because
/// streams are redacted line by line.
#[allow(clippy::expect_used)] // The pattern is a literal; a test compiles it.
static HEADER: Lazy<Regex> = Lazy::new(|| {
    Regex::new(
        r#"(?-u)(?:Authorization|authorization|AUTHORIZATION)["'\\]{0,4}[ \t]*(?:=>|[:=,])[ \t"'\\\[(]{0,8}(?i:bearer[ \t]+([a-z0-9._~+/=-]{16,})|basic[ \t]+([a-z0-9+/=_-]{4,}))"#,
    )
    .expect("literal pattern")
});

/// Common part of the usual spellings of the header's name. A search for one literal takes much
/// less time than a search for [`HEADER`].
#[allow(clippy::expect_used)] // The patterns are literals; a test compiles them.
static HEADER_NAMES: Lazy<[Regex; 2]> = Lazy::new(|| {
    ["uthorization", "UTHORIZATION"].map(|name| Regex::new(name).expect("literal pattern"))
});

/// Kind of a credential in [`HEADER`].
const HEADER_KIND: &str = "authorization-header";

/// What a search looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sought {
    /// Known tokens and configured values.
    Secrets,
    /// Known tokens, configured values, and every credential in a [`HEADER`].
    SecretsAndHeaders,
}

/// A secret found in data that must not be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Kind of secret, e.g. `github-token` or `configured-secret-value`.
    pub kind: &'static str,
    /// Offset of the secret's first byte.
    pub offset: usize,
}

/// Replaces each secret by `[REDACTED:<kind>]`.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    values: SecretEncodings,
}

/// A secret in the input.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Start of the text by which the secret is recognized, at or before `start`.
    from: usize,
    start: usize,
    /// End, exclusive.
    end: usize,
    kind: &'static str,
}

impl Span {
    fn plain(start: usize, end: usize, kind: &'static str) -> Self {
        Self {
            from: start,
            start,
            end,
            kind,
        }
    }
}

impl Redactor {
    /// Creates a redactor for the known token formats and for these values. Ignores values shorter
    /// than 8 bytes and pure numbers, because they would match in ordinary text.
    #[must_use]
    pub fn new(values: &[String]) -> Self {
        Self::with_secrets(values, std::iter::empty())
    }

    /// Creates a redactor as [`Self::new`] does, and also for the values of `secrets`. The values
    /// of `secrets` are known to be secret, so they are redacted even if they are pure numbers.
    #[must_use]
    pub fn with_secrets<'a>(
        values: &'a [String],
        secrets: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let values = values
            .iter()
            .map(|value| value.trim())
            .filter(|value| !value.bytes().all(|b| b.is_ascii_digit()));
        Self {
            values: SecretEncodings::of(values.chain(secrets)),
        }
    }

    /// Redacts every string and every member name of a JSON value.
    #[must_use]
    pub fn redact_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redact(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|v| self.redact_value(v)).collect(),
            Value::Object(members) => Value::Object(self.redact_map(members)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn redact_map(&self, members: Map<String, Value>) -> Map<String, Value> {
        members
            .into_iter()
            .map(|(key, value)| (self.redact(&key).into_owned(), self.redact_value(value)))
            .collect()
    }

    /// Redacts the message, the hints and the data of an error.
    #[must_use]
    pub fn redact_error(&self, error: ErrorBody) -> ErrorBody {
        ErrorBody {
            code: error.code,
            message: self.redact(&error.message).into_owned(),
            hints: error
                .hints
                .iter()
                .map(|hint| self.redact(hint).into_owned())
                .collect(),
            data: error.data.map(|data| Box::new(self.redact_map(*data))),
        }
    }

    /// Returns the text with every secret replaced.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Returns the bytes with every secret replaced.
    #[must_use]
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let (spans, _) = self.spans(bytes, Sought::SecretsAndHeaders);
        if spans.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for span in spans {
            out.extend_from_slice(&bytes[at..span.start]);
            out.extend_from_slice(b"[REDACTED:");
            out.extend_from_slice(span.kind.as_bytes());
            out.push(b']');
            at = span.end;
        }
        out.extend_from_slice(&bytes[at..]);
        Cow::Owned(out)
    }

    /// Returns the first secret in the bytes. Does not find a credential that is recognised only by
    /// its [`HEADER`]: documentation and tests contain such headers as examples, and data that must
    /// not be changed would be refused because of them.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Option<Finding> {
        let (spans, _) = self.spans(bytes, Sought::Secrets);
        spans.first().map(|span| Finding {
            kind: span.kind,
            offset: span.start,
        })
    }

    /// Returns the largest position up to `wanted` at which the bytes may be cut: no secret lies
    /// across it, and no configured value can begin before it and end in bytes that have not
    /// arrived yet.
    #[must_use]
    pub fn safe_cut(&self, bytes: &[u8], wanted: usize) -> usize {
        let (spans, open) = self.spans(bytes, Sought::SecretsAndHeaders);
        let cut = wanted.min(open);
        spans
            .into_iter()
            .find(|span| span.from < cut && cut < span.end)
            .map_or(cut, |span| span.from)
    }

    /// Returns the positions of all secrets, in order and with overlapping ones merged. Also
    /// returns the first position at which a configured value may begin whose end is missing,
    /// because the bytes end before it; the end of the bytes if there is no such position.
    fn spans(&self, bytes: &[u8], sought: Sought) -> (Vec<Span>, usize) {
        let search = self.values.search(bytes);
        let mut found: Vec<Span> = search
            .found
            .iter()
            .map(|found| Span::plain(found.start, found.end, "configured-secret-value"))
            .collect();
        for pattern in PATTERNS.iter() {
            found.extend(
                pattern
                    .regex
                    .find_iter(bytes)
                    .map(|m| Span::plain(m.start(), m.end(), pattern.kind)),
            );
        }
        let has_header = || HEADER_NAMES.iter().any(|name| name.is_match(bytes));
        if sought == Sought::SecretsAndHeaders && has_header() {
            found.extend(HEADER.captures_iter(bytes).filter_map(|header| {
                let credential = header.get(1).or_else(|| header.get(2))?;
                Some(Span {
                    from: header.get(0)?.start(),
                    ..Span::plain(credential.start(), credential.end(), HEADER_KIND)
                })
            }));
        }
        found.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        let mut merged: Vec<Span> = Vec::with_capacity(found.len());
        for span in found {
            match merged.last_mut() {
                Some(last) if span.start < last.end => {
                    last.end = last.end.max(span.end);
                    last.from = last.from.min(span.from);
                }
                _ => merged.push(span),
            }
        }
        (merged, search.open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_token_formats_are_redacted() {
        let redactor = Redactor::default();
        for (text, kind) in [
            ("sk-abcdefghijklmnopqrstuv", "openai-api-key"),
            ("ghp_abcdefghijklmnopqrst1", "github-token"),
            ("github_pat_abcdefghijklmnopqrst", "github-token"),
            ("xoxb-123456789012345678901", "slack-token"),
            ("AKIAABCDEFGHIJKLMNOP", "aws-access-key"),
            ("ASIAABCDEFGHIJKLMNOP", "aws-access-key"),
            ("-----BEGIN RSA PRIVATE KEY-----", "private-key"),
            ("-----BEGIN PRIVATE KEY-----", "private-key"),
            ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2Q", "jwt"),
        ] {
            assert_eq!(
                redactor.redact(&format!("a {text} b")),
                format!("a [REDACTED:{kind}] b"),
                "{text}"
            );
        }
        assert!(matches!(
            redactor.redact("sk-short and AKIA"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn json_and_url_escaped_secrets_are_redacted() {
        let secret = "pa/ss\"word 1 é";
        let redactor = Redactor::new(&[secret.to_owned()]);
        for encoded in [secret, r#"pa\/ss\"word 1 \u00e9"#, "pa/ss%22word+1+%c3%a9"] {
            assert_eq!(
                redactor.redact(&format!("x{encoded}y")),
                "x[REDACTED:configured-secret-value]y",
                "{encoded}"
            );
        }
        assert_eq!(redactor.redact("pa/ss word"), "pa/ss word");
    }

    #[test]
    fn value_passed_as_a_secret_is_redacted_even_if_it_consists_of_digits() {
        let number = "12345678901";
        let secrets = Redactor::with_secrets(&[], [number]);
        assert_ne!(secrets.redact(number), number);
    }

    #[test]
    fn safe_cut_ends_before_a_partially_received_secret() {
        let secret = "first line\nsecond/line";
        let redactor = Redactor::new(&[secret.to_owned()]);
        let text = format!("ab\n{secret}");
        for end in 0..=text.len() {
            let part = &text.as_bytes()[..end];
            assert_eq!(redactor.safe_cut(part, end), end.min(3), "{end}");
        }
        let whole = format!("{text}!");
        let end = whole.len();
        assert_eq!(redactor.safe_cut(whole.as_bytes(), end), end);
    }

    #[test]
    fn credentials_in_authorization_headers_are_redacted_and_their_scheme_is_not() {
        let redactor = Redactor::default();
        let hex = "0123456789abcdef0123456789abcdef";
        for (text, shown) in [
            (
                format!("Authorization: Bearer {hex}"),
                "Authorization: Bearer [REDACTED:authorization-header]",
            ),
            (
                "< authorization: basic dTpw\r".to_owned(),
                "< authorization: basic [REDACTED:authorization-header]\r",
            ),
            (
                format!(r#"{{"Authorization":"Bearer {hex}"}}"#),
                r#"{"Authorization":"Bearer [REDACTED:authorization-header]"}"#,
            ),
            (
                format!(r#"{{\"Authorization\": [\"Bearer {hex}\"]}}"#),
                r#"{\"Authorization\": [\"Bearer [REDACTED:authorization-header]\"]}"#,
            ),
            (
                format!("'Authorization' => 'Bearer {hex}'"),
                "'Authorization' => 'Bearer [REDACTED:authorization-header]'",
            ),
            (
                format!("HTTP_AUTHORIZATION=Bearer {hex}\nnext"),
                "HTTP_AUTHORIZATION=Bearer [REDACTED:authorization-header]\nnext",
            ),
            (
                "Authorization: Bearer sk-abcdefghijklmnopqrstuv".to_owned(),
                "Authorization: Bearer [REDACTED:openai-api-key]",
            ),
        ] {
            let once = redactor.redact(&text).into_owned();
            assert_eq!(once, shown);
            assert_eq!(redactor.redact(&once), once, "not stable");
        }
        for text in [
            "Authorization: Bearer short",
            "Authorization: Bearer $API_KEY_OF_THE_SERVICE",
            "'Authorization' => 'Bearer ' . $credentials_of_this_site",
            "the authorization is a bearer of 0123456789abcdef0123456789abcdef",
            "Authorization:\nBearer 0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(redactor.redact(text), text);
        }
    }

    /// `find` reports known token formats and configured secrets, but no other credential of a
    /// header, because documentation has such headers as examples.
    #[test]
    fn find_ignores_example_credentials_in_authorization_headers() {
        let redactor = Redactor::new(&["hunter2-hunter2".to_owned()]);
        let example = "curl -H 'Authorization: Bearer your-api-token-here'";
        assert_eq!(redactor.find(example.as_bytes()), None);
        let real = "curl -H 'Authorization: Bearer hunter2-hunter2'";
        let found = redactor.find(real.as_bytes()).unwrap();
        assert_eq!(
            (found.kind, found.offset),
            ("configured-secret-value", real.len() - 16)
        );
    }

    #[test]
    fn safe_cut_keeps_a_header_together_with_its_credential() {
        let redactor = Redactor::default();
        let text = "ab Authorization: Bearer 0123456789abcdef0123456789abcdef!";
        for end in 4..text.len() - 1 {
            assert_eq!(redactor.safe_cut(text.as_bytes(), end), 3, "{end}");
        }
        assert_eq!(redactor.safe_cut(text.as_bytes(), 3), 3);
        let all = text.len();
        assert_eq!(redactor.safe_cut(text.as_bytes(), all), all);
    }

    #[test]
    fn secrets_in_error_message_hint_and_nested_data_are_redacted() {
        let redactor = Redactor::new(&["hunter2-hunter2".to_owned()]);
        let error = ErrorBody::new(
            wp_codebox_contracts::ErrorCode::RunFailed,
            "a hunter2-hunter2",
        )
        .hint("hunter2-hunter2")
        .with(
            "hunter2-hunter2",
            serde_json::json!([{"k": "hunter2-hunter2"}]),
        );
        let clean = serde_json::to_string(&redactor.redact_error(error)).unwrap();
        assert!(!clean.contains("hunter2"), "{clean}");
        assert_eq!(clean.matches("[REDACTED:").count(), 4);
    }

    /// In contrast to the secrets given to `Redactor::with_secrets`, the values given to
    /// `Redactor::new` may be ordinary text.
    #[test]
    fn short_or_numeric_values_that_are_not_passed_as_secrets_are_not_redacted() {
        let redactor =
            Redactor::new(&["true".to_owned(), "12345678901".to_owned(), "  ".to_owned()]);
        assert_eq!(redactor.redact("true 12345678901"), "true 12345678901");
    }

    #[test]
    fn secret_at_any_offset_of_a_large_text_is_found() {
        let redactor = Redactor::default();
        for offset in [0, 61_430, 65_530, 131_070] {
            let text = format!("{}{}", " ".repeat(offset), "ghp_abcdefghijklmnopqrst1");
            assert_eq!(
                redactor.find(text.as_bytes()),
                Some(Finding {
                    kind: "github-token",
                    offset
                })
            );
        }
    }
}
