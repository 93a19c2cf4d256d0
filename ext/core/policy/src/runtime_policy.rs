//! Validation of the runtime policy.
//!
//! The parser knows every value that a policy may have. If this backend cannot enforce a value, the
//! parser refuses the policy and names the field, so every accepted policy is enforced completely.

use crate::EgressRules;
use crate::isolation::demands;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wp_codebox_contracts::{
    Approvals, CodedError, ErrorBody, FilesystemPolicy, IsolationLevel, NetworkPolicy,
    NetworkPosture, PolicyIssue, RuntimePolicy, SecretsPolicy,
};

/// Why a policy is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum PolicyError {
    /// The policy document is malformed.
    #[error("the run's policy is not valid; correct these fields: {}", join(.issues))]
    #[code(PolicyInvalid)]
    Invalid {
        /// Every issue of the document.
        issues: Vec<PolicyIssue>,
    },
    /// The policy document is well formed, but asks for something that this backend cannot
    /// enforce.
    #[error("this host cannot enforce the run's policy; change these fields: {}", join(.issues))]
    #[code(PolicyUnenforceable)]
    Unenforceable {
        /// Every issue of the document.
        issues: Vec<PolicyIssue>,
    },
}

/// Joins issues to one line of text for an error message.
pub(crate) fn join(issues: &[PolicyIssue]) -> String {
    issues
        .iter()
        .map(|i| format!("{}: {}", i.field, i.message))
        .collect::<Vec<_>>()
        .join("; ")
}

impl PolicyError {
    /// `data.issues` lists every issue.
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        let (Self::Invalid { issues } | Self::Unenforceable { issues }) = self;
        body.with("issues", serde_json::to_value(issues).unwrap_or_default())
    }
}

/// Returns the default policy: no network access, mounts writable inside the guest, and only
/// the given commands.
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

/// Returns the issues of a policy document: all malformed fields, or, if no field is malformed, all
/// values that this backend cannot enforce.
#[must_use]
pub fn validate(document: &Value) -> Vec<PolicyIssue> {
    match parse(document) {
        Ok(_) => Vec::new(),
        Err(PolicyError::Invalid { issues } | PolicyError::Unenforceable { issues }) => issues,
    }
}

/// Every accepted key of a policy. `schema`, `version` and `metadata` describe the document
/// itself.
const KEYS: &[&str] = &[
    "network",
    "filesystem",
    "commands",
    "secrets",
    "approvals",
    "minimum_isolation",
    "isolation_floors",
    "expose_secrets",
    "schema",
    "version",
    "metadata",
];

/// Parses and checks a policy document. An unknown key is an issue, because nothing would enforce
/// the requirement behind a misspelled key such as `isolation_flors`.
pub fn parse(document: &Value) -> Result<RuntimePolicy, PolicyError> {
    let mut issues = Vec::new();
    let mut malformed = |code: &str, field: &str, message: &str| {
        issues.push(PolicyIssue {
            code: code.to_owned(),
            field: field.to_owned(),
            message: message.to_owned(),
        });
    };
    for key in document.as_object().into_iter().flat_map(Map::keys) {
        if !KEYS.contains(&key.as_str()) {
            malformed(
                "unknown-field",
                &key.chars().take(100).collect::<String>(),
                &format!("unknown key; a policy accepts {}", KEYS.join(", ")),
            );
        }
    }
    let network = field::<NetworkPolicy>(document, "network");
    match &network {
        None => malformed(
            "invalid-network",
            "network",
            "must be \"deny\", \"allow\" or an object with allowHosts, presets, rules {host, ports, methods, paths} and tls (\"tunnel\" or \"terminate\")",
        ),
        Some(NetworkPolicy::Posture(_)) => {}
        Some(NetworkPolicy::Rules(rules)) => {
            for issue in EgressRules::compile(rules).err().into_iter().flatten() {
                malformed(&issue.code, &issue.field, &issue.message);
            }
        }
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
    let exposed = secrets.map(|secrets| exposed(document, secrets));
    if let Some(Err(message)) = &exposed {
        malformed("invalid-secrets", "expose_secrets", message);
    }
    let isolation = demands(document).map_err(|found| issues.extend(found));
    let (
        Some(network),
        Some(filesystem),
        Some(commands),
        Some(secrets),
        Some(approvals),
        Some(Ok(expose_secrets)),
        Ok(isolation),
    ) = (
        network, filesystem, commands, secrets, approvals, exposed, isolation,
    )
    else {
        return Err(PolicyError::Invalid { issues });
    };
    // A value can have the right type and still be invalid, e.g. network rules that do not
    // compile.
    if !issues.is_empty() {
        return Err(PolicyError::Invalid { issues });
    }
    let policy = RuntimePolicy {
        network,
        filesystem,
        commands,
        secrets,
        approvals,
        minimum_isolation: isolation.minimum,
        isolation_floors: isolation.floors,
        expose_secrets,
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

/// Returns the names of the secrets whose values the guest may read; if `expose_secrets` is
/// absent, there are none.
fn exposed(document: &Value, secrets: SecretsPolicy) -> Result<Vec<String>, &'static str> {
    if document.get("expose_secrets").is_none_or(Value::is_null) {
        return Ok(Vec::new());
    }
    let names = field::<Vec<String>>(document, "expose_secrets")
        .filter(|names| names.iter().all(|name| crate::check_secret_name(name).is_ok()))
        .ok_or("must be a list of environment variable names (capital letters, digits and _), without the guest's own variables")?;
    if !names.is_empty() && secrets == SecretsPolicy::None {
        return Err("lists secrets although \"secrets\" is \"none\"; set \"connector-scoped\"");
    }
    Ok(names)
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
        NetworkPolicy::Posture(NetworkPosture::Deny) | NetworkPolicy::Rules(_) => {}
        NetworkPolicy::Posture(NetworkPosture::Allow) => {
            refuse(
                "network",
                "unrestricted network access is not possible: the guest has no network route; use \"deny\" or name hosts",
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
    use wp_codebox_contracts::ErrorCode;

    fn good() -> Value {
        json!({"network":"deny","filesystem":"readwrite-mounts","commands":["wordpress.run-php"],"secrets":"none","approvals":"never"})
    }

    #[test]
    fn runtime_policies_with_enforceable_values_are_accepted() {
        assert_eq!(validate(&good()), []);
        for word in ["sandbox", "readonly-mounts", "readwrite-mounts"] {
            let mut doc = good();
            doc["filesystem"] = json!(word);
            assert_eq!(validate(&doc), [], "{word}");
        }
        for network in [
            json!({"allowHosts":["example.org"]}),
            json!({"presets":["npm"],"tls":"terminate"}),
            json!({"rules":[{"host":"example.org","methods":["GET"],"paths":["/a/"]}]}),
        ] {
            let mut doc = good();
            doc["network"] = network;
            assert_eq!(validate(&doc), [], "{doc}");
        }
        let mut doc = good();
        doc["secrets"] = json!("connector-scoped");
        doc["expose_secrets"] = json!(["DEPLOY_KEY"]);
        assert_eq!(parse(&doc).unwrap().expose_secrets, ["DEPLOY_KEY"]);
        let mut doc = good();
        doc["commands"] = json!([]);
        doc["metadata"] = json!({"ticket": 7});
        assert!(parse(&doc).unwrap().commands.is_empty());
    }

    #[test]
    fn unknown_runtime_policy_fields_are_reported_as_issues() {
        for key in ["isolation_flors", "expose_secret", "minimumIsolation"] {
            let mut doc = good();
            doc[key] = json!({});
            let error = parse(&doc).unwrap_err();
            assert_eq!(error.body().code, ErrorCode::PolicyInvalid);
            let issues = validate(&doc);
            assert_eq!(issues.len(), 1, "{issues:?}");
            assert_eq!(
                (issues[0].code.as_str(), issues[0].field.as_str()),
                ("unknown-field", key)
            );
        }
    }

    #[test]
    fn every_malformed_policy_field_is_reported() {
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
        assert!(matches!(parse(&doc), Err(PolicyError::Invalid { .. })));
        doc["commands"] = json!(["a", ""]);
        let codes: Vec<_> = validate(&doc).into_iter().map(|i| i.code).collect();
        assert_eq!(codes, ["invalid-network", "invalid-command"]);
    }

    /// If the parser ignored the misspelled member `path`, the rule would allow every path.
    #[test]
    fn network_rule_with_an_unknown_member_is_refused() {
        let mut doc = good();
        doc["network"] = json!({"rules": [{"host": "a.example", "paths": ["/x"]}]});
        assert!(validate(&doc).is_empty(), "control: {:?}", validate(&doc));
        doc["network"] = json!({"rules": [{"host": "a.example", "path": ["/x"]}]});
        let codes: Vec<_> = validate(&doc).into_iter().map(|i| i.code).collect();
        assert_eq!(codes, ["invalid-network"]);
    }

    #[test]
    fn expose_secrets_with_a_malformed_name_or_without_connector_scoped_is_refused() {
        for (secrets, names) in [
            ("none", json!(["A_KEY"])),
            ("connector-scoped", json!(["a"])),
            ("connector-scoped", json!("A_KEY")),
        ] {
            let mut doc = good();
            doc["secrets"] = json!(secrets);
            doc["expose_secrets"] = names.clone();
            let issues = validate(&doc);
            assert_eq!(issues.len(), 1, "{secrets} {names} {issues:?}");
            assert_eq!(issues[0].field, "expose_secrets");
        }
    }

    #[test]
    fn isolation_fields_of_a_policy_round_trip_and_level_none_is_refused() {
        let mut doc = good();
        doc["minimum_isolation"] = json!("reduced");
        doc["isolation_floors"] = json!({"memory": "enforced"});
        let policy = parse(&doc).unwrap();
        let again = parse(&serde_json::to_value(&policy).unwrap()).unwrap();
        assert_eq!(again, policy);
        assert_eq!(policy.minimum_isolation, IsolationLevel::Reduced);
        assert_eq!(
            parse(&good()).unwrap().minimum_isolation,
            IsolationLevel::Full
        );
        doc["minimum_isolation"] = json!("none");
        doc["approvals"] = json!("x");
        let codes: Vec<_> = validate(&doc).into_iter().map(|i| i.code).collect();
        assert_eq!(codes, ["invalid-approvals", "invalid-minimum-isolation"]);
    }

    /// A fuzzer seed that fails in a field other than the expected ones would not reach the code
    /// that it is meant to test.
    #[test]
    fn policy_fuzzer_seeds_are_accepted_or_fail_in_the_expected_fields() {
        let root = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        for (name, wanted) in [
            ("allows-nothing.json", &[][..]),
            ("allows-run-php.json", &[]),
            ("floors", &[]),
            ("rules", &[]),
            (
                "spellings",
                &[
                    "minimumIsolation",
                    "isolationFloors",
                    "exposeSecrets",
                    "expose_secrets",
                ],
            ),
            ("network-allow.json", &["network"]),
            ("malformed.json", &["network"]),
            ("asks", &["network", "approvals"]),
        ] {
            let path = format!("{root}/../../../tests/fuzz/corpus/policy/{name}");
            let document = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let fields: Vec<_> = validate(&document).into_iter().map(|i| i.field).collect();
            assert_eq!(fields, wanted, "{name}");
            assert_eq!(parse(&document).is_ok(), wanted.is_empty(), "{name}");
        }
    }

    #[test]
    fn runtime_policy_values_that_cannot_be_enforced_are_refused() {
        let rows = [
            ("network", json!("allow")),
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
