//! `wp-codebox`: the command-line program, independent of a website. Parses arguments, dispatches
//! commands, prints results and sets the exit status.
//!
//! It is a client of the supervisor, like the PHP extension, and also the program in which
//! supervisors run.
//!
//! Data goes to standard output, messages go to standard error. The exit status follows from the
//! outcome of the run (see `contracts`) or, if there was no run, from the code of the error; it is
//! 1 for wrong usage.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

mod accounts;
mod activation;
mod agents;
mod applying;
mod args;
mod artifacts;
mod bench;
mod boot;
mod bundle_directory;
mod cancel;
mod child;
mod cluster;
mod code_file;
mod columns;
mod commands;
mod daily;
mod doctor;
mod duration;
mod episode;
mod evidence;
mod exec;
mod follow_up_args;
mod gc;
mod git_branch;
mod groups;
mod guest_args;
mod internal;
mod keys;
mod ledger;
mod live;
mod manual;
mod model;
mod mount;
mod network;
mod node;
mod output;
mod phpunit;
mod placement;
mod preview;
mod preview_lease;
mod profile;
mod project;
mod recipe;
mod recipe_request;
mod replay_package;
mod request;
mod run;
mod run_args;
mod runs;
mod sandbox;
mod schema;
mod serve;
mod settings;
mod signals;
mod site_change;
mod supervisor;
mod sync;
mod syntax;
mod tools;
mod usage;
mod user_state;
mod users;
mod wordpress;
mod workload;

use args::{Cli, Command};
use clap::CommandFactory;
use internal::Internal;
use output::Output;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use settings::Settings;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // This process has secrets in its memory and environment. A non-dumpable process cannot be
    // traced by other processes of the same user and writes no core files.
    if set_dumpable_behavior(DumpableBehavior::NotDumpable).is_err() {
        return ExitCode::from(125);
    }
    answer(std::env::args_os())
}

/// Parses the command line, runs the command and returns its exit status.
fn answer(args: impl Iterator<Item = OsString>) -> ExitCode {
    supervisor::command_begins();
    let args: Vec<OsString> = args.collect();
    if let Some(command) = Internal::read(&args) {
        return output::settled(command.run());
    }
    let (cli, output) = match usage::read(&args) {
        Ok(read) => read,
        Err(answered) => return answered,
    };
    output::settled(dispatch(&output, cli))
}

fn dispatch(output: &Output, cli: Cli) -> ExitCode {
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
        Command::Serve(options) => serve::main(output, &options),
        Command::Token(command) => serve::token(output, &command),
        Command::Profile(command) => profile::main(output, &command),
        Command::Ledger(command) => ledger::main(output, &command),
        Command::Cluster(command) => cluster::main(output, &command),
        Command::PreviewLease(command) => preview_lease::main(output, &command),
        Command::Runs(command) => runs::main(output, &command),
        Command::Agents(options) => agents::main(output, &options),
        Command::Node(options) => node::main(output, &options),
        Command::Tools(command) => tools::main(output, &command),
        Command::Commands(options) => commands::main(output, &options),
        Command::Schema(options) => schema::main(output, &options),
        Command::Doctor(options) => doctor::main(output, &options),
        Command::Config(options) => settings::config(output, &options),
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
        Command::Completion { shell } => manual::completion(output, &Cli::command(), shell),
        Command::Help { command } => usage::help(&command),
        Command::Man(options) => manual::man(output, Cli::command(), &options),
        Command::Version => {
            output.line(env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Command::Internal(command) => command.run(),
    }
}
