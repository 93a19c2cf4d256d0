//! Arguments of `runs`. The doc comments are the help texts.

use crate::output::AgentOutput;
use crate::settings::PathArgs;
use clap::{Args, Subcommand, ValueEnum};
use wp_codebox_contracts::RunStatus;

/// Subcommands of `runs`.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first.
    List(ListArgs),
    /// Show the state of one run: queued to terminal, whether it can be cancelled, what it left.
    #[command(after_help = "\
With --json the answer is wp-codebox/run-registry-entry/v1 with wp-codebox/run-lifecycle/v1 in \
it.

Examples:
  wp-codebox runs status run_1f
  wp-codebox runs status run_1f --json | jq .lifecycle.terminal

Exit status: 0, whatever the run came to; 1 when no run or more than one matches; 125 when the \
state directory cannot be used.")]
    Status(OneArgs),
    /// Show one run, with its result when it came to one.
    #[command(after_help = "\
Examples:
  wp-codebox runs get run_1f --json

Exit status: 0; 1 when no run or more than one matches; 125 when the state directory cannot be \
used.")]
    Get(OneArgs),
    /// Show what happened in a run, and what happens.
    Events(EventsArgs),
    /// Ask a run to stop; what its guest did is saved, as far as it got.
    Cancel(CancelArgs),
    /// Print the path of the control socket of a run that is alive.
    #[command(after_help = "\
Events, live calls and a request to stop are heard there, by the owner of the state directory and \
by root. The path fits into the address of a socket: where the run's own does not, it is a link \
in a private directory, $XDG_RUNTIME_DIR/wp-codebox-UID or /tmp/wp-codebox-UID.

With --json the answer is wp-codebox/run-socket/v1.

Examples:
  socket=$(wp-codebox runs socket run_1f)
  curl -sN --unix-socket \"$socket\" http://sandbox/events
  wp-codebox runs socket run_1f --json | jq -r .path

Exit status: 0; 1 when the run has ended, no run or more than one matches; 125 when the state \
directory cannot be used or the link cannot be made.")]
    Socket(OneArgs),
    /// List the mails that a run's guests sent, or show one; nothing of them left the sandbox.
    Mail(MailArgs),
    /// List the files of a run's bundle.
    #[command(after_help = "\
With --json the answer is wp-codebox/run-artifacts/v1. Nothing is verified by this.

Examples:
  wp-codebox runs artifacts run_1f
  wp-codebox artifacts verify --bundle \\
    \"$(wp-codebox runs artifacts run_1f --json | jq -r .bundle.directory)\"

Exit status: 0, also when there is no bundle; 1 when no run or more than one matches; 125 when \
the state directory cannot be used.")]
    Artifacts(OneArgs),
}

/// Where runs are looked for.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Only this partition of the state directory. [default: every one]
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
    /// Id of the run, or a prefix that only it has.
    #[arg(value_name = "RUN")]
    pub run: String,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `runs mail`.
#[derive(Debug, Args)]
#[command(after_help = "\
Of a run that has ended the mails are read from its bundle, of a sandbox that is held from \
itself; another run shows them when it has ended. With --json the answer is \
wp-codebox/run-mail/v1.

Examples:
  wp-codebox runs mail run_1f
  wp-codebox runs mail run_1f 2
  wp-codebox runs mail run_1f 2 --raw >mail.eml

Exit status: 0, also when there is no mail; 1 when no run or more than one matches, there is no \
mail with this number, or the run goes on and is not held; 125 when the state directory cannot be \
used.")]
pub(crate) struct MailArgs {
    #[command(flatten)]
    pub one: OneArgs,
    /// Number of a mail of the list.
    #[arg(value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub number: Option<u32>,
    /// Print the message as it is kept, headers included.
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
With --json the answer is wp-codebox/run-registry/v1.

Examples:
  wp-codebox runs list --status running
  wp-codebox runs list --site cli --limit 200 --offset 200 --json

Exit status: 0, also when there is none; 125 when the state directory cannot be used.")]
pub(crate) struct ListArgs {
    /// Only runs of this status.
    #[arg(long, value_enum)]
    pub status: Option<StatusArg>,
    /// Rows at most, 200 at most.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub limit: u16,
    /// Rows passed over.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub offset: usize,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Words of the answer with --json.
    #[arg(long, value_enum, default_value_t, hide = true)]
    pub form: FormArg,
}

/// Words of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormArg {
    /// Of the run registry.
    #[default]
    Registry,
    /// As the extension and the abilities answer.
    View,
}

/// Arguments of `runs cancel`.
#[derive(Debug, Args)]
#[command(after_help = "\
Who asked first, when and why stays in the run's record. With --json the answer is \
wp-codebox/run-cancellation-request/v1.

Examples:
  wp-codebox runs cancel run_1f
  wp-codebox runs cancel run_1f --reason 'the issue was closed'

Exit status: 0, also when the run had ended or was cancelled before; 1 when no run or more than \
one matches; 125 when the state directory cannot be used or the run does not answer.")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub one: OneArgs,
    /// Why, one sentence; secrets of the run are taken out of it.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Who asks, in a few words; recorded only.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub actor: String,
    /// Words of the answer with --json.
    #[arg(long, value_enum, default_value_t, hide = true)]
    pub form: FormArg,
}

/// Arguments of `runs events`.
#[derive(Debug, Args)]
#[command(after_help = "\
A stream that broke off goes on where it was with --after and the number of the last event (in \
server-sent events: its id). --follow ends with the run, and with Ctrl-C.

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
    /// Events at most, 1000 at most; with --follow of each page.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,
    /// Go on until the run has ended. With --json each page is one line.
    #[arg(long)]
    pub follow: bool,
    /// How events are written. [default: lines for people; with --json pages]
    #[arg(long, value_enum, conflicts_with = "json")]
    pub format: Option<EventFormat>,
    /// How lines of an agent's JSON protocol are printed for people; --json and --format have both.
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub agent_output: AgentOutput,
    /// In whose names: the journal's own, or those of an event bus (AGENT_EXEC_CMD,
    /// RUNTIME_OUTPUT, RUNTIME_EXIT, RUNTIME_READY, SYSTEM_FILE_SYNC), which hears less.
    #[arg(long, value_enum, default_value_t, requires = "format")]
    pub projection: Projection,
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventFormat {
    /// One JSON object a line.
    JsonLines,
    /// Server-sent events, their id the number in the journal.
    Sse,
}

/// In whose names events are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Projection {
    /// The journal's own.
    #[default]
    Journal,
    /// An event bus's.
    Bus,
}
