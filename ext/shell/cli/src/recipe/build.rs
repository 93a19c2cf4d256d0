//! `wp-codebox recipe build`: writes a recipe from a list of options.

use super::RecipeBuildArgs;
use crate::output::Output;
use crate::request::is_json_text;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_recipe::{MAX_RECIPE_BYTES, build};
use wp_codebox_runs::read_file;
use wp_codebox_workloads::groups::replace_file;

pub(super) fn main(output: Output, args: &RecipeBuildArgs) -> ExitCode {
    match built(args).and_then(|recipe| deliver(output, args, &recipe)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure("recipe build", &error),
    }
}

fn built(args: &RecipeBuildArgs) -> Result<Value, ErrorBody> {
    let options = match args.options.as_deref() {
        None => b"{}".to_vec(),
        Some(given) if is_json_text(given) => given.as_bytes().to_vec(),
        Some(file) => read_file(Path::new(file), MAX_RECIPE_BYTES, "file with the options")?,
    };
    build(args.kind, &options).map_err(|issues| {
        let lines = issues
            .iter()
            .map(|issue| format!("{}: {}", issue.path, issue.message));
        let message = format!(
            "the options are not valid: {}",
            lines.collect::<Vec<_>>().join("; ")
        );
        ErrorBody::new(ErrorCode::InputInvalid, message).with("issues", json!(issues))
    })
}

/// Prints the recipe, or writes it to the file of `--output`.
fn deliver(output: Output, args: &RecipeBuildArgs, recipe: &Value) -> Result<(), ErrorBody> {
    let Some(path) = &args.output else {
        output.document(recipe);
        return Ok(());
    };
    replace_file(path, |out| {
        serde_json::to_writer_pretty(&mut *out, recipe)?;
        out.write_all(b"\n")
    })
    .map_err(|e| {
        let message = format!("the recipe cannot be written to {}: {e}", path.display());
        ErrorBody::new(ErrorCode::InputInvalid, message)
            .hint("name a file in a directory that exists and that this user may write")
    })?;
    output.note(&format!(
        "{} is written; its relative paths start at its own directory. Run it: wp-codebox recipe-run --recipe {}",
        path.display(),
        path.display()
    ));
    Ok(())
}
