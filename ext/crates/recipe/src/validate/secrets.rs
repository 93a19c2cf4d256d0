//! Secrets, environment and external services, against the policy in force.

use super::Judge;
use crate::issue::IssueCode;
use crate::model::{Environment, Writes};
use crate::policy::{self, Opened};
use crate::sources::SecretStatus;
use std::collections::BTreeSet;
use wp_codebox_contracts::{NetworkPolicy, NetworkPosture, NetworkRules, SecretsPolicy};
use wp_codebox_policy::{EgressRules, check_env_name, check_secret_name, is_exposed};

/// Most secrets of a recipe.
const MAX_SECRETS: usize = 32;
/// Longest value of a variable, bytes.
const MAX_VALUE: usize = 64 * 1024;

pub(super) fn check_secret_env(judge: &mut Judge<'_>) {
    let names = &judge.recipe.inputs.secret_env;
    if names.len() > MAX_SECRETS {
        judge.say(
            IssueCode::InvalidSecretEnv,
            "$.inputs.secretEnv",
            format!(
                "names {} secrets; at most {MAX_SECRETS} are accepted",
                names.len()
            ),
        );
    }
    let mut seen = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        let path = format!("$.inputs.secretEnv[{index}]");
        if !seen.insert(name.as_str()) {
            judge.say(
                IssueCode::InvalidSecretEnv,
                &path,
                "is given twice; leave one of them out",
            );
        }
        if let Err(why) = check_secret_name(name) {
            judge.say(
                IssueCode::InvalidSecretEnv,
                &path,
                format!("is no name for a secret: {why}"),
            );
        }
        if judge.recipe.inputs.runtime_env.contains_key(name) {
            judge.say(
                IssueCode::InvalidSecretEnv,
                &path,
                "is a variable of inputs.runtimeEnv too; each needs a name of its own",
            );
        }
    }
}

/// Hosts as the network rules take them.
pub(super) fn is_host(text: &str) -> Result<(), String> {
    let rules = NetworkRules {
        allow_hosts: vec![text.to_owned()],
        ..NetworkRules::default()
    };
    match EgressRules::compile(&rules) {
        Ok(_) => Ok(()),
        Err(issues) => Err(issues
            .first()
            .map_or_else(|| "is no host".to_owned(), |i| i.message.clone())),
    }
}

pub(super) fn check_services(judge: &mut Judge<'_>) {
    let mut ids = BTreeSet::new();
    for (index, service) in judge.recipe.inputs.external_services.iter().enumerate() {
        let path = format!("$.inputs.externalServices[{index}]");
        if !ids.insert(service.id.as_str()) {
            judge.say(
                IssueCode::DuplicateExternalServiceId,
                format!("{path}.id"),
                "another service has this id; each needs its own",
            );
        }
        for (list, hosts) in [
            ("allowedHosts", &service.allowed_hosts),
            ("blockedHosts", &service.blocked_hosts),
        ] {
            for (at, host) in hosts.iter().enumerate() {
                if let Err(message) = is_host(host) {
                    judge.say(
                        IssueCode::InvalidExternalServiceHost,
                        format!("{path}.{list}[{at}]"),
                        message,
                    );
                }
            }
        }
        for (at, host) in service.blocked_hosts.iter().enumerate() {
            if service.allowed_hosts.contains(host) {
                judge.say(
                    IssueCode::InvalidExternalServiceHost,
                    format!("{path}.blockedHosts[{at}]"),
                    "is allowed and blocked; leave one of them out",
                );
            }
        }
        for (at, name) in service.secret_env.iter().enumerate() {
            if !judge.recipe.inputs.secret_env.contains(name) {
                judge.say(
                    IssueCode::InvalidExternalServiceSecretEnv,
                    format!("{path}.secretEnv[{at}]"),
                    "is not listed in inputs.secretEnv; list it there",
                );
            }
        }
    }
}

pub(super) fn check_runtime_env(judge: &mut Judge<'_>) {
    for (name, value) in &judge.recipe.inputs.runtime_env {
        let path = crate::issue::member("$.inputs.runtimeEnv", name);
        if let Err(error) = check_env_name(name) {
            judge.say(IssueCode::InvalidRuntimeEnv, &path, error.to_string());
        }
        if value.len() > MAX_VALUE {
            judge.say(
                IssueCode::InvalidRuntimeEnvValue,
                &path,
                format!("is longer than {MAX_VALUE} bytes; stage a file instead"),
            );
        }
    }
}

/// What services and secrets need of the policy.
pub(super) fn check_policy(judge: &mut Judge<'_>) {
    let Some(policy) = judge.policy.clone() else {
        return;
    };
    for (index, service) in judge.recipe.inputs.external_services.iter().enumerate() {
        let path = format!("$.inputs.externalServices[{index}]");
        if service.writes == Writes::WithApproval {
            judge.say(
                IssueCode::RuntimePolicyExternalServiceApprovalRequired,
                format!("{path}.writes"),
                "a run cannot pause for a human; say \"forbidden\", and approve the bundle instead",
            );
        }
        // A fake answers inside of the guest.
        let outside = match service.environment {
            Environment::Local | Environment::Fixture => false,
            Environment::Staging | Environment::Production | Environment::External => true,
        };
        if !outside {
            continue;
        }
        if policy.network == NetworkPolicy::Posture(NetworkPosture::Deny) {
            if !service.allowed_hosts.is_empty() {
                judge.say(
                    IssueCode::RuntimePolicyExternalServiceNetworkDenied,
                    format!("{path}.allowedHosts"),
                    "the policy opens no network; give a policy with rules for these hosts",
                );
            }
            continue;
        }
        for (at, host) in service.allowed_hosts.iter().enumerate() {
            let message = match (policy::opens(&policy, host), service.writes) {
                (Opened::Reads, _) | (Opened::Everything, Writes::WithApproval) => continue,
                (Opened::Nothing, _) => "the policy does not open this host; add a rule for it",
                (Opened::Everything, Writes::Forbidden | Writes::RecordOnly) => {
                    "the policy opens this host for writing, which the recipe rules out; give it a rule with the methods GET and HEAD"
                }
            };
            judge.say(
                IssueCode::RuntimePolicyExternalServiceHostDenied,
                format!("{path}.allowedHosts[{at}]"),
                message,
            );
        }
        for (at, host) in service.blocked_hosts.iter().enumerate() {
            if policy::opens(&policy, host) != Opened::Nothing {
                judge.say(
                    IssueCode::RuntimePolicyExternalServiceHostDenied,
                    format!("{path}.blockedHosts[{at}]"),
                    "the policy opens this host, which the recipe blocks; take it out of the policy",
                );
            }
        }
    }
    for (index, name) in judge.recipe.inputs.secret_env.iter().enumerate() {
        // A secret that nobody has needs no way; the plan says that it is missing.
        if judge.sources.secret(name) == SecretStatus::Missing {
            continue;
        }
        let hosts = policy::secret_hosts(judge.recipe, name);
        let reaches = hosts
            .iter()
            .any(|host| policy::opens(&policy, host) != Opened::Nothing);
        if policy.secrets == SecretsPolicy::None || !(reaches || is_exposed(&policy, name)) {
            judge.say(
                IssueCode::RuntimePolicySecretWithheld,
                format!("$.inputs.secretEnv[{index}]"),
                "this secret could go nowhere: name it with the hosts it is for (an external service or the distribution's safety) and open them, or give a policy that lists it in expose_secrets",
            );
        }
    }
}
