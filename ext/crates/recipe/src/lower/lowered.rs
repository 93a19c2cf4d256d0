//! Parts of the run request that implement a recipe.

use wp_codebox_contracts::{Component, MountRequest, RuntimePolicy, Workflow};

/// Guest directory of the files that the recipe itself stages.
pub(super) const STAGED: &str = "/run/codebox/staged/recipe";

/// A secret that the recipe names and the caller has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUse {
    /// Name of the secret.
    pub name: String,
    /// Hosts that may receive the value.
    pub hosts: Vec<String>,
}

/// Parts of a run request. Host paths are those of the recipe.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// Mounts in order.
    pub mounts: Vec<MountRequest>,
    /// Plugins and service fakes in order.
    pub components: Vec<Component>,
    /// Steps and their files.
    pub workflow: Workflow,
    /// Secrets.
    pub secrets: Vec<SecretUse>,
    /// Effective policy.
    pub policy: RuntimePolicy,
}
