//! Named sets of rules. Data only.
//!
//! Each preset reads: every rule is `GET` and `HEAD` on port 443. Rules with methods do
//! not hold inside a tunnel, so clients that only know `CONNECT` (npm, Composer) need
//! `tls: terminate` beside a preset; base-URL requests need nothing.

/// The preset that is no set of hosts: it opens the bridge's way to the run's own model,
/// wherever the host says that is, and nothing else.
pub(super) const MODEL: &str = "model";

/// One rule of a preset: host and path prefixes; no prefix means every path.
pub(super) struct PresetRule {
    pub host: &'static str,
    pub paths: &'static [&'static str],
}

/// What each preset may do.
pub(super) const METHODS: &[&str] = &["GET", "HEAD"];
/// Where each preset may do it.
pub(super) const PORT: u16 = 443;

const fn rule(host: &'static str, paths: &'static [&'static str]) -> PresetRule {
    PresetRule { host, paths }
}

/// Every preset by name.
pub(super) const PRESETS: &[(&str, &[PresetRule])] = &[
    // Looking up and downloading plugins, themes, translations and core. The update checks
    // are POST requests that list what a site has installed; they are not in it.
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
    // Package metadata. The archives are where each package says, mostly at GitHub: add
    // `github-readonly`. Download counters are POST and not in it.
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
    // Metadata and archives are on one host. A scoped name has an encoded slash
    // (`/@scope%2fname`), so no path prefix can be asked for. Audits are POST and not in it.
    ("npm", &[rule("registry.npmjs.org", &[])]),
    // Files, archives, releases and the public parts of the interface. `git clone` over
    // HTTPS sends POST and is not in it; `git archive`s and release files are.
    (
        "github-readonly",
        &[
            rule("github.com", &[]),
            rule("api.github.com", &["/repos/", "/rate_limit"]),
            rule("codeload.github.com", &[]),
            rule("raw.githubusercontent.com", &[]),
            // Where release files are redirected to.
            rule("objects.githubusercontent.com", &[]),
            rule("release-assets.githubusercontent.com", &[]),
        ],
    ),
];
