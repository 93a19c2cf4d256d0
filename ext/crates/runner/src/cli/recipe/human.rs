//! The same answers for people.

use crate::cli::output::Output;
use serde_json::Value;

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn each<'a>(document: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    document[name].as_array().into_iter().flatten()
}

fn issues(output: Output, rows: &Value) {
    for row in rows.as_array().into_iter().flatten() {
        output.line(&format!(
            "{}: {} [{}]",
            text(row, "path"),
            text(row, "message"),
            text(row, "code")
        ));
    }
}

pub(super) fn validation(output: Output, document: &Value) {
    issues(output, &document["issues"]);
    let summary = &document["summary"];
    if document["valid"] == true {
        output.line(&format!(
            "valid: {} steps, {} mounts, {} workspaces, {} plugins, {} staged files",
            summary["steps"],
            summary["mounts"],
            summary["workspaces"],
            summary["extraPlugins"],
            summary["stagedFiles"]
        ));
    } else {
        output.line("not valid");
    }
}

pub(super) fn plan(output: Output, document: &Value) {
    if document["valid"] != true {
        issues(output, &document["validation"]["issues"]);
        output.line("not valid");
        return;
    }
    let plan = &document["plan"];
    let runtime = &plan["runtime"];
    output.line(&format!(
        "WordPress {}, PHP {}",
        text(runtime, "wordpressVersion"),
        text(runtime, "phpVersion")
    ));
    for row in each(plan, "mounts") {
        let source = row["source"].as_str().unwrap_or("generated");
        output.line(&format!(
            "mount   {source} -> {} ({})",
            text(row, "target"),
            text(row, "mode")
        ));
    }
    for row in each(plan, "extra_plugins") {
        output.line(&format!(
            "plugin  {} -> {}",
            text(row, "source"),
            text(row, "pluginFile")
        ));
    }
    for row in each(plan, "stagedFiles") {
        output.line(&format!(
            "file    {} -> {}",
            text(row, "source"),
            text(row, "target")
        ));
    }
    for row in each(plan, "secretEnv") {
        output.line(&format!(
            "secret  {} ({}, to {})",
            text(row, "name"),
            text(row, "status"),
            text(row, "delivery")
        ));
    }
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
        match row["reason"].as_str() {
            None => output.line(&format!(
                "ok       {} {}",
                text(row, "path"),
                text(row, "step")
            )),
            Some(reason) => output.line(&format!(
                "refused  {} {}: {reason}",
                text(row, "path"),
                text(row, "step")
            )),
        }
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
        output.line(&format!(
            "{:<28} {}: {}",
            text(row, "code"),
            text(row, "path"),
            text(row, "message")
        ));
    }
    let word = if document["passed"] == true {
        "passed"
    } else {
        "not passed"
    };
    output.line(&format!(
        "{word} (policy {})",
        text(document, "policy_sha256")
    ));
}

/// What came of a run, after its live output.
pub(super) fn ran(output: Output, document: &Value) {
    for row in each(document, "stepFailures").chain(each(document, "advisoryFailures")) {
        let word = match (row["allowed"] == true, text(row, "schema")) {
            (true, _) => "allowed to fail",
            (false, "wp-codebox/recipe-advisory-failure/v1") => "advisory",
            (false, _) => "failed",
        };
        output.note(&format!("  {word}: {}", text(&row["error"], "message")));
    }
    for row in each(document, "probes") {
        output.note(&format!(
            "  probe {}: {}",
            text(row, "name"),
            text(row, "status")
        ));
    }
    for row in each(document, "declaredArtifacts") {
        output.note(&format!(
            "  artifact {}: {}",
            text(row, "name"),
            text(row, "status")
        ));
    }
}
