//! What a run request is made of.

use wp_codebox_contracts::{Component, MountRequest, RuntimePolicy, Workflow};

/// Directory of what a recipe itself stages.
pub(super) const STAGED: &str = "/run/codebox/staged/recipe";

/// A secret that the recipe names and the caller has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUse {
    /// Its name.
    pub name: String,
    /// Hosts it is for.
    pub hosts: Vec<String>,
}

/// What a run request is made of. Host paths are as the recipe has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// Mounts in order.
    pub mounts: Vec<MountRequest>,
    /// Plugins and fakes in order.
    pub components: Vec<Component>,
    /// Steps and everything they need.
    pub workflow: Workflow,
    /// Secrets.
    pub secrets: Vec<SecretUse>,
    /// The policy in force.
    pub policy: RuntimePolicy,
}
