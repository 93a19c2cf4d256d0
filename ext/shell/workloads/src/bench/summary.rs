//! Summary of benchmark results: `wp-codebox/benchmark-summary/v1`.

use super::scenario::{BenchResult, Scenario};
use crate::evidence::Evidence;
use serde_json::{Value, json};

/// Schema id of the summary.
const BENCHMARK_SUMMARY: &str = "wp-codebox/benchmark-summary/v1";

/// Members of a result that describe how it was measured.
const FACTS: [&str; 4] = ["iterations", "warmup", "php", "wordpress"];

/// Describes where results were read from.
pub(super) fn source(evidence: &Evidence) -> Value {
    match &evidence.bundle {
        Some(bundle) => json!({
            "kind": "artifact-bundle",
            "path": evidence.shown,
            "bundleId": bundle.id,
        }),
        None => json!({"kind": "file", "path": evidence.shown}),
    }
}

/// Builds the summary of results.
pub fn summary(evidence: &Evidence, results: &[BenchResult]) -> Value {
    let rows = |index: usize, result: &BenchResult| -> Vec<Value> {
        let row = |scenario| row(index, result, scenario);
        result.scenarios.iter().map(row).collect()
    };
    let scenarios: Vec<Value> = results
        .iter()
        .enumerate()
        .flat_map(|(index, result)| rows(index, result))
        .collect();
    let failed = scenarios
        .iter()
        .filter(|row| row["status"] == "failed")
        .count();
    let status = match (failed, scenarios.len()) {
        (0, _) => "passed",
        (failed, all) if failed == all => "failed",
        (_, _) => "partial",
    };
    let mut document = json!({
        "success": true,
        "schema": BENCHMARK_SUMMARY,
        "status": status,
        "source": source(evidence),
        "results": results.iter().enumerate().map(|(index, r)| result(index, r)).collect::<Vec<_>>(),
        "scenarios": scenarios,
        "summary": {
            "results": results.len(),
            "scenarios": scenarios.len(),
            "passed": scenarios.len() - failed,
            "failed": failed,
        },
        "diagnostics": scenarios
            .iter()
            .filter(|row| row["status"] == "failed")
            .map(|row| json!({
                "severity": "error",
                "code": "scenario-failed",
                "message": row.get("message").cloned().unwrap_or_else(|| json!("the scenario failed")),
                "scenarioId": row["id"],
            }))
            .collect::<Vec<_>>(),
    });
    if let [only] = results {
        document["component"] = json!(only.component);
        for name in FACTS {
            if let Some(value) = only.document.get(name) {
                document[name] = value.clone();
            }
        }
    }
    document
}

fn result(index: usize, result: &BenchResult) -> Value {
    let mut row = json!({
        "index": index,
        "component": result.component,
        "path": result.path,
        "status": if result.has_failed() { "failed" } else { "passed" },
        "scenarioIds": result.scenarios.iter().map(|s| &s.id).collect::<Vec<_>>(),
    });
    for name in FACTS {
        if let Some(value) = result.document.get(name) {
            row[name] = value.clone();
        }
    }
    row
}

fn row(index: usize, result: &BenchResult, scenario: &Scenario) -> Value {
    let metrics = scenario.metrics.iter();
    let mut row = json!({
        "id": scenario.id,
        "resultIndex": index,
        "component": result.component,
        "status": if scenario.status == "ok" { "passed" } else { scenario.status.as_str() },
        "metrics": metrics.map(|(name, s)| (name.clone(), s.document())).collect::<serde_json::Map<_, _>>(),
    });
    if let Some(iterations) = scenario.iterations {
        row["iterations"] = json!(iterations);
    }
    if let Some(message) = &scenario.message {
        row["message"] = json!(message);
    }
    row
}

/// Formats a summary for people: one row per scenario and metric.
pub fn summary_rows(document: &Value) -> Vec<Vec<String>> {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut lines = Vec::new();
    for row in document["scenarios"].as_array().into_iter().flatten() {
        let id = text(&row["id"]);
        if row["status"] == "failed" {
            let why = text(&row["message"]);
            lines.push(vec![
                id.clone(),
                "failed".to_owned(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                why,
            ]);
        }
        for (name, metric) in row["metrics"].as_object().into_iter().flatten() {
            let of = |name: &str| text(&metric[name]);
            lines.push(vec![
                id.clone(),
                name.clone(),
                of("first"),
                of("min"),
                of("p50"),
                of("p95"),
                of("max"),
            ]);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::scenario::{BENCH_RESULTS, results};
    use super::*;

    #[test]
    fn summary_lists_every_scenario_and_reports_failed_ones() {
        let evidence = Evidence::of_document(
            "x".to_owned(),
            json!({"schema": BENCH_RESULTS, "component": "demo", "iterations": 4, "scenarios": [
                {"id": "a", "status": "ok", "iterations": 4, "samples": {"wallMs": [1, 2, 3, 4]},
                    "metrics": {"wallMs": {"first": 9, "min": 1, "p50": 2, "p95": 4, "max": 4}}},
                {"id": "b", "status": "failed", "message": "boom"},
            ]}),
        );
        let document = summary(&evidence, &results(&evidence).unwrap());
        assert_eq!(document["schema"], BENCHMARK_SUMMARY);
        assert_eq!(document["status"], "partial");
        assert_eq!(
            document["summary"],
            json!({"results": 1, "scenarios": 2, "passed": 1, "failed": 1})
        );
        assert_eq!(document["scenarios"][0]["metrics"]["wallMs"]["p50"], 2);
        assert_eq!(document["diagnostics"][0]["scenarioId"], "b");
        assert_eq!(
            (&document["component"], &document["iterations"]),
            (&json!("demo"), &json!(4))
        );
        let rows = summary_rows(&document);
        assert_eq!(rows[0], ["a", "wallMs", "9", "1", "2", "4", "4"]);
        assert_eq!((rows.len(), rows[1].len()), (2, rows[0].len()));
    }
}
