//! The command registry as a JSON document.

use super::model::CommandDescriptor;
use super::registry;
use serde_json::{Value, json};
use wp_codebox_contracts::schema_id;

/// Returns the catalogue of all commands, `wp-codebox/command-catalog/v1`.
#[must_use]
pub fn catalog() -> Value {
    let commands: Vec<Value> = registry().map(catalog_entry).collect();
    json!({"schema": schema_id::COMMAND_CATALOG, "commands": commands})
}

/// Returns the catalogue entry of one command.
#[must_use]
pub fn catalog_entry(command: &CommandDescriptor) -> Value {
    let mut row = json!({
        "id": command.id,
        "group": command.group,
        "description": command.description,
        "acceptedArgs": command.accepted_args,
        "outputShape": command.output_shape,
        "policyRequirement": command.policy_requirement(),
        "recipe": command.in_recipes(),
        "supported": command.refusal().is_none(),
    });
    if let Some(schema) = command.output_schema {
        row["outputSchema"] = json!(schema);
    }
    if !command.requires.is_empty() {
        row["requiredCommands"] = json!(command.requires);
    }
    if let Some(reason) = command.refusal() {
        row["unsupportedReason"] = json!(reason);
    }
    row
}
