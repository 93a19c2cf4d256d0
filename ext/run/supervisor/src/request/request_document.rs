//! Describes the request of a run for its bundle, without host paths and secret values.

use super::components;
use super::prepare::Prepared;
use super::programs::tool_set;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{Agent, TaskInput};

/// Returns the task in the form that guest and bundle contain: staged files have no host paths.
pub fn task_document(task: &TaskInput) -> Value {
    let mut value = serde_json::to_value(task).unwrap_or_default();
    if let Some(rows) = value.get_mut("staged_files").and_then(Value::as_array_mut) {
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            row.remove("source");
        }
    }
    value
}

/// Returns what the bundle says about the request.
pub(crate) fn spec(prepared: &Prepared) -> Map<String, Value> {
    let request = &prepared.request;
    let mut spec = Map::new();
    spec.insert("limits".to_owned(), json!(prepared.limits));
    if !request.activate.is_empty() {
        spec.insert("activate".to_owned(), json!(request.activate));
    }
    if !request.commands.is_empty() {
        spec.insert("commands".to_owned(), json!(request.commands));
    }
    match &request.agent {
        None => {}
        Some(Agent::Command(agent)) => {
            let mut row = json!({"argv": agent.argv, "successCodes": agent.success_codes});
            if let Some(preset) = &agent.preset {
                row["preset"] = json!(preset);
            }
            spec.insert("agent".to_owned(), row);
        }
        Some(Agent::Preset(agent)) => {
            let row = json!({"kind": "preset", "name": agent.name});
            spec.insert("agent".to_owned(), row);
        }
        Some(Agent::Model(agent)) => {
            let mut row = json!({"kind": "model", "budget": agent.budget});
            // The tools were already determined once before the run started, so this cannot fail.
            if let Ok(tools) = tool_set(request, &prepared.policy, prepared.wasi.tools()) {
                row["tools"] = tools.describe_tools();
                let pins = prepared.wasi.pins(&tools);
                if !pins.is_empty() {
                    row["wasiTools"] = json!(pins);
                }
            }
            spec.insert("agent".to_owned(), row);
        }
        Some(Agent::Ability(task)) => {
            let mut row = json!({"kind": "ability", "ability": task.ability});
            if !task.input.is_empty() {
                row["input"] = json!(task.input);
            }
            spec.insert("agent".to_owned(), row);
        }
    }
    if let Some(model) = &request.model {
        // The base URL is left out: it may be an address of the host's private network.
        let row = json!({"provider": model.provider, "model": model.model, "api": model.api});
        spec.insert("model".to_owned(), row);
    }
    if !request.components.is_empty() {
        let rows = components::record(&request.components);
        spec.insert("components".to_owned(), json!(rows));
    }
    if !request.agent_bundles.is_empty() {
        let rows: Vec<Value> = request
            .agent_bundles
            .iter()
            .map(|bundle| json!({"slug": bundle.slug, "onConflict": bundle.on_conflict}))
            .collect();
        spec.insert("agentBundles".to_owned(), json!(rows));
    }
    let secrets = prepared.secrets.record();
    if !secrets.is_empty() {
        spec.insert("secrets".to_owned(), json!(secrets));
    }
    if !request.checks.is_empty() {
        spec.insert("checks".to_owned(), json!(request.checks));
    }
    spec
}
