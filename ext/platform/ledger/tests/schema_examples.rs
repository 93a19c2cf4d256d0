//! Parses the examples beside the schemas with the Rust types that write such documents, as
//! `contracts/tests/schema_examples.rs` does.
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use wp_codebox_ledger::{Entry, Prices, Quote, Usage};

fn check<T: DeserializeOwned + Serialize>(name: &str) {
    let examples = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../abilities/schemas/examples")
        .join(name);
    let mut count = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        let label = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let read = serde_json::from_str::<T>(&text);
        if label.starts_with("valid-") {
            let kept = read.unwrap_or_else(|e| panic!("{name}/{label}: {e}"));
            let given: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_value(kept).unwrap(), given, "{name}/{label}");
        } else {
            assert!(read.is_err(), "{name}/{label}");
        }
        count += 1;
    }
    assert!(count >= 3, "{name} has too few examples");
}

#[test]
fn price_table_examples_match_the_rust_type() {
    check::<Prices>("meter-prices");
}

#[test]
fn quote_examples_match_the_rust_type() {
    check::<Quote>("meter-quote");
}

#[test]
fn usage_examples_match_the_rust_type() {
    check::<Usage>("meter-usage");
}

#[test]
fn ledger_entry_examples_match_the_rust_type() {
    check::<Entry>("ledger-entry");
}
