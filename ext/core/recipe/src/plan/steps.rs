//! Describes steps, probes and their commands in the plan.

use super::row::Row;
use crate::layout::{self, PlacedStep};
use crate::model::{PluginRuntime, Recipe};
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{CommandCall, RuntimePolicy};

/// Returns a command's arguments as an object. Of several arguments with the same name, the first
/// one counts.
fn parsed(args: &[String]) -> Value {
    let mut map = Map::new();
    for (name, value) in args.iter().filter_map(|arg| arg.split_once('=')) {
        map.entry(name).or_insert_with(|| json!(value));
    }
    Value::Object(map)
}

fn verdict(command: &str, policy: &RuntimePolicy) -> Value {
    let allowed = policy.commands.iter().any(|known| known == command);
    Row::new()
        .with("status", if allowed { "allowed" } else { "denied" })
        .with("command", command)
        .value()
}

/// Returns the plan's entry for a step: its command as written and as executed in the guest.
pub(super) fn step(recipe: &Recipe, placed: &PlacedStep<'_>, policy: &RuntimePolicy) -> Value {
    let step = placed.step;
    let mut call = placed.call();
    let inherited = layout::inherited_args(recipe, &call);
    call.args.extend(inherited);
    Row::new()
        .with("phase", placed.phase.as_str())
        .with("index", placed.index)
        .with("command", &step.command)
        .with("args", &step.args)
        .with("parsedArgs", parsed(&step.args))
        .with("resolvedCommand", &call.command)
        .with("resolvedArgs", &call.args)
        .with("resolvedParsedArgs", parsed(&call.args))
        .maybe("timeoutMs", step.timeout_ms)
        .maybe("allowFailure", step.allow_failure)
        .maybe("advisory", step.advisory)
        .maybe("continuation", step.continuation.as_ref())
        .maybe("diagnostics", step.diagnostics.as_ref())
        .maybe("metadata", step.metadata.as_ref())
        .with("policy", verdict(&call.command, policy))
        .value()
}

/// Returns the plan's entry for a command that implements a probe.
pub(super) fn call(call: &CommandCall, policy: &RuntimePolicy) -> Value {
    Row::new()
        .with("command", &call.command)
        .with("args", &call.args)
        .with("parsedArgs", parsed(&call.args))
        .with("policy", verdict(&call.command, policy))
        .value()
}

/// Returns the plan's `workflow`: omits phases without steps, except `steps`.
pub(super) fn workflow(recipe: &Recipe, policy: &RuntimePolicy) -> Value {
    let rows = layout::workflow(recipe);
    let of = |phase: layout::Phase| -> Vec<Value> {
        rows.iter()
            .filter(|placed| placed.phase == phase)
            .map(|placed| step(recipe, placed, policy))
            .collect()
    };
    Row::new()
        .some("before", of(layout::Phase::Before))
        .with("steps", of(layout::Phase::Steps))
        .some("after", of(layout::Phase::After))
        .value()
}

/// Returns the plan's member `probes`.
pub(super) fn probes(recipe: &Recipe, policy: &RuntimePolicy) -> Vec<Value> {
    recipe
        .probes
        .iter()
        .zip(layout::probes(recipe))
        .map(|(probe, placed)| {
            Row::new()
                .with("name", &probe.name)
                .with("step", step(recipe, &placed, policy))
                .with("expectJson", probe.expect_json.unwrap_or(false))
                .with("allowFailure", probe.allow_failure.unwrap_or(false))
                .maybe("metadata", probe.metadata.as_ref())
                .value()
        })
        .collect()
}

/// Returns the host files that arguments of steps name, and the guest paths of their copies.
pub(super) fn argument_files(recipe: &Recipe) -> Vec<Value> {
    let rows = |placed: &layout::PlacedStep<'_>| {
        let row = |file: &layout::StepFile<'_>| {
            Row::new()
                .with("source", file.host)
                .with("target", &file.target)
                .with("role", file.name)
                .with("phase", placed.phase.as_str())
                .with("index", placed.index)
                .value()
        };
        placed.files().iter().map(row).collect::<Vec<_>>()
    };
    layout::setup(recipe)
        .iter()
        .chain(&layout::workflow(recipe))
        .chain(&layout::probes(recipe))
        .flat_map(rows)
        .collect()
}

/// Returns the plan's member `pluginRuntime`.
pub(super) fn plugin_runtime(
    recipe: &Recipe,
    runtime: &PluginRuntime,
    policy: &RuntimePolicy,
) -> Value {
    let setup = layout::setup(recipe)
        .iter()
        .map(|placed| step(recipe, placed, policy))
        .collect();
    let health = runtime
        .health_probes
        .iter()
        .map(|probe| {
            Row::new()
                .with("name", &probe.name)
                .with("type", probe.kind)
                .maybe("pluginFile", probe.plugin_file.as_ref())
                .with("call", call(&layout::health_call(probe), policy))
                .value()
        })
        .collect();
    Row::new()
        .maybe("label", runtime.label.as_ref())
        .maybe("php", runtime.php.as_ref())
        .with("wpConfigDefines", &runtime.wp_config_defines)
        .some("setup", setup)
        .some("healthProbes", health)
        .value()
}
