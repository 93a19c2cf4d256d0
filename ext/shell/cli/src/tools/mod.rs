//! `wp-codebox tools`: registers, lists, removes and runs WASI tools.

mod args;
mod ended;
mod guest;
mod run;
mod scratch;
mod wrapped;

pub(crate) use args::ToolsCommand;

use crate::columns::{self, Column};
use crate::output::Output;
use args::{AddArgs, ListArgs, RemoveArgs, id};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode, MAX_WASI_DEFINITION_BYTES};
use wp_codebox_runtime::StateDir;
use wp_codebox_settings::{PathArgs, Settings};
use wp_codebox_supervisor::{RegisteredTool, WasiRunner, WasiTools};

/// Largest module, as in the schema of definitions.
const MODULE_BYTES: u64 = 64 << 20;

pub(crate) fn main(output: &Output, command: &ToolsCommand) -> ExitCode {
    let (name, done) = match command {
        ToolsCommand::Add(args) => ("tools add", add(output, args).map(|()| ExitCode::SUCCESS)),
        ToolsCommand::List(args) => ("tools list", list(output, args).map(|()| ExitCode::SUCCESS)),
        ToolsCommand::Remove(args) => (
            "tools remove",
            remove(output, args).map(|()| ExitCode::SUCCESS),
        ),
        ToolsCommand::Run(args) => ("tools run", run::run(output, args)),
    };
    done.unwrap_or_else(|error| output.failure(name, &error))
}

/// Opens the registry. A process of root first switches to the owner of the state directory, so
/// that new files belong to this owner.
fn open(paths: &PathArgs) -> Result<(Settings, WasiTools), ErrorBody> {
    let settings = Settings::resolve(paths)?;
    let state = StateDir::open(&settings.state_dir).map_err(|e| e.body())?;
    state.become_owner().map_err(|e| e.body())?;
    let tools = WasiTools::of(state.path());
    Ok((settings, tools))
}

fn add(output: &Output, args: &AddArgs) -> Result<(), ErrorBody> {
    // The files are read with the rights of the caller, before root is given up.
    let definition = read(&args.definition, MAX_WASI_DEFINITION_BYTES as u64)?;
    let module = read(&args.module, MODULE_BYTES)?;
    let (settings, tools) = open(&args.paths)?;
    let runner = WasiRunner::beside(&settings.launcher).map_err(|e| e.body())?;
    let added = tools
        .add(&definition, &module, &runner)
        .map_err(|e| e.body())?;
    let mut document = shown(&added);
    document["success"] = json!(true);
    let line = format!("{} {} is registered", added.tool.id, added.tool.version);
    output.answer(&document, &[line]);
    Ok(())
}

/// Reads a file of the caller; one byte more than `most` is enough for the check of its size.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, ErrorBody> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(|error| {
            let message = format!("{} cannot be read: {error}", path.display());
            ErrorBody::new(ErrorCode::InputInvalid, message)
        })?;
    Ok(bytes)
}

fn shown(row: &RegisteredTool) -> Value {
    let tool = &row.tool;
    json!({
        "id": tool.id,
        "version": tool.version,
        "description": tool.description,
        "files": tool.files,
        "grants": tool.grants,
        "limits": tool.limits,
        "definitionSha256": row.definition_sha256,
        "moduleSha256": tool.module.sha256,
    })
}

fn list(output: &Output, args: &ListArgs) -> Result<(), ErrorBody> {
    let (_, tools) = open(&args.paths)?;
    let rows = tools.list().map_err(|e| e.body())?;
    if output.is_json() {
        let tools: Vec<Value> = rows.iter().map(shown).collect();
        output.document(&json!({"success": true, "total": tools.len(), "tools": tools}));
        return Ok(());
    }
    if rows.is_empty() {
        output.note("no tools are registered");
        return Ok(());
    }
    let column = |heading, spare| Column { heading, spare };
    let columns = [
        column("TOOL", false),
        column("VERSION", false),
        column("FILES", false),
        column("MODULE", true),
        column("DESCRIPTION", false),
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let tool = &row.tool;
            vec![
                tool.id.to_string(),
                tool.version.clone(),
                tool.files.as_str().to_owned(),
                tool.module.sha256.as_str().chars().take(12).collect(),
                tool.description.clone(),
            ]
        })
        .collect();
    for line in columns::table(&columns, &cells, columns::terminal()) {
        output.line(&line);
    }
    Ok(())
}

fn remove(output: &Output, args: &RemoveArgs) -> Result<(), ErrorBody> {
    let id = id(&args.id)?;
    let (_, tools) = open(&args.paths)?;
    tools.remove(&id).map_err(|e| e.body())?;
    let document = json!({"success": true, "id": id, "removed": true});
    output.answer(&document, &[format!("{id} is removed")]);
    Ok(())
}
