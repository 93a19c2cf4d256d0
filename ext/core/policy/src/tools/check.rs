//! Validation of a `wp-codebox/sandbox-tool-policy/v1` document.

use super::{ToolPolicyError, builtin_tool};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wp_codebox_contracts::{PolicyIssue, SandboxToolPolicy, schema_id};

/// Accepted members of a tool policy (`POLICY`), of a tool in it (`TOOL`), and of the tool's
/// `runtime` (`RUNTIME`).
const POLICY: &[&str] = &["schema", "version", "tools", "metadata"];
const TOOL: &[&str] = &[
    "id",
    "runtime_tool_id",
    "aliases",
    "execution_location",
    "transport_visibility",
    "allowed",
    "runtime",
    "risk",
    "action",
    "metadata",
];
const RUNTIME: &[&str] = &["environment", "capability_scope"];

/// Returns all issues of a tool policy, in the order of the policy. Codes: `invalid-policy`,
/// `invalid-tool`, `duplicate-tool`, `unknown-field`. An empty list of tools is valid and allows
/// nothing.
#[must_use]
pub fn check_tool_policy(document: &Value) -> Vec<PolicyIssue> {
    let mut found = Found(Vec::new());
    let Some(policy) = document.as_object() else {
        found.issue("invalid-policy", "", "must be an object");
        return found.0;
    };
    found.unknown("", policy, POLICY);
    if policy.get("schema").and_then(Value::as_str) != Some(schema_id::SANDBOX_TOOL_POLICY) {
        let wanted = format!("must be {:?}", schema_id::SANDBOX_TOOL_POLICY);
        found.issue("invalid-policy", "schema", &wanted);
    }
    if policy.get("version").and_then(Value::as_u64) != Some(1) {
        found.issue("invalid-policy", "version", "must be 1");
    }
    if policy.get("metadata").is_some_and(|m| !is_object(m)) {
        found.issue("invalid-policy", "metadata", "must be an object");
    }
    let Some(tools) = policy.get("tools").and_then(Value::as_array) else {
        found.issue("invalid-policy", "tools", "must be a list of tools");
        return found.0;
    };
    let mut seen = Seen::default();
    for (index, tool) in tools.iter().enumerate() {
        match tool.as_object() {
            Some(tool) => {
                found.tool(index, tool);
                seen.add(&mut found, index, tool);
            }
            None => found.issue(
                "invalid-tool",
                &format!("tools[{index}]"),
                "must be an object",
            ),
        }
    }
    found.0
}

/// Parses and checks a tool policy.
pub fn parse_tool_policy(document: &Value) -> Result<SandboxToolPolicy, ToolPolicyError> {
    let mut issues = check_tool_policy(document);
    if issues.is_empty() {
        match serde_json::from_value(objects(document.clone())) {
            Ok(policy) => return Ok(policy),
            Err(error) => issues.push(PolicyIssue {
                code: "invalid-policy".to_owned(),
                field: String::new(),
                message: error.to_string(),
            }),
        }
    }
    Err(ToolPolicyError::Invalid { issues })
}

/// Converts empty metadata, which PHP encodes as a list, to an object.
fn objects(mut document: Value) -> Value {
    let mend = |holder: &mut Value| {
        if let Some(metadata) = holder.get_mut("metadata")
            && metadata.as_array().is_some_and(Vec::is_empty)
        {
            *metadata = Value::Object(Map::new());
        }
    };
    mend(&mut document);
    for tool in document
        .get_mut("tools")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        mend(tool);
    }
    document
}

/// Returns whether a value is an object, or an empty list, as which PHP encodes an empty object.
fn is_object(value: &Value) -> bool {
    value.is_object() || value.as_array().is_some_and(Vec::is_empty)
}

struct Found(Vec<PolicyIssue>);

impl Found {
    fn issue(&mut self, code: &str, field: &str, message: &str) {
        self.0.push(PolicyIssue {
            code: code.to_owned(),
            field: field.to_owned(),
            message: message.to_owned(),
        });
    }

    fn unknown(&mut self, at: &str, members: &Map<String, Value>, known: &[&str]) {
        for name in members
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
        {
            let shown: String = name.chars().take(100).collect();
            let message = format!("unknown member; accepted are: {}", known.join(", "));
            self.issue("unknown-field", &format!("{at}{shown}"), &message);
        }
    }

    fn tool(&mut self, index: usize, tool: &Map<String, Value>) {
        self.unknown(&format!("tools[{index}]."), tool, TOOL);
        if let Some(runtime) = tool.get("runtime").and_then(Value::as_object) {
            self.unknown(&format!("tools[{index}].runtime."), runtime, RUNTIME);
        }
        let field = |name: &str| format!("tools[{index}].{name}");
        let word = |name: &str| tool.get(name).and_then(Value::as_str);
        if word("id").is_none_or(|id| id.trim().is_empty() || id.len() > 200) {
            self.issue(
                "invalid-tool",
                &field("id"),
                "must be a text of at most 200 bytes",
            );
        }
        let named = word("runtime_tool_id").is_some_and(|id| {
            !id.is_empty()
                && id.len() <= 200
                && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        if !named {
            self.issue(
                "invalid-tool",
                &field("runtime_tool_id"),
                "must be letters, digits and _",
            );
        }
        let aliases = tool.get("aliases").into_iter().chain(
            tool.get("metadata")
                .and_then(|metadata| metadata.get("aliases")),
        );
        for aliases in aliases {
            let texts = aliases
                .as_array()
                .is_some_and(|list| list.iter().all(|alias| alias.is_string()));
            if !texts {
                self.issue("invalid-tool", &field("aliases"), "must be a list of texts");
            }
        }
        for (name, words) in [
            ("execution_location", ["sandbox", "parent"].as_slice()),
            (
                "transport_visibility",
                &["sandbox", "parent", "both", "hidden"],
            ),
        ] {
            if word(name).is_none_or(|value| !words.contains(&value)) {
                let message = format!("must be one of {}", words.join(", "));
                self.issue("invalid-tool", &field(name), &message);
            }
        }
        if !tool.get("allowed").is_some_and(Value::is_boolean) {
            self.issue("invalid-tool", &field("allowed"), "must be true or false");
        }
        for name in ["risk", "action"] {
            if tool.get(name).is_some_and(|value| !value.is_string()) {
                self.issue("invalid-tool", &field(name), "must be a text");
            }
        }
        if tool.get("metadata").is_some_and(|m| !is_object(m)) {
            self.issue("invalid-tool", &field("metadata"), "must be an object");
        }
        self.reach(index, tool);
    }

    /// Checks that a tool's `execution_location`, `runtime.environment` and
    /// `runtime.capability_scope` agree: all name the guest, or all name the parent process.
    fn reach(&mut self, index: usize, tool: &Map<String, Value>) {
        let wanted = match tool.get("execution_location").and_then(Value::as_str) {
            Some("sandbox") => Some("runtime_local"),
            Some("parent") => Some("control_plane"),
            _ => None,
        };
        for name in ["environment", "capability_scope"] {
            let field = format!("tools[{index}].runtime.{name}");
            let value = tool
                .get("runtime")
                .and_then(|runtime| runtime.get(name))
                .and_then(Value::as_str);
            match (value, wanted) {
                (Some("runtime_local" | "control_plane"), None) => {}
                (Some(value), Some(wanted)) if value == wanted => {}
                (_, Some(wanted)) => {
                    let message =
                        format!("must be {wanted:?} to match \"execution_location\" of the tool");
                    self.issue("invalid-tool", &field, &message);
                }
                (_, None) => self.issue(
                    "invalid-tool",
                    &field,
                    "must be \"runtime_local\" or \"control_plane\"",
                ),
            }
        }
    }
}

/// Names of the tools whose rules were checked, with the index of the rule in the policy. A second
/// rule for one tool is an error: two rules could contradict each other, and the more permissive
/// one could apply unnoticed.
#[derive(Default)]
struct Seen {
    names: BTreeMap<String, usize>,
    builtin: BTreeMap<&'static str, usize>,
}

impl Seen {
    fn add(&mut self, found: &mut Found, index: usize, tool: &Map<String, Value>) {
        let own: Vec<&str> = ["id", "runtime_tool_id"]
            .into_iter()
            .filter_map(|name| tool.get(name)?.as_str())
            .collect();
        let mut names: Vec<&str> = own
            .iter()
            .copied()
            .chain(
                tool.get("aliases")
                    .into_iter()
                    .chain(tool.get("metadata").and_then(|m| m.get("aliases")))
                    .filter_map(Value::as_array)
                    .flatten()
                    .filter_map(Value::as_str),
            )
            .filter(|name| !name.is_empty())
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut twice = |name: &str, first: usize| {
            found.issue(
                "duplicate-tool",
                &format!("tools[{index}]"),
                &format!("{name:?} already names tools[{first}]"),
            );
        };
        for &name in &names {
            match self.names.get(name) {
                Some(&first) => twice(name, first),
                None => {
                    self.names.insert(name.to_owned(), index);
                }
            }
        }
        let mut builtin: Vec<&'static str> = names
            .iter()
            .filter_map(|name| builtin_tool(name))
            .map(|row| row.id)
            .collect();
        builtin.sort_unstable();
        builtin.dedup();
        for id in builtin {
            match self.builtin.get(id) {
                // Two rules share a name, which was reported above.
                Some(&first) if names.iter().any(|n| self.names.get(*n) == Some(&first)) => {}
                Some(&first) => twice(id, first),
                None => {
                    self.builtin.insert(id, index);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(id: &str) -> Value {
        json!({
            "id": id,
            "runtime_tool_id": crate::tools::runtime_tool_id(id),
            "execution_location": "sandbox",
            "transport_visibility": "sandbox",
            "allowed": true,
            "runtime": {"environment": "runtime_local", "capability_scope": "runtime_local"},
        })
    }

    fn policy(tools: Vec<Value>) -> Value {
        json!({"schema": "wp-codebox/sandbox-tool-policy/v1", "version": 1, "tools": tools, "metadata": {}})
    }

    fn issues(document: &Value) -> Vec<(String, String)> {
        check_tool_policy(document)
            .into_iter()
            .map(|i| (i.code, i.field))
            .collect()
    }

    #[test]
    fn tool_policy_without_tools_and_tool_policy_with_two_valid_tools_are_accepted() {
        assert!(issues(&policy(vec![])).is_empty());
        let good = policy(vec![tool("workspace.read"), tool("x.y")]);
        assert!(issues(&good).is_empty());
    }

    #[test]
    fn empty_php_array_as_metadata_is_read_as_an_empty_object() {
        let mut good = tool("workspace.read");
        good["metadata"] = json!([]);
        let mut document = policy(vec![good]);
        document["metadata"] = json!([]);
        assert!(issues(&document).is_empty());
        assert_eq!(parse_tool_policy(&document).unwrap().tools.len(), 1);
    }

    #[test]
    fn every_fault_of_a_tool_policy_is_reported_at_once() {
        let document = json!({"schema": "x", "version": 2, "tools": [1, {"id": ""}]});
        let codes = issues(&document);
        for wanted in [
            ("invalid-policy", "schema"),
            ("invalid-policy", "version"),
            ("invalid-tool", "tools[0]"),
            ("invalid-tool", "tools[1].id"),
            ("invalid-tool", "tools[1].runtime_tool_id"),
            ("invalid-tool", "tools[1].execution_location"),
            ("invalid-tool", "tools[1].transport_visibility"),
            ("invalid-tool", "tools[1].allowed"),
            ("invalid-tool", "tools[1].runtime.environment"),
            ("invalid-tool", "tools[1].runtime.capability_scope"),
        ] {
            let wanted = (wanted.0.to_owned(), wanted.1.to_owned());
            assert!(codes.contains(&wanted), "{wanted:?} in {codes:?}");
        }
        assert_eq!(
            issues(&json!([])),
            [("invalid-policy".to_owned(), String::new())]
        );
    }

    #[test]
    fn unknown_tool_policy_members_are_reported_as_issues() {
        let mut row = tool("a.b");
        row["alowed"] = json!(false);
        row["runtime"]["scope"] = json!("runtime_local");
        let mut document = policy(vec![row]);
        document["tool"] = json!([]);
        let fields: Vec<_> = issues(&document);
        for wanted in ["tool", "tools[0].alowed", "tools[0].runtime.scope"] {
            let wanted = ("unknown-field".to_owned(), wanted.to_owned());
            assert!(fields.contains(&wanted), "{wanted:?} in {fields:?}");
        }
        assert_eq!(fields.len(), 3);
    }

    #[test]
    fn contradictory_location_environment_and_scope_of_a_tool_are_reported() {
        for (location, environment, scope, faults) in [
            ("sandbox", "runtime_local", "runtime_local", 0),
            ("sandbox", "control_plane", "runtime_local", 1),
            ("sandbox", "control_plane", "control_plane", 2),
            ("parent", "control_plane", "control_plane", 0),
            ("parent", "runtime_local", "control_plane", 1),
        ] {
            let mut row = tool("a.b");
            row["execution_location"] = json!(location);
            row["runtime"] = json!({"environment": environment, "capability_scope": scope});
            assert_eq!(issues(&policy(vec![row])).len(), faults, "{location}");
        }
    }

    #[test]
    fn two_rules_for_one_tool_are_refused() {
        let mut alias = tool("harmless");
        alias["aliases"] = json!(["terminal.run"]);
        let mut hidden = tool("quiet");
        hidden["metadata"] = json!({"aliases": ["shell"]});
        for pair in [
            vec![tool("terminal.run"), tool("terminal.run")],
            vec![tool("terminal.run"), alias],
            vec![tool("terminal.run"), hidden],
            vec![tool("workspace.list"), tool("workspace_ls")],
            vec![tool("a.b"), tool("a-b")],
        ] {
            let codes = issues(&policy(pair.clone()));
            assert!(!codes.is_empty(), "{pair:?}");
            assert!(codes.iter().all(|(code, _)| code == "duplicate-tool"));
        }
    }
}
