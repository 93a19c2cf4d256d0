//! Formats the output documents of recipe commands as human-readable lines.

use crate::output::{Output, name as listed};
use serde_json::Value;

/// Members of a document whose values are file names and must be escaped for the terminal.
const FILES: &[&str] = &["path", "source", "target", "pluginFile"];

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn each<'a>(document: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    document[name].as_array().into_iter().flatten()
}

/// Fills the placeholders `{name}` of a line with the members of a document's row.
fn fill(line: &str, row: &Value) -> String {
    let mut parts = line.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        match &row[name] {
            Value::String(text) if FILES.contains(&name) => filled.push_str(&listed(text)),
            Value::String(text) => filled.push_str(text),
            Value::Null => {}
            other => filled.push_str(&other.to_string()),
        }
        filled.push_str(rest);
    }
    filled
}

/// Prints a line of data for each row of the document's list `name`.
fn rows(output: Output, document: &Value, name: &str, line: &str) {
    each(document, name).for_each(|row| output.line(&fill(line, row)));
}

/// Prints a message line for each row of the document's list `name`.
fn notes(output: Output, document: &Value, name: &str, line: &str) {
    each(document, name).for_each(|row| output.note(&fill(line, row)));
}

/// Format of an issue in a recipe, as one line.
const ISSUE: &str = "{path}: {message} [{code}]";

pub(super) fn validation(output: Output, document: &Value) {
    rows(output, document, "issues", ISSUE);
    if document["valid"] == true {
        output.line(&fill(
            "valid: {steps} steps, {mounts} mounts, {workspaces} workspaces, {extraPlugins} plugins, {stagedFiles} staged files",
            &document["summary"],
        ));
    } else {
        output.line("not valid");
    }
}

pub(super) fn plan(output: Output, document: &Value) {
    if document["valid"] != true {
        rows(output, &document["validation"], "issues", ISSUE);
        output.line("not valid");
        return;
    }
    let plan = &document["plan"];
    output.line(&fill(
        "WordPress {wordpressVersion}, PHP {phpVersion}",
        &plan["runtime"],
    ));
    for row in each(plan, "mounts") {
        let source = row["source"]
            .as_str()
            .map_or("generated".to_owned(), listed);
        let target = fill("{target} ({mode})", row);
        output.line(&format!("mount   {source} -> {target}"));
    }
    let extra = "plugin  {source} -> {pluginFile}";
    rows(output, plan, "extra_plugins", extra);
    let staged = "file    {source} -> {target}";
    rows(output, plan, "stagedFiles", staged);
    let secret = "secret  {name} ({status}, to {delivery})";
    rows(output, plan, "secretEnv", secret);
    let workflow = &plan["workflow"];
    for phase in ["before", "steps", "after"] {
        for row in each(workflow, phase) {
            step(output, phase, row);
        }
    }
    for row in each(plan, "probes") {
        step(output, "probe", &row["step"]);
    }
}

fn step(output: Output, phase: &str, row: &Value) {
    let args: Vec<&str> = each(row, "args").filter_map(Value::as_str).collect();
    let line: String = format!("{} {}", text(row, "command"), args.join(" "))
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(160)
        .collect();
    output.line(&format!("{phase:<7} {line}"));
}

pub(super) fn blueprint(output: Output, document: &Value) {
    for row in each(document, "steps") {
        output.line(&match row["reason"].is_string() {
            false => fill("ok       {path} {step}", row),
            true => fill("refused  {path} {step}: {reason}", row),
        });
    }
    if document["valid"] == true {
        output.line("valid");
    } else {
        let why = each(document, "issues").filter(|row| row["path"] == "$");
        why.for_each(|row| output.line(text(row, "message")));
        output.line("not valid");
    }
}

pub(super) fn workspace(output: Output, document: &Value) {
    for row in each(document, "violations") {
        let said = fill("{path}: {message}", row);
        output.line(&format!("{:<28} {said}", text(row, "code")));
    }
    let word = if document["passed"] == true {
        "passed"
    } else {
        "not passed"
    };
    output.line(&fill(
        &format!("{word} (policy {{policy_sha256}})"),
        document,
    ));
}

/// Prints the results of a recipe run. The output of its steps was printed during the run.
pub(super) fn ran(output: Output, document: &Value) {
    for row in each(document, "stepFailures").chain(each(document, "advisoryFailures")) {
        let word = match (row["allowed"] == true, text(row, "schema")) {
            (true, _) => "allowed to fail",
            (false, "wp-codebox/recipe-advisory-failure/v1") => "advisory",
            (false, _) => "failed",
        };
        output.note(&format!("  {word}: {}", text(&row["error"], "message")));
    }
    notes(output, document, "probes", "  probe {name}: {status}");
    notes(
        output,
        document,
        "declaredArtifacts",
        "  artifact {name}: {status}",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn placeholders_of_an_output_line_are_replaced_by_json_values() {
        let row = json!({"path": "a", "count": 3});
        assert_eq!(fill("{path}: {count} {none}.", &row), "a: 3 .");
    }
}
