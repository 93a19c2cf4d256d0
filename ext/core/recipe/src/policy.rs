//! Effective policy of a recipe: the caller's own, or one derived from the recipe.

use crate::agent_step;
use crate::layout;
use crate::model::{Recipe, SafetyNetwork};
use crate::sources::{SecretStatus, Sources};
use serde_json::Value;
use wp_codebox_contracts::{
    CommandCall, NetworkPolicy, NetworkRules, PolicyIssue, RuntimePolicy, SecretsPolicy,
};
use wp_codebox_policy::{PolicyError, arg_value, call_commands, named_file};

/// Command that a policy must list before the agent of the run may execute programs.
const AGENT_PROGRAM: &str = "command-agent-run";

/// Where the runtime policy for a recipe comes from.
#[derive(Debug, Clone, Copy)]
pub enum PolicyChoice<'a> {
    /// The policy is derived from the recipe and permits only what the recipe needs.
    Derived,
    /// The policy that the caller passed, unchanged. It must list every command of the recipe.
    Given(&'a Value),
}

/// Command id that a policy must contain before a browser step may run JavaScript of the recipe.
const EVALUATE: &str = "wordpress.browser-actions.evaluate";

/// Returns whether a browser step of the call runs JavaScript. True if the steps are in a file,
/// because files are not read here.
fn runs_script(call: &CommandCall) -> bool {
    let evaluates = |step: &Value| {
        let mut names = ["kind", "action", "type"].iter();
        names.any(|name| step.get(name).and_then(Value::as_str) == Some("evaluate"))
    };
    call.command.starts_with("wordpress.")
        && ["steps-json", "scenario-json"].iter().any(|name| {
            let Some(text) = arg_value(call, name) else {
                return false;
            };
            let document: Value = match serde_json::from_str(text) {
                Ok(document) => document,
                Err(_) => return named_file(text).is_some(),
            };
            let steps = document.get("steps").unwrap_or(&document).as_array();
            steps.is_some_and(|steps| steps.iter().any(evaluates))
        })
}

/// Returns all registry commands that the policy must allow for the recipe, in order of their first
/// use: the commands of its steps and probes, and the commands that these run in turn.
pub(crate) fn commands(recipe: &Recipe, sources: &dyn Sources) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut add = |call: &CommandCall| {
        let script = runs_script(call).then(|| EVALUATE.to_owned());
        for needed in call_commands(call).into_iter().chain(script) {
            if !commands.contains(&needed) {
                commands.push(needed);
            }
        }
    };
    for step in crate::blueprint::steps(recipe, sources) {
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
    // Plugin activation, users, content, agents, copies of files and database dumps run PHP in the
    // guest.
    let inputs = &recipe.inputs;
    let dumps = recipe.distribution.iter().flat_map(|d| &d.setup_artifacts);
    let prepares = !crate::packages::plugins(recipe).is_empty()
        || !inputs.site_seeds.is_empty()
        || !inputs.fixture_databases.is_empty()
        || !inputs.fixture_users.is_empty()
        || !inputs.user_sessions.is_empty()
        || !inputs.agent_bundles.is_empty()
        || !crate::copies::copies(recipe, sources).is_empty()
        || dumps.count() > 0;
    if prepares {
        add(&CommandCall {
            command: "wordpress.run-php".to_owned(),
            args: Vec::new(),
        });
    }
    commands
}

/// Returns the names of all secrets of a recipe: those that it lists, and those of its inherited
/// connectors.
pub(crate) fn secret_names(recipe: &Recipe) -> Vec<String> {
    let inputs = &recipe.inputs;
    let mut names = inputs.secret_env.clone();
    let connectors = inputs.inheritance.iter().flat_map(|i| &i.connectors);
    for name in connectors.flat_map(|connector| &connector.secret_env) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Set of network rules with which guests can install plugins and themes of WordPress.org.
const WORDPRESS_PRESET: &str = "wporg-readonly";
/// Hosts that the preset opens.
const WORDPRESS_ORG: &[&str] = &["api.wordpress.org", "downloads.wordpress.org"];

/// Returns whether a policy lets guests download from a host.
pub(crate) fn may_download(policy: &RuntimePolicy, host: &str) -> bool {
    let preset = match &policy.network {
        NetworkPolicy::Posture(_) => false,
        NetworkPolicy::Rules(rules) => rules.presets.iter().any(|p| p == WORDPRESS_PRESET),
    };
    (preset && WORDPRESS_ORG.contains(&host)) || opens(policy, host) != Opened::Nothing
}

/// Derives a policy from a recipe. It opens only the hosts that the distribution declares and, if
/// the host allows downloads, those from which a blueprint installs. It allows only the recipe's
/// commands, and permits secrets only if the caller has a secret that the recipe names. A secret
/// that no open host may receive is exposed to the guest: its programs get the value itself as
/// environment variable, because no request can carry it. It stays hidden if the recipe binds it to
/// hosts and the policy opens only other hosts.
#[must_use]
pub fn derive_policy(recipe: &Recipe, sources: &dyn Sources) -> RuntimePolicy {
    let mut commands = commands(recipe, sources);
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
    let downloads = crate::blueprint::downloads(recipe, sources);
    if sources.allows_downloads() && !downloads.is_empty() {
        let mut rules = match policy.network {
            NetworkPolicy::Rules(rules) => rules,
            NetworkPolicy::Posture(_) => NetworkRules::default(),
        };
        for (_, host) in downloads {
            if WORDPRESS_ORG.contains(&host.as_str()) {
                if !rules.presets.iter().any(|p| p == WORDPRESS_PRESET) {
                    rules.presets.push(WORDPRESS_PRESET.to_owned());
                }
            } else if !rules.allow_hosts.contains(&host) {
                rules.allow_hosts.push(host);
            }
        }
        policy.network = NetworkPolicy::Rules(rules);
    }
    for name in secret_names(recipe) {
        match sources.secret(&name) {
            SecretStatus::Available { .. } => policy.secrets = SecretsPolicy::ConnectorScoped,
            SecretStatus::Missing | SecretStatus::Unusable { .. } => continue,
        }
        // A secret that the recipe binds to hosts is not shown to a guest that can reach others.
        let is_confined = secret_hosts(recipe, &name).is_empty()
            || matches!(policy.network, NetworkPolicy::Posture(_));
        if is_confined && open_hosts(recipe, &policy, &name).is_empty() {
            policy.expose_secrets.push(name);
        }
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

/// Returns those hosts of the secret `name` that the policy opens.
pub(crate) fn open_hosts(recipe: &Recipe, policy: &RuntimePolicy, name: &str) -> Vec<String> {
    secret_hosts(recipe, name)
        .into_iter()
        .filter(|host| opens(policy, host) != Opened::Nothing)
        .collect()
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
