//! Constants of `wp-config.php` and settings of PHP.

use super::{SETTINGS, scalar_text};
use crate::blueprint;
use crate::model::Recipe;
use serde_json::{Map, Value};
use wp_codebox_contracts::{Workflow, WrittenFile};

/// The setting that a command line does not take from a file.
const TIME: &str = "max_execution_time";

pub(super) fn add(recipe: &Recipe, workflow: &mut Workflow) {
    let runtime = recipe.inputs.plugin_runtime.as_ref();
    let of_runtime = runtime.iter().flat_map(|r| &r.wp_config_defines);
    let of_distribution = recipe.distribution.iter().flat_map(|d| &d.constants);
    let blueprint = recipe.runtime.blueprint.as_ref();
    let of_blueprint = blueprint.map_or_else(Map::new, |b| blueprint::blueprint(b).constants);
    let all = of_runtime.chain(of_distribution).chain(&of_blueprint);
    workflow.files.extend(settings(all));
    let Some(php) = runtime.and_then(|r| r.php.as_ref()) else {
        return;
    };
    let mut line = |name: &str, value: &str| {
        workflow.php_ini.push(format!("{name}=\"{value}\""));
    };
    if let Some(limit) = &php.memory_limit {
        line("memory_limit", limit);
    }
    for (name, value) in php.ini_entries.iter().filter(|(name, _)| *name != TIME) {
        line(name, &scalar_text(value));
    }
    // On a command line PHP begins without a limit, whatever its settings say.
    let seconds = php.max_execution_time.map(|seconds| seconds.to_string());
    let seconds = seconds.or_else(|| php.ini_entries.get(TIME).map(scalar_text));
    if let Some(seconds) = seconds {
        let line = format!("ini_set( '{TIME}', {} );\n", quoted(&seconds));
        match workflow.files.iter_mut().find(|f| f.target == SETTINGS) {
            Some(file) => file.content.push_str(&line),
            None => workflow.files.push(WrittenFile {
                target: SETTINGS.to_owned(),
                content: format!("<?php\n{line}"),
            }),
        }
    }
}

/// The file of constants; none where there are none. Of a name that comes twice the first counts.
pub(crate) fn settings<'a>(
    constants: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Option<WrittenFile> {
    let text: String = constants
        .map(|(name, value)| {
            let literal = php_literal(value);
            format!("defined( '{name}' ) || define( '{name}', {literal} );\n")
        })
        .collect();
    (!text.is_empty()).then(|| WrittenFile {
        target: SETTINGS.to_owned(),
        content: format!("<?php\n// Constants of the recipe.\n\n{text}"),
    })
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
