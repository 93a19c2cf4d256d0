//! The two isolation fields of a runtime policy. `minimum_isolation` is the weakest isolation level
//! at which a run may start; if absent, `full`. `isolation_floors` names the weakest accepted
//! enforcement per isolation axis (files, network, memory and others); for an axis that it does not
//! name, any enforcement is accepted.

use serde_json::Value;
use std::collections::BTreeMap;
use wp_codebox_contracts::{Enforcement, IsolationAxis, IsolationLevel, PolicyIssue};

/// Isolation requirements of a policy.
pub(crate) struct IsolationRequirements {
    pub(crate) minimum: IsolationLevel,
    pub(crate) floors: BTreeMap<IsolationAxis, Enforcement>,
}

/// Reads the two isolation fields of a policy document; every fault in them becomes an issue.
pub(crate) fn demands(document: &Value) -> Result<IsolationRequirements, Vec<PolicyIssue>> {
    let mut issues = Vec::new();
    let minimum = match document.get("minimum_isolation") {
        None => IsolationLevel::Full,
        Some(value) => match serde_json::from_value(value.clone()) {
            Ok(level @ (IsolationLevel::Full | IsolationLevel::Reduced)) => level,
            Ok(IsolationLevel::None) | Err(_) => {
                issues.push(issue(
                    "invalid-minimum-isolation",
                    "minimum_isolation",
                    "must be \"full\" or \"reduced\"; WP Codebox runs nothing without isolation",
                ));
                IsolationLevel::Full
            }
        },
    };
    let floors = floors(document.get("isolation_floors"), &mut issues);
    if issues.is_empty() {
        Ok(IsolationRequirements { minimum, floors })
    } else {
        Err(issues)
    }
}

fn floors(
    given: Option<&Value>,
    issues: &mut Vec<PolicyIssue>,
) -> BTreeMap<IsolationAxis, Enforcement> {
    let mut floors = BTreeMap::new();
    let mut malformed =
        |field: &str, message: &str| issues.push(issue("invalid-isolation-floors", field, message));
    let rows = match given {
        None => return floors,
        Some(Value::Object(rows)) => rows,
        // PHP encodes an empty map as `[]`.
        Some(Value::Array(rows)) if rows.is_empty() => return floors,
        Some(_) => {
            malformed(
                "isolation_floors",
                "must be an object of isolation axes and their levels, such as {\"network\": \"enforced\"}",
            );
            return floors;
        }
    };
    for (name, word) in rows {
        let field = format!("isolation_floors.{name}");
        let Some(&axis) = IsolationAxis::ALL.iter().find(|axis| axis.as_str() == name) else {
            let known: Vec<_> = IsolationAxis::ALL
                .iter()
                .map(|axis| axis.as_str())
                .collect();
            malformed(
                &field,
                &format!("unknown isolation axis; accepted are: {}", known.join(", ")),
            );
            continue;
        };
        match serde_json::from_value(word.clone()) {
            Ok(enforcement) => {
                floors.insert(axis, enforcement);
            }
            Err(_) => malformed(
                &field,
                "must be \"enforced\", \"best-effort\" or \"not-enforced\"",
            ),
        }
    }
    floors
}

fn issue(code: &str, field: &str, message: &str) -> PolicyIssue {
    PolicyIssue {
        code: code.to_owned(),
        field: field.to_owned(),
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn policy_without_isolation_fields_requires_level_full_and_sets_no_floors() {
        for document in [
            json!({}),
            json!({"isolation_floors": {}}),
            json!({"isolation_floors": []}),
        ] {
            let demands = demands(&document).ok().unwrap();
            assert_eq!(demands.minimum, IsolationLevel::Full);
            assert!(demands.floors.is_empty());
        }
    }

    #[test]
    fn isolation_level_and_floors_are_read_from_the_policy_document() {
        let demands = demands(&json!({
            "minimum_isolation": "reduced",
            "isolation_floors": {"memory": "enforced", "cpu": "best-effort", "disk": "not-enforced"},
        }))
        .ok()
        .unwrap();
        assert_eq!(demands.minimum, IsolationLevel::Reduced);
        assert_eq!(
            demands.floors,
            BTreeMap::from([
                (IsolationAxis::Memory, Enforcement::Enforced),
                (IsolationAxis::Cpu, Enforcement::BestEffort),
                (IsolationAxis::Disk, Enforcement::NotEnforced),
            ])
        );
    }

    #[test]
    fn every_invalid_isolation_field_of_a_policy_is_reported() {
        let issues = demands(&json!({
            "minimum_isolation": "none",
            "isolation_floors": {"memory": "strict", "moon": "enforced"},
        }))
        .err()
        .unwrap();
        let named: Vec<_> = issues
            .iter()
            .map(|i| (i.code.as_str(), i.field.as_str()))
            .collect();
        assert_eq!(
            named,
            [
                ("invalid-minimum-isolation", "minimum_isolation"),
                ("invalid-isolation-floors", "isolation_floors.memory"),
                ("invalid-isolation-floors", "isolation_floors.moon"),
            ]
        );
        for document in [
            json!({"minimum_isolation": null}),
            json!({"minimum_isolation": "FULL"}),
            json!({"isolation_floors": null}),
            json!({"isolation_floors": ["memory"]}),
        ] {
            assert_eq!(demands(&document).err().unwrap().len(), 1, "{document}");
        }
    }
}
