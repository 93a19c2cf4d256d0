//! Validates a recipe that matches the grammar and collects every issue, section by section.
//!
//! Sections are validated in the order that the public recipe format prescribes: distribution,
//! backend package, steps, mounts, overlays, workspaces, plugins, their runtime, fixtures, probes,
//! secrets, services, environment, seeds, staged files, packages, artifacts, then the policy.

mod added;
mod agent_step;
mod data;
mod distribution;
mod host;
mod paths;
mod people;
mod plugins;
mod secrets;
mod seeds;
mod services;
mod steps;
mod unsupported;
mod validator;

use crate::issue::{Issue, IssueCode};
use crate::model::Recipe;
use crate::policy::{self, PolicyChoice};
use crate::sources::Sources;
use serde_json::{Value, json};
use validator::Validator;

/// Schema id of the response to a validation request.
pub const RECIPE_VALIDATION: &str = "wp-codebox/recipe-validation/v1";

/// What a recipe is validated against, besides the grammar.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Facts about the host, its files and the caller's secrets.
    pub sources: &'a dyn Sources,
    /// The caller's policy, or the choice to derive one from the recipe.
    pub policy: PolicyChoice<'a>,
}

/// Returns the issues of the recipe's site seeds.
pub(crate) fn seed_issues(recipe: &Recipe, sources: &dyn Sources) -> Vec<Issue> {
    let mut validator = Validator {
        recipe,
        sources,
        policy: None,
        issues: Vec::new(),
    };
    seeds::check(&mut validator);
    validator.issues
}

/// Returns all issues of a recipe, in order.
#[must_use]
pub fn validate(recipe: &Recipe, context: Context<'_>) -> Vec<Issue> {
    let effective = policy::effective(recipe, context.sources, context.policy);
    let (policy, malformed) = match effective {
        Ok(policy) => (Some(policy), Vec::new()),
        Err(issues) => (None, issues),
    };
    let mut validator = Validator {
        recipe,
        sources: context.sources,
        policy,
        issues: Vec::new(),
    };
    distribution::check(&mut validator);
    host::check(&mut validator);
    steps::check_workflow(&mut validator);
    agent_step::check(&mut validator);
    paths::check_mounts(&mut validator);
    added::check_overlays(&mut validator);
    paths::check_workspaces(&mut validator);
    plugins::check(&mut validator);
    added::check_components(&mut validator);
    unsupported::check_dependencies(&mut validator);
    added::check_dependency_overlays(&mut validator);
    plugins::check_runtime(&mut validator);
    data::check_databases(&mut validator);
    people::check(&mut validator);
    steps::check_probes(&mut validator);
    secrets::check_secret_env(&mut validator);
    secrets::check_services(&mut validator);
    services::check(&mut validator);
    secrets::check_runtime_env(&mut validator);
    seeds::check(&mut validator);
    paths::check_staged(&mut validator);
    added::check_source_packages(&mut validator);
    data::check_bundles(&mut validator);
    data::check_inheritance(&mut validator);
    paths::check_artifacts(&mut validator);
    paths::check_overlaps(&mut validator);
    unsupported::check_experiments(&mut validator);
    for issue in malformed {
        validator.report(
            IssueCode::RuntimePolicyInvalid,
            if issue.field.is_empty() {
                "policy".to_owned()
            } else {
                format!("policy.{}", issue.field)
            },
            issue.message,
        );
    }
    steps::check_policy(&mut validator);
    secrets::check_policy(&mut validator);
    validator.issues
}

/// Returns the response of `recipe validate`: `wp-codebox/recipe-validation/v1`. `recipe` is the
/// result of `parse`; a recipe that could not be parsed has no summary.
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

/// Returns the member `error` of a response about a recipe with `count` issues.
pub(crate) fn failure(count: usize) -> Value {
    json!({
        "name": "RecipeValidationError",
        "message": format!("Recipe validation failed with {count} issue(s)."),
    })
}
