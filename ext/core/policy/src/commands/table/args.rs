//! Constructors of argument rows, and arguments that several commands share.

use super::super::format::Format;
use super::super::model::AcceptedArg;

pub(super) const fn arg(
    name: &'static str,
    format: Format,
    description: &'static str,
) -> AcceptedArg {
    AcceptedArg {
        name,
        description,
        required: false,
        repeatable: false,
        format,
    }
}

pub(super) const fn text(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::Text, description)
}

pub(super) const fn line(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::CommandLine, description)
}

pub(super) const fn json(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::Json, description)
}

pub(super) const fn object(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::JsonObject, description)
}

pub(super) const fn list(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::JsonList, description)
}

pub(super) const fn flag(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::Boolean, description)
}

pub(super) const fn duration(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::Duration, description)
}

pub(super) const fn integer(
    name: &'static str,
    least: i64,
    most: i64,
    description: &'static str,
) -> AcceptedArg {
    arg(name, Format::Integer { least, most }, description)
}

/// Largest value of the arguments that [`limit`] creates, e.g. a number of rows. A program with a
/// lower maximum of its own applies that maximum.
const MOST: i64 = 1_000_000_000;

pub(super) const fn limit(
    name: &'static str,
    least: i64,
    description: &'static str,
) -> AcceptedArg {
    integer(name, least, MOST, description)
}

pub(super) const fn one_of(
    name: &'static str,
    words: &'static [&'static str],
    description: &'static str,
) -> AcceptedArg {
    arg(name, Format::OneOf(words), description)
}

/// HTTP methods that a request command accepts.
const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

// Arguments that several commands share.
pub(super) const USER: AcceptedArg = text(
    "user",
    "Login, e-mail address or id of the user that the command acts as; default: no user.",
);
pub(super) const SESSION: AcceptedArg = text(
    "session",
    "Name of a session from wordpress.session or wordpress.action-auth.",
);
pub(super) const METHOD: AcceptedArg = one_of("method", METHODS, "HTTP method; default GET.");
pub(super) const HEADERS: AcceptedArg = object("headers-json", "Headers as an object of strings.");
pub(super) const PARAMS: AcceptedArg = object(
    "params-json",
    "Parameters of the query for GET and HEAD, otherwise of the body.",
);
pub(super) const BODY: AcceptedArg = text("body", "Raw request body.");
pub(super) const EXPECT_STATUS: AcceptedArg = integer(
    "expect-status",
    100,
    599,
    "Required HTTP status of the response; any other fails the command. Without it, a status from 500 and a fatal PHP error fail the command.",
);
pub(super) const MUTATES: AcceptedArg = flag(
    "mutates",
    "Whether the command changes the site; default true.",
);
pub(super) const CAPABILITY: AcceptedArg = text(
    "capability",
    "Capability that the acting user must have; default: no check.",
);
pub(super) const DESTRUCTIVE: AcceptedArg = text(
    "destructive-boundary",
    "What isolates a destructive action, in the caller's words; default sandbox. The value none refuses the action.",
);
pub(super) const OUTPUT_DIR: AcceptedArg = text(
    "output-dir",
    "Directory for the written files: a relative one is in the run's bundle; an absolute one is in the guest and receives copies.",
);
pub(super) const BROWSER_URLS: AcceptedArg = text(
    "browser-urls",
    "Origins of the cookies, separated by commas; default: the site's own origin.",
);
/// What a page load can record in addition, or a boolean that selects all of it.
pub(super) const PAGE_DIAGNOSTICS: AcceptedArg = arg(
    "capture-diagnostics",
    Format::ListOf(&[
        "wpdb-queries",
        "1",
        "true",
        "yes",
        "on",
        "0",
        "false",
        "no",
        "off",
    ]),
    "Additional data to record: wpdb-queries, or true for all of it.",
);
pub(super) const DIAGNOSTICS: AcceptedArg = arg(
    "capture-diagnostics",
    Format::ListOf(&["wpdb-queries"]),
    "Additional data to record, separated by commas: database queries.",
);

/// Arguments that select which part of the site's state a snapshot contains.
macro_rules! snapshot_args {
    ($($arg:expr),* $(,)?) => {
        &[
            $($arg,)*
            $crate::commands::table::args::text(
                "snapshot-include-wp-content",
                "Paths below wp-content to take, separated by commas; default: all.",
            ),
            $crate::commands::table::args::text(
                "snapshot-exclude-wp-content",
                "Paths below wp-content to leave out, separated by commas.",
            ),
            $crate::commands::table::args::text(
                "snapshot-database-tables",
                "Tables to take, separated by commas; default: all.",
            ),
            $crate::commands::table::args::text(
                "snapshot-exclude-database-tables",
                "Tables to leave out, separated by commas.",
            ),
            $crate::commands::table::args::text(
                "snapshot-option-names",
                "Options to take, separated by commas; default: all.",
            ),
            $crate::commands::table::args::text(
                "snapshot-post-types",
                "Types of posts to take, separated by commas; default: all.",
            ),
        ]
    };
}
pub(super) use snapshot_args;
