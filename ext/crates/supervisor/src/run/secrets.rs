//! The secrets of a run, and what the guest holds in their place.
//!
//! A value lives here, in the redactor and in the bridge, all in this process's memory:
//! no file, no argument list and no plan ever holds one. The guest gets a random text per
//! secret and run, which is worth nothing anywhere but at this run's bridge; only what the
//! policy exposes by name enters the guest's environment itself. The secret that opens the
//! model is not the guest's: nothing stands for it there unless programs of the guest may ask
//! the model, and then only in the guest that works.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPhase, RuntimePolicy, SecretBinding, hex};
use wp_codebox_policy::{SecretScope, is_exposed};
use wp_codebox_proxy::egress::SecretSwap;
use zeroize::Zeroizing;

/// Random bytes of a placeholder.
const RANDOM_BYTES: usize = 20;

/// One secret.
struct Secret {
    name: String,
    value: Zeroizing<String>,
    /// As given, for the record.
    hosts: Vec<String>,
    scopes: Vec<SecretScope>,
    guest: GuestHolds,
}

/// What the guest's environment has under a secret's name.
enum GuestHolds {
    /// A random text.
    Placeholder(String),
    /// The same, in the working guest only: the text opens the model.
    ModelPlaceholder(String),
    /// The value: the policy says so.
    Value,
    /// Nothing: the runner itself asks the model.
    Nothing,
}

/// The secret that opens the run's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKey<'a> {
    /// There is none.
    None,
    /// The runner asks the model.
    Outside(&'a str),
    /// Programs of the guest ask the model, through the bridge.
    InGuest(&'a str),
}

/// All secrets of a run. They were checked before.
#[derive(Default)]
pub struct Secrets(Vec<Secret>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Takes checked bindings over and makes their placeholders.
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

    /// Environment of every program of a guest.
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

    /// What stands for a secret in the guest that works; none where nothing does.
    pub fn placeholder(&self, name: &str) -> Option<&str> {
        match &self.get(name)?.guest {
            GuestHolds::Placeholder(text) | GuestHolds::ModelPlaceholder(text) => Some(text),
            GuestHolds::Value | GuestHolds::Nothing => None,
        }
    }

    /// What the bridge puts in for this secret.
    pub fn swap(&self, name: &str) -> Option<SecretSwap> {
        swap(self.get(name)?)
    }

    fn get(&self, name: &str) -> Option<&Secret> {
        self.0.iter().find(|secret| secret.name == name)
    }

    /// What the bridge replaces.
    pub fn swaps(&self) -> Vec<SecretSwap> {
        self.0.iter().filter_map(swap).collect()
    }

    /// A secret's value, for what this process itself asks with it; overwritten when dropped.
    pub fn value(&self, name: &str) -> Option<Zeroizing<String>> {
        self.get(name).map(|secret| secret.value.clone())
    }

    /// Names of secrets whose value the guest itself holds.
    pub fn exposed(&self) -> Vec<&str> {
        self.0
            .iter()
            .filter(|secret| matches!(secret.guest, GuestHolds::Value))
            .map(|secret| secret.name.as_str())
            .collect()
    }

    /// Names, hosts and exposure, for the record; no value and no placeholder.
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
        // With hosts it is a secret of the guest besides.
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

/// Looks like a token and says what it is; nothing of the value is in it.
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
    fn the_guest_holds_a_placeholder_unless_the_policy_exposes_the_value() {
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
    fn the_models_key_is_the_guests_only_where_it_asks_the_model_itself() {
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
        // With hosts it is a secret of the guest besides.
        let secrets = Secrets::issue(vec![binding("M_KEY")], &policy, ModelKey::Outside("M_KEY"));
        assert!(
            secrets
                .unwrap()
                .environment(GuestPhase::Check)
                .contains_key("M_KEY")
        );
    }
}
