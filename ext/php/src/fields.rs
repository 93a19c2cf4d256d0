//! Typed reading of a JSON object: every member is either read or refused by name.
//!
//! Error messages contain the path and the accepted values, and never the given value, because a
//! caller may have put a secret into the wrong member. `null` counts as absent, and `[]` as an
//! empty object, because PHP cannot distinguish them.

use serde_json::{Map, Value};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// A JSON object whose members are taken one by one, and its path for error messages.
#[derive(Debug)]
pub(crate) struct Fields {
    map: Map<String, Value>,
    /// Prefix of member names in error messages: empty, or for example `mounts[0].`.
    place: String,
    code: ErrorCode,
}

impl Fields {
    /// Creates a reader; refuses members that are not in `known`. Every error of the reader has
    /// this `code`.
    pub(crate) fn new(
        map: Map<String, Value>,
        place: &str,
        known: &[&str],
        code: ErrorCode,
    ) -> Result<Self, ErrorBody> {
        let place = if place.is_empty() {
            String::new()
        } else {
            format!("{place}.")
        };
        if let Some(unknown) = map.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(ErrorBody::new(
                code,
                format!(
                    "there is no field {place}{unknown}; accepted are: {}",
                    known.join(", ")
                ),
            )
            .with("field", format!("{place}{unknown}")));
        }
        Ok(Self { map, place, code })
    }

    /// Returns the error for a member that violates `rule`.
    pub(crate) fn refuse(&self, name: &str, rule: &str) -> ErrorBody {
        let field = format!("{}{name}", self.place);
        ErrorBody::new(self.code, format!("{field} must be {rule}")).with("field", field)
    }

    /// Returns whether a member exists and is not `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// Removes and returns a member; `null` counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    /// Takes a member that must be a string.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ErrorBody> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.refuse(name, "a string")),
        }
    }

    /// Takes a member that must be a bool; absent means false.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, ErrorBody> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(self.refuse(name, "true or false")),
        }
    }

    /// Takes a member that must be a whole number from 0.
    pub(crate) fn count(&mut self, name: &str) -> Result<Option<u64>, ErrorBody> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.refuse(name, "a whole number from 0")),
            },
        }
    }

    /// Takes a member that must be an object.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Map<String, Value>>, ErrorBody> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match as_object(value) {
                Some(map) => Ok(Some(map)),
                None => Err(self.refuse(name, "an object")),
            },
        }
    }

    /// Takes a member that must be a list.
    pub(crate) fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, ErrorBody> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.refuse(name, "a list")),
        }
    }

    /// Takes a member that must be a list of strings; absent means empty.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, ErrorBody> {
        let list = self.list(name)?.unwrap_or_default();
        let mut texts = Vec::with_capacity(list.len());
        for (index, item) in list.into_iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text),
                _ => return Err(self.refuse(&format!("{name}[{index}]"), "a string")),
            }
        }
        Ok(texts)
    }
}

fn as_object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        Value::Array(list) if list.is_empty() => Some(Map::new()),
        _ => None,
    }
}
