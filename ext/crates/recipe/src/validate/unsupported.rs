//! Sections of the grammar that this backend has no means for: each is refused by its path,
//! with the reason and what to do instead. An empty section asks for nothing and passes.

use super::Judge;
use crate::issue::IssueCode;
use serde_json::Value;
use std::collections::BTreeSet;
use wp_codebox_policy::{CommandDescriptor, descriptor};

fn each(judge: &mut Judge<'_>, rows: &[Value], path: &str, code: IssueCode, why: &str) {
    for index in 0..rows.len() {
        judge.say(code, format!("{path}[{index}]"), why);
    }
}

pub(super) fn check_overlays(judge: &mut Judge<'_>) {
    let recipe = judge.recipe;
    each(
        judge,
        &recipe.runtime.overlays,
        "$.runtime.overlays",
        IssueCode::UnsupportedRuntimeOverlay,
        "nothing is laid over the guest's WordPress; mount the code, or bring it as an extra plugin",
    );
}

pub(super) fn check_dependencies(judge: &mut Judge<'_>) {
    let inputs = &judge.recipe.inputs;
    each(
        judge,
        &inputs.workspace_preloads,
        "$.inputs.workspace_preloads",
        IssueCode::UnsupportedWorkspacePreload,
        "repositories are not fetched; check them out beforehand and name them as workspaces",
    );
    for list in ["components", "providers"] {
        let rows = inputs
            .component_manifest
            .as_ref()
            .and_then(|m| m.get(list))
            .and_then(Value::as_array);
        each(
            judge,
            rows.map_or(&[], Vec::as_slice),
            &format!("$.inputs.component_manifest.{list}"),
            IssueCode::UnsupportedComponentManifest,
            "components of a manifest are not loaded; name them in inputs.extra_plugins",
        );
    }
    each(
        judge,
        &inputs.dependency_overlays,
        "$.inputs.dependency_overlays",
        IssueCode::UnsupportedDependencyOverlay,
        "packages of a plugin are not replaced; bring the plugin with the package it shall use",
    );
}

pub(super) fn check_fixtures(judge: &mut Judge<'_>) {
    let inputs = &judge.recipe.inputs;
    each(
        judge,
        &inputs.fixture_databases,
        "$.inputs.fixtureDatabases",
        IssueCode::UnsupportedFixtureDatabase,
        "the guest's database is SQLite and takes no dump of MySQL; use inputs.siteSeeds or a step",
    );
    names(judge, &inputs.fixture_users, "$.inputs.fixtureUsers");
    each(
        judge,
        &inputs.fixture_users,
        "$.inputs.fixtureUsers",
        IssueCode::UnsupportedFixtureUser,
        "users are not made beforehand; make them in workflow.before with wordpress.wp-cli",
    );
    names(judge, &inputs.user_sessions, "$.inputs.userSessions");
    needs_command(
        judge,
        &inputs.user_sessions,
        "$.inputs.userSessions",
        IssueCode::UnsupportedUserSession,
        "wordpress.session",
    );
    names(judge, &inputs.browser_actors, "$.inputs.browserActors");
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
            judge.say(
                IssueCode::InvalidReference,
                format!("$.inputs.browserActors[{index}].userSession"),
                "there is no session of this name in inputs.userSessions",
            );
        }
    }
    needs_command(
        judge,
        &inputs.browser_actors,
        "$.inputs.browserActors",
        IssueCode::UnsupportedBrowserActor,
        "wordpress.browser-actions",
    );
}

/// Rows that only mean something to a command: refused where the registry has it not.
fn needs_command(
    judge: &mut Judge<'_>,
    rows: &[Value],
    path: &str,
    code: IssueCode,
    command: &str,
) {
    let why = match descriptor(command).map(CommandDescriptor::refusal) {
        Some(None) => return,
        Some(Some(reason)) => format!("this needs the command {command}: {reason}"),
        None => format!("this needs the command {command}, which does not exist here"),
    };
    each(judge, rows, path, code, &why);
}

fn names(judge: &mut Judge<'_>, rows: &[Value], path: &str) {
    let mut seen = BTreeSet::new();
    for (index, row) in rows.iter().enumerate() {
        let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
        if !seen.insert(name) {
            judge.say(
                IssueCode::DuplicateName,
                format!("{path}[{index}].name"),
                "another row has this name; each needs its own",
            );
        }
    }
}

pub(super) fn check_services(judge: &mut Judge<'_>) {
    let inputs = &judge.recipe.inputs;
    each(
        judge,
        &inputs.services,
        "$.inputs.services",
        IssueCode::UnsupportedRuntimeServiceProvider,
        "no service runs next to the guest, and the guest reaches no container; use a fake in PHP",
    );
}

pub(super) fn check_packages(judge: &mut Judge<'_>) {
    let inputs = &judge.recipe.inputs;
    each(
        judge,
        &inputs.source_packages,
        "$.inputs.sourcePackages",
        IssueCode::UnsupportedSourcePackage,
        "packages of sources are not made; mount the directory instead",
    );
    each(
        judge,
        &inputs.agent_bundles,
        "$.inputs.agent_bundles",
        IssueCode::UnsupportedAgentBundle,
        "a recipe imports no agents; use an agent task for that",
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
                judge.say(
                    IssueCode::UnsupportedInheritance,
                    format!("$.inputs.{section}.{list}"),
                    "a recipe takes nothing over from a site; name secrets in inputs.secretEnv and values in inputs.runtimeEnv",
                );
            }
        }
    }
}

pub(super) fn check_experiments(judge: &mut Judge<'_>) {
    if judge.recipe.fuzz_run.is_some() {
        judge.say(
            IssueCode::UnsupportedFuzzRun,
            "$.fuzzRun",
            "fuzz cases are not run; write the cases as steps",
        );
    }
    if judge.recipe.adversarial_campaigns.is_some() {
        judge.say(
            IssueCode::UnsupportedAdversarialCampaign,
            "$.adversarialCampaigns",
            "adversarial campaigns are not run; write the cases as steps",
        );
    }
}
