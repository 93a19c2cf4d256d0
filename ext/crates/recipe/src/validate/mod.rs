//! Judging a recipe that has its shape: every issue, section by section.
//!
//! The order is that of the public system: distribution, backend package, steps, mounts,
//! overlays, workspaces, plugins, their runtime, fixtures, probes, secrets, services,
//! environment, seeds, staged files, packages, artifacts, then the policy.

mod distribution;
mod host;
mod judge;
mod places;
mod plugins;
mod secrets;
mod seeds;
mod steps;
mod unsupported;

use crate::issue::{Issue, IssueCode};
use crate::model::Recipe;
use crate::policy::{self, PolicyChoice};
use crate::sources::Sources;
use judge::Judge;
use serde_json::{Value, json};

/// Schema of the answer.
pub const RECIPE_VALIDATION: &str = "wp-codebox/recipe-validation/v1";

/// What a recipe is judged by.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Answers about the host.
    pub sources: &'a dyn Sources,
    /// The policy it would run under.
    pub policy: PolicyChoice<'a>,
}

/// Every issue of a recipe, in order.
#[must_use]
pub fn validate(recipe: &Recipe, context: Context<'_>) -> Vec<Issue> {
    let effective = policy::effective(recipe, context.sources, context.policy);
    let (policy, malformed) = match effective {
        Ok(policy) => (Some(policy), Vec::new()),
        Err(issues) => (None, issues),
    };
    let mut judge = Judge {
        recipe,
        sources: context.sources,
        policy,
        issues: Vec::new(),
    };
    distribution::check(&mut judge);
    host::check(&mut judge);
    steps::check_workflow(&mut judge);
    places::check_mounts(&mut judge);
    unsupported::check_overlays(&mut judge);
    places::check_workspaces(&mut judge);
    plugins::check(&mut judge);
    unsupported::check_dependencies(&mut judge);
    plugins::check_runtime(&mut judge);
    unsupported::check_fixtures(&mut judge);
    steps::check_probes(&mut judge);
    secrets::check_secret_env(&mut judge);
    secrets::check_services(&mut judge);
    unsupported::check_services(&mut judge);
    secrets::check_runtime_env(&mut judge);
    seeds::check(&mut judge);
    places::check_staged(&mut judge);
    unsupported::check_packages(&mut judge);
    places::check_artifacts(&mut judge);
    places::check_overlaps(&mut judge);
    unsupported::check_experiments(&mut judge);
    for issue in malformed {
        judge.say(
            IssueCode::RuntimePolicyInvalid,
            if issue.field.is_empty() {
                "policy".to_owned()
            } else {
                format!("policy.{}", issue.field)
            },
            issue.message,
        );
    }
    steps::check_policy(&mut judge);
    secrets::check_policy(&mut judge);
    judge.issues
}

/// The answer of `recipe validate`: `wp-codebox/recipe-validation/v1`. `recipe` is what
/// `parse` gave; a recipe that could not be read has no summary.
#[must_use]
pub fn validation(
    recipe_path: &str,
    recipe: Result<&Recipe, &[Issue]>,
    context: Context<'_>,
) -> Value {
    let found = match recipe {
        Ok(recipe) => validate(recipe, context),
        Err(issues) => issues.to_vec(),
    };
    let mut document = json!({
        "success": found.is_empty(),
        "schema": RECIPE_VALIDATION,
        "recipePath": recipe_path,
        "valid": found.is_empty(),
        "issues": found,
    });
    if let Ok(recipe) = recipe {
        document["summary"] = summary(recipe);
    }
    if !found.is_empty() {
        document["error"] = failure(found.len());
    }
    document
}

fn summary(recipe: &Recipe) -> Value {
    let workflow = &recipe.workflow;
    json!({
        "steps": workflow.before.len() + workflow.steps.len() + workflow.after.len(),
        "mounts": recipe.inputs.mounts.len(),
        "workspaces": recipe.inputs.workspaces.len(),
        "extraPlugins": recipe.inputs.extra_plugins.len(),
        "stagedFiles": recipe.inputs.staged_files.len(),
    })
}

/// The error of an answer with this many issues.
pub(crate) fn failure(count: usize) -> Value {
    json!({
        "name": "RecipeValidationError",
        "message": format!("Recipe validation failed with {count} issue(s)."),
    })
}
