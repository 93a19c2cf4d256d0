//! The OpenAPI 3.1 document. Its operations come from the table that the router is made from, its
//! components from `abilities/schemas`.

use crate::api::{Access, Body, Kind, LINES, OPERATIONS, Operation, Parameter, STREAM};
use crate::metrics;
use crate::problem::PROBLEM;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Short name of the schema of errors.
const ERROR: &str = "service-problem";

/// Returns the document as JSON text.
pub(crate) fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
        text.push('\n');
        text
    });
    &TEXT
}

fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut names = vec![ERROR];
    for operation in OPERATIONS {
        names.extend(named(operation.body));
        names.extend(operation.answers.iter().flat_map(|(_, body)| named(*body)));
        let path = operation.path.replace("{*", "{");
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[operation.verb.name()] = described(operation);
    }
    let components: BTreeMap<&str, Value> = names
        .into_iter()
        .map(|name| (name, schema(name).unwrap_or_default()))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "WP Codebox service",
            "version": "1",
            "description": "Sandboxes of many kinds through one API. Errors are application/problem+json with stable codes.",
            "license": {"name": "GPL-2.0-or-later", "identifier": "GPL-2.0-or-later"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "tags": tags(),
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "A token of `wp-codebox token create`."}},
            "schemas": components,
        },
    })
}

fn tags() -> Vec<Value> {
    let mut tags: Vec<&str> = Vec::new();
    for operation in OPERATIONS {
        if !tags.contains(&operation.tag) {
            tags.push(operation.tag);
        }
    }
    tags.into_iter().map(|name| json!({"name": name})).collect()
}

fn named(body: Body) -> Option<&'static str> {
    match body {
        Body::Json(name) => Some(name),
        Body::None | Body::AnyJson | Body::Bytes | Body::Lines | Body::Events | Body::Metrics => {
            None
        }
    }
}

fn described(operation: &Operation) -> Value {
    let mut parameters = in_path(operation.path);
    parameters.extend(operation.query.iter().map(|row| parameter(row, "query")));
    parameters.extend(operation.headers.iter().map(|row| parameter(row, "header")));
    let mut answers = Map::new();
    for (status, body) in operation.answers {
        let mut answer = json!({"description": phrase(*status)});
        if let Some(content) = content(*body) {
            answer["content"] = content;
        }
        answers.insert(status.to_string(), answer);
    }
    answers.insert(
        "default".to_owned(),
        json!({"description": "An error.", "content": {PROBLEM: {"schema": reference(ERROR)}}}),
    );
    let mut document = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": answers,
    });
    if !parameters.is_empty() {
        document["parameters"] = json!(parameters);
    }
    if let Some(content) = content(operation.body) {
        document["requestBody"] = json!({"required": true, "content": content});
    }
    match operation.access {
        Access::Public => document["security"] = json!([]),
        Access::Token => {}
        Access::Scope(scope) => {
            document["description"] = json!(format!("Needs the scope `{}`.", scope.as_str()));
        }
    }
    document
}

fn in_path(path: &str) -> Vec<Value> {
    path.split('{')
        .skip(1)
        .filter_map(|part| part.split('}').next())
        .map(|name| match name.strip_prefix('*') {
            Some(name) => json!({
                "name": name, "in": "path", "required": true,
                "description": "Path in the guest without its first slash. Its slashes may be written as such or as %2F.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 4095},
            }),
            None => json!({
                "name": name, "in": "path", "required": true,
                "schema": {"type": "string", "minLength": 1},
            }),
        })
        .collect()
}

fn parameter(row: &Parameter, place: &str) -> Value {
    let schema = match row.kind {
        Kind::Text => json!({"type": "string", "minLength": 1, "maxLength": 256}),
        Kind::Pattern(pattern) => json!({"type": "string", "pattern": pattern}),
        Kind::Number { least, most } => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Kind::Word(words) => json!({"type": "string", "enum": words}),
    };
    json!({"name": row.name, "in": place, "required": false, "description": row.description, "schema": schema})
}

fn content(body: Body) -> Option<Value> {
    let (media, schema) = match body {
        Body::None => return None,
        Body::Json(name) => ("application/json", reference(name)),
        Body::AnyJson => ("application/json", json!({"type": "object"})),
        Body::Bytes => (
            "application/octet-stream",
            json!({"type": "string", "format": "binary"}),
        ),
        Body::Lines => {
            let lines = json!({"type": "string", "description": "Lines of JSON: `{type: started, execution_id}`, `{type: output, stream, text | base64}`, then `{type: exited, code?, signal?, end, reason?, duration_ms}` or `{type: error, error}`."});
            // The same bytes under two media types: code generators leave out an answer whose media
            // type they do not know.
            return Some(json!({LINES: {"schema": lines}, "text/plain": {"schema": lines}}));
        }
        Body::Events => (
            STREAM,
            json!({"type": "string", "description": "Server-sent events whose data is wp-codebox/service-event/v1 and whose id continues a stream."}),
        ),
        Body::Metrics => (metrics::TEXT, json!({"type": "string"})),
    };
    Some(json!({media: {"schema": schema}}))
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

const fn phrase(status: u16) -> &'static str {
    match status {
        200 => "Done.",
        201 => "Created; with `Prefer: wait`, the sandbox is ready.",
        202 => "Accepted; the work is not finished yet.",
        204 => "Done; the response has no body.",
        304 => "Not modified: the client's copy is current.",
        _ => "Answered.",
    }
}

/// Returns a schema in the dialect of OpenAPI 3.1 (JSON Schema 2020-12).
fn schema(name: &str) -> Option<Value> {
    let mut schema = serde_json::from_str(wp_codebox_schemas::text(name)?).ok()?;
    convert(&mut schema);
    if let Value::Object(members) = &mut schema {
        members.remove("$schema");
        // `$id` is a base URI: references would be resolved against it.
        if let Some(id) = members.remove("$id") {
            members.insert("x-schema-id".to_owned(), id);
        }
    }
    Some(schema)
}

/// Converts draft-04 to 2020-12: exclusive bounds are flags in draft-04 and numbers in 2020-12.
/// Types that include `null` are lists in both.
fn convert(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    for (flag, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        match members.get(flag) {
            Some(Value::Bool(true)) => {
                members.remove(flag);
                if let Some(value) = members.remove(bound) {
                    members.insert(flag.to_owned(), value);
                }
            }
            Some(Value::Bool(false)) => {
                members.remove(flag);
            }
            _ => {}
        }
    }
    // Without `items` any array is valid, but code generators require the member.
    let is_array = match members.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    if is_array {
        members.entry("items").or_insert_with(|| json!({}));
    }
    for (name, value) in members.iter_mut() {
        match (name.as_str(), value) {
            ("properties" | "patternProperties" | "definitions", Value::Object(rows)) => {
                rows.iter_mut().for_each(|(_, row)| convert(row));
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(rows)) => {
                rows.iter_mut().for_each(convert);
            }
            ("items" | "additionalProperties" | "not", value) => convert(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In JSON Schema draft 04, `exclusiveMinimum` is a flag beside `minimum`; in OpenAPI 3.1 it is
    /// the bound itself.
    #[test]
    fn exclusive_bounds_of_draft_04_become_numbers_and_null_stays_a_type() {
        let mut schema = json!({"properties": {"exclusiveMinimum": {
            "type": ["number", "null"], "minimum": 0, "exclusiveMinimum": true,
            "maximum": 9, "exclusiveMaximum": false}}});
        convert(&mut schema);
        let expected = json!({"properties": {"exclusiveMinimum": {
            "type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 9}}});
        assert_eq!(schema, expected);
    }

    #[test]
    fn array_without_items_gets_items_that_accept_everything() {
        let mut schema = json!({"properties": {
            "names": {"type": ["string", "array"]},
            "rows": {"type": "array", "items": {"type": "array"}},
            "text": {"type": "string"}}});
        convert(&mut schema);
        let expected = json!({"properties": {
            "names": {"type": ["string", "array"], "items": {}},
            "rows": {"type": "array", "items": {"type": "array", "items": {}}},
            "text": {"type": "string"}}});
        assert_eq!(schema, expected);
    }

    #[test]
    fn every_schema_that_the_openapi_document_lists_exists_in_abilities_schemas() {
        let document = document();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for (name, schema) in schemas {
            assert!(schema.is_object(), "abilities/schemas has no {name}");
        }
        assert!(schemas.len() > 20);
    }
}
