//! The document `wp-codebox/cluster-task/v1`.
//!
//! Invariants: the bytes are those that [`ClusterTask::to_bytes`] writes. A reader serialises what
//! it read and compares, so members that this version does not know, members in another order and
//! repeated members are errors at every depth. No member is a path of a host, and the members of the
//! contracts' types that could hold one are empty.

use super::error::TaskError;
use crate::bus::ObjectName;
use crate::capped::Capped;
use crate::objects::Objects;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::{Read, Seek};
use wp_codebox_artifacts::sha256;
use wp_codebox_contracts::{
    Activation, Agent, BundleConflict, CommandCall, ComponentLoad, GitChoice, LimitsRequest,
    MAX_FRAME_BYTES, ModelEndpoint, MountAccess, OuterSandboxKind, OuterSandboxNeed,
    ReadinessProbe, ResolvedSeed, RunId, RuntimePolicy, SandboxToolPolicy, Service, Sha256Hex,
    TaskInput, Workflow,
};

/// Schema id of the document.
pub const SCHEMA: &str = "wp-codebox/cluster-task/v1";
/// Member of a run's provenance that the node writes.
pub(crate) const PROVENANCE: &str = "cluster";
/// Maximum size of the document in bytes: as large as a request to a supervisor.
pub const MAX_TASK_BYTES: u64 = MAX_FRAME_BYTES as u64;

/// A task that any node can run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterTask {
    /// Schema id, always [`SCHEMA`].
    pub schema: String,
    /// Id of the run.
    pub run_id: RunId,
    /// Layer with the WordPress core that the guest gets.
    pub wordpress: Sha256Hex,
    /// Layer with the single files of the task; absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Sha256Hex>,
    /// The task as the agent sees it, without its staged files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskInput>,
    /// Staged files of the task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staged: Vec<TaskFile>,
    /// Runtime policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<RuntimePolicy>,
    /// Mounts; their position is the mount index.
    pub mounts: Vec<TaskMount>,
    /// Content of the parent site for the guests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<ResolvedSeed>,
    /// Plugins and themes to activate in each guest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activate: Vec<Activation>,
    /// Calls of registry commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandCall>,
    /// Steps of the recipe, without its staged files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Workflow>,
    /// Staged files of the recipe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflow_staged: Vec<TaskFile>,
    /// Agent that does the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// Model; its key is one of `secrets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelEndpoint>,
    /// Tool policy of the built-in agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_policy: Option<SandboxToolPolicy>,
    /// Components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<TaskComponent>,
    /// Agent bundles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_bundles: Vec<TaskAgentBundle>,
    /// Checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Requested limits.
    pub limits: LimitsRequest,
    /// Servers in the guests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Whether the patch shows moved files as renames.
    pub find_renames: bool,
    /// Secrets without their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretName>,
    /// Number of further values that must not reach a log or bundle.
    pub redact: u64,
    /// Process wrapper of the launcher.
    pub outer_sandbox: TaskWrapper,
    /// Data for the bundle's provenance.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provenance: Map<String, Value>,
}

/// What replaces a host path of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSource {
    /// A directory, by the digest of its layer.
    Layer(Sha256Hex),
    /// A file, by its name in the layer `files`.
    File(String),
    /// Nothing: the workflow contains the files.
    Generated,
}

/// A file that the guest may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskFile {
    /// Name of the file in the layer `files`.
    pub name: String,
    /// Path of the file in the guest.
    pub target: String,
}

/// Whether the source of a mount lies in a git work tree on the submitting host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkTree {
    /// It lies in one.
    Inside,
    /// It does not.
    Outside,
}

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskMount {
    /// Files of the mount.
    pub source: TaskSource,
    /// Path of the mount in the guest.
    pub target: String,
    /// Whether the guest may write.
    pub mode: MountAccess,
    /// Names whose changes are not captured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Requested git repository; never `history`.
    pub git: GitChoice,
    /// Whether the source lies in a work tree, for the choice `auto`.
    pub work_tree: WorkTree,
    /// Free-form data from the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// A component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskComponent {
    /// Directory name in the guest.
    pub slug: String,
    /// Files of the component.
    pub source: TaskSource,
    /// How WordPress loads it.
    pub load_as: ComponentLoad,
    /// Entry file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Whether WordPress activates it.
    pub activate: bool,
    /// Whether the run fails without it.
    pub required: bool,
    /// Check that tells when the component is ready; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<ReadinessProbe>,
}

/// An agent bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskAgentBundle {
    /// Name of the document in the layer `files`; absent: it is in `bundle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The document itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Map<String, Value>>,
    /// Name of the imported agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// What the import does with an existing agent.
    pub on_conflict: BundleConflict,
    /// Owner of the imported agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<u64>,
    /// Name of a secret for the importing component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// Identity for the import.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_principal: Option<Map<String, Value>>,
}

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretName {
    /// Name of the environment variable.
    pub env: String,
    /// Hosts to which the value may be sent.
    pub hosts: Vec<String>,
}

/// Process wrapper of the launcher; the node has the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskWrapper {
    /// Kind of the wrapper.
    pub kind: OuterSandboxKind,
    /// What happens when the node lacks it.
    pub need: OuterSandboxNeed,
}

impl ClusterTask {
    /// Returns the bytes of the document. Equal tasks have equal bytes.
    ///
    /// # Errors
    /// [`TaskError::TooLarge`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, TaskError> {
        let bytes = serde_json::to_vec(self).map_err(|e| unreadable(&e.to_string()))?;
        match bytes.len() as u64 {
            length if length > MAX_TASK_BYTES => Err(TaskError::TooLarge {
                bytes: length,
                limit: MAX_TASK_BYTES,
            }),
            _ => Ok(bytes),
        }
    }

    /// Returns the digest of the document, which names it.
    ///
    /// # Errors
    /// [`TaskError::TooLarge`].
    pub fn digest(&self) -> Result<Sha256Hex, TaskError> {
        Ok(sha256(&self.to_bytes()?))
    }

    /// Reads a document of any origin.
    ///
    /// # Errors
    /// [`TaskError::Unreadable`] unless the bytes have this digest and are a document that this
    /// version writes.
    pub fn read(bytes: &[u8], digest: &Sha256Hex) -> Result<Self, TaskError> {
        if sha256(bytes) != *digest {
            return Err(unreadable("it does not have the digest in its name"));
        }
        let task: Self = serde_json::from_slice(bytes).map_err(|e| unreadable(&e.to_string()))?;
        if task.schema != SCHEMA {
            return Err(unreadable("it has another schema"));
        }
        if task.to_bytes()? != bytes {
            return Err(unreadable("it has members that this version does not know"));
        }
        task.check()?;
        Ok(task)
    }

    /// Stores the document and returns its digest.
    ///
    /// # Errors
    /// [`TaskError::TooLarge`] and [`TaskError::Bus`].
    pub fn put(&self, objects: &dyn Objects) -> Result<Sha256Hex, TaskError> {
        let bytes = self.to_bytes()?;
        let digest = sha256(&bytes);
        let name = ObjectName::Task(digest.clone());
        if !objects.has(&name)? {
            objects.put(&name, &mut bytes.as_slice())?;
        }
        Ok(digest)
    }

    /// Fetches and reads a document.
    ///
    /// # Errors
    /// [`TaskError::Bus`] and [`TaskError::Unreadable`].
    pub fn fetch(objects: &dyn Objects, digest: &Sha256Hex) -> Result<Self, TaskError> {
        let fail = |e: std::io::Error| unreadable(&e.to_string());
        let mut to = Capped::new(tempfile::tempfile().map_err(fail)?, MAX_TASK_BYTES);
        let got = objects.get(&ObjectName::Task(digest.clone()), &mut to);
        if to.is_exceeded {
            return Err(unreadable("it is larger than a task may be"));
        }
        got?;
        let mut bytes = Vec::new();
        to.file.rewind().map_err(fail)?;
        to.file.read_to_end(&mut bytes).map_err(fail)?;
        Self::read(&bytes, digest)
    }

    /// Returns whether the node has to ask for values of secrets.
    #[must_use]
    pub fn needs_values(&self) -> bool {
        !self.secrets.is_empty() || self.redact > 0
    }

    /// Returns the digests of all layers of the task.
    #[must_use]
    pub fn inputs(&self) -> BTreeSet<Sha256Hex> {
        let mounts = self.mounts.iter().map(|mount| &mount.source);
        let components = self.components.iter().map(|component| &component.source);
        let layers = mounts.chain(components).filter_map(|source| match source {
            TaskSource::Layer(digest) => Some(digest),
            TaskSource::File(_) | TaskSource::Generated => None,
        });
        layers
            .chain([&self.wordpress])
            .chain(&self.files)
            .cloned()
            .collect()
    }

    /// Checks what the types cannot express. A path in a document would name a file of the node.
    fn check(&self) -> Result<(), TaskError> {
        let staged = self.task.iter().flat_map(|task| &task.staged_files);
        let of_recipe = self.workflow.iter().flat_map(|workflow| &workflow.staged);
        if staged.chain(of_recipe).next().is_some() {
            return Err(unreadable("it names files of a host"));
        }
        if self
            .mounts
            .iter()
            .any(|mount| mount.git == GitChoice::History)
        {
            return Err(unreadable("a mount has the git choice history"));
        }
        let sources = self.mounts.iter().map(|mount| &mount.source);
        let of_components = self.components.iter().map(|component| &component.source);
        let files = sources
            .chain(of_components)
            .filter_map(|source| match source {
                TaskSource::File(name) => Some(name),
                TaskSource::Layer(_) | TaskSource::Generated => None,
            })
            .chain(self.staged.iter().map(|file| &file.name))
            .chain(self.workflow_staged.iter().map(|file| &file.name))
            .chain(
                self.agent_bundles
                    .iter()
                    .filter_map(|row| row.file.as_ref()),
            );
        for name in files {
            let is_plain = name.len() <= 32
                && !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if !is_plain || self.files.is_none() {
                return Err(unreadable("it names a file that its layer cannot contain"));
            }
        }
        if self.provenance.contains_key(PROVENANCE) {
            return Err(unreadable("its provenance names a cluster"));
        }
        Ok(())
    }
}

pub(super) fn unreadable(detail: &str) -> TaskError {
    TaskError::Unreadable {
        detail: detail.to_owned(),
    }
}
