//! JSON shapes of the fields of a task, as data; the policy crate's reader checks tasks against
//! them.

use crate::ErrorCode;

/// Shape of a JSON value. In objects, `null` members count as absent and `[]` counts as an
/// empty object, because PHP encodes an empty object as `[]`.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A string.
    Text,
    /// A string that is not blank.
    Name,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// [`crate::GitChoice`] without `history`, which only the operator may request.
    Git,
    /// `true` or `false`.
    Flag,
    /// An integer, 0 or greater.
    Count,
    /// An integer from 0 to 2^32 - 1.
    SmallCount,
    /// An integer from the first to the second number.
    Between(u16, u16),
    /// A number.
    Number,
    /// An object with arbitrary members.
    Free,
    /// A list with arbitrary items.
    FreeList,
    /// A list of strings.
    Texts,
    /// A list of strings, none blank and none with a NUL byte.
    Lines,
    /// A list of strings: a program and its arguments.
    Argv,
    /// A list of exit codes, each from 0 to 255.
    ExitCodes,
    /// Names and values of environment variables.
    Environment,
    /// Names of environment variables, or lists of them, by the output of a service.
    Outputs,
    /// An object with these members.
    Object(&'static [Member]),
    /// A list of objects with these members.
    Rows(&'static [Member]),
    /// An object whose member `kind` decides which other members it may have. Each entry: a value
    /// of `kind`, the error code for a wrong value in an object of that kind, and the other
    /// members. Without `kind` the first entry applies.
    Kinds(&'static [(&'static str, ErrorCode, &'static [Member])]),
    /// A runtime policy; the policy crate has a parser for it.
    Policy,
    /// `sandbox-tool-policy/v1`; the policy crate has a parser for it.
    ToolPolicy,
    /// Network access, checked as part of the policy.
    Network,
    /// Set by Rust code only, never read from JSON.
    Typed,
}

/// One row of the shape of a JSON object: a member that the object may have.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Name of the member in JSON.
    pub name: &'static str,
    /// Shape of the member's value.
    pub shape: Shape,
    /// Whether the member is required.
    pub need: Need,
    /// Error code for a wrong value, if it differs from the code of the enclosing object.
    pub code: Option<ErrorCode>,
}

/// Whether a member is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The member is optional.
    Optional,
    /// The member is required.
    Required,
}

pub(crate) const fn member(name: &'static str, shape: Shape) -> Member {
    Member {
        name,
        shape,
        need: Need::Optional,
        code: None,
    }
}

pub(crate) const fn required(name: &'static str, shape: Shape) -> Member {
    Member {
        name,
        shape,
        need: Need::Required,
        code: None,
    }
}

pub(crate) const MOUNT: &[Member] = &[
    required("source", Shape::Name),
    required("target", Shape::Name),
    member("mode", Shape::OneOf(&["readonly", "readwrite"])),
    member("exclude", Shape::Lines),
    member("git", Shape::Git),
    member("metadata", Shape::Free),
];
pub(crate) const BUDGET: &[Member] = &[
    member("turns", Shape::SmallCount),
    member("input_tokens", Shape::Count),
    member("output_tokens", Shape::Count),
    member("cost_usd", Shape::Number),
];
pub(crate) const AGENT_BUDGET: &[Member] = &[
    member("turns", Shape::SmallCount),
    member("input_tokens", Shape::Count),
    member("output_tokens", Shape::Count),
    member("cost_microusd", Shape::Count),
];
pub(crate) const FOLLOW_UP: &[Member] = &[
    member("artifact_id", Shape::Name),
    member("run_id", Shape::Name),
    member(
        "comments",
        Shape::Rows(&[
            member("path", Shape::Name),
            member("line", Shape::Count),
            required("body", Shape::Name),
        ]),
    ),
];
pub(crate) const LIMITS: &[Member] = &[
    member("wall_clock_ms", Shape::Count),
    member("processes", Shape::Count),
    member("memory_bytes", Shape::Count),
    member("disk_bytes", Shape::Count),
    member("output_bytes", Shape::Count),
    member("cpu_milli", Shape::Count),
];
pub(crate) const SHARE: &[Member] = &[
    member("runs", Shape::Count),
    member("ceilings", Shape::Object(LIMITS)),
    member(
        "spend",
        Shape::Object(&[
            member("site_microusd", Shape::Count),
            member("requester_microusd", Shape::Count),
        ]),
    ),
];
pub(crate) const SERVICE: &[Member] = &[
    required("id", Shape::Name),
    required("kind", Shape::OneOf(&["mysql", "redis", "smtp", "http"])),
    member(
        "configuration",
        Shape::Object(&[
            member("provider", Shape::OneOf(&["docker", "external", "native"])),
            member("externalService", Shape::Text),
            member("engine", Shape::OneOf(&["mysql", "mariadb"])),
            member("storage", Shape::OneOf(&["tmpfs", "disk"])),
            member(
                "rootAuthentication",
                Shape::OneOf(&["generated-password", "empty-password"]),
            ),
            member(
                "foreignKeyTargetPolicy",
                Shape::OneOf(&["unique-only", "indexed"]),
            ),
            member("hostEnv", Shape::Text),
            member("portEnv", Shape::Text),
            member("usernameEnv", Shape::Text),
            member("passwordEnv", Shape::Text),
            member("image", Shape::Text),
            member("responseStatus", Shape::Between(100, 599)),
            member("responseBody", Shape::Text),
        ]),
    ),
    member("outputs", Shape::Outputs),
];
pub(crate) const AGENT_BUNDLE: &[Member] = &[
    member("source", Shape::Text),
    member("bundle", Shape::Free),
    member("slug", Shape::Text),
    member("on_conflict", Shape::OneOf(&["error", "skip", "upgrade"])),
    member("owner_id", Shape::Count),
    member("token_env", Shape::Text),
    member("import_principal", Shape::Free),
];
pub(crate) const AGENT_KINDS: &[(&str, ErrorCode, &[Member])] = &[
    (
        "command",
        ErrorCode::InputInvalid,
        &[
            required("argv", Shape::Argv),
            member("success_codes", Shape::ExitCodes),
            member("env", Shape::Environment),
        ],
    ),
    (
        "preset",
        ErrorCode::InputInvalid,
        &[required("name", Shape::Name)],
    ),
    (
        "model",
        ErrorCode::InputInvalid,
        &[
            Member {
                name: "budget",
                shape: Shape::Object(AGENT_BUDGET),
                need: Need::Optional,
                code: Some(ErrorCode::BudgetInvalid),
            },
            member("instructions", Shape::Text),
        ],
    ),
    (
        "ability",
        ErrorCode::RuntimeTaskRequestInvalid,
        &[
            required("ability", Shape::Name),
            member("input", Shape::Free),
        ],
    ),
];
pub(crate) const MODEL: &[Member] = &[
    required("provider", Shape::Name),
    required("model", Shape::Name),
    required("api", Shape::OneOf(&["openai-chat", "anthropic-messages"])),
    required("base_url", Shape::Name),
    member("secret", Shape::Text),
    member("private", Shape::Flag),
    member("context_tokens", Shape::Count),
    member("max_output_tokens", Shape::Count),
    member(
        "prices",
        Shape::Object(&[
            member("input", Shape::Count),
            member("cached_input", Shape::Count),
            member("output", Shape::Count),
        ]),
    ),
];
pub(crate) const PARENT_TOOLS: &[Member] = &[
    member(
        "tools",
        Shape::Rows(&[
            required("id", Shape::Name),
            required("description", Shape::Name),
            member("input_schema", Shape::Free),
        ]),
    ),
    member("timeout_ms", Shape::Count),
];
pub(crate) const COMPONENT: &[Member] = &[
    required("slug", Shape::Name),
    required("source", Shape::Name),
    member("load_as", Shape::OneOf(&["plugin", "mu-plugin"])),
    member("entry", Shape::Text),
    member("activate", Shape::Flag),
    member("required", Shape::Flag),
    member(
        "readiness_probe",
        Shape::Object(&[
            required("type", Shape::OneOf(&["ability", "filter"])),
            required("name", Shape::Name),
        ]),
    ),
];
pub(crate) const ACTIVATION: &[Member] = &[
    required("kind", Shape::OneOf(&["plugin", "theme"])),
    required("name", Shape::Name),
    member("required", Shape::Flag),
];
pub(crate) const SEED: &[Member] = &[
    required("name", Shape::Name),
    required("scopes", Shape::Free),
    required("content", Shape::Name),
];
pub(crate) const HOLD: &[Member] = &[
    required("ttl_ms", Shape::Count),
    member("max_ttl_ms", Shape::Count),
    member("idle_ms", Shape::Count),
    member(
        "preview",
        Shape::Object(&[
            member("bind", Shape::Name),
            member("port", Shape::Between(0, u16::MAX)),
            member("public_url", Shape::Name),
            member("token", Shape::Name),
        ]),
    ),
];
