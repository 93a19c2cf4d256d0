//! Parses the arguments of a tool call against the tool's JSON Schema.
//!
//! Some models write numbers as texts and `null` for absent values; the parser accepts both. It
//! refuses unknown names and lists the known ones.

use serde_json::{Map, Value};

/// Arguments of one tool call, with typed access by name.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    tool: &'a str,
    given: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Creates the reader; fails if the tool's schema does not name every given argument.
    pub(super) fn of(
        tool: &'a str,
        given: &'a Map<String, Value>,
        schema: &Value,
    ) -> Result<Self, String> {
        let known: Vec<&str> = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
            .collect();
        match given.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(format!(
                "unknown argument {:?}; the arguments are {}",
                name.chars().take(80).collect::<String>(),
                known.join(", ")
            )),
            None => Ok(Self { tool, given }),
        }
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    /// Returns the id of the called tool.
    pub(super) fn tool(&self) -> &'a str {
        self.tool
    }

    /// Returns the text argument `name`; fails when it is absent.
    pub(super) fn text(&self, name: &str) -> Result<&'a str, String> {
        self.value(name)
            .and_then(Value::as_str)
            .ok_or_else(|| wrong(name, "a text, and is required"))
    }

    /// Returns the text argument `name`, or `default` when it is absent.
    pub(super) fn text_or<'b>(&self, name: &str, default: &'b str) -> Result<&'b str, String>
    where
        'a: 'b,
    {
        match self.value(name) {
            None => Ok(default),
            Some(value) => value.as_str().ok_or_else(|| wrong(name, "a text")),
        }
    }

    /// Returns the argument `name` as a list of texts, empty when absent.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<&'a str>, String> {
        let Some(value) = self.value(name) else {
            return Ok(Vec::new());
        };
        let items = value.as_array();
        items
            .and_then(|items| items.iter().map(Value::as_str).collect())
            .ok_or_else(|| format!("{name} must be a list of strings"))
    }

    /// Returns the boolean argument `name`, false when absent.
    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.value(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(wrong(name, "true or false")),
        }
    }

    /// Returns the number argument `name`, or `default` when it is absent; fails when the number is
    /// outside of `range`.
    pub(super) fn number(
        &self,
        name: &str,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, String> {
        let Some(value) = self.value(name) else {
            return Ok(default);
        };
        let number = match value {
            Value::String(text) => text.parse().ok(),
            // Some models write whole numbers as `3.0`.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Value::Number(number) => number.as_u64().or_else(|| {
                number
                    .as_f64()
                    .filter(|f| f.fract() == 0.0 && *f >= 0.0 && *f <= 9e15)
                    .map(|f| f as u64)
            }),
            _ => None,
        };
        number.filter(|n| range.contains(n)).ok_or_else(|| {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            wrong(name, &wanted)
        })
    }

    /// Returns the object argument `name`, also when the model wrote it as JSON text.
    pub(super) fn object(&self, name: &str) -> Result<Option<Map<String, Value>>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map.clone())),
            Some(Value::Array(list)) if list.is_empty() => Ok(Some(Map::new())),
            Some(Value::String(text)) => serde_json::from_str(text)
                .map(Some)
                .map_err(|_| wrong(name, "an object")),
            Some(_) => Err(wrong(name, "an object")),
        }
    }

    /// Returns the tool call's timeout; `default` is in seconds like the argument.
    pub(super) fn timeout(&self, default: u64) -> Result<std::time::Duration, String> {
        self.number("timeout_seconds", default, 1..=1800)
            .map(std::time::Duration::from_secs)
    }
}

fn wrong(name: &str, wanted: &str) -> String {
    format!("argument {name} must be {wanted}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tool_arguments_given_as_strings_are_converted_and_invalid_or_unknown_ones_are_refused() {
        let schema = json!({"properties": {"a": {}, "n": {}, "f": {}, "o": {}}});
        let given = json!({"a": "x", "n": "12", "f": "true", "o": "{\"k\":1}"});
        let given = given.as_object().unwrap();
        let arguments = Arguments::of("t", given, &schema).unwrap();
        assert_eq!(arguments.text("a"), Ok("x"));
        assert_eq!(arguments.number("n", 1, 1..=20), Ok(12));
        assert_eq!(arguments.flag("f"), Ok(true));
        assert_eq!(arguments.object("o").unwrap().unwrap()["k"], 1);
        assert!(arguments.number("n", 1, 1..=5).is_err());
        assert!(arguments.text("b").is_err());
        for (n, read) in [
            (json!(3.0), Ok(3)),
            (json!(null), Ok(7)),
            (json!(3.5), Err(())),
            (json!(-1), Err(())),
            (json!([]), Err(())),
        ] {
            let given = Map::from_iter([("n".to_owned(), n)]);
            let arguments = Arguments::of("t", &given, &schema).unwrap();
            assert_eq!(arguments.number("n", 7, 0..=9).map_err(|_| ()), read);
        }
        let unknown = Map::from_iter([("z".to_owned(), json!(1))]);
        let error = Arguments::of("t", &unknown, &schema).unwrap_err();
        assert!(error.contains("a, n, f, o"), "{error}");
    }
}
