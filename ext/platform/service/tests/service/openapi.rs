//! The OpenAPI document is complete, and its operations are recorded, so that no change goes unnoticed.
//! Its components are the schemas of `abilities/schemas`, whose digests are recorded by another test.

#[path = "../../../../../tests/golden/compare.rs"]
mod golden;

use crate::server::Server;
use serde_json::Value;
use std::fmt::Write as _;

/// Returns an operation as its record: name and rights, then parameters, body and answers.
fn record(method: &str, path: &str, operation: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut record = format!(
        "{} {path} {}: {}\n",
        method.to_uppercase(),
        text(&operation["operationId"]),
        text(&operation["description"]),
    );
    for row in operation["parameters"].as_array().into_iter().flatten() {
        let required = if row["required"] == true { "" } else { "?" };
        let (place, name) = (text(&row["in"]), text(&row["name"]));
        writeln!(record, "  {place} {name}{required}: {}", row["schema"]).unwrap();
    }
    let mut content = |what: &str, of: &Value| {
        for (kind, of) in of["content"].as_object().into_iter().flatten() {
            writeln!(record, "  {what} {kind}: {}", of["schema"]).unwrap();
        }
    };
    content("body", &operation["requestBody"]);
    for (status, answer) in operation["responses"].as_object().unwrap() {
        content(status, answer);
    }
    record
}

#[test]
fn operations_of_the_openapi_document_that_the_server_returns_equal_the_recorded_ones() {
    let server = Server::start();
    let served = server.admin().get("/v1/openapi.json").expect(200).text();
    assert_eq!(served, wp_codebox_service::openapi());
    let document: Value = serde_json::from_str(&served).unwrap();
    let mut records = String::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            records += &record(method, path, operation);
        }
    }
    golden::compare("service-operations.txt", &records);
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
