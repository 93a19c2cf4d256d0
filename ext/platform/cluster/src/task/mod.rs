//! Tasks of a cluster: a run's request as a document without host paths and without secrets.
//!
//! [`ClusterTask::of_request`] makes the document on the submitting host, and
//! [`ClusterTask::into_request`] makes a request from it on a node. Both functions list every field
//! of a request, so a new field does not compile before both handle it:
//!
//! | fields | in the document |
//! |---|---|
//! | `run_id`, `task`, `policy`, `seeds`, `activate`, `commands`, `workflow`, `agent`, `model`, `tool_policy`, `checks`, `limits`, `services`, `find_renames`, `provenance` | as they are |
//! | sources of `mounts` and `components`, `paths.wordpress` | digests of layers |
//! | staged files, archives, sources of `agent_bundles` | names in one layer with single files |
//! | `secrets`, `redact` | names and hosts; the number of values |
//! | `site`, `mode`, `max_runs`, all other `paths` | nothing; the node has its own |
//! | `outer_sandbox` | kind and need; a program of the submitting host is refused |
//! | `parent_tools`, `hold`, `follow_up`, `git: history` of a mount | refused: they need the submitting host |
//!
//! The document names agent presets; their files and programs are on the node. A mount with
//! `git: auto` gets a repository on a node as on the submitting host: the document says whether the
//! source lies in a work tree. `.git` itself is in no layer.

mod build;
mod document;
mod error;
mod inputs;
mod restore;

pub use build::InputSource;
pub use document::{
    ClusterTask, MAX_TASK_BYTES, SCHEMA, SecretName, TaskAgentBundle, TaskComponent, TaskFile,
    TaskMount, TaskSource, TaskWrapper, WorkTree,
};
pub use error::TaskError;
pub use inputs::UploadedInputs;
pub use restore::{GitSupport, NodeSettings, PrivateModels};

#[cfg(test)]
pub(crate) mod tests;
