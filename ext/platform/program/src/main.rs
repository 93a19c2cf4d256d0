//! `wp-codebox-platform`: the program of operators of many hosts or users. It has all commands of
//! `wp-codebox`, and the HTTP service, the tokens, the node and the message server of a cluster, and the
//! ledger. `wp-codebox` hands these commands over to it, and each run that has a placement.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

mod cluster;
#[cfg(test)]
#[path = "../../../shell/cli/src/help_texts.rs"]
mod help_texts;
mod ledger;
mod node;
mod placer;
mod serve;

use clap::Subcommand;
use std::ffi::OsString;
use std::process::ExitCode;
use wp_codebox_cli::MoreCommands;
use wp_codebox_cli::output::Output;
use wp_codebox_supervisor::PlacedRuns;

/// The commands that only this program has.
#[derive(Debug, Subcommand)]
enum Commands {
    /// Serve sandboxes, runs and artifacts of this machine over HTTP.
    Serve(Box<serve::ServeArgs>),
    /// Run tasks of a cluster on this host.
    Node(Box<node::NodeArgs>),
    /// Create, list and revoke tokens of `serve`.
    #[command(subcommand)]
    Token(serve::TokenCommand),
    /// Grant credits for sandboxes, show balances and prices, verify and export the ledger.
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// Set up a message server for a cluster, print the permissions of accounts, and list nodes.
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
}

impl MoreCommands for Commands {
    fn take_over(_: &[OsString]) {}

    fn run(self, output: &Output) -> ExitCode {
        match self {
            Self::Serve(options) => serve::main(output, &options),
            Self::Node(options) => node::main(output, &options),
            Self::Token(command) => serve::token(output, &command),
            Self::Ledger(command) => ledger::main(output, &command),
            Self::Cluster(command) => cluster::main(output, &command),
        }
    }

    fn placed_runs() -> PlacedRuns<'static> {
        PlacedRuns::Sent(&placer::ClusterPlacer)
    }
}

fn main() -> ExitCode {
    wp_codebox_cli::main::<Commands>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_cli::HandedOver;

    fn root() -> clap::Command {
        let program = clap::Command::new("wp-codebox").about("Test");
        Commands::augment_subcommands(program.disable_help_subcommand(true))
    }

    #[test]
    fn every_help_text_has_examples_and_the_exit_status_and_its_indented_lines_fit_80_columns() {
        assert!(help_texts::check(root()) > 10);
    }

    #[test]
    fn wp_codebox_lists_these_commands_with_the_same_descriptions() {
        let rows = |root: clap::Command| -> Vec<_> {
            let row = |c: &clap::Command| {
                (
                    c.get_name().to_owned(),
                    c.get_about().map(ToString::to_string),
                )
            };
            root.get_subcommands().map(row).collect()
        };
        let listed = HandedOver::augment_subcommands(clap::Command::new("wp-codebox"));
        assert_eq!(rows(listed), rows(root()));
    }
}
