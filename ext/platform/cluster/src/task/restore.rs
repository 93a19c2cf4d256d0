//! Makes a request from a task, on a node.
//!
//! Invariants: every path of the request is one of the node's settings or lies in a layer of the
//! task. Only layers may be mounted (`allowed_roots`), so a mistake here is refused by the mount rules
//! too. The provenance names task, epoch and layers; the bundle's signature covers it.

use super::document::{
    ClusterTask, PROVENANCE, TaskAgentBundle, TaskComponent, TaskFile, TaskMount, TaskSource,
    TaskWrapper, WorkTree, unreadable,
};
use super::error::TaskError;
use crate::values::SecretValues;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{
    AgentBundle, Component, GitChoice, MountRequest, OuterSandbox, RunMode, RunPaths, RunRequest,
    SecretBinding, Sha256Hex, SiteId, StagedFile, schema_id,
};

/// Source of a generated mount, which needs no file of the host; the supervisor never reads it.
const NO_SOURCE: &str = "/dev/null";

/// Whether guests on a node can have git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitSupport {
    /// The node has git and starts guests at level `full`.
    Available,
    /// It does not; mounts with `git: auto` get no repository.
    Unavailable,
}

/// Whether tasks may use models at private and loopback addresses of a node's network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PrivateModels {
    /// A task with such a model is refused.
    #[default]
    Refuse,
    /// The node's operator allows them.
    Allow,
}

/// What a node adds to a task.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// Partition of the node's state directory for the submitter.
    pub site: SiteId,
    /// Whether the run ends with the process that started it.
    pub mode: RunMode,
    /// Maximum number of concurrent runs of the site.
    pub max_runs: u32,
    /// Host paths and settings of the node. `wordpress` and `allowed_roots` are replaced.
    pub paths: RunPaths,
    /// Whether guests can have git.
    pub git: GitSupport,
    /// Whether private models are allowed.
    pub private_models: PrivateModels,
}

/// Layers of a task and the directories with their files.
type Layers<'l> = BTreeMap<&'l Sha256Hex, &'l str>;

impl ClusterTask {
    /// Makes a request from the task. `layers` has the directory of each of
    /// [`ClusterTask::inputs`], `digest` is the digest of the document and `epoch` that of the
    /// claim.
    ///
    /// # Errors
    /// [`TaskError::NoLayer`], [`TaskError::NoValue`], and [`TaskError::Unsupported`] for what this
    /// node does not allow.
    pub fn into_request(
        self,
        digest: &Sha256Hex,
        epoch: u64,
        node: NodeSettings,
        layers: &BTreeMap<Sha256Hex, PathBuf>,
        mut values: SecretValues,
    ) -> Result<RunRequest, TaskError> {
        let inputs = self.inputs();
        let mut places = Layers::new();
        for layer in &inputs {
            let path = layers.get(layer).and_then(|path| path.to_str());
            let path = path.ok_or_else(|| TaskError::NoLayer {
                digest: layer.clone(),
            })?;
            places.insert(layer, path);
        }
        let Self {
            schema: _,
            run_id,
            wordpress,
            files,
            mut task,
            staged,
            policy,
            mounts,
            seeds,
            activate,
            commands,
            mut workflow,
            workflow_staged,
            agent,
            model,
            tool_policy,
            components,
            agent_bundles,
            checks,
            limits,
            services,
            find_renames,
            secrets,
            redact,
            outer_sandbox: TaskWrapper { kind, need },
            mut provenance,
        } = self;
        let is_private = model.as_ref().is_some_and(|model| model.private);
        if is_private && node.private_models == PrivateModels::Refuse {
            return Err(TaskError::Unsupported {
                field: "model.private".to_owned(),
                why: "this node allows no model at a private address; its operator can allow them",
            });
        }
        let files = match &files {
            None => None,
            Some(digest) => Some(Path::new(layer(&places, digest)?)),
        };
        if let Some(task) = &mut task {
            task.staged_files = staged_files(staged, files)?;
        }
        if let Some(workflow) = &mut workflow {
            workflow.staged = staged_files(workflow_staged, files)?;
        }
        if values.redact.len() as u64 != redact {
            return Err(no_value("redact"));
        }
        let secrets = secrets
            .into_iter()
            .map(|name| {
                let value = values.secrets.remove(&name.env);
                let mut value = value.ok_or_else(|| no_value(&name.env))?;
                Ok(SecretBinding {
                    env: name.env,
                    value: std::mem::take(&mut *value),
                    hosts: name.hosts,
                })
            })
            .collect::<Result<_, TaskError>>()?;
        provenance.insert(
            PROVENANCE.to_owned(),
            Value::Object(cluster_provenance(digest, epoch, inputs.iter())),
        );
        let roots = places.values().map(|path| (*path).to_owned()).collect();
        let paths = RunPaths {
            wordpress: layer(&places, &wordpress)?.to_owned(),
            allowed_roots: Some(roots),
            ..node.paths
        };
        Ok(RunRequest {
            schema: schema_id::RUN_REQUEST.to_owned(),
            run_id,
            site: node.site,
            mode: node.mode,
            max_runs: node.max_runs,
            share: None,
            paths,
            task,
            follow_up: None,
            policy,
            mounts: mounts
                .into_iter()
                .map(|row| mount(row, node.git, &places, files))
                .collect::<Result<_, _>>()?,
            seeds,
            activate,
            commands,
            workflow,
            hold: None,
            agent,
            model,
            tool_policy,
            parent_tools: None,
            components: components
                .into_iter()
                .map(|row| component(row, &places, files))
                .collect::<Result<_, _>>()?,
            agent_bundles: agent_bundles
                .into_iter()
                .map(|row| agent_bundle(row, files))
                .collect::<Result<_, _>>()?,
            checks,
            limits,
            services,
            find_renames,
            secrets,
            outer_sandbox: OuterSandbox {
                kind,
                program: None,
                need,
            },
            placement: None,
            redact: values
                .redact
                .iter_mut()
                .map(|value| std::mem::take(&mut **value))
                .collect(),
            provenance,
        })
    }

    /// Returns what the provenance of the run's bundle must say under `cluster`.
    #[must_use]
    pub(crate) fn provenance(&self, digest: &Sha256Hex, epoch: u64) -> Value {
        Value::Object(cluster_provenance(digest, epoch, self.inputs().iter()))
    }
}

fn cluster_provenance<'d>(
    task: &Sha256Hex,
    epoch: u64,
    inputs: impl Iterator<Item = &'d Sha256Hex>,
) -> Map<String, Value> {
    Map::from_iter([
        ("task".to_owned(), json!(task)),
        ("epoch".to_owned(), json!(epoch)),
        ("inputs".to_owned(), json!(inputs.collect::<Vec<_>>())),
    ])
}

fn layer<'l>(places: &Layers<'l>, digest: &Sha256Hex) -> Result<&'l str, TaskError> {
    let found = places.get(digest).copied();
    found.ok_or_else(|| TaskError::NoLayer {
        digest: digest.clone(),
    })
}

fn no_value(name: &str) -> TaskError {
    TaskError::NoValue {
        name: name.to_owned(),
    }
}

/// Returns the path of a single file.
fn file(name: &str, files: Option<&Path>) -> Result<String, TaskError> {
    let path = files.map(|files| files.join(name));
    let path = path.and_then(|path| path.to_str().map(str::to_owned));
    path.ok_or_else(|| unreadable("it names a file and has no layer with files"))
}

fn source(
    source: &TaskSource,
    places: &Layers<'_>,
    files: Option<&Path>,
) -> Result<String, TaskError> {
    match source {
        TaskSource::Layer(digest) => Ok(layer(places, digest)?.to_owned()),
        TaskSource::File(name) => file(name, files),
        TaskSource::Generated => Ok(NO_SOURCE.to_owned()),
    }
}

fn staged_files(staged: Vec<TaskFile>, files: Option<&Path>) -> Result<Vec<StagedFile>, TaskError> {
    let place = |TaskFile { name, target }| {
        let source = file(&name, files)?;
        Ok(StagedFile { source, target })
    };
    staged.into_iter().map(place).collect()
}

fn mount(
    row: TaskMount,
    support: GitSupport,
    places: &Layers<'_>,
    files: Option<&Path>,
) -> Result<MountRequest, TaskError> {
    let TaskMount {
        source: from,
        target,
        mode,
        exclude,
        git,
        work_tree,
        metadata,
    } = row;
    // A layer has no `.git`, so the supervisor would never find a work tree for `auto`.
    let git = match (git, work_tree, support) {
        (GitChoice::Auto, WorkTree::Inside, GitSupport::Available) => GitChoice::Baseline,
        (GitChoice::Auto, WorkTree::Inside, GitSupport::Unavailable)
        | (GitChoice::Auto, WorkTree::Outside, _) => GitChoice::None,
        (GitChoice::Baseline | GitChoice::History | GitChoice::None, _, _) => git,
    };
    Ok(MountRequest {
        source: source(&from, places, files)?,
        target,
        mode,
        exclude,
        git,
        metadata,
    })
}

fn component(
    row: TaskComponent,
    places: &Layers<'_>,
    files: Option<&Path>,
) -> Result<Component, TaskError> {
    let TaskComponent {
        slug,
        source: from,
        load_as,
        entry,
        activate,
        required,
        readiness_probe,
    } = row;
    Ok(Component {
        slug,
        source: source(&from, places, files)?,
        load_as,
        entry,
        activate,
        required,
        readiness_probe,
    })
}

fn agent_bundle(row: TaskAgentBundle, files: Option<&Path>) -> Result<AgentBundle, TaskError> {
    let TaskAgentBundle {
        file: name,
        bundle,
        slug,
        on_conflict,
        owner_id,
        token_env,
        import_principal,
    } = row;
    Ok(AgentBundle {
        source: name.map(|name| file(&name, files)).transpose()?,
        bundle,
        slug,
        on_conflict,
        owner_id,
        token_env,
        import_principal,
    })
}
