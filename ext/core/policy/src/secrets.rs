//! Validates the secrets of a run: names, values and the hosts to which they may be sent.
//!
//! A secret is accepted only if the policy has `connector-scoped` and the secret can be used:
//! by hosts that the network rules name, or by the guest itself if the policy exposes it. The
//! API key of the run's model belongs to the host, not to the guest: it needs no hosts and no
//! policy entry, and no policy can expose it. Error messages never quote a value.

use crate::network::{EgressRules, SecretScope};
use crate::{EnvNameError, SECRET_MIN_BYTES, check_env_name};
use std::collections::BTreeSet;
use wp_codebox_contracts::{
    CodedError, ModelEndpoint, NetworkPolicy, RuntimePolicy, SecretBinding, SecretsPolicy,
};

/// Maximum number of secrets of a run.
const MAX_SECRETS: usize = 32;
/// Maximum length of a name in bytes.
const MAX_NAME: usize = 64;
/// Maximum length of a value in bytes.
const MAX_VALUE: usize = 64 * 1024;
/// Environment variables that the guest sets itself.
const OWN: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TERM",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "COMPOSER_CAFILE",
];
/// Reserved beginnings of names: those of this project's own variables, and those of variables that
/// change the behaviour of programs.
const OWN_PREFIXES: &[&str] = &[
    "CODEBOX_",
    "WP_CODEBOX_",
    "WP_AGENT_",
    "WP_CLI_",
    "LC_",
    "LD_",
    "PHP",
];

/// Why a secret is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(SecretInvalid)]
pub enum SecretError {
    /// The policy allows no secrets.
    #[error(
        "the policy allows no secrets; give none, or set \"secrets\": \"connector-scoped\" in the policy"
    )]
    #[code(Forbidden)]
    NotAllowed,
    /// The run has too many secrets.
    #[error("the run has {count} secrets, but may have at most {MAX_SECRETS}; leave some out")]
    TooMany {
        /// Number of secrets in the request.
        count: usize,
    },
    /// The name is invalid.
    #[error("the name of secret number {position} is not valid: {why}")]
    Name {
        /// Position of the secret, from 1.
        position: usize,
        /// Why the name is refused.
        why: EnvNameError,
    },
    /// Another secret or a variable of the agent's environment already has the name.
    #[error(
        "the name {name} occurs twice among the secrets and the variables of the agent's environment; give each its own name"
    )]
    Twice {
        /// Name of the secret.
        name: String,
    },
    /// The value of a secret cannot be sent in an HTTP header, or is too short to be redacted.
    #[error("the value of secret {name} is not valid: it {rule}")]
    Value {
        /// Name of the secret.
        name: String,
        /// Rule that the value violates.
        rule: &'static str,
    },
    /// An entry in the list of hosts of a secret is invalid.
    #[error("one of the hosts of secret {name} is not valid: {why}")]
    Host {
        /// Name of the secret.
        name: String,
        /// Why the host is refused.
        why: String,
    },
    /// The network rules do not allow a host of the secret.
    #[error(
        "secret {name} is for {host}, which the policy's network rules do not allow; allow that host, or name an allowed one"
    )]
    Closed {
        /// Name of the secret.
        name: String,
        /// Host of the secret in the request.
        host: String,
    },
    /// The policy exposes the model's API key to the guest.
    #[error(
        "the policy exposes {name}, the key of the model; remove it from expose_secrets: the guest's programs use the model without seeing the key"
    )]
    ModelExposed {
        /// Name of the secret that holds the API key.
        name: String,
    },
    /// The model names a secret that the run does not have.
    #[error(
        "the model needs the secret {name}, which the run does not have; add it to the run, or remove its name from the model's settings"
    )]
    ModelWithout {
        /// Name of the secret that the model needs.
        name: String,
    },
    /// The secret has no hosts and is not exposed to the guest.
    #[error(
        "secret {name} names no host that may receive it; name one, or list the secret in the policy's expose_secrets"
    )]
    Unbound {
        /// Name of the secret.
        name: String,
    },
}

/// Returns whether the policy allows the guest to read the value of this secret.
#[must_use]
pub fn is_exposed(policy: &RuntimePolicy, name: &str) -> bool {
    policy.expose_secrets.iter().any(|exposed| exposed == name)
}

/// Checks the name of a secret.
pub fn check_secret_name(name: &str) -> Result<(), EnvNameError> {
    check_env_name(name)?;
    if name.len() > MAX_NAME {
        return Err(EnvNameError::Malformed);
    }
    let own = OWN.contains(&name) || OWN_PREFIXES.iter().any(|own| name.starts_with(own));
    match own {
        true => Err(EnvNameError::reserved(name)),
        false => Ok(()),
    }
}

/// Returns the rule that a value breaks as a secret, as the end of a sentence; `None` if a run
/// accepts it.
#[must_use]
pub fn broken_secret_rule(value: &str) -> Option<&'static str> {
    if value.len() < SECRET_MIN_BYTES {
        Some("must have 8 bytes or more: a shorter one cannot be kept out of logs")
    } else if value.len() > MAX_VALUE {
        Some("must not be longer than 64 KiB")
    } else if value.bytes().any(|b| b.is_ascii_control()) {
        Some("must be one line without control characters, as HTTP headers are")
    } else if value.starts_with(' ') || value.ends_with(' ') {
        Some("must not begin or end with a blank")
    } else {
        None
    }
}

/// Parts of a run request with which its secrets are checked.
#[derive(Debug, Clone, Copy)]
pub struct SecretUse<'a> {
    /// Policy of the run.
    pub policy: &'a RuntimePolicy,
    /// Model of the run. Its API key belongs to the host and needs neither hosts nor a policy
    /// entry.
    pub model: Option<&'a ModelEndpoint>,
}

impl SecretUse<'_> {
    /// Returns whether this secret is the model's API key.
    fn opens_model(self, name: &str) -> bool {
        self.model
            .and_then(|model| model.secret.as_deref())
            .is_some_and(|secret| secret == name)
    }
}

/// Checks every secret against the policy. `taken` are the names of other environment variables of
/// the agent.
pub fn check_secrets<'a>(
    secrets: &[SecretBinding],
    secret_use: SecretUse<'_>,
    taken: impl IntoIterator<Item = &'a str>,
) -> Result<(), SecretError> {
    let SecretUse { policy, model } = secret_use;
    if let Some(name) = model.and_then(|model| model.secret.as_deref())
        && !secrets.iter().any(|secret| secret.env == name)
    {
        let name = name.to_owned();
        return Err(SecretError::ModelWithout { name });
    }
    let for_guest =
        |secret: &&SecretBinding| !(secret_use.opens_model(&secret.env) && secret.hosts.is_empty());
    if secrets.iter().any(|secret| for_guest(&secret)) {
        match policy.secrets {
            SecretsPolicy::None => return Err(SecretError::NotAllowed),
            SecretsPolicy::ConnectorScoped => {}
        }
    }
    if secrets.len() > MAX_SECRETS {
        return Err(SecretError::TooMany {
            count: secrets.len(),
        });
    }
    let rules = match &policy.network {
        NetworkPolicy::Posture(_) => None,
        NetworkPolicy::Rules(rules) => EgressRules::compile(rules).ok(),
    };
    let mut names: BTreeSet<&str> = taken.into_iter().collect();
    for (index, secret) in secrets.iter().enumerate() {
        let name = || secret.env.clone();
        let model = secret_use.opens_model(&secret.env);
        check_secret_name(&secret.env).map_err(|why| SecretError::Name {
            position: index + 1,
            why,
        })?;
        if !names.insert(&secret.env) {
            return Err(SecretError::Twice { name: name() });
        }
        if let Some(rule) = broken_secret_rule(&secret.value) {
            return Err(SecretError::Value { name: name(), rule });
        }
        if model && is_exposed(policy, &secret.env) {
            return Err(SecretError::ModelExposed { name: name() });
        }
        if secret.hosts.is_empty() && !model && !is_exposed(policy, &secret.env) {
            return Err(SecretError::Unbound { name: name() });
        }
        for host in &secret.hosts {
            check_host(&secret.env, host, rules.as_ref())?;
        }
    }
    Ok(())
}

fn check_host(name: &str, host: &str, rules: Option<&EgressRules>) -> Result<(), SecretError> {
    let name = name.to_owned();
    let scope = match SecretScope::parse(host) {
        Ok(scope) => scope,
        Err(why) => {
            return Err(SecretError::Host {
                name,
                why: why.to_string(),
            });
        }
    };
    match rules.map(|rules| rules.names(&scope.authority())) {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) | None => Err(SecretError::Closed {
            name,
            host: host.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wp_codebox_contracts::ErrorCode;

    const VALUE: &str = "correct-horse";

    fn policy(expose: &[&str]) -> RuntimePolicy {
        crate::parse(&json!({
            "network": {"allowHosts": ["api.example.org", "alt.example.org:8443"]},
            "filesystem": "sandbox", "commands": [], "approvals": "never",
            "secrets": "connector-scoped", "expose_secrets": expose,
        }))
        .unwrap()
    }

    fn secret(env: &str, value: &str, hosts: &[&str]) -> SecretBinding {
        SecretBinding {
            env: env.to_owned(),
            value: value.to_owned(),
            hosts: hosts.iter().map(|h| (*h).to_owned()).collect(),
        }
    }

    fn check(secret: SecretBinding) -> Result<(), SecretError> {
        check_secrets(&[secret], plain(&policy(&["EXPOSED"])), ["TAKEN"])
    }

    const fn plain(policy: &RuntimePolicy) -> SecretUse<'_> {
        SecretUse {
            policy,
            model: None,
        }
    }

    fn endpoint(secret: &str) -> ModelEndpoint {
        serde_json::from_value(json!({
            "provider": "p", "model": "m", "api": "openai-chat",
            "base_url": "https://api.example.net/v1", "secret": secret,
        }))
        .unwrap()
    }

    #[test]
    fn model_key_is_accepted_without_hosts_and_refused_if_the_policy_exposes_it_to_the_guest() {
        let model = endpoint("API_KEY");
        let key = [secret("API_KEY", VALUE, &[])];
        let with = |policy: &RuntimePolicy, secrets: &[SecretBinding]| {
            let model = Some(&model);
            check_secrets(secrets, SecretUse { policy, model }, [])
        };
        let closed = crate::defaults(vec![]);
        assert_eq!(closed.secrets, SecretsPolicy::None);
        // The model's key needs neither hosts nor a policy entry; without the model the same
        // secret is refused.
        with(&closed, &key).unwrap();
        let error = check_secrets(&key, plain(&closed), []).unwrap_err();
        assert_eq!(error, SecretError::NotAllowed);
        let error = check_secrets(&key, plain(&policy(&[])), []).unwrap_err();
        assert!(matches!(error, SecretError::Unbound { .. }), "{error}");
        // The exception for the model's key does not extend to another secret.
        let two = [key[0].clone(), secret("OTHER", VALUE, &["api.example.org"])];
        assert_eq!(with(&closed, &two), Err(SecretError::NotAllowed));
        with(&policy(&[]), &two).unwrap();
        // With hosts, the model's key is checked like any secret of the guest.
        let bound = [secret("API_KEY", VALUE, &["api.example.org"])];
        assert_eq!(with(&closed, &bound), Err(SecretError::NotAllowed));
        with(&policy(&[]), &bound).unwrap();

        let error = with(&policy(&["API_KEY"]), &key).unwrap_err();
        assert!(matches!(error, SecretError::ModelExposed { .. }), "{error}");
        let error = with(&closed, &[]).unwrap_err();
        assert!(matches!(error, SecretError::ModelWithout { .. }), "{error}");
        let short = [secret("API_KEY", "short12", &[])];
        let error = with(&closed, &short).unwrap_err();
        assert!(matches!(error, SecretError::Value { .. }), "{error}");
    }

    #[test]
    fn secret_for_an_allowed_host_and_exposed_secret_without_hosts_are_accepted() {
        check(secret("API_KEY", VALUE, &["api.example.org"])).unwrap();
        check(secret("API_KEY", VALUE, &["API.example.org:443"])).unwrap();
        check(secret("API_KEY", VALUE, &["alt.example.org:8443"])).unwrap();
        check(secret(
            "API_KEY",
            "12345678901",
            &["http://api.example.org"],
        ))
        .unwrap();
        check(secret("EXPOSED", VALUE, &[])).unwrap();
    }

    #[test]
    fn invalid_secrets_are_refused_without_quoting_the_value() {
        let long = "x".repeat(MAX_VALUE + 1);
        let rows = [
            secret("api_key", VALUE, &["api.example.org"]),
            secret("PATH", VALUE, &["api.example.org"]),
            secret("HTTPS_PROXY", VALUE, &["api.example.org"]),
            secret("CODEBOX_TASK", VALUE, &["api.example.org"]),
            secret("TAKEN", VALUE, &["api.example.org"]),
            secret("API_KEY", "", &["api.example.org"]),
            secret("API_KEY", "short12", &["api.example.org"]),
            secret("API_KEY", "two-lines\nof-it", &["api.example.org"]),
            secret("API_KEY", "nul-nul\0-nul", &["api.example.org"]),
            secret("API_KEY", " leading-blank", &["api.example.org"]),
            secret("API_KEY", &long, &["api.example.org"]),
            secret("API_KEY", VALUE, &[]),
            secret("API_KEY", VALUE, &["other.example.org"]),
            secret("API_KEY", VALUE, &["api.example.org:8443"]),
            secret("API_KEY", VALUE, &["alt.example.org"]),
            secret("API_KEY", VALUE, &["user@api.example.org"]),
            secret("API_KEY", VALUE, &["api.example.org", "other.example.org"]),
        ];
        for row in rows {
            let error = check(row.clone()).unwrap_err().body();
            assert_eq!(error.code, ErrorCode::SecretInvalid, "{row:?}");
            assert!(!error.message.contains("horse"), "{}", error.message);
        }
    }

    #[test]
    fn secrets_are_refused_if_the_policy_forbids_secrets_or_the_network_or_if_names_repeat() {
        let one = [secret("API_KEY", VALUE, &["api.example.org"])];
        let mut none = policy(&[]);
        none.secrets = SecretsPolicy::None;
        let error = check_secrets(&one, plain(&none), []).unwrap_err();
        assert_eq!(error.body().code, ErrorCode::Forbidden);
        check_secrets(&[], plain(&none), []).unwrap();
        let mut closed = policy(&[]);
        closed.network = crate::defaults(vec![]).network;
        let error = check_secrets(&one, plain(&closed), []).unwrap_err();
        assert!(matches!(error, SecretError::Closed { .. }), "{error}");
        let twice = [one[0].clone(), one[0].clone()];
        let error = check_secrets(&twice, plain(&policy(&[])), []).unwrap_err();
        assert!(matches!(error, SecretError::Twice { .. }), "{error}");
    }
}
