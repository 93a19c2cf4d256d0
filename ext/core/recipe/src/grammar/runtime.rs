//! Grammar of a recipe's sections `runtime` and `distribution`.

use super::inputs::MOUNT;
use super::*;

const OVERLAY_FILE: Shape = record![
    must("path", ABSOLUTE),
    one_of("source", TEXT),
    one_of("contents", TEXT),
    may("mode", words!("readonly", "readwrite")),
    may("sha256", SHA256),
    may("metadata", METADATA),
];

const OVERLAY_BUNDLE: Shape = record![
    must("schema", words!("wp-codebox/runtime-overlay-bundle/v1")),
    must("id", NAME),
    may("description", TEXT),
    may("files", rows!(OVERLAY_FILE)),
    may(
        "configPreludes",
        rows!(record![
            must("target", TEXT),
            one_of("source", TEXT),
            one_of("contents", TEXT),
            may("order", Shape::Integer(i64::MIN, i64::MAX)),
            may("metadata", METADATA),
        ])
    ),
    may(
        "localRoutes",
        rows!(record![
            must("path", ABSOLUTE),
            must("target", TEXT),
            may("methods", TEXTS),
            must("localOnly", Shape::True),
            may("metadata", METADATA),
        ])
    ),
    may(
        "patches",
        rows!(record![
            must("id", TEXT),
            must("source", TEXT),
            may("appliesTo", TEXT),
            may("sha256", SHA256),
            may("metadata", METADATA),
        ])
    ),
    may(
        "capabilities",
        record![
            may("provided", TEXTS),
            may("required", TEXTS),
            may("optional", TEXTS),
        ]
    ),
    may(
        "unsupportedGaps",
        rows!(record![
            must("capability", TEXT),
            must("reason", TEXT),
            must("failureMode", words!("fail-closed")),
            may("metadata", METADATA),
        ])
    ),
    may("metadata", METADATA),
];

const OVERLAY: Shape = Shape::Either(
    &[
        record![
            must("kind", words!("bundled-library")),
            must("library", words!("php-ai-client")),
            must("source", TEXT),
            may("target", ABSOLUTE),
            must("strategy", words!("wordpress-scoped-bundle")),
            may("metadata", METADATA),
        ],
        record![
            may("library", words!("php-ai-client")),
            must("kind", words!("runtime-overlay-bundle")),
            must("bundle", OVERLAY_BUNDLE),
            may("metadata", METADATA),
        ],
    ],
    "an overlay of kind bundled-library or runtime-overlay-bundle",
);

pub(super) const RUNTIME: Shape = record![
    may(
        "backend",
        words!("wordpress-playground", "wordpress", "native")
    ),
    may("name", TEXT),
    may("wp", TEXT),
    may("phpVersion", text(Pattern::PhpVersion)),
    may(
        "workers",
        Shape::Either(
            &[Shape::Integer(1, 64), words!("auto")],
            "a whole number from 1 to 64, or \"auto\""
        )
    ),
    may(
        "wordpressInstallMode",
        words!(
            "install-from-existing-files",
            "install-from-existing-files-if-needed",
            "do-not-attempt-installing"
        )
    ),
    may("blueprint", Shape::Free),
    may(
        "preview",
        record![
            may("publicUrl", TEXT),
            may("siteUrl", TEXT),
            may("port", Shape::Integer(1, 65535)),
            may("bind", TEXT),
            may("lease", Shape::Free),
        ]
    ),
    may(
        "assets",
        record![may("wordpressDirectory", TEXT), may("wordpressZip", TEXT)]
    ),
    may("extensions", rows!(record![must("manifest", NON_EMPTY)])),
    may(
        "bundledExtensions",
        rows!(words!("intl", "redis", "memcached", "xdebug"))
    ),
    // Settings for a backend package; their members depend on that package.
    may("backendPackage", Shape::Free),
    may("stack", record![may("mounts", rows!(MOUNT))]),
    may(
        "hostNodeHeap",
        record![
            must("minimumMiB", Shape::Integer(256, 16384)),
            must("maximumMiB", Shape::Integer(256, 16384)),
        ]
    ),
    may("overlays", rows!(OVERLAY)),
];

const SCALARS: Shape = Shape::Map(&Shape::Scalar);

pub(super) const DISTRIBUTION: Shape = record![
    must("name", TEXT),
    may(
        "sourceMounts",
        rows!(record![
            may("type", words!("directory", "file")),
            must("source", TEXT),
            must("target", ABSOLUTE),
            may("mode", words!("readonly", "readwrite")),
            may("metadata", METADATA),
            may("role", TEXT),
            may("ref", TEXT),
        ])
    ),
    must(
        "wordpress",
        record![
            must("root", ABSOLUTE),
            may("bootstrap", TEXT),
            may("config", TEXT),
            may("bootstrapFile", TEXT),
        ]
    ),
    may("env", SCALARS),
    may("constants", SCALARS),
    may(
        "serviceFakes",
        rows!(record![
            must("name", TEXT),
            must("source", TEXT),
            may("load", words!("pre-bootstrap", "mu-plugin", "manual")),
            may("sideEffectsArtifact", TEXT),
            may("metadata", METADATA),
        ])
    ),
    may(
        "routeAliases",
        rows!(record![
            may("name", TEXT),
            may("host", TEXT),
            may("path", ABSOLUTE),
            must("target", TEXT),
            may("targetType", TEXT),
            may("metadata", METADATA),
        ])
    ),
    may(
        "setupArtifacts",
        rows!(record![
            must("name", TEXT),
            must("type", words!("sql")),
            must("source", TEXT),
            may("metadata", METADATA),
        ])
    ),
    may(
        "startupProbes",
        rows!(record![
            must("name", TEXT),
            must("type", words!("http", "browser", "wp-cli", "php")),
            may("url", TEXT),
            may("command", TEXT),
            may("code", TEXT),
            may("expectStatus", Shape::Integer(100, 599)),
            may("metadata", METADATA),
        ])
    ),
    may(
        "artifacts",
        rows!(record![
            must("path", TEXT),
            may("kind", TEXT),
            may("metadata", METADATA),
        ])
    ),
    may(
        "safety",
        record![
            may("network", words!("deny", "declared")),
            may("allowedHosts", TEXTS),
            may("secretEnv", ENVS),
        ]
    ),
];
