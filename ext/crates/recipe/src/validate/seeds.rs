//! Site seeds: bounded, named, and nothing personal as it is.

use super::{Judge, places, secrets};
use crate::issue::IssueCode;
use crate::model::{Bootstrap, OnUnsupported, Scope, SiteSeed, SiteSeedKind, SourceKind};
use crate::sources::ParentSite;
use serde_json::Value;
use std::collections::BTreeSet;

/// Longest text of a list in a scope.
const MAX_TEXT: usize = 200;

pub(super) fn check(judge: &mut Judge<'_>) {
    let mut names = BTreeSet::new();
    for (index, seed) in judge.recipe.inputs.site_seeds.iter().enumerate() {
        let path = format!("$.inputs.siteSeeds[{index}]");
        if !names.insert(seed.name.as_str()) {
            judge.say(
                IssueCode::InvalidSiteSeedName,
                format!("{path}.name"),
                "another seed has this name; each needs its own",
            );
        }
        check_source(judge, &path, seed);
        if let Some(ids) = &seed.deterministic_ids
            && ids.on_unsupported == OnUnsupported::Block
        {
            judge.say(
                IssueCode::UnsupportedDeterministicSiteSeedIds,
                format!("{path}.deterministicIds"),
                "seeded rows get ids of the guest's own; say \"onUnsupported\": \"warn\", or leave it out",
            );
        }
        if let Some(bootstrap) = &seed.bootstrap {
            check_bootstrap(judge, &format!("{path}.bootstrap"), bootstrap);
        }
        check_scopes(judge, &format!("{path}.scopes"), seed);
    }
}

fn check_source(judge: &mut Judge<'_>, path: &str, seed: &SiteSeed) {
    let at = format!("{path}.source");
    match (seed.kind, seed.source.as_deref()) {
        (SiteSeedKind::Fixture, None) => judge.say(
            IssueCode::MissingSource,
            at,
            "a fixture names a JSON file beside the recipe",
        ),
        (SiteSeedKind::Fixture, Some(source)) => {
            places::check_given(judge, &at, source, SourceKind::File);
            if seed.format.as_deref().is_some_and(|f| f != "json") {
                judge.say(
                    IssueCode::UnsupportedSiteSeedSource,
                    format!("{path}.format"),
                    "a fixture is JSON; leave format out or say \"json\"",
                );
            }
        }
        (SiteSeedKind::ParentSite, Some(_)) => judge.say(
            IssueCode::InvalidSiteSeedSource,
            at,
            "the parent site is the source; leave source out",
        ),
        (SiteSeedKind::ParentSite, None) => match judge.sources.facts().parent_site {
            ParentSite::Present => {}
            ParentSite::Absent => judge.say(
                IssueCode::UnsupportedSiteSeedSource,
                format!("{path}.type"),
                "this run has no parent site; export what is needed into a fixture",
            ),
        },
    }
}

fn check_bootstrap(judge: &mut Judge<'_>, path: &str, bootstrap: &Bootstrap) {
    if let Some(multisite) = &bootstrap.multisite {
        check_network(judge, &format!("{path}.multisite"), multisite);
    }
    let mut primary = 0;
    let mut seen = BTreeSet::new();
    for (index, row) in bootstrap.domains.iter().enumerate() {
        let at = format!("{path}.domains[{index}]");
        if secrets::is_host(&row.domain).is_err() {
            judge.say(
                IssueCode::InvalidSiteSeedBootstrapDomain,
                format!("{at}.domain"),
                "must be the name of a host",
            );
        }
        if !seen.insert((row.domain.to_ascii_lowercase(), row.path.clone())) {
            judge.say(
                IssueCode::DuplicateName,
                &at,
                "this address is given twice; leave one of them out",
            );
        }
        if row.primary == Some(true) {
            primary += 1;
            if primary > 1 {
                judge.say(
                    IssueCode::AmbiguousSiteSeedBootstrapPrimary,
                    format!("{at}.primary"),
                    "another domain is primary already",
                );
            }
        }
    }
    if !bootstrap.domains.is_empty() {
        judge.say(
            IssueCode::UnsupportedSiteSeedMultisiteBootstrap,
            format!("{path}.domains"),
            "the guest has one address of its own; leave domains out",
        );
    }
}

/// The guest has one address, so its sites differ by their paths.
fn check_network(judge: &mut Judge<'_>, path: &str, multisite: &Value) {
    let unable = IssueCode::UnsupportedSiteSeedMultisiteBootstrap;
    if multisite.get("install").and_then(Value::as_str) == Some("subdomain") {
        judge.say(
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
            judge.say(
                unable,
                format!("{at}.domain"),
                "the guest has one address, localhost: let its sites differ by their paths",
            );
        }
        let name = text("path").trim_matches('/');
        // A site there would lie over a directory of WordPress.
        let fits = !name.is_empty()
            && name.len() <= 60
            && !name.starts_with("wp-")
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !fits {
            judge.say(
                IssueCode::InvalidSiteSeedBootstrapPath,
                format!("{at}.path"),
                "must be one name of small letters, digits and -, such as /shop/, that does not begin with wp-",
            );
        }
        if !seen.insert(name.to_owned()) {
            judge.say(
                IssueCode::DuplicateName,
                &at,
                "this address is given twice; leave one of them out",
            );
        }
    }
}

/// What rows of a kind may be chosen by.
const FIELDS: &[(&str, &[&str])] = &[
    ("posts", &["ids", "slugs", "postTypes", "statuses"]),
    ("terms", &["ids", "slugs", "names", "taxonomies"]),
    ("options", &["names"]),
    ("users", &["ids", "names", "roles", "anonymize"]),
    ("media", &["ids", "slugs", "includeFiles", "statuses"]),
];

fn check_scopes(judge: &mut Judge<'_>, path: &str, seed: &SiteSeed) {
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
        judge.say(
            IssueCode::MissingSiteSeedScopes,
            path,
            "names nothing to seed; name at least one of posts, terms, options, users, media, activePlugins, activeTheme",
        );
    }
    for (kind, scope) in rows {
        if let Some(scope) = scope {
            check_scope(judge, &format!("{path}.{kind}"), kind, scope);
        }
    }
    if let Some(users) = &scopes.users
        && users.anonymize != Some(true)
    {
        judge.say(
            IssueCode::UnsafeSiteSeedUsers,
            format!("{path}.users"),
            "users come along without their names and addresses only: say \"anonymize\": true",
        );
    }
    if scopes
        .media
        .as_ref()
        .is_some_and(|media| media.include_files == Some(true))
    {
        judge.say(
            IssueCode::UnsafeSiteSeedMediaFiles,
            format!("{path}.media.includeFiles"),
            "files of media do not come along; stage the few that are needed",
        );
    }
}

fn check_scope(judge: &mut Judge<'_>, path: &str, kind: &str, scope: &Scope) {
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
            judge.say(
                IssueCode::InvalidSiteSeedScope,
                format!("{path}.{name}"),
                format!(
                    "says nothing about {kind}; accepted are: {}, maxRecords",
                    accepted.join(", ")
                ),
            );
        }
    }
    for (name, list) in texts {
        for (index, text) in list.iter().enumerate() {
            if text.trim().is_empty() || text.len() > MAX_TEXT || text.contains(['*', '%']) {
                judge.say(
                    IssueCode::InvalidSiteSeedBound,
                    format!("{path}.{name}[{index}]"),
                    "must be one name, without wildcards",
                );
            }
        }
    }
    if kind == "options" {
        if scope.names.is_empty() {
            judge.say(
                IssueCode::UnboundedSiteSeedOptions,
                path,
                "options are chosen by name; give names",
            );
        }
        return;
    }
    let bounded = !scope.ids.is_empty()
        || !scope.slugs.is_empty()
        || !scope.names.is_empty()
        || scope.max_records.is_some();
    if !bounded {
        judge.say(
            IssueCode::UnboundedSiteSeedScope,
            path,
            "has no bound; give ids, slugs, names or maxRecords (at most 100)",
        );
    }
}
