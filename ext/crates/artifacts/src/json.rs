//! A strict JSON reader and the value it yields.
//!
//! Purpose: documents that take part in a digest or a verdict must mean one thing
//! only. Invariants: duplicate keys, trailing data, invalid UTF-8, too deep
//! nesting and over-long input are errors; key order is kept; a lone surrogate
//! escape survives (a string is WTF-8), because canonical JSON must print it again.

use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Deepest nesting the reader follows.
const MAX_DEPTH: usize = 200;

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
        let mut reader = Reader { bytes, at: 0 };
        if let Err(error) = std::str::from_utf8(bytes) {
            return Err(JsonError {
                offset: error.valid_up_to(),
                reason: "invalid UTF-8",
            });
        }
        let value = reader.value(0)?;
        reader.white();
        if reader.at == bytes.len() {
            Ok(value)
        } else {
            Err(reader.error("data after the document"))
        }
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

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn error(&self, reason: &'static str) -> JsonError {
        JsonError {
            offset: self.at,
            reason,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn white(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &'static str, value: Json) -> Result<Json, JsonError> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.error("unknown word"))
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        if depth > MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.white();
        match self.peek() {
            None => Err(self.error("unexpected end")),
            Some(b'n') => self.word("null", Json::Null),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'"') => self.string().map(Json::String),
            Some(b'[') => self.array(depth),
            Some(b'{') => self.object(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.error("unexpected character")),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        self.white();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.white();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::Array(items));
                }
                _ => return Err(self.error("expected , or ]")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.at += 1;
        let mut members = Vec::new();
        let mut seen = HashSet::new();
        self.white();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.white();
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a key"));
            }
            let key = self.string()?;
            if !seen.insert(key.clone()) {
                return Err(self.error("duplicate key"));
            }
            self.white();
            if self.peek() != Some(b':') {
                return Err(self.error("expected :"));
            }
            self.at += 1;
            members.push((key, self.value(depth + 1)?));
            self.white();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::Object(members));
                }
                _ => return Err(self.error("expected , or }")),
            }
        }
    }

    /// Reads a number exactly: an integer where it fits, else the nearest double.
    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        while matches!(
            self.peek(),
            Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
        ) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        let number = if !is_number(text.as_bytes()) {
            None
        } else if let Ok(integer) = text.parse::<i64>() {
            Some(Number::from(integer))
        } else if let Ok(integer) = text.parse::<u64>() {
            Some(Number::from(integer))
        } else {
            // `from_f64` refuses infinity: a number past the range of a double.
            text.parse::<f64>().ok().and_then(Number::from_f64)
        };
        number.map(Json::Number).ok_or(JsonError {
            offset: start,
            reason: "malformed number, or one out of range",
        })
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        let digits = self
            .bytes
            .get(self.at..self.at + 4)
            .filter(|d| d.iter().all(u8::is_ascii_hexdigit))
            .and_then(|d| std::str::from_utf8(d).ok())
            .and_then(|d| u32::from_str_radix(d, 16).ok())
            .ok_or_else(|| self.error("malformed \\u escape"))?;
        self.at += 4;
        Ok(digits)
    }

    fn string(&mut self) -> Result<JsText, JsonError> {
        self.at += 1;
        let mut text = JsText(Vec::new());
        loop {
            let start = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            text.0.extend_from_slice(&self.bytes[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(&mut text)?;
                }
                None => return Err(self.error("unterminated string")),
                Some(_) => return Err(self.error("control character in a string")),
            }
        }
    }

    fn escape(&mut self, text: &mut JsText) -> Result<(), JsonError> {
        let Some(kind) = self.peek() else {
            return Err(self.error("unterminated string"));
        };
        self.at += 1;
        let point = match kind {
            b'"' | b'\\' | b'/' => u32::from(kind),
            b'b' => 8,
            b'f' => 12,
            b'n' => 10,
            b'r' => 13,
            b't' => 9,
            b'u' => {
                let first = self.hex4()?;
                let paired =
                    (0xd800..0xdc00).contains(&first) && self.bytes[self.at..].starts_with(b"\\u");
                if !paired {
                    first
                } else {
                    let back = self.at;
                    self.at += 2;
                    let second = self.hex4()?;
                    if (0xdc00..0xe000).contains(&second) {
                        0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    } else {
                        self.at = back;
                        first
                    }
                }
            }
            _ => return Err(self.error("unknown escape")),
        };
        text.push_point(point);
        Ok(())
    }
}

/// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    if whole == 0 || whole > 1 && text[0] == b'0' {
        return false;
    }
    let mut rest = &text[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', tail @ ..] => tail,
            tail => tail,
        };
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
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
