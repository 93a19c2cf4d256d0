//! `artifacts benchmark`: the results of benchmarks in a bundle, as `wp-codebox/benchmark-artifacts/v1`.

use super::args::BenchmarkArgs;
use crate::output::Output;
use serde_json::Value;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_workloads::Evidence;
use wp_codebox_workloads::bench::benchmark_artifacts;

pub(super) fn show(output: Output, args: &BenchmarkArgs) -> Result<(), ErrorBody> {
    let evidence = Evidence::of_bundle(&args.of.bundle)?;
    let directory = args.extract_to.as_deref();
    let document = benchmark_artifacts(&evidence, &args.scenarios, directory)?;
    let rows = document["artifacts"].as_array().into_iter().flatten();
    let lines: Vec<String> = rows
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap_or_default();
            let ids = row["scenarioIds"].as_array().into_iter().flatten();
            let ids: Vec<&str> = ids.filter_map(Value::as_str).collect();
            let place = match text("extractedTo") {
                "" => text("path"),
                extracted => extracted,
            };
            format!("{place} {}: {}", text("component"), ids.join(", "))
        })
        .collect();
    output.answer(&document, &lines);
    Ok(())
}
