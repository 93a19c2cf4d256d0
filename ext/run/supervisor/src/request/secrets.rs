//! Secrets of a run and the placeholders that the guest gets instead of them.
//!
//! A secret's value is only in this process's memory: here, in the redactor and in the egress
//! bridge. No file, argument list or plan of a guest contains a value. The guest gets a random
//! placeholder per secret and run, which only this run's bridge accepts. The value itself enters
//! the guest's environment only if the policy exposes it by name. A placeholder for the model's key
//! exists only if guest programs may call the model, and then only in the work guest.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPhase, RuntimePolicy, SecretBinding, hex};
use wp_codebox_policy::{SecretScope, is_exposed};
use wp_codebox_proxy::egress::SecretSwap;
use zeroize::Zeroizing;

/// Number of random bytes in the placeholder of a secret.
const RANDOM_BYTES: usize = 20;

/// One secret and what the guest gets of it.
struct Secret {
    name: String,
    value: Zeroizing<String>,
    /// Hosts to which the secret may be sent, as the request lists them.
    hosts: Vec<String>,
    scopes: Vec<SecretScope>,
    guest: GuestHolds,
}

/// What the guest's environment variable of a secret contains.
enum GuestHolds {
    /// A random placeholder.
    Placeholder(String),
    /// A random placeholder for the model's key, in the work guest only.
    ModelPlaceholder(String),
    /// The value itself, because the policy exposes it.
    Value,
    /// There is no variable, because only the supervisor calls the model.
    Nothing,
}

/// Who uses the secret that is the model's API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKey<'a> {
    /// The model needs no key.
    None,
    /// The supervisor, which calls the model. The value is the secret's name.
    Outside(&'a str),
    /// Programs in the guest, which call the model through the egress bridge. The value is the
    /// secret's name.
    InGuest(&'a str),
}

/// All secrets of a run, already validated.
#[derive(Default)]
pub struct Secrets(Vec<Secret>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Checks the secrets of a request and creates their placeholders.
    pub fn issue(
        bindings: Vec<SecretBinding>,
        policy: &RuntimePolicy,
        model: ModelKey<'_>,
    ) -> Result<Self, ErrorBody> {
        bindings
            .into_iter()
            .map(|binding| issue(binding, policy, model))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns the environment variables with secrets or placeholders that programs in a guest get.
    /// `phase` says whether the guest runs the work or the checks.
    pub fn environment(&self, phase: GuestPhase) -> BTreeMap<String, String> {
        let held = |secret: &Secret| match (&secret.guest, phase) {
            (GuestHolds::Placeholder(text), _)
            | (GuestHolds::ModelPlaceholder(text), GuestPhase::Work) => Some(text.clone()),
            (GuestHolds::Value, _) => Some(secret.value.as_str().to_owned()),
            (GuestHolds::ModelPlaceholder(_), GuestPhase::Check) | (GuestHolds::Nothing, _) => None,
        };
        self.0
            .iter()
            .filter_map(|secret| Some((secret.name.clone(), held(secret)?)))
            .collect()
    }

    /// Returns the placeholder that the guest has for this secret during the work, if it has one.
    pub fn placeholder(&self, name: &str) -> Option<&str> {
        match &self.get(name)?.guest {
            GuestHolds::Placeholder(text) | GuestHolds::ModelPlaceholder(text) => Some(text),
            GuestHolds::Value | GuestHolds::Nothing => None,
        }
    }

    /// Returns the placeholder of this secret and the value by which the egress bridge replaces it.
    pub fn swap(&self, name: &str) -> Option<SecretSwap> {
        swap(self.get(name)?)
    }

    fn get(&self, name: &str) -> Option<&Secret> {
        self.0.iter().find(|secret| secret.name == name)
    }

    /// Returns all placeholders and the values by which the egress bridge replaces them.
    pub fn swaps(&self) -> Vec<SecretSwap> {
        self.0.iter().filter_map(swap).collect()
    }

    /// Returns a secret's value for requests that this process sends; the returned memory is
    /// overwritten on drop.
    pub fn value(&self, name: &str) -> Option<Zeroizing<String>> {
        self.get(name).map(|secret| secret.value.clone())
    }

    /// Returns the names of the secrets whose value the guest receives.
    pub fn exposed(&self) -> Vec<&str> {
        self.0
            .iter()
            .filter(|secret| matches!(secret.guest, GuestHolds::Value))
            .map(|secret| secret.name.as_str())
            .collect()
    }

    /// Returns what the bundle records about the secrets: names, hosts and exposure, no values or
    /// placeholders.
    pub fn record(&self) -> Vec<Value> {
        self.0
            .iter()
            .map(|secret| {
                let exposed = matches!(secret.guest, GuestHolds::Value);
                json!({"name": secret.name, "hosts": secret.hosts, "exposed": exposed})
            })
            .collect()
    }
}

fn swap(secret: &Secret) -> Option<SecretSwap> {
    match &secret.guest {
        GuestHolds::Value | GuestHolds::Nothing => None,
        GuestHolds::Placeholder(placeholder) | GuestHolds::ModelPlaceholder(placeholder) => {
            Some(SecretSwap {
                name: secret.name.clone(),
                placeholder: placeholder.clone(),
                value: secret.value.clone(),
                hosts: secret.scopes.clone(),
            })
        }
    }
}

fn issue(
    binding: SecretBinding,
    policy: &RuntimePolicy,
    model: ModelKey<'_>,
) -> Result<Secret, ErrorBody> {
    let scopes = binding
        .hosts
        .iter()
        .map(|host| SecretScope::parse(host))
        .collect::<Result<_, _>>()
        .map_err(|why| {
            let name = &binding.env;
            ErrorBody::new(ErrorCode::SecretInvalid, format!("secret {name}: {why}"))
        })?;
    let guest = match model {
        ModelKey::InGuest(name) if name == binding.env => {
            GuestHolds::ModelPlaceholder(placeholder()?)
        }
        // Without hosts in the request, only the supervisor uses the key. With hosts, guest
        // programs use it as well and need a placeholder.
        ModelKey::Outside(name) if name == binding.env && binding.hosts.is_empty() => {
            GuestHolds::Nothing
        }
        ModelKey::None | ModelKey::Outside(_) | ModelKey::InGuest(_) => {
            if is_exposed(policy, &binding.env) {
                GuestHolds::Value
            } else {
                GuestHolds::Placeholder(placeholder()?)
            }
        }
    };
    Ok(Secret {
        name: binding.env,
        value: Zeroizing::new(binding.value),
        hosts: binding.hosts,
        scopes,
        guest,
    })
}

/// Returns a random placeholder. It looks like a token and is recognizable as a placeholder; it
/// does not depend on the value.
fn placeholder() -> Result<String, ErrorBody> {
    let mut bytes = [0_u8; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
    Ok(format!("codebox_{}", hex(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::SecretsPolicy;

    fn binding(env: &str) -> SecretBinding {
        SecretBinding {
            env: env.to_owned(),
            value: format!("value-of-{env}"),
            hosts: vec!["api.example.org".to_owned()],
        }
    }

    #[test]
    fn guest_gets_a_placeholder_for_each_secret_that_the_policy_does_not_expose() {
        let mut policy = wp_codebox_policy::defaults(vec![]);
        policy.secrets = SecretsPolicy::ConnectorScoped;
        policy.expose_secrets = vec!["B_KEY".to_owned()];
        let issue = || {
            let bindings = vec![binding("A_KEY"), binding("B_KEY")];
            Secrets::issue(bindings, &policy, ModelKey::None).unwrap()
        };
        let (first, second) = (issue(), issue());
        let held = first.environment(GuestPhase::Work);
        assert!(held["A_KEY"].starts_with("codebox_") && held["A_KEY"].len() == 48);
        assert_ne!(held["A_KEY"], second.environment(GuestPhase::Work)["A_KEY"]);
        assert_eq!(held["B_KEY"], "value-of-B_KEY");
        assert_eq!(first.exposed(), ["B_KEY"]);
        let swaps = first.swaps();
        assert_eq!(swaps.len(), 1);
        assert_eq!(swaps[0].placeholder, held["A_KEY"]);
        assert_eq!(first.value("A_KEY").unwrap().as_str(), "value-of-A_KEY");
        assert_eq!(first.value("C_KEY"), None);
        let said = format!("{first:?} {:?}", first.record());
        assert!(
            !said.contains("value-of") && !said.contains("codebox_"),
            "{said}"
        );
    }

    #[test]
    fn guest_gets_model_key_placeholder_only_if_it_calls_the_model_or_the_key_has_a_host() {
        let mut policy = wp_codebox_policy::defaults(vec![]);
        policy.secrets = SecretsPolicy::ConnectorScoped;
        let key = || {
            let mut key = binding("M_KEY");
            key.hosts.clear();
            vec![key, binding("A_KEY")]
        };
        let issue = |model| Secrets::issue(key(), &policy, model).unwrap();
        for phase in [GuestPhase::Work, GuestPhase::Check] {
            let held = issue(ModelKey::Outside("M_KEY")).environment(phase);
            assert_eq!(held.keys().collect::<Vec<_>>(), ["A_KEY"], "{phase:?}");
        }
        let secrets = issue(ModelKey::Outside("M_KEY"));
        assert!(secrets.swap("M_KEY").is_none() && secrets.placeholder("M_KEY").is_none());
        assert_eq!(secrets.value("M_KEY").unwrap().as_str(), "value-of-M_KEY");
        assert_eq!(secrets.swaps().len(), 1);

        let secrets = issue(ModelKey::InGuest("M_KEY"));
        let held = secrets.environment(GuestPhase::Work);
        assert_eq!(held["M_KEY"], secrets.placeholder("M_KEY").unwrap());
        assert!(held["M_KEY"].starts_with("codebox_"));
        assert!(!secrets.environment(GuestPhase::Check).contains_key("M_KEY"));
        let swap = secrets.swap("M_KEY").unwrap();
        assert!(swap.hosts.is_empty() && swap.value.as_str() == "value-of-M_KEY");
        // The request lists a host for this key, so guest programs use it as well.
        let secrets = Secrets::issue(vec![binding("M_KEY")], &policy, ModelKey::Outside("M_KEY"));
        assert!(
            secrets
                .unwrap()
                .environment(GuestPhase::Check)
                .contains_key("M_KEY")
        );
    }
}
