//! Strict JSON parser: maximum size and depth, no duplicate keys, no trailing data.
//!
//! Duplicate keys are reported with their paths and never accepted: otherwise two readers could
//! interpret one document as two different recipes.

use crate::issue::{Issue, IssueCode, member};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use wp_codebox_contracts::WholeNumbers;

/// Maximum size of a recipe, in bytes.
pub const MAX_RECIPE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum nesting depth of lists and objects in a recipe.
pub const MAX_RECIPE_DEPTH: usize = 64;
/// Maximum number of duplicate keys reported individually.
const MAX_DUPLICATES: usize = 50;

/// Parses the JSON text of a recipe or workload; reports every problem as an issue
/// `invalid-recipe`.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, Vec<Issue>> {
    let whole = |message: String| vec![Issue::new(IssueCode::InvalidRecipe, "$", message)];
    if bytes.len() > MAX_RECIPE_BYTES {
        return Err(whole(format!(
            "the document has {} bytes; at most {MAX_RECIPE_BYTES} are accepted: put code and data into files beside it",
            bytes.len()
        )));
    }
    let duplicates = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let node = Node {
        path: "$".to_owned(),
        depth: 0,
        duplicates: &duplicates,
    };
    let value = node
        .deserialize(WholeNumbers(&mut reader))
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| whole(format!("the document is not strict JSON: {error}")))?;
    let duplicates = duplicates.into_inner();
    if duplicates.is_empty() {
        Ok(value)
    } else {
        Err(duplicates)
    }
}

/// Sets the member of an object at a path such as `$.inputs.mounts`, and creates the objects that
/// are missing on the way. Does nothing if a value on the way is not an object.
pub(crate) fn set(object: &mut Map<String, Value>, path: &str, value: Value) {
    let mut names: Vec<&str> = path.trim_start_matches("$.").split('.').collect();
    let Some(last) = names.pop() else { return };
    let mut at = object;
    for name in names {
        let below = at.entry(name).or_insert_with(|| Value::Object(Map::new()));
        let Some(members) = below.as_object_mut() else {
            return;
        };
        at = members;
    }
    at.insert(last.to_owned(), value);
}

/// Returns the member of an object at a path such as `$.inputs.mounts`.
pub(crate) fn get<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut names = path.trim_start_matches("$.").split('.');
    let first = object.get(names.next()?)?;
    names.try_fold(first, |at, name| at.get(name))
}

struct Node<'a> {
    path: String,
    depth: usize,
    duplicates: &'a RefCell<Vec<Issue>>,
}

impl Node<'_> {
    fn below<E: Error>(&self, path: String) -> Result<Self, E> {
        if self.depth >= MAX_RECIPE_DEPTH {
            return Err(E::custom(format!(
                "lists and objects are nested deeper than {MAX_RECIPE_DEPTH} levels at {}",
                self.path.chars().take(200).collect::<String>()
            )));
        }
        Ok(Self {
            path,
            depth: self.depth + 1,
            duplicates: self.duplicates,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is out of range"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) =
            items.next_element_seed(self.below(format!("{}[{}]", self.path, list.len()))?)?
        {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let path = member(&self.path, &key);
            let value = members.next_value_seed(self.below(path.clone())?)?;
            if map.insert(key, value).is_some() {
                let mut duplicates = self.duplicates.borrow_mut();
                if duplicates.len() < MAX_DUPLICATES {
                    duplicates.push(Issue::new(
                        IssueCode::InvalidRecipe,
                        path,
                        "the object has this key twice; remove one of them",
                    ));
                }
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_duplicate_json_keys_are_reported_with_paths() {
        let issues = read(br#"{"a":1,"b":[{"c":1,"c":2}],"a":{"d":1,"d":1}}"#).unwrap_err();
        let paths: Vec<_> = issues.iter().map(|i| i.path.as_str()).collect();
        assert_eq!(paths, ["$.b[0].c", "$.a.d", "$.a"]);
        assert!(read(br#"{"a":[{"c":1},{"c":2}]}"#).is_ok());
    }

    #[test]
    fn whole_floats_of_a_recipe_become_integers() {
        let read = |text: &str| read(text.as_bytes()).unwrap();
        assert_eq!(read(r#"{"a":[7382.0,-0.0]}"#), read(r#"{"a":[7382,0]}"#));
        assert_eq!(
            read(r#"{"a":[1.5,1e300]}"#),
            serde_json::json!({"a": [1.5, 1e300]})
        );
    }

    #[test]
    fn oversized_deeply_nested_or_malformed_json_is_refused() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(read(nested(MAX_RECIPE_DEPTH).as_bytes()).is_ok());
        for bad in [
            nested(MAX_RECIPE_DEPTH + 2),
            nested(200_000),
            "{} {}".to_owned(),
            "{".to_owned(),
            "\u{feff}{}".to_owned(),
            "{\"a\":1e999}".to_owned(),
            " ".repeat(MAX_RECIPE_BYTES + 1),
        ] {
            let issues = read(bad.as_bytes()).unwrap_err();
            assert_eq!(issues[0].path, "$");
        }
        assert!(read(b"{\"a\":\"\xff\"}").is_err());
    }
}
