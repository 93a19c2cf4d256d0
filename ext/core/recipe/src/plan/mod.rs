//! Dry run: describes everything a recipe would do, without doing it.
//!
//! The document is `wp-codebox/recipe-run-dry-run/v1`. Only a valid recipe has a plan. Members
//! have a fixed order and nothing depends on time, environment or chance: the same recipe on the
//! same host gives the same bytes.

mod inputs;
mod row;
mod steps;

use crate::issue::Issue;
use crate::layout;
use crate::model::{Access, Artifacts, Distribution, FakeLoad, Recipe, SafetyNetwork};
use crate::policy;
use crate::validate::{Context, failure, validate};
use row::Row;
use serde_json::{Value, json};
use wp_codebox_contracts::RuntimePolicy;

/// Schema id of the dry run document.
pub const RECIPE_RUN_DRY_RUN: &str = "wp-codebox/recipe-run-dry-run/v1";

/// Returns the dry run of a recipe. `recipe` is the result of `parse`.
#[must_use]
pub fn dry_run(
    recipe_path: &str,
    recipe: Result<&Recipe, &[Issue]>,
    context: Context<'_>,
) -> Value {
    let issues = match recipe {
        Ok(recipe) => validate(recipe, context),
        Err(issues) => issues.to_vec(),
    };
    let valid = issues.is_empty();
    let row = Row::new()
        .with("success", valid)
        .with("schema", RECIPE_RUN_DRY_RUN)
        .with("recipePath", recipe_path)
        .with("dryRun", true)
        .with("valid", valid)
        .with("validation", json!({ "issues": issues }));
    match (recipe, valid) {
        // A malformed policy is an issue, so a valid recipe always has a policy.
        (Ok(recipe), true) => {
            let policy = policy::effective(recipe, context.sources, context.policy);
            row.maybe(
                "plan",
                policy.ok().map(|policy| plan(recipe, context, &policy)),
            )
            .value()
        }
        (Ok(_) | Err(_), _) => row.with("error", failure(issues.len())).value(),
    }
}

fn plan(recipe: &Recipe, context: Context<'_>, policy: &RuntimePolicy) -> Value {
    let sources = context.sources;
    let mut policy_row = json!(policy);
    policy_row["valid"] = json!(true);
    policy_row["issues"] = json!([]);
    let plugin_runtime = recipe
        .inputs
        .plugin_runtime
        .as_ref()
        .map(|runtime| steps::plugin_runtime(recipe, runtime, policy));
    let mut staged = inputs::staged_files(recipe);
    staged.extend(steps::argument_files(recipe));
    Row::new()
        .with("runtime", runtime(recipe, context))
        .maybe(
            "distribution",
            recipe
                .distribution
                .as_ref()
                .map(|d| distribution(d, policy)),
        )
        .with("artifacts", artifacts(&recipe.artifacts))
        .with("mounts", inputs::mounts(recipe, sources))
        .with("workspaces", inputs::workspaces(recipe))
        .with("extra_plugins", inputs::extra_plugins(recipe, sources))
        .maybe("pluginRuntime", plugin_runtime)
        .with("fixtureDatabases", inputs::fixture_databases(recipe))
        .some("fixtureUsers", inputs::fixture_users(recipe))
        .some("userSessions", rows(&recipe.inputs.user_sessions))
        .some("browserActors", rows(&recipe.inputs.browser_actors))
        .some("agent_bundles", inputs::agent_bundles(recipe))
        .with("siteSeeds", inputs::site_seeds(recipe))
        .with("stagedFiles", staged)
        .with("externalServices", inputs::external_services(recipe))
        .with("services", inputs::services(recipe))
        .with("probes", steps::probes(recipe, policy))
        .with("runtimeEnv", &recipe.inputs.runtime_env)
        .with("secretEnv", inputs::secret_env(recipe, sources, policy))
        .with("policy", policy_row)
        .with("workflow", steps::workflow(recipe, policy))
        .some(
            "notices",
            crate::notices::notices(recipe, sources)
                .into_iter()
                .map(Value::from)
                .collect(),
        )
        .maybe("metadata", recipe.metadata.as_ref())
        .value()
}

fn rows(list: &[impl serde::Serialize]) -> Vec<Value> {
    list.iter().map(|row| json!(row)).collect()
}

fn runtime(recipe: &Recipe, context: Context<'_>) -> Value {
    let runtime = &recipe.runtime;
    let facts = context.sources.facts();
    Row::new()
        .with("backend", "native")
        .maybe("requestedBackend", runtime.backend.as_ref())
        .with(
            "name",
            runtime.name.as_deref().unwrap_or("wp-codebox-recipe"),
        )
        .with("wp", runtime.wp.as_deref().unwrap_or("latest"))
        .with("wordpressVersion", &facts.wordpress_version)
        .with("phpVersion", &facts.php_version)
        .maybe("workers", runtime.workers.as_ref())
        .maybe(
            "wordpressInstallMode",
            runtime.wordpress_install_mode.as_ref(),
        )
        .maybe(
            "assets",
            runtime.assets.as_ref().map(|assets| {
                Row::new()
                    .maybe("wordpressDirectory", assets.wordpress_directory.as_ref())
                    .maybe("wordpressZip", assets.wordpress_zip.as_ref())
                    .value()
            }),
        )
        .with("blueprint", runtime.blueprint.clone().unwrap_or_default())
        .some(
            "extensions",
            runtime
                .bundled_extensions
                .iter()
                .map(|name| json!(name))
                .collect(),
        )
        .value()
}

fn distribution(distribution: &Distribution, policy: &RuntimePolicy) -> Value {
    let fakes = distribution
        .service_fakes
        .iter()
        .map(|fake| {
            Row::new()
                .with("name", &fake.name)
                .with("source", &fake.source)
                .with("load", fake.load.unwrap_or(FakeLoad::MuPlugin))
                .maybe("sideEffectsArtifact", fake.side_effects_artifact.as_ref())
                .maybe("metadata", fake.metadata.as_ref())
                .value()
        })
        .collect();
    let probes = distribution
        .startup_probes
        .iter()
        .map(|probe| {
            Row::new()
                .with("name", &probe.name)
                .with("type", probe.kind)
                .maybe("expectStatus", probe.expect_status)
                .with("call", steps::call(&layout::startup_call(probe), policy))
                .maybe("metadata", probe.metadata.as_ref())
                .value()
        })
        .collect();
    let mounts = distribution
        .source_mounts
        .iter()
        .map(|mount| {
            Row::new()
                .with("target", &mount.target)
                .with("mode", mount.mode.unwrap_or(Access::Readonly))
                .value()
        })
        .collect();
    let safety = distribution.safety.as_ref();
    Row::new()
        .with("name", &distribution.name)
        .with("wordpress", &distribution.wordpress)
        .some("sourceMounts", mounts)
        .with("env", &distribution.env)
        .with("constants", &distribution.constants)
        .some("serviceFakes", fakes)
        .some("startupProbes", probes)
        .some(
            "artifacts",
            distribution.artifacts.iter().map(|a| json!(a)).collect(),
        )
        .with(
            "safety",
            json!({
                "network": safety.and_then(|s| s.network).unwrap_or(SafetyNetwork::Deny),
                "allowedHosts": safety.map(|s| s.allowed_hosts.clone()).unwrap_or_default(),
                "secretEnv": safety.map(|s| s.secret_env.clone()).unwrap_or_default(),
            }),
        )
        .value()
}

fn artifacts(artifacts: &Artifacts) -> Value {
    let paths = artifacts
        .paths
        .iter()
        .map(|artifact| {
            Row::new()
                .with("name", &artifact.name)
                .with("path", &artifact.path)
                .with("required", artifact.required.unwrap_or(true))
                .with("parseJson", artifact.parse_json.unwrap_or(false))
                .maybe("metadata", artifact.metadata.as_ref())
                .value()
        })
        .collect();
    let typed = artifacts
        .typed
        .iter()
        .map(|artifact| {
            Row::new()
                .with("name", &artifact.name)
                .with("type", &artifact.kind)
                .with("path", &artifact.path)
                .with("required", artifact.required.unwrap_or(true))
                .with("parseJson", artifact.parse_json.unwrap_or(false))
                .maybe("contentType", artifact.content_type.as_ref())
                .maybe("payloadSchema", artifact.payload_schema.as_ref())
                .maybe("metadata", artifact.metadata.as_ref())
                .value()
        })
        .collect();
    Row::new()
        .maybe("directory", artifacts.directory.as_ref())
        .with("verify", check(artifacts.verify.as_ref()).value())
        .with(
            "workspacePolicy",
            workspace_policy(artifacts.workspace_policy.as_ref()),
        )
        .some("paths", paths)
        .some("typed", typed)
        .value()
}

/// Parses the setting of a check: off if absent or `false`, on if `true`. An object means on,
/// unless its member `enabled` is false; `strict` is false by default.
fn check(given: Option<&Value>) -> Row {
    let flag = |name: &str, default: bool| {
        given
            .and_then(|v| v.get(name))
            .and_then(Value::as_bool)
            .unwrap_or(default)
    };
    let enabled = match given {
        None | Some(Value::Bool(false)) => false,
        Some(Value::Object(_)) => flag("enabled", true),
        Some(_) => true,
    };
    Row::new()
        .with("enabled", enabled)
        .with("strict", enabled && flag("strict", false))
}

fn workspace_policy(given: Option<&Value>) -> Value {
    let of = |name: &str| given.and_then(|v| v.get(name)).cloned();
    check(given)
        .with("writableRoots", of("writableRoots").unwrap_or(json!(["."])))
        .with("hiddenPaths", of("hiddenPaths").unwrap_or(json!([])))
        .with("gitBacked", of("gitBacked").unwrap_or(json!(false)))
        .value()
}
