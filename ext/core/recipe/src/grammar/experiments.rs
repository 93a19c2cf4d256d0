//! Grammar of fuzz runs and adversarial campaigns. A recipe with one of them is always refused,
//! because the native backend supports neither. If it deviates from this grammar, the deviations
//! are reported instead.

use super::workflow::{DECLARED, SOME_STEPS, STEPS};
use super::*;

const CASE: Shape = record![
    must("case_id", Shape::Text(Pattern::Handle, 1, usize::MAX)),
    may("input", Shape::Free),
    may(
        "inputHash",
        record![must("algorithm", TEXT), must("value", TEXT)]
    ),
    may("metadata", METADATA),
    must(
        "phases",
        record![
            may("setup", STEPS),
            must("action", SOME_STEPS),
            may("assert", STEPS),
            may("teardown", STEPS),
        ]
    ),
    may("artifacts", rows!(DECLARED)),
    may(
        "replay",
        record![
            may(
                "seed",
                Shape::Either(&[TEXT, Shape::Number], "text or a number")
            ),
            may("inputRef", TEXT),
            may("notes", TEXT),
            may("metadata", METADATA),
        ]
    ),
];

pub(super) const FUZZ_RUN: Shape = record![
    must("schema", words!("wp-codebox/fuzz-run/v1")),
    may("metadata", METADATA),
    must("cases", rows!(CASE, 1, 100, Free)),
];

const CLOCK: Shape = record![
    must(
        "surface",
        words!("runtime", "wordpress", "scheduler", "database")
    ),
    must("operation", words!("freeze", "advance", "skew", "restore")),
    may("time", Shape::Integer(0, i64::MAX)),
    may("milliseconds", Shape::Integer(0, i64::MAX)),
];

const ACTION: Shape = record![
    must("type", NAME),
    may("input", Shape::Any),
    may("clock", rows!(CLOCK, 1, 32, Free)),
    may("metadata", METADATA),
];

const SIGNALS: Shape = rows!(TEXT, 0, usize::MAX, Unique);
const CAPABILITIES: Shape = rows!(NON_EMPTY, 0, usize::MAX, Unique);

const CAMPAIGN: Shape = record![
    must(
        "schema",
        words!("wp-codebox/adversarial-recipe-campaign/v1")
    ),
    must("id", NAME),
    must("seed", NON_EMPTY),
    must(
        "corpus",
        rows!(
            record![
                must("id", NAME),
                must("actions", rows!(ACTION, 1, 10_000, Free)),
                may("input", Shape::Any),
                may("signals", SIGNALS),
                may("metadata", METADATA),
            ],
            1,
            1000,
            Free
        )
    ),
    must(
        "caseTemplates",
        rows!(
            record![
                must("id", NAME),
                must(
                    "phases",
                    record![
                        may("setup", STEPS),
                        may("action", STEPS),
                        may("assert", STEPS),
                        may("teardown", STEPS),
                    ]
                ),
            ],
            1,
            100,
            Free
        )
    ),
    must(
        "mutators",
        rows!(
            words!("scalar", "structured", "binary", "sequence"),
            1,
            4,
            Unique
        )
    ),
    must(
        "oracles",
        rows!(
            record![
                must("id", words!("runtime-status")),
                must("severity", words!("low", "medium", "high", "critical")),
                may("description", TEXT),
                may("metadata", METADATA),
            ],
            1,
            32,
            Free
        )
    ),
    may(
        "matrix",
        rows!(
            record![
                must("name", NAME),
                must("values", rows!(TEXT, 1, 100, Unique)),
            ],
            0,
            16,
            Free
        )
    ),
    may("concurrency", Shape::Integer(1, 128)),
    may(
        "budgets",
        record![
            may("maxCases", Shape::Integer(1, 100_000)),
            may("maxActionsPerCase", Shape::Integer(1, 10_000)),
            may("maxInputBytes", Shape::Integer(1, 67_108_864)),
            may("maxCaseTimeMs", Shape::Integer(1, 3_600_000)),
            may("maxWallTimeMs", Shape::Integer(1, 86_400_000)),
            may("maxArtifactBytes", Shape::Integer(1, 4_294_967_296)),
        ]
    ),
    may(
        "faultSchedule",
        record![
            must("schema", words!("wp-codebox/transport-fault-model/v1")),
            must("seed", NON_EMPTY),
            must("rules", rows!(Shape::Free)),
            may("redactHeaders", TEXTS),
            may("metadata", METADATA),
        ]
    ),
    may(
        "resetPolicy",
        record![
            must(
                "mode",
                words!("none", "checkpoint-per-case", "restore-snapshot")
            ),
            may("checkpointName", TEXT),
            may("snapshotRef", TEXT),
            may("fixtureRefs", TEXTS),
            may("metadata", METADATA),
        ]
    ),
    may("requiredCapabilities", CAPABILITIES),
    may("optionalCapabilities", CAPABILITIES),
    may("novelty", record![may("retainSignals", Shape::Bool)]),
    may("shrinking", record![may("enabled", Shape::Bool)]),
    may(
        "replay",
        record![may("selection", words!("findings", "all"))]
    ),
    may("metadata", METADATA),
];

pub(super) const CAMPAIGNS: Shape = rows!(CAMPAIGN, 1, 32, Free);
