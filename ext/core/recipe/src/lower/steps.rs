//! Adds the steps of all phases, in execution order, and the files to collect to the run request.

use super::lowered::STAGED;
use super::people;
use super::step::plain;
use crate::agent_step;
use crate::copies;
use crate::layout::{self, PlacedStep};
use crate::model::{
    IdStrategy, LoadAs, Metadata, OnUnsupported, Recipe, SiteSeed, SiteSeedKind, Step,
};
use crate::packages;
use crate::php_source::program;
use crate::sources::Sources;
use serde_json::{Value, json};
use wp_codebox_contracts::{
    CollectedFile, OnFailure, StagedFile, Workflow, WorkflowStep, WrittenFile,
};

pub(super) fn add(recipe: &Recipe, sources: &dyn Sources, workflow: &mut Workflow) {
    let copies = copies::copies(recipe, sources);
    if !copies.is_empty() {
        let mut step = plain("mounts", 0, copies::copy_call(&copies));
        step.name = Some("files".to_owned());
        workflow.steps.push(step);
    }
    workflow
        .steps
        .extend(crate::blueprint::steps(recipe, sources));
    workflow.steps.extend(activation(recipe, sources));
    let runtime = recipe.inputs.plugin_runtime.as_ref();
    workflow.steps.extend(placed(&layout::setup(recipe)));
    for (index, probe) in runtime.iter().flat_map(|r| &r.health_probes).enumerate() {
        let mut step = plain("health-probe", index, layout::health_call(probe));
        step.name = Some(probe.name.clone());
        workflow.steps.push(step);
    }
    people::add_databases(recipe, workflow);
    people::add_users(recipe, workflow);
    add_seeds(recipe, sources, workflow);
    people::add_sessions(recipe, workflow);
    people::add_bundles(recipe, workflow);
    let dumps = recipe.distribution.iter().flat_map(|d| &d.setup_artifacts);
    for (index, dump) in dumps.enumerate() {
        let question = json!({"file": layout::staged_dump(index)});
        let mut step = plain(
            "distribution-setup",
            index,
            program("run-sql.php", &question),
        );
        step.name = Some(dump.name.clone());
        step.metadata = dump.metadata.clone().unwrap_or_default();
        workflow.steps.push(step);
    }
    let probes = recipe.distribution.iter().flat_map(|d| &d.startup_probes);
    for (index, probe) in probes.enumerate() {
        let mut step = plain("startup-probe", index, layout::startup_call(probe));
        step.name = Some(probe.name.clone());
        step.metadata = probe.metadata.clone().unwrap_or_default();
        workflow.steps.push(step);
    }
    workflow.steps.extend(placed(&layout::workflow(recipe)));
    for (probe, place) in recipe.probes.iter().zip(layout::probes(recipe)) {
        let mut step = of(&place);
        step.name = Some(probe.name.clone());
        step.expect_json = probe.expect_json.unwrap_or(false);
        if probe.allow_failure == Some(true) && step.on_failure == OnFailure::Stop {
            step.on_failure = OnFailure::Allow;
        }
        for (name, value) in probe.metadata.iter().flatten() {
            step.metadata.insert(name.clone(), value.clone());
        }
        workflow.steps.push(step);
    }
    collect(recipe, workflow);
}

/// Returns what a failure of the step means for the run. `advisory` takes precedence over
/// `allowFailure`.
fn on_failure(step: &Step) -> OnFailure {
    match (step.advisory, step.allow_failure) {
        (Some(true), _) => OnFailure::Advise,
        (_, Some(true)) => OnFailure::Allow,
        (_, _) => OnFailure::Stop,
    }
}

fn of(place: &PlacedStep<'_>) -> WorkflowStep {
    let call = place.call();
    let timeout_ms = agent_step::timeout_ms(place.step, &call);
    let mut step = plain(place.phase.as_str(), place.index, call);
    step.timeout_ms = timeout_ms;
    step.on_failure = on_failure(place.step);
    step.continuation = place.step.continuation.as_ref().map(|c| json!(c));
    step.metadata = place.step.metadata.clone().unwrap_or_default();
    step
}

fn placed(places: &[PlacedStep<'_>]) -> Vec<WorkflowStep> {
    places.iter().map(of).collect()
}

/// Returns a step that activates the plugins not excluded by `activate: false`. The guest program
/// orders them by their `Requires Plugins` headers.
fn activation(recipe: &Recipe, sources: &dyn Sources) -> Option<WorkflowStep> {
    let files: Vec<String> = packages::plugins(recipe)
        .iter()
        .filter(|(_, plugin)| plugin.activate.unwrap_or(true))
        .map(|(_, plugin)| layout::place_plugin(plugin, sources))
        .filter(|placed| placed.load_as == LoadAs::Plugin)
        .map(|placed| placed.file)
        .collect();
    if files.is_empty() {
        return None;
    }
    let call = program("activate-plugins.php", &json!({"plugins": files}));
    let mut step = plain("activate", 0, call);
    step.name = Some("plugins".to_owned());
    step.expect_json = true;
    Some(step)
}

fn add_seeds(recipe: &Recipe, sources: &dyn Sources, workflow: &mut Workflow) {
    for (index, seed) in recipe.inputs.site_seeds.iter().enumerate() {
        add_network(seed, workflow);
        let target = format!("{STAGED}/seeds/{index}.json");
        let question = json!({
            "name": seed.name, "file": target, "scopes": seed.scopes, "ids": seed_ids(seed),
            "format": seed.format.as_deref().unwrap_or("json"),
            "absent": match seed.kind {
                SiteSeedKind::Fixture => "fail",
                SiteSeedKind::ParentSite => "skip",
            },
        });
        match (seed.kind, &seed.source) {
            (SiteSeedKind::Fixture, Some(source)) => workflow.staged.push(StagedFile {
                source: source.clone(),
                target,
            }),
            // Validation has refused a fixture without a source.
            (SiteSeedKind::Fixture, None) => continue,
            // Validation has refused a parent site that cannot be read.
            (SiteSeedKind::ParentSite, _) => workflow.files.push(WrittenFile {
                target,
                content: sources.parent_content(seed).unwrap_or_default(),
            }),
        }
        let mut step = plain("seed", index, program("seed-site.php", &question));
        step.name = Some(seed.name.clone());
        step.expect_json = true;
        workflow.steps.push(step);
    }
}

/// Returns which ids the rows of a seed get, as a value of the guest's `Seed_Ids`: always those of
/// the fixture, those of the fixture if they are free, or ids that WordPress assigns.
fn seed_ids(seed: &SiteSeed) -> &'static str {
    match &seed.deterministic_ids {
        Some(ids) if ids.strategy == IdStrategy::Numeric => match ids.on_unsupported {
            OnUnsupported::Block => "required",
            OnUnsupported::Warn => "preferred",
        },
        Some(_) | None => "assigned",
    }
}

/// Adds two steps that run the same program before the step of the seed itself. The first creates
/// the multisite network. The second creates the other sites of the network: only a process that
/// started after the first step loads WordPress as a network.
fn add_network(seed: &SiteSeed, workflow: &mut Workflow) {
    let wanted = seed.bootstrap.as_ref().and_then(|b| b.multisite.as_ref());
    let Some(wanted) = wanted.filter(|m| m.get("enabled") == Some(&json!(true))) else {
        return;
    };
    let rows = wanted.get("sites").and_then(Value::as_array);
    let sites: Vec<Value> = rows
        .into_iter()
        .flatten()
        .map(|row| {
            let path = row.get("path").and_then(Value::as_str).unwrap_or_default();
            let name = path.trim_matches('/');
            let title = row.get("title").and_then(Value::as_str).unwrap_or(name);
            json!({"path": format!("/{name}/"), "title": title})
        })
        .collect();
    let question = json!({"name": seed.name, "title": seed.name, "sites": sites});
    for index in 0..2 {
        let mut step = plain("network", index, program("make-network.php", &question));
        step.name = Some(seed.name.clone());
        step.expect_json = true;
        workflow.steps.push(step);
    }
}

fn collect(recipe: &Recipe, workflow: &mut Workflow) {
    let artifacts = &recipe.artifacts;
    for row in &artifacts.paths {
        let mut typed = Metadata::new();
        if let Some(metadata) = &row.metadata {
            typed.insert("metadata".to_owned(), json!(metadata));
        }
        workflow.collect.push(CollectedFile {
            name: row.name.clone(),
            path: row.path.clone(),
            required: row.required.unwrap_or(true),
            parse_json: row.parse_json.unwrap_or(false),
            typed,
        });
    }
    for row in &artifacts.typed {
        let mut typed = Metadata::from_iter([("type".to_owned(), json!(row.kind))]);
        for (name, value) in [
            ("contentType", row.content_type.as_ref().map(|v| json!(v))),
            ("payloadSchema", row.payload_schema.clone()),
            ("metadata", row.metadata.as_ref().map(|v| json!(v))),
        ] {
            if let Some(value) = value {
                typed.insert(name.to_owned(), value);
            }
        }
        workflow.collect.push(CollectedFile {
            name: row.name.clone(),
            path: row.path.clone(),
            required: row.required.unwrap_or(true),
            // A schema for the file's content implies that the content is parsed as JSON.
            parse_json: row.parse_json.unwrap_or(false) || row.payload_schema.is_some(),
            typed,
        });
    }
    let fakes = recipe.distribution.iter().flat_map(|d| &d.service_fakes);
    for (index, fake) in fakes.enumerate() {
        if let Some(path) = &fake.side_effects_artifact {
            workflow.collect.push(CollectedFile {
                name: format!("service-fake-{index}"),
                path: layout::in_wordpress(path),
                required: false,
                parse_json: false,
                typed: Metadata::from_iter([("fake".to_owned(), json!(fake.name))]),
            });
        }
    }
    for (index, row) in recipe
        .distribution
        .iter()
        .flat_map(|d| &d.artifacts)
        .enumerate()
    {
        let mut typed = Metadata::new();
        for (name, value) in [
            ("kind", row.kind.as_ref().map(|v| json!(v))),
            ("metadata", row.metadata.as_ref().map(|v| json!(v))),
        ] {
            if let Some(value) = value {
                typed.insert(name.to_owned(), value);
            }
        }
        workflow.collect.push(CollectedFile {
            name: format!("distribution-{index}"),
            path: layout::in_wordpress(&row.path),
            required: false,
            parse_json: false,
            typed,
        });
    }
}
