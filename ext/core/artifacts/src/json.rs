//! A strict JSON parser and its value type.
//!
//! Purpose: a document that is digested or verified must have exactly one meaning. Invariants:
//! duplicate keys, trailing data, invalid UTF-8, excessive nesting and excessive length are
//! errors. Key order is preserved. A lone surrogate escape is preserved (strings are WTF-8),
//! because canonical JSON must print it again.

mod reader;
mod value;

pub use reader::JsonError;
pub use value::{JsText, Json};

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    #[test]
    fn malformed_json_and_json_with_duplicate_keys_are_refused() {
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
    fn json_number_parses_to_the_nearest_double() {
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
    fn lone_surrogates_in_json_are_preserved_and_pairs_are_combined() {
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
