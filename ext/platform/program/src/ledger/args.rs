//! Arguments of `ledger`. The doc comments are the help texts.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use wp_codebox_settings::PathArgs;

/// Subcommands of `ledger`.
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Give credits to an account. Creates the ledger if there is none.
    Grant(GrantArgs),
    /// Show the balance of an account, or of all accounts.
    Balance(BalanceArgs),
    /// List entries, oldest first.
    Entries(EntriesArgs),
    /// Verify all entries, the sums and the hash in the anchor file; exit status 1 if something is
    /// wrong.
    Verify(VerifyArgs),
    /// Write all entries as JSON lines or CSV.
    Export(ExportArgs),
    /// Validate a price table, or show the price of a sandbox.
    Prices(PricesArgs),
}

/// Heading of the options that name the files.
const HEADING: &str = "Files of the ledger";

/// Files of the ledger.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArgs {
    /// Database of the ledger. [default: <state>/ledger/ledger.sqlite]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub database: Option<PathBuf>,
    /// File with the hash of the last entry (anchor), best on another disk. [default:
    /// <state>/ledger-anchor/anchor.json]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub anchor: Option<PathBuf>,
    #[command(flatten)]
    pub paths: PathArgs,
}

/// Arguments of `ledger grant`.
#[derive(Debug, Args)]
#[command(after_help = "\
No payment is taken here: the command records that an account may use credits. A repeated call with \
the same reference, account and amount has no effect.

Examples:
  wp-codebox ledger grant shop 5000000 --reference invoice-7 \\
    --reason 'Budget of January'

Exit status: 0; 1 when another grant has the reference or the ledger is damaged; 125 when the \
ledger cannot be written.")]
pub(crate) struct GrantArgs {
    /// Name of the account.
    #[arg(value_name = "ACCOUNT")]
    pub account: String,
    /// Credits, in the smallest unit of the price table, at most 9007199254740991.
    #[arg(value_name = "AMOUNT", value_parser = clap::value_parser!(u64).range(1..=9_007_199_254_740_991))]
    pub amount: u64,
    /// Reference of the grant, such as an invoice number.
    #[arg(long, value_name = "ID")]
    pub reference: String,
    /// Why the account gets the credits.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Name of the user or program that gives them.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub actor: String,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `ledger balance`.
#[derive(Debug, Args)]
#[command(after_help = "\
available = granted - settled (charged for ended sandboxes) - reserved (for running ones). With \
--json the output is wp-codebox/ledger-balance/v1.

Examples:
  wp-codebox ledger balance
  wp-codebox ledger balance shop --json | jq '.accounts[0].available'

Exit status: 0, also for an account without entries; 1 when the ledger is damaged; 125 when there \
is none.")]
pub(crate) struct BalanceArgs {
    /// Name of the account. [default: all accounts]
    #[arg(value_name = "ACCOUNT")]
    pub account: Option<String>,
    /// Only accounts after this name.
    #[arg(long, value_name = "ACCOUNT", conflicts_with = "account")]
    pub after: Option<String>,
    /// Number of accounts, at most 1000.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `ledger entries`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --json the output is wp-codebox/ledger-entry-list/v1.

Examples:
  wp-codebox ledger entries
  wp-codebox ledger entries --after 200 --json

Exit status: 0; 1 when the ledger is damaged; 125 when there is none.")]
pub(crate) struct EntriesArgs {
    /// Only entries after this number.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub after: u64,
    /// Number of entries, at most 1000.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `ledger verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
The output has the number of entries and the hash of the last one, as NUMBER:HASH. Store them on \
another host: a later call with --known reveals that database and anchor were both replaced. With \
--json the output is wp-codebox/ledger-verification/v1.

Examples:
  wp-codebox ledger verify
  wp-codebox ledger verify --known \"$(ssh backup cat ledger-head)\"

Exit status: 0 the ledger is valid; 1 it is not; 125 when there is no ledger.")]
pub(crate) struct VerifyArgs {
    /// Entry that an earlier `ledger verify` printed, which must still exist; may be repeated.
    #[arg(long, value_name = "NUMBER:HASH")]
    pub known: Vec<String>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Format of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    // The values have plain comments: with doc comments clap would print the long help of every
    // option.
    //
    // One entry in JSON per line.
    #[default]
    JsonLines,
    // Comma-separated values with a line of column names.
    Csv,
}

/// Arguments of `ledger export`.
#[derive(Debug, Args)]
#[command(after_help = "\
A line of JSON is wp-codebox/ledger-entry/v1. In CSV an apostrophe precedes a text that a \
spreadsheet would take for a formula.

Examples:
  wp-codebox ledger export >entries.jsonl
  wp-codebox ledger export --format csv >entries.csv

Exit status: 0; 1 when the ledger is damaged or the output cannot be written; 125 when there is no \
ledger.")]
pub(crate) struct ExportArgs {
    /// Format of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: FormatArg,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print errors in JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `ledger prices`.
#[derive(Debug, Args)]
#[command(after_help = "\
A price table is a JSON file, wp-codebox/meter-prices/v1. With --extension the command prints the \
price of one sandbox, with --json as wp-codebox/meter-quote/v1.

Examples:
  wp-codebox ledger prices --prices ./meter-prices.json
  wp-codebox ledger prices --extension native --duration 2h --json

Exit status: 0; 1 when the table is not valid or has no price for the extension.")]
pub(crate) struct PricesArgs {
    /// Price table. [default: <state>/meter-prices.json]
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Extension (kind of sandbox) whose price is shown.
    #[arg(long, value_name = "NAME", requires = "duration")]
    pub extension: Option<String>,
    /// Lifetime of the sandbox, such as 90s, 15m or 4h.
    #[arg(long, value_name = "DURATION", requires = "extension")]
    pub duration: Option<String>,
    /// The sandbox has a GPU.
    #[arg(long, requires = "extension")]
    pub gpu: bool,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}
