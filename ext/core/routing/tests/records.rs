//! Records and documents: rules of their own, and the examples beside the schemas.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers may panic.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{CodedError, ErrorCode};
use wp_codebox_routing::{Capabilities, HostRecord, ReasonCode, RecordError};

fn directory() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../../abilities/schemas")
}

fn examples(name: &str) -> BTreeMap<String, Value> {
    let file = directory().join("examples").join(format!("{name}.json"));
    let all: BTreeMap<_, _> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert!(all.len() >= 4, "{name} has too few examples");
    all
}

fn check<T: serde::Serialize>(name: &str, parse: fn(&Value) -> Result<T, RecordError>) {
    for (label, value) in examples(name) {
        let read = parse(&value);
        assert_eq!(read.is_ok(), label.starts_with("valid-"), "{name}/{label}");
        match read {
            Ok(record) => {
                let written = json!(record);
                for (member, given) in value.as_object().unwrap() {
                    assert_eq!(&written[member], given, "{name}/{label}: {member}");
                }
            }
            Err(error) => {
                assert_eq!(error.body().code, ErrorCode::InputInvalid);
                assert!(error.to_string().split(' ').count() > 6, "{error}");
            }
        }
    }
}

#[test]
fn examples_of_capabilities_and_hosts_are_accepted_or_refused_as_their_names_say() {
    check("extension-capabilities", Capabilities::parse);
    check("host-record", HostRecord::parse);
}

#[test]
fn schema_of_a_decision_lists_exactly_the_reason_codes() {
    let path = directory().join("route-decision.v1.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let codes = json!(ReasonCode::ALL);
    for member in ["counts", "reasons"] {
        let row = &schema["properties"][member]["items"]["properties"];
        assert_eq!(row["code"]["enum"], codes, "{member}");
    }
}

fn native() -> Value {
    let (_, value) = examples("extension-capabilities").pop_last().unwrap();
    value
}

#[test]
fn capabilities_with_contradictory_or_repeated_values_are_refused_with_every_wrong_member() {
    Capabilities::parse(&native()).unwrap();
    let mut bad = native();
    bad["isolation"] = json!("microvm");
    bad["persistence"] = json!("ephemeral");
    bad["architectures"] = json!(["x86_64", "x86_64"]);
    bad["regions"] = json!(["eu", "eu"]);
    bad["schema"] = json!("wp-codebox/extension-capabilities/v2");
    let error = Capabilities::parse(&bad).unwrap_err();
    let RecordError::Rules { issues, .. } = &error else {
        panic!("{error}");
    };
    let mut fields: Vec<&str> = issues.iter().map(|issue| issue.field).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "architectures",
            "isolation",
            "persistence",
            "regions",
            "schema"
        ]
    );
    assert_eq!(
        error.body().data.unwrap()["issues"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
    let mut bad = native();
    bad["snapshot"] = json!(false);
    assert!(Capabilities::parse(&bad).is_err());
    bad["restore"] = json!(false);
    Capabilities::parse(&bad).unwrap();
}

#[test]
fn host_labels_are_bounded_and_free_of_control_characters() {
    let with = |name: &str, value: &str| {
        HostRecord::parse(
            &json!({"id": "a", "extension": "native", "capacity": 1, "labels": {name: value}}),
        )
    };
    with("rack", "b 7").unwrap();
    for (name, value) in [("", "x"), ("rack", "a\nb"), ("rack", &"x".repeat(129))] {
        assert!(with(name, value).is_err(), "{name:?} {value:?}");
    }
}
