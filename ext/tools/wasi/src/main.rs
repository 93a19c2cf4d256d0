//! `wp-codebox-wasi`: runs WASI tools, which are WebAssembly modules with a definition.
//!
//! A call gives the tool its input, its output and the named directories, and nothing else. Exit
//! status of `run`: 0 to 123 from the module; 124 at the deadline and 125 at every other error, and
//! then the last line of standard error is one JSON object with code, message, hints and data. A
//! module cannot fake the status 124 or 125: if it exits with more than 123, that is a separate
//! error.
//!
//! The runtime is the first boundary around a tool. The second one is the guest in which an agent's
//! tools run, or the process wrapper around this program on the host.
#![deny(unsafe_code)]

mod code;
mod deadline;
mod directory;
mod engine;
mod error;
mod host;
mod imports;
mod output;
mod run;
mod tool;

use clap::{Args, Parser, Subcommand};
use code::Code;
use deadline::Deadline;
use directory::Directory;
use error::RunnerError;
use output::BoundedOutput;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use wasmtime::Engine;
use wp_codebox_contracts::CodedError;

/// Time for `compile` in milliseconds. The cost of a compiler pass may grow faster than the module.
const COMPILE_MS: u64 = 300_000;

/// Runs WASI tools.
#[derive(Debug, Parser)]
#[command(name = "wp-codebox-wasi", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks a module and writes its compiled code.
    Compile {
        #[command(flatten)]
        tool: ToolFiles,
        /// File to write.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Prints the key of this runner: it can load only code compiled with the same key.
    Engine,
    /// Runs a tool with the standard input and output of this process.
    Run {
        #[command(flatten)]
        tool: ToolFiles,
        /// Compiled code of the module, which is not checked again: it must belong to root or to
        /// this process's user, and no other user may be able to write it.
        #[arg(long, value_name = "FILE")]
        compiled: Option<PathBuf>,
        /// Directory that the tool sees, such as `/srv/plugin=/work:ro`.
        #[arg(long = "dir", value_name = "HOST_DIR=GUEST_PATH:ro|rw")]
        directories: Vec<Directory>,
        /// Write the exit status of the tool as the last line of standard error, as {"exit":N}. A
        /// caller that starts this program inside a process wrapper can tell it from the status of
        /// a wrapper that failed.
        #[arg(long)]
        confirm: bool,
        /// Arguments of the module.
        #[arg(last = true, value_name = "ARG")]
        args: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct ToolFiles {
    /// Definition of the tool, a JSON file.
    #[arg(long, value_name = "FILE")]
    definition: PathBuf,
    /// Module of the tool, a WebAssembly file.
    #[arg(long, value_name = "FILE")]
    module: PathBuf,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nothing is left to report a failed write to.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 125 } else { 0 });
        }
    };
    match execute(arguments.command) {
        Ok(status) => ExitCode::from(status),
        Err((error, line_start)) => {
            report(&error, line_start);
            ExitCode::from(error.exit_status())
        }
    }
}

/// Writes an error as the last line of standard error.
fn report(error: &RunnerError, line_start: bool) {
    last_line(
        line_start,
        &serde_json::to_string(&error.body()).unwrap_or_default(),
    );
}

fn exit_line(status: u8) -> String {
    format!("{{\"exit\":{status}}}")
}

fn last_line(line_start: bool, line: &str) {
    let before = if line_start { "" } else { "\n" };
    // A write error is ignored: without a reader of standard error, the exit status must suffice.
    let _ = writeln!(std::io::stderr(), "{before}{line}");
}

/// Executes a command. An error says also whether standard error is at the start of a line.
fn execute(command: Command) -> Result<u8, (RunnerError, bool)> {
    let at_start = |error| (error, true);
    let engine = engine::engine().map_err(at_start)?;
    match command {
        Command::Engine => print_key(&engine).map(|()| 0).map_err(at_start),
        Command::Compile { tool, out } => {
            compile(&engine, &tool, &out).map(|()| 0).map_err(at_start)
        }
        Command::Run {
            tool,
            compiled,
            directories,
            confirm,
            args,
        } => {
            let confirmed = |stderr: &BoundedOutput, status| {
                if confirm {
                    last_line(stderr.at_line_start().unwrap_or(false), &exit_line(status));
                }
            };
            run(&engine, &tool, compiled, &directories, &args, confirmed)
        }
    }
}

fn print_key(engine: &Engine) -> Result<(), RunnerError> {
    writeln!(std::io::stdout(), "{}", engine::key(engine))
        .map_err(RunnerError::while_doing("writing to standard output"))
}

fn compile(engine: &Engine, files: &ToolFiles, out: &std::path::Path) -> Result<(), RunnerError> {
    let tool = tool::read(&files.definition, &files.module)?;
    let _deadline = Deadline::start(engine, COMPILE_MS, |error| {
        report(&error, true);
        std::process::exit(i32::from(error.exit_status()));
    })?;
    let compiled = code::compile(engine, &tool)?;
    code::write(engine, &tool, &compiled, out)
}

fn run(
    engine: &Engine,
    files: &ToolFiles,
    compiled: Option<PathBuf>,
    directories: &[Directory],
    args: &[String],
    confirmed: impl FnOnce(&BoundedOutput, u8),
) -> Result<u8, (RunnerError, bool)> {
    let at_start = |error| (error, true);
    let tool = tool::read(&files.definition, &files.module).map_err(at_start)?;
    for directory in directories {
        directory.check(tool.definition.files).map_err(at_start)?;
    }
    let limits = &tool.definition.limits;
    let stdout = BoundedOutput::new(std::io::stdout(), limits.output_bytes);
    let stderr = BoundedOutput::new(std::io::stderr(), limits.output_bytes);
    let at_deadline = stderr.clone();
    // The deadline starts before the module is compiled, so that it covers compiling and reading
    // the input too.
    let deadline = Deadline::start(engine, limits.wall_ms, move |error| {
        report(&error, at_deadline.at_line_start().unwrap_or(false));
        std::process::exit(i32::from(error.exit_status()));
    })
    .map_err(at_start)?;
    let code: Code = match compiled {
        Some(path) => code::load(engine, &tool, &path),
        None => code::compile(engine, &tool),
    }
    .map_err(at_start)?;
    let call = run::Call {
        tool: &tool.definition,
        directories,
        args,
        stdout,
        stderr: stderr.clone(),
    };
    let status = call
        .run(engine, &code, std::io::stdin(), &deadline)
        .map_err(|error| (error, stderr.at_line_start().unwrap_or(false)))?;
    confirmed(&stderr, status);
    Ok(status)
}
