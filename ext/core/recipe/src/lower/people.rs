//! Adds steps that prepare data and people of the guest's site: database dumps, users, sessions and
//! agents. They run before the recipe's own steps.

use super::lowered::STAGED;
use super::step::plain;
use crate::model::{DatabaseReset, Recipe, ResetStrategy};
use crate::php_source::program;
use serde_json::{Value, json};
use wp_codebox_contracts::{CommandCall, StagedFile, Workflow, WorkflowStep, WrittenFile};

/// Guest program that creates users, sessions and browser actors.
const PEOPLE: &str = "fixture-people.php";

fn prepared(phase: &str, index: usize, name: &str, call: CommandCall) -> WorkflowStep {
    let mut step = plain(phase, index, call);
    step.name = Some(name.to_owned());
    step.expect_json = true;
    step
}

/// Returns which tables are emptied before an import, with defaults for omitted members.
pub(crate) fn reset(given: Option<&DatabaseReset>) -> Value {
    let strategy = given.and_then(|reset| reset.strategy);
    json!({
        "strategy": strategy.unwrap_or(ResetStrategy::TruncateTables),
        "tables": given.map(|reset| reset.tables.clone()).unwrap_or_default(),
    })
}

/// Adds one step for each database dump.
pub(super) fn add_databases(recipe: &Recipe, workflow: &mut Workflow) {
    for (index, dump) in recipe.inputs.fixture_databases.iter().enumerate() {
        let target = format!("{STAGED}/databases/{index}.sql");
        let question = json!({
            "name": dump.name, "version": dump.version, "file": target,
            "reset": reset(dump.reset.as_ref()),
        });
        workflow.staged.push(StagedFile {
            source: dump.source.clone(),
            target,
        });
        let call = program("import-database.php", &question);
        workflow
            .steps
            .push(prepared("fixture-database", index, &dump.name, call));
    }
}

/// Adds a step that creates all fixture users. Their passwords are in a file that only the guest
/// gets: the arguments of a step are part of the result and the bundle.
pub(super) fn add_users(recipe: &Recipe, workflow: &mut Workflow) {
    let users = &recipe.inputs.fixture_users;
    if users.is_empty() {
        return;
    }
    let target = format!("{STAGED}/people.json");
    let call = program(PEOPLE, &json!({ "file": target }));
    workflow.files.push(WrittenFile {
        target,
        content: json!({ "users": users }).to_string(),
    });
    workflow
        .steps
        .push(prepared("fixture-user", 0, "users", call));
}

/// Adds a step that logs the users of all sessions in. It runs after the site seeds, because a
/// seed can create a multisite network, which changes the cookies of WordPress.
pub(super) fn add_sessions(recipe: &Recipe, workflow: &mut Workflow) {
    let inputs = &recipe.inputs;
    if inputs.user_sessions.is_empty() {
        return;
    }
    let question = json!({"sessions": inputs.user_sessions, "actors": inputs.browser_actors});
    let call = program(PEOPLE, &question);
    workflow
        .steps
        .push(prepared("user-session", 0, "sessions", call));
}

/// Adds a step that imports all agent bundles with the importer of a plugin.
pub(super) fn add_bundles(recipe: &Recipe, workflow: &mut Workflow) {
    let mut bundles = recipe.inputs.agent_bundles.clone();
    if bundles.is_empty() {
        return;
    }
    for (index, bundle) in bundles.iter_mut().enumerate() {
        if let Some(source) = &mut bundle.source {
            let target = format!("{STAGED}/agents/{index}.json");
            workflow.staged.push(StagedFile {
                source: std::mem::replace(source, target.clone()),
                target,
            });
        }
    }
    let call = program("recipe-agent-bundles.php", &json!({ "bundles": bundles }));
    workflow
        .steps
        .push(prepared("agent-bundle", 0, "agents", call));
}
