//! Results of benchmarks as typed values: scenarios with statistics of their metrics.

use crate::evidence::{Evidence, Printed};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Schema id of a result.
pub(super) const BENCH_RESULTS: &str = "wp-codebox/bench-results/v1";

/// Statistics of a metric. Percentiles use the nearest-rank method.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    members: Map<String, Value>,
}

impl Statistics {
    /// Reads statistics, or one number as the only measured value.
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Object(members) => Some(Self {
                members: members
                    .iter()
                    .filter(|(_, value)| value.is_number())
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            }),
            Value::Number(_) => Self::of(&[value.as_f64()?]),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    /// Computes statistics of measured values.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let variance = sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        let rank = |percent: usize| {
            let at = (percent * sorted.len()).div_ceil(100).max(1) - 1;
            sorted.get(at).copied().unwrap_or(max)
        };
        let rows = [
            ("min", min),
            ("mean", rounded(mean)),
            ("p50", rank(50)),
            ("p90", rank(90)),
            ("p95", rank(95)),
            ("p99", rank(99)),
            ("max", max),
            ("stddev", rounded(variance.sqrt())),
        ];
        let members = rows.map(|(name, value)| (name.to_owned(), number(value)));
        Some(Self {
            members: Map::from_iter(members),
        })
    }

    /// Returns one statistic, such as `p50`.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.members.get(name)?.as_f64()
    }

    /// Returns the value that stands for the metric in a comparison: the median, else the mean.
    pub fn center(&self) -> Option<f64> {
        ["p50", "median", "mean", "avg"]
            .iter()
            .find_map(|name| self.get(name))
    }

    /// Returns the names of the statistics.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Returns the statistics as a JSON object.
    pub fn document(&self) -> Value {
        Value::Object(self.members.clone())
    }
}

/// Rounds to three decimal places.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Returns a number as JSON, a whole one without a fraction.
pub(super) fn number(value: f64) -> Value {
    // Beyond 2^53 not every whole number is a double, so a conversion could change it.
    match value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        true => json!(value as i64),
        false => json!(value),
    }
}

/// A scenario of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Id of the scenario.
    pub id: String,
    /// Status of the scenario, such as `failed`.
    pub status: String,
    /// Number of measured iterations.
    pub iterations: Option<u64>,
    /// Message of a scenario that failed or was skipped.
    pub message: Option<String>,
    /// Statistics by the name of the metric.
    pub metrics: BTreeMap<String, Statistics>,
}

/// One result of `wordpress.bench`.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchResult {
    /// File that contains the result.
    pub path: String,
    /// Name of the measured component; empty if the result does not name it.
    pub component: String,
    /// Scenarios of the result.
    pub scenarios: Vec<Scenario>,
    /// The result as printed.
    pub document: Value,
}

impl BenchResult {
    fn read(printed: Printed) -> Self {
        let document = printed.document;
        let component = ["component", "component_id", "componentId"]
            .iter()
            .find_map(|name| document[*name].as_str());
        let scenarios = document["scenarios"].as_array();
        Self {
            path: printed.path,
            component: component.unwrap_or_default().to_owned(),
            scenarios: scenarios
                .into_iter()
                .flatten()
                .filter_map(scenario)
                .collect(),
            document,
        }
    }

    /// Returns whether a scenario of the result failed.
    pub fn has_failed(&self) -> bool {
        self.scenarios.iter().any(|row| row.status == "failed")
            || self.document["status"] == "error"
    }
}

fn scenario(row: &Value) -> Option<Scenario> {
    let id = row["id"].as_str()?.to_owned();
    let mut metrics = BTreeMap::new();
    for (name, samples) in row["samples"].as_object().into_iter().flatten() {
        let samples: Option<Vec<f64>> = samples
            .as_array()
            .and_then(|samples| samples.iter().map(Value::as_f64).collect());
        if let Some(statistics) = samples.and_then(|samples| Statistics::of(&samples)) {
            metrics.insert(name.clone(), statistics);
        }
    }
    // Statistics that the guest computed replace those computed above, because the result may
    // contain only some of the samples.
    for (name, value) in row["metrics"].as_object().into_iter().flatten() {
        if let Some(statistics) = Statistics::read(value) {
            metrics.insert(name.clone(), statistics);
        }
    }
    Some(Scenario {
        id,
        status: row["status"].as_str().unwrap_or("ok").to_owned(),
        iterations: row["iterations"].as_u64(),
        message: row["message"].as_str().map(str::to_owned),
        metrics,
    })
}

/// Returns all results of a bundle or file.
///
/// # Errors
/// `wp_codebox_input_invalid` if there are none.
pub fn results(evidence: &Evidence) -> Result<Vec<BenchResult>, ErrorBody> {
    let found = evidence
        .documents(&|value| value["schema"] == BENCH_RESULTS && value["scenarios"].is_array());
    if found.is_empty() {
        let message = format!("{} contains no results of a benchmark", evidence.shown);
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message)
            .with("reason", "no-benchmark-results")
            .hint("run the command wordpress.bench in a recipe or with `wp-codebox run`, and name its bundle or JSON output"));
    }
    Ok(found.into_iter().map(BenchResult::read).collect())
}

/// Keeps only the named scenarios of the results. Without names, keeps all.
///
/// # Errors
/// `wp_codebox_input_invalid` if a name in `wanted` is not that of a scenario in any result.
pub fn only(results: &mut Vec<BenchResult>, wanted: &[String]) -> Result<(), ErrorBody> {
    if wanted.is_empty() {
        return Ok(());
    }
    let known: Vec<&str> = results
        .iter()
        .flat_map(|result| &result.scenarios)
        .map(|row| row.id.as_str())
        .collect();
    if let Some(missing) = wanted.iter().find(|id| !known.contains(&id.as_str())) {
        let message = format!(
            "--scenario-id {missing:?} is no scenario of these results; they have {}",
            known.join(", ")
        );
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    for result in results.iter_mut() {
        result.scenarios.retain(|row| wanted.contains(&row.id));
        if let Some(rows) = result.document["scenarios"].as_array_mut() {
            rows.retain(|row| wanted.iter().any(|id| row["id"] == id.as_str()));
        }
    }
    results.retain(|result| !result.scenarios.is_empty());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: Value) -> Result<Vec<BenchResult>, ErrorBody> {
        results(&Evidence::of_document("x".to_owned(), document))
    }

    fn sample() -> Value {
        json!({"schema": BENCH_RESULTS, "status": "ok", "component": "demo", "scenarios": [
            {"id": "a", "status": "ok", "samples": {"wallMs": [4, 1, 2, 3]}},
            {"id": "b", "status": "failed", "message": "boom", "metrics": {"wallMs": {"p50": 7, "note": "x"}, "size": 3}},
        ]})
    }

    #[test]
    fn statistics_come_from_the_result_or_are_computed_from_samples() {
        let result = found(sample()).unwrap().remove(0);
        assert_eq!(
            (result.component.as_str(), result.has_failed()),
            ("demo", true)
        );
        let computed = &result.scenarios[0].metrics["wallMs"];
        assert_eq!(
            computed.document(),
            json!({"min": 1, "mean": 2.5, "p50": 2, "p90": 4, "p95": 4, "p99": 4, "max": 4, "stddev": 1.118})
        );
        let given = &result.scenarios[1].metrics;
        assert_eq!(given["wallMs"].document(), json!({"p50": 7}));
        assert_eq!(given["size"].center(), Some(3.0));
        assert_eq!(result.scenarios[1].message.as_deref(), Some("boom"));
    }

    #[test]
    fn document_without_benchmark_results_is_refused_with_the_reason_no_benchmark_results() {
        let error = found(json!({"executions": []})).unwrap_err();
        assert_eq!(error.code, ErrorCode::InputInvalid);
        assert_eq!(json!(error.data)["reason"], "no-benchmark-results");
    }

    #[test]
    fn unknown_scenario_is_refused_and_a_known_one_selected() {
        let mut results = found(sample()).unwrap();
        assert!(only(&mut results, &["c".to_owned()]).is_err());
        only(&mut results, &["b".to_owned()]).unwrap();
        assert_eq!(results[0].scenarios.len(), 1);
        assert_eq!(
            results[0].document["scenarios"].as_array().unwrap().len(),
            1
        );
    }
}
