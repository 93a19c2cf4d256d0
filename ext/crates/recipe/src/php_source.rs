//! PHP that a recipe writes for its guest: constants, literals and calls of programs.

use serde_json::Value;
use wp_codebox_contracts::{CommandCall, WrittenFile};

/// Where programs of the guest lie.
const PROGRAMS: &str = "/opt/codebox/guest";
/// Constants of the recipe; the guest's `wp-config.php` reads it.
pub(crate) const SETTINGS: &str = "/run/codebox/staged/recipe/settings.php";

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

pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// PHP that gives a program of the guest its question.
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

/// Whether a constant of `wp-config.php` may have this name: it is one, and not the guest's own.
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
