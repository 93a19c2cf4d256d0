//! [`Json::parse`]: the strict, recursive parser.

use super::value::{JsText, Json};
use serde_json::Number;
use std::collections::HashSet;

/// Maximum nesting depth of a document.
const MAX_DEPTH: usize = 200;

/// Reason why bytes are not strict JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the document is not strict JSON at byte {offset}: {reason}")]
pub struct JsonError {
    /// Position of the error, in bytes from the start of the document.
    pub offset: usize,
    /// What is wrong with the JSON at this offset.
    pub reason: &'static str,
}

impl Json {
    /// Parses a document with exactly one JSON value. Only white space may follow the value.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        if let Err(error) = std::str::from_utf8(bytes) {
            return Err(JsonError {
                offset: error.valid_up_to(),
                reason: "invalid UTF-8",
            });
        }
        let mut reader = Reader { bytes, at: 0 };
        let value = reader.value(0)?;
        reader.white();
        if reader.at == bytes.len() {
            Ok(value)
        } else {
            Err(reader.error("data after the document"))
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
            Err(self.error("unknown literal; only null, true and false exist"))
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
                return Err(self.error("expected a quoted key"));
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

    /// Parses a number: to an integer if it is written as one and fits into 64 bits, otherwise to
    /// the nearest double.
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
            // `from_f64` returns `None` for infinity, i.e. for a number beyond the range of a
            // double.
            text.parse::<f64>().ok().and_then(Number::from_f64)
        };
        number.map(Json::Number).ok_or(JsonError {
            offset: start,
            reason: "malformed number, or number out of range",
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

/// Returns whether `text` as a whole matches JSON's grammar of numbers:
/// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
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
