//! Command line and environment of the browser in its guest.

use super::discovery::Chromium;
use std::collections::BTreeMap;
use wp_codebox_contracts::Limits;

const MIB: u64 = 1024 * 1024;

/// Resource limits of the guest in which the browser runs, independent of the limits of the guest
/// that serves the site.
pub const BROWSER_LIMITS: Limits = Limits {
    wall_clock_ms: 0,
    // The limit counts threads; a browser with one page has about a hundred.
    processes: 400,
    memory_bytes: 1536 * MIB,
    disk_bytes: 256 * MIB,
    output_bytes: MIB,
    cpu_milli: None,
};

/// Switch for the proxy: the address of the egress bridge in every guest that has network access.
const PROXY: &str = "--proxy-server=http://127.0.0.1:3128";

/// Switches that disable background traffic, prompts and persistent state.
const SWITCHES: &[&str] = &[
    "--headless=new",
    // The guest is the browser's sandbox. Chromium's own sandbox cannot create user namespaces and
    // seccomp filters in a guest.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
    "--user-data-dir=/tmp/profile",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--allow-browser-signin=false",
    "--disable-hang-monitor",
    "--disable-notifications",
    "--disable-popup-blocking",
    "--disable-print-preview",
    "--disable-search-engine-choice-screen",
    "--disable-speech-api",
    "--disable-sync",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--hide-scrollbars",
    "--lang=en-US",
    // All frames of a page share one process: cross-origin frames can be queried like any other, and
    // a page cannot create processes by adding frames.
    "--disable-site-isolation-trials",
    "--renderer-process-limit=2",
    "--disable-features=NetworkTimeServiceQuerying,AutofillServerCommunication,CertificateTransparencyComponentUpdater,DialMediaRouteProvider,InterestFeedContentSuggestions,IsolateOrigins,MediaRouter,OptimizationHints,PaintHolding,SpareRendererForSitePerProcess,Translate,site-per-process",
    // Without a process of its own for the network, the browser starts in three quarters of the time.
    "--enable-features=NetworkServiceInProcess2",
    PROXY,
    // By default Chromium bypasses the proxy for 127.0.0.1 and localhost.
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-over-https-mode=off",
    "--window-size=1280,720",
    "about:blank",
];

/// Returns program and arguments in the guest. The browser uses descriptors 3 and 4 for the
/// debugging pipe, but a guest program gets only 0, 1 and 2, so a shell redirects them.
pub fn argv(chromium: &Chromium) -> Vec<String> {
    let wrapper = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null";
    ["/bin/sh", "-c", wrapper, "browser", &chromium.program]
        .iter()
        .chain(SWITCHES)
        .map(|word| (*word).to_owned())
        .collect()
}

/// Returns the environment variables of the browser.
pub fn environment() -> BTreeMap<String, String> {
    [
        ("TZ", "UTC"),
        ("LANG", "C.UTF-8"),
        // The guest has no D-Bus daemon.
        ("DBUS_SESSION_BUS_ADDRESS", "disabled:"),
        ("DBUS_SYSTEM_BUS_ADDRESS", "disabled:"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}
