//! Grammar of steps, probes and artifacts.

use super::*;

const POINTER: Shape = Shape::Text(Pattern::Pointer, 0, 1024);

const CONTINUATION: Shape = record![
    must("maxIterations", Shape::Integer(2, 1000)),
    must(
        "while",
        record![must("pointer", POINTER), must("equals", Shape::Any)]
    ),
    must(
        "inputMappings",
        rows!(
            record![
                must("from", POINTER),
                must(
                    "to",
                    record![
                        must("arg", Shape::Text(Pattern::Any, 1, 256)),
                        must("pointer", POINTER)
                    ]
                ),
            ],
            1,
            64,
            Free
        )
    ),
];

const DIAGNOSTICS: Shape = record![
    may("capture", rows!(words!("wpdb-queries"), 0, 16, Unique)),
    may("maxItems", Shape::Integer(1, 500)),
    may("maxBytes", Shape::Integer(1, 524_288)),
];

pub(super) const STEP: Shape = record![
    must("command", NON_EMPTY),
    may("args", TEXTS),
    may("timeoutMs", Shape::Integer(1, i64::MAX)),
    may("continuation", CONTINUATION),
    may("diagnostics", DIAGNOSTICS),
    may("metadata", METADATA),
    may("allowFailure", Shape::Bool),
    may("advisory", Shape::Bool),
];

/// Maximum number of steps in one phase of a recipe's workflow.
const MAX_STEPS: usize = 1000;

pub(super) const WORKFLOW: Shape = record![
    may("before", rows!(STEP, 0, MAX_STEPS, Free)),
    must("steps", rows!(STEP, 1, MAX_STEPS, Free)),
    may("after", rows!(STEP, 0, MAX_STEPS, Free)),
];

pub(super) const STEPS: Shape = rows!(STEP, 0, MAX_STEPS, Free);
pub(super) const SOME_STEPS: Shape = rows!(STEP, 1, MAX_STEPS, Free);

pub(super) const PROBES: Shape = rows!(record![
    must("name", NAME),
    must("step", STEP),
    may("expectJson", Shape::Bool),
    may("allowFailure", Shape::Bool),
    may("metadata", METADATA),
]);

pub(super) const DECLARED: Shape = record![
    must("name", NAME),
    must("path", ABSOLUTE),
    may("required", Shape::Bool),
    may("parseJson", Shape::Bool),
    may("metadata", METADATA),
];

pub(super) const ARTIFACTS: Shape = record![
    may("directory", TEXT),
    may(
        "verify",
        Shape::Either(
            &[
                Shape::Bool,
                record![may("enabled", Shape::Bool), may("strict", Shape::Bool)],
            ],
            "true, false or an object {enabled, strict}"
        )
    ),
    may(
        "workspacePolicy",
        Shape::Either(
            &[
                Shape::Bool,
                record![
                    may("enabled", Shape::Bool),
                    may("strict", Shape::Bool),
                    may("writableRoots", TEXTS),
                    may("hiddenPaths", TEXTS),
                    may("gitBacked", Shape::Bool),
                ],
            ],
            "true, false or an object {enabled, strict, writableRoots, hiddenPaths, gitBacked}"
        )
    ),
    may("paths", rows!(DECLARED)),
    may(
        "typed",
        rows!(record![
            must("name", NAME),
            must("type", text(Pattern::Type)),
            must("path", ABSOLUTE),
            may("required", Shape::Bool),
            may("contentType", TEXT),
            may("parseJson", Shape::Bool),
            may(
                "payloadSchema",
                Shape::Either(&[TEXT, Shape::Free], "text or an object")
            ),
            may("metadata", METADATA),
        ])
    ),
];
