//! Redaction of secrets in text and bytes, and detection where text must stay as it is.
//!
//! Known token forms are found by pattern, configured values by every spelling in
//! which they commonly travel: as they are, base64, URL-encoded and JSON-escaped.
//! The whole input is searched at once, so nothing can hide on a chunk border.

use once_cell::sync::Lazy;
use regex::bytes::Regex;
use std::borrow::Cow;

struct Pattern {
    kind: &'static str,
    regex: Regex,
}

#[allow(clippy::expect_used)] // Literal patterns; a test compiles each.
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

/// A secret found where nothing may be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind, e.g. `github-token` or `configured-secret-value`.
    pub kind: &'static str,
    /// Byte offset of its start.
    pub offset: usize,
}

/// Replaces secrets by `[REDACTED:<kind>]`.
#[derive(Clone, Default)]
pub struct Redactor {
    values: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} values)", self.values.len())
    }
}

impl Redactor {
    /// A redactor for known forms and these values. Values shorter than 8 bytes,
    /// plain words such as `true` and pure numbers are left out: they would match everywhere.
    #[must_use]
    pub fn new(values: &[String]) -> Self {
        let mut spellings: Vec<Vec<u8>> = Vec::new();
        for value in values
            .iter()
            .map(|v| v.trim())
            .filter(|v| v.len() >= 8 && !v.bytes().all(|b| b.is_ascii_digit()))
        {
            spellings.push(value.as_bytes().to_vec());
            spellings.extend(base64_cores(value.as_bytes()));
            spellings.push(percent_encode(value).into_bytes());
            if let Ok(json) = serde_json::to_string(value) {
                spellings.push(json.as_bytes()[1..json.len() - 1].to_vec());
                spellings.push(json[1..json.len() - 1].replace('/', "\\/").into_bytes());
            }
        }
        spellings.sort_by_key(|s| std::cmp::Reverse(s.len()));
        spellings.dedup();
        Self { values: spellings }
    }

    /// The text with every secret replaced.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The bytes with every secret replaced.
    #[must_use]
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let spans = self.spans(bytes);
        if spans.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for (start, end, kind) in spans {
            out.extend_from_slice(&bytes[at..start]);
            out.extend_from_slice(b"[REDACTED:");
            out.extend_from_slice(kind.as_bytes());
            out.push(b']');
            at = end;
        }
        out.extend_from_slice(&bytes[at..]);
        Cow::Owned(out)
    }

    /// The first secret, if there is one.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Option<Finding> {
        self.spans(bytes)
            .first()
            .map(|&(offset, _, kind)| Finding { kind, offset })
    }

    /// The largest position up to `wanted` at which cutting the bytes splits no find.
    #[must_use]
    pub fn safe_cut(&self, bytes: &[u8], wanted: usize) -> usize {
        self.spans(bytes)
            .into_iter()
            .find(|&(start, end, _)| start < wanted && wanted < end)
            .map_or(wanted, |(start, _, _)| start)
    }

    /// Non-overlapping spans in order; overlapping finds are merged.
    fn spans(&self, bytes: &[u8]) -> Vec<(usize, usize, &'static str)> {
        let mut found: Vec<(usize, usize, &'static str)> = Vec::new();
        for value in &self.values {
            let mut at = 0;
            while let Some(position) = find_from(bytes, value, at) {
                found.push((position, position + value.len(), "configured-secret-value"));
                at = position + value.len();
            }
        }
        for pattern in PATTERNS.iter() {
            found.extend(
                pattern
                    .regex
                    .find_iter(bytes)
                    .map(|m| (m.start(), m.end(), pattern.kind)),
            );
        }
        found.sort_by_key(|&(start, end, _)| (start, std::cmp::Reverse(end)));
        let mut merged: Vec<(usize, usize, &'static str)> = Vec::with_capacity(found.len());
        for span in found {
            match merged.last_mut() {
                Some(last) if span.0 < last.1 => last.1 = last.1.max(span.1),
                _ => merged.push(span),
            }
        }
        merged
    }
}

fn find_from(haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let first = *needle.first()?;
    let mut at = from;
    while let Some(step) = haystack.get(at..)?.iter().position(|&b| b == first) {
        let start = at + step;
        if haystack.get(start..start + needle.len()) == Some(needle) {
            return Some(start);
        }
        at = start + 1;
    }
    None
}

/// The part of a value's base64 that does not depend on what surrounds it, for
/// each of the three alignments.
fn base64_cores(value: &[u8]) -> Vec<Vec<u8>> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..3)
        .filter_map(|shift: usize| {
            let mut padded = vec![0u8; shift];
            padded.extend_from_slice(value);
            let whole = padded.len() / 3 * 3;
            let encoded: Vec<u8> = padded[..whole]
                .chunks_exact(3)
                .flat_map(|c| {
                    let n = (u32::from(c[0]) << 16) | (u32::from(c[1]) << 8) | u32::from(c[2]);
                    [18, 12, 6, 0].map(|s| ALPHABET[(n >> s) as usize & 63])
                })
                .collect();
            let skip = [0, 2, 3][shift];
            let core = encoded.get(skip..)?.to_vec();
            (core.len() >= 8).then_some(core)
        })
        .collect()
}

fn percent_encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_forms() {
        let redactor = Redactor::default();
        for (text, kind) in [
            ("sk-abcdefghijklmnopqrstuv", "openai-api-key"),
            ("ghp_abcdefghijklmnopqrst1", "github-token"),
            ("github_pat_abcdefghijklmnopqrst", "github-token"),
            ("xoxb-123456789012345678901", "slack-token"),
            ("AKIAABCDEFGHIJKLMNOP", "aws-access-key"),
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
    fn configured_values_in_every_spelling() {
        let secret = "pa/ss\"word 1 é";
        let redactor = Redactor::new(&[secret.to_owned()]);
        let json = serde_json::to_string(secret).unwrap();
        for spelling in [
            secret.to_owned(),
            percent_encode(secret),
            json[1..json.len() - 1].to_owned(),
        ] {
            assert_eq!(
                redactor.redact(&format!("x{spelling}y")),
                "x[REDACTED:configured-secret-value]y",
                "{spelling}"
            );
        }
        for lead in ["", "a", "ab"] {
            let plain = format!("{lead}{secret}tail");
            let encoded = test_base64(plain.as_bytes());
            let clean = redactor.redact(&encoded);
            assert!(clean.contains("[REDACTED:"), "{lead:?} {encoded}");
        }
    }

    #[test]
    fn short_and_plain_values_are_not_secrets() {
        let redactor =
            Redactor::new(&["true".to_owned(), "12345678901".to_owned(), "  ".to_owned()]);
        assert_eq!(redactor.redact("true 12345678901"), "true 12345678901");
    }

    #[test]
    fn a_secret_on_any_border_is_found() {
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

    fn test_base64(bytes: &[u8]) -> String {
        const A: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        bytes
            .chunks(3)
            .flat_map(|c| {
                let n = (u32::from(c[0]) << 16)
                    | (u32::from(*c.get(1).unwrap_or(&0)) << 8)
                    | u32::from(*c.get(2).unwrap_or(&0));
                [18, 12, 6, 0].map(|s| char::from(A[(n >> s) as usize & 63]))
            })
            .collect()
    }
}
