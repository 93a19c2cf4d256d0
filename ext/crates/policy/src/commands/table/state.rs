//! Commands that read and change one object of the site.

use super::super::model::{
    AcceptedArg, CommandDescriptor as Row, CommandGroup::State, GuestProgram, Handler,
};
use super::args::{
    BODY, CAPABILITY, DESTRUCTIVE, EXPECT_STATUS, HEADERS, METHOD, MUTATES, SESSION, USER, flag,
    integer, list, object, one_of, text,
};

const ADMIN_USER: AcceptedArg = text(
    "user",
    "Login, e-mail address or id of the user it acts as; without it the first administrator.",
);
const PAGE_LOAD: &str = "wp-codebox/wordpress-page-load-result/v1";
const BLOCK: &str = "wp-codebox/wordpress-block-exercise-result/v1";
const ACTION: &str = "wp-codebox/wordpress-execution-action-result/v1";

const fn row(id: &'static str, file: &'static str, description: &'static str) -> Row {
    Row::new(
        id,
        State,
        Handler::Program(GuestProgram::File(file)),
        description,
    )
}

const ARGUMENTS: AcceptedArg = list("args-json", "Arguments as a JSON list.");
const PATH: AcceptedArg = text("path", "Path of the site.");
const URL: AcceptedArg = text("url", "URL of the site instead of a path.");
const QUERY: AcceptedArg = object("query-json", "Parameters of the query.");
const FIELDS: AcceptedArg = object("body-json", "Fields of the body.");
const BLOCK_NAME: AcceptedArg = text("block-name", "Name of the block type.").required();
const ATTRIBUTES: AcceptedArg = object("attrs-json", "Attributes of the block.");
const CONTENT: AcceptedArg = text("content", "Inner HTML of the block.");
const MARKUP: AcceptedArg = text(
    "markup",
    "Serialised block instead of name, attributes and content.",
);
const RECORD: AcceptedArg = flag(
    "capture-diagnostics",
    "Whether messages of PHP and queries are told.",
);
const SOURCE: AcceptedArg = text("source", "Where the block comes from, told in the result.");

pub(super) const ROWS: &[Row] = &[
    row(
        "wordpress.server-page-load",
        "server-page-load.php",
        "Loads a page of the guest's site through its server, without a browser.",
    )
    .args(&[
        one_of(
            "surface",
            &["frontend", "admin", "login", "rest"],
            "What part of the site; frontend without it.",
        ),
        PATH,
        URL,
        METHOD,
        HEADERS,
        BODY,
        EXPECT_STATUS,
    ])
    .prints("JSON {schema, surface, mode, request, status, outcome, headers, title, body, durationMs, php, queries, costs}")
    .schema(PAGE_LOAD),
    row(
        "wordpress.invoke-hook",
        "invoke-hook.php",
        "Fires a hook of the site and records what it did.",
    )
    .args(&[
        text("hook", "Name of the hook.").required(),
        ARGUMENTS,
        MUTATES,
        CAPABILITY,
        DESTRUCTIVE,
    ])
    .prints("JSON {schema, action, status, output, mutation, capability, destructiveBoundary}")
    .schema(ACTION),
    row(
        "wordpress.invoke-cron-event",
        "invoke-cron-event.php",
        "Runs, schedules or removes an event of the site's cron and records what it did.",
    )
    .args(&[
        text("hook", "Name of the event's hook.").required(),
        one_of(
            "operation",
            &["run", "schedule", "unschedule"],
            "What to do; run without it.",
        ),
        ARGUMENTS,
        integer(
            "timestamp",
            0,
            253_402_300_799,
            "When, in seconds since 1970; now without it.",
        ),
        MUTATES,
        CAPABILITY,
        DESTRUCTIVE,
    ])
    .prints("JSON {schema, action, status, output, mutation, capability, destructiveBoundary}")
    .schema(ACTION),
    row(
        "wordpress.simulated-admin-page-load",
        "simulated-admin-page-load.php",
        "Renders a screen of wp-admin in process, as a user. A fatal error fails it, unless expect-status is given.",
    )
    .args(&[PATH, URL, METHOD, QUERY, FIELDS, ADMIN_USER, SESSION, RECORD, EXPECT_STATUS])
    .prints("JSON {schema, surface, mode, request, actedAs, status, outcome, headers, title, body, php, queries, costs, hooks}")
    .schema(PAGE_LOAD),
    row(
        "wordpress.simulated-frontend-page-load",
        "simulated-frontend-page-load.php",
        "Renders a page of the front end in process.",
    )
    .args(&[PATH, URL, METHOD, QUERY, FIELDS, USER, SESSION, RECORD, EXPECT_STATUS])
    .prints("JSON {schema, surface, mode, request, actedAs, status, outcome, headers, title, body, php, queries, costs, hooks}")
    .schema(PAGE_LOAD),
    row(
        "wordpress.crud-operation",
        "crud-operation.php",
        "Creates, reads, updates, deletes or lists posts, terms, users, comments or options.",
    )
    .args(&[object(
        "operation-json",
        "The operation: {operation: create|read|update|delete|list, type, id?, data?, query?, limit?}.",
    )
    .required()])
    .prints("JSON {schema, status, operation, type, id?, item?, previous?, items?, truncated?}")
    .schema("wp-codebox/wordpress-crud-result/v1"),
    row(
        "wordpress.block-render",
        "block-render.php",
        "Renders a block as the front end would.",
    )
    .args(&[BLOCK_NAME, ATTRIBUTES, CONTENT, MARKUP, SOURCE])
    .prints("JSON {schema, status, block, registered, dynamic, html, bytes, sha256, queries}")
    .schema(BLOCK),
    row(
        "wordpress.block-exercise",
        "block-exercise.php",
        "Serialises, parses and renders a block, and tells what does not fit.",
    )
    .args(&[
        BLOCK_NAME,
        ATTRIBUTES,
        CONTENT,
        MARKUP,
        one_of(
            "mode",
            &["render", "serialize", "round-trip", "all"],
            "What is tried; all without it.",
        ),
        SOURCE,
    ])
    .prints("JSON {schema, status, block, registered, dynamic, checks, markup, html, bytes, sha256}")
    .schema(BLOCK),
    row(
        "wordpress.db-operation",
        "db-operation.php",
        "Runs one bounded operation on the guest's database.",
    )
    .args(&[object(
        "operation-json",
        "The operation: {operation: select|explain|insert|update|delete, table?, sql?, values?, where?, columns?, limit?}.",
    )
    .required()])
    .prints("JSON {schema, status, operation, table?, rows?, rowCount?, truncated?, affectedRows?, insertId?}")
    .schema("wp-codebox/wordpress-db-result/v1"),
    row(
        "wordpress.admin-action",
        "admin-action.php",
        "Fires an action of wp-admin (admin-post, admin-ajax, a screen's form) as a user.",
    )
    .args(&[
        object(
            "action-json",
            "The action: {kind: post|ajax, action, method, params, user, session, nonce}.",
        )
        .required(),
        object(
            "destructive-boundary-json",
            "What keeps it from harm: {kind: sandbox|none}; sandbox without it.",
        ),
    ])
    .prints("JSON {schema, action, status, httpStatus, redirect, body, destructiveBoundary}")
    .schema("wp-codebox/wordpress-admin-action-result/v1"),
];
