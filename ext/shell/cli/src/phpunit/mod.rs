//! `wp-codebox phpunit`: the project's PHPUnit tests in one or more sandboxes, with one result.

mod args;

pub(crate) use args::PhpunitArgs;

use crate::activation::Activate;
use crate::mount;
use crate::output::Output;
use crate::run_args::{self, RunArgs};
use args::AnnotationStyle;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Instant;
use wp_codebox_contracts::{ErrorBody, ErrorCode, MountRequest, RunRequest};
use wp_codebox_runs::Supervisors;
use wp_codebox_settings::Settings;
use wp_codebox_workloads::groups::replace_file;
use wp_codebox_workloads::phpunit::{COMMAND, Shard, failure, github, junit, merged, run_shards};

/// Guest directory of the plugins.
const PLUGINS: &str = "/wordpress/wp-content/plugins/";
/// Maximum number of lines of PHPUnit's output that are printed if it ran no tests.
const SHOWN_LINES: usize = 40;
/// Guest directory of the test library that `--tests-lib` names.
const LIBRARY: &str = "/workspace/wordpress-tests-lib";

pub(crate) fn main(output: &Output, args: &PhpunitArgs) -> ExitCode {
    match run(*output, args) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            output.failure("phpunit", &error);
            ExitCode::from(error.code.exit_status())
        }
    }
}

fn run(output: Output, args: &PhpunitArgs) -> Result<u8, ErrorBody> {
    let settings = Settings::for_guests(&args.store.paths, args.guest.wp.as_deref(), output)?;
    let mounts = mount::mounts_or_project(&args.guest)?;
    mount::announce(output, &mounts);
    let project = mounts.first().map(|mounted| mounted.request.clone());
    let requests = (1..=args.shards)
        .map(|shard| request(args, &settings, project.as_ref(), shard))
        .collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let supervisors = Supervisors::begin()?;
    let shards = run_shards(&supervisors, &requests, args.parallel, &|index, shard| {
        if !output.is_json() && requests.len() > 1 {
            progress(output, index, requests.len(), shard);
        }
    })?;
    let duration = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let all = merged(&shards, duration);
    if let Some(path) = &args.junit {
        let base = project.as_ref().map_or("", |project| &project.target);
        let document = junit(&all, base);
        replace_file(path, |out| out.write_all(document.as_bytes())).map_err(|e| {
            let message = format!("--junit {} cannot be written: {e}", path.display());
            ErrorBody::new(ErrorCode::InputInvalid, message)
        })?;
    }
    if output.is_json() {
        output.document(&all);
    } else {
        people(output, &all, &shards);
    }
    if args.annotations == Some(AnnotationStyle::Github) {
        for line in github(&all, &in_repository(project.as_ref())) {
            output.note(&line);
        }
    }
    Ok(match failure(&shards, &all) {
        Some(error) => error.code.exit_status(),
        None => 0,
    })
}

/// Builds the run of one shard.
fn request(
    args: &PhpunitArgs,
    settings: &Settings,
    project: Option<&MountRequest>,
    shard: u16,
) -> Result<RunRequest, ErrorBody> {
    let mut run = RunArgs::plain()?;
    run.guest = args.guest.clone();
    run.store = args.store.clone();
    run.sizes = args.sizes.clone();
    run.timeout.clone_from(&args.timeout);
    run.of_project = true;
    run.command = Some(COMMAND.to_owned());
    run.args = arguments(args, project, shard);
    // Activate only a theme before the tests: `wordpress.phpunit` activates a plugin itself.
    if project.is_some_and(|p| p.target.starts_with(PLUGINS)) {
        run.activation.activate = Activate::Never;
    }
    if let Some(library) = &args.tests_lib {
        // A run with any mount does not mount the current directory by default, so add it here.
        if run.guest.mounts.is_empty() {
            run.guest.mounts.push(".".to_owned());
        }
        run.guest
            .mounts
            .push(format!("{}:{LIBRARY}:readonly", library.display()));
    }
    // An `Output` for JSON, so that `build` does not announce the project again for each shard.
    run_args::build(&run, settings, Output::new(true))
}

fn arguments(args: &PhpunitArgs, project: Option<&MountRequest>, shard: u16) -> Vec<String> {
    let mut all = vec![format!("bootstrap-mode={}", args.bootstrap.name())];
    let has = |name: &str| {
        let named = |arg: &String| arg.split_once('=').is_some_and(|(n, _)| n == name);
        args.args.iter().any(named)
    };
    if let Some(project) = project
        && !has("plugin-slug")
        && !has("cwd")
    {
        all.push(match project.target.strip_prefix(PLUGINS) {
            Some(slug) if !slug.contains('/') => format!("plugin-slug={slug}"),
            Some(_) | None => format!("cwd={}", project.target),
        });
    }
    if args.tests_lib.is_some() && !has("tests-dir") {
        all.push(format!("tests-dir={LIBRARY}"));
    }
    if args.shards > 1 {
        all.push(format!("shard={shard}/{}", args.shards));
    }
    if !args.files.is_empty() {
        all.push(format!("changed-tests-json={}", json!(args.files)));
    }
    if !args.phpunit.is_empty() {
        all.push(format!("phpunit-args-json={}", json!(args.phpunit)));
    }
    if args.multisite {
        all.push("multisite=true".to_owned());
    }
    all.extend(args.args.iter().cloned());
    all
}

fn progress(output: Output, index: usize, of: usize, shard: &Shard) {
    let what = match (&shard.document, &shard.error) {
        (_, Some(error)) => error.message.clone(),
        (Some(document), None) => counted(document),
        (None, None) => "no results".to_owned(),
    };
    output.note(&format!("sandbox {} of {of}: {what}", index + 1));
}

/// Returns the counts of a summary as text.
fn counted(document: &Value) -> String {
    let count = |name: &str| document["summary"][name].as_u64().unwrap_or_default();
    let mut text = format!("{} tests, {} passed", count("total"), count("passed"));
    for name in ["failed", "skipped"] {
        if count(name) > 0 {
            text.push_str(&format!(", {} {name}", count(name)));
        }
    }
    text
}

fn people(output: Output, all: &Value, shards: &[Shard]) {
    // If a sandbox ran no tests, the output of PHPUnit explains why. Print that of the first such
    // sandbox only.
    let silent = shards.iter().find(|shard| shard.error.is_some());
    if let Some(printed) = silent.and_then(|s| s.document.as_ref()?["output"].as_str()) {
        // After a fatal error WordPress appends an HTML page for visitors; leave it out.
        let words = printed.split("<!DOCTYPE html>").next().unwrap_or_default();
        let lines: Vec<&str> = words.lines().collect();
        for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
            output.line(line);
        }
        if words.contains("\"WP_UnitTestCase\" not found") {
            output.note("  hint: --tests-lib DIR names a directory with WordPress's test library");
        }
    }
    for row in all["failures"].as_array().into_iter().flatten() {
        let text = |name: &str| row[name].as_str().unwrap_or_default();
        output.line(&format!("FAIL {}::{}", text("suite"), text("test")));
        output.line(&format!("  {}:{}", text("file"), row["line"]));
        for line in text("message").lines().take(20) {
            output.line(&format!("  {line}"));
        }
    }
    let seconds = all["durationMs"].as_f64().unwrap_or_default() / 1000.0;
    output.line(&format!("{} in {seconds:.1} s", counted(all)));
    if let Some(error) = all.get("error") {
        let text = |name: &str| error[name].as_str().unwrap_or_default();
        output.note(&format!("Error: {} [{}]", text("message"), text("code")));
    }
}

/// Returns the directory of the project relative to the current directory; empty if it is the
/// current directory or not below it.
fn in_repository(project: Option<&MountRequest>) -> String {
    let below = project.and_then(|project| {
        let here = std::env::current_dir().ok()?.canonicalize().ok()?;
        let source = std::path::Path::new(&project.source).canonicalize().ok()?;
        Some(source.strip_prefix(here).ok()?.to_str()?.to_owned())
    });
    below.unwrap_or_default()
}
