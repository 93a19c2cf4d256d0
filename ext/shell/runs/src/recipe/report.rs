//! Result of a recipe: `wp-codebox/recipe-run/v1` and its summary.

use super::Loaded;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, Outcome, RunResult};
use wp_codebox_recipe::{Issue, Recipe};

/// Schema id of the result of a recipe.
const RECIPE_RUN: &str = "wp-codebox/recipe-run/v1";
/// Number of bytes of an execution's output in a summary, counted from its end.
const TAIL: usize = 4 * 1024;

/// Data from which the result of a recipe is built.
#[derive(Debug)]
pub struct RunReport<'a> {
    /// The recipe file.
    pub loaded: &'a Loaded,
    /// The recipe.
    pub recipe: &'a Recipe,
    /// Result of the run, or why it could not start.
    pub result: Result<&'a RunResult, &'a ErrorBody>,
    /// Path of the bundle for the caller: that of the copy, if the bundle was copied.
    pub bundle: Option<&'a str>,
    /// Error because of which the recipe counts as failed although its run completed, such as a
    /// bundle that is not valid.
    pub verdict: Option<&'a ErrorBody>,
}

impl RunReport<'_> {
    fn outcome(&self) -> Option<Outcome> {
        self.result.ok().map(|result| result.outcome)
    }

    fn success(&self) -> bool {
        self.verdict.is_none() && self.outcome().is_some_and(Outcome::is_success)
    }

    fn error(&self) -> Option<&ErrorBody> {
        match self.result {
            Err(error) => Some(error),
            Ok(result) => result.error.as_ref().or(self.verdict),
        }
    }

    fn status(&self) -> &'static str {
        match (self.success(), self.outcome()) {
            (true, _) => "succeeded",
            (false, Some(Outcome::TimedOut)) => "timeout",
            (false, Some(Outcome::Cancelled)) => "interrupted",
            (false, _) => "failed",
        }
    }
}

/// Formats an error as the `recipe-run` documents contain it.
fn shown(name: &str, error: &ErrorBody) -> Value {
    let mut row = json!({"name": name, "code": error.code, "message": error.message});
    if !error.hints.is_empty() {
        row["hints"] = json!(error.hints);
    }
    if let Some(data) = &error.data {
        row["data"] = json!(data);
    }
    row
}

/// Builds the result of a recipe that was not run because it is not valid.
pub fn refused(loaded: &Loaded, issues: &[Issue], error: &ErrorBody) -> Value {
    let mut error = shown("RecipeValidationError", error);
    // The result lists the issues below; the error's `data` would repeat them.
    if let Some(error) = error.as_object_mut() {
        error.remove("data");
    }
    json!({
        "success": false,
        "schema": RECIPE_RUN,
        "recipePath": loaded.shown,
        "executions": [],
        "validation": {"issues": issues},
        "provenance": provenance(loaded),
        "error": error,
    })
}

fn provenance(loaded: &Loaded) -> Value {
    json!({
        "schema": "wp-codebox/recipe-run-provenance/v1",
        "packages": [{"name": "wp-codebox", "version": env!("CARGO_PKG_VERSION")}],
        "recipe": {"path": loaded.shown, "sha256": loaded.sha256},
    })
}

/// Builds the result of a recipe that ran.
pub fn recipe_run(told: &RunReport<'_>) -> Value {
    let mut document = json!({
        "success": told.success(),
        "schema": RECIPE_RUN,
        "recipePath": told.loaded.shown,
        "executions": [],
    });
    if let Ok(result) = told.result {
        document["runtime"] = json!({
            "id": result.run_id,
            "backend": "native",
            "name": told.recipe.runtime.name,
            "isolation": result.isolation,
        });
        if let Some(Value::Object(workflow)) = &result.workflow {
            for (name, value) in workflow.iter().filter(|(name, _)| *name != "schema") {
                document[name] = value.clone();
            }
        }
        for (name, phase) in [
            ("fixtureDatabases", "fixture-database"),
            ("siteSeeds", "seed"),
        ] {
            let prepared = prepared(&document, phase);
            if !prepared.is_empty() {
                document[name] = json!(prepared);
            }
        }
        document["outcome"] = json!(result.outcome);
        document["completionOutcome"] = result.completion_outcome.clone();
        if !result.agent_result.is_null() {
            document["agentResult"] = result.agent_result.clone();
        }
        document["changedFiles"] = json!(result.changed_files);
        document["cost"] = json!(result.cost);
        document["notices"] = json!(result.notices);
        if !result.services.is_empty() {
            document["managedRuntimeServices"] = json!(result.services);
        }
        if let Some(bundle) = &result.artifacts {
            document["artifacts"] = json!({
                "id": bundle.bundle_id,
                "directory": told.bundle.unwrap_or(&bundle.path),
                "manifestSha256": bundle.manifest_sha256,
            });
        }
        document["run"] = json!({
            "runId": result.run_id,
            "status": told.status(),
            "outcome": result.outcome,
        });
        if result.outcome == Outcome::Cancelled {
            document["interruption"] = json!({"code": "recipe-interrupted"});
        }
    }
    document["provenance"] = provenance(told.loaded);
    document["result"] = summary(told);
    if let Some(error) = told.error() {
        document["error"] = shown("RecipeRunError", error);
    }
    if let Some(metadata) = &told.recipe.metadata {
        document["metadata"] = json!(metadata);
    }
    document
}

/// Returns what the steps of a preparing phase printed, with the status of each.
fn prepared(document: &Value, phase: &str) -> Vec<Value> {
    let executions = document.get("executions").and_then(Value::as_array);
    let rows = executions
        .into_iter()
        .flatten()
        .filter(|row| row.get("recipePhase").and_then(Value::as_str) == Some(phase));
    rows.map(|row| {
        let printed = row
            .get("stdout")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut prepared: Map<String, Value> = serde_json::from_str(printed).unwrap_or_default();
        let done = row.get("exitCode") == Some(&json!(0));
        prepared.insert(
            "status".to_owned(),
            json!(if done { "imported" } else { "failed" }),
        );
        if let (Some(name), false) = (row.get("recipeStepName"), prepared.contains_key("name")) {
            prepared.insert("name".to_owned(), name.clone());
        }
        Value::Object(prepared)
    })
    .collect()
}

fn tail(text: &str) -> &str {
    let mut at = text.len().saturating_sub(TAIL);
    while !text.is_char_boundary(at) {
        at += 1;
    }
    &text[at..]
}

fn rows<'a>(told: &'a RunReport<'_>, name: &str) -> &'a [Value] {
    told.result
        .ok()
        .and_then(|result| result.workflow.as_ref()?.get(name)?.as_array())
        .map_or(&[], Vec::as_slice)
}

/// Builds `wp-codebox/recipe-run-summary/v1`.
pub fn summary(told: &RunReport<'_>) -> Value {
    let commands: Vec<Value> = rows(told, "executions")
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let text = |name: &str| tail(row[name].as_str().unwrap_or_default()).to_owned();
            json!({
                "index": index,
                "command": row["command"],
                "status": row["status"],
                "exit_code": row["exitCode"],
                "duration_ms": row["durationMs"],
                "recipe_phase": row["recipePhase"],
                "recipe_step_index": row["recipeStepIndex"],
                "stdout_tail": text("stdout"),
                "stderr_tail": text("stderr"),
            })
        })
        .collect();
    let failed_phase = rows(told, "phaseEvidence")
        .iter()
        .find(|row| row["status"] == "failed")
        .map(|row| row["name"].clone());
    let diagnostics: Vec<Value> = rows(told, "stepFailures")
        .iter()
        .chain(rows(told, "advisoryFailures"))
        .map(|row| row["error"].clone())
        .collect();
    let collected: Vec<Value> = rows(told, "declaredArtifacts")
        .iter()
        .map(|row| json!({"name": row["name"], "status": row["status"], "path": row["path"]}))
        .collect();
    let mut refs = Map::new();
    for name in [
        "startup_logs",
        "probe_json",
        "screenshots",
        "side_effects",
        "declared_artifacts",
        "artifact_bundles",
        "changed_files",
        "patches",
        "transcripts",
        "logs",
        "runtimes",
    ] {
        refs.insert(name.to_owned(), json!([]));
    }
    if let Ok(result) = told.result {
        refs.insert("runtimes".to_owned(), json!([result.run_id]));
        if let Some(bundle) = &result.artifacts {
            let file = |path: &str| json!([{"bundle": bundle.bundle_id, "path": path}]);
            refs.insert("artifact_bundles".to_owned(), json!([bundle.bundle_id]));
            refs.insert("changed_files".to_owned(), file("files/changed-files.json"));
            refs.insert("patches".to_owned(), file("files/patch.diff"));
            refs.insert("transcripts".to_owned(), file("files/transcript.json"));
            if !collected.is_empty() {
                let path = "files/runtime-evidence/declared-artifacts.jsonl";
                refs.insert("declared_artifacts".to_owned(), file(path));
            }
        }
    }
    let mut document = json!({
        "schema": "wp-codebox/recipe-run-summary/v1",
        "success": told.success(),
        "status": told.status(),
        "diagnostics": diagnostics,
        "artifacts": collected,
        "refs": refs,
        "commands": commands,
        "provenance": provenance(told.loaded),
        "metadata": told.recipe.metadata.clone().unwrap_or_default(),
    });
    if let Some(phase) = failed_phase {
        document["failed_phase"] = phase;
    }
    if let Some(error) = told.error() {
        document["failure_summary"] = json!(error.message);
    }
    document
}
