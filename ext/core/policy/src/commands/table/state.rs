//! Commands that read and change one object of the site.

use super::super::model::{
    AcceptedArg, CommandDescriptor as Row, CommandGroup::State, GuestProgram, Handler,
};
use super::args::{
    BODY, CAPABILITY, DESTRUCTIVE, EXPECT_STATUS, HEADERS, METHOD, MUTATES, PAGE_DIAGNOSTICS,
    SESSION, USER, integer, list, object, one_of, text,
};

const ADMIN_USER: AcceptedArg = text(
    "user",
    "Login, e-mail address or id of the user that the command acts as; default: the first administrator.",
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
const URL: AcceptedArg = text("url", "URL of the site, in place of a path.");
const QUERY: AcceptedArg = object("query-json", "Parameters of the query.");
const FIELDS: AcceptedArg = object("body-json", "Fields of the body.");
const BLOCK_NAME: AcceptedArg = text("block-name", "Name of the block type.").required();
const ATTRIBUTES: AcceptedArg = object("attrs-json", "Attributes of the block.");
const CONTENT: AcceptedArg = text("content", "Inner HTML of the block.");
const MARKUP: AcceptedArg = text(
    "markup",
    "Serialised block, in place of name, attributes and content.",
);
const SOURCE: AcceptedArg = text("source", "Source of the block, copied into the result.");

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
            "Part of the site; default frontend.",
        ),
        PATH,
        URL,
        METHOD,
        HEADERS,
        BODY,
        EXPECT_STATUS,
    ])
    .prints("JSON {schema, command, status, mode, source, target, http, redirect?, title, body, notices, errors, performance, diagnostics}")
    .schema(PAGE_LOAD),
    row(
        "wordpress.invoke-hook",
        "invoke-hook.php",
        "Fires a hook of the site and records its effects.",
    )
    .args(&[
        text("hook", "Name of the hook.").required(),
        ARGUMENTS,
        MUTATES,
        CAPABILITY,
        DESTRUCTIVE,
    ])
    .prints("JSON {schema, command, status, target, safety, result, output, diagnostics}")
    .schema(ACTION),
    row(
        "wordpress.invoke-cron-event",
        "invoke-cron-event.php",
        "Runs, schedules or removes a cron event of the site and records its effects.",
    )
    .args(&[
        text("hook", "Name of the event's hook.").required(),
        one_of(
            "operation",
            &["run-hook", "schedule-single", "run", "schedule", "unschedule"],
            "Action; default run-hook, which leaves the schedule alone; run also unschedules the event.",
        ),
        ARGUMENTS,
        integer(
            "timestamp",
            0,
            253_402_300_799,
            "Unix time of the event; default: now.",
        ),
        MUTATES,
        CAPABILITY,
        DESTRUCTIVE,
    ])
    .prints("JSON {schema, command, status, target, safety, result, output, diagnostics}")
    .schema(ACTION),
    row(
        "wordpress.simulated-admin-page-load",
        "simulated-admin-page-load.php",
        "Renders a wp-admin screen in process, as a user.",
    )
    .args(&[PATH, URL, METHOD, QUERY, FIELDS, ADMIN_USER, SESSION, PAGE_DIAGNOSTICS, EXPECT_STATUS])
    .prints("JSON {schema, command, status, mode, source, target, identity, http, redirect?, title, body, notices, errors, performance, diagnostics}")
    .schema(PAGE_LOAD),
    row(
        "wordpress.simulated-frontend-page-load",
        "simulated-frontend-page-load.php",
        "Renders a page of the front end in process.",
    )
    .args(&[PATH, URL, METHOD, QUERY, FIELDS, USER, SESSION, PAGE_DIAGNOSTICS, EXPECT_STATUS])
    .prints("JSON {schema, command, status, mode, source, target, identity, http, redirect?, title, body, notices, errors, performance, diagnostics}")
    .schema(PAGE_LOAD),
    row(
        "wordpress.crud-operation",
        "crud-operation.php",
        "Creates, reads, updates, deletes or lists posts, terms, users, comments, options, metadata or REST resources.",
    )
    .args(&[object(
        "operation-json",
        "The operation: {operation: create|read|update|delete|list, resource: {kind, type?, id?, route?, identifiers?}, data?, query?, options?, metadata?}.",
    )
    .required()])
    .prints("JSON {schema, command, status, operation, id?, item?, previous?, items?, truncated?, effects, errors}")
    .schema("wp-codebox/wordpress-crud-result/v1"),
    row(
        "wordpress.block-render",
        "block-render.php",
        "Renders a block as on the front end.",
    )
    .args(&[BLOCK_NAME, ATTRIBUTES, CONTENT, MARKUP, SOURCE])
    .prints("JSON {schema, command, status, blockName, attrs, input, mode, source, render, notices, errors, performance}")
    .schema(BLOCK),
    row(
        "wordpress.block-exercise",
        "block-exercise.php",
        "Serialises, parses and renders a block, and reports mismatches.",
    )
    .args(&[
        BLOCK_NAME,
        ATTRIBUTES,
        CONTENT,
        MARKUP,
        one_of(
            "mode",
            &[
                "render",
                "serialize-parse",
                "editor-insert-save",
                "serialize",
                "round-trip",
                "all",
            ],
            "Checks to run; default: all. editor-insert-save inserts, validates and saves the block in the block editor of a browser.",
        ),
        SOURCE,
    ])
    .prints("JSON {schema, command, status, blockName, attrs, input, mode, source, serialized, parsed, validation, render?, checks, notices, errors}")
    .schema(BLOCK),
    row(
        "wordpress.db-operation",
        "db-operation.php",
        "Runs one bounded operation on the guest's database.",
    )
    .args(&[object(
        "operation-json",
        "The operation: {operation: schema|read|inspect|query-summary|write, resource?: {table?, identifiers?}, query?: {columns?, where?, values?, limit?, sql?}, options?}.",
    )
    .required()])
    .prints("JSON {schema, command, status, operation, table?, item?, items?, rowCount?, truncated?, affectedRows?, insertId?}")
    .schema("wp-codebox/wordpress-db-result/v1"),
    row(
        "wordpress.admin-action",
        "admin-action.php",
        "Runs an action of wp-admin as a user: of admin-post, of admin-ajax, or a hook.",
    )
    .args(&[
        object(
            "action-json",
            "The action: {family: admin-hook|ajax|admin-post, action, method, params, args, user, session, nonce}.",
        )
        .required(),
        object(
            "destructive-boundary-json",
            "What isolates a destructive action, in the caller's words; {kind: none} refuses the action.",
        ),
    ])
    .prints("JSON {schema, command, status, action, disposableDestructiveBoundary, familyDescriptors, executed, httpStatus?, redirect?, body?, errors}")
    .schema("wp-codebox/wordpress-admin-action-result/v1"),
];
