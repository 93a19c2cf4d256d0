//! The parser of runtime policies, which a site sends with a run.
//!
//! An accepted policy is unchanged after it is written and parsed again. A refused policy gives a
//! reason. `validate` and `parse` agree whether a policy is accepted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wp_codebox_contracts::CodedError;
use wp_codebox_policy::{parse, validate};

fuzz_target!(|data: &[u8]| {
    let Ok(document) = serde_json::from_slice::<serde_json::Value>(data) else {
        return;
    };
    let issues = validate(&document);
    match parse(&document) {
        Ok(policy) => {
            assert!(issues.is_empty());
            let text = serde_json::to_value(&policy).expect("a policy is JSON");
            assert_eq!(
                parse(&text).expect("an accepted policy is acceptable"),
                policy
            );
        }
        Err(error) => {
            assert!(!issues.is_empty());
            assert!(error.body().data.is_some());
        }
    }
});
