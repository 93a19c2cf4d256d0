//! `wp-codebox recipe-run`: runs a recipe in a supervisor.

use super::{Looked, RecipeRunArgs, StepsArgs, human, planned};
use crate::output::Output;
use crate::placement::PlacementArgs;
use crate::preview::{self, PreviewArgs};
use crate::{duration, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunResult, SiteId};
use wp_codebox_recipe::{Issue, Recipe, lower, validate};
use wp_codebox_runs::{
    AgentOptions, Asked, RunReport, build, recipe_run as recipe_document, refused, summary, verify,
};
use wp_codebox_settings::Settings;
use wp_codebox_settings::prepare_state;
use wp_codebox_supervisor::preset;
use wp_codebox_workloads::check_placed;

/// Refuses options of other implementations that would have no effect, each with the reason.
fn check(args: &RecipeRunArgs) -> Result<(), ErrorBody> {
    let why = if args.adversarial_replay.is_some() {
        "--adversarial-replay: this backend runs no adversarial campaigns; write the case as steps of the recipe"
    } else if args.host_node_heap_mb.is_some() {
        "--host-node-heap-mb: this backend does not run Node; `wp-codebox run --memory` limits the memory of a sandbox"
    } else if args.approve_external_service_writes {
        "--approve-external-service-writes: an approval cannot be given beforehand; declare the writes of the service as record-only or forbidden"
    } else {
        return Ok(());
    };
    Err(ErrorBody::new(ErrorCode::InputInvalid, why))
}

pub(crate) fn recipe_run(output: &Output, args: &RecipeRunArgs) -> ExitCode {
    if let Err(error) = check(args) {
        return output.failure("recipe-run", &error);
    }
    let looked = match look(output, args) {
        Ok(looked) => looked,
        Err(error) => return output.failure("recipe-run", &error),
    };
    if args.dry_run {
        return planned(*output, &looked);
    }
    let issues = match &looked.loaded.recipe {
        Ok(recipe) => validate(recipe, looked.context()),
        Err(issues) => issues.clone(),
    };
    match (&looked.loaded.recipe, issues.is_empty()) {
        (Ok(recipe), true) => start(output, args, &looked, recipe),
        (Ok(_) | Err(_), _) => {
            let error = ErrorBody::new(ErrorCode::RecipeInvalid, invalid(&issues))
                .hint("wp-codebox recipe validate lists every invalid field");
            if output.is_json() {
                output.document(&refused(&looked.loaded, &issues, &error));
                return ExitCode::from(error.code.exit_status());
            }
            for issue in &issues {
                output.note(&format!(
                    "{}: {} [{}]",
                    issue.path, issue.message, issue.code
                ));
            }
            output.failure("recipe-run", &error)
        }
    }
}

/// Returns the error message for a recipe with these issues: the first one and their number.
fn invalid(issues: &[Issue]) -> String {
    let first = issues.first();
    let first = first.map_or(String::new(), |i| format!("{}: {}", i.path, i.message));
    let more = match issues.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    format!("the recipe is not valid; correct these fields: {first}{more}")
}

/// Loads the recipe. Installs the latest WordPress if the host has none, except for a dry run.
fn look(output: &Output, args: &RecipeRunArgs) -> Result<Looked, ErrorBody> {
    let at = |mut settings: Settings| {
        settings.wp_fallback = args.fallback.choice();
        Looked::at(&args.recipe, args.steps.policy.as_deref(), &settings)
    };
    let looked = at(Settings::resolve(&args.store.paths)?)?;
    if args.dry_run {
        return Ok(looked);
    }
    if looked.lacks_wordpress() {
        return at(Settings::for_guests(&args.store.paths, None, *output)?);
    }
    prepare_state(&Settings::resolve(&args.store.paths)?)?;
    Ok(looked)
}

fn start(output: &Output, args: &RecipeRunArgs, looked: &Looked, recipe: &Recipe) -> ExitCode {
    let choice = RunChoice {
        site: &args.store.site,
        steps: &args.steps,
        preview: &args.preview,
        placement: &args.placement,
    };
    let Executed { result, exported } = match execute(output, looked, recipe, &choice) {
        Ok(executed) => executed,
        Err(error) => return output.failure("recipe-run", &error),
    };
    let verified = result
        .as_ref()
        .ok()
        .and_then(|result| verify(recipe, result));
    let verdict = verified.as_ref().and_then(|v| v.verdict.as_ref());
    let told = RunReport {
        loaded: &looked.loaded,
        recipe,
        result: result.as_ref(),
        bundle: exported.as_deref(),
        verdict,
    };
    let mut document = if args.summary {
        summary(&told)
    } else {
        recipe_document(&told)
    };
    if let (Some(verified), false) = (&verified, args.summary) {
        document["verification"] = verified.document.clone();
    }
    if output.is_json() || args.summary {
        output.document(&document);
    } else {
        people(*output, &document, &told);
    }
    ExitCode::from(match (&result, verdict) {
        (Err(error), _) => error.code.exit_status(),
        (Ok(result), Some(error)) if result.outcome.is_success() => error.code.exit_status(),
        (Ok(result), _) => result.outcome.exit_status(),
    })
}

fn people(output: Output, document: &Value, told: &RunReport<'_>) {
    match told.result {
        Ok(result) => {
            human::ran(output, document);
            run::human(&output, result, told.bundle);
            if let Some(error) = result.error.as_ref().or(told.verdict) {
                output.note(&format!("Error: {} [{}]", error.message, error.code));
            }
        }
        Err(error) => {
            output.failure("recipe-run", error);
        }
    }
}

/// Options for the run of a valid recipe.
#[derive(Debug)]
pub(crate) struct RunChoice<'a> {
    /// Partition of the state directory in which the bundle is stored.
    pub site: &'a str,
    pub steps: &'a StepsArgs,
    pub preview: &'a PreviewArgs,
    /// Choice between this host and a node of the cluster.
    pub placement: &'a PlacementArgs,
}

/// Result of a recipe's run and the copy of its bundle.
#[derive(Debug)]
pub(crate) struct Executed {
    /// Result of the run, or why it could not start.
    pub result: Result<RunResult, ErrorBody>,
    /// Directory of the copied bundle.
    pub exported: Option<String>,
}

/// Runs a valid recipe in a supervisor and copies its bundle.
pub(crate) fn execute(
    output: &Output,
    looked: &Looked,
    recipe: &Recipe,
    choice: &RunChoice<'_>,
) -> Result<Executed, ErrorBody> {
    let agent = choice.steps.agent.options();
    let asked = asked(choice, &agent, looked, recipe)?;
    let lowered = lower(recipe, looked.context()).map_err(|issues| {
        let message = issues.first().map_or("", |i| i.message.as_str());
        ErrorBody::new(ErrorCode::PolicyInvalid, message)
    })?;
    let notices = lowered.notices.clone();
    let mut request = build(&looked.loaded, recipe, &looked.host, lowered, &asked)?;
    preview::hold(choice.preview, &mut request.hold)?;
    choice.placement.place(&mut request, None)?;
    if request.placement.is_some() {
        check_placed(recipe)?;
    }
    // Add the hosts that the agent's preset needs, but only to a policy that was derived from the
    // recipe: a policy that the user gave stays unchanged.
    let preset = preset::of(&request)?.filter(|_| looked.policy.is_none());
    if let (Some(preset), Some(policy)) = (&preset, &mut request.policy) {
        preset::open_network(preset, policy);
    }
    let mut result = run::supervise(output, &request);
    if let Ok(result) = &mut result {
        result.notices.splice(0..0, notices);
    }
    let bundle = result.as_ref().ok().and_then(|r| r.artifacts.as_ref());
    let exported = match (&asked.artifacts, bundle) {
        (Some(root), Some(bundle)) => {
            let bundle = Path::new(&bundle.path);
            Some(run::export(root, request.run_id.as_str(), bundle)?)
        }
        (None, _) | (_, None) => None,
    };
    Ok(Executed { result, exported })
}

fn asked<'a>(
    choice: &RunChoice<'_>,
    agent: &'a AgentOptions,
    looked: &Looked,
    recipe: &Recipe,
) -> Result<Asked<'a>, ErrorBody> {
    let own = recipe.artifacts.directory.as_ref();
    let artifacts: Option<PathBuf> =
        match (&choice.steps.artifacts, own) {
            (Some(directory), _) => Some(std::path::absolute(directory).map_err(|e| {
                ErrorBody::new(ErrorCode::InputInvalid, format!("--artifacts: {e}"))
            })?),
            (None, Some(directory)) => Some(looked.host.resolve(directory)),
            (None, None) => None,
        };
    Ok(Asked {
        run_id: wp_codebox_control::new_run_id()?,
        site: SiteId::new(choice.site)
            .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, format!("--site: {e}")))?,
        paths: looked.paths.clone(),
        wall_clock_ms: duration::or_milliseconds(
            ErrorCode::LimitInvalid,
            "--timeout",
            &choice.steps.timeout,
        )?,
        artifacts,
        agent,
    })
}
