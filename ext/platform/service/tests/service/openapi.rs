//! The OpenAPI document is complete and equals the recorded one, so that no change goes unnoticed.

use crate::server::Server;
use serde_json::Value;
use std::path::PathBuf;

fn recorded() -> PathBuf {
    // Read at run time: the binary may come from another checkout with the same target directory.
    let directory = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    PathBuf::from(directory).join("../../../docs/openapi.json")
}

#[test]
fn recorded_openapi_document_equals_the_one_that_the_server_returns() {
    let server = Server::start();
    let served = server.admin().get("/v1/openapi.json").expect(200).text();
    assert_eq!(served, wp_codebox_service::openapi());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(recorded(), &served).unwrap();
    }
    let recorded = std::fs::read_to_string(recorded()).unwrap_or_default();
    assert!(
        recorded == served,
        "docs/openapi.json is out of date; run UPDATE_GOLDEN=1 cargo test -p wp-codebox-service openapi"
    );
}

/// Calls `visit` with every reference of a document.
fn references(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("$ref", Value::String(target)) => visit(target),
                    _ => references(value, visit),
                }
            }
        }
        Value::Array(rows) => rows.iter().for_each(|row| references(row, visit)),
        _ => {}
    }
}

#[test]
fn every_reference_of_the_openapi_document_resolves_and_every_path_parameter_is_declared() {
    let document: Value = serde_json::from_str(wp_codebox_service::openapi()).unwrap();
    let mut count = 0;
    references(&document, &mut |target| {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(
            document.pointer(pointer).is_some_and(Value::is_object),
            "{target}"
        );
        count += 1;
    });
    assert!(count > 40);
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            let none = Vec::new();
            let declared = operation["parameters"].as_array().unwrap_or(&none);
            for name in path
                .split('{')
                .skip(1)
                .filter_map(|part| part.split('}').next())
            {
                let found = declared
                    .iter()
                    .any(|row| row["name"] == name && row["in"] == "path");
                assert!(found, "{path}: {name}");
            }
        }
    }
}
