//! Rules for the JSON Schemas in `abilities/schemas/`, and the digest over them.
//!
//! WordPress ignores `$ref` and `const`, so a flattened schema with them would accept invalid input.
//! Both are forbidden: a reference to a part is the only one, and a constant is an `enum` with one
//! value.

use crate::findings::TaskError;
use crate::generated::Generated;
use crate::tree;
use serde_json::{Map, Value};
use std::path::Path;
use wp_codebox_schema_sources::{SUFFIX, Schema, Sources, contract_digest};

/// Directory of the sources.
const DIRECTORY: &str = "abilities/schemas";
const MANIFEST: &str = "abilities/manifest.php";
const DIGEST_KEY: &str = "'contract_digest'";
/// Endings of the positions, in input schemas, at which an object may have unknown members. Such
/// an object is data of the caller, or a policy or network rule, whose unknown members the
/// extension reports.
const FREE: &[&str] = &[
    "/agent_workload",
    "/apply_target",
    "/approver",
    "/artifact_ref",
    "/artifact_result",
    "/authorization",
    "/bundle",
    "/caller",
    "/caller_metadata",
    "/code",
    "/code_file",
    "/command",
    "/context",
    "/credentials",
    "/dispatcher",
    "/endpoint",
    "/host_policy",
    "/import_principal",
    "/input",
    "/materialization",
    "/metadata",
    "/orchestrator",
    "/parent_request",
    "/payload",
    "/provenance",
    "/redaction",
    "/request",
    "/request_schema",
    "/result_schema",
    "/review_hints",
    "/roles",
    "/runtime_overlays/items",
    "/runtime_profile",
    "/runtime_state_mounts/items",
    "/sandbox_env",
    "/session",
    "/structured_artifacts/items",
    "/target",
    "/workload",
    "/workspace_artifact_policy",
    // PHP converts these rows to mounts, which the extension validates.
    "/workspaces/items",
    // The rows of this list are separate tasks, which are validated one by one.
    "/tasks/items",
    "/workers/items",
    // The extension validates these objects.
    "/network",
    "/policy",
    "/sandbox_tool_policy",
    // The profile parser validates these items.
    "/network/properties/egress/items",
    "/secret_refs/items",
];

/// Returns every violation of the schema rules.
pub fn check(root: &Path) -> Result<Vec<String>, TaskError> {
    let sources = match Sources::read(&root.join(DIRECTORY)) {
        Ok(sources) => sources,
        Err(error) => return Ok(vec![error.to_string()]),
    };
    let mut findings = sources.findings();
    // A source that cannot be flattened is one of the findings already.
    for schema in sources.flatten().unwrap_or_default() {
        let document = parsed(&schema)?;
        let found = lint(&schema.file, &document).into_iter();
        findings.extend(found.map(|text| format!("{}: {text}", schema.file)));
    }
    Ok(findings
        .into_iter()
        .map(|text| format!("{DIRECTORY}/{text}"))
        .collect())
}

/// Returns the schema manifest with the digest of the current schemas.
pub fn manifest(root: &Path) -> Result<Generated, TaskError> {
    let manifest = tree::read(&root.join(MANIFEST))?;
    let Some(old) = written_digest(&manifest) else {
        return Err(TaskError::Findings(vec![format!(
            "{MANIFEST}: has no {DIGEST_KEY} => '<64 hex digits>' to replace"
        )]));
    };
    Ok(Generated {
        path: MANIFEST,
        text: manifest.replacen(old, &contract_digest(&flattened(root)?), 1),
    })
}

/// Returns the schemas of the checkout without references to parts, sorted by file name.
pub fn flattened(root: &Path) -> Result<Vec<Schema>, TaskError> {
    let failed = |finding| TaskError::Findings(vec![finding]);
    let sources = Sources::read(&root.join(DIRECTORY)).map_err(|e| failed(e.to_string()))?;
    let schemas = sources.flatten();
    schemas.map_err(|e| failed(format!("{DIRECTORY}/{e}")))
}

/// Returns the flattened schema of the checkout with this short name.
pub fn named(root: &Path, name: &str) -> Result<Value, TaskError> {
    let schemas = flattened(root)?;
    match schemas.iter().find(|schema| schema.name() == name) {
        Some(schema) => parsed(schema),
        None => Err(TaskError::Findings(vec![format!(
            "{DIRECTORY}/{name}{SUFFIX} does not exist"
        )])),
    }
}

/// Parses the text of a flattened schema.
pub fn parsed(schema: &Schema) -> Result<Value, TaskError> {
    serde_json::from_str(&schema.text).map_err(|source| TaskError::Json {
        path: Path::new(DIRECTORY).join(&schema.file),
        source,
    })
}

fn written_digest(manifest: &str) -> Option<&str> {
    let (_, rest) = manifest.split_once(DIGEST_KEY)?;
    let rest = rest
        .trim_start()
        .strip_prefix("=>")?
        .trim_start()
        .strip_prefix('\'')?;
    let (value, _) = rest.split_once('\'')?;
    (value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(value)
}

fn lint(name: &str, schema: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    if !name.ends_with(SUFFIX) {
        findings.push(format!("the file name must end in {SUFFIX}"));
    }
    for key in ["$schema", "$id", "title"] {
        let named = schema.get(key).and_then(Value::as_str);
        if named.is_none_or(str::is_empty) {
            findings.push(format!("has no {key}"));
        }
    }
    if let Some(id) = schema.get("$id").and_then(Value::as_str)
        && let Some(stem) = name.strip_suffix(SUFFIX)
        && !id.contains(stem)
    {
        findings.push(format!("its $id {id} does not contain {stem}"));
    }
    // `task-input` describes a task as stored in a bundle, not as requested.
    let asked = name.ends_with(&format!("-input{SUFFIX}")) && name != "task-input.v1.schema.json"
        || name == "sandbox-profile.v1.schema.json";
    positions(schema, "", &mut |at, object| {
        forbidden(at, object, &mut findings);
        if asked && is_open(at, object) {
            findings.push(format!(
                "{at}: this object accepts unknown members; set additionalProperties, or add it to FREE in xtask/src/schemas.rs"
            ));
        }
    });
    findings
}

/// Returns whether an object accepts unknown members although it is not in [`FREE`].
fn is_open(at: &str, schema: &Map<String, Value>) -> bool {
    let object = match schema.get("type") {
        Some(Value::String(one)) => one == "object",
        Some(Value::Array(several)) => several.iter().any(|one| one == "object"),
        _ => schema.contains_key("properties"),
    };
    object
        && !schema.contains_key("additionalProperties")
        && !schema.contains_key("patternProperties")
        && !FREE.iter().any(|end| at.ends_with(end))
}

fn forbidden(at: &str, schema: &Map<String, Value>, findings: &mut Vec<String>) {
    for key in ["$ref", "const"] {
        if schema.contains_key(key) {
            findings.push(format!(
                "{at}/{key}: WordPress ignores {key}; refer to a part, or use enum"
            ));
        }
    }
}

/// Calls `visit` for each sub-schema. Skips names of properties, because a property may be named
/// `const`.
fn positions(schema: &Value, at: &str, visit: &mut dyn FnMut(&str, &Map<String, Value>)) {
    let Some(object) = schema.as_object() else {
        return;
    };
    visit(at, object);
    for (key, value) in object {
        let here = format!("{at}/{key}");
        match key.as_str() {
            "properties" | "patternProperties" => {
                for (name, sub) in value.as_object().into_iter().flatten() {
                    positions(sub, &format!("{here}/{name}"), visit);
                }
            }
            "anyOf" | "oneOf" | "allOf" => {
                for (index, sub) in value.as_array().into_iter().flatten().enumerate() {
                    positions(sub, &format!("{here}/{index}"), visit);
                }
            }
            "items" | "additionalProperties" | "not" => positions(value, &here, visit),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn good() -> Value {
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "$id": "wp-codebox/thing/v1",
               "title": "Thing", "type": "object",
               "properties": {"const": {"type": "string"}, "schema": {"enum": ["wp-codebox/thing/v1"]}}})
    }

    #[test]
    fn schema_keywords_const_and_ref_are_findings_but_a_property_named_const_is_not() {
        assert_eq!(lint("thing.v1.schema.json", &good()), Vec::<String>::new());
        let mut bad = good();
        bad["properties"]["schema"] = json!({"const": "x"});
        bad["properties"]["list"] = json!({"items": {"$ref": "#/x"}});
        assert_eq!(lint("thing.v1.schema.json", &bad).len(), 2);
    }

    #[test]
    fn schema_without_file_suffix_title_or_id_is_a_finding() {
        assert_eq!(lint("thing.json", &good()).len(), 1);
        let mut bad = good();
        bad["title"] = json!("");
        bad["$id"] = json!("wp-codebox/other/v1");
        assert_eq!(lint("thing.v1.schema.json", &bad).len(), 2);
    }

    #[test]
    fn object_in_an_input_schema_that_accepts_unknown_members_is_a_finding_unless_listed_in_free() {
        let input = |part: Value| {
            let mut schema = good();
            schema["additionalProperties"] = json!(false);
            schema["properties"]["part"] = part;
            schema["$id"] = json!("wp-codebox/thing-input/v1");
            schema
        };
        let name = "thing-input.v1.schema.json";
        let open = json!({"type": ["string", "object"], "properties": {"a": {"type": "string"}}});
        let closed = json!({"type": "object", "additionalProperties": false});
        assert_eq!(lint(name, &input(open.clone())).len(), 1);
        assert_eq!(lint(name, &input(closed)), Vec::<String>::new());
        let mut free = input(json!({"type": "string"}));
        free["properties"]["metadata"] = open.clone();
        assert_eq!(lint(name, &free), Vec::<String>::new());
        // The rule does not apply to output documents.
        let mut answer = good();
        answer["properties"]["part"] = open;
        assert_eq!(lint("thing.v1.schema.json", &answer), Vec::<String>::new());
    }

    #[test]
    fn contract_digest_is_read_from_the_php_manifest() {
        let hex = "0".repeat(64);
        let php = format!("return array(\n\t'contract_digest' => '{hex}',\n);");
        assert_eq!(written_digest(&php), Some(hex.as_str()));
        assert_eq!(written_digest("'contract_digest' => 'short'"), None);
    }
}
