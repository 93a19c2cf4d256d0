//! Commands that open the work guest's site in a browser, which runs in a separate guest.

use super::super::format::Format;
use super::super::model::{
    AcceptedArg, CommandDescriptor as Row, CommandGroup::Browser, GuestProgram, Handler,
};
use super::args::{
    BROWSER_URLS, EXPECT_STATUS, OUTPUT_DIR, arg, duration, flag, integer, json, object, one_of,
    text,
};

const fn row(id: &'static str, description: &'static str) -> Row {
    Row::new(id, Browser, Handler::Browser, description)
}

const fn number(
    name: &'static str,
    least: i32,
    most: i32,
    description: &'static str,
) -> AcceptedArg {
    arg(name, Format::Number { least, most }, description)
}

pub(super) const URL: AcceptedArg = text("url", "Page: a path of the site, or a URL of it.");
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
const AUTH: AcceptedArg = text(
    "auth",
    "Login of the browser: none (default) or wordpress-admin; wp-admin means the same.",
);
const AUTH_USER: AcceptedArg = integer("auth-user-id", 1, i64::MAX, "Id of the user to log in.");
const STORAGE_STATE: AcceptedArg = text(
    "storage-state",
    "The state as JSON or @path, name of a session, or guest path of its storage state.",
);
pub(super) const STEP_TIMEOUT: AcceptedArg = duration("step-timeout", "Timeout of one step.");
pub(super) const TIMEOUT: AcceptedArg = duration("timeout", "Timeout of the whole command.");
const ALLOW_HOST: AcceptedArg =
    text("allow-host", "Host to which pages may send requests.").repeatable();
const BLOCK_HOST: AcceptedArg =
    text("block-host", "Host to which pages may not send requests.").repeatable();
const NETWORK_POLICY: AcceptedArg = text(
    "network-policy",
    "Network access in addition to the site: policy (default; record and allow mean the same) or deny (block).",
);
const STEPS: AcceptedArg = arg(
    "steps-json",
    Format::JsonListOrFile,
    "Steps as a JSON list or @path: navigate, click, fill, type, press, select, check, uncheck, hover, drag, scroll, waitFor, expect, assertObservation, screenshot, capture, evaluate.",
);
const FAULTS: AcceptedArg = arg(
    "transport-faults-json",
    Format::JsonObjectOrFile,
    "Requests that the browser fails on purpose.",
);
const ENVIRONMENT: AcceptedArg = arg(
    "browser-environment-json",
    Format::JsonObjectOrFile,
    "Environment of the browser as one object: viewport, device, locale, timezone and others.",
);
const GEOLOCATION_PERMISSION: AcceptedArg = text(
    "geolocation-permission",
    "Geolocation permission of pages: granted, denied, prompt or default.",
);
const SCALE: AcceptedArg = number("device-scale-factor", 0, 10, "Device pixels per CSS pixel.");
const MOBILE: AcceptedArg = flag("is-mobile", "Whether to emulate a mobile device.");
const TOUCH: AcceptedArg = flag("has-touch", "Whether the device has a touch screen.");
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
            GEOLOCATION_PERMISSION,
            text("throttle", "Network speed to emulate: none, low-end-mobile-slow-4g and others."),
            AUTH,
            AUTH_USER,
            STORAGE_STATE,
            PRE_SCRIPT,
            SCRIPT,
            text("assert", "Assertion about the page: exists:…, text:…, count:…, no-php-errors and others.").repeatable(),
            EXPECT_STATUS,
            CAPTURE,
            text("observe", "Selectors of elements to report, separated by commas."),
            flag("fail-fast", "Whether the first failure ends the command."),
            duration("stall-timeout", "Maximum time without a browser event while a page loads."),
            TIMEOUT,
            text("route-host", "Host whose requests go to the site.").repeatable(),
            text("route-host-drain", "How to end requests of routed hosts: required or advisory."),
            ALLOW_HOST,
            BLOCK_HOST,
            flag("record-external", "Whether refused requests are recorded."),
            text("preview-mode", "Route from the browser to the site: local."),
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
    .prints("JSON {status, url, title, console, errors, phpErrors, network, denied, assertions, artifacts}"),
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
    .prints("JSON {schema, surface, url, status, title, timing, errors, phpErrors, denied, artifacts}")
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
        EXPECT_STATUS,
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
        json(
            "adaptive-exploration-json",
            "Settings for automatic exploration.",
        ),
        EXPECT_STATUS,
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
        GEOLOCATION_PERMISSION,
    ])
    .prints("JSON {status, steps: [{index, kind, status}], errors, phpErrors, denied, artifacts}"),
    row(
        "wordpress.browser-scenario",
        "Executes a named scenario of steps in a browser.",
    )
    .args(&[
        object("scenario-json", "The scenario."),
        URL,
        STEPS,
        CAPTURE,
        EXPECT_STATUS,
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
        GEOLOCATION_PERMISSION,
    ])
    .prints("JSON {status, scenario, steps, artifacts}"),
    row(
        "wordpress.visual-compare",
        "Compares two pages, or a page and a stored screenshot, pixel by pixel.",
    )
    .args(&[
        text(
            "source-url",
            "Reference page: a path of the site, or a URL.",
        ),
        text(
            "candidate-url",
            "Page to compare: a path of the site, or a URL.",
        ),
        object("matrix-json", "Several comparisons in one command."),
        text(
            "source-screenshot",
            "PNG in place of source-url: a path in the guest, or a file of this run.",
        ),
        text(
            "candidate-screenshot",
            "PNG in place of candidate-url: a path in the guest, or a file of this run.",
        ),
        text(
            "source-dom-snapshot",
            "DOM snapshot of the page in source-screenshot: a path in the guest, or a file of this run.",
        ),
        text(
            "candidate-dom-snapshot",
            "DOM snapshot of the page in candidate-screenshot: a path in the guest, or a file of this run.",
        ),
        text("baseline", "Means the same as source-screenshot."),
        text("source-label", "Name of the source in the result."),
        text("candidate-label", "Name of the candidate in the result."),
        WAIT_FOR,
        DURATION,
        VIEWPORT,
        flag(
            "reduced-motion",
            "Whether pages see prefers-reduced-motion; default true.",
        ),
        one_of(
            "animations",
            &["freeze", "allow"],
            "Whether animations are stopped; default freeze.",
        ),
        one_of(
            "animated-media",
            &["allow", "first-frame"],
            "Whether videos and animated images show only their first frame; default allow.",
        ),
        text(
            "frozen-time",
            "Time that pages see, like 2026-01-31T12:00:00Z.",
        ),
        text("capture-style", "CSS that is added before the screenshot."),
        flag(
            "block-external-requests",
            "Whether requests to other hosts than the site are blocked; default false.",
        ),
        flag(
            "full-page",
            "Whether the screenshot shows the whole page; default false.",
        ),
        number(
            "threshold",
            0,
            1,
            "Difference of colour from which a pixel counts; default 0.1.",
        ),
        flag(
            "include-aa",
            "Whether anti-aliased pixels count; default false.",
        ),
        integer(
            "max-regions",
            1,
            1_000,
            "Maximum number of regions; default 20.",
        ),
        integer(
            "max-explanation-elements",
            1,
            10_000,
            "Maximum number of elements to inspect in a page; default 1000.",
        ),
        integer(
            "max-explanation-candidates",
            1,
            10_000,
            "Maximum number of elements per region; default 5.",
        ),
        text(
            "explain-selector",
            "Selector of elements whose position the result compares.",
        )
        .repeatable(),
    ])
    .prints("JSON {schema, command, status, summary, artifacts}")
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
];
