//! Commands that measure one request or a workload.

use super::super::model::{
    CommandDescriptor as Row,
    CommandGroup::{Benchmark, Observation},
    GuestProgram, Handler,
};
use super::args::{METHOD, PARAMS, SESSION, USER, integer, list, object, text};

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
        integer(
            "query-fingerprint-limit",
            1,
            500,
            "Most kinds of queries that are told.",
        ),
        integer(
            "query-length-limit",
            16,
            10_000,
            "Most characters of a query that are told.",
        ),
        integer(
            "hook-sample-limit",
            1,
            10_000,
            "Most calls of hooks that are counted.",
        ),
        integer("hook-limit", 1, 500, "Most hooks that are told."),
    ])
    .prints("JSON {schema, request, status, response, timing, memory, queries, hooks, php}")
    .schema("wp-codebox/performance-observation/v1"),
    Row::new(
        "wordpress.cache-churn-observation",
        Observation,
        file("cache-churn-observation.php"),
        "Measures what a REST request does to caches: hits, misses, writes, invalidations.",
    )
    .args(&[
        METHOD,
        text("path", "Route, with or without /wp-json.").required(),
        PARAMS,
        USER,
        SESSION,
        integer("sample-limit", 1, 1_000, "Most operations that are told."),
        text("case-id", "Name of a case, told in the result."),
        text("action-id", "Name of an action, told in the result."),
        text("correlation-id", "Name of a task, told in the result."),
    ])
    .prints("JSON {schema, request, status, response, objectCache, options, transients, rewritten, samples}")
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
            "Name of what is measured, told in the result.",
        ),
        text(
            "plugin-slug",
            "Directory of the plugin below wp-content/plugins.",
        )
        .required(),
        integer(
            "iterations",
            1,
            1_000,
            "Measured runs of each workload; 10 without it.",
        ),
        integer(
            "warmup",
            0,
            100,
            "Runs before that are not measured; 1 without it.",
        ),
        text("dependency-slugs", "Plugins it needs, separated by commas."),
        object("env-json", "Environment of the workloads."),
        list("bootstrap-files-json", "PHP files that are loaded before."),
        list(
            "workloads-json",
            "Workloads {id, type: php|rest, file|code|path} instead of the plugin's bench/*.php.",
        ),
        list("scenario-ids-json", "Only workloads of these ids."),
        object(
            "lifecycle-json",
            "{setup?, teardown?} of each workload, each {file} or {code}.",
        ),
        object(
            "reset-policy-json",
            "What is reset between runs: {between: none|cache}.",
        ),
    ])
    .prints("JSON {schema, status, component, scenarios: [{id, status, metrics, samples}]}")
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
