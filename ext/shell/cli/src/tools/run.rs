//! `wp-codebox tools run`: runs a WASI tool on this host, on a copy of the directory.

use super::args::{RunArgs, id};
use crate::output::Output;
use serde_json::{Map, Value};
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode, parse_json};
use wp_codebox_settings::Settings;
use wp_codebox_wasi_tools::{Answer, Call, ChangeHandling};

pub(super) fn run(output: &Output, args: &RunArgs) -> Result<ExitCode, ErrorBody> {
    let id = id(&args.id)?;
    let call = Call {
        id: &id,
        input: arguments(args.arguments.as_deref())?,
        directory: args.dir.as_deref(),
        wrapper: args.wrapper.into(),
        changes: match args.write {
            true => ChangeHandling::Written,
            false => ChangeHandling::Shown,
        },
    };
    let settings = Settings::resolve(&args.paths)?;
    let answer = wp_codebox_wasi_tools::run(&settings, call)?;
    show(output, &answer);
    Ok(ExitCode::from(answer.status))
}

/// Returns the arguments as JSON text; fails unless they are an object.
fn arguments(given: Option<&str>) -> Result<String, ErrorBody> {
    let given = given.unwrap_or("{}");
    let parsed: Map<String, Value> = parse_json(given.as_bytes()).map_err(|error| {
        let message = format!("the arguments of the tool must be one JSON object: {error}");
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })?;
    Ok(Value::Object(parsed).to_string())
}

fn show(output: &Output, answer: &Answer) {
    if output.is_json() {
        output.document(&answer.document());
        return;
    }
    output.data(&answer.stdout);
    if !answer.stdout.is_empty() && !answer.stdout.ends_with(b"\n") {
        output.data(b"\n");
    }
    output.data(&answer.patch);
    let said = String::from_utf8_lossy(&answer.stderr);
    if !said.is_empty() {
        output.note(said.trim_end());
    }
}
