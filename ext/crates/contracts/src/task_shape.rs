//! Shapes of the fields of a task in JSON, as data: the policy crate reads by them.

use crate::ErrorCode;

/// Shapes of JSON values. In objects, members that are `null` count as absent, and `[]` counts
/// as an empty object: PHP cannot tell them apart.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A string.
    Text,
    /// A string that is not blank.
    Name,
    /// A string of this list.
    OneOf(&'static [&'static str]),
    /// [`crate::GitChoice`] without `history`, which belongs to the operator.
    Git,
    /// `true` or `false`.
    Flag,
    /// A whole number from 0.
    Count,
    /// A whole number from 0 that has 32 bits.
    SmallCount,
    /// A number.
    Number,
    /// An object with free members.
    Free,
    /// A list with free items.
    FreeList,
    /// A list of strings.
    Texts,
    /// A list of strings that are neither blank nor hold a NUL byte.
    Lines,
    /// A program and its arguments.
    Argv,
    /// Exit codes.
    ExitCodes,
    /// Names and values of an environment.
    Environment,
    /// An object with these members.
    Object(&'static [Member]),
    /// A list of objects with these members.
    Rows(&'static [Member]),
    /// An object whose member `kind` chooses its other members; without one it is the first.
    Kinds(&'static [(&'static str, ErrorCode, &'static [Member])]),
    /// A runtime policy; the policy crate has a parser for it.
    Policy,
    /// `sandbox-tool-policy/v1`; the policy crate has a parser for it.
    ToolPolicy,
    /// A network posture, judged as part of the policy.
    Network,
    /// Never from JSON.
    Typed,
}

/// A member of an object.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its name in JSON.
    pub name: &'static str,
    /// What it looks like.
    pub shape: Shape,
    /// Whether it must be there.
    pub need: Need,
    /// Code of its wrong members, where it is not that of the object around it.
    pub code: Option<ErrorCode>,
}

/// Whether a member must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It may be left out.
    Optional,
    /// It must be there.
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
pub(crate) const LIMITS: &[Member] = &[
    member("wall_clock_ms", Shape::Count),
    member("processes", Shape::Count),
    member("memory_bytes", Shape::Count),
    member("disk_bytes", Shape::Count),
    member("output_bytes", Shape::Count),
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
pub(crate) const HOLD: &[Member] = &[
    required("ttl_ms", Shape::Count),
    member("max_ttl_ms", Shape::Count),
    member("idle_ms", Shape::Count),
];
