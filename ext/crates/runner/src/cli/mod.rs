//! The command line: parsing, dispatch, output and exit status.
//!
//! Data goes to standard output, talk to standard error. Exit status: the outcome
//! table of `contracts`, else the status of the error's code; wrong usage is 1.

mod agents;
mod args;
mod artifacts;
mod boot;
mod commands;
mod doctor;
mod episode;
mod exec;
mod gc;
mod groups;
mod manual;
mod model;
mod network;
mod output;
mod preview;
mod profile;
mod recipe;
mod request;
mod run;
mod runs;
mod sandbox;
mod schema;
mod settings;
mod supervisor;
mod sync;

pub(crate) use settings::Settings;

use args::{Cli, Command};
use clap::Parser;
use output::Output;
use std::ffi::OsString;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Parses, runs, answers the exit status.
pub(crate) fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    let output = Output::new(output::wants_json(&args));
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            if output.is_json() {
                let text = error.render().to_string();
                let first = text
                    .lines()
                    .next()
                    .unwrap_or("wrong usage")
                    .trim_start_matches("error: ");
                return output.failure(
                    "cli",
                    &ErrorBody::new(ErrorCode::InputInvalid, first).hint("wp-codebox --help"),
                );
            }
            let _ = error.print();
            return ExitCode::from(1);
        }
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    match cli.command {
        Command::Run(options) => run::run(&output, *options),
        Command::Exec(options) => exec::main(&output, *options),
        Command::Boot(options) => boot::boot(&output, &options),
        Command::Recipe(command) => recipe::main(&output, &command),
        Command::RecipeRun(options) => recipe::recipe_run(&output, &options),
        Command::ValidateBlueprint(options) => recipe::validate_blueprint(&output, &options),
        Command::WorkspacePolicy(command) => recipe::workspace_policy(&output, &command),
        Command::Artifacts(command) => artifacts::main(&output, command),
        Command::Episode(command) => episode::main(&output, &command),
        Command::AgentSandboxRun(options) => groups::single(&output, &options),
        Command::AgentSandboxBatch(options) => groups::batch(&output, &options),
        Command::AgentFanout(options) => groups::fanout(&output, &options),
        Command::Sandbox(command) => sandbox::main(&output, &command),
        Command::Profile(command) => profile::main(&output, &command),
        Command::Runs(command) => runs::main(&output, &command),
        Command::Agents(options) => agents::main(&output, &options),
        Command::Commands(options) => commands::main(&output, &options),
        Command::Schema(options) => schema::main(&output, &options),
        Command::Doctor(options) => doctor::main(&output, &options),
        Command::Sync(options) => sync::main(&output, &options),
        Command::Gc(options) => gc::main(&output, &options),
        Command::Completion { shell } => manual::completion(shell),
        Command::Man(options) => manual::man(&output, &options),
        Command::Version => {
            output.line(env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Command::Spawn => crate::supervise::spawn_detached(),
        Command::KeepCgroups {
            intent,
            directories,
        } => crate::keeper::keep(&intent, &directories),
        Command::Supervise { frames_fd } => crate::supervise::supervise(frames_fd),
    }
}
