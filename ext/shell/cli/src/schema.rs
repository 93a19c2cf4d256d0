//! `wp-codebox schema`: JSON Schemas of documents and definitions of tools.

use super::args::SchemaArgs;
use super::output::Output;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::LazyLock;
use wp_codebox_contracts::{ErrorBody, ErrorCode, schema_id};
use wp_codebox_policy::{TOOLS, builtin_tool};

/// Schema that `wp-codebox schema recipe` prints. Its regular short name is `workspace-recipe`.
const RECIPE: &str = "wp-codebox/workspace-recipe/v1";

/// A schema that this command can print.
struct Known {
    id: String,
    schema: Value,
}

impl Known {
    /// Returns the short name: the id without its common prefix and suffix.
    fn name(&self) -> &str {
        let id = self.id.strip_prefix("wp-codebox/").unwrap_or(&self.id);
        id.strip_suffix("/v1").unwrap_or(id)
    }
}

/// Returns every schema that is built into this program.
fn known() -> &'static [Known] {
    static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
        let embedded = wp_codebox_schemas::all()
            .iter()
            .filter_map(|(_, text)| serde_json::from_str::<Value>(text).ok());
        embedded
            .filter_map(|schema| {
                let id = schema.get("$id").or_else(|| schema.get("id"))?.as_str()?;
                Some(Known {
                    id: id.to_owned(),
                    schema,
                })
            })
            .collect()
    });
    &KNOWN
}

/// Prints the requested schema, the definition of the requested tool, or the list of both.
pub(crate) fn main(output: &Output, options: &SchemaArgs) -> ExitCode {
    let words: Vec<&str> = options.name.iter().map(String::as_str).collect();
    let answer = match (options.list, words.as_slice()) {
        (true, _) | (false, []) => {
            list(output);
            return ExitCode::SUCCESS;
        }
        (false, ["tool", name]) => tool(name),
        (false, [name]) => schema(name),
        (false, _) => Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "name one schema, or write `tool` and the name of one tool",
        )),
    };
    match answer {
        Ok(document) => {
            output.document(&document);
            ExitCode::SUCCESS
        }
        Err(error) => output.failure("schema", &error),
    }
}

fn list(output: &Output) {
    let known = known();
    if output.is_json() {
        let rows: Vec<Value> = known
            .iter()
            .map(|k| json!({"name": k.name(), "id": k.id, "title": k.schema.get("title")}))
            .collect();
        let tools: Vec<&str> = TOOLS.iter().map(|t| t.id).collect();
        output.document(
            &json!({"schema": schema_id::JSON_SCHEMA_LIST, "schemas": rows, "tools": tools}),
        );
        return;
    }
    for one in known {
        let title = one.schema.get("title").and_then(Value::as_str);
        output.line(&format!("{:<44} {}", one.name(), title.unwrap_or_default()));
    }
    for tool in TOOLS {
        output.line(&format!("{:<44} Tool", format!("tool {}", tool.id)));
    }
}

/// Returns `wp-codebox/json-schema/v1` for a schema by id or short name.
fn schema(name: &str) -> Result<Value, ErrorBody> {
    known()
        .iter()
        .find(|k| k.id == name || k.name() == name || name == "recipe" && k.id == RECIPE)
        .map(|k| json!({"schema": schema_id::JSON_SCHEMA, "id": k.id, "jsonSchema": k.schema}))
        .ok_or_else(|| {
            let message = format!("there is no schema {name:?}");
            ErrorBody::new(ErrorCode::InputInvalid, message)
                .hint("wp-codebox schema --list shows all schemas and tools")
        })
}

/// Returns the definition of a tool of the built-in agent, in the form that other agents accept.
fn tool(name: &str) -> Result<Value, ErrorBody> {
    let found = builtin_tool(name).ok_or_else(|| {
        let message = format!("there is no tool {name:?}");
        ErrorBody::new(ErrorCode::InputInvalid, message)
            .hint("wp-codebox schema --list shows all schemas and tools")
    })?;
    Ok(json!({
        "schema": schema_id::JSON_SCHEMA,
        "id": found.id,
        "description": found.description,
        "jsonSchema": (found.parameters)(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_schema_is_found_by_id_and_by_short_name() {
        let known = known();
        assert_eq!(known.len(), wp_codebox_schemas::all().len());
        let names: BTreeSet<_> = known.iter().map(Known::name).collect();
        assert_eq!(names.len(), known.len());
        for one in known {
            assert_eq!(schema(&one.id).unwrap()["jsonSchema"], one.schema);
            assert_eq!(schema(one.name()).unwrap()["id"], one.id);
        }
        assert_eq!(schema("recipe").unwrap()["id"], RECIPE);
        assert!(names.contains("command-catalog") && names.contains("runtime-command-result"));
        assert_eq!(schema("no-such").unwrap_err().code, ErrorCode::InputInvalid);
    }

    #[test]
    fn tool_definition_has_a_parameter_schema_and_an_unknown_tool_is_an_error() {
        let shown = tool("workspace.read").unwrap();
        assert_eq!(shown["jsonSchema"]["type"], "object");
        assert!(tool("no-such").is_err());
    }
}
