//! Validates database dumps, agent bundles and inherited connectors of a recipe.

use super::{Validator, paths};
use crate::issue::IssueCode;
use crate::model::{Recipe, ResetStrategy, SourceKind};
use crate::policy;
use std::collections::BTreeSet;
use wp_codebox_policy::{
    ComponentError, MAX_AGENT_BUNDLES, check_agent_bundles, check_secret_name,
};

/// Values of `status` of an inherited entry that the requesting site does not have or withholds.
const NOT_GIVEN: &[&str] = &["missing", "denied", "skipped", "unavailable", "not-found"];

pub(super) fn check_databases(validator: &mut Validator<'_>) {
    let mut names = BTreeSet::new();
    for (index, dump) in validator.recipe.inputs.fixture_databases.iter().enumerate() {
        let path = format!("$.inputs.fixtureDatabases[{index}]");
        if !names.insert(dump.name.as_str()) {
            validator.report(
                IssueCode::DuplicateName,
                format!("{path}.name"),
                "another entry has this name; use a distinct name",
            );
        }
        paths::check_given(
            validator,
            &format!("{path}.source"),
            &dump.source,
            SourceKind::File,
        );
        let Some(reset) = &dump.reset else {
            continue;
        };
        if reset.strategy == Some(ResetStrategy::None) && !reset.tables.is_empty() {
            validator.report(
                IssueCode::InvalidFixtureResetTable,
                format!("{path}.reset.tables"),
                "with the strategy \"none\" no table is emptied; omit tables, or set \"truncate-tables\"",
            );
        }
        let mut seen = BTreeSet::new();
        for (at, table) in reset.tables.iter().enumerate() {
            if !seen.insert(table) {
                validator.report(
                    IssueCode::InvalidFixtureResetTable,
                    format!("{path}.reset.tables[{at}]"),
                    "the table is listed twice; remove one of the entries",
                );
            }
        }
    }
}

pub(super) fn check_bundles(validator: &mut Validator<'_>) {
    let bundles = &validator.recipe.inputs.agent_bundles;
    let secrets = policy::secret_names(validator.recipe);
    let secrets: BTreeSet<&str> = secrets.iter().map(String::as_str).collect();
    if bundles.len() > MAX_AGENT_BUNDLES {
        validator.report(
            IssueCode::UnsupportedAgentBundle,
            "$.inputs.agent_bundles",
            format!("a recipe has at most {MAX_AGENT_BUNDLES} agent bundles"),
        );
        return;
    }
    for (index, bundle) in bundles.iter().enumerate() {
        let path = format!("$.inputs.agent_bundles[{index}]");
        let mut one = bundle.clone();
        if let Some(source) = &bundle.source {
            paths::check_given(
                validator,
                &format!("{path}.source"),
                source,
                SourceKind::File,
            );
            // `check_agent_bundles` requires an absolute path, but a path in a recipe may be
            // relative to the recipe.
            one.source = Some("/".to_owned());
        }
        if let Err(error) = check_agent_bundles(&[one], &secrets) {
            let (member, why) = match &error {
                ComponentError::BundleSlug { .. } => {
                    (".slug", "must be a slug: letters, digits, - and _")
                }
                ComponentError::Token { .. } => (
                    ".token_env",
                    "the secret is not listed in inputs.secretEnv; add it there",
                ),
                ComponentError::Document { .. } => (
                    ".bundle",
                    "the agent bundle is too large; put it in a file, and name the file in source",
                ),
                _ => ("", "give either source or bundle, not both"),
            };
            validator.report(
                IssueCode::InvalidAgentBundle,
                format!("{path}{member}"),
                why,
            );
        }
    }
}

pub(super) fn check_inheritance(validator: &mut Validator<'_>) {
    let Recipe { inputs, .. } = validator.recipe;
    let resolved = inputs.inheritance.as_ref();
    if let Some(wanted) = &inputs.inherit {
        for (index, name) in wanted.connectors.iter().enumerate() {
            let there = resolved.is_some_and(|r| r.connectors.iter().any(|c| c.name == *name));
            if !there {
                validator.report(
                    IssueCode::UnsupportedInheritance,
                    format!("$.inputs.inherit.connectors[{index}]"),
                    "a recipe cannot read a connector from a site: describe it in inputs.inheritance.connectors, or list its secrets in inputs.secretEnv",
                );
            }
        }
        for (index, name) in wanted.settings.iter().enumerate() {
            let there = resolved.is_some_and(|r| r.settings.iter().any(|s| s.name == *name));
            if !there {
                validator.report(
                    IssueCode::UnsupportedInheritance,
                    format!("$.inputs.inherit.settings[{index}]"),
                    "a recipe cannot read a setting from a site: seed it as an option with inputs.siteSeeds, or set it in a step",
                );
            }
        }
    }
    let Some(resolved) = resolved else {
        return;
    };
    for (index, connector) in resolved.connectors.iter().enumerate() {
        let path = format!("$.inputs.inheritance.connectors[{index}]");
        if !connector.provider_plugin_paths.is_empty() {
            validator.report(
                IssueCode::UnsupportedInheritance,
                format!("{path}.providerPluginPaths"),
                "a connector cannot add plugins to the guest; list them in inputs.extra_plugins",
            );
        }
        for (at, name) in connector.secret_env.iter().enumerate() {
            if let Err(why) = check_secret_name(name) {
                validator.report(
                    IssueCode::InvalidSecretEnv,
                    format!("{path}.secretEnv[{at}]"),
                    format!("the name of the secret is not valid: {why}"),
                );
            }
        }
    }
    for (index, setting) in resolved.settings.iter().enumerate() {
        if !NOT_GIVEN.contains(&setting.status.as_str()) {
            validator.report(
                IssueCode::UnsupportedInheritance,
                format!("$.inputs.inheritance.settings[{index}]"),
                "the recipe does not contain the value of this setting: seed it as an option with inputs.siteSeeds, or set it in a step",
            );
        }
    }
}
