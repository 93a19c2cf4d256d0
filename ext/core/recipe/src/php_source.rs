//! Generates PHP source for the guest: constants, literals and calls of guest programs.

use serde_json::Value;
use wp_codebox_contracts::{CommandCall, WrittenFile};

/// Guest directory of the PHP programs that this product provides.
const PROGRAMS: &str = "/opt/codebox/guest";
/// Guest path of the PHP file that defines the recipe's constants; the guest's `wp-config.php`
/// includes it.
pub(crate) const SETTINGS: &str = "/run/codebox/staged/recipe/settings.php";

/// Returns the PHP file that defines the constants; `None` if there are none. If several constants
/// have the same name, the first value applies.
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

/// Returns a JSON value as a PHP expression. Objects become associative arrays.
#[must_use]
pub fn php_literal(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        // PHP decodes the JSON itself, so this module needs no array syntax.
        Value::Array(_) | Value::Object(_) => {
            format!("json_decode( {}, true )", quoted(&value.to_string()))
        }
    }
}

pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Returns the command that runs the PHP program `name` in the guest with `question` as its input.
pub(crate) fn program(name: &str, question: &Value) -> CommandCall {
    let code = format!(
        "code=$codebox_question = {}; require rtrim( dirname( ABSPATH ), '/' ) . '{PROGRAMS}/{name}';",
        php_literal(question)
    );
    CommandCall {
        command: "wordpress.run-php".to_owned(),
        args: vec![code],
    }
}

/// Returns whether the recipe may define a constant of this name: a valid name that the guest's
/// own `wp-config.php` does not define.
pub(crate) fn is_define(name: &str) -> bool {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.len() <= 100;
    let upper = name.to_ascii_uppercase();
    let ours = upper.starts_with("DB_")
        || upper.starts_with("WP_CODEBOX_")
        || upper.starts_with("CODEBOX_")
        || upper.ends_with("_SALT")
        || matches!(
            upper.as_str(),
            "ABSPATH"
                | "WPINC"
                | "WP_CONTENT_DIR"
                | "WP_CONTENT_URL"
                | "WP_PLUGIN_DIR"
                | "WPMU_PLUGIN_DIR"
                | "AUTH_KEY"
                | "SECURE_AUTH_KEY"
                | "LOGGED_IN_KEY"
                | "NONCE_KEY"
                | "WP_HOME"
                | "WP_SITEURL"
                | "MULTISITE"
                | "FS_METHOD"
                | "AUTOMATIC_UPDATER_DISABLED"
                | "DISABLE_WP_CRON"
                | "TRUE"
                | "FALSE"
                | "NULL"
        );
    plain && !ours
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_values_become_php_literals_without_executable_code() {
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
