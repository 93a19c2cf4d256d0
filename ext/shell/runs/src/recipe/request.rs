//! Converts a valid recipe to a run request.

use super::host::secret_value;
use super::{AgentOptions, Host, Loaded, agent};
use crate::paths::text;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LimitsRequest, RunId, RunPaths, RunRequest, SecretBinding, SiteId,
    TaskSpec,
};
use wp_codebox_recipe::{Lowered, Recipe};

/// Values for a run that come from the command line and not from the recipe.
#[derive(Debug)]
pub struct Asked<'a> {
    /// Id of the run.
    pub run_id: RunId,
    /// Partition of the state directory.
    pub site: SiteId,
    /// Host paths of the run.
    pub paths: RunPaths,
    /// Time limit of the run in milliseconds.
    pub wall_clock_ms: u64,
    /// Directory below which the bundle is copied, if the caller wants a copy.
    pub artifacts: Option<PathBuf>,
    /// Options about the agent of the recipe.
    pub agent: &'a AgentOptions,
}

/// Builds the run request of a recipe. `lowered` is the recipe converted to the fields of a run.
pub fn build(
    loaded: &Loaded,
    recipe: &Recipe,
    host: &Host,
    lowered: Lowered,
    asked: &Asked<'_>,
) -> Result<RunRequest, ErrorBody> {
    let mut lowered = lowered;
    // One source, `/dev/null`, does not come from the recipe. Resolving does not change it, because
    // it is absolute.
    for mount in &mut lowered.mounts {
        mount.source = text(&host.resolve(&mount.source))?;
    }
    for component in &mut lowered.components {
        component.source = text(&host.resolve(&component.source))?;
    }
    for staged in &mut lowered.workflow.staged {
        staged.source = text(&host.resolve(&staged.source))?;
    }
    check_artifacts(&lowered, asked.artifacts.as_deref())?;
    let task = match &lowered.agent_task {
        Some(input) => agent::task(input, asked.agent, &lowered.policy, host)?,
        None => agent::no_task(asked.agent)?,
    };
    let mut secrets: Vec<SecretBinding> = lowered
        .secrets
        .into_iter()
        .filter_map(|secret| {
            // `lowered` contains only secrets that the host has.
            let (value, _) = secret_value(&secret.name, host.environment())?;
            Some(SecretBinding {
                env: secret.name,
                value,
                hosts: secret.hosts,
            })
        })
        .collect();
    // A key that the recipe also uses as a secret is added only once.
    let is_new = |key: &SecretBinding| secrets.iter().all(|secret| secret.env != key.env);
    let keys: Vec<SecretBinding> = task
        .secrets
        .iter()
        .filter(|key| is_new(key))
        .cloned()
        .collect();
    secrets.extend(keys);
    let mut provenance = Map::new();
    provenance.insert("requester".to_owned(), Value::from("command-line"));
    let mut told = json!({"schema": recipe.schema, "sha256": loaded.sha256});
    if !lowered.notices.is_empty() {
        told["notices"] = json!(lowered.notices);
    }
    provenance.insert("recipe".to_owned(), told);
    let spec = TaskSpec {
        policy: Some(lowered.policy),
        mounts: lowered.mounts,
        workflow: Some(lowered.workflow),
        services: lowered.services,
        components: lowered.components,
        limits: LimitsRequest {
            wall_clock_ms: Some(asked.wall_clock_ms),
            ..LimitsRequest::default()
        },
        secrets,
        provenance,
        ..task
    };
    let (run_id, site) = (asked.run_id.clone(), asked.site.clone());
    Ok(spec.into_request(run_id, site, asked.paths.clone()))
}

/// Fails if the directory for the copy of the bundle lies in a mounted directory: writing the copy
/// would change the mount's source.
fn check_artifacts(lowered: &Lowered, artifacts: Option<&Path>) -> Result<(), ErrorBody> {
    let Some(directory) = artifacts else {
        return Ok(());
    };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // A path that does not exist yet is resolved through its nearest existing parent.
    let there = directory
        .ancestors()
        .find_map(|a| Some((a.canonicalize().ok()?, directory.strip_prefix(a).ok()?)))
        .map_or_else(|| directory.to_owned(), |(real, rest)| real.join(rest));
    let inside = lowered
        .mounts
        .iter()
        .find(|mount| there.starts_with(real(Path::new(&mount.source))));
    match inside {
        None => Ok(()),
        Some(mount) => Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            format!(
                "the directory for artifacts is inside the source of the mount {}: choose a directory outside of it",
                mount.target
            ),
        )
        .with("reason", "recipe-artifacts-mount-conflict")),
    }
}
