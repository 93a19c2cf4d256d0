//! Converts JSON lines of an agent's output to readable text by the display rules (`steps`) of the
//! agent's preset.
//!
//! The guest controls these lines. Each value is redacted after JSON decoding and before it is
//! cut, because the redactor cannot recognise half of a secret.

use crate::Redactor;
use serde_json::Value;
use wp_codebox_contracts::PresetStep;

/// Maximum number of characters of a value shown on one line.
const LINE_CHARS: usize = 200;
/// Maximum number of characters of a value shown as multi-line text.
const TEXT_CHARS: usize = 4_000;
/// Maximum number of list entries shown. Without a limit the shown text could be much longer than
/// the JSON line, because a rule may insert members of the whole line once for each entry.
const ENTRIES: usize = 64;
/// Name that stands for the current list entry in the paths of a rule with `each`.
const EACH: &str = "each";

/// A part of a display template: fixed text, or a member of the JSON line.
enum Part<'a> {
    Literal(&'a str),
    Member { path: &'a str, form: Form },
}

/// Format in which a value is inserted: as one line, or with its line breaks.
#[derive(Clone, Copy)]
enum Form {
    Line,
    Text,
}

/// Returns the first fault of a display rule, or `None` if it is valid.
pub(super) fn fault(step: &PresetStep) -> Option<String> {
    if step.when.is_empty() {
        return Some("a step needs a condition in `when`".to_owned());
    }
    if step
        .when
        .values()
        .any(|wanted| !matches!(wanted, Value::String(_) | Value::Number(_) | Value::Bool(_)))
    {
        return Some("a value in a step's `when` must be text, a number, true or false".to_owned());
    }
    let parts = match parts(&step.line) {
        Ok(parts) => parts,
        Err(what) => return Some(what),
    };
    let named = parts.iter().filter_map(|part| match part {
        Part::Literal(_) => None,
        Part::Member { path, .. } => Some(*path),
    });
    let mut paths = step
        .when
        .keys()
        .map(String::as_str)
        .chain(step.each.as_deref())
        .chain(named);
    paths
        .find(|path| path.split('.').any(str::is_empty))
        .map(|path| format!("{path:?} is not a valid member path"))
}

/// Splits a display template into its parts.
fn parts(template: &str) -> Result<Vec<Part<'_>>, String> {
    let mut out = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        out.push(Part::Literal(&rest[..at]));
        let here = &rest[at..];
        if here.starts_with("{{") || here.starts_with("}}") {
            out.push(Part::Literal(&here[..1]));
            rest = &here[2..];
            continue;
        }
        let (Some(end), true) = (here.find('}'), here.starts_with('{')) else {
            return Err(format!("{template:?} has an unmatched brace"));
        };
        let (path, form) = match here[1..end].split_once(':') {
            None => (&here[1..end], Form::Line),
            Some((path, "text")) => (path, Form::Text),
            Some((_, other)) => {
                return Err(format!(
                    "{other:?} is not a known format of a value; the only format is \"text\""
                ));
            }
        };
        out.push(Part::Member { path, form });
        rest = &here[end + 1..];
    }
    out.push(Part::Literal(rest));
    Ok(out)
}

/// Returns the text to display for one line of an agent's output, without line end; `None` if
/// no rule matches.
#[must_use]
pub fn step_text(steps: &[PresetStep], line: &[u8], redactor: &Redactor) -> Option<String> {
    if steps.is_empty() || line.first() != Some(&b'{') {
        return None;
    }
    let row: Value = serde_json::from_slice(line).ok()?;
    steps.iter().find_map(|step| match &step.each {
        None => filled(step, &row, None, redactor),
        Some(path) => {
            let entries = member(&row, path)?.as_array()?;
            // This rule applies if at least one entry of the list matches it. Each entry is
            // then formatted by the first rule with the same `each` that matches the entry. An
            // entry that no such rule matches is shown as JSON.
            let here = |entry| filled(step, &row, Some(entry), redactor);
            entries.iter().find_map(here)?;
            let lines = entries.iter().take(ENTRIES).map(|entry| {
                let same = steps.iter().filter(|other| other.each == step.each);
                same.clone()
                    .find_map(|step| filled(step, &row, Some(entry), redactor))
                    .unwrap_or_else(|| shown(entry, Form::Line, redactor).unwrap_or_default())
            });
            let mut lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
            if let Some(more @ 1..) = entries.len().checked_sub(ENTRIES) {
                lines.push(format!("… ({more} entries more)"));
            }
            Some(lines.join("\n"))
        }
    })
}

/// Expands the template of a display rule; `None` if the rule does not match the line, or if a
/// member in the template is missing or `null`.
fn filled(
    step: &PresetStep,
    row: &Value,
    entry: Option<&Value>,
    redactor: &Redactor,
) -> Option<String> {
    let found = |path: &str| match (entry, path.strip_prefix(EACH)) {
        (Some(entry), Some("")) => Some(entry),
        (Some(entry), Some(rest)) if rest.starts_with('.') => member(entry, &rest[1..]),
        _ => member(row, path),
    };
    let matches = |(path, wanted): (&String, &Value)| found(path) == Some(wanted);
    if !step.when.iter().all(matches) {
        return None;
    }
    parts(&step.line)
        .ok()?
        .into_iter()
        .map(|part| match part {
            Part::Literal(text) => Some(text.to_owned()),
            Part::Member { path, form } => shown(found(path)?, form, redactor),
        })
        .collect()
}

fn shown(value: &Value, form: Form, redactor: &Redactor) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    let text = redactor.redact(&text);
    let (text, most) = match form {
        Form::Line => (text.trim().replace(['\n', '\r', '\t'], " "), LINE_CHARS),
        Form::Text => (text.trim_end().to_owned(), TEXT_CHARS),
    };
    Some(match text.char_indices().nth(most) {
        None => text,
        Some((at, _)) => format!("{}… ({} bytes more)", &text[..at], text.len() - at),
    })
}

/// Returns the member of a JSON value at a dot-separated path.
pub(super) fn member<'a>(row: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(row, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}
