//! JSON object with members in insertion order; absent members are omitted.

use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Default)]
pub(super) struct Row(Map<String, Value>);

impl Row {
    pub(super) fn new() -> Self {
        Self::default()
    }
    /// Adds a member.
    pub(super) fn with(mut self, name: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.0.insert(name.to_owned(), value);
        self
    }
    /// Adds a member if there is a value.
    pub(super) fn maybe(self, name: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
    /// Adds a list if it is not empty.
    pub(super) fn some(self, name: &str, rows: Vec<Value>) -> Self {
        if rows.is_empty() {
            self
        } else {
            self.with(name, rows)
        }
    }
    pub(super) fn value(self) -> Value {
        Value::Object(self.0)
    }
}
