//! Refuses sections that this backend does not support, by path, with the reason and an
//! alternative. An empty section passes.

use super::Validator;
use crate::issue::IssueCode;
use serde_json::Value;
use std::collections::BTreeSet;
use wp_codebox_policy::{CommandDescriptor, descriptor};

fn each(validator: &mut Validator<'_>, rows: &[Value], path: &str, code: IssueCode, why: &str) {
    for index in 0..rows.len() {
        validator.report(code, format!("{path}[{index}]"), why);
    }
}

pub(super) fn check_overlays(validator: &mut Validator<'_>) {
    let recipe = validator.recipe;
    each(
        validator,
        &recipe.runtime.overlays,
        "$.runtime.overlays",
        IssueCode::UnsupportedRuntimeOverlay,
        "this backend has no overlays over the guest's WordPress; mount the code, or add it as an extra plugin",
    );
}

pub(super) fn check_dependencies(validator: &mut Validator<'_>) {
    let inputs = &validator.recipe.inputs;
    each(
        validator,
        &inputs.workspace_preloads,
        "$.inputs.workspace_preloads",
        IssueCode::UnsupportedWorkspacePreload,
        "this backend does not fetch repositories; check them out beforehand and add them as workspaces",
    );
    for list in ["components", "providers"] {
        let rows = inputs
            .component_manifest
            .as_ref()
            .and_then(|m| m.get(list))
            .and_then(Value::as_array);
        each(
            validator,
            rows.map_or(&[], Vec::as_slice),
            &format!("$.inputs.component_manifest.{list}"),
            IssueCode::UnsupportedComponentManifest,
            "this backend does not load component manifests; list the components in inputs.extra_plugins",
        );
    }
    each(
        validator,
        &inputs.dependency_overlays,
        "$.inputs.dependency_overlays",
        IssueCode::UnsupportedDependencyOverlay,
        "this backend does not replace a plugin's packages; provide the plugin with the required package",
    );
}

pub(super) fn check_fixtures(validator: &mut Validator<'_>) {
    let inputs = &validator.recipe.inputs;
    each(
        validator,
        &inputs.fixture_databases,
        "$.inputs.fixtureDatabases",
        IssueCode::UnsupportedFixtureDatabase,
        "the guest's database is SQLite and cannot import a MySQL dump; use inputs.siteSeeds or a step",
    );
    names(validator, &inputs.fixture_users, "$.inputs.fixtureUsers");
    each(
        validator,
        &inputs.fixture_users,
        "$.inputs.fixtureUsers",
        IssueCode::UnsupportedFixtureUser,
        "this backend creates no users beforehand; create them in workflow.before with wordpress.wp-cli",
    );
    names(validator, &inputs.user_sessions, "$.inputs.userSessions");
    needs_command(
        validator,
        &inputs.user_sessions,
        "$.inputs.userSessions",
        IssueCode::UnsupportedUserSession,
        "wordpress.session",
    );
    names(validator, &inputs.browser_actors, "$.inputs.browserActors");
    let sessions: BTreeSet<_> = inputs
        .user_sessions
        .iter()
        .filter_map(|row| row.get("name").and_then(Value::as_str))
        .collect();
    for (index, row) in inputs.browser_actors.iter().enumerate() {
        let session = row
            .get("userSession")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !sessions.contains(session) {
            validator.report(
                IssueCode::InvalidReference,
                format!("$.inputs.browserActors[{index}].userSession"),
                "inputs.userSessions has no session of this name; add one, or correct the name",
            );
        }
    }
    needs_command(
        validator,
        &inputs.browser_actors,
        "$.inputs.browserActors",
        IssueCode::UnsupportedBrowserActor,
        "wordpress.browser-actions",
    );
}

/// Reports each of `rows` if the backend does not support `command`, which the rows require.
fn needs_command(
    validator: &mut Validator<'_>,
    rows: &[Value],
    path: &str,
    code: IssueCode,
    command: &str,
) {
    let why = match descriptor(command).map(CommandDescriptor::refusal) {
        Some(None) => return,
        Some(Some(reason)) => format!("an entry here requires the command {command}: {reason}"),
        None => format!(
            "an entry here requires the command {command}, which this backend does not have"
        ),
    };
    each(validator, rows, path, code, &why);
}

fn names(validator: &mut Validator<'_>, rows: &[Value], path: &str) {
    let mut seen = BTreeSet::new();
    for (index, row) in rows.iter().enumerate() {
        let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
        if !seen.insert(name) {
            validator.report(
                IssueCode::DuplicateName,
                format!("{path}[{index}].name"),
                "another entry has this name; use a distinct name",
            );
        }
    }
}

pub(super) fn check_services(validator: &mut Validator<'_>) {
    let inputs = &validator.recipe.inputs;
    each(
        validator,
        &inputs.services,
        "$.inputs.services",
        IssueCode::UnsupportedRuntimeServiceProvider,
        "this backend runs no services beside the guest, and the guest cannot reach containers; use a service fake in PHP",
    );
}

pub(super) fn check_packages(validator: &mut Validator<'_>) {
    let inputs = &validator.recipe.inputs;
    each(
        validator,
        &inputs.source_packages,
        "$.inputs.sourcePackages",
        IssueCode::UnsupportedSourcePackage,
        "this backend does not build source packages; mount the directory instead",
    );
    each(
        validator,
        &inputs.agent_bundles,
        "$.inputs.agent_bundles",
        IssueCode::UnsupportedAgentBundle,
        "agents are imported for the agent of a recipe; list them in agent-bundles-json of the step wp-codebox.agent-sandbox-run",
    );
    for (section, value) in [
        ("inherit", &inputs.inherit),
        ("inheritance", &inputs.inheritance),
    ] {
        for list in ["connectors", "settings"] {
            let filled = value
                .as_ref()
                .and_then(|v| v.get(list))
                .and_then(Value::as_array)
                .is_some_and(|rows| !rows.is_empty());
            if filled {
                validator.report(
                    IssueCode::UnsupportedInheritance,
                    format!("$.inputs.{section}.{list}"),
                    "a recipe cannot inherit settings from a site; list secrets in inputs.secretEnv and values in inputs.runtimeEnv",
                );
            }
        }
    }
}

pub(super) fn check_experiments(validator: &mut Validator<'_>) {
    if validator.recipe.fuzz_run.is_some() {
        validator.report(
            IssueCode::UnsupportedFuzzRun,
            "$.fuzzRun",
            "this backend does not run fuzz cases; write the cases as steps",
        );
    }
    if validator.recipe.adversarial_campaigns.is_some() {
        validator.report(
            IssueCode::UnsupportedAdversarialCampaign,
            "$.adversarialCampaigns",
            "this backend does not run adversarial campaigns; write the cases as steps",
        );
    }
}
