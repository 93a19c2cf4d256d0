//! Commands that open WordPress's block editor in a browser, logged in as an administrator.

use super::super::format::Format;
use super::super::model::{AcceptedArg, CommandDescriptor as Row, CommandGroup::Browser, Handler};
use super::args::{arg, duration, integer, one_of, text};
use super::browser::{STEP_TIMEOUT, TIMEOUT, URL};

const fn row(id: &'static str, description: &'static str) -> Row {
    Row::new(id, Browser, Handler::Browser, description)
}

const TARGET: AcceptedArg = one_of(
    "target",
    &["post-new", "site", "front-page"],
    "What to edit: a new post (default), the site, or its front page.",
);
const POST_ID: AcceptedArg = integer("post-id", 1, i64::MAX, "Id of the post to edit.");
const POST_TYPE: AcceptedArg = text("post-type", "Type of the new post; default post.");
const WAIT_SELECTOR: AcceptedArg = text(
    "wait-selector",
    "Selector of an element that must be visible, in the editor or its canvas.",
);
const WAIT_TIMEOUT: AcceptedArg = duration(
    "wait-timeout",
    "Timeout for opening the editor; default 30s.",
);
const CAPTURE: AcceptedArg = text(
    "capture",
    "Artifacts to store, separated by commas: steps, console, errors, html, screenshot, editor-state, editor-validity and those of other browser commands.",
);

pub(super) const ROWS: &[Row] = &[
    row(
        "wordpress.editor-canvas-probe",
        "Reports frame, layout and blocks of the block editor's canvas.",
    )
    .args(&[
        URL.required(),
        text(
            "iframe-selector",
            "Selector of the canvas' frame; default iframe[name=\"editor-canvas\"].",
        ),
        text(
            "layout-selector",
            "Selector of the layout; default .block-editor-block-list__layout.",
        ),
        text(
            "block-selector",
            "Selector of blocks; default [data-block].",
        ),
        integer("timeout-ms", 1, 600_000, "Timeout in milliseconds."),
        CAPTURE,
        arg(
            "selector-groups-json",
            Format::JsonListOrFile,
            "Groups of selectors to count: [{name, selectors}].",
        ),
    ])
    .prints("JSON {command, status, url, canvas, blocks, selectorGroups, artifacts}"),
    row(
        "wordpress.editor-open",
        "Opens the block editor and waits until it is ready.",
    )
    .args(&[
        TARGET,
        POST_ID,
        POST_TYPE,
        URL,
        WAIT_SELECTOR,
        WAIT_TIMEOUT,
        CAPTURE,
        text("artifact-prefix", "Directory of the stored artifacts, below the command's own directory."),
    ])
    .prints("JSON {command, status, url, editor, artifacts}"),
    row(
        "wordpress.editor-actions",
        "Executes steps in the block editor: insert, change and select blocks, save, and those of wordpress.browser-actions.",
    )
    .args(&[
        TARGET,
        POST_ID,
        POST_TYPE,
        URL,
        arg(
            "steps-json",
            Format::JsonListOrFile,
            "Steps as a JSON list or @path: insertBlock, setContent, selectBlock, updateBlock, removeBlock, moveBlock, setTitle, save, publish, undo, redo, validateBlocks, expectBlock, and those of wordpress.browser-actions.",
        )
        .required(),
        WAIT_SELECTOR,
        WAIT_TIMEOUT,
        STEP_TIMEOUT,
        TIMEOUT,
        CAPTURE,
    ])
    .prints("JSON {command, status, url, steps, editor, artifacts}"),
    row(
        "wordpress.editor-validate-blocks",
        "Validates blocks with the block editor's own validation.",
    )
    .args(&[
        text("content", "Serialised blocks; default: the blocks of the opened post."),
        text("content-file", "File with serialised blocks."),
        TARGET,
        POST_ID,
        POST_TYPE,
        URL,
        text("validation-provider", "Name of the validator in the result; default block-editor."),
        WAIT_SELECTOR,
        WAIT_TIMEOUT,
    ])
    .prints("JSON {schema, total_blocks, valid_blocks, invalid_blocks, validation_method, validation_provider, results: [{name, isValid, issues}]}")
    .schema("wp-codebox/editor-validate-blocks/v1"),
];
