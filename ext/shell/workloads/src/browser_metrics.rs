//! Times, memory, requests and errors of the browser commands of a run, as `wp-codebox/browser-metrics/v1`.

use crate::bench::Statistics;
use crate::evidence::Evidence;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Schema id of the document.
const BROWSER_METRICS: &str = "wp-codebox/browser-metrics/v1";

/// Metrics: name, unit, and JSON pointer to the value in the document of a browser command. If the
/// value there is a list, the metric is its length.
const METRICS: [(&str, &str, &str); 10] = [
    ("startMs", "ms", "/timings/startMs"),
    ("navigationMs", "ms", "/timings/navigationMs"),
    ("totalMs", "ms", "/timings/totalMs"),
    ("peakMemoryBytes", "bytes", "/memory/peakBytes"),
    ("requests", "count", "/networkTotal"),
    ("failedRequests", "count", "/networkFailed"),
    ("consoleMessages", "count", "/consoleTotal"),
    ("pageErrors", "count", "/errorsTotal"),
    ("dialogs", "count", "/dialogsTotal"),
    ("assertions", "count", "/assertions"),
];

/// Returns whether a value is the document of a browser command.
fn is_browser_document(value: &Value) -> bool {
    value["timings"].is_object() && value["finalUrl"].is_string() && value["command"].is_string()
}

/// Builds the document from the results of browser commands.
///
/// # Errors
/// `wp_codebox_input_invalid` if there are none.
pub fn browser_metrics(evidence: &Evidence) -> Result<Value, ErrorBody> {
    let found = evidence.documents(&is_browser_document);
    if found.is_empty() {
        let message = format!("{} has no results of a browser command", evidence.shown);
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message)
            .with("reason", "no-browser-metrics")
            .hint("run a command such as wordpress.browser-page-load in the sandbox"));
    }
    let pages: Vec<Value> = found
        .iter()
        .enumerate()
        .map(|(index, printed)| page(index, &printed.document))
        .collect();
    let mut metrics = Vec::new();
    for (name, unit, _) in METRICS {
        let values: Vec<f64> = pages
            .iter()
            .filter_map(|page| page["metrics"][name].as_f64())
            .collect();
        if let Some(statistics) = Statistics::of(&values) {
            let mut row = statistics.document();
            row["name"] = json!(name);
            row["unit"] = json!(unit);
            row["count"] = json!(values.len());
            metrics.push(row);
        }
    }
    let failed = pages
        .iter()
        .filter(|page| page["status"] != "passed")
        .count();
    Ok(json!({
        "success": true,
        "schema": BROWSER_METRICS,
        "bundleDirectory": evidence.shown,
        "bundleId": evidence.bundle.as_ref().map(|bundle| &bundle.id),
        "pages": pages,
        "metrics": metrics,
        "summary": {"pages": pages.len(), "passed": pages.len() - failed, "failed": failed},
    }))
}

fn page(index: usize, document: &Value) -> Value {
    let mut metrics = Map::new();
    for (name, _, pointer) in METRICS {
        let value = match document.pointer(pointer) {
            Some(Value::Array(rows)) => json!(rows.len()),
            Some(value @ Value::Number(_)) => value.clone(),
            Some(_) | None => continue,
        };
        metrics.insert(name.to_owned(), value);
    }
    let assertions = document["assertions"].as_array().into_iter().flatten();
    let failed = assertions.filter(|row| row["status"] == "failed").count();
    json!({
        "index": index,
        "command": document["command"],
        "status": if document["status"] == "ok" { "passed" } else { "failed" },
        "url": document["url"],
        "finalUrl": document["finalUrl"],
        "title": document["title"],
        "httpStatus": document["httpStatus"],
        "failedAssertions": failed,
        "metrics": metrics,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_browser_commands_become_pages_with_metrics() {
        let one = json!({
            "command": "wordpress.browser-page-load", "status": "ok", "url": "/", "finalUrl": "http://localhost/",
            "timings": {"startMs": 5, "navigationMs": 10, "totalMs": 20}, "networkTotal": 3,
            "networkFailed": [{"url": "x"}], "errorsTotal": 0, "memory": {"peakBytes": 7},
            "assertions": [{"status": "passed"}, {"status": "failed"}],
        });
        let run = json!({"executions": [{"stdout": one.to_string()}, {"stdout": "text"}]});
        let document = browser_metrics(&Evidence::of_document("x".to_owned(), run)).unwrap();
        let page = &document["pages"][0];
        assert_eq!(page["metrics"]["failedRequests"], 1);
        assert_eq!(
            (&page["metrics"]["assertions"], &page["failedAssertions"]),
            (&json!(2), &json!(1))
        );
        assert_eq!(
            document["summary"],
            json!({"pages": 1, "passed": 1, "failed": 0})
        );
        let total = document["metrics"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == "totalMs");
        assert_eq!(total.unwrap()["p50"], 20);
    }

    #[test]
    fn run_without_results_of_browser_commands_is_refused_with_the_reason_no_browser_metrics() {
        let run = json!({"executions": [{"stdout": "{\"command\":\"wordpress.wp-cli\"}"}]});
        let error = browser_metrics(&Evidence::of_document("x".to_owned(), run)).unwrap_err();
        assert_eq!(json!(error.data)["reason"], "no-browser-metrics");
    }
}
