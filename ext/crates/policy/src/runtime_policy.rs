//! Validation of the five-field runtime policy.
//!
//! Every word of the vocabulary is known. A word that this backend cannot make
//! true is refused by name: a policy that is accepted is a policy that holds.

use serde_json::Value;
use std::collections::BTreeMap;
use wp_codebox_contracts::{
    Approvals, ErrorBody, ErrorCode, FilesystemPolicy, IsolationLevel, NetworkPolicy,
    NetworkPosture, PolicyIssue, RuntimePolicy, SecretsPolicy,
};

/// Why a policy is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The document is malformed.
    #[error("the policy is not valid: {}", join(.issues))]
    Invalid {
        /// All issues.
        issues: Vec<PolicyIssue>,
    },
    /// The document is well formed but asks for what cannot be enforced here.
    #[error("the policy cannot be enforced: {}", join(.issues))]
    Unenforceable {
        /// All issues.
        issues: Vec<PolicyIssue>,
    },
}

fn join(issues: &[PolicyIssue]) -> String {
    issues
        .iter()
        .map(|i| format!("{}: {}", i.field, i.message))
        .collect::<Vec<_>>()
        .join("; ")
}

impl PolicyError {
    /// The error as it crosses a border; `data.issues` lists every issue.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let (code, issues) = match self {
            PolicyError::Invalid { issues } => (ErrorCode::PolicyInvalid, issues),
            PolicyError::Unenforceable { issues } => (ErrorCode::PolicyUnenforceable, issues),
        };
        ErrorBody::new(code, self.to_string())
            .with("issues", serde_json::to_value(issues).unwrap_or_default())
    }
}

/// The default policy: nothing leaves the guest, mounts are writable inside it,
/// and only the given commands run.
#[must_use]
pub fn defaults(commands: Vec<String>) -> RuntimePolicy {
    RuntimePolicy {
        network: NetworkPolicy::Posture(NetworkPosture::Deny),
        filesystem: FilesystemPolicy::ReadwriteMounts,
        commands,
        secrets: SecretsPolicy::None,
        approvals: Approvals::Never,
        minimum_isolation: IsolationLevel::Full,
        isolation_floors: BTreeMap::new(),
        expose_secrets: Vec::new(),
    }
}

/// All issues of a policy document, malformed fields first, then unenforceable ones.
#[must_use]
pub fn validate(document: &Value) -> Vec<PolicyIssue> {
    match parse(document) {
        Ok(_) => Vec::new(),
        Err(PolicyError::Invalid { issues } | PolicyError::Unenforceable { issues }) => issues,
    }
}

/// Parses and checks a policy document. Unknown keys are ignored.
pub fn parse(document: &Value) -> Result<RuntimePolicy, PolicyError> {
    let mut issues = Vec::new();
    let mut malformed = |code: &str, field: &str, message: &str| {
        issues.push(PolicyIssue {
            code: code.to_owned(),
            field: field.to_owned(),
            message: message.to_owned(),
        });
    };
    let network = field::<NetworkPolicy>(document, "network").filter(network_is_sane);
    if network.is_none() {
        malformed(
            "invalid-network",
            "network",
            "must be \"deny\", \"allow\" or {\"allowHosts\": [non-empty strings]}",
        );
    }
    let filesystem = field::<FilesystemPolicy>(document, "filesystem");
    if filesystem.is_none() {
        malformed(
            "invalid-filesystem",
            "filesystem",
            "must be \"sandbox\", \"readonly-mounts\" or \"readwrite-mounts\"",
        );
    }
    let commands = field::<Vec<String>>(document, "commands")
        .filter(|list| list.iter().all(|c| !c.trim().is_empty()));
    if commands.is_none() {
        malformed(
            "invalid-command",
            "commands",
            "must be a list of non-empty command ids",
        );
    }
    let secrets = field::<SecretsPolicy>(document, "secrets");
    if secrets.is_none() {
        malformed(
            "invalid-secrets",
            "secrets",
            "must be \"none\" or \"connector-scoped\"",
        );
    }
    let approvals = field::<Approvals>(document, "approvals");
    if approvals.is_none() {
        malformed(
            "invalid-approvals",
            "approvals",
            "must be \"never\", \"on-write\" or \"on-command\"",
        );
    }
    let (Some(network), Some(filesystem), Some(commands), Some(secrets), Some(approvals)) =
        (network, filesystem, commands, secrets, approvals)
    else {
        return Err(PolicyError::Invalid { issues });
    };
    let policy = RuntimePolicy {
        network,
        filesystem,
        commands,
        secrets,
        approvals,
        minimum_isolation: field(document, "minimum_isolation").unwrap_or(IsolationLevel::Full),
        isolation_floors: BTreeMap::new(),
        expose_secrets: Vec::new(),
    };
    let issues = unenforceable(&policy);
    if issues.is_empty() {
        Ok(policy)
    } else {
        Err(PolicyError::Unenforceable { issues })
    }
}

fn field<T: serde::de::DeserializeOwned>(document: &Value, name: &str) -> Option<T> {
    serde_json::from_value(document.get(name)?.clone()).ok()
}

fn network_is_sane(policy: &NetworkPolicy) -> bool {
    match policy {
        NetworkPolicy::Posture(_) => true,
        NetworkPolicy::Rules(rules) => rules.allow_hosts.iter().all(|h| !h.trim().is_empty()),
    }
}

fn unenforceable(policy: &RuntimePolicy) -> Vec<PolicyIssue> {
    let mut issues = Vec::new();
    let mut refuse = |field: &str, message: &str| {
        issues.push(PolicyIssue {
            code: "unenforceable".to_owned(),
            field: field.to_owned(),
            message: message.to_owned(),
        });
    };
    match &policy.network {
        NetworkPolicy::Posture(NetworkPosture::Deny) => {}
        NetworkPolicy::Posture(NetworkPosture::Allow) => {
            refuse(
                "network",
                "unrestricted network cannot be offered: the guest has no route; use \"deny\"",
            );
        }
        NetworkPolicy::Rules(_) => {
            refuse(
                "network",
                "host rules need the egress bridge, which this version does not have; use \"deny\"",
            );
        }
    }
    match policy.secrets {
        SecretsPolicy::None => {}
        SecretsPolicy::ConnectorScoped => {
            refuse(
                "secrets",
                "connector secrets need the egress bridge, which this version does not have; use \"none\"",
            );
        }
    }
    match policy.approvals {
        Approvals::Never => {}
        Approvals::OnWrite | Approvals::OnCommand => {
            refuse(
                "approvals",
                "a run cannot pause for a human: approve the bundle instead; use \"never\"",
            );
        }
    }
    issues
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn good() -> Value {
        json!({"network":"deny","filesystem":"readwrite-mounts","commands":["wordpress.run-php"],"secrets":"none","approvals":"never"})
    }

    #[test]
    fn accepts_what_holds() {
        assert_eq!(validate(&good()), []);
        for word in ["sandbox", "readonly-mounts", "readwrite-mounts"] {
            let mut doc = good();
            doc["filesystem"] = json!(word);
            assert_eq!(validate(&doc), [], "{word}");
        }
        let mut doc = good();
        doc["commands"] = json!([]);
        doc["extra"] = json!(1);
        assert!(parse(&doc).unwrap().commands.is_empty());
    }

    #[test]
    fn reports_every_malformed_field() {
        for doc in [json!(null), json!([]), json!("deny"), json!({})] {
            let codes: Vec<_> = validate(&doc).into_iter().map(|i| i.code).collect();
            assert_eq!(
                codes,
                [
                    "invalid-network",
                    "invalid-filesystem",
                    "invalid-command",
                    "invalid-secrets",
                    "invalid-approvals"
                ]
            );
        }
        let mut doc = good();
        doc["network"] = json!({"allowHosts":[" "]});
        doc["commands"] = json!(["a", ""]);
        let codes: Vec<_> = validate(&doc).into_iter().map(|i| i.code).collect();
        assert_eq!(codes, ["invalid-network", "invalid-command"]);
    }

    #[test]
    fn refuses_what_cannot_be_enforced() {
        let rows = [
            ("network", json!("allow")),
            ("network", json!({"allowHosts":["example.org"]})),
            ("secrets", json!("connector-scoped")),
            ("approvals", json!("on-write")),
            ("approvals", json!("on-command")),
        ];
        for (name, value) in rows {
            let mut doc = good();
            doc[name] = value.clone();
            let error = parse(&doc).unwrap_err();
            assert_eq!(
                error.body().code,
                ErrorCode::PolicyUnenforceable,
                "{name} {value}"
            );
            assert_eq!(validate(&doc)[0].field, name);
        }
    }
}
