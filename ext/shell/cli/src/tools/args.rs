//! Arguments of `wp-codebox tools`. The doc comments are the help texts.

use clap::{Args, Subcommand};
use std::path::PathBuf;
use wp_codebox_contracts::{ErrorBody, ErrorCode, WasiToolId};
use wp_codebox_settings::PathArgs;

/// Subcommands of `tools`.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Register a WASI tool: its definition and its module.
    Add(AddArgs),
    /// List the registered WASI tools.
    List(ListArgs),
    /// Remove a WASI tool. Runs that use it go on.
    Remove(RemoveArgs),
    /// Run a WASI tool on a copy of a directory and print what it would change.
    Run(RunArgs),
}

/// Arguments of `tools add`.
#[derive(Debug, Args)]
#[command(after_help = "\
The definition names the module by its SHA-256; docs/wasi-tools.md describes its members. The tool \
is copied into the state directory and compiled. Built-in agents of later runs get it, unless \
their tool policy leaves it out.

Examples:
  wp-codebox tools add --definition css.lint.json --module css.lint.wasm

Exit status: 0 registered; 1 the definition or the module is not valid, or the id is taken; 125 \
the program wp-codebox-wasi is missing or the registry cannot be written; 126 the module imports \
what it is not granted.")]
pub(crate) struct AddArgs {
    /// Definition of the tool, schema wp-codebox/wasi-tool/v1.
    #[arg(long, value_name = "FILE")]
    pub definition: PathBuf,
    /// Module: a WASI command module or component.
    #[arg(long, value_name = "FILE")]
    pub module: PathBuf,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tools list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox tools list
  wp-codebox tools list --json | jq -r '.tools[].id'

Exit status: 0, also when there is none; 1 when a registered tool cannot be trusted; 125 when the \
registry cannot be read.")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tools remove`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox tools remove css.lint

Exit status: 0 removed; 1 no such tool; 125 the registry cannot be written.")]
pub(crate) struct RemoveArgs {
    /// Id of the tool.
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Process wrapper of the runner on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Wrapper {
    // The values have plain comments: with doc comments clap would print the long help of every
    // option.
    //
    // The runner alone isolates the module.
    None,
    // A namespace sandbox.
    Bubblewrap,
    // A kernel in user space.
    Gvisor,
    // A guest like those of runs.
    Launcher,
}

impl From<Wrapper> for wp_codebox_wasi_tools::Wrapper {
    fn from(wrapper: Wrapper) -> Self {
        match wrapper {
            Wrapper::None => Self::None,
            Wrapper::Bubblewrap => Self::Bubblewrap,
            Wrapper::Gvisor => Self::Gvisor,
            Wrapper::Launcher => Self::Launcher,
        }
    }
}

/// Arguments of `tools run`.
#[derive(Debug, Args)]
#[command(after_help = "\
The tool sees a copy of the directory at /work. Its answer is printed first, then its changes as a \
patch; --write also writes them to the directory if the tool succeeds, unless a file \
to change was changed meanwhile.

Examples:
  wp-codebox tools run css.lint --dir . -- '{\"path\": \"/work/style.css\"}'
  wp-codebox tools run css.fix --dir . --wrapper launcher --write

Exit status: that of the tool; 1 an error before the start, a limit of the tool is reached, or the \
changes cannot be written; 124 the tool reached its time limit; 125 the program wp-codebox-wasi or \
the wrapper is missing, or the wrapper cannot isolate on this host.")]
pub(crate) struct RunArgs {
    /// Id of the tool.
    #[arg(value_name = "ID")]
    pub id: String,
    /// Directory that the tool reads or changes, as its definition says.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Sandbox around the program that runs the tool.
    #[arg(long, value_name = "KIND", value_enum, default_value = "none")]
    pub wrapper: Wrapper,
    /// Write the changes to the directory.
    #[arg(long, requires = "dir")]
    pub write: bool,
    /// Arguments of the tool as one JSON object. [default: {}]
    #[arg(last = true, value_name = "JSON")]
    pub arguments: Option<String>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Parses the id of a tool.
pub(super) fn id(text: &str) -> Result<WasiToolId, ErrorBody> {
    WasiToolId::new(text).map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, e.to_string()))
}
