//! A strict JSON reader and the value it yields.
//!
//! Purpose: documents that take part in a digest or a verdict must mean one thing
//! only. Invariants: duplicate keys, trailing data, invalid UTF-8, too deep
//! nesting and over-long input are errors; key order is kept; a lone surrogate
//! escape survives (a string is WTF-8), because canonical JSON must print it again.

mod reader;

use serde_json::{Map, Number, Value};
use std::cmp::Ordering;

/// Why bytes are not strict JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not strict JSON at byte {offset}: {reason}")]
pub struct JsonError {
    /// Where.
    pub offset: usize,
    /// What is wrong.
    pub reason: &'static str,
}

/// Text as JSON knows it: UTF-8, but lone surrogates are possible (WTF-8).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JsText(Vec<u8>);

impl JsText {
    /// The text, unless it holds a lone surrogate.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Code points in order; lone surrogates appear as such.
    pub(crate) fn code_points(&self) -> CodePoints<'_> {
        CodePoints { rest: &self.0 }
    }

    /// Order of UTF-16 code units, which is not the order of UTF-8 bytes.
    #[must_use]
    pub fn cmp_utf16(&self, other: &Self) -> Ordering {
        self.code_units().cmp(other.code_units())
    }

    fn code_units(&self) -> impl Iterator<Item = u16> + '_ {
        self.code_points().flat_map(|point| {
            let (first, second) = if point < 0x1_0000 {
                (point as u16, None)
            } else {
                let offset = point - 0x1_0000;
                (
                    0xd800 + (offset >> 10) as u16,
                    Some(0xdc00 + (offset & 0x3ff) as u16),
                )
            };
            std::iter::once(first).chain(second)
        })
    }

    fn push_point(&mut self, point: u32) {
        if let Some(c) = char::from_u32(point) {
            let mut buffer = [0; 4];
            self.0
                .extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
        } else {
            // A surrogate: three bytes, which is what makes this WTF-8.
            self.0.extend_from_slice(&[
                0xe0 | (point >> 12) as u8,
                0x80 | ((point >> 6) & 0x3f) as u8,
                0x80 | (point & 0x3f) as u8,
            ]);
        }
    }
}

impl From<&str> for JsText {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

/// Iterator over the code points of a [`JsText`].
pub(crate) struct CodePoints<'a> {
    rest: &'a [u8],
}

impl Iterator for CodePoints<'_> {
    type Item = u32;
    fn next(&mut self) -> Option<u32> {
        let (&first, tail) = self.rest.split_first()?;
        let (length, mut point) = match first {
            0..=0x7f => (0, u32::from(first)),
            0x80..=0xdf => (1, u32::from(first & 0x1f)),
            0xe0..=0xef => (2, u32::from(first & 0x0f)),
            _ => (3, u32::from(first & 0x07)),
        };
        for &byte in tail.iter().take(length) {
            point = (point << 6) | u32::from(byte & 0x3f);
        }
        self.rest = tail.get(length..).unwrap_or_default();
        Some(point)
    }
}

/// A JSON value with ordered, unique keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; digests see it as an IEEE double.
    Number(Number),
    /// A string.
    String(JsText),
    /// A list.
    Array(Vec<Json>),
    /// An object in document order.
    Object(Vec<(JsText, Json)>),
}

impl Json {
    /// Reads one document; nothing but white space may follow it.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        reader::read(bytes)
    }

    /// A member of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members
                .iter()
                .find(|(name, _)| name.as_str() == Some(key))
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text of a string without lone surrogates.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => text.as_str(),
            _ => None,
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Json::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The members of an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(JsText, Json)]> {
        match self {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The number as the double that ECMAScript would see.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Json::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    /// The same value for `serde`; lone surrogates become U+FFFD.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let text = |t: &JsText| String::from_utf8_lossy(&t.0).into_owned();
        match self {
            Json::Null => Value::Null,
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(n) => Value::Number(n.clone()),
            Json::String(t) => Value::String(text(t)),
            Json::Array(items) => Value::Array(items.iter().map(Json::to_value).collect()),
            Json::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(k, v)| (text(k), v.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Number(n) => Json::Number(n.clone()),
            Value::String(s) => Json::String(s.as_str().into()),
            Value::Array(items) => Json::Array(items.iter().map(Json::from).collect()),
            Value::Object(members) => Json::Object(
                members
                    .iter()
                    .map(|(k, v)| (k.as_str().into(), Json::from(v)))
                    .collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_ambiguous() {
        for bad in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            "1 2",
            "",
            "[1,]",
            "{\"a\":}",
            "\"\u{1}\"",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "1-2",
            "1e400",
            "nul",
            r#""\ud83d"#,
            r#""\x""#,
        ] {
            assert!(Json::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(Json::parse(b"\"\xff\"").is_err());
        assert!(Json::parse("[".repeat(300).as_bytes()).is_err());
        assert_eq!(
            Json::parse(br#" {"a":1,"b":[null,true,"x"]} "#)
                .unwrap()
                .to_value(),
            serde_json::json!({"a":1,"b":[null,true,"x"]})
        );
    }

    #[test]
    fn numbers_are_exact() {
        for text in [
            "0",
            "-0.5",
            "123456789012345680000",
            "18446744073709551615",
            "1E-7",
            "0.1e+1",
        ] {
            let number = Json::parse(text.as_bytes()).unwrap().as_f64();
            assert_eq!(number, text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn surrogates() {
        let pair = Json::parse(br#""\ud83d\ude00""#).unwrap();
        assert_eq!(pair.as_str(), Some("😀"));
        let Json::String(lone) = Json::parse(br#""\ud800\u0041""#).unwrap() else {
            panic!()
        };
        assert_eq!(lone.as_str(), None);
        assert_eq!(lone.code_points().collect::<Vec<_>>(), [0xd800, 0x41]);
        assert_eq!(
            JsText::from("😀").cmp_utf16(&JsText::from("\u{fffd}")),
            Ordering::Less
        );
    }
}
