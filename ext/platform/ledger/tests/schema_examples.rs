//! Parses the examples beside the schemas with the Rust types that write such documents, as
//! `contracts/tests/schema_examples.rs` does.
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use wp_codebox_ledger::{Entry, Prices, Quote, Usage};

fn check<T: DeserializeOwned + Serialize>(name: &str) {
    let file = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join(format!("../../../abilities/schemas/examples/{name}.json"));
    let examples: BTreeMap<String, Value> =
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert!(examples.len() >= 3, "{name} has too few examples");
    for (label, given) in examples {
        let read = serde_json::from_str::<T>(&given.to_string());
        if label.starts_with("valid-") {
            let kept = read.unwrap_or_else(|e| panic!("{name}/{label}: {e}"));
            assert_eq!(serde_json::to_value(kept).unwrap(), given, "{name}/{label}");
        } else {
            assert!(read.is_err(), "{name}/{label}");
        }
    }
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
