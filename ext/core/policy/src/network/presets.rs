//! Network presets: named sets of network rules, as data.
//!
//! Presets only allow reading: every rule allows `GET` and `HEAD` on port 443. Rules with methods
//! do not apply inside a TLS tunnel, so clients that only support `CONNECT` (npm, Composer) need
//! `tls: terminate` in addition to a preset. Clients that use a URL of the egress bridge itself as
//! base URL need only the preset.

/// Name of the preset without hosts. It only opens the egress bridge's route to the run's own
/// model, at the address in the host's settings.
pub(super) const MODEL: &str = "model";

/// One rule of a preset: host and path prefixes; no prefix means every path.
pub(super) struct PresetRule {
    pub host: &'static str,
    pub paths: &'static [&'static str],
}

/// HTTP methods that every rule of a preset allows.
pub(super) const METHODS: &[&str] = &["GET", "HEAD"];
/// Port that every rule of a preset allows.
pub(super) const PORT: u16 = 443;

const fn rule(host: &'static str, paths: &'static [&'static str]) -> PresetRule {
    PresetRule { host, paths }
}

/// Every preset with its rules, except [`MODEL`], which has none.
pub(super) const PRESETS: &[(&str, &[PresetRule])] = &[
    // Search and download of plugins, themes, translations and core. Not included: update
    // checks, which are POST requests that list a site's installed software.
    (
        "wporg-readonly",
        &[
            rule(
                "api.wordpress.org",
                &[
                    "/core/",
                    "/plugins/",
                    "/themes/",
                    "/translations/",
                    "/patterns/",
                ],
            ),
            rule(
                "downloads.wordpress.org",
                &["/plugin/", "/theme/", "/release/", "/translation/"],
            ),
        ],
    ),
    // Metadata of packages. The archives are at a URL that each package names, mostly on GitHub:
    // add `github-readonly`. Not included: download counters, which are POST requests.
    (
        "packagist",
        &[
            rule("repo.packagist.org", &["/packages.json", "/p/", "/p2/"]),
            rule(
                "packagist.org",
                &["/packages.json", "/search.json", "/packages/"],
            ),
        ],
    ),
    // Metadata and archives of packages, both on one host. A scoped package name contains an
    // encoded slash (`/@scope%2fname`), so the rule has no path prefix. Not included: audits,
    // which are POST requests.
    ("npm", &[rule("registry.npmjs.org", &[])]),
    // Files, archives, releases and public endpoints of the API. Not included: `git clone` over
    // HTTPS, which sends POST requests.
    (
        "github-readonly",
        &[
            rule("github.com", &[]),
            rule("api.github.com", &["/repos/", "/rate_limit"]),
            rule("codeload.github.com", &[]),
            rule("raw.githubusercontent.com", &[]),
            // GitHub redirects downloads of release files to these two hosts.
            rule("objects.githubusercontent.com", &[]),
            rule("release-assets.githubusercontent.com", &[]),
        ],
    ),
];
