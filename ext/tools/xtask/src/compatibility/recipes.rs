//! Objects of a recipe and their properties, read from two JSON schemas of the recipe.

use super::public::Differences;
use crate::findings::TaskError;
use crate::{schemas, tree};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Properties by the path of their object, such as `$.inputs.mounts[]`.
pub type Objects = BTreeMap<String, BTreeSet<String>>;

/// Key of `differences.json` with the recipe properties that this project refuses.
pub const KIND: &str = "recipes";
/// Maximum nesting that is read, which ends recursive `$ref`s; the schemas nest less deeply.
const DEPTH: usize = 16;

/// The recipe as published and as this project accepts it.
pub struct Recipes {
    /// Published objects.
    pub public: Objects,
    /// Objects of this project.
    pub ours: Objects,
}

impl Recipes {
    /// Reads both schemas. The one of this project is written from the grammar of the recipe crate.
    pub fn read(root: &Path) -> Result<Self, TaskError> {
        let path = root.join("tests/conformance/public/recipe.schema.json");
        let public: Value = serde_json::from_str(&tree::read(&path)?)
            .map_err(|source| TaskError::Json { path, source })?;
        Ok(Self {
            public: objects(&public),
            ours: objects(&schemas::named(root, "workspace-recipe")?),
        })
    }

    /// Returns the number of published properties, and how many of them are refused.
    pub fn properties(&self, differences: &Differences) -> [usize; 2] {
        let listed = |path: &str| around(path).any(|p| differences.why(KIND, p).is_some());
        let paths = self
            .public
            .iter()
            .flat_map(|(place, names)| names.iter().map(move |name| format!("{place}.{name}")));
        let refused = paths.filter(|path| listed(path)).count();
        [self.public.values().map(BTreeSet::len).sum(), refused]
    }
}

/// Returns the objects that a schema allows, with their properties.
pub fn objects(schema: &Value) -> Objects {
    let mut found = Objects::new();
    walk(schema, schema, "$", DEPTH, &mut found);
    found
}

/// Adds the objects that `schema` allows at `path`: itself, items of a list, members of a map and
/// alternatives.
fn walk(root: &Value, schema: &Value, path: &str, depth: usize, found: &mut Objects) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    if let Some(reference) = schema["$ref"].as_str() {
        if let Some(target) = root.pointer(reference.trim_start_matches('#')) {
            walk(root, target, path, depth, found);
        }
        return;
    }
    if let Some(properties) = schema["properties"].as_object() {
        let names = found.entry(path.to_owned()).or_default();
        names.extend(properties.keys().cloned());
        for (name, property) in properties {
            walk(root, property, &format!("{path}.{name}"), depth, found);
        }
    }
    for (member, suffix) in [("items", "[]"), ("additionalProperties", ".*")] {
        if schema[member].is_object() {
            walk(
                root,
                &schema[member],
                &format!("{path}{suffix}"),
                depth,
                found,
            );
        }
    }
    for list in ["oneOf", "anyOf", "allOf"] {
        for alternative in schema[list].as_array().into_iter().flatten() {
            walk(root, alternative, path, depth, found);
        }
    }
}

/// Returns the path itself and those of the objects around it, innermost first.
pub fn around(path: &str) -> impl Iterator<Item = &str> {
    let ends = path
        .char_indices()
        .rev()
        .filter(|(_, c)| matches!(c, '.' | '['))
        .filter_map(|(end, _)| path.get(..end));
    std::iter::once(path).chain(ends)
}

#[cfg(test)]
mod tests {
    use super::{around, objects};
    use serde_json::json;

    #[test]
    fn object_schemas_inside_items_maps_refs_and_one_of_are_found() {
        let schema = json!({
            "properties": {"rows": {"items": {"$ref": "#/$defs/row"}}, "map": {"additionalProperties": {"properties": {"a": {}}}},
                "one": {"oneOf": [{"type": "string"}, {"properties": {"b": {}}}]}},
            "$defs": {"row": {"properties": {"name": {}, "rows": {"items": {"$ref": "#/$defs/row"}}}}},
        });
        let found = objects(&schema);
        let names = |path: &str| {
            found
                .get(path)
                .map(|n| n.iter().cloned().collect::<Vec<_>>().join(","))
        };
        assert_eq!(names("$").as_deref(), Some("map,one,rows"));
        assert_eq!(names("$.rows[]").as_deref(), Some("name,rows"));
        assert_eq!(names("$.map.*").as_deref(), Some("a"));
        assert_eq!(names("$.one").as_deref(), Some("b"));
        assert_eq!(
            around("$.a[].b").collect::<Vec<_>>(),
            ["$.a[].b", "$.a[]", "$.a", "$"]
        );
    }
}
