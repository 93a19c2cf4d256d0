//! Converts the grammar to a JSON Schema (draft 4, without references) for editors and other
//! tools.
//!
//! `validate` may still refuse a document that the schema accepts, because `validate` checks
//! further rules.

use super::{Items, Need, RECIPE, Shape};
use serde_json::{Map, Value, json};

/// Returns the JSON Schema of a recipe.
pub(crate) fn schema() -> Value {
    let mut document = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "$id": "wp-codebox/workspace-recipe/v1",
        "title": "Workspace recipe",
        "description": "A recipe: inputs, steps and artifacts of a run. Generated from the table by which WP Codebox checks recipes.",
    });
    if let (Value::Object(document), Value::Object(root)) = (&mut document, of(&RECIPE)) {
        document.extend(root);
    }
    document
}

fn of(shape: &Shape) -> Value {
    match shape {
        // WordPress's schema validator requires a `type` in every schema.
        Shape::Any => {
            json!({"type": ["object", "array", "string", "number", "boolean", "null"]})
        }
        Shape::Free => json!({"type": "object"}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::True => json!({"type": "boolean", "enum": [true]}),
        Shape::Text(pattern, least, most) => {
            let mut row = Map::from_iter([("type".to_owned(), json!("string"))]);
            if *least > 0 {
                row.insert("minLength".to_owned(), json!(least));
            }
            if *most < usize::MAX {
                row.insert("maxLength".to_owned(), json!(most));
            }
            if let Some(expression) = pattern.expression() {
                row.insert("pattern".to_owned(), json!(expression));
            }
            Value::Object(row)
        }
        Shape::Integer(least, most) => {
            let mut row = json!({"type": "integer", "minimum": least});
            // Programs that read numbers as doubles cannot represent every integer above 2^53.
            if *most < 1 << 53 {
                row["maximum"] = json!(most);
            }
            row
        }
        Shape::Number => json!({"type": "number"}),
        Shape::Scalar => json!({"type": ["string", "number", "boolean", "null"]}),
        Shape::Word(words) => json!({"type": "string", "enum": words}),
        Shape::List(list) => {
            let mut row = json!({"type": "array", "items": of(&list.of)});
            if list.least > 0 {
                row["minItems"] = json!(list.least);
            }
            if list.most < usize::MAX {
                row["maxItems"] = json!(list.most);
            }
            if list.items == Items::Unique {
                row["uniqueItems"] = json!(true);
            }
            row
        }
        Shape::Map(values) => json!({"type": "object", "additionalProperties": of(values)}),
        Shape::Record(fields) => {
            let properties: Map<String, Value> = fields
                .iter()
                .map(|field| (field.name.to_owned(), of(&field.shape)))
                .collect();
            let named = |need: Need| -> Vec<&str> {
                let fields = fields.iter().filter(|field| field.need == need);
                fields.map(|field| field.name).collect()
            };
            let mut row = json!({
                "type": "object",
                "properties": properties,
                "additionalProperties": false,
            });
            let required = named(Need::Must);
            if !required.is_empty() {
                row["required"] = json!(required);
            }
            let one_of = named(Need::OneOf);
            if !one_of.is_empty() {
                let rows: Vec<Value> = one_of
                    .iter()
                    .map(|name| json!({"type": "object", "required": [name]}))
                    .collect();
                row["anyOf"] = json!(rows);
            }
            row
        }
        Shape::Either(shapes, _) => {
            let rows: Vec<Value> = shapes.iter().map(of).collect();
            json!({"anyOf": rows})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::inputs::{COMPONENT, MOUNT, SCOPE};
    use super::super::workflow::STEP;
    use super::*;
    use std::path::Path;

    /// Objects that the source of the schema has only once, by their file below `abilities/schemas`.
    const PARTS: [(&str, Shape); 4] = [
        ("parts/recipe-component.json", COMPONENT),
        ("parts/recipe-mount.json", MOUNT),
        ("parts/recipe-seed-scope.json", SCOPE),
        ("parts/recipe-step.json", STEP),
    ];

    /// Replaces each object that equals a part by a reference to the part.
    fn with_parts(value: Value) -> Value {
        if let Some((file, _)) = PARTS.iter().find(|(_, shape)| of(shape) == value) {
            return json!({"$ref": file});
        }
        match value {
            Value::Object(members) => members
                .into_iter()
                .map(|(name, value)| (name, with_parts(value)))
                .collect(),
            Value::Array(items) => items.into_iter().map(with_parts).collect(),
            other => other,
        }
    }

    /// The committed schema and its parts equal the generated ones; `UPDATE_GOLDEN=1` writes the files
    /// instead.
    #[test]
    fn committed_recipe_schema_matches_the_grammar() {
        let directory = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
            .join("../../../abilities/schemas");
        let mut files = vec![("workspace-recipe.v1.schema.json", with_parts(schema()))];
        files.extend(PARTS.iter().map(|(file, shape)| (*file, of(shape))));
        for (file, value) in files {
            let path = directory.join(file);
            let made = format!("{value:#}\n");
            if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
                std::fs::write(&path, &made).unwrap();
            }
            let there = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                there == made,
                "{file} is out of date; run: cargo xtask generate --all"
            );
        }
    }
}
