//! Comparison of two benchmark results: `wp-codebox/benchmark-comparison/v1`.

use super::scenario::{BenchResult, Scenario, Statistics, number, rounded};
use super::summary::source;
use crate::evidence::Evidence;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Schema id of the comparison.
const BENCHMARK_COMPARISON: &str = "wp-codebox/benchmark-comparison/v1";

/// One of the two compared results.
pub struct Side<'a> {
    /// Where the results were read from.
    pub evidence: &'a Evidence,
    /// All results that were read.
    pub results: &'a [BenchResult],
    /// Position of the result; absent: the first one.
    pub index: Option<usize>,
    /// Option that sets the position.
    pub option: &'static str,
}

impl Side<'_> {
    fn result(&self) -> Result<&BenchResult, ErrorBody> {
        self.results.get(self.index.unwrap_or(0)).ok_or_else(|| {
            let message = format!(
                "{} {} is too large: {} contains {} results, counted from 0",
                self.option,
                self.index.unwrap_or(0),
                self.evidence.shown,
                self.results.len()
            );
            ErrorBody::new(ErrorCode::InputInvalid, message)
        })
    }

    fn document(&self, result: &BenchResult) -> Value {
        let mut document = source(self.evidence);
        document["index"] = json!(self.index.unwrap_or(0));
        document["results"] = json!(self.results.len());
        document["component"] = json!(result.component);
        document["status"] = json!(if result.has_failed() {
            "failed"
        } else {
            "passed"
        });
        document
    }

    /// Returns a warning if there are several results and no option selects one: the first is used.
    fn note(&self) -> Option<Value> {
        let count = self.results.len();
        (count > 1 && self.index.is_none()).then(|| {
            json!({
                "severity": "warning",
                "code": "first-result-used",
                "message": format!(
                    "{} contains {count} results; the first was used, {} selects another",
                    self.evidence.shown, self.option
                ),
            })
        })
    }
}

/// Compares two results.
///
/// # Errors
/// `wp_codebox_input_invalid` if a position is too large or the scenarios differ.
pub fn comparison(baseline: &Side<'_>, candidate: &Side<'_>) -> Result<Value, ErrorBody> {
    let (old, new) = (baseline.result()?, candidate.result()?);
    check(old, new)?;
    let pair = |row: &Scenario| {
        new.scenarios
            .iter()
            .find(|other| other.id == row.id)
            .cloned()
    };
    let scenarios: Vec<Value> = old
        .scenarios
        .iter()
        .filter_map(|row| Some(scenario(row, &pair(row)?)))
        .collect();
    let of = |status: &str| {
        scenarios
            .iter()
            .filter(|row| row["status"] == status)
            .count()
    };
    let (compared, failed) = (of("compared"), of("failed"));
    let notes: Vec<Value> = baseline
        .note()
        .into_iter()
        .chain(candidate.note())
        .collect();
    Ok(json!({
        "success": true,
        "schema": BENCHMARK_COMPARISON,
        "baseline": baseline.document(old),
        "candidate": candidate.document(new),
        "scenarios": scenarios,
        "summary": {"scenarios": scenarios.len(), "compared": compared, "failed": failed},
        "diagnostics": notes,
    }))
}

/// Refuses results with different scenarios: a comparison of the common ones could hide that a slow
/// scenario was left out.
fn check(old: &BenchResult, new: &BenchResult) -> Result<(), ErrorBody> {
    let missing = |of: &BenchResult, from: &BenchResult| -> Vec<String> {
        let has = |id: &str| from.scenarios.iter().any(|row| row.id == id);
        let ids = of.scenarios.iter().map(|row| row.id.clone());
        ids.filter(|id| !has(id)).collect()
    };
    let (only_old, only_new) = (missing(old, new), missing(new, old));
    if only_old.is_empty() && only_new.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the results have different scenarios: only in the baseline [{}], only in the candidate [{}]",
        only_old.join(", "),
        only_new.join(", ")
    );
    Err(ErrorBody::new(ErrorCode::InputInvalid, message)
        .with("reason", "different-scenarios")
        .with("onlyBaseline", only_old)
        .with("onlyCandidate", only_new)
        .hint("measure both with the same argument scenario-ids-json, or compare other results with --baseline-index and --candidate-index"))
}

fn scenario(old: &Scenario, new: &Scenario) -> Value {
    let failed = old.status == "failed" || new.status == "failed";
    let mut metrics = Map::new();
    for (name, before) in &old.metrics {
        if let Some(after) = new.metrics.get(name) {
            metrics.insert(name.clone(), metric(before, after));
        }
    }
    json!({
        "id": old.id,
        "status": if failed { "failed" } else { "compared" },
        "baselineStatus": old.status,
        "candidateStatus": new.status,
        "metrics": metrics,
    })
}

/// Returns the statistics of a metric on both sides, their differences, and the relative change of
/// the median (without a median, of the mean).
fn metric(before: &Statistics, after: &Statistics) -> Value {
    let mut delta = Map::new();
    for name in before.names() {
        if let (Some(old), Some(new)) = (before.get(name), after.get(name)) {
            delta.insert(name.to_owned(), number(rounded(new - old)));
        }
    }
    let change = match (before.center(), after.center()) {
        // A change relative to zero is not defined.
        (Some(old), Some(new)) if old != 0.0 => number(rounded((new - old) / old * 100.0)),
        (_, _) => Value::Null,
    };
    json!({
        "baseline": before.document(),
        "candidate": after.document(),
        "delta": delta,
        "changePercent": change,
    })
}

/// Formats a comparison for people: one row per scenario and metric.
pub fn comparison_rows(document: &Value) -> Vec<Vec<String>> {
    let shown = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        value => value.to_string(),
    };
    let mut lines = Vec::new();
    for row in document["scenarios"].as_array().into_iter().flatten() {
        let id = row["id"].as_str().unwrap_or_default().to_owned();
        for (name, metric) in row["metrics"].as_object().into_iter().flatten() {
            lines.push(vec![
                id.clone(),
                name.clone(),
                shown(&metric["baseline"]["p50"]),
                shown(&metric["candidate"]["p50"]),
                match &metric["changePercent"] {
                    Value::Null => "-".to_owned(),
                    change => format!("{change} %"),
                },
            ]);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::scenario::{BENCH_RESULTS, results};
    use super::*;

    fn evidence(scenarios: &[(&str, &[u32])]) -> Evidence {
        let rows: Vec<Value> = scenarios
            .iter()
            .map(|(id, samples)| json!({"id": id, "status": "ok", "samples": {"wallMs": samples}}))
            .collect();
        let document = json!({"schema": BENCH_RESULTS, "component": "demo", "scenarios": rows});
        Evidence::of_document("x".to_owned(), document)
    }

    fn compare(old: &Evidence, new: &Evidence, index: Option<usize>) -> Result<Value, ErrorBody> {
        let (before, after) = (results(old).unwrap(), results(new).unwrap());
        let side = |evidence, results, index, option| Side {
            evidence,
            results,
            index,
            option,
        };
        comparison(
            &side(old, &before, None, "--baseline-index"),
            &side(new, &after, index, "--candidate-index"),
        )
    }

    #[test]
    fn comparison_has_the_difference_and_the_relative_change_of_each_metric() {
        let old = evidence(&[("a", &[10, 10, 10])]);
        let document = compare(&old, &evidence(&[("a", &[15, 15, 15])]), None).unwrap();
        let metric = &document["scenarios"][0]["metrics"]["wallMs"];
        assert_eq!(metric["delta"]["p50"], 5);
        assert_eq!(metric["changePercent"], 50);
        assert_eq!(document["summary"]["compared"], 1);
        assert_eq!(comparison_rows(&document)[0][4], "50 %");
    }

    #[test]
    fn change_relative_to_zero_is_null() {
        let old = evidence(&[("a", &[0])]);
        let document = compare(&old, &evidence(&[("a", &[1])]), None).unwrap();
        assert!(document["scenarios"][0]["metrics"]["wallMs"]["changePercent"].is_null());
    }

    #[test]
    fn different_scenarios_and_an_index_without_a_result_are_refused() {
        let old = evidence(&[("a", &[1]), ("b", &[1])]);
        let error = compare(&old, &evidence(&[("b", &[1]), ("c", &[1])]), None).unwrap_err();
        let data = json!(error.data);
        assert_eq!(
            (&data["onlyBaseline"], &data["onlyCandidate"]),
            (&json!(["a"]), &json!(["c"]))
        );
        let error = compare(&old, &old, Some(1)).unwrap_err();
        assert!(
            error.message.starts_with("--candidate-index 1"),
            "{}",
            error.message
        );
        assert!(compare(&old, &old, Some(0)).is_ok());
    }
}
