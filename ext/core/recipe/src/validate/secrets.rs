//! Validates secrets, environment and external services against the effective policy.

use super::Validator;
use crate::issue::IssueCode;
use crate::model::{Environment, Writes};
use crate::policy::{self, Opened};
use crate::sources::SecretStatus;
use std::collections::BTreeSet;
use wp_codebox_contracts::{NetworkPolicy, NetworkPosture, NetworkRules, SecretsPolicy};
use wp_codebox_policy::{EgressRules, check_env_name, check_secret_name, is_exposed};

/// Maximum number of secrets in a recipe.
const MAX_SECRETS: usize = 32;
/// Maximum length of the value of an environment variable, in bytes.
const MAX_VALUE: usize = 64 * 1024;

pub(super) fn check_secret_env(validator: &mut Validator<'_>) {
    let names = &validator.recipe.inputs.secret_env;
    if names.len() > MAX_SECRETS {
        validator.report(
            IssueCode::InvalidSecretEnv,
            "$.inputs.secretEnv",
            format!(
                "the recipe names {} secrets; at most {MAX_SECRETS} are accepted",
                names.len()
            ),
        );
    }
    let mut seen = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        let path = format!("$.inputs.secretEnv[{index}]");
        if !seen.insert(name.as_str()) {
            validator.report(
                IssueCode::InvalidSecretEnv,
                &path,
                "the secret is named twice; remove one of the entries",
            );
        }
        if let Err(why) = check_secret_name(name) {
            validator.report(
                IssueCode::InvalidSecretEnv,
                &path,
                format!("the name of the secret is not valid: {why}"),
            );
        }
        if let SecretStatus::Unusable { rule } = validator.sources.secret(name) {
            validator.report(
                IssueCode::InvalidSecretEnv,
                &path,
                format!("the value of this secret on this host is not valid: it {rule}"),
            );
        }
        if validator.recipe.inputs.runtime_env.contains_key(name) {
            validator.report(
                IssueCode::InvalidSecretEnv,
                &path,
                "inputs.runtimeEnv has a variable with the name of this secret; use distinct names",
            );
        }
    }
}

/// Returns an error unless the text is `host` or `host:port` as network rules accept it.
pub(super) fn is_host(text: &str) -> Result<(), String> {
    let rules = NetworkRules {
        allow_hosts: vec![text.to_owned()],
        ..NetworkRules::default()
    };
    match EgressRules::compile(&rules) {
        Ok(_) => Ok(()),
        Err(issues) => Err(issues.first().map_or_else(
            || "must be a host name, or host:port".to_owned(),
            |i| i.message.clone(),
        )),
    }
}

pub(super) fn check_services(validator: &mut Validator<'_>) {
    let mut ids = BTreeSet::new();
    for (index, service) in validator.recipe.inputs.external_services.iter().enumerate() {
        let path = format!("$.inputs.externalServices[{index}]");
        if !ids.insert(service.id.as_str()) {
            validator.report(
                IssueCode::DuplicateExternalServiceId,
                format!("{path}.id"),
                "another service has this id; use a distinct id",
            );
        }
        for (list, hosts) in [
            ("allowedHosts", &service.allowed_hosts),
            ("blockedHosts", &service.blocked_hosts),
        ] {
            for (at, host) in hosts.iter().enumerate() {
                if let Err(message) = is_host(host) {
                    validator.report(
                        IssueCode::InvalidExternalServiceHost,
                        format!("{path}.{list}[{at}]"),
                        message,
                    );
                }
            }
        }
        for (at, host) in service.blocked_hosts.iter().enumerate() {
            if service.allowed_hosts.contains(host) {
                validator.report(
                    IssueCode::InvalidExternalServiceHost,
                    format!("{path}.blockedHosts[{at}]"),
                    "the host is both allowed and blocked; remove it from one of the lists",
                );
            }
        }
        for (at, name) in service.secret_env.iter().enumerate() {
            if !validator.recipe.inputs.secret_env.contains(name) {
                validator.report(
                    IssueCode::InvalidExternalServiceSecretEnv,
                    format!("{path}.secretEnv[{at}]"),
                    "the secret is not listed in inputs.secretEnv; add it there",
                );
            }
        }
    }
}

pub(super) fn check_runtime_env(validator: &mut Validator<'_>) {
    for (name, value) in &validator.recipe.inputs.runtime_env {
        let path = crate::issue::member("$.inputs.runtimeEnv", name);
        if let Err(error) = check_env_name(name) {
            validator.report(IssueCode::InvalidRuntimeEnv, &path, error.to_string());
        }
        if value.len() > MAX_VALUE {
            validator.report(
                IssueCode::InvalidRuntimeEnvValue,
                &path,
                format!(
                    "the value has more than {MAX_VALUE} bytes; use a file of inputs.stagedFiles"
                ),
            );
        }
    }
}

/// Reports each external service and secret to which the policy permits less, or more, than the
/// recipe declares.
pub(super) fn check_policy(validator: &mut Validator<'_>) {
    let Some(policy) = validator.policy.clone() else {
        return;
    };
    for (index, service) in validator.recipe.inputs.external_services.iter().enumerate() {
        let path = format!("$.inputs.externalServices[{index}]");
        if service.writes == Writes::WithApproval {
            validator.report(
                IssueCode::RuntimePolicyExternalServiceApprovalRequired,
                format!("{path}.writes"),
                "a run cannot pause for human approval; set \"forbidden\", and approve the bundle instead",
            );
        }
        // Local services and fixtures respond inside the guest, so they need no network.
        let outside = match service.environment {
            Environment::Local | Environment::Fixture => false,
            Environment::Staging | Environment::Production | Environment::External => true,
        };
        if !outside {
            continue;
        }
        if policy.network == NetworkPolicy::Posture(NetworkPosture::Deny) {
            if !service.allowed_hosts.is_empty() {
                validator.report(
                    IssueCode::RuntimePolicyExternalServiceNetworkDenied,
                    format!("{path}.allowedHosts"),
                    "the policy allows no network access; use a policy with rules for these hosts",
                );
            }
            continue;
        }
        for (at, host) in service.allowed_hosts.iter().enumerate() {
            let message = match (policy::opens(&policy, host), service.writes) {
                (Opened::Reads, _) | (Opened::Everything, Writes::WithApproval) => continue,
                (Opened::Nothing, _) => {
                    "the policy does not allow requests to this host; add a rule for it"
                }
                (Opened::Everything, Writes::Forbidden | Writes::RecordOnly) => {
                    "the policy permits writes to this host, which the recipe forbids; restrict the rule to the methods GET and HEAD"
                }
            };
            validator.report(
                IssueCode::RuntimePolicyExternalServiceHostDenied,
                format!("{path}.allowedHosts[{at}]"),
                message,
            );
        }
        for (at, host) in service.blocked_hosts.iter().enumerate() {
            if policy::opens(&policy, host) != Opened::Nothing {
                validator.report(
                    IssueCode::RuntimePolicyExternalServiceHostDenied,
                    format!("{path}.blockedHosts[{at}]"),
                    "the policy allows requests to this host, which the recipe blocks; remove it from the policy",
                );
            }
        }
    }
    for (index, name) in validator.recipe.inputs.secret_env.iter().enumerate() {
        // A secret that the caller does not have is sent nowhere; the plan lists it as missing.
        match validator.sources.secret(name) {
            SecretStatus::Available { .. } => {}
            SecretStatus::Missing | SecretStatus::Unusable { .. } => continue,
        }
        let reaches = !policy::open_hosts(validator.recipe, &policy, name).is_empty();
        if policy.secrets == SecretsPolicy::None || !(reaches || is_exposed(&policy, name)) {
            validator.report(
                IssueCode::RuntimePolicySecretWithheld,
                format!("$.inputs.secretEnv[{index}]"),
                "the policy lets no host and no program have this secret: list it at an external service (or in the distribution's safety) whose hosts the policy allows, or use a policy that lists it in expose_secrets",
            );
        }
    }
}
