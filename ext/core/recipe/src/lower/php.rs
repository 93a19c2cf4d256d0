//! Adds the recipe's `wp-config.php` constants and PHP settings to the run request.

use super::lowered::STAGED;
use crate::blueprint;
use crate::layout;
use crate::model::{FakeLoad, Recipe};
use crate::overlay;
use crate::php_source::{SETTINGS, quoted, settings};
use crate::sources::Sources;
use serde_json::{Map, Value};
use wp_codebox_contracts::{Workflow, WrittenFile};

/// Setting that command-line PHP resets to "no limit" after it has read its configuration file.
const TIME: &str = "max_execution_time";

pub(super) fn add(recipe: &Recipe, sources: &dyn Sources, workflow: &mut Workflow) {
    let runtime = recipe.inputs.plugin_runtime.as_ref();
    let of_runtime = runtime.iter().flat_map(|r| &r.wp_config_defines);
    let of_distribution = recipe.distribution.iter().flat_map(|d| &d.constants);
    let blueprint = recipe.runtime.blueprint.as_ref();
    let of_blueprint =
        blueprint.map_or_else(Map::new, |b| blueprint::in_recipe(b, sources).constants);
    let all = of_runtime.chain(of_distribution).chain(&of_blueprint);
    workflow.files.extend(settings(all));
    let fakes = recipe.distribution.iter().flat_map(|d| &d.service_fakes);
    let early = fakes
        .enumerate()
        .filter(|(_, fake)| fake.load == Some(FakeLoad::PreBootstrap))
        .map(|(index, _)| layout::staged_fake(index));
    let preludes = (0..overlay::preludes(recipe).len()).map(overlay::staged_prelude);
    for file in preludes.chain(early) {
        // The path is relative to the file with the settings, which is in the same directory.
        let below = file.strip_prefix(STAGED).unwrap_or(&file);
        append(workflow, &format!("require_once __DIR__ . '{below}';\n"));
    }
    let Some(php) = runtime.and_then(|r| r.php.as_ref()) else {
        return;
    };
    let mut line = |name: &str, value: &str| {
        workflow.php_ini.push(format!("{name}=\"{value}\""));
    };
    if let Some(limit) = &php.memory_limit {
        line("memory_limit", limit);
    }
    // PHP reads its configuration file, and so these settings, before it runs WordPress.
    for (name, value) in php.bootstrap_ini_entries.iter().filter(|(n, _)| *n != TIME) {
        line(name, &scalar_text(value));
    }
    let (mut late, own): (Vec<_>, Vec<_>) = php
        .ini_entries
        .iter()
        .filter(|(name, _)| *name != TIME)
        .partition(|(name, _)| php.bootstrap_ini_entries.contains_key(*name));
    for (name, value) in own {
        line(name, &scalar_text(value));
    }
    // A setting in both lists gets its value of `ini_entries` later: in the PHP file that
    // `wp-config.php` requires.
    late.sort_by_key(|(name, _)| *name);
    for (name, value) in late {
        let (name, value) = (quoted(name), quoted(&scalar_text(value)));
        append(workflow, &format!("ini_set( {name}, {value} );\n"));
    }
    // Command-line PHP ignores this setting in a configuration file, so PHP code sets it.
    let seconds = php.max_execution_time.map(|seconds| seconds.to_string());
    let seconds = seconds.or_else(|| php.ini_entries.get(TIME).map(scalar_text));
    if let Some(seconds) = seconds {
        let line = format!("ini_set( '{TIME}', {} );\n", quoted(&seconds));
        append(workflow, &line);
    }
}

/// Appends a line to the PHP file that the guest's `wp-config.php` requires.
fn append(workflow: &mut Workflow, line: &str) {
    match workflow.files.iter_mut().find(|f| f.target == SETTINGS) {
        Some(file) => file.content.push_str(line),
        None => workflow.files.push(WrittenFile {
            target: SETTINGS.to_owned(),
            content: format!("<?php\n{line}"),
        }),
    }
}

/// Returns a scalar as text, as PHP would print it; for environment variables and PHP settings.
pub(super) fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "1".to_owned(),
        Value::Bool(false) | Value::Null => String::new(),
        other => other.to_string(),
    }
}
