//! The kinds of browser steps and their members, as data.

/// Format that the value of a step's member must have. `Text`, `Filled` and `Name` also accept
/// `null`, which counts as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A string or a number.
    Text,
    /// A string or a number, not empty.
    Filled,
    /// Any JSON value, including `null`.
    Json,
    Flag,
    Number,
    Milliseconds {
        least: u64,
    },
    Duration,
    /// Condition under which a page counts as loaded, as in the argument `wait-for`.
    When,
    /// A name that becomes part of a file name.
    Name,
    OneOf(&'static [&'static str]),
    /// No value: other backends accept the member, this one does not. The text gives the reason or
    /// a replacement.
    Refused(&'static str),
}

pub(super) type Member = (&'static str, Form);

/// Members of a step of which at most one may be given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub(super) of: &'static [&'static str],
    /// Whether one of the members is required.
    pub(super) needed: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub(super) names: &'static [&'static str],
    pub(super) members: &'static [Member],
    pub(super) choices: &'static [Choice],
}

const fn need(of: &'static [&'static str]) -> Choice {
    Choice { of, needed: true }
}

pub(super) const fn either(of: &'static [&'static str]) -> Choice {
    Choice { of, needed: false }
}

/// Alternative names of the member that holds the kind of a step; a step has exactly one of them.
pub(super) const KIND: &[&str] = &["kind", "action", "type"];
pub(super) const TIMEOUT: &[Member] = &[
    ("timeoutMs", Form::Milliseconds { least: 1 }),
    ("timeout", Form::Duration),
];
const SELECTOR: Member = ("selector", Form::Filled);
const VALUE: [Member; 2] = [("value", Form::Text), ("text", Form::Text)];
const PAGE: &str = "use a waitFor step to wait for a page";
const FRAME: &str = "screenshots always show the whole page";

pub(super) const KINDS: &[Kind] = &[
    Kind {
        names: &["navigate", "goto"],
        members: &[
            ("url", Form::Filled),
            ("waitFor", Form::When),
            ("duration", Form::Duration),
            ("durationMs", Form::Milliseconds { least: 0 }),
        ],
        choices: &[need(&["url"]), either(&["duration", "durationMs"])],
    },
    Kind {
        names: &["click"],
        members: &[
            SELECTOR,
            ("text", Form::Refused("name the element with selector")),
        ],
        choices: &[need(&["selector"])],
    },
    Kind {
        names: &["fill"],
        members: &[SELECTOR, VALUE[0], VALUE[1]],
        choices: &[need(&["selector"]), need(&["value", "text"])],
    },
    Kind {
        names: &["type"],
        members: &[SELECTOR, VALUE[0], VALUE[1]],
        choices: &[need(&["value", "text"])],
    },
    Kind {
        names: &["press"],
        members: &[SELECTOR, ("key", Form::Filled)],
        choices: &[need(&["key"])],
    },
    Kind {
        names: &["select"],
        members: &[
            SELECTOR,
            VALUE[0],
            VALUE[1],
            (
                "values",
                Form::Refused("only one option can be selected: give value"),
            ),
        ],
        choices: &[need(&["selector"]), need(&["value", "text"])],
    },
    Kind {
        names: &["check"],
        members: &[SELECTOR],
        choices: &[need(&["selector"])],
    },
    Kind {
        names: &["uncheck"],
        members: &[SELECTOR],
        choices: &[need(&["selector"])],
    },
    Kind {
        names: &["hover"],
        members: &[SELECTOR],
        choices: &[need(&["selector"])],
    },
    Kind {
        names: &["scroll"],
        members: &[SELECTOR, ("x", Form::Number), ("y", Form::Number)],
        choices: &[],
    },
    Kind {
        names: &["waitFor", "wait"],
        members: &[
            SELECTOR,
            (
                "state",
                Form::OneOf(&["visible", "hidden", "attached", "detached"]),
            ),
            ("url", Form::Filled),
            ("waitFor", Form::When),
            ("duration", Form::Duration),
            ("durationMs", Form::Milliseconds { least: 0 }),
        ],
        choices: &[
            either(&["selector", "url", "waitFor"]),
            either(&["selector", "url", "duration", "durationMs"]),
        ],
    },
    Kind {
        names: &["expect"],
        members: &[
            ("assert", Form::Filled),
            ("expect", Form::Filled),
            SELECTOR,
            (
                "state",
                Form::OneOf(&[
                    "visible",
                    "hidden",
                    "attached",
                    "detached",
                    "enabled",
                    "disabled",
                    "checked",
                    "unchecked",
                ]),
            ),
        ],
        choices: &[need(&["assert", "expect", "selector"])],
    },
    Kind {
        names: &["screenshot"],
        members: &[
            ("name", Form::Name),
            ("fullPage", Form::Flag),
            ("waitFor", Form::Refused(PAGE)),
            ("frameSelector", Form::Refused(FRAME)),
            ("frameUrl", Form::Refused(FRAME)),
        ],
        choices: &[],
    },
    Kind {
        names: &["evaluate"],
        members: &[
            ("expression", Form::Filled),
            ("script", Form::Filled),
            ("assert", Form::Json),
        ],
        choices: &[need(&["expression", "script"])],
    },
];

/// Kinds of steps that only other backends support, each with what to use instead.
pub(super) const REFUSED_KINDS: &[(&str, &str)] = &[
    ("drag", "use click, fill, hover or scroll"),
    (
        "capture",
        "use a screenshot step; capture= selects what the command stores",
    ),
    (
        "callTool",
        "use steps that act on elements, such as click and fill",
    ),
    (
        "assertObservation",
        "use an expect step, or evaluate with assert",
    ),
];
