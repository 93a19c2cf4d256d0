//! From a valid recipe to a run request.

use super::{Host, Loaded};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LimitsRequest, RunId, RunPaths, RunRequest, SecretBinding, SiteId,
    TaskSpec,
};
use wp_codebox_recipe::{Lowered, Recipe};

/// What a caller says beside the recipe.
#[derive(Debug)]
pub(crate) struct Asked {
    pub run_id: RunId,
    pub site: SiteId,
    pub paths: RunPaths,
    pub wall_clock_ms: u64,
    /// Where the bundle is copied to.
    pub artifacts: Option<PathBuf>,
}

fn text(path: &Path) -> Result<String, ErrorBody> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        ErrorBody::new(
            ErrorCode::InputInvalid,
            format!("{} is not valid UTF-8", path.display()),
        )
    })
}

/// The request of what a recipe comes down to.
pub(crate) fn build(
    loaded: &Loaded,
    recipe: &Recipe,
    host: &Host,
    lowered: Lowered,
    asked: &Asked,
) -> Result<RunRequest, ErrorBody> {
    let mut lowered = lowered;
    // The one source that is no path of the recipe is absolute already.
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
    let secrets = lowered
        .secrets
        .into_iter()
        .filter_map(|secret| {
            // It was there a moment ago; if it is gone, nothing is given to anybody.
            let value = std::env::var(&secret.name).ok()?;
            Some(SecretBinding {
                env: secret.name,
                value,
                hosts: secret.hosts,
            })
        })
        .collect();
    let mut provenance = Map::new();
    provenance.insert("requester".to_owned(), Value::from("command-line"));
    provenance.insert(
        "recipe".to_owned(),
        json!({"schema": recipe.schema, "sha256": loaded.sha256}),
    );
    let spec = TaskSpec {
        policy: Some(lowered.policy),
        mounts: lowered.mounts,
        workflow: Some(lowered.workflow),
        components: lowered.components,
        limits: LimitsRequest {
            wall_clock_ms: Some(asked.wall_clock_ms),
            ..LimitsRequest::default()
        },
        secrets,
        provenance,
        ..TaskSpec::default()
    };
    let (run_id, site) = (asked.run_id.clone(), asked.site.clone());
    Ok(spec.into_request(run_id, site, asked.paths.clone()))
}

/// A bundle that lands in a mounted directory would be a change of it.
fn check_artifacts(lowered: &Lowered, artifacts: Option<&Path>) -> Result<(), ErrorBody> {
    let Some(directory) = artifacts else {
        return Ok(());
    };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // What does not exist yet lies where its nearest parent does.
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
                "the directory for artifacts lies in the source of the mount {}: name one outside of it",
                mount.target
            ),
        )
        .with("reason", "recipe-artifacts-mount-conflict")),
    }
}
