//! Commands that open the work guest's site in a browser, which runs in a separate guest.

use super::super::format::Format;
use super::super::model::{
    AcceptedArg, CommandDescriptor as Row, CommandGroup::Browser, GuestProgram, Handler,
};
use super::args::{
    BROWSER_URLS, OUTPUT_DIR, arg, duration, flag, integer, json, list, object, one_of, text,
};

const fn row(id: &'static str, description: &'static str) -> Row {
    Row::new(id, Browser, Handler::Browser, description)
}

/// Creates the row of a command that the registry lists and this backend does not support.
const fn missing(id: &'static str, description: &'static str, reason: &'static str) -> Row {
    Row::new(id, Browser, Handler::Unsupported { reason }, description)
}

const NO_EDITOR: &str = "open the block editor with wordpress.browser-actions like any page of wp-admin; the assertions of its steps are the only checks";

const fn number(
    name: &'static str,
    least: i32,
    most: i32,
    description: &'static str,
) -> AcceptedArg {
    arg(name, Format::Number { least, most }, description)
}

const URL: AcceptedArg = text("url", "Page: a path of the site, or a URL of it.");
const WAIT_FOR: AcceptedArg = text(
    "wait-for",
    "Condition under which a page counts as loaded: domcontentloaded, load, networkidle, duration or selector:….",
);
const DURATION: AcceptedArg = duration("duration", "How long to stay on the page.");
const CAPTURE: AcceptedArg = text("capture", "Artifacts to store, separated by commas.");
const PRE_SCRIPT: AcceptedArg = text(
    "pre-page-script",
    "JavaScript that runs before the page's own.",
);
const SCRIPT: AcceptedArg = text("script", "JavaScript that runs in the page.");
const VIEWPORT: AcceptedArg = arg("viewport", Format::Viewport, "Size of the page in pixels.");
const DEVICE: AcceptedArg = text("device", "Name of a device to emulate.");
const LOCALE: AcceptedArg = text("locale", "Language of the browser, like en-GB.");
const TIMEZONE: AcceptedArg = text("timezone", "Time zone of the browser, like Europe/Berlin.");
const USER_AGENT: AcceptedArg = text("user-agent", "User agent of the browser.");
const PERMISSIONS: AcceptedArg = text("permissions", "Permissions of pages, separated by commas.");
const LATITUDE: AcceptedArg = number("geolocation-latitude", -90, 90, "Degrees north.");
const LONGITUDE: AcceptedArg = number("geolocation-longitude", -180, 180, "Degrees east.");
const ACCURACY: AcceptedArg = number("geolocation-accuracy", 0, 1_000_000, "Accuracy in metres.");
const AUTH: AcceptedArg = text("auth", "Login of the browser: none (default) or wp-admin.");
const AUTH_USER: AcceptedArg = integer("auth-user-id", 1, i64::MAX, "Id of the user to log in.");
const STORAGE_STATE: AcceptedArg = text(
    "storage-state",
    "Name of a session, guest path of its storage state, or the state as JSON.",
);
const STEP_TIMEOUT: AcceptedArg = duration("step-timeout", "Timeout of one step.");
const TIMEOUT: AcceptedArg = duration("timeout", "Timeout of the whole command.");
const ALLOW_HOST: AcceptedArg =
    text("allow-host", "Host to which pages may send requests.").repeatable();
const BLOCK_HOST: AcceptedArg =
    text("block-host", "Host to which pages may not send requests.").repeatable();
const NETWORK_POLICY: AcceptedArg = text(
    "network-policy",
    "Network access of pages in addition to the site.",
);
const STEPS: AcceptedArg = list(
    "steps-json",
    "Steps as a JSON list: navigate, click, fill, type, press, select, check, uncheck, hover, scroll, waitFor, expect, screenshot, evaluate.",
);
const FAULTS: AcceptedArg = json(
    "transport-faults-json",
    "Requests that the browser fails on purpose.",
);
const ENVIRONMENT: AcceptedArg = object(
    "browser-environment-json",
    "Environment of the browser as one object.",
);
const SCALE: AcceptedArg = number("device-scale-factor", 0, 10, "Device pixels per CSS pixel.");
const MOBILE: AcceptedArg = flag("is-mobile", "Whether to emulate a mobile device.");
const TOUCH: AcceptedArg = flag("has-touch", "Whether the device has a touch screen.");
const TARGET: AcceptedArg = text(
    "target",
    "Target of the editor: post, site, widgets or url.",
);
const POST_ID: AcceptedArg = integer("post-id", 1, i64::MAX, "Id of the post to open.");
const POST_TYPE: AcceptedArg = text("post-type", "Post type of a new post to create and open.");
const WAIT_SELECTOR: AcceptedArg = text("wait-selector", "Selector of an element that must exist.");
const WAIT_TIMEOUT: AcceptedArg = duration("wait-timeout", "Timeout of waiting for the element.");

/// Arguments of each command that opens a single page.
macro_rules! page_args {
    ($($first:expr),* $(,)?) => {
        &[
            $($first,)*
            WAIT_FOR,
            DURATION,
            one_of("browser", &["chromium"], "The browser: chromium."),
            text(
                "profile",
                "Profile: desktop-chrome, mobile-chrome or low-end-mobile-slow-4g.",
            ),
            arg(
                "profiles",
                Format::ListOf(&["desktop-chrome", "mobile-chrome", "low-end-mobile-slow-4g"]),
                "Profiles, one after the other.",
            ),
            DEVICE,
            VIEWPORT,
            LOCALE,
            TIMEZONE,
            USER_AGENT,
            PERMISSIONS,
            LATITUDE,
            LONGITUDE,
            ACCURACY,
            text("geolocation-permission", "Geolocation permission of pages: granted or denied."),
            text("throttle", "Network speed to emulate."),
            AUTH,
            AUTH_USER,
            STORAGE_STATE,
            PRE_SCRIPT,
            SCRIPT,
            text("assert", "Assertion about the page: exists:…, text:…, count:… and others.").repeatable(),
            CAPTURE,
            text("observe", "Data to observe, separated by commas."),
            flag("fail-fast", "Whether the first failure ends the command."),
            duration("stall-timeout", "Timeout without progress."),
            TIMEOUT,
            text("route-host", "Host whose requests are redirected to another host: FROM=TO.").repeatable(),
            text("route-host-drain", "Host whose requests get an empty response."),
            ALLOW_HOST,
            BLOCK_HOST,
            flag("record-external", "Whether refused requests are recorded."),
            text("preview-mode", "Route from the browser to the site."),
            NETWORK_POLICY,
        ]
    };
}

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "wordpress.export-browser-storage-state",
        Browser,
        Handler::Program(GuestProgram::File("export-browser-storage-state.php")),
        "Exports the storage state of a session for the browser of this sandbox.",
    )
    .args(&[
        STORAGE_STATE,
        BROWSER_URLS,
        object("user-json", "User to log in: {user, role}."),
        OUTPUT_DIR,
    ])
    .prints("JSON {schema, storageState, origins, cookies: [names]}")
    .schema("wp-codebox/browser-storage-state-export/v1"),
    row(
        "wordpress.browser-probe",
        "Opens a page of the site in a browser and stores the rendered result.",
    )
    .args(page_args![URL.required()])
    .prints("JSON {status, url, title, console, errors, network, assertions, artifacts}"),
    row(
        "wordpress.browser-page-load",
        "Loads a page of the site in a browser and reports status, timing and errors.",
    )
    .args(page_args![
        one_of(
            "surface",
            &["frontend", "admin"],
            "Part of the site; default frontend."
        ),
        text("path", "Path of the site."),
        URL,
    ])
    .prints("JSON {schema, surface, url, status, title, timing, errors, artifacts}")
    .schema("wp-codebox/wordpress-page-load-result/v1"),
    row(
        "wordpress.capture-html",
        "Stores the HTML of a page after its scripts ran.",
    )
    .args(&[
        URL.required(),
        WAIT_FOR,
        DURATION,
        PRE_SCRIPT,
        SCRIPT,
        CAPTURE,
        NETWORK_POLICY,
        ALLOW_HOST,
        BLOCK_HOST,
    ])
    .prints("JSON {status, url, title, bytes, artifacts}"),
    row(
        "wordpress.browser-actions",
        "Executes steps in a browser: open, click, type, wait, assert, capture.",
    )
    .args(&[
        URL,
        STEPS,
        json("action-corpus-json", "Actions to choose from."),
        json("adaptive-exploration-json", "Settings for automatic exploration."),
        STEP_TIMEOUT,
        TIMEOUT,
        AUTH,
        AUTH_USER,
        STORAGE_STATE,
        FAULTS,
        CAPTURE,
        integer(
            "max-dom-snapshot-elements",
            1,
            100_000,
            "Maximum number of elements in a snapshot.",
        ),
        ENVIRONMENT,
        DEVICE,
        USER_AGENT,
        PERMISSIONS,
        VIEWPORT,
        SCALE,
        MOBILE,
        TOUCH,
        LOCALE,
        TIMEZONE,
        LATITUDE,
        LONGITUDE,
        ACCURACY,
    ])
    .prints("JSON {status, steps: [{index, kind, status}], artifacts}"),
    row(
        "wordpress.browser-scenario",
        "Executes a named scenario of steps in a browser.",
    )
    .args(&[
        object("scenario-json", "The scenario."),
        URL,
        STEPS,
        CAPTURE,
        PRE_SCRIPT,
        VIEWPORT,
        DEVICE,
        LOCALE,
        AUTH,
        AUTH_USER,
        STEP_TIMEOUT,
        TIMEOUT,
        STORAGE_STATE,
        FAULTS,
        ENVIRONMENT,
        USER_AGENT,
        PERMISSIONS,
        SCALE,
        MOBILE,
        TOUCH,
        TIMEZONE,
        LATITUDE,
        LONGITUDE,
        ACCURACY,
    ])
    .prints("JSON {status, scenario, steps, artifacts}"),
    missing(
        "wordpress.visual-compare",
        "Compares the appearance of two pages.",
        "use the screenshots of wordpress.browser-probe and wordpress.browser-actions; the reader of the bundle compares them",
    )
        .args(&[
            text("source-url", "URL of the reference page."),
            text("candidate-url", "URL of the page to compare."),
            json("matrix-json", "Pages and sizes to compare."),
            text(
                "source-screenshot",
                "Guest path of an image to use in place of source-url.",
            ),
            text(
                "candidate-screenshot",
                "Guest path of an image to use in place of candidate-url.",
            ),
            text(
                "source-dom-snapshot",
                "Snapshot of the source, path in the guest.",
            ),
            text(
                "candidate-dom-snapshot",
                "Snapshot of the candidate, path in the guest.",
            ),
            text("baseline", "Image stored by an earlier run."),
            text("source-label", "Name of the source in the result."),
            text("candidate-label", "Name of the candidate in the result."),
            WAIT_FOR,
            DURATION,
            VIEWPORT,
            text("reduced-motion", "Whether pages see prefers-reduced-motion."),
            text("animations", "Whether animations run."),
            text("animated-media", "Whether animated images and videos play."),
            text("frozen-time", "Clock time that pages see."),
            text(
                "capture-style",
                "CSS added before the screenshot.",
            ),
            flag(
                "block-external-requests",
                "Whether requests to other hosts are blocked.",
            ),
            flag("full-page", "Whether the screenshot covers the whole page."),
            number("threshold", 0, 1, "Maximum difference of a pixel."),
            flag("include-aa", "Whether anti-aliased pixels count as differences."),
            integer("max-regions", 1, 1_000, "Maximum number of regions in the result."),
            integer(
                "max-explanation-elements",
                1,
                10_000,
                "Maximum number of elements to inspect.",
            ),
            integer(
                "max-explanation-candidates",
                1,
                10_000,
                "Maximum number of elements in the result.",
            ),
            text("explain-selector", "Elements to explain in the result.").repeatable(),
        ])
        .prints("JSON {schema, status, difference, regions, artifacts}")
        .schema("wp-codebox/visual-compare/v1"),
    Row::new(
        "wordpress.browser-actions.evaluate",
        Browser,
        Handler::Right {
            of: "wordpress.browser-actions",
        },
        "Permission to run the caller's JavaScript in pages.",
    )
    .prints("Nothing: it is not a command"),
    missing(
        "wordpress.editor-canvas-probe",
        "Inspects the canvas of the block editor.",
        NO_EDITOR,
    )
    .args(&[
        URL.required(),
        text("iframe-selector", "Selector of the canvas' frame."),
        text("layout-selector", "Selector of the layout."),
        text("block-selector", "Selector of blocks."),
        integer("timeout-ms", 1, 600_000, "Timeout in milliseconds."),
        CAPTURE,
        json(
            "selector-groups-json",
            "Groups of selectors to measure.",
        ),
    ])
    .prints("JSON {status, url, canvas, blocks, artifacts}"),
    missing(
        "wordpress.editor-open",
        "Opens the block editor and waits until it is ready.",
        NO_EDITOR,
    )
    .args(&[
        TARGET,
        POST_ID,
        POST_TYPE,
        URL,
        WAIT_SELECTOR,
        WAIT_TIMEOUT,
        CAPTURE,
        text("artifact-prefix", "Name prefix of stored artifacts."),
    ])
    .prints("JSON {status, url, post, blocks, artifacts}"),
    missing(
        "wordpress.editor-actions",
        "Executes steps in the block editor.",
        NO_EDITOR,
    )
    .args(&[
        TARGET,
        POST_ID,
        POST_TYPE,
        URL,
        STEPS.required(),
        WAIT_SELECTOR,
        WAIT_TIMEOUT,
        STEP_TIMEOUT,
        TIMEOUT,
        CAPTURE,
    ])
    .prints("JSON {status, steps, blocks, artifacts}"),
    missing(
        "wordpress.editor-validate-blocks",
        "Validates blocks with the block editor.",
        NO_EDITOR,
    )
    .args(&[
        text("content", "Serialised blocks."),
        text("content-file", "Guest path of serialised blocks."),
        TARGET,
        POST_ID,
        POST_TYPE,
        URL,
        text("validation-provider", "Validator: the editor."),
        WAIT_SELECTOR,
        WAIT_TIMEOUT,
    ])
    .prints("JSON {schema, status, blocks: [{name, valid, issues}]}")
    .schema("wp-codebox/editor-validate-blocks/v1"),
];
