//! `wp-codebox commands`: prints the catalog of the commands that a guest offers.

use super::output::Output;
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;
use wp_codebox_contracts::{CodedError, schema_id};
use wp_codebox_policy::{
    AcceptedArg, CommandDescriptor, CommandError, CommandGroup, Format, catalog, catalog_entry,
    descriptor, registry,
};

/// Arguments of `commands`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox commands
  wp-codebox commands wordpress.rest-request
  wp-codebox commands --json | jq -r '.commands[] | select(.supported) | .id'

Exit status: 0 printed, 1 unknown command or wrong usage.")]
pub(crate) struct CommandsArgs {
    /// Id of one command.
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Print the catalog as JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Prints the catalog of commands, or the row of one command.
pub(crate) fn main(output: &Output, options: &CommandsArgs) -> ExitCode {
    let Some(id) = &options.id else {
        if output.is_json() {
            output.document(&catalog());
        } else {
            table(output);
        }
        return ExitCode::SUCCESS;
    };
    let Some(found) = descriptor(id) else {
        let command = id.clone();
        let mut error = CommandError::Unknown { command }.body();
        let near: Vec<_> = registry()
            .filter(|c| c.id.contains(id.as_str()))
            .map(|c| c.id)
            .collect();
        if !near.is_empty() {
            error = error.hint(format!("did you mean {}?", near.join(", ")));
        }
        return output.failure("commands", &error);
    };
    if output.is_json() {
        let rows: [Value; 1] = [catalog_entry(found)];
        output.document(&json!({"schema": schema_id::COMMAND_CATALOG, "commands": rows}));
    } else {
        one(output, found);
    }
    ExitCode::SUCCESS
}

fn title(group: CommandGroup) -> &'static str {
    match group {
        CommandGroup::Core => "Programs, PHP, requests, tests",
        CommandGroup::Checkpoint => "State of the sandbox",
        CommandGroup::State => "Reading and changing one object of the site",
        CommandGroup::Discovery => "What the site has",
        CommandGroup::Observation => "Measuring requests",
        CommandGroup::Benchmark => "Measuring workloads",
        CommandGroup::Fuzz => "Many inputs",
        CommandGroup::Browser => "A browser on the site",
        CommandGroup::Host => "Host and agents",
    }
}

fn table(output: &Output) {
    let mut last = None;
    for command in registry() {
        if last != Some(command.group) {
            if last.is_some() {
                output.line("");
            }
            output.line(&format!("{}:", title(command.group)));
            last = Some(command.group);
        }
        let gone = if command.refusal().is_some() {
            " (not available)"
        } else {
            ""
        };
        output.line(&format!(
            "  {:<52} {}{gone}",
            command.id, command.description
        ));
    }
}

fn one(output: &Output, command: &CommandDescriptor) {
    output.line(command.id);
    output.line(&format!("  {}", command.description));
    if let Some(reason) = command.refusal() {
        output.line("");
        output.line(&format!("Not available: {reason}."));
    }
    output.line("");
    output.line(&format!("Policy: {}.", command.policy_requirement()));
    output.line(&format!("Prints: {}.", command.output_shape));
    if let Some(schema) = command.output_schema {
        output.line(&format!("Schema: {schema}"));
    }
    output.line("");
    if command.accepted_args.is_empty() {
        output.line("It takes no arguments.");
        return;
    }
    output.line("Arguments, each --arg NAME=VALUE:");
    for arg in command.accepted_args {
        output.line(&format!("  {:<28} {}", arg.name, arg.description));
        let notes = notes(arg);
        if !notes.is_empty() {
            output.line(&format!("  {:<28} [{}]", "", notes.join(", ")));
        }
    }
}

fn notes(arg: &AcceptedArg) -> Vec<String> {
    let mut notes = Vec::new();
    if arg.required {
        notes.push("required".to_owned());
    }
    if arg.repeatable {
        notes.push("may be repeated".to_owned());
    }
    if arg.format != Format::Text {
        notes.push(arg.format.to_string());
    }
    notes
}
