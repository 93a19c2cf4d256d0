//! Checks parsed JSON against a shape and collects all deviations.

use super::{Field, Items, List, Need, Shape};
use crate::issue::{Issue, IssueCode, member};
use serde_json::Value;

/// Maximum number of deviations from the grammar reported for one recipe, so that a hostile recipe
/// cannot cause a huge response.
const MAX_ISSUES: usize = 500;

/// Returns one issue for each deviation of `value` from what `shape` permits, at most
/// [`MAX_ISSUES`].
pub(crate) fn check(shape: &Shape, value: &Value) -> Vec<Issue> {
    let mut issues = Vec::new();
    walk(shape, value, "$", &mut issues);
    issues.truncate(MAX_ISSUES);
    issues
}

fn report(issues: &mut Vec<Issue>, code: IssueCode, path: &str, message: String) {
    if issues.len() <= MAX_ISSUES {
        issues.push(Issue::new(code, path, message));
    }
}

fn walk(shape: &Shape, value: &Value, path: &str, issues: &mut Vec<Issue>) {
    let wrong = |issues: &mut Vec<Issue>, wanted: &str| {
        let message = format!("must be {wanted}, but is {}", kind(value));
        report(issues, code_at(path), path, message);
    };
    match (shape, value) {
        (Shape::Any, _)
        | (Shape::Free, Value::Object(_))
        | (Shape::Bool, Value::Bool(_))
        | (Shape::True, Value::Bool(true))
        | (Shape::Number, Value::Number(_))
        | (Shape::Scalar, Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null) => {}
        (Shape::Text(pattern, least, most), Value::String(text)) => {
            let length = text.chars().count();
            if text.contains('\0') {
                wrong(issues, "text without NUL");
            } else if length < *least || length > *most {
                let message = if *most == usize::MAX {
                    format!("must have at least {least} characters")
                } else {
                    format!("must have {least} to {most} characters, but has {length}")
                };
                report(issues, code_at(path), path, message);
            } else if !pattern.fits(text) {
                report(
                    issues,
                    pattern.code(),
                    path,
                    format!("must be {}", pattern.rule()),
                );
            }
        }
        (Shape::Integer(least, most), Value::Number(number)) => {
            // 3.0 is refused here: it is a whole number in JSON, but serde does not convert it to
            // the integers of the typed model.
            if !number
                .as_i64()
                .is_some_and(|n| (*least..=*most).contains(&n))
            {
                let wanted = if *most == i64::MAX {
                    format!("a whole number of at least {least}")
                } else {
                    format!("a whole number from {least} to {most}")
                };
                report(
                    issues,
                    code_at(path),
                    path,
                    format!("must be {wanted}, but is {number}"),
                );
            }
        }
        (Shape::Word(words), Value::String(text)) => {
            if !words.contains(&text.as_str()) {
                report(
                    issues,
                    code_at(path),
                    path,
                    format!("must be one of: {}", words.join(", ")),
                );
            }
        }
        (Shape::List(rule), Value::Array(items)) => check_list(rule, items, path, issues),
        (Shape::Map(of), Value::Object(members)) => {
            for (key, value) in members {
                walk(of, value, &member(path, key), issues);
            }
        }
        (Shape::Record(fields), Value::Object(_)) => record(fields, value, path, issues),
        (Shape::Either(shapes, wanted), _) => either(shapes, wanted, value, path, issues),
        (Shape::Free | Shape::Map(_) | Shape::Record(_), _) => wrong(issues, "an object"),
        (Shape::Bool, _) => wrong(issues, "true or false"),
        (Shape::True, _) => wrong(issues, "true"),
        (Shape::Text(..) | Shape::Word(_), _) => wrong(issues, "text"),
        (Shape::Integer(..) | Shape::Number, _) => wrong(issues, "a number"),
        (Shape::Scalar, _) => wrong(issues, "text, a number, true, false or null"),
        (Shape::List(_), _) => wrong(issues, "a list"),
    }
}

fn check_list(rule: &List, items: &[Value], path: &str, issues: &mut Vec<Issue>) {
    if items.len() < rule.least || items.len() > rule.most {
        let message = if rule.most == usize::MAX {
            format!("must have at least {} items", rule.least)
        } else {
            format!(
                "must have {} to {} items, but has {}",
                rule.least,
                rule.most,
                items.len()
            )
        };
        report(issues, code_at(path), path, message);
    }
    let mut texts = std::collections::HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        walk(&rule.of, item, &path, issues);
        if rule.items == Items::Unique && !texts.insert(item.to_string()) {
            report(
                issues,
                IssueCode::InvalidRecipe,
                &path,
                "the list has this entry twice; remove one of them".to_owned(),
            );
        }
    }
}

fn record(fields: &[Field], value: &Value, path: &str, issues: &mut Vec<Issue>) {
    let Value::Object(members) = value else {
        return;
    };
    for (key, value) in members {
        let path = member(path, key);
        match fields.iter().find(|f| f.name == key) {
            Some(field) => walk(&field.shape, value, &path, issues),
            None => {
                let known: Vec<_> = fields.iter().map(|f| f.name).collect();
                let message = format!("unknown field; accepted are: {}", known.join(", "));
                report(issues, IssueCode::InvalidRecipe, &path, message);
            }
        }
    }
    for field in fields {
        if field.need == Need::Must && !members.contains_key(field.name) {
            let code = missing(field.name);
            report(
                issues,
                code,
                &member(path, field.name),
                "is required".to_owned(),
            );
        }
    }
    let alternatives: Vec<_> = fields
        .iter()
        .filter(|f| f.need == Need::OneOf)
        .map(|f| f.name)
        .collect();
    if !alternatives.is_empty() && !alternatives.iter().any(|name| members.contains_key(*name)) {
        report(
            issues,
            missing(alternatives[0]),
            path,
            format!("needs at least one of: {}", alternatives.join(", ")),
        );
    }
}

/// Reports the deviations of the value from the shape that it is closest to; reports nothing if it
/// fits one of the shapes. `wanted` describes the shapes, for a value that is close to none of
/// them.
fn either(shapes: &[Shape], wanted: &str, value: &Value, path: &str, issues: &mut Vec<Issue>) {
    let mut nearest: Option<Vec<Issue>> = None;
    // The shape with the fewest deviations is closest. Shapes whose member `kind` does not match
    // the value's `kind` come last.
    let kind_path = member(path, "kind");
    let rank = |found: &[Issue]| (found.iter().any(|i| i.path == kind_path), found.len());
    for shape in shapes {
        let mut found = Vec::new();
        walk(shape, value, path, &mut found);
        if found.is_empty() {
            return;
        }
        // A deviation at `path` itself means that the shape does not permit a value of this type,
        // so the shape cannot be the closest one.
        let inside = found.iter().all(|i| i.path != path);
        if inside && nearest.as_ref().is_none_or(|n| rank(&found) < rank(n)) {
            nearest = Some(found);
        }
    }
    match nearest {
        Some(found) => found
            .into_iter()
            .for_each(|i| report(issues, i.code, &i.path, i.message)),
        None => report(
            issues,
            code_at(path),
            path,
            format!("must be {wanted}, but is {}", kind(value)),
        ),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(true) => "true",
        Value::Bool(false) => "false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the issue code for the missing member `name`.
fn missing(name: &str) -> IssueCode {
    match name {
        "source" => IssueCode::MissingSource,
        "command" => IssueCode::MissingCommand,
        "path" => IssueCode::MissingPath,
        "scopes" => IssueCode::MissingSiteSeedScopes,
        "wordpress" => IssueCode::MissingDistributionWordpress,
        _ => IssueCode::InvalidRecipe,
    }
}

/// Returns the issue code for a wrong value at this path: `invalid-recipe`, unless a more specific
/// one exists.
fn code_at(path: &str) -> IssueCode {
    let last = path.rsplit('.').next().unwrap_or_default();
    let seeds = path.starts_with("$.inputs.siteSeeds[");
    match last {
        "timeoutMs" => IssueCode::InvalidTimeoutMs,
        "maxRecords" if seeds => IssueCode::InvalidSiteSeedBound,
        _ if seeds && path.contains(".scopes.") => IssueCode::InvalidSiteSeedBound,
        _ if path.starts_with("$.inputs.runtimeEnv.") => IssueCode::InvalidRuntimeEnvValue,
        _ if path.contains(".continuation") => IssueCode::InvalidContinuation,
        _ => IssueCode::InvalidRecipe,
    }
}

/// Returns a document with every member of every record and the last alternative of each choice.
#[cfg(test)]
pub(crate) fn fullest(shape: &Shape) -> Value {
    use serde_json::json;
    match shape {
        Shape::Any | Shape::Free => json!({"note": 1}),
        Shape::Bool | Shape::True => json!(true),
        Shape::Text(pattern, ..) => json!(pattern.example()),
        Shape::Integer(least, _) => json!(least),
        Shape::Number => json!(1.5),
        Shape::Scalar => json!(null),
        Shape::Word(words) => json!(words[0]),
        Shape::List(rule) => json!([fullest(&rule.of)]),
        Shape::Map(of) => json!({"A": fullest(of)}),
        Shape::Record(fields) => fields
            .iter()
            .map(|f| (f.name.to_owned(), fullest(&f.shape)))
            .collect(),
        Shape::Either(shapes, _) => shapes.last().map_or(Value::Null, fullest),
    }
}
