//! Commands that open the working guest's site in a browser, which runs in a separate guest.

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

/// Creates the row of a command that is declared but not supported.
const fn missing(id: &'static str, description: &'static str, reason: &'static str) -> Row {
    Row::new(id, Browser, Handler::Unsupported { reason }, description)
}

const NO_EDITOR: &str = "the block editor is opened by wordpress.browser-actions like any page of wp-admin, and not judged beyond its assertions";

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
    "When a page is there: domcontentloaded, load, networkidle, duration or selector:….",
);
const DURATION: AcceptedArg = duration("duration", "How long to stay on the page.");
const CAPTURE: AcceptedArg = text("capture", "What is kept, separated by commas.");
const PRE_SCRIPT: AcceptedArg = text(
    "pre-page-script",
    "JavaScript that runs before the page's own.",
);
const SCRIPT: AcceptedArg = text("script", "JavaScript that runs in the page.");
const VIEWPORT: AcceptedArg = arg("viewport", Format::Viewport, "Size of the page in pixels.");
const DEVICE: AcceptedArg = text("device", "Name of a device that is imitated.");
const LOCALE: AcceptedArg = text("locale", "Language of the browser, like en-GB.");
const TIMEZONE: AcceptedArg = text("timezone", "Time zone of the browser, like Europe/Berlin.");
const USER_AGENT: AcceptedArg = text("user-agent", "User agent that the browser names.");
const PERMISSIONS: AcceptedArg = text("permissions", "Permissions of pages, separated by commas.");
const LATITUDE: AcceptedArg = number("geolocation-latitude", -90, 90, "Degrees north.");
const LONGITUDE: AcceptedArg = number("geolocation-longitude", -180, 180, "Degrees east.");
const ACCURACY: AcceptedArg = number("geolocation-accuracy", 0, 1_000_000, "Accuracy in metres.");
const AUTH: AcceptedArg = text(
    "auth",
    "How the browser is logged in: none (default) or wp-admin.",
);
const AUTH_USER: AcceptedArg = integer(
    "auth-user-id",
    1,
    i64::MAX,
    "Id of the user it is logged in as.",
);
const STORAGE_STATE: AcceptedArg = text(
    "storage-state",
    "Name of a session, guest path of its storage state, or the state as JSON.",
);
const STEP_TIMEOUT: AcceptedArg = duration("step-timeout", "Longest time of one step.");
const TIMEOUT: AcceptedArg = duration("timeout", "Longest time of the whole command.");
const ALLOW_HOST: AcceptedArg = text("allow-host", "Host that pages may reach.").repeatable();
const BLOCK_HOST: AcceptedArg = text("block-host", "Host that pages may not reach.").repeatable();
const NETWORK_POLICY: AcceptedArg = text("network-policy", "What pages may reach beside the site.");
const STEPS: AcceptedArg = list(
    "steps-json",
    "Steps as a JSON list: navigate, click, fill, type, press, select, check, uncheck, hover, scroll, waitFor, expect, screenshot, evaluate.",
);
const FAULTS: AcceptedArg = json("transport-faults-json", "Requests that are made to fail.");
const ENVIRONMENT: AcceptedArg = object(
    "browser-environment-json",
    "Environment of the browser as one object.",
);
const SCALE: AcceptedArg = number("device-scale-factor", 0, 10, "Device pixels per pixel.");
const MOBILE: AcceptedArg = flag("is-mobile", "Whether a mobile device is imitated.");
const TOUCH: AcceptedArg = flag("has-touch", "Whether the device has a touch screen.");
const TARGET: AcceptedArg = text(
    "target",
    "What the editor opens: post, site, widgets or url.",
);
const POST_ID: AcceptedArg = integer("post-id", 1, i64::MAX, "Post that is opened.");
const POST_TYPE: AcceptedArg = text("post-type", "Type of the post that is made and opened.");
const WAIT_SELECTOR: AcceptedArg = text("wait-selector", "Selector that must be there.");
const WAIT_TIMEOUT: AcceptedArg = duration("wait-timeout", "How long to wait for it.");

/// Arguments of commands that open one page.
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
            text("geolocation-permission", "Whether pages may ask where they are: granted or denied."),
            text("throttle", "Speed of the network that is imitated."),
            AUTH,
            AUTH_USER,
            STORAGE_STATE,
            PRE_SCRIPT,
            SCRIPT,
            text("assert", "What must hold of the page: exists:…, text:…, count:… and the like.").repeatable(),
            CAPTURE,
            text("observe", "What is observed, separated by commas."),
            flag("fail-fast", "Whether the first failure ends the command."),
            duration("stall-timeout", "Longest time without progress."),
            TIMEOUT,
            text("route-host", "Host whose requests are answered by another: FROM=TO.").repeatable(),
            text("route-host-drain", "Host whose requests are answered with nothing."),
            ALLOW_HOST,
            BLOCK_HOST,
            flag("record-external", "Whether refused requests are recorded."),
            text("preview-mode", "How the site is reached."),
            NETWORK_POLICY,
        ]
    };
}

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "wordpress.export-browser-storage-state",
        Browser,
        Handler::Program(GuestProgram::File("export-browser-storage-state.php")),
        "Gives out the storage state of a session for the browser of this sandbox.",
    )
    .args(&[
        STORAGE_STATE,
        BROWSER_URLS,
        object("user-json", "Who is logged in: {user, role}."),
        OUTPUT_DIR,
    ])
    .prints("JSON {schema, storageState, origins, cookies: [names]}")
    .schema("wp-codebox/browser-storage-state-export/v1"),
    row(
        "wordpress.browser-probe",
        "Opens a page of the site in a browser and keeps what it shows.",
    )
    .args(page_args![URL.required()])
    .prints("JSON {status, url, title, console, errors, network, assertions, artifacts}"),
    row(
        "wordpress.browser-page-load",
        "Loads a page of the site in a browser and tells how that went.",
    )
    .args(page_args![
        one_of(
            "surface",
            &["frontend", "admin"],
            "What part of the site; frontend without it."
        ),
        text("path", "Path of the site."),
        URL,
    ])
    .prints("JSON {schema, surface, url, status, title, timing, errors, artifacts}")
    .schema("wp-codebox/wordpress-page-load-result/v1"),
    row(
        "wordpress.capture-html",
        "Keeps the HTML of a page after its scripts ran.",
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
        "Does steps in a browser: open, click, type, wait, assert, capture.",
    )
    .args(&[
        URL,
        STEPS,
        json("action-corpus-json", "Actions to choose from."),
        json("adaptive-exploration-json", "How to explore by itself."),
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
            "Most elements of a snapshot.",
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
        "Does a named scenario of steps in a browser.",
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
        "Compares how two pages look.",
        "pictures are kept by wordpress.browser-probe and wordpress.browser-actions, and compared by whoever reads the bundle",
    )
        .args(&[
            text("source-url", "Page that is compared with."),
            text("candidate-url", "Page that is compared."),
            json("matrix-json", "Pages and sizes to compare."),
            text(
                "source-screenshot",
                "Picture instead of source-url, path in the guest.",
            ),
            text(
                "candidate-screenshot",
                "Picture instead of candidate-url, path in the guest.",
            ),
            text(
                "source-dom-snapshot",
                "Snapshot of the source, path in the guest.",
            ),
            text(
                "candidate-dom-snapshot",
                "Snapshot of the candidate, path in the guest.",
            ),
            text("baseline", "Picture that was kept earlier."),
            text("source-label", "Name of the source in the result."),
            text("candidate-label", "Name of the candidate in the result."),
            WAIT_FOR,
            DURATION,
            VIEWPORT,
            text("reduced-motion", "Whether pages are told to move less."),
            text("animations", "Whether animations run."),
            text("animated-media", "Whether pictures and videos move."),
            text("frozen-time", "Time that pages see."),
            text(
                "capture-style",
                "Styles that are added before a picture is taken.",
            ),
            flag(
                "block-external-requests",
                "Whether only the site itself is reached.",
            ),
            flag("full-page", "Whether the whole page is taken."),
            number("threshold", 0, 1, "How different a pixel may be."),
            flag("include-aa", "Whether smoothed edges count."),
            integer("max-regions", 1, 1_000, "Most regions that are told."),
            integer(
                "max-explanation-elements",
                1,
                10_000,
                "Most elements that are looked at.",
            ),
            integer(
                "max-explanation-candidates",
                1,
                10_000,
                "Most elements that are told.",
            ),
            text("explain-selector", "Elements that are explained.").repeatable(),
        ])
        .prints("JSON {schema, status, difference, regions, artifacts}")
        .schema("wp-codebox/visual-compare/v1"),
    Row::new(
        "wordpress.browser-actions.evaluate",
        Browser,
        Handler::Right {
            of: "wordpress.browser-actions",
        },
        "The right to run the caller's JavaScript in pages.",
    )
    .prints("Nothing: it is no command"),
    missing(
        "wordpress.editor-canvas-probe",
        "Looks at the canvas of the block editor.",
        NO_EDITOR,
    )
    .args(&[
        URL.required(),
        text("iframe-selector", "Selector of the canvas' frame."),
        text("layout-selector", "Selector of the layout."),
        text("block-selector", "Selector of blocks."),
        integer("timeout-ms", 1, 600_000, "Longest time in milliseconds."),
        CAPTURE,
        json(
            "selector-groups-json",
            "Groups of selectors that are measured.",
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
        text("artifact-prefix", "Beginning of the names of what is kept."),
    ])
    .prints("JSON {status, url, post, blocks, artifacts}"),
    missing(
        "wordpress.editor-actions",
        "Does steps in the block editor.",
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
        "Lets the block editor judge whether blocks are valid.",
        NO_EDITOR,
    )
    .args(&[
        text("content", "Serialised blocks."),
        text("content-file", "Guest path of serialised blocks."),
        TARGET,
        POST_ID,
        POST_TYPE,
        URL,
        text("validation-provider", "Who judges: the editor."),
        WAIT_SELECTOR,
        WAIT_TIMEOUT,
    ])
    .prints("JSON {schema, status, blocks: [{name, valid, issues}]}")
    .schema("wp-codebox/editor-validate-blocks/v1"),
];
