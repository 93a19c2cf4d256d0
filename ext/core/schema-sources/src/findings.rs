//! What is wrong with the sources: references that cannot be followed, parts without use, and
//! objects that equal a part but are written out.

use crate::flatten::reference;
use crate::sources::Sources;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

impl Sources {
    /// Returns one sentence per violation, each beginning with the path of a file below the directory
    /// of the schemas. Repeated parts are looked for only when every reference can be followed.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let mut findings: BTreeSet<String> = BTreeSet::new();
        for (file, members) in self.files() {
            if let Err(error) = self.expand(&Value::Object(members.clone()), file) {
                findings.insert(error.to_string());
            }
        }
        if findings.is_empty() {
            findings.extend(self.repeated());
        }
        findings.extend(self.unused());
        findings.into_iter().collect()
    }

    fn unused(&self) -> Vec<String> {
        let mut used = BTreeSet::new();
        for (_, members) in self.files() {
            collect(members, &mut used);
        }
        let unused = self
            .parts
            .keys()
            .filter(|part| !used.contains(part.as_str()));
        unused
            .map(|part| format!("{part}: no schema uses this part; delete it"))
            .collect()
    }

    /// Compares every object that has no reference with the parts.
    fn repeated(&self) -> Vec<String> {
        let mut parts = BTreeMap::new();
        for (part, members) in &self.parts {
            if let Ok(Value::Object(members)) = self.expand(&Value::Object(members.clone()), part) {
                parts.insert(key(&members), part.as_str());
            }
        }
        let mut found = Vec::new();
        for (file, members) in self.files() {
            let mut visit = |at: &str, members: &Map<String, Value>| {
                let expanded = self.expand(&Value::Object(members.clone()), file);
                let part = match &expanded {
                    Ok(Value::Object(members)) => parts.get(&key(members)).copied(),
                    _ => None,
                };
                let at = if at.is_empty() { "the whole file" } else { at };
                if let Some(part) = part.filter(|part| *part != file) {
                    found.push(format!(
                        "{file}: {at} equals {part}; write {{\"$ref\": \"{part}\"}} there, beside it a description that differs"
                    ));
                }
                part.is_some_and(|part| part != file)
            };
            walk(members, "", &mut visit);
        }
        found
    }
}

/// Collects the paths of all parts that an object refers to.
fn collect<'a>(members: &'a Map<String, Value>, used: &mut BTreeSet<&'a str>) {
    used.extend(reference(members));
    for value in members.values() {
        objects(value, &mut |members| collect(members, used));
    }
}

/// Calls `visit` for the object or the objects of a list.
fn objects<'a>(value: &'a Value, visit: &mut dyn FnMut(&'a Map<String, Value>)) {
    match value {
        Value::Object(members) => visit(members),
        Value::Array(items) => items.iter().for_each(|item| objects(item, visit)),
        _ => {}
    }
}

/// Calls `visit` for each object without a reference, with its JSON pointer, until it returns true;
/// then it skips the objects inside that one.
fn walk(
    members: &Map<String, Value>,
    at: &str,
    visit: &mut dyn FnMut(&str, &Map<String, Value>) -> bool,
) {
    if reference(members).is_none() && visit(at, members) {
        return;
    }
    for (name, value) in members {
        walk_value(value, &format!("{at}/{name}"), visit);
    }
}

fn walk_value(value: &Value, at: &str, visit: &mut dyn FnMut(&str, &Map<String, Value>) -> bool) {
    match value {
        Value::Object(members) => walk(members, at, visit),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk_value(item, &format!("{at}/{index}"), visit);
            }
        }
        _ => {}
    }
}

/// Returns a text that is the same for two objects which differ only in their description. A property
/// named `description` is an object and counts.
fn key(members: &Map<String, Value>) -> String {
    let compared = members
        .iter()
        .filter(|(name, value)| !(*name == "description" && value.is_string()));
    let compared: Map<String, Value> = compared
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Value::Object(compared).to_string()
}

#[cfg(test)]
mod tests {
    use crate::sources::tests::sources;
    use serde_json::{Value, json};

    fn findings(files: &[(&str, Value)]) -> Vec<String> {
        sources(files).findings()
    }

    fn part() -> Value {
        json!({"type": "object", "description": "Where.", "properties": {"path": {"type": "string"}}})
    }

    #[test]
    fn sources_whose_parts_are_all_used_have_no_finding() {
        let schema = json!({"properties": {"at": {"$ref": "parts/place.json"}}});
        let places = json!({"type": "array", "items": {"$ref": "parts/place.json"}});
        let list = json!({"anyOf": [{"$ref": "parts/places.json"}]});
        let found = findings(&[
            ("a.v1.schema.json", schema),
            ("b.v1.schema.json", list),
            ("parts/place.json", part()),
            ("parts/places.json", places),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn every_unknown_part_and_every_cycle_is_a_finding_with_the_name_of_the_file() {
        let found = findings(&[
            ("a.v1.schema.json", json!({"not": {"$ref": "parts/b.json"}})),
            ("c.v1.schema.json", json!({"not": {"$ref": "parts/d.json"}})),
            ("e.v1.schema.json", json!({"$ref": "parts/f.json"})),
            ("parts/f.json", json!({"items": {"$ref": "parts/f.json"}})),
        ]);
        let starts = [
            "a.v1.schema.json: there is no parts/b.json;",
            "c.v1.schema.json: there is no parts/d.json;",
            "parts/f.json: contains itself: parts/f.json -> parts/f.json",
        ];
        assert_eq!(found.len(), starts.len(), "{found:?}");
        for (found, start) in found.iter().zip(starts) {
            assert!(found.starts_with(start), "{found}");
        }
    }

    #[test]
    fn part_that_no_schema_uses_is_a_finding() {
        let found = findings(&[
            ("a.v1.schema.json", json!({"type": "object"})),
            ("parts/place.json", part()),
        ]);
        assert_eq!(
            found,
            ["parts/place.json: no schema uses this part; delete it"]
        );
    }

    #[test]
    fn object_that_equals_a_part_except_for_its_description_is_a_finding_with_its_position() {
        let mut written = part();
        written["description"] = json!("Elsewhere.");
        let mut other = part();
        other["properties"]["path"]["maxLength"] = json!(9);
        let schema = json!({"properties": {
            "at": {"$ref": "parts/place.json", "description": "There."},
            "to": {"anyOf": [other, written]},
        }});
        let found = findings(&[("a.v1.schema.json", schema), ("parts/place.json", part())]);
        assert_eq!(
            found,
            [
                "a.v1.schema.json: /properties/to/anyOf/1 equals parts/place.json; write {\"$ref\": \"parts/place.json\"} there, beside it a description that differs"
            ]
        );
    }

    #[test]
    fn properties_that_equal_a_part_are_a_finding_and_a_property_named_description_counts() {
        let properties = json!({"description": {"type": "string"}, "path": {"type": "string"}});
        let mut other = properties.clone();
        other["description"]["maxLength"] = json!(9);
        let schema = |properties: &Value| json!({"properties": properties});
        let used = json!({"properties": {"$ref": "parts/row-properties.json"}});
        let found = |properties: &Value, written: &Value| {
            findings(&[
                ("a.v1.schema.json", used.clone()),
                ("b.v1.schema.json", schema(written)),
                ("parts/row-properties.json", properties.clone()),
            ])
        };
        assert_eq!(found(&properties, &other), [""; 0]);
        let found = found(&properties, &properties);
        assert!(
            matches!(&found[..], [one] if one.starts_with("b.v1.schema.json: /properties equals parts/row-properties.json;")),
            "{found:?}"
        );
    }
}
