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
    /// The name of a browser actor or of a session.
    Actor,
    /// A string or a list of strings, not empty.
    Texts,
    Object,
    /// A number from 0.
    Count,
    /// An HTTP status, from 100 to 599.
    Status,
    OneOf(&'static [&'static str]),
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
/// Member of every step except those of the block editor: the actor whose browser executes the
/// step.
pub(super) const ACTOR: &[Member] = &[("actor", Form::Actor)];
const SELECTOR: Member = ("selector", Form::Filled);
const VALUE: [Member; 2] = [("value", Form::Text), ("text", Form::Text)];
/// Members that select the frame in which an element is searched: a selector of the frame element,
/// or a part of the frame's URL.
const FRAMES: [Member; 3] = [
    ("frameSelector", Form::Filled),
    ("frame", Form::Filled),
    ("frameUrl", Form::Filled),
];
const ONE_FRAME: Choice = either(&["frameSelector", "frame", "frameUrl"]);

/// Builds the kind of a browser step that acts on one element: its names, members, and choices
/// (members that exclude each other or are required).
macro_rules! element_kind {
    ($($name:literal),+; $($member:expr),*; $($choice:expr),*) => {
        Kind {
            names: &[$($name),+],
            members: &[SELECTOR, FRAMES[0], FRAMES[1], FRAMES[2], $($member),*],
            choices: &[ONE_FRAME, $($choice),*],
        }
    };
}

const STATES: &[&str] = &[
    "visible",
    "hidden",
    "attached",
    "detached",
    "enabled",
    "disabled",
    "checked",
    "unchecked",
];

pub(super) const KINDS: &[Kind] = &[
    Kind {
        names: &["navigate", "goto"],
        members: &[
            ("url", Form::Filled),
            ("waitFor", Form::When),
            ("duration", Form::Duration),
            ("durationMs", Form::Milliseconds { least: 0 }),
            ("expectStatus", Form::Status),
        ],
        choices: &[need(&["url"]), either(&["duration", "durationMs"])],
    },
    element_kind!("click"; ("text", Form::Filled); need(&["selector", "text"])),
    element_kind!("fill"; VALUE[0], VALUE[1]; need(&["selector"]), need(&["value", "text"])),
    element_kind!("type"; VALUE[0], VALUE[1]; need(&["value", "text"])),
    element_kind!("press"; ("key", Form::Filled); need(&["key"])),
    element_kind!(
        "select"; VALUE[0], VALUE[1], ("values", Form::Texts);
        need(&["selector"]), need(&["value", "text", "values"])
    ),
    element_kind!("check"; ; need(&["selector"])),
    element_kind!("uncheck"; ; need(&["selector"])),
    element_kind!("hover"; ; need(&["selector"])),
    element_kind!(
        "drag";
        ("from", Form::Filled), ("source", Form::Filled), ("sourceSelector", Form::Filled),
        ("to", Form::Filled), ("target", Form::Filled), ("targetSelector", Form::Filled),
        ("x", Form::Number), ("y", Form::Number);
        need(&["selector", "from", "source", "sourceSelector"]),
        need(&["to", "target", "targetSelector", "x"]),
        either(&["to", "target", "targetSelector", "y"])
    ),
    element_kind!("scroll"; ("x", Form::Number), ("y", Form::Number); ),
    element_kind!(
        "waitFor", "wait";
        ("state", Form::OneOf(STATES)), ("url", Form::Filled), ("waitFor", Form::When),
        ("duration", Form::Duration), ("durationMs", Form::Milliseconds { least: 0 });
        either(&["selector", "url", "waitFor"]),
        either(&["selector", "url", "duration", "durationMs"])
    ),
    element_kind!(
        "expect";
        ("assert", Form::Filled), ("expect", Form::Filled), ("state", Form::OneOf(STATES));
        need(&["assert", "expect", "selector"])
    ),
    Kind {
        names: &["assertObservation"],
        members: &[
            ("observation", Form::Filled),
            ("path", Form::Filled),
            ("equals", Form::Json),
            ("expected", Form::Json),
            ("contains", Form::Filled),
            ("exists", Form::Flag),
            ("min", Form::Number),
            ("max", Form::Number),
        ],
        choices: &[
            need(&["observation", "path"]),
            need(&["equals", "expected", "contains", "exists", "min", "max"]),
        ],
    },
    element_kind!(
        "screenshot";
        ("name", Form::Name), ("fullPage", Form::Flag), ("waitFor", Form::When),
        ("duration", Form::Duration), ("durationMs", Form::Milliseconds { least: 0 });
        either(&["duration", "durationMs"]), either(&["selector", "fullPage"])
    ),
    Kind {
        names: &["capture"],
        members: &[
            ("capture", Form::Texts),
            ("artifacts", Form::Texts),
            ("name", Form::Name),
        ],
        choices: &[either(&["capture", "artifacts"])],
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

/// Members that identify one block of the editor.
const BLOCK: [Member; 4] = [
    ("clientId", Form::Filled),
    ("index", Form::Count),
    ("blockName", Form::Filled),
    ("name", Form::Filled),
];

/// Steps that only the block editor has. They change the editor's content by its own functions.
pub(super) const EDITOR_KINDS: &[Kind] = &[
    Kind {
        names: &["insertBlock", "insert-block"],
        members: &[
            BLOCK[2],
            BLOCK[3],
            ("attributes", Form::Object),
            ("content", Form::Text),
            ("innerBlocks", Form::Json),
            BLOCK[1],
            ("rootClientId", Form::Filled),
        ],
        choices: &[need(&["blockName", "name"])],
    },
    Kind {
        names: &["setContent", "set-content"],
        members: &[("content", Form::Text)],
        choices: &[need(&["content"])],
    },
    Kind {
        names: &["selectBlock", "select-block"],
        members: &BLOCK,
        choices: &[need(&["clientId", "index", "blockName", "name"])],
    },
    Kind {
        names: &["updateBlock", "updateBlockAttributes", "update-block"],
        members: &[
            BLOCK[0],
            BLOCK[1],
            BLOCK[2],
            BLOCK[3],
            ("attributes", Form::Object),
        ],
        choices: &[
            either(&["clientId", "index", "blockName", "name"]),
            need(&["attributes"]),
        ],
    },
    Kind {
        names: &["removeBlock", "remove-block"],
        members: &BLOCK,
        choices: &[either(&["clientId", "index", "blockName", "name"])],
    },
    Kind {
        names: &["moveBlock", "move-block"],
        members: &[BLOCK[0], BLOCK[1], BLOCK[2], BLOCK[3], ("to", Form::Count)],
        choices: &[
            either(&["clientId", "index", "blockName", "name"]),
            need(&["to"]),
        ],
    },
    Kind {
        names: &["setTitle", "set-title"],
        members: &[
            ("title", Form::Text),
            ("value", Form::Text),
            ("text", Form::Text),
        ],
        choices: &[need(&["title", "value", "text"])],
    },
    Kind {
        names: &["save", "savePost", "saveDraft"],
        members: &[],
        choices: &[],
    },
    Kind {
        names: &["publish"],
        members: &[],
        choices: &[],
    },
    Kind {
        names: &["undo"],
        members: &[],
        choices: &[],
    },
    Kind {
        names: &["redo"],
        members: &[],
        choices: &[],
    },
    Kind {
        names: &["validateBlocks", "validate-blocks"],
        members: &[],
        choices: &[],
    },
    Kind {
        names: &["expectBlock", "expect-block"],
        members: &[
            BLOCK[0],
            BLOCK[1],
            BLOCK[2],
            BLOCK[3],
            ("attributes", Form::Object),
            ("count", Form::Count),
        ],
        choices: &[need(&["clientId", "index", "blockName", "name"])],
    },
];

/// Kinds of steps that only other backends support, each with what to use instead.
pub(super) const REFUSED_KINDS: &[(&str, &str)] = &[(
    "callTool",
    "a browser has no tools of an agent; run the tool's command as a step of the recipe, or use click and fill",
)];
