//! Constants of `wp-config.php` and settings of PHP.

use super::{SETTINGS, scalar_text};
use crate::blueprint;
use crate::model::Recipe;
use serde_json::{Map, Value};
use wp_codebox_contracts::{Workflow, WrittenFile};

pub(super) fn add(recipe: &Recipe, workflow: &mut Workflow) {
    let runtime = recipe.inputs.plugin_runtime.as_ref();
    let of_runtime = runtime.iter().flat_map(|r| &r.wp_config_defines);
    let of_distribution = recipe.distribution.iter().flat_map(|d| &d.constants);
    let mut text = String::new();
    let blueprint = recipe.runtime.blueprint.as_ref();
    let of_blueprint = blueprint.map_or_else(Map::new, |b| blueprint::blueprint(b).constants);
    for (name, value) in of_runtime.chain(of_distribution).chain(&of_blueprint) {
        let literal = php_literal(value);
        text.push_str(&format!(
            "defined( '{name}' ) || define( '{name}', {literal} );\n"
        ));
    }
    if !text.is_empty() {
        workflow.files.push(WrittenFile {
            target: SETTINGS.to_owned(),
            content: format!("<?php\n// Constants of the recipe.\n\n{text}"),
        });
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
    if let Some(seconds) = php.max_execution_time {
        line("max_execution_time", &seconds.to_string());
    }
    for (name, value) in &php.ini_entries {
        line(name, &scalar_text(value));
    }
}

/// A JSON value as PHP source, on one line.
#[must_use]
pub fn php_literal(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        // Read by PHP itself: no second way to write arrays.
        Value::Array(_) | Value::Object(_) => {
            format!("json_decode( {}, true )", quoted(&value.to_string()))
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_php_and_nothing_more() {
        for (value, php) in [
            (json!(null), "null"),
            (json!(true), "true"),
            (json!(-3), "-3"),
            (json!(1.5), "1.5"),
            (json!("a'b\\"), r"'a\'b\\'"),
            (json!("'; exit; '"), r"'\'; exit; \''"),
            (
                json!({"a": "it's"}),
                r#"json_decode( '{"a":"it\'s"}', true )"#,
            ),
        ] {
            assert_eq!(php_literal(&value), php);
        }
    }
}
