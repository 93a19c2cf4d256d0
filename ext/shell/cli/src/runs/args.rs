//! Arguments of `runs`. The doc comments are the help texts.

use crate::output::AgentOutput;
use clap::{Args, Subcommand, ValueEnum};
use wp_codebox_contracts::RunStatus;
use wp_codebox_settings::PathArgs;

/// Subcommands of `runs`.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first.
    List(ListArgs),
    /// Show the state of one run: status, whether it can be cancelled, its artifacts.
    #[command(after_help = "\
With --json the output is wp-codebox/run-registry-entry/v1, which contains \
wp-codebox/run-lifecycle/v1.

Examples:
  wp-codebox runs status run_1f
  wp-codebox runs status run_1f --json | jq .lifecycle.terminal
  wp-codebox runs status --registry /srv/state --run-id run_1f --json

--registry and --run-registry are other spellings of --state.

Exit status: 0 for any outcome of the run; 1 when no run or more than one matches; 125 when the \
state directory cannot be used.")]
    Status(OneArgs),
    /// Show one run, with its result if it has one.
    #[command(after_help = "\
Examples:
  wp-codebox runs get run_1f --json

Exit status: 0; 1 when no run or more than one matches; 125 when the state directory cannot be \
used.")]
    Get(OneArgs),
    /// Show the events of a run, and follow new ones with --follow.
    Events(EventsArgs),
    /// Cancel a run; the changes made so far are saved.
    Cancel(CancelArgs),
    /// Print the path of the control socket of a running run.
    #[command(after_help = "\
The socket accepts event streams, requests to the sandbox and cancel requests from the owner of the \
state directory and from root. If the run's own path is too long for a socket address, the printed \
path is a symbolic link in a private directory, $XDG_RUNTIME_DIR/wp-codebox-UID or \
/tmp/wp-codebox-UID.

With --json the output is wp-codebox/run-socket/v1.

Examples:
  socket=$(wp-codebox runs socket run_1f)
  curl -sN --unix-socket \"$socket\" http://sandbox/events
  wp-codebox runs socket run_1f --json | jq -r .path

Exit status: 0; 1 when the run has ended, no run or more than one matches; 125 when the state \
directory cannot be used or the link cannot be made.")]
    Socket(OneArgs),
    /// List the mails that a run's guests sent, or show one; no mail left the sandbox.
    Mail(MailArgs),
    /// List the files of a run's bundle.
    #[command(after_help = "\
With --json the output is wp-codebox/run-artifacts/v1. This command does not verify the files.

Examples:
  wp-codebox runs artifacts run_1f
  wp-codebox artifacts verify --bundle \\
    \"$(wp-codebox runs artifacts run_1f --json | jq -r .bundle.directory)\"

Exit status: 0, also when there is no bundle; 1 when no run or more than one matches; 125 when \
the state directory cannot be used.")]
    Artifacts(OneArgs),
}

/// Location of the runs.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Search only this part of the state directory, sites/ID. [default: all parts]
    #[arg(long, value_name = "ID")]
    pub site: Option<String>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// One run.
#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// Id of the run or a unique prefix of the id.
    #[arg(
        value_name = "RUN",
        required_unless_present = "run_id",
        conflicts_with = "run_id"
    )]
    run: Option<String>,
    /// Id of the run, as an option.
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

impl OneArgs {
    /// Returns the id of the run or the prefix of the id.
    pub(crate) fn run(&self) -> &str {
        let given = self.run.as_deref().or(self.run_id.as_deref());
        // The argument parser requires one of them.
        given.unwrap_or_default()
    }
}

/// Arguments of `runs mail`.
#[derive(Debug, Args)]
#[command(after_help = "\
The mails are read from the bundle of an ended run or from a sandbox that is kept running after its \
work (held); for any other running run they are available after its end. With --json the output is \
wp-codebox/run-mail/v1.

Examples:
  wp-codebox runs mail run_1f
  wp-codebox runs mail run_1f 2
  wp-codebox runs mail run_1f 2 --raw >mail.eml

Exit status: 0, also when there is no mail; 1 when no run or more than one matches, there is no \
mail with this number, or the run is running and not held; 125 when the state directory cannot be \
used.")]
pub(crate) struct MailArgs {
    #[command(flatten)]
    pub one: OneArgs,
    /// Number of a mail in the list.
    #[arg(value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub number: Option<u32>,
    /// Print the stored message including its headers.
    #[arg(long, requires = "number", conflicts_with = "json")]
    pub raw: bool,
}

/// Status of a run.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum StatusArg {
    Running,
    Ended,
}

impl From<StatusArg> for RunStatus {
    fn from(status: StatusArg) -> Self {
        match status {
            StatusArg::Running => Self::Running,
            StatusArg::Ended => Self::Ended,
        }
    }
}

/// Arguments of `runs list`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --json the output is wp-codebox/run-registry/v1.

Examples:
  wp-codebox runs list --status running
  wp-codebox runs list --site cli --limit 200 --offset 200 --json

A run that cannot be read is listed apart, with the cause (unreadable), and stays as it is.

Exit status: 0, also when there is none; 1 when a run cannot be read; 125 when the state directory \
cannot be used.")]
pub(crate) struct ListArgs {
    /// List only runs with this status.
    #[arg(long, value_enum)]
    pub status: Option<StatusArg>,
    /// Number of rows, at most 200.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub limit: u16,
    /// Number of rows to skip.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub offset: usize,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Format of the output with --json.
    #[arg(long, value_enum, default_value_t, hide = true)]
    pub form: FormArg,
    /// List only runs that the WordPress user with this id requested, in the format `view`.
    #[arg(long, value_name = "ID", hide = true)]
    pub requester: Option<u64>,
    /// List only those of these runs whose id begins with this text.
    #[arg(
        long,
        value_name = "START",
        hide = true,
        requires = "requester",
        default_value = ""
    )]
    pub prefix: String,
}

/// Format of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormArg {
    /// Documents of the run registry.
    #[default]
    Registry,
    /// The documents that the PHP extension and the abilities return for a run.
    View,
}

/// Arguments of `runs cancel`.
#[derive(Debug, Args)]
#[command(after_help = "\
The run's record stores the first actor, time and reason. With --json the output is \
wp-codebox/run-cancellation-request/v1.

Examples:
  wp-codebox runs cancel run_1f
  wp-codebox runs cancel run_1f --reason 'the issue was closed'

Exit status: 0, also when the run had ended or was cancelled before; 1 when no run or more than \
one matches; 125 when the state directory cannot be used or the run does not answer.")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub one: OneArgs,
    /// Reason in one sentence; secrets of the run are redacted.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Name of the user or program that makes the request; for the record only.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub actor: String,
    /// Format of the output with --json.
    #[arg(long, value_enum, default_value_t, hide = true)]
    pub form: FormArg,
}

/// Arguments of `runs events`.
#[derive(Debug, Args)]
#[command(after_help = "\
To resume an interrupted stream, pass the number of the last event to --after (in server-sent \
events: its id). --follow stops at the end of the run or with Ctrl-C.

Examples:
  wp-codebox runs events run_1f --after 20
  wp-codebox runs events run_1f --follow
  wp-codebox runs events run_1f --follow --format json-lines | jq -r .type
  wp-codebox runs events run_1f --follow --format sse --projection bus

Exit status: 0; 130 after Ctrl-C; 1 when no run or more than one matches; 125 when the state \
directory cannot be used.")]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub one: OneArgs,
    /// Only events after this number.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub after: u64,
    /// Number of events, at most 1000; with --follow, per page.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,
    /// Continue until the run has ended. With --json each page is one line.
    #[arg(long)]
    pub follow: bool,
    /// Format of events. [default: lines for people; with --json pages]
    #[arg(long, value_enum, conflicts_with = "json")]
    pub format: Option<EventFormat>,
    /// Form of an agent's JSON protocol lines in output for people; --json and --format contain
    /// both.
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub agent_output: AgentOutput,
    /// Event names: those of the journal, or those of an event bus (AGENT_EXEC_CMD, RUNTIME_OUTPUT,
    /// RUNTIME_EXIT, RUNTIME_READY, SYSTEM_FILE_SYNC), which has fewer events.
    #[arg(long, value_enum, default_value_t, requires = "format")]
    pub projection: Projection,
}

/// Format of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventFormat {
    /// One JSON object per line.
    JsonLines,
    /// Server-sent events; their id is the number in the journal.
    Sse,
}

/// Naming scheme of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Projection {
    /// Names of the journal.
    #[default]
    Journal,
    /// Names of the event bus.
    Bus,
}
