//! What a run request must contain to carry out a recipe.

use serde_json::{Map, Value};
use wp_codebox_contracts::{Component, MountRequest, RuntimePolicy, Service, Workflow};

/// Guest directory for files that come from the recipe and not from the caller's request.
pub(super) const STAGED: &str = "/run/codebox/staged/recipe";

/// A secret that the recipe uses and the caller can provide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUse {
    /// Name of the secret's environment variable.
    pub name: String,
    /// Hosts to which the secret's value may be sent.
    pub hosts: Vec<String>,
}

/// The members of a run request that carry out a recipe. Host paths are as written in the recipe.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// Mounts in the order of the recipe: first those of its distribution.
    pub mounts: Vec<MountRequest>,
    /// Plugins and service fakes that are loaded in the guest, in the order of the recipe.
    pub components: Vec<Component>,
    /// Steps to execute, and the files that they need.
    pub workflow: Workflow,
    /// Input of the task of the step that runs an agent, in the form that `normalise_task` reads;
    /// `None` if the recipe has no such step.
    pub agent_task: Option<Map<String, Value>>,
    /// Servers that run in the guest.
    pub services: Vec<Service>,
    /// Secrets that the recipe uses and the caller can provide.
    pub secrets: Vec<SecretUse>,
    /// The caller's policy, or the one derived from the recipe.
    pub policy: RuntimePolicy,
    /// Sentences about settings that the run honours in another way than other runtimes.
    pub notices: Vec<String>,
}
