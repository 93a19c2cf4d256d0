//! `validate-blueprint` and `workspace-policy check`.

use super::human;
use super::status;
use super::{BlueprintArgs, WorkspacePolicyArgs, WorkspacePolicyCommand};
use crate::output::Output;
use crate::request::is_json_text;
use serde_json::{Map, Value};
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode, parse_json};
use wp_codebox_recipe::{MAX_RECIPE_BYTES, blueprint_validation};
use wp_codebox_runs::read_file;
use wp_codebox_supervisor::workspace::{self, GitBacking, Rules};

/// Reads a blueprint from an argument: the name of a file, or JSON text. The outer error is that of
/// an unreadable file; the inner one states why the contents are not a blueprint.
pub(crate) fn read_blueprint(given: &str) -> Result<Result<Map<String, Value>, String>, ErrorBody> {
    let bytes = match is_json_text(given) {
        true => given.as_bytes().to_vec(),
        false => read_file(Path::new(given), MAX_RECIPE_BYTES, "blueprint")?,
    };
    Ok(match parse_json::<Value>(&bytes) {
        Ok(Value::Object(document)) => Ok(document),
        Ok(_) => Err("a blueprint is a JSON object".to_owned()),
        Err(e) => Err(format!(
            "not valid JSON (line {}, column {})",
            e.line(),
            e.column()
        )),
    })
}

pub(crate) fn validate_blueprint(output: &Output, args: &BlueprintArgs) -> ExitCode {
    let Some(given) = args.file.as_ref().or(args.blueprint.as_ref()) else {
        let error = ErrorBody::new(
            ErrorCode::InputInvalid,
            "the blueprint is missing: pass the path of its file, or its JSON text",
        );
        return output.failure("validate-blueprint", &error);
    };
    let document = match read_blueprint(given) {
        Err(error) => return output.failure("validate-blueprint", &error),
        Ok(Ok(document)) => blueprint_validation(Ok(&document)),
        Ok(Err(why)) => blueprint_validation(Err(&why)),
    };
    if output.is_json() {
        output.document(&document);
    } else {
        human::blueprint(*output, &document);
    }
    status(&document)
}

pub(crate) fn workspace_policy(output: &Output, command: &WorkspacePolicyCommand) -> ExitCode {
    let WorkspacePolicyCommand::Check(args) = command;
    match check(args) {
        Err(error) => output.failure("workspace-policy check", &error),
        Ok(document) => {
            if output.is_json() {
                output.document(&document);
            } else {
                human::workspace(*output, &document);
            }
            if document["passed"] == true {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(1)
            }
        }
    }
}

fn check(args: &WorkspacePolicyArgs) -> Result<Value, ErrorBody> {
    let fail = |why: String| ErrorBody::new(ErrorCode::InputInvalid, why);
    let root = std::path::absolute(&args.workspace_root)
        .map_err(|e| fail(format!("--workspace-root: {e}")))?;
    if !root.is_dir() {
        return Err(fail("--workspace-root must be a directory".to_owned()));
    }
    let shown = root
        .to_str()
        .ok_or_else(|| fail("--workspace-root is not valid UTF-8".to_owned()))?;
    let backing = if args.git {
        GitBacking::Git
    } else {
        GitBacking::None
    };
    let rules = Rules::new(&args.writable_roots, &args.hidden_paths);
    let violations = workspace::check(&root, &rules, backing).map_err(fail)?;
    Ok(workspace::document(
        &rules.sha256(shown, backing),
        violations,
    ))
}
