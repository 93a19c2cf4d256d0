//! Replaces references to parts by the members of the parts.

use crate::schema::Schema;
use crate::sources::{PARTS, Sources};
use serde_json::{Map, Value};

/// Member that stands for the members of a part.
const REFERENCE: &str = "$ref";

/// Why a source cannot be flattened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlattenError {
    /// A file names a part that does not exist.
    #[error("{file}: there is no {part}; write the part, or correct the name")]
    UnknownPart {
        /// File with the reference.
        file: String,
        /// Path that the reference names.
        part: String,
    },
    /// A part contains itself.
    #[error("{}: contains itself: {}", parts.first().map_or("", String::as_str), parts.join(" -> "))]
    Cycle {
        /// The parts, each of which refers to the next one. The last one is the first one again.
        parts: Vec<String>,
    },
    /// A file removes a member that the part does not have.
    #[error("{file}: removes {member:?}, which {part} does not have; delete the member")]
    NothingRemoved {
        /// File with the reference.
        file: String,
        /// Path of the part.
        part: String,
        /// Name of the member that is `null` beside the reference.
        member: String,
    },
}

impl Sources {
    /// Returns every schema without references to parts, sorted by file name.
    pub fn flatten(&self) -> Result<Vec<Schema>, FlattenError> {
        let schemas = self.schemas.iter();
        schemas
            .map(|(file, members)| {
                let value = self.object(members, file, &mut Vec::new())?;
                Ok(Schema {
                    file: file.clone(),
                    text: format!("{:#}\n", Value::Object(value)),
                })
            })
            .collect()
    }

    /// Returns a value of `file` without references to parts.
    pub(crate) fn expand(&self, value: &Value, file: &str) -> Result<Value, FlattenError> {
        self.value(value, file, &mut Vec::new())
    }

    /// Expands a value of `file`; `open` lists the parts around it, outermost first.
    fn value(
        &self,
        value: &Value,
        file: &str,
        open: &mut Vec<String>,
    ) -> Result<Value, FlattenError> {
        Ok(match value {
            Value::Object(members) => Value::Object(self.object(members, file, open)?),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item, file, open));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            other => other.clone(),
        })
    }

    fn object(
        &self,
        members: &Map<String, Value>,
        file: &str,
        open: &mut Vec<String>,
    ) -> Result<Map<String, Value>, FlattenError> {
        let part = reference(members);
        let mut flat = Map::new();
        for (name, value) in members {
            match part {
                Some(part) if name == REFERENCE => {
                    for (name, value) in self.part(part, file, open)? {
                        match members.get(&name) {
                            None => drop(flat.insert(name, value)),
                            Some(Value::Null) => {}
                            // `insert` keeps the place of a member that is written before `$ref`.
                            Some(own) => drop(flat.insert(name, self.value(own, file, open)?)),
                        }
                    }
                }
                Some(part) if value.is_null() => self.must_have(part, name, file, open)?,
                _ => drop(flat.insert(name.clone(), self.value(value, file, open)?)),
            }
        }
        Ok(flat)
    }

    /// Returns the members of a part without references.
    fn part(
        &self,
        part: &str,
        file: &str,
        open: &mut Vec<String>,
    ) -> Result<Map<String, Value>, FlattenError> {
        if let Some(start) = open.iter().position(|around| around == part) {
            let around = open.iter().skip(start).cloned();
            return Err(FlattenError::Cycle {
                parts: around.chain([part.to_owned()]).collect(),
            });
        }
        let Some(members) = self.parts.get(part) else {
            return Err(FlattenError::UnknownPart {
                file: file.to_owned(),
                part: part.to_owned(),
            });
        };
        open.push(part.to_owned());
        let flat = self.object(members, part, open);
        open.pop();
        flat
    }

    fn must_have(
        &self,
        part: &str,
        member: &str,
        file: &str,
        open: &mut Vec<String>,
    ) -> Result<(), FlattenError> {
        match self.part(part, file, open)?.contains_key(member) {
            true => Ok(()),
            false => Err(FlattenError::NothingRemoved {
                file: file.to_owned(),
                part: part.to_owned(),
                member: member.to_owned(),
            }),
        }
    }
}

/// Returns the path of the part that an object refers to, below the directory of the schemas.
pub(crate) fn reference(members: &Map<String, Value>) -> Option<&str> {
    let target = members.get(REFERENCE)?.as_str()?;
    target.starts_with(PARTS).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::sources;
    use serde_json::json;

    /// Flattens `schema`, which may use the parts `point` and `line`.
    fn flattened(schema: Value) -> Result<String, FlattenError> {
        let point = json!({"type": "object", "description": "A point.", "properties": {"x": {}}});
        let line = json!({"type": "array", "items": {"$ref": "parts/point.json"}});
        let all = sources(&[
            ("s.v1.schema.json", schema),
            ("parts/point.json", point),
            ("parts/line.json", line),
        ]);
        let schemas = all.flatten()?;
        assert_eq!(schemas[0].name(), "s");
        let value: Value = serde_json::from_str(&schemas[0].text).unwrap();
        Ok(value.to_string())
    }

    #[test]
    fn reference_is_replaced_by_the_members_of_the_part_in_its_place() {
        let schema = json!({"title": "S", "$ref": "parts/point.json", "default": {}});
        assert_eq!(
            flattened(schema).unwrap(),
            r#"{"title":"S","type":"object","description":"A point.","properties":{"x":{}},"default":{}}"#
        );
        let nested = json!({"anyOf": [{"$ref": "parts/line.json"}]});
        assert_eq!(
            flattened(nested).unwrap(),
            r#"{"anyOf":[{"type":"array","items":{"type":"object","description":"A point.","properties":{"x":{}}}}]}"#
        );
    }

    #[test]
    fn member_beside_a_reference_replaces_the_one_of_the_part_in_the_place_that_comes_first() {
        let after = json!({"$ref": "parts/point.json", "description": "Corner."});
        assert_eq!(
            flattened(after).unwrap(),
            r#"{"type":"object","description":"Corner.","properties":{"x":{}}}"#
        );
        let before = json!({"description": "Corner.", "$ref": "parts/point.json"});
        assert_eq!(
            flattened(before).unwrap(),
            r#"{"description":"Corner.","type":"object","properties":{"x":{}}}"#
        );
        // The whole member is replaced, and it may use a part itself.
        let deep = json!({"$ref": "parts/line.json", "items": {"$ref": "parts/point.json", "type": "string"}});
        assert_eq!(
            flattened(deep).unwrap(),
            r#"{"type":"array","items":{"type":"string","description":"A point.","properties":{"x":{}}}}"#
        );
    }

    #[test]
    fn null_beside_a_reference_removes_a_member_and_is_refused_when_the_part_has_none() {
        let schema = json!({"$ref": "parts/point.json", "description": null});
        assert_eq!(
            flattened(schema).unwrap(),
            r#"{"type":"object","properties":{"x":{}}}"#
        );
        let schema = json!({"not": {"$ref": "parts/point.json", "required": null}});
        assert_eq!(
            flattened(schema).unwrap_err().to_string(),
            r#"s.v1.schema.json: removes "required", which parts/point.json does not have; delete the member"#
        );
        // Without a reference, null is a value.
        let kept = json!({"type": "null", "default": null});
        assert_eq!(flattened(kept.clone()).unwrap(), kept.to_string());
    }

    #[test]
    fn references_of_json_schema_and_properties_named_ref_stay_as_they_are() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"$ref": {"type": "string"}}}}});
        assert_eq!(flattened(schema.clone()).unwrap(), schema.to_string());
    }

    #[test]
    fn text_is_indented_by_two_spaces_and_ends_with_a_newline() {
        let all = sources(&[(
            "s.v1.schema.json",
            json!({"enum": ["é", 1.5], "default": {}}),
        )]);
        assert_eq!(
            all.flatten().unwrap()[0].text,
            "{\n  \"enum\": [\n    \"é\",\n    1.5\n  ],\n  \"default\": {}\n}\n"
        );
    }

    #[test]
    fn unknown_part_is_refused_with_the_name_of_the_file_that_refers_to_it() {
        let schema = json!({"items": {"$ref": "parts/circle.json"}});
        assert_eq!(
            flattened(schema).unwrap_err().to_string(),
            "s.v1.schema.json: there is no parts/circle.json; write the part, or correct the name"
        );
        let all = sources(&[
            ("s.v1.schema.json", json!({"$ref": "parts/a.json"})),
            ("parts/a.json", json!({"not": {"$ref": "parts/b"}})),
        ]);
        assert_eq!(
            all.flatten().unwrap_err().to_string(),
            "parts/a.json: there is no parts/b; write the part, or correct the name"
        );
    }

    #[test]
    fn part_that_contains_itself_is_refused_with_the_parts_of_the_cycle() {
        let all = sources(&[
            ("s.v1.schema.json", json!({"$ref": "parts/a.json"})),
            ("parts/a.json", json!({"items": {"$ref": "parts/b.json"}})),
            ("parts/b.json", json!({"items": {"$ref": "parts/c.json"}})),
            ("parts/c.json", json!({"items": {"$ref": "parts/b.json"}})),
        ]);
        assert_eq!(
            all.flatten().unwrap_err().to_string(),
            "parts/b.json: contains itself: parts/b.json -> parts/c.json -> parts/b.json"
        );
    }
}
