//! Validates site seeds: each has a name and limits, and copies no personal data without
//! anonymisation.

use super::{Validator, paths, secrets};
use crate::issue::IssueCode;
use crate::model::{
    Bootstrap, IdStrategy, OnUnsupported, Scope, SiteSeed, SiteSeedKind, SourceKind,
};
use crate::sources::ParentSite;
use serde_json::Value;
use std::collections::BTreeSet;

/// Host name of every guest's site.
const ADDRESS: &str = "localhost";
/// Maximum length of a text in a seed's lists, e.g. of a slug, in bytes.
const MAX_TEXT: usize = 200;

pub(super) fn check(validator: &mut Validator<'_>) {
    let mut names = BTreeSet::new();
    for (index, seed) in validator.recipe.inputs.site_seeds.iter().enumerate() {
        let path = format!("$.inputs.siteSeeds[{index}]");
        if !names.insert(seed.name.as_str()) {
            validator.report(
                IssueCode::InvalidSiteSeedName,
                format!("{path}.name"),
                "another seed has this name; use a distinct name",
            );
        }
        check_source(validator, &path, seed);
        if let Some(ids) = &seed.deterministic_ids
            && ids.on_unsupported == OnUnsupported::Block
            && ids.strategy == IdStrategy::Platform
        {
            validator.report(
                IssueCode::UnsupportedDeterministicSiteSeedIds,
                format!("{path}.deterministicIds"),
                "the identifiers of another platform cannot be kept; set \"strategy\": \"numeric\", which keeps the ids of the fixture, or \"onUnsupported\": \"warn\"",
            );
        }
        if let Some(bootstrap) = &seed.bootstrap {
            check_bootstrap(validator, &format!("{path}.bootstrap"), bootstrap);
        }
        check_scopes(validator, &format!("{path}.scopes"), seed);
    }
}

fn check_source(validator: &mut Validator<'_>, path: &str, seed: &SiteSeed) {
    let at = format!("{path}.source");
    match (seed.kind, seed.source.as_deref()) {
        (SiteSeedKind::Fixture, None) => validator.report(
            IssueCode::MissingSource,
            at,
            "a fixture needs a JSON file as source",
        ),
        (SiteSeedKind::Fixture, Some(source)) => {
            paths::check_given(validator, &at, source, SourceKind::File);
        }
        (SiteSeedKind::ParentSite, Some(_)) => validator.report(
            IssueCode::InvalidSiteSeedSource,
            at,
            "the parent site is the source; omit source",
        ),
        (SiteSeedKind::ParentSite, None) if seed.format.as_deref().is_some_and(|f| f != "json") => {
            validator.report(
                IssueCode::UnsupportedSiteSeedSource,
                format!("{path}.format"),
                "the content of the parent site has no other format; omit format",
            );
        }
        (SiteSeedKind::ParentSite, None) => match validator.sources.facts().parent_site {
            ParentSite::Present => {
                if let Err(why) = validator.sources.parent_content(seed) {
                    validator.report(
                        IssueCode::UnsupportedSiteSeedSource,
                        format!("{path}.type"),
                        format!("the parent site cannot be read: {why}"),
                    );
                }
            }
            ParentSite::Absent => validator.report(
                IssueCode::UnsupportedSiteSeedSource,
                format!("{path}.type"),
                "the WordPress directory of this run is not a site: it has no wp-config.php; name a site with --wordpress, or export the content into a fixture",
            ),
        },
    }
}

fn check_bootstrap(validator: &mut Validator<'_>, path: &str, bootstrap: &Bootstrap) {
    if let Some(multisite) = &bootstrap.multisite {
        check_network(validator, &format!("{path}.multisite"), multisite);
    }
    let mut primary = 0;
    let mut seen = BTreeSet::new();
    for (index, row) in bootstrap.domains.iter().enumerate() {
        let at = format!("{path}.domains[{index}]");
        let own = row.domain.eq_ignore_ascii_case(ADDRESS);
        if !own && secrets::is_host(&row.domain).is_err() {
            validator.report(
                IssueCode::InvalidSiteSeedBootstrapDomain,
                format!("{at}.domain"),
                "must be a host name",
            );
        }
        if !seen.insert((row.domain.to_ascii_lowercase(), row.path.clone())) {
            validator.report(
                IssueCode::DuplicateName,
                &at,
                "this address is given twice; remove one of them",
            );
        }
        if row.primary == Some(true) {
            primary += 1;
            if primary > 1 {
                validator.report(
                    IssueCode::AmbiguousSiteSeedBootstrapPrimary,
                    format!("{at}.primary"),
                    "another domain is already primary; keep \"primary\" at one of them",
                );
            }
        }
    }
    let paths = bootstrap
        .multisite
        .as_ref()
        .map_or_else(Vec::new, site_paths);
    for (index, row) in bootstrap.domains.iter().enumerate() {
        let given = row.path.as_deref().unwrap_or("/").trim_matches('/');
        if !row.domain.eq_ignore_ascii_case(ADDRESS) {
            if secrets::is_host(&row.domain).is_err() {
                continue;
            }
            validator.report(
                IssueCode::UnsupportedSiteSeedMultisiteBootstrap,
                format!("{path}.domains[{index}].domain"),
                "the guest has one address, localhost; omit the domain, or set localhost",
            );
        } else if !given.is_empty() && !paths.iter().any(|path| path == given) {
            validator.report(
                IssueCode::UnmatchedSiteSeedBootstrapDomain,
                format!("{path}.domains[{index}].path"),
                "the network has no site at this path; add one to multisite.sites",
            );
        }
    }
}

/// Returns the paths of a network's further sites, without slashes at their ends.
fn site_paths(multisite: &Value) -> Vec<String> {
    let rows = multisite.get("sites").and_then(Value::as_array);
    rows.into_iter()
        .flatten()
        .filter_map(|row| row.get("path").and_then(Value::as_str))
        .map(|path| path.trim_matches('/').to_owned())
        .collect()
}

/// Validates a multisite network: the guest has one address, so its sites must differ by path.
fn check_network(validator: &mut Validator<'_>, path: &str, multisite: &Value) {
    let unable = IssueCode::UnsupportedSiteSeedMultisiteBootstrap;
    if multisite.get("install").and_then(Value::as_str) == Some("subdomain") {
        validator.report(
            unable,
            format!("{path}.install"),
            "the guest has one address, localhost: use subdirectory",
        );
    }
    let mut seen = BTreeSet::new();
    let rows = multisite.get("sites").and_then(Value::as_array);
    for (index, row) in rows.into_iter().flatten().enumerate() {
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let at = format!("{path}.sites[{index}]");
        if text("domain") != "localhost" {
            validator.report(
                unable,
                format!("{at}.domain"),
                "the guest has one address, localhost: distinguish its sites by path",
            );
        }
        let name = text("path").trim_matches('/');
        // A site whose path starts like a WordPress directory would hide that directory.
        let fits = !name.is_empty()
            && name.len() <= 60
            && !name.starts_with("wp-")
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !fits {
            validator.report(
                IssueCode::InvalidSiteSeedBootstrapPath,
                format!("{at}.path"),
                "must be one path segment of lower-case letters, digits and -, such as /shop/, that does not begin with wp-",
            );
        }
        if !seen.insert(name.to_owned()) {
            validator.report(
                IssueCode::DuplicateName,
                &at,
                "this address is given twice; remove one of them",
            );
        }
    }
}

/// For each kind of content, the members by which a seed may select rows.
const FIELDS: &[(&str, &[&str])] = &[
    ("posts", &["ids", "slugs", "postTypes", "statuses"]),
    ("terms", &["ids", "slugs", "names", "taxonomies"]),
    ("options", &["names"]),
    ("users", &["ids", "names", "roles", "anonymize"]),
    ("media", &["ids", "slugs", "includeFiles", "statuses"]),
];

fn check_scopes(validator: &mut Validator<'_>, path: &str, seed: &SiteSeed) {
    let scopes = &seed.scopes;
    let rows = [
        ("posts", &scopes.posts),
        ("terms", &scopes.terms),
        ("options", &scopes.options),
        ("users", &scopes.users),
        ("media", &scopes.media),
    ];
    let switches = scopes.active_plugins == Some(true) || scopes.active_theme == Some(true);
    if rows.iter().all(|(_, scope)| scope.is_none()) && !switches {
        validator.report(
            IssueCode::MissingSiteSeedScopes,
            path,
            "the seed selects no content; select at least one of posts, terms, options, users, media, activePlugins, activeTheme",
        );
    }
    for (kind, scope) in rows {
        if let Some(scope) = scope {
            check_scope(validator, &format!("{path}.{kind}"), kind, scope);
        }
    }
    if let Some(users) = &scopes.users
        && users.anonymize != Some(true)
    {
        validator.report(
            IssueCode::UnsafeSiteSeedUsers,
            format!("{path}.users"),
            "users can be seeded only without names and addresses: set \"anonymize\": true",
        );
    }
    if scopes
        .media
        .as_ref()
        .is_some_and(|media| media.include_files == Some(true))
    {
        validator.report(
            IssueCode::UnsafeSiteSeedMediaFiles,
            format!("{path}.media.includeFiles"),
            "media files are not seeded; stage the files that are needed",
        );
    }
}

fn check_scope(validator: &mut Validator<'_>, path: &str, kind: &str, scope: &Scope) {
    let texts = [
        ("slugs", &scope.slugs),
        ("names", &scope.names),
        ("postTypes", &scope.post_types),
        ("taxonomies", &scope.taxonomies),
        ("roles", &scope.roles),
        ("statuses", &scope.statuses),
    ];
    let accepted = FIELDS
        .iter()
        .find(|(name, _)| *name == kind)
        .map_or(&[] as &[&str], |(_, fields)| fields);
    let mut given: Vec<&str> = texts
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, _)| *name)
        .collect();
    for (name, there) in [
        ("ids", !scope.ids.is_empty()),
        ("includeFiles", scope.include_files.is_some()),
        ("anonymize", scope.anonymize.is_some()),
    ] {
        if there {
            given.push(name);
        }
    }
    for name in given {
        if !accepted.contains(&name) {
            validator.report(
                IssueCode::InvalidSiteSeedScope,
                format!("{path}.{name}"),
                format!(
                    "{kind} cannot be selected by this member; accepted are: {}, maxRecords",
                    accepted.join(", ")
                ),
            );
        }
    }
    for (name, list) in texts {
        for (index, text) in list.iter().enumerate() {
            if text.trim().is_empty() || text.len() > MAX_TEXT || text.contains(['*', '%']) {
                validator.report(
                    IssueCode::InvalidSiteSeedBound,
                    format!("{path}.{name}[{index}]"),
                    "must be a single name without wildcards",
                );
            }
        }
    }
    if kind == "options" {
        if scope.names.is_empty() {
            validator.report(
                IssueCode::UnboundedSiteSeedOptions,
                path,
                "options can be selected by name only; give names",
            );
        }
        return;
    }
    let bounded = !scope.ids.is_empty()
        || !scope.slugs.is_empty()
        || !scope.names.is_empty()
        || scope.max_records.is_some();
    if !bounded {
        validator.report(
            IssueCode::UnboundedSiteSeedScope,
            path,
            "the seed has no limit for this content; give ids, slugs, names or maxRecords (at most 100)",
        );
    }
}
