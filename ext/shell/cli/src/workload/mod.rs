//! `wp-codebox run-wordpress-workload`: runs the commands of one document in a fresh sandbox and
//! prints one document.
//!
//! The crate `recipe` converts a workload to a recipe; the code of `recipe-run` executes it.

mod args;

pub(crate) use args::WorkloadArgs;

use crate::output::Output;
use crate::preview::PreviewArgs;
use crate::recipe::{Executed, Looked, RunChoice, execute};
use crate::request;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode, hex};
use wp_codebox_recipe::{Issue, MAX_RECIPE_BYTES, Workload, WorkloadPreview, validate, workload};
use wp_codebox_runs::{Loaded, directory_of, read_file};
use wp_codebox_settings::Settings;
use wp_codebox_settings::prepare_state;
use wp_codebox_workloads::WorkloadReport;

pub(crate) fn main(args: &WorkloadArgs) -> ExitCode {
    // The caller is a program: it gets one document on standard output, whatever happens.
    let output = Output::new(true);
    let told = told(output, args);
    output.document(&told.document());
    ExitCode::from(told.exit_status())
}

fn told(output: Output, args: &WorkloadArgs) -> WorkloadReport {
    let (bytes, directory) = match read(&args.input) {
        Ok(read) => read,
        Err(error) => return WorkloadReport::refused(Value::Null, error),
    };
    let workload = match workload(&bytes) {
        Ok(workload) => workload,
        Err(issues) => {
            let request = serde_json::from_slice(&bytes).unwrap_or_default();
            return WorkloadReport::invalid(request, &issues);
        }
    };
    let loaded = Loaded {
        shown: args.input.display().to_string(),
        directory,
        sha256: hex(&Sha256::digest(&bytes)),
        recipe: Ok(workload.recipe.clone()),
    };
    match run(output, args, &workload, loaded) {
        Ok(told) => told,
        Err(error) => WorkloadReport::refused(workload.request, error),
    }
}

/// Validates the workload against this host and runs it.
fn run(
    output: Output,
    args: &WorkloadArgs,
    workload: &Workload,
    loaded: Loaded,
) -> Result<WorkloadReport, ErrorBody> {
    let wanted = workload.recipe.runtime.wp.as_deref();
    let mut settings = match args.dry_run {
        true => Settings::resolve(&args.paths)?,
        false => settings(output, args, wanted)?,
    };
    settings.wp_fallback = args.fallback.choice();
    let looked = Looked::of(loaded, args.steps.policy.as_deref(), &settings)?;
    let issues: Vec<Issue> = validate(&workload.recipe, looked.context())
        .into_iter()
        .map(|issue| workload.locate(issue))
        .collect();
    if !issues.is_empty() {
        return Ok(WorkloadReport::invalid(workload.request.clone(), &issues));
    }
    if args.dry_run {
        return Ok(WorkloadReport::skipped(workload));
    }
    let preview = preview(workload.preview.as_ref());
    let choice = RunChoice {
        site: &args.site,
        steps: &args.steps,
        preview: &preview,
        placement: &args.placement,
    };
    let Executed { result, exported } = execute(&output, &looked, &workload.recipe, &choice)?;
    Ok(WorkloadReport::ran(workload, &result?, exported.as_deref()))
}

/// Resolves the settings. If this host has no usable WordPress core, installs the latest release. A
/// version that the workload names and the host lacks is no error here: `validate` reports it.
fn settings(
    output: Output,
    args: &WorkloadArgs,
    wanted: Option<&str>,
) -> Result<Settings, ErrorBody> {
    let settings = Settings::resolve(&args.paths)?;
    if settings.fitting(None).is_none() && settings.fitting(wanted).is_none() {
        return Settings::for_guests(&args.paths, None, output);
    }
    prepare_state(&settings)?;
    Ok(settings)
}

fn preview(wanted: Option<&WorkloadPreview>) -> PreviewArgs {
    let Some(wanted) = wanted else {
        return PreviewArgs::default();
    };
    PreviewArgs {
        preview_hold_seconds: Some(wanted.hold_seconds.to_string()),
        preview_port: wanted.port,
        preview_bind: wanted.bind.clone(),
        preview_public_url: wanted.public_url.clone(),
        ..PreviewArgs::default()
    }
}

/// Reads the input; returns it with the directory of its relative paths.
fn read(input: &Path) -> Result<(Vec<u8>, PathBuf), ErrorBody> {
    if input != Path::new("-") {
        let bytes = read_file(input, MAX_RECIPE_BYTES, "workload")?;
        return Ok((bytes, directory_of(input, "workload")?));
    }
    let fail = |why: String| ErrorBody::new(ErrorCode::InputInvalid, format!("--input -: {why}"));
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(MAX_RECIPE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| fail(e.to_string()))?;
    if bytes.len() > MAX_RECIPE_BYTES {
        return Err(fail(format!("it is larger than {MAX_RECIPE_BYTES} bytes")));
    }
    Ok((bytes, PathBuf::from(request::absolute(".")?)))
}
