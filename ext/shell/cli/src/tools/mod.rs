//! `wp-codebox tools`: registers, lists, removes and runs WASI tools.

mod args;
mod run;

pub(crate) use args::ToolsCommand;

use crate::columns::{self, Column};
use crate::output::Output;
use args::{AddArgs, ListArgs, RemoveArgs, id};
use serde_json::{Value, json};
use std::process::ExitCode;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_settings::Settings;
use wp_codebox_wasi_tools::{NewTool, open, tool_document};

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

fn add(output: &Output, args: &AddArgs) -> Result<(), ErrorBody> {
    let new = NewTool::read(&args.definition, &args.module)?;
    let added = new.register(&Settings::resolve(&args.paths)?)?;
    let mut document = tool_document(&added);
    document["success"] = json!(true);
    let line = format!("{} {} is registered", added.tool.id, added.tool.version);
    output.answer(&document, &[line]);
    Ok(())
}

fn list(output: &Output, args: &ListArgs) -> Result<(), ErrorBody> {
    let tools = open(&Settings::resolve(&args.paths)?)?;
    let rows = tools.list()?;
    if output.is_json() {
        let tools: Vec<Value> = rows.iter().map(tool_document).collect();
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
    let tools = open(&Settings::resolve(&args.paths)?)?;
    tools.remove(&id)?;
    let document = json!({"success": true, "id": id, "removed": true});
    output.answer(&document, &[format!("{id} is removed")]);
    Ok(())
}
