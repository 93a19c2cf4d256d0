//! Effective policy of a recipe: the caller's own, or one derived from the recipe.

use crate::agent_step;
use crate::layout;
use crate::model::{Recipe, SafetyNetwork};
use crate::sources::{SecretStatus, Sources};
use serde_json::Value;
use wp_codebox_contracts::{
    CommandCall, NetworkPolicy, NetworkRules, PolicyIssue, RuntimePolicy, SecretsPolicy,
};
use wp_codebox_policy::{PolicyError, call_commands};

/// Command that a policy must list for programs of an agent.
const AGENT_PROGRAM: &str = "command-agent-run";

/// Where the runtime policy for a recipe comes from.
#[derive(Debug, Clone, Copy)]
pub enum PolicyChoice<'a> {
    /// The policy is derived from the recipe and permits only what the recipe needs.
    Derived,
    /// The policy that the caller passed, unchanged. It must list every command of the recipe.
    Given(&'a Value),
}

/// Returns all registry commands that the policy must allow for the recipe, in order of their first
/// use: the commands of its steps and probes, and the commands that these run in turn.
pub(crate) fn commands(recipe: &Recipe) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut add = |call: &CommandCall| {
        for needed in call_commands(call) {
            if !commands.contains(&needed) {
                commands.push(needed);
            }
        }
    };
    for step in crate::blueprint::steps(recipe.runtime.blueprint.as_ref()) {
        add(&step.call);
    }
    for placed in layout::setup(recipe) {
        add(&placed.call());
    }
    for probe in recipe
        .inputs
        .plugin_runtime
        .iter()
        .flat_map(|r| &r.health_probes)
    {
        add(&layout::health_call(probe));
    }
    for probe in recipe.distribution.iter().flat_map(|d| &d.startup_probes) {
        add(&layout::startup_call(probe));
    }
    for placed in layout::workflow(recipe) {
        add(&placed.call());
    }
    for placed in layout::probes(recipe) {
        add(&placed.call());
    }
    // Plugin activation and site seeding run PHP in the guest.
    let inputs = &recipe.inputs;
    if !inputs.extra_plugins.is_empty() || !inputs.site_seeds.is_empty() {
        add(&CommandCall {
            command: "wordpress.run-php".to_owned(),
            args: Vec::new(),
        });
    }
    commands
}

/// Derives a policy from a recipe. It opens only the hosts that the distribution declares, allows
/// only the recipe's commands, and permits secrets only if the caller has a secret that the recipe
/// names.
#[must_use]
pub fn derive_policy(recipe: &Recipe, sources: &dyn Sources) -> RuntimePolicy {
    let mut commands = commands(recipe);
    // Tools of the built-in agent that run programs need this command.
    let program = AGENT_PROGRAM.to_owned();
    if agent_step::call(recipe).is_some() && !commands.contains(&program) {
        commands.push(program);
    }
    let mut policy = wp_codebox_policy::defaults(commands);
    let safety = recipe.distribution.as_ref().and_then(|d| d.safety.as_ref());
    if let Some(safety) = safety
        && safety.network == Some(SafetyNetwork::Declared)
        && !safety.allowed_hosts.is_empty()
    {
        policy.network = NetworkPolicy::Rules(NetworkRules {
            allow_hosts: safety.allowed_hosts.clone(),
            ..NetworkRules::default()
        });
    }
    let available = |name: &String| match sources.secret(name) {
        SecretStatus::Available { .. } => true,
        SecretStatus::Missing => false,
    };
    if recipe.inputs.secret_env.iter().any(available) {
        policy.secrets = SecretsPolicy::ConnectorScoped;
    }
    policy
}

/// Returns the effective policy, or all issues of the caller's policy.
pub(crate) fn effective(
    recipe: &Recipe,
    sources: &dyn Sources,
    choice: PolicyChoice<'_>,
) -> Result<RuntimePolicy, Vec<PolicyIssue>> {
    match choice {
        PolicyChoice::Derived => Ok(derive_policy(recipe, sources)),
        PolicyChoice::Given(document) => {
            wp_codebox_policy::parse(document).map_err(|error| match error {
                PolicyError::Invalid { issues } | PolicyError::Unenforceable { issues } => issues,
                other => vec![PolicyIssue {
                    code: "invalid".to_owned(),
                    field: String::new(),
                    message: other.to_string(),
                }],
            })
        }
    }
}

/// Returns the hosts that may receive the secret `name`: the allowed hosts of each external
/// service, and of the distribution, that names this secret.
pub(crate) fn secret_hosts(recipe: &Recipe, name: &str) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    let mut add = |names: &[String], of: &[String]| {
        if names.iter().any(|n| n == name) {
            for host in of {
                if !hosts.contains(host) {
                    hosts.push(host.clone());
                }
            }
        }
    };
    for service in &recipe.inputs.external_services {
        add(&service.secret_env, &service.allowed_hosts);
    }
    if let Some(safety) = recipe.distribution.as_ref().and_then(|d| d.safety.as_ref()) {
        add(&safety.secret_env, &safety.allowed_hosts);
    }
    hosts
}

/// Returns which access to `host` the policy's network rules grant.
pub(crate) fn opens(policy: &RuntimePolicy, host: &str) -> Opened {
    match &policy.network {
        NetworkPolicy::Posture(_) => Opened::Nothing,
        NetworkPolicy::Rules(rules) => {
            let reads = |methods: &[String]| {
                !methods.is_empty()
                    && methods
                        .iter()
                        .all(|m| matches!(m.as_str(), "GET" | "HEAD" | "OPTIONS"))
            };
            let bare = host.split(':').next().unwrap_or(host);
            let same = |other: &str| other == host || other == bare;
            if rules.allow_hosts.iter().any(|h| same(h)) {
                return Opened::Everything;
            }
            let of_host: Vec<_> = rules.rules.iter().filter(|r| same(&r.host)).collect();
            if of_host.is_empty() {
                Opened::Nothing
            } else if of_host.iter().all(|r| reads(&r.methods)) {
                Opened::Reads
            } else {
                Opened::Everything
            }
        }
    }
}

/// Access to a host that the policy's network rules grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    Nothing,
    Reads,
    Everything,
}
