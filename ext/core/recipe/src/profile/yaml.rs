//! Parses an unambiguous subset of YAML to JSON values.
//!
//! Refuses anchors, aliases, tags, merge keys, multiple documents and non-text keys, so that a
//! document cannot expand beyond its own size and every reader interprets it the same way.

use super::ProfileIssue;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};
use wp_codebox_contracts::json_number;

/// Maximum nesting depth of a YAML document.
const DEPTH: usize = 16;

/// Parses a text that contains one YAML document.
pub(super) fn read(text: &str) -> Result<Value, Vec<ProfileIssue>> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let step = match event {
            Ok((event, span)) => builder.take(event, span.start.line()),
            Err(error) => Err(format!("the profile is not YAML: {error}")),
        };
        if let Err(message) = step {
            builder.issues.push(ProfileIssue {
                path: builder.path(),
                message,
            });
            return Err(builder.issues);
        }
    }
    match (builder.done, builder.issues) {
        (Some(value), issues) if issues.is_empty() => Ok(value),
        (_, mut issues) => {
            if issues.is_empty() {
                issues.push(ProfileIssue {
                    path: "$".to_owned(),
                    message: "the profile is empty: it must be an object".to_owned(),
                });
            }
            Err(issues)
        }
    }
}

enum Open {
    List(Vec<Value>),
    /// An object that is being parsed. The second field is the key whose value comes next; `None`
    /// if a key comes next.
    Object(Map<String, Value>, Option<String>),
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    done: Option<Value>,
    documents: usize,
    issues: Vec<ProfileIssue>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), String> {
        let plain = |anchor: usize, tagged: bool| match (anchor, tagged) {
            (0, false) => Ok(()),
            (0, true) => Err(format!(
                "line {line}: YAML tags are not accepted; remove the tag"
            )),
            _ => Err(format!(
                "line {line}: YAML anchors are not accepted; repeat the value"
            )),
        };
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(format!(
                        "line {line}: only one document is accepted; remove the others"
                    ));
                }
                Ok(())
            }
            Event::Alias(_) => Err(format!(
                "line {line}: YAML aliases are not accepted; repeat the value"
            )),
            Event::Scalar(text, style, anchor, tag) => {
                plain(anchor, tag.is_some())?;
                self.scalar(&text, style, line)
            }
            Event::SequenceStart(anchor, tag) => {
                plain(anchor, tag.is_some())?;
                self.enter(Open::List(Vec::new()), line)
            }
            Event::MappingStart(anchor, tag) => {
                plain(anchor, tag.is_some())?;
                self.enter(Open::Object(Map::new(), None), line)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items)) => self.value(Value::Array(items)),
                Some(Open::Object(members, _)) => self.value(Value::Object(members)),
                None => Err(format!(
                    "line {line}: unexpected end of a list or an object"
                )),
            },
        }
    }

    fn enter(&mut self, open: Open, line: usize) -> Result<(), String> {
        if let Some(Open::Object(_, None)) = self.open.last() {
            return Err(format!("line {line}: a key must be text"));
        }
        if self.open.len() >= DEPTH {
            return Err(format!(
                "line {line}: lists and objects are nested deeper than {DEPTH} levels"
            ));
        }
        self.open.push(open);
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, line: usize) -> Result<(), String> {
        let path = self.path();
        if let Some(Open::Object(members, key @ None)) = self.open.last_mut() {
            if text == "<<" && style == ScalarStyle::Plain {
                return Err(format!(
                    "line {line}: YAML merge keys are not accepted; repeat the members"
                ));
            }
            if members.contains_key(text) {
                self.issues.push(ProfileIssue {
                    path: format!("{path}.{text}"),
                    message: format!(
                        "line {line}: the object has this key twice; remove one of them"
                    ),
                });
            }
            *key = Some(text.to_owned());
            return Ok(());
        }
        let value = match style {
            ScalarStyle::Plain => plain(text),
            _ => Value::String(text.to_owned()),
        };
        self.value(value)
    }

    fn value(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut() {
            None => self.done = Some(value),
            Some(Open::List(items)) => items.push(value),
            Some(Open::Object(members, key)) => {
                let key = key.take().ok_or("a key must be text")?;
                members.insert(key, value);
            }
        }
        Ok(())
    }

    fn path(&self) -> String {
        let mut path = "$".to_owned();
        for open in &self.open {
            match open {
                Open::List(items) => path.push_str(&format!("[{}]", items.len())),
                Open::Object(_, Some(key)) => path.push_str(&format!(".{key}")),
                Open::Object(_, None) => {}
            }
        }
        path
    }
}

/// Converts an unquoted scalar to null, a boolean, a number or a text by YAML's core schema,
/// without rare notations such as `0x1F`.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return Value::from(number);
    }
    // Rust also parses `inf` and `1e5` as numbers; accept only digits with a point.
    let decimal = text
        .trim_start_matches('-')
        .bytes()
        .all(|b| b.is_ascii_digit() || b == b'.');
    let number = text.parse::<f64>().ok().filter(|_| decimal);
    number
        .and_then(json_number)
        .map_or_else(|| Value::String(text.to_owned()), Value::Number)
}
