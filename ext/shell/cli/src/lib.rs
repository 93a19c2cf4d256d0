//! The command line, independent of a website: parses arguments, dispatches commands, prints results
//! and sets the exit status.
//!
//! Two programs have it. `wp-codebox` is this crate's own. `wp-codebox-platform` has the commands for
//! many hosts or users, too, and takes over when `wp-codebox` is called with one of them
//! ([`HandedOver`]). Both are clients of the supervisor, like the PHP extension, and also the programs
//! in which supervisors run.
//!
//! Data goes to standard output, messages go to standard error. The exit status follows from the
//! outcome of the run (see `contracts`) or, if there was no run, from the code of the error; it is
//! 1 for wrong usage.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

mod activation;
mod agents;
mod args;
mod artifacts;
mod bench;
mod boot;
mod code_file;
pub mod columns;
mod commands;
mod config;
mod daily;
mod doctor;
pub mod duration;
mod episode;
mod exec;
mod follow_up_args;
mod gc;
pub mod groups;
pub mod guest_args;
#[cfg(test)]
mod help_texts;
mod internal;
mod keys;
mod manual;
mod model;
mod mount;
mod network;
pub mod output;
mod phpunit;
pub mod placement;
mod platform;
mod preview;
mod preview_lease;
mod profile;
mod project;
mod recipe;
mod replay_package;
pub mod request;
mod run;
mod run_args;
mod runs;
mod sandbox;
mod schema;
mod sync;
mod tools;
mod trusted_key_args;
mod usage;
mod users;
mod wordpress;
mod workload;

pub use platform::{HandedOver, MoreCommands};

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use internal::Internal;
use output::Output;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::ffi::OsString;
use std::process::ExitCode;

/// Parses the command line of this process, runs the command and returns its exit status. `M` has the
/// commands that only the calling program has.
pub fn main<M: MoreCommands>() -> ExitCode {
    // This process has secrets in its memory and environment. A non-dumpable process cannot be
    // traced by other processes of the same user and writes no core files.
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return ExitCode::from(125);
    }
    wp_codebox_runs::supervisor::command_begins();
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(command) = Internal::read(&args) {
        return output::settled(command.run(M::placed_runs()));
    }
    M::take_over(&args);
    if let [_, only] = &args[..]
        && (only == "--version" || only == "-V")
    {
        // The parser of all commands takes longer than all the rest of this start.
        let output = Output::new(false);
        output.line(&format!("wp-codebox {}", env!("CARGO_PKG_VERSION")));
        return output::settled(ExitCode::SUCCESS);
    }
    let mut root = Cli::<M>::command();
    let (matches, output) = match usage::read(&mut root, &args) {
        Ok(read) => read,
        Err(answered) => return answered,
    };
    match Cli::<M>::from_arg_matches(&matches) {
        Ok(cli) => output::settled(dispatch(&output, cli)),
        Err(error) => usage::refused(&root, &args, error),
    }
}

fn dispatch<M: MoreCommands>(output: &Output, cli: Cli<M>) -> ExitCode {
    match cli.command {
        Command::Run(options) => run::run(output, *options),
        Command::Exec(options) => exec::main(output, *options),
        Command::Boot(options) => boot::boot(output, &options),
        Command::Phpunit(options) => phpunit::main(output, &options),
        Command::Recipe(command) => recipe::main(output, &command),
        Command::RecipeRun(options) => recipe::recipe_run(output, &options),
        Command::ValidateBlueprint(options) => recipe::validate_blueprint(output, &options),
        Command::RunWordpressWorkload(options) => workload::main(&options),
        Command::WorkspacePolicy(command) => recipe::workspace_policy(output, &command),
        Command::Artifacts(command) => artifacts::main(output, command),
        Command::Bench(command) => bench::main(output, &command),
        Command::MaterializeReplayPackage(options) => replay_package::main(output, &options),
        Command::Episode(command) => episode::main(output, &command),
        Command::AgentSandboxRun(options) => groups::single(output, &options),
        Command::AgentSandboxBatch(options) => groups::batch(output, &options),
        Command::AgentFanout(options) => groups::fanout(output, &options),
        Command::Sandbox(command) => sandbox::main(output, &command),
        Command::Profile(command) => profile::main(output, &command),
        Command::PreviewLease(command) => preview_lease::main(output, &command),
        Command::Runs(command) => runs::main(output, &command),
        Command::Agents(options) => agents::main(output, &options),
        Command::Tools(command) => tools::main(output, &command),
        Command::Commands(options) => commands::main(output, &options),
        Command::Schema(options) => schema::main(output, &options),
        Command::Doctor(options) => doctor::main(output, &options),
        Command::Config(options) => config::main(output, &options),
        Command::Users(command) => users::main(output, &command),
        Command::Wordpress(command) => wordpress::main(output, &command),
        Command::Up(options) => daily::up(output, *options),
        Command::Shell(options) => daily::shell(output, &options),
        Command::Wp(options) => daily::program(output, &options, daily::Program::Wp),
        Command::Php(options) => daily::program(output, &options, daily::Program::Php),
        Command::Test(options) => daily::test(output, &options),
        Command::Log(options) => daily::log(output, &options),
        Command::Diff(options) => daily::diff(output, &options),
        Command::Apply(options) => daily::apply(output, &options),
        Command::Undo(options) => daily::undo(output, &options),
        Command::Again(options) => daily::again(output, *options),
        Command::Sync(options) => sync::main(output, &options),
        Command::Recover(options) => runs::recover(output, &options),
        Command::Keys(command) => keys::main(output, &command),
        Command::Gc(options) => gc::main(output, &options),
        Command::Completion { shell } => manual::completion(output, &Cli::<M>::command(), shell),
        Command::Help { command } => usage::help(Cli::<M>::command(), &command),
        Command::Man(options) => manual::man(output, Cli::<M>::command(), &options),
        Command::Version => {
            output.line(env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Command::More(command) => command.run(output),
        Command::Internal(command) => command.run(M::placed_runs()),
    }
}
