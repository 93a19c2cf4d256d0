//! Mounts, workspaces, plugins, files, seeds and secrets in the plan. Shows sources exactly as
//! written in the recipe and adds no host path.

use super::row::Row;
use crate::layout;
use crate::lower::reset as lower_reset;
use crate::model::{
    Access, IdStrategy, LoadAs, MountPhase, Recipe, SeedKind, SourceKind, SourceMode, Workspace,
};
use crate::policy;
use crate::sources::{PathKind, SecretStatus, Sources};
use serde_json::{Value, json};
use wp_codebox_contracts::{RuntimePolicy, SecretsPolicy, ServiceProvider};
use wp_codebox_policy::is_exposed;

/// Adds `mode`, and in `modeFrom` whether the recipe states the mode or it is the default.
fn mode(row: Row, given: Option<Access>, default: Access) -> Row {
    row.with("mode", given.unwrap_or(default)).with(
        "modeFrom",
        if given.is_some() { "recipe" } else { "default" },
    )
}

fn kind(given: Option<SourceKind>, source: &str, sources: &dyn Sources) -> SourceKind {
    given.unwrap_or(match sources.kind(source) {
        PathKind::File => SourceKind::File,
        PathKind::Directory | PathKind::Missing | PathKind::Other | PathKind::Denied => {
            SourceKind::Directory
        }
    })
}

/// Returns the mounts for the plan: first those of the distribution, then of the recipe, then
/// workspaces. The plan lists files of `inputs.stagedFiles` and of arguments in `stagedFiles`.
pub(super) fn mounts(recipe: &Recipe, sources: &dyn Sources) -> Vec<Value> {
    let of_distribution = recipe
        .distribution
        .iter()
        .flat_map(|d| &d.source_mounts)
        .map(|mount| {
            let row = Row::new()
                .with("type", kind(mount.kind, &mount.source, sources))
                .with("source", &mount.source)
                .with("target", &mount.target);
            mode(row, mount.mode, Access::Readonly)
                .maybe("role", mount.role.as_ref())
                .maybe("ref", mount.reference.as_ref())
                .maybe("metadata", mount.metadata.as_ref())
                .with("origin", "distribution")
                .with("planned", "existing")
                .value()
        });
    let of_recipe = crate::places::mounts(recipe);
    let of_recipe = of_recipe.into_iter().map(|(path, mount)| {
        let origin = match path.starts_with("$.inputs") {
            true => "mounts",
            false => "stack",
        };
        let row = Row::new()
            .with("type", kind(mount.kind, &mount.source, sources))
            .with("source", &mount.source)
            .with("target", &mount.target);
        mode(row, mount.mode, Access::Readwrite)
            .with("captureArtifacts", mount.capture_artifacts.unwrap_or(true))
            .with("phase", mount.phase.unwrap_or(MountPhase::PostInstall))
            .maybe("git", mount.git.as_ref())
            .maybe("metadata", mount.metadata.as_ref())
            .with("origin", origin)
            .with("planned", "existing")
            .value()
    });
    let of_workspaces = recipe.inputs.workspaces.iter().map(|workspace| {
        let row = Row::new()
            .with("type", SourceKind::Directory)
            .maybe("source", workspace.seed.source.as_ref())
            .maybe("target", layout::workspace_target(workspace));
        mode(row, workspace.mode, Access::Readwrite)
            .maybe("git", workspace.git.as_ref())
            .with("origin", "workspaces")
            .with("planned", planned(workspace))
            .value()
    });
    of_distribution
        .chain(of_recipe)
        .chain(of_workspaces)
        .collect()
}

fn planned(workspace: &Workspace) -> &'static str {
    match workspace.seed.kind {
        SeedKind::Directory => "existing",
        SeedKind::Plugin | SeedKind::Theme => "generated",
    }
}

pub(super) fn workspaces(recipe: &Recipe) -> Vec<Value> {
    recipe
        .inputs
        .workspaces
        .iter()
        .enumerate()
        .map(|(index, workspace)| {
            let target = layout::workspace_target(workspace);
            let ignored = workspace.target.is_some() && workspace.target != target;
            let row = Row::new()
                .with("index", index)
                .maybe("source", workspace.seed.source.as_ref())
                .maybe("target", target);
            mode(row, workspace.mode, Access::Readwrite)
                .with(
                    "sourceMode",
                    workspace.source_mode.unwrap_or(SourceMode::Repo),
                )
                .with("seed", &workspace.seed)
                .with("generated", planned(workspace) == "generated")
                .with(
                    "metadata",
                    if ignored {
                        json!({"ignoredTarget": workspace.target, "reason": "a scaffold lies where WordPress looks for it"})
                    } else {
                        json!({})
                    },
                )
                .value()
        })
        .collect()
}

pub(super) fn extra_plugins(recipe: &Recipe, sources: &dyn Sources) -> Vec<Value> {
    crate::packages::plugins(recipe)
        .iter()
        .map(|(_, plugin)| {
            let placed = layout::place_plugin(plugin, sources);
            let active = match placed.load_as {
                LoadAs::Plugin => plugin.activate.unwrap_or(true),
                LoadAs::MuPlugin => true,
            };
            let provenance = Row::new()
                .maybe("sourceRoot", plugin.source_root.as_ref())
                .maybe("sourceSubpath", plugin.source_subpath.as_ref())
                .maybe("sourceSubdir", plugin.source_subdir.as_ref())
                .maybe("originalSource", plugin.original_source.as_ref())
                .maybe("sha256", plugin.sha256.as_ref())
                .maybe("metadata", plugin.metadata.as_ref());
            Row::new()
                .with("source", placed.source)
                .with(
                    "sourceRef",
                    plugin.original_source.as_deref().unwrap_or(placed.source),
                )
                .with("sourceType", placed.from.as_str())
                .with("slug", &placed.slug)
                .with("target", &placed.target)
                .with("pluginFile", &placed.file)
                .with("activate", active)
                .with("loadAs", placed.load_as)
                .with("provenance", provenance.value())
                .value()
        })
        .collect()
}

pub(super) fn staged_files(recipe: &Recipe) -> Vec<Value> {
    recipe
        .inputs
        .staged_files
        .iter()
        .enumerate()
        .map(|(index, staged)| {
            Row::new()
                .with("index", index)
                .with("source", &staged.source)
                .with("target", &staged.target)
                .value()
        })
        .collect()
}

pub(super) fn site_seeds(recipe: &Recipe) -> Vec<Value> {
    recipe
        .inputs
        .site_seeds
        .iter()
        .enumerate()
        .map(|(index, seed)| {
            let ids = seed.deterministic_ids.as_ref().map(|ids| {
                Row::new()
                    .with("strategy", ids.strategy)
                    .with("onUnsupported", ids.on_unsupported)
                    .with("supported", ids.strategy == IdStrategy::Numeric)
                    .value()
            });
            Row::new()
                .with("index", index)
                .with("type", seed.kind)
                .with("name", &seed.name)
                .maybe("source", seed.source.as_ref())
                .with("format", seed.format.as_deref().unwrap_or("json"))
                .maybe("deterministicIds", ids)
                .with("scopes", &seed.scopes)
                .value()
        })
        .collect()
}

/// Returns the users without passwords, and with the values that the guest uses for absent members.
pub(super) fn fixture_users(recipe: &Recipe) -> Vec<Value> {
    let rows = recipe.inputs.fixture_users.iter().map(|user| {
        Row::new()
            .with("name", &user.name)
            .maybe("userId", user.user_id)
            .with("username", user.username.as_ref().unwrap_or(&user.name))
            .maybe("email", user.email.as_ref())
            .with("role", user.role.as_deref().unwrap_or("subscriber"))
            .maybe("displayName", user.display_name.as_ref())
            .with(
                "password",
                if user.password.is_some() {
                    "given"
                } else {
                    "random"
                },
            )
            .maybe("metadata", user.metadata.as_ref())
            .value()
    });
    rows.collect()
}

pub(super) fn fixture_databases(recipe: &Recipe) -> Vec<Value> {
    let rows = recipe.inputs.fixture_databases.iter().enumerate();
    rows.map(|(index, dump)| {
        let reset = lower_reset(dump.reset.as_ref());
        Row::new()
            .with("index", index)
            .with("name", &dump.name)
            .with("version", &dump.version)
            .with("source", &dump.source)
            .with("format", "sql")
            .with("reset", reset)
            .maybe("metadata", dump.metadata.as_ref())
            .value()
    })
    .collect()
}

pub(super) fn agent_bundles(recipe: &Recipe) -> Vec<Value> {
    let rows = recipe.inputs.agent_bundles.iter().enumerate();
    rows.map(|(index, bundle)| {
        Row::new()
            .with("index", index)
            .maybe("source", bundle.source.as_ref())
            .maybe("slug", bundle.slug.as_ref())
            .with("on_conflict", bundle.on_conflict)
            .with("owner_id", bundle.owner_id.unwrap_or(1))
            .maybe("token_env", bundle.token_env.as_ref())
            .value()
    })
    .collect()
}

/// Returns a row for each service of the guest, with the environment variables of its outputs.
pub(super) fn services(recipe: &Recipe) -> Vec<Value> {
    recipe
        .inputs
        .services
        .iter()
        .map(|service| {
            Row::new()
                .with("id", &service.id)
                .with("kind", service.kind)
                .with("provider", ServiceProvider::Native)
                .with("configuration", &service.configuration)
                .with("outputs", &service.outputs)
                .value()
        })
        .collect()
}

pub(super) fn external_services(recipe: &Recipe) -> Vec<Value> {
    recipe
        .inputs
        .external_services
        .iter()
        .map(|service| json!(service))
        .collect()
}

/// Returns for each secret its name, whether the caller has it, and in `delivery` where its value
/// would go: nowhere, to guest programs, or through the egress bridge to the listed hosts.
pub(super) fn secret_env(
    recipe: &Recipe,
    sources: &dyn Sources,
    policy: &RuntimePolicy,
) -> Vec<Value> {
    policy::secret_names(recipe)
        .iter()
        .map(|name| {
            let hosts = policy::open_hosts(recipe, policy, name);
            let row = Row::new().with("name", name);
            match sources.secret(name) {
                // Validation has refused a value that cannot be used.
                SecretStatus::Missing | SecretStatus::Unusable { .. } => row
                    .with("available", false)
                    .with("status", "missing")
                    .with("delivery", "none")
                    .value(),
                SecretStatus::Available { source } => {
                    let delivery = if policy.secrets == SecretsPolicy::None {
                        "none"
                    } else if is_exposed(policy, name) {
                        "guest"
                    } else if hosts.is_empty() {
                        "none"
                    } else {
                        "bridge"
                    };
                    row.with("available", true)
                        .with("status", "available")
                        .with("source", source)
                        .with("delivery", delivery)
                        .some("hosts", hosts.into_iter().map(Value::from).collect())
                        .value()
                }
            }
        })
        .collect()
}
