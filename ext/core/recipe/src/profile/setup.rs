//! Reads the setup, access and metadata sections of a profile.

use super::read::{Reader, Section};
use super::{Metadata, Reachability, SecretRef, Setup};
use serde_json::Value;
use wp_codebox_contracts::{CommandCall, NetworkPolicy};
use wp_codebox_policy::{assert_command, call_commands, check_env_name, defaults};

impl Reader {
    pub(super) fn setup(&mut self, top: &Section, network: &NetworkPolicy) -> Setup {
        let part = self.part(top, "setup", &["instructions", "commands", "secret_refs"]);
        let mut setup = Setup {
            instructions: self.optional(&part, "instructions").unwrap_or_default(),
            ..Setup::default()
        };
        for (at, item) in self.list(&part, "commands") {
            let row = self.object(&item, &at, &["command", "args"]);
            let call = CommandCall {
                command: self.required(&row, "command"),
                args: self.texts(&row, "args"),
            };
            let policy = defaults(call_commands(&call));
            if let Err(error) = assert_command(&policy, &call) {
                self.issue(&at, &error.to_string());
            }
            setup.commands.push(call);
        }
        for (at, item) in self.list(&part, "secret_refs") {
            let secret = match &item {
                Value::String(name) => SecretRef {
                    name: name.clone(),
                    hosts: reached(network),
                },
                _ => {
                    let row = self.object(&item, &at, &["name", "hosts"]);
                    SecretRef {
                        name: self.required(&row, "name"),
                        hosts: self.texts(&row, "hosts"),
                    }
                }
            };
            if let Err(error) = check_env_name(&secret.name) {
                self.issue(&at, &error.to_string());
            }
            if secret.hosts.is_empty() {
                self.issue(
                    &at,
                    "the secret has no host that may receive it; set its hosts, or hosts in network.egress",
                );
            }
            if setup
                .secret_refs
                .iter()
                .any(|other| other.name == secret.name)
            {
                self.issue(&at, "the secret is named twice; remove one of the entries");
            }
            setup.secret_refs.push(secret);
        }
        setup
    }

    pub(super) fn reachability(&mut self, top: &Section) -> Reachability {
        let part = self.part(top, "reachability", &["exec", "preview"]);
        Reachability {
            exec: self.flag(&part, "exec", true),
            preview: self.flag(&part, "preview", false),
        }
    }

    pub(super) fn metadata(&mut self, top: &Section) -> Metadata {
        let part = self.part(top, "metadata", &["cost_class", "latency_class"]);
        Metadata {
            cost_class: self.optional(&part, "cost_class"),
            latency_class: self.optional(&part, "latency_class"),
        }
    }
}

/// Returns the hosts that a network policy names.
fn reached(network: &NetworkPolicy) -> Vec<String> {
    match network {
        NetworkPolicy::Posture(_) => Vec::new(),
        NetworkPolicy::Rules(rules) => {
            let hosts = rules.rules.iter().map(|rule| rule.host.clone());
            rules.allow_hosts.iter().cloned().chain(hosts).collect()
        }
    }
}
