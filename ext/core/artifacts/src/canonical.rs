//! Canonical JSON, the input of every digest of a bundle.
//!
//! Rules: no white space, object keys in UTF-16 code unit order, ECMAScript escapes and shortest
//! number form. The rules equal those of the public system whose bundles this crate can verify
//! (docs/decisions/05-bundle-with-canonical-digests.md). That system drops object keys beyond 300,
//! list items beyond 2,000 and levels deeper than 30. [`OverLimit::Drop`] does the same, so that
//! digests of its bundles match. [`OverLimit::Refuse`] is for documents written here, from which
//! nothing is dropped silently.

use crate::json::{JsText, Json};
use wp_codebox_contracts::CodedError;

/// Maximum number of keys in one object of canonical JSON.
pub const MAX_KEYS: usize = 300;
/// Maximum number of items in one list of canonical JSON.
pub const MAX_ITEMS: usize = 2000;
/// Deepest level in canonical JSON; the root is level 0.
pub const MAX_DEPTH: usize = 30;

/// What to do with a value that exceeds the limits of canonical JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverLimit {
    /// Return an error: for documents that this crate writes, so that nothing is lost unnoticed.
    Refuse,
    /// Drop the excess keys, items and levels: for bundles of other implementations, which compute
    /// their digests in this way.
    Drop,
}

/// Limit of canonical JSON that a value exceeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(InputInvalid)]
pub enum CanonicalError {
    /// An object has too many keys.
    #[error("a JSON object has {count} keys, but canonical JSON allows at most {MAX_KEYS}")]
    Keys {
        /// Number of keys in the object that has too many.
        count: usize,
    },
    /// A list has too many items.
    #[error("a JSON list has {count} items, but canonical JSON allows at most {MAX_ITEMS}")]
    Items {
        /// Number of items in the list that has too many.
        count: usize,
    },
    /// A value is nested more than [`MAX_DEPTH`] levels deep.
    #[error("a JSON value is nested deeper than the {MAX_DEPTH} levels that canonical JSON allows")]
    Depth,
}

/// Returns a value as canonical JSON.
pub fn canonical_json(value: &Json, over: OverLimit) -> Result<String, CanonicalError> {
    let mut out = String::new();
    write_value(value, 0, over, &mut out)?;
    Ok(out)
}

/// Returns a `serde_json` value as canonical JSON.
pub fn canonical_value(
    value: &serde_json::Value,
    over: OverLimit,
) -> Result<String, CanonicalError> {
    canonical_json(&Json::from(value), over)
}

fn write_value(
    value: &Json,
    depth: usize,
    over: OverLimit,
    out: &mut String,
) -> Result<(), CanonicalError> {
    if depth > MAX_DEPTH {
        return match over {
            OverLimit::Refuse => Err(CanonicalError::Depth),
            OverLimit::Drop => {
                out.push_str("\"[max-depth]\"");
                Ok(())
            }
        };
    }
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(number) => out.push_str(&number_text(number.as_f64())),
        Json::String(text) => write_text(text, out),
        Json::Array(items) => {
            if items.len() > MAX_ITEMS && over == OverLimit::Refuse {
                return Err(CanonicalError::Items { count: items.len() });
            }
            out.push('[');
            for (index, item) in items.iter().take(MAX_ITEMS).enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, depth + 1, over, out)?;
            }
            out.push(']');
        }
        Json::Object(members) => {
            if members.len() > MAX_KEYS && over == OverLimit::Refuse {
                return Err(CanonicalError::Keys {
                    count: members.len(),
                });
            }
            let mut sorted: Vec<&(JsText, Json)> = members.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp_utf16(&b.0));
            out.push('{');
            for (index, (key, item)) in sorted.into_iter().take(MAX_KEYS).enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(key, out);
                out.push(':');
                write_value(item, depth + 1, over, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn write_text(text: &JsText, out: &mut String) {
    out.push('"');
    for point in text.code_points() {
        match point {
            0x08 => out.push_str("\\b"),
            0x09 => out.push_str("\\t"),
            0x0a => out.push_str("\\n"),
            0x0c => out.push_str("\\f"),
            0x0d => out.push_str("\\r"),
            0x22 => out.push_str("\\\""),
            0x5c => out.push_str("\\\\"),
            0..=0x1f => out.push_str(&format!("\\u{point:04x}")),
            _ => match char::from_u32(point) {
                Some(c) => out.push(c),
                None => out.push_str(&format!("\\u{point:04x}")),
            },
        }
    }
    out.push('"');
}

/// Formats a number like ECMAScript's `Number::toString` in radix 10. A number that is not finite
/// becomes `null`.
fn number_text(number: Option<f64>) -> String {
    let Some(number) = number.filter(|n| n.is_finite()) else {
        return "null".to_owned();
    };
    if number == 0.0 {
        return "0".to_owned();
    }
    // Rust prints the shortest digits that parse to the same double, as ECMAScript requires.
    let text = format!("{:e}", number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or_default());
    let body = if count <= point && point <= 21 {
        format!("{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
        format!("{whole}.{fraction}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let sign = if point > 0 { "+" } else { "" };
        format!("{first}{dot}{rest}e{sign}{}", point - 1)
    };
    if number < 0.0 {
        format!("-{body}")
    } else {
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn canonical_json_numbers_are_formatted_as_in_ecmascript() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.5, "1.5"),
            (-1.0, "-1"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (1e-7, "1e-7"),
            (1e-6, "0.000001"),
            (1.25e-9, "1.25e-9"),
            (5e-324, "5e-324"),
            (123456.789, "123456.789"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(number_text(Some(number)), text);
        }
    }

    #[test]
    fn json_beyond_the_limits_of_canonical_json_is_an_error_only_with_over_limit_refuse() {
        let keys: serde_json::Map<String, Value> =
            (0..301).map(|i| (format!("k{i:03}"), json!(i))).collect();
        let items: Vec<Value> = (0..2001).map(Value::from).collect();
        let mut deep = json!("leaf");
        for _ in 0..31 {
            deep = json!({ "k": deep });
        }
        for value in [Value::Object(keys), Value::Array(items), deep] {
            assert!(canonical_value(&value, OverLimit::Refuse).is_err());
            assert!(canonical_value(&value, OverLimit::Drop).is_ok());
        }
        let mut edge = json!("leaf");
        for _ in 0..30 {
            edge = json!({ "k": edge });
        }
        assert!(canonical_value(&edge, OverLimit::Refuse).is_ok());
    }
}
