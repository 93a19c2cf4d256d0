//! Grammar of a recipe's inputs: mounts, workspaces, plugins, services, site seeds.

use super::workflow::STEPS;
use super::*;

pub(super) const MOUNT: Shape = record![
    may("type", words!("directory", "file")),
    must("source", TEXT),
    must("target", ABSOLUTE),
    may("mode", words!("readonly", "readwrite")),
    may("captureArtifacts", Shape::Bool),
    may("phase", words!("pre-install", "post-install")),
    may("git", GIT),
    may("metadata", METADATA),
];

const GIT: Shape = words!("auto", "baseline", "history", "none");

const WORKSPACE: Shape = record![
    may("target", ABSOLUTE),
    may("mode", words!("readonly", "readwrite")),
    may("sourceMode", words!("repo-backed", "site-backed")),
    may("git", GIT),
    must(
        "seed",
        record![
            must(
                "type",
                words!("plugin_scaffold", "theme_scaffold", "directory")
            ),
            may("slug", SLUG),
            may("name", TEXT),
            may("source", TEXT),
            may("excludePaths", TEXTS),
        ]
    ),
];

const PRELOAD: Shape = record![
    must("type", words!("agent-runtime/workspace-preload")),
    may("slug", TEXT),
    may("source", TEXT),
    must(
        "payload",
        record![
            must("schema", words!("agent-runtime/workspace-preload/v1")),
            must(
                "repositories",
                rows!(
                    record![
                        must("name", text(Pattern::Repository)),
                        must("url", text(Pattern::RepositoryUrl)),
                        may("ref", TEXT),
                    ],
                    1,
                    usize::MAX,
                    Free
                )
            ),
            may("meta", METADATA),
        ]
    ),
    may("provenance", METADATA),
];

const EXTRA_PLUGIN: Shape = record![
    one_of("source", TEXT),
    one_of("sourcePath", TEXT),
    may("sourceRoot", TEXT),
    may("sourceSubpath", TEXT),
    may("sourceSubdir", TEXT),
    may("originalSource", TEXT),
    may("slug", SLUG),
    may("mountSlug", SLUG),
    may("pluginFile", TEXT),
    may("activate", Shape::Bool),
    may("loadAs", words!("plugin", "mu-plugin")),
    may("composer", words!("install")),
    may("sha256", SHA256),
    may("metadata", METADATA),
];

pub(super) const COMPONENT: Shape = record![
    may("slug", TEXT),
    may("source", TEXT),
    may("mountedPath", TEXT),
    may("entrypoint", TEXT),
    may("pluginFile", TEXT),
    may("loadAs", words!("plugin", "mu-plugin")),
    may("activate", Shape::Bool),
    may("contractIndex", Shape::Integer(0, i64::MAX)),
    may("requestedPath", TEXT),
    may("provenance", METADATA),
];

const SCALARS: Shape = Shape::Map(&Shape::Scalar);

const PLUGIN_RUNTIME: Shape = record![
    may("label", TEXT),
    may(
        "php",
        record![
            may("memoryLimit", text(Pattern::Memory)),
            may("maxExecutionTime", Shape::Integer(0, 3600)),
            may("iniEntries", SCALARS),
            may("bootstrapIniEntries", SCALARS),
        ]
    ),
    may("wpConfigDefines", SCALARS),
    may("setup", STEPS),
    may(
        "healthProbes",
        rows!(record![
            must("name", NAME),
            must("type", words!("plugin-active", "php", "wp-cli")),
            may("pluginFile", TEXT),
            may("code", TEXT),
            may("command", TEXT),
        ])
    ),
];

const SERVICE: Shape = record![
    must("id", NAME),
    must("kind", words!("mysql", "redis", "smtp", "http")),
    may(
        "configuration",
        record![
            may("provider", words!("docker", "external", "native")),
            may("externalService", NAME),
            may("engine", words!("mysql", "mariadb")),
            may("storage", words!("tmpfs", "disk")),
            may(
                "rootAuthentication",
                words!("generated-password", "empty-password")
            ),
            may("foreignKeyTargetPolicy", words!("unique-only", "indexed")),
            may("hostEnv", ENV),
            may("portEnv", ENV),
            may("usernameEnv", ENV),
            may("passwordEnv", ENV),
            may("image", NON_EMPTY),
            may("responseStatus", Shape::Integer(100, 599)),
            may("responseBody", Shape::Text(Pattern::Any, 0, 65536)),
        ]
    ),
    must(
        "outputs",
        Shape::Map(&Shape::Either(
            &[ENV, rows!(ENV, 1, usize::MAX, Unique)],
            "the name of an environment variable, or a list of such names"
        ))
    ),
];

const EXTERNAL_SERVICE: Shape = record![
    must("id", NAME),
    may("label", TEXT),
    must(
        "environment",
        words!("local", "fixture", "staging", "production", "external")
    ),
    may("allowedHosts", TEXTS),
    may("blockedHosts", TEXTS),
    must(
        "writes",
        words!("forbidden", "record-only", "allowed-with-approval")
    ),
    may("secretEnv", ENVS),
    may(
        "redaction",
        record![
            must("policy", words!("metadata-only", "redact-fields", "omit")),
            may("fields", TEXTS),
        ]
    ),
    may("metadata", METADATA),
];

const FEW: usize = 25;
const HUNDRED: usize = 100;
pub(super) const SCOPE: Shape = record![
    may("ids", rows!(Shape::Integer(1, i64::MAX), 0, HUNDRED, Free)),
    may("slugs", rows!(TEXT, 0, HUNDRED, Free)),
    may("names", rows!(TEXT, 0, HUNDRED, Free)),
    may("postTypes", rows!(TEXT, 0, FEW, Free)),
    may("taxonomies", rows!(TEXT, 0, FEW, Free)),
    may("roles", rows!(TEXT, 0, FEW, Free)),
    may("statuses", rows!(TEXT, 0, FEW, Free)),
    may("includeFiles", Shape::Bool),
    may("anonymize", Shape::Bool),
    may("maxRecords", Shape::Integer(1, 100)),
];

const SITE_SEED: Shape = record![
    must("type", words!("fixture", "parent_site")),
    must("name", NAME),
    may("source", TEXT),
    may("format", NAME),
    may(
        "deterministicIds",
        record![
            must("strategy", words!("platform-identifiers", "numeric")),
            must("onUnsupported", words!("block", "warn")),
        ]
    ),
    may(
        "bootstrap",
        record![
            may(
                "multisite",
                record![
                    must("enabled", Shape::Bool),
                    may("install", words!("subdomain", "subdirectory")),
                    may(
                        "sites",
                        rows!(
                            record![
                                must("domain", NON_EMPTY),
                                may("path", ABSOLUTE),
                                may("title", TEXT),
                            ],
                            0,
                            FEW,
                            Free
                        )
                    ),
                ]
            ),
            may(
                "domains",
                rows!(
                    record![
                        must("domain", NON_EMPTY),
                        may("path", ABSOLUTE),
                        may("primary", Shape::Bool),
                    ],
                    0,
                    FEW,
                    Free
                )
            ),
        ]
    ),
    must(
        "scopes",
        record![
            may("posts", SCOPE),
            may("terms", SCOPE),
            may("options", SCOPE),
            may("users", SCOPE),
            may("media", SCOPE),
            may("activePlugins", Shape::Bool),
            may("activeTheme", Shape::Bool),
        ]
    ),
];

const HANDLE: Shape = Shape::Text(Pattern::Handle, 1, usize::MAX);

const CREDENTIALS: Shape = record![
    must("schema", words!("wp-codebox/connector-credentials/v1")),
    must("connector", TEXT),
    must("scope", words!("connector")),
    must("status", words!("available", "missing", "denied")),
    may("reason", TEXT),
    must(
        "secrets",
        rows!(record![
            must("name", ENV),
            must("status", words!("available", "missing", "denied")),
            may("scope", TEXT),
            may("source", TEXT),
            may("reason", TEXT),
        ])
    ),
];

pub(super) const INPUTS: Shape = record![
    may("mounts", rows!(MOUNT)),
    may("workspaces", rows!(WORKSPACE)),
    may("workspace_preloads", rows!(PRELOAD)),
    may("extra_plugins", rows!(EXTRA_PLUGIN)),
    may(
        "component_manifest",
        record![
            must("schema", words!("wp-codebox/component-manifest/v1")),
            may("components", rows!(COMPONENT)),
            may("providers", rows!(COMPONENT)),
        ]
    ),
    may(
        "dependency_overlays",
        rows!(record![
            must("kind", words!("composer-package")),
            must("package", text(Pattern::Package)),
            must("source", TEXT),
            may("reference", text(Pattern::Revision)),
            must("consumer", SLUG),
            may("metadata", METADATA),
        ])
    ),
    may("runtimeEnv", Shape::Map(&TEXT)),
    may("secretEnv", ENVS),
    may("services", rows!(SERVICE)),
    may("externalServices", rows!(EXTERNAL_SERVICE)),
    may("pluginRuntime", PLUGIN_RUNTIME),
    may(
        "fixtureDatabases",
        rows!(record![
            must("name", NAME),
            must("version", NON_EMPTY),
            must("source", TEXT),
            may("format", words!("sql")),
            may(
                "reset",
                record![
                    may("strategy", words!("none", "truncate-tables")),
                    may("tables", rows!(text(Pattern::Table), 0, HUNDRED, Free)),
                ]
            ),
            may("metadata", METADATA),
        ])
    ),
    may(
        "fixtureUsers",
        rows!(record![
            must("name", HANDLE),
            may("userId", Shape::Integer(1, i64::MAX)),
            may("username", NON_EMPTY),
            may("email", NON_EMPTY),
            may("role", NON_EMPTY),
            may("displayName", TEXT),
            may("password", NON_EMPTY),
            may("metadata", METADATA),
        ])
    ),
    may(
        "userSessions",
        rows!(record![
            must("name", HANDLE),
            must("user", NON_EMPTY),
            may(
                "artifacts",
                rows!(record![
                    must("kind", NON_EMPTY),
                    may("path", NON_EMPTY),
                    must("redactionRequired", Shape::True),
                    may("metadata", METADATA),
                ])
            ),
            may("metadata", METADATA),
        ])
    ),
    may(
        "browserActors",
        rows!(record![
            must("name", HANDLE),
            must("userSession", NON_EMPTY),
            may("metadata", METADATA),
        ])
    ),
    may("siteSeeds", rows!(SITE_SEED)),
    may(
        "stagedFiles",
        rows!(record![must("source", TEXT), must("target", ABSOLUTE)])
    ),
    may(
        "sourcePackages",
        rows!(record![
            must("name", NAME),
            must("source", TEXT),
            must("target", TEXT),
            may("allow", TEXTS),
            may("deny", TEXTS),
            may(
                "artifact",
                Shape::Either(
                    &[
                        Shape::Bool,
                        record![
                            may("name", TEXT),
                            may("path", ABSOLUTE),
                            may("required", Shape::Bool),
                        ],
                    ],
                    "true, false or an object {name, path, required}"
                )
            ),
            may("metadata", METADATA),
        ])
    ),
    may(
        "agent_bundles",
        rows!(record![
            one_of("source", TEXT),
            one_of("bundle", Shape::Free),
            may("slug", TEXT),
            may("on_conflict", words!("error", "skip", "upgrade")),
            may("owner_id", Shape::Integer(1, i64::MAX)),
            may("token_env", TEXT),
        ])
    ),
    may(
        "inherit",
        record![may("connectors", TEXTS), may("settings", TEXTS)]
    ),
    may(
        "inheritance",
        record![
            may(
                "connectors",
                rows!(record![
                    must("name", TEXT),
                    must("status", TEXT),
                    may("provider", TEXT),
                    may("model", TEXT),
                    may("providerPluginPaths", TEXTS),
                    may("secretEnv", ENVS),
                    may("credentials", CREDENTIALS),
                ])
            ),
            may(
                "settings",
                rows!(record![
                    must("name", TEXT),
                    must("status", TEXT),
                    may("scope", TEXT),
                ])
            ),
        ]
    ),
];
