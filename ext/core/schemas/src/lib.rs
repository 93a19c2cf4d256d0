//! The JSON Schemas of `abilities/schemas/`, flattened and built in, so that programs need no files
//! at run time.
//!
//! The build script flattens the sources with `wp-codebox-schema-sources`. The texts are the bytes
//! of the files that `cargo xtask dist` writes to `dist/wp-codebox/abilities/schemas/`.
#![forbid(unsafe_code)]

/// Contract digest over all schemas, 64 lower-case hex digits; its input is documented at
/// `wp_codebox_schema_sources::contract_digest`.
pub const CONTRACT_DIGEST: &str = env!("WP_CODEBOX_CONTRACT_DIGEST");

/// Short names and texts, sorted by file name.
static SCHEMAS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/schemas.rs"));

/// Returns short name and text of every schema, sorted by file name. The short name is the file name
/// without `.v1.schema.json`.
#[must_use]
pub fn all() -> &'static [(&'static str, &'static str)] {
    SCHEMAS
}

/// Returns the text of the schema with this short name, such as `run-events`.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    let (_, text) = SCHEMAS.iter().find(|(known, _)| *known == name)?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn embedded_schemas_are_sorted_json_documents_without_references_to_parts() {
        let names: Vec<&str> = all().iter().map(|(name, _)| *name).collect();
        assert!(names.len() > 200, "{names:?}");
        assert!(names.is_sorted_by_key(|name| format!("{name}.v1.schema.json")));
        for (name, text) in all() {
            let schema: Value = serde_json::from_str(text).unwrap();
            assert_eq!(schema["$id"], format!("wp-codebox/{name}/v1"), "{name}");
            assert!(!text.contains("\"parts/"), "{name}");
            assert!(text.ends_with("}\n"), "{name}");
        }
    }

    #[test]
    fn schema_text_is_found_by_short_name_only() {
        assert!(text("run-events").is_some_and(|text| text.contains("wp-codebox/run-events/v1")));
        assert_eq!(text("run-events.v1.schema.json"), None);
    }
}
