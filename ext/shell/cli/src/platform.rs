//! Commands and runs that only the program `wp-codebox-platform` can execute: this module finds it and
//! hands over to it.

use crate::output::Output;
use clap::{Args, Subcommand};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_supervisor::PlacedRuns;

/// Name of the program.
const PROGRAM: &str = "wp-codebox-platform";

/// The commands of a program beyond those of this crate, and what its supervisors do with runs for
/// other hosts.
pub trait MoreCommands: Subcommand {
    /// Replaces this process by another program, if that one executes this command line.
    fn take_over(args: &[OsString]);

    /// Runs the command and returns its exit status.
    fn run(self, output: &Output) -> ExitCode;

    /// Returns what supervisors of this program do with runs for other hosts.
    fn placed_runs() -> PlacedRuns<'static>;
}

/// The commands of `wp-codebox-platform`, as `wp-codebox` lists them.
#[derive(Debug, Subcommand)]
pub enum HandedOver {
    /// Serve sandboxes, runs and artifacts of this machine over HTTP.
    Serve(Rest),
    /// Run tasks of a cluster on this host.
    Node(Rest),
    /// Create, list and revoke tokens of `serve`.
    Token(Rest),
    /// Grant credits for sandboxes, show balances and prices, verify and export the ledger.
    Ledger(Rest),
    /// Set up a message server for a cluster, print the permissions of accounts, and list nodes.
    Cluster(Rest),
}

/// Arguments of a command that `wp-codebox-platform` parses.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
The program wp-codebox-platform executes this command; the package of the same name has it.

Examples:
  wp-codebox serve --help

Exit status: that of the program; 1 if it is not installed."
)]
pub struct Rest {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl HandedOver {
    fn parts(&self) -> (&'static str, &Rest) {
        match self {
            Self::Serve(rest) => ("serve", rest),
            Self::Node(rest) => ("node", rest),
            Self::Token(rest) => ("token", rest),
            Self::Ledger(rest) => ("ledger", rest),
            Self::Cluster(rest) => ("cluster", rest),
        }
    }
}

impl MoreCommands for HandedOver {
    /// The program also prints help, manual and completions, because it has all commands.
    fn take_over(args: &[OsString]) {
        let first = args.get(1).and_then(|first| first.to_str());
        let is_theirs = |name: &str| {
            Self::has_subcommand(name) || ["help", "man", "completion"].contains(&name)
        };
        if first.is_some_and(is_theirs)
            && let Some(program) = program()
        {
            // Usage texts show the name by which this program was called.
            let name = args.first().map_or(OsStr::new(""), OsString::as_os_str);
            let error = Command::new(&program)
                .arg0(name)
                .args(args.iter().skip(1))
                .exec();
            // The command then fails as it does without the program, and the reason is this one.
            Output::new(false).note(&format!("{}: {error}", program.display()));
        }
    }

    fn run(self, _: &Output) -> ExitCode {
        let (name, rest) = self.parts();
        let asks_for_json = rest.arguments.iter().any(|argument| argument == "--json");
        let error = ErrorBody::new(
            ErrorCode::InputInvalid,
            format!("`wp-codebox {name}` needs the program {PROGRAM}, which is not installed"),
        )
        .hint(format!(
            "install the package {PROGRAM}, or put the program beside wp-codebox"
        ));
        Output::new(asks_for_json).failure(name, &error)
    }

    fn placed_runs() -> PlacedRuns<'static> {
        PlacedRuns::HandedOver(program)
    }
}

/// Returns the path of the program: beside this one, else where the package has it.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(PROGRAM)));
    let mut places = beside
        .into_iter()
        .chain([Path::new("/usr/libexec").join(PROGRAM)]);
    places.find(|place| place.is_file())
}
