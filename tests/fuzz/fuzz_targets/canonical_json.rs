//! Strict JSON and its canonical text.
//!
//! What the strict reader takes, serde must take with the same meaning; the canonical
//! text must be its own canonical text, and both ways of treating large values must agree
//! where nothing is dropped.
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
        // By their text: `-0` is the integer 0 here and a double there, and prints as 0 in both.
        for taken in [&value.to_value(), &other] {
            assert_eq!(
                canonical_value(taken, OverLimit::Drop).expect("dropping never refuses"),
                dropped
            );
        }
    }
});
