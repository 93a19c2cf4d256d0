//! `artifacts browser-metrics`: times, memory, requests and errors of the browser commands of a run,
//! as `wp-codebox/browser-metrics/v1`.

use super::args::BrowserMetricsArgs;
use crate::output::Output;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_workloads::{Evidence, browser_metrics};

pub(super) fn show(output: Output, args: &BrowserMetricsArgs) -> Result<(), ErrorBody> {
    let evidence = Evidence::of_bundle(&args.of.bundle)?;
    let document = browser_metrics(&evidence)?;
    let pages = document["pages"].as_array().into_iter().flatten();
    let lines: Vec<String> = pages
        .map(|page| {
            let text = |name: &str| page[name].as_str().unwrap_or_default();
            let metric = |name: &str| &page["metrics"][name];
            format!(
                "{:<7} {} {}: {} ms, {} requests, {} page errors",
                text("status"),
                text("command"),
                text("finalUrl"),
                metric("totalMs"),
                metric("requests"),
                metric("pageErrors"),
            )
        })
        .collect();
    output.answer(&document, &lines);
    Ok(())
}
