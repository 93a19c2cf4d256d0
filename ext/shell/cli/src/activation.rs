//! Activation of mounted plugins and themes: the option, and what is printed about it.

use super::output::Output;
use clap::{Args, ValueEnum};
use serde_json::Value;
use wp_codebox_contracts::{EventType, LifecycleEvent};

/// Whether the mounted plugins and themes are activated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Activate {
    /// Activate them. If one cannot be activated, go on and tell the agent why.
    #[default]
    Try,
    /// Activate them. If one cannot be activated, end with an error.
    Required,
    /// Do not activate them.
    Never,
}

/// Option of the commands that mount a project.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ActivationArgs {
    /// Whether the plugins and themes that are mounted without a guest path are activated.
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = false
    )]
    pub activate: Activate,
}

/// Prints the error of an activation that failed, if the event tells of one.
pub(crate) fn announce(output: Output, event: &LifecycleEvent) {
    let is = |name, value: Value| event.data.get(name) == Some(&value);
    if event.kind == EventType::Observed
        && is("type", "activation".into())
        && is("active", false.into())
        && is("required", false.into())
        && let Some(message) = event.data.get("message").and_then(Value::as_str)
    {
        output.note(&format!("{message}; going on without it"));
    }
}
