//! The strict JSON parser and the canonical JSON text.
//!
//! A document that both the strict parser and serde accept must have the same canonical text
//! from both. Canonicalizing a canonical text must not change it. The two modes for values over
//! a limit, `Drop` and `Refuse`, must agree on documents without such a value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wp_codebox_artifacts::{Json, OverLimit, canonical_json, canonical_value};

fuzz_target!(|data: &[u8]| {
    let Ok(value) = Json::parse(data) else {
        return;
    };
    let dropped = canonical_json(&value, OverLimit::Drop).expect("dropping never refuses");
    let again = Json::parse(dropped.as_bytes()).expect("canonical text is strict JSON");
    assert_eq!(
        canonical_json(&again, OverLimit::Drop).expect("dropping never refuses"),
        dropped
    );
    if let Ok(refusing) = canonical_json(&value, OverLimit::Refuse) {
        assert_eq!(refusing, dropped);
    }
    // serde refuses lone surrogates and stops at 128 levels; the strict reader does neither.
    if let Ok(other) = serde_json::from_slice::<serde_json::Value>(data) {
        // Compared as text: `-0` is the integer 0 for one parser and a double for the other, and
        // prints as 0 for both.
        for taken in [&value.to_value(), &other] {
            assert_eq!(
                canonical_value(taken, OverLimit::Drop).expect("dropping never refuses"),
                dropped
            );
        }
    }
});
