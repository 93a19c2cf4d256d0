//! The rows, by group, in catalogue order.

mod browser;
mod checkpoint;
mod core;
mod discovery;
mod fuzz;
mod host;
mod measure;
mod state;

use super::format::Format;
use super::model::{AcceptedArg, CommandDescriptor};

/// Every command, in catalogue order.
pub fn registry() -> impl Iterator<Item = &'static CommandDescriptor> {
    [
        core::ROWS,
        checkpoint::ROWS,
        state::ROWS,
        discovery::ROWS,
        measure::ROWS,
        fuzz::ROWS,
        browser::ROWS,
        host::ROWS,
    ]
    .into_iter()
    .flatten()
}

const fn arg(name: &'static str, format: Format, description: &'static str) -> AcceptedArg {
    AcceptedArg {
        name,
        description,
        required: false,
        repeatable: false,
        format,
    }
}

const fn text(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::Text, description)
}

const fn json(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::Json, description)
}

const fn object(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::JsonObject, description)
}

const fn list(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::JsonList, description)
}

const fn flag(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::Boolean, description)
}

const fn duration(name: &'static str, description: &'static str) -> AcceptedArg {
    arg(name, Format::Duration, description)
}

const fn integer(
    name: &'static str,
    least: i64,
    most: i64,
    description: &'static str,
) -> AcceptedArg {
    arg(name, Format::Integer { least, most }, description)
}

const fn one_of(
    name: &'static str,
    words: &'static [&'static str],
    description: &'static str,
) -> AcceptedArg {
    arg(name, Format::OneOf(words), description)
}

/// Methods of a request.
const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

// Arguments that several commands share.
const USER: AcceptedArg = text(
    "user",
    "Login, e-mail address or id of the user it acts as; without it nobody is logged in.",
);
const SESSION: AcceptedArg = text(
    "session",
    "Name of a session that wordpress.session or wordpress.action-auth made.",
);
const METHOD: AcceptedArg = one_of("method", METHODS, "Method; GET without it.");
const HEADERS: AcceptedArg = object("headers-json", "Headers as an object of strings.");
const PARAMS: AcceptedArg = object(
    "params-json",
    "Parameters: of the query for GET and HEAD, else of the body.",
);
const BODY: AcceptedArg = text("body", "Body as it is sent.");
const EXPECT_STATUS: AcceptedArg = integer(
    "expect-status",
    100,
    599,
    "Status that the answer must have; any other fails the command.",
);
const MUTATES: AcceptedArg = flag(
    "mutates",
    "Whether it may change the site; without it the command is taken to change something.",
);
const CAPABILITY: AcceptedArg = text(
    "capability",
    "Capability that the acting user must have; without it nothing is checked.",
);
const DESTRUCTIVE: AcceptedArg = text(
    "destructive-boundary",
    "What keeps a destructive action from harm: sandbox (default) or none, which refuses it.",
);
const OUTPUT_DIR: AcceptedArg = arg(
    "output-dir",
    Format::GuestPath,
    "Directory of the guest that also gets the document.",
);
const BROWSER_URLS: AcceptedArg = text(
    "browser-urls",
    "Origins that cookies are made for, separated by commas; the site's own without it.",
);
const DIAGNOSTICS: AcceptedArg = one_of(
    "capture-diagnostics",
    &["wpdb-queries"],
    "What is recorded beside the result: queries of the database.",
);

/// What part of the site's state is meant.
macro_rules! snapshot_args {
    ($($arg:expr),* $(,)?) => {
        &[
            $($arg,)*
            crate::commands::table::text(
                "snapshot-include-wp-content",
                "Paths below wp-content to take, separated by commas; all without it.",
            ),
            crate::commands::table::text(
                "snapshot-exclude-wp-content",
                "Paths below wp-content to leave out, separated by commas.",
            ),
            crate::commands::table::text(
                "snapshot-database-tables",
                "Tables to take, separated by commas; all without it.",
            ),
            crate::commands::table::text(
                "snapshot-exclude-database-tables",
                "Tables to leave out, separated by commas.",
            ),
            crate::commands::table::text(
                "snapshot-option-names",
                "Options to take, separated by commas; all without it.",
            ),
            crate::commands::table::text(
                "snapshot-post-types",
                "Types of posts to take, separated by commas; all without it.",
            ),
        ]
    };
}
use snapshot_args;
