//! Converts a recipe to the mounts, components and steps of a run request.
//!
//! Uses the same guest paths and commands as validation and plan (`crate::layout`), so what runs is
//! what was validated. Host paths are as written in the recipe; the caller resolves them.

mod inputs;
mod lowered;
mod people;
mod php;
mod scaffold;
mod step;
mod steps;

pub use lowered::{Lowered, SecretUse};
pub(crate) use people::reset;

use crate::agent_step;
use crate::layout;
use crate::model::Recipe;
use crate::policy;
use crate::sources::{SecretStatus, Sources};
use crate::validate::Context;
use php::scalar_text;
use serde_json::Value;
use std::collections::BTreeMap;
use wp_codebox_contracts::{OnFailure, PolicyIssue, RuntimePolicy, Workflow, WorkspaceRule};

/// Converts a recipe that `validate` accepts. Fails only if the caller's policy is malformed.
pub fn lower(recipe: &Recipe, context: Context<'_>) -> Result<Lowered, Vec<PolicyIssue>> {
    let sources = context.sources;
    let policy = policy::effective(recipe, sources, context.policy)?;
    let mut lowered = Lowered {
        mounts: Vec::new(),
        components: Vec::new(),
        workflow: Workflow::default(),
        agent_task: agent_step::call(recipe).map(|call| agent_step::task(&call)),
        services: recipe.inputs.services.clone(),
        secrets: secrets(recipe, sources, &policy),
        policy,
        notices: crate::notices::notices(recipe, sources),
    };
    inputs::add(recipe, sources, &mut lowered);
    php::add(recipe, sources, &mut lowered.workflow);
    steps::add(recipe, sources, &mut lowered.workflow);
    for step in &mut lowered.workflow.steps {
        let inherited = layout::inherited_args(recipe, &step.call);
        step.call.args.extend(inherited);
    }
    lowered.workflow.env = environment(recipe);
    lowered.workflow.workspace_rule = workspace_rule(recipe);
    Ok(lowered)
}

fn secrets(recipe: &Recipe, sources: &dyn Sources, policy: &RuntimePolicy) -> Vec<SecretUse> {
    policy::secret_names(recipe)
        .into_iter()
        .filter(|name| match sources.secret(name) {
            SecretStatus::Available { .. } => true,
            SecretStatus::Missing | SecretStatus::Unusable { .. } => false,
        })
        .map(|name| SecretUse {
            hosts: policy::open_hosts(recipe, policy, &name),
            name,
        })
        .collect()
}

fn environment(recipe: &Recipe) -> BTreeMap<String, String> {
    let of_distribution = recipe.distribution.iter().flat_map(|d| &d.env);
    let mut env: BTreeMap<String, String> = of_distribution
        .map(|(name, value)| (name.clone(), scalar_text(value)))
        .collect();
    env.extend(recipe.inputs.runtime_env.clone());
    env
}

/// Whether a recipe wants an optional check of the result, and whether a problem fails the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// The check is not made.
    Off,
    /// The check is made, and problems are only reported.
    Report,
    /// The check is made, and problems fail the run.
    Strict,
}

/// Parses `artifacts.verify` or `artifacts.workspacePolicy` of a recipe: `false`, `true`, or an
/// object with `enabled` and `strict`.
#[must_use]
pub fn demand(value: Option<&Value>) -> Demand {
    match value {
        None | Some(Value::Bool(false)) => Demand::Off,
        Some(Value::Bool(true)) => Demand::Report,
        Some(value) if value.get("enabled") == Some(&Value::Bool(false)) => Demand::Off,
        Some(value) if value.get("strict") == Some(&Value::Bool(true)) => Demand::Strict,
        Some(_) => Demand::Report,
    }
}

fn workspace_rule(recipe: &Recipe) -> Option<WorkspaceRule> {
    let given = recipe.artifacts.workspace_policy.as_ref();
    let on_breach = match demand(given) {
        Demand::Off => return None,
        Demand::Report => OnFailure::Advise,
        Demand::Strict => OnFailure::Stop,
    };
    let list = |name: &str| -> Option<Vec<String>> {
        let rows = given?.get(name)?.as_array()?;
        Some(
            rows.iter()
                .filter_map(|r| r.as_str().map(str::to_owned))
                .collect(),
        )
    };
    Some(WorkspaceRule {
        workspaces: recipe
            .inputs
            .workspaces
            .iter()
            .filter_map(layout::workspace_target)
            .collect(),
        writable_roots: list("writableRoots").unwrap_or_else(|| vec![".".to_owned()]),
        hidden_paths: list("hiddenPaths").unwrap_or_default(),
        on_breach,
    })
}
