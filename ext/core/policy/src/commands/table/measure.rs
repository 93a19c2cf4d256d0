//! Commands that measure one request or a workload.

use super::super::model::{
    CommandDescriptor as Row,
    CommandGroup::{Benchmark, Observation},
    GuestProgram, Handler,
};
use super::args::{METHOD, PARAMS, SESSION, USER, integer, limit, list, object, text};

const fn file(name: &'static str) -> Handler {
    Handler::Program(GuestProgram::File(name))
}

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "wordpress.rest-performance-observation",
        Observation,
        file("rest-performance-observation.php"),
        "Measures a REST request: time, memory, queries, hooks.",
    )
    .args(&[
        METHOD,
        text("path", "Route, with or without /wp-json.").required(),
        PARAMS,
        USER,
        SESSION,
        limit(
            "query-fingerprint-limit",
            0,
            "Maximum number of queries in the result; queries that differ only in values count as one.",
        ),
        limit(
            "query-length-limit",
            1,
            "Maximum number of characters of a query in the result.",
        ),
        limit(
            "hook-sample-limit",
            0,
            "Maximum number of hook calls to count.",
        ),
        limit("hook-limit", 1, "Maximum number of hooks in the result."),
    ])
    .prints("JSON {schema, command, status, request, response, timing, memory, database, hooks, php}")
    .schema("wp-codebox/performance-observation/v1"),
    Row::new(
        "wordpress.cache-churn-observation",
        Observation,
        file("cache-churn-observation.php"),
        "Measures the cache use of a REST request: hits, misses, writes, invalidations.",
    )
    .args(&[
        METHOD,
        text("path", "Route, with or without /wp-json.").required(),
        PARAMS,
        USER,
        SESSION,
        limit("sample-limit", 1, "Maximum number of operations in the result."),
        text("case-id", "Name of a case, copied into the result."),
        text("action-id", "Name of an action, copied into the result."),
        text("correlation-id", "Name of a task, copied into the result."),
    ])
    .prints("JSON {schema, command, status, artifactKind, request, response, objectCache, options, transients, siteTransients, correlation, rewritten, samples}")
    .schema("wp-codebox/cache-churn-observation/v1"),
    Row::new(
        "wordpress.bench",
        Benchmark,
        file("bench.php"),
        "Runs workloads of a plugin several times and measures them.",
    )
    .args(&[
        text(
            "component-id",
            "Name of the measured component, copied into the result.",
        ),
        text(
            "plugin-slug",
            "Directory of the plugin below wp-content/plugins.",
        )
        .required(),
        integer(
            "iterations",
            1,
            1_000_000,
            "Number of measured runs of each workload; default 10.",
        ),
        integer(
            "warmup",
            0,
            1_000_000,
            "Number of warm-up runs, which fill caches; default 1. The statistics leave them out, first of each metric has the very first run.",
        ),
        text("dependency-slugs", "Plugins that the workloads need, separated by commas."),
        object("env-json", "Environment of the workloads."),
        list("bootstrap-files-json", "PHP files to load first."),
        list(
            "workloads-json",
            "Workloads {id, type, …} or {id, run: [steps]} in place of the PHP files in bench and tests/bench of the plugin.",
        ),
        list("scenario-ids-json", "Runs only workloads with these ids."),
        object(
            "lifecycle-json",
            "{setup?, teardown?} of each workload, each a step or a list of steps.",
        ),
        object(
            "reset-policy-json",
            "State to reset between runs: {between: none|cache}.",
        ),
    ])
    .prints("JSON {schema, command, status, component, scenarios: [{id, status, metrics, samples}], diagnostics, artifacts: {results}, provenance}")
    .schema("wp-codebox/bench-results/v1")
    .requires(&[
        "wordpress.run-php",
        "wordpress.wp-cli",
        "wordpress.ability",
        "wordpress.rest-request",
        "wordpress.db-operation",
        "wordpress.runtime-discovery",
        "wordpress.inventory-database",
        "wordpress.browser-probe",
    ]),
];
