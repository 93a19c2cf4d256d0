//! A JSON value that keeps key order and lone surrogates.

use serde_json::{Map, Number, Value};
use std::cmp::Ordering;

/// JSON string: UTF-8 that may contain lone surrogates (WTF-8).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JsText(pub(super) Vec<u8>);

impl JsText {
    /// Returns the text, or `None` if it contains a lone surrogate.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Returns the code points in order; lone surrogates appear as surrogate code points.
    pub(crate) fn code_points(&self) -> CodePoints<'_> {
        CodePoints { rest: &self.0 }
    }

    /// Compares by UTF-16 code units, whose order differs from that of UTF-8 bytes.
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

    pub(super) fn push_point(&mut self, point: u32) {
        if let Some(c) = char::from_u32(point) {
            let mut buffer = [0; 4];
            self.0
                .extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
        } else {
            // WTF-8 encodes a lone surrogate in three bytes.
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
    /// A number. Canonical JSON formats it as an IEEE double.
    Number(Number),
    /// A string.
    String(JsText),
    /// A list.
    Array(Vec<Json>),
    /// An object: its members in the order of the document.
    Object(Vec<(JsText, Json)>),
}

impl Json {
    /// Returns the value of an object's member; `None` if there is no such member or this value is
    /// not an object.
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

    /// Returns the text of a string; `None` for another type or a text with lone surrogates.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => text.as_str(),
            _ => None,
        }
    }

    /// Returns the items of a list; `None` for another type.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Json::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the members of an object in document order; `None` for another type.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(JsText, Json)]> {
        match self {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the number as the double that ECMAScript would use; `None` for another type.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Json::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    /// Converts the value to a `serde_json` value; the bytes of lone surrogates become U+FFFD.
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
