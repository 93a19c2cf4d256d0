//! What a part of a blueprint is converted to, and the commands that steps become.

use super::package::Package;
use crate::php_source::php_literal;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::CommandCall;

/// Input of the conversion of steps (the theme), and its results besides commands.
pub(super) struct Scope<'a> {
    /// Default theme that guests have.
    pub theme: Option<&'a str>,
    pub packages: Vec<Package>,
    pub downloads: Vec<(String, String)>,
}

/// What a part of a blueprint is converted to.
pub(super) enum Part {
    Call(CommandCall),
    Constants(Map<String, Value>),
    /// The part needs no command, e.g. because it only describes the blueprint.
    Ignored,
}

pub(super) type PartResult = Result<Part, String>;

/// Refuses unknown members of an object, because a step that ignored them could do something else.
pub(super) fn check_members(name: &str, value: &Value, members: &[&str]) -> Result<(), String> {
    let given = value.as_object().into_iter().flat_map(Map::keys);
    match given
        .into_iter()
        .find(|given| !members.contains(&given.as_str()))
    {
        Some(given) => Err(format!(
            "{name} has no member {:?} that this backend supports; accepted are {}",
            given.chars().take(100).collect::<String>(),
            members.join(", ")
        )),
        None => Ok(()),
    }
}

pub(super) fn php(code: String) -> CommandCall {
    CommandCall {
        command: "wordpress.run-php".to_owned(),
        args: vec![format!("code={code}")],
    }
}

/// Returns a step that runs PHP code without loading WordPress first: blueprint code that needs
/// WordPress contains the `require` of `wp-load.php`.
pub(super) fn bare(code: &str) -> PartResult {
    let code = code.trim_start();
    let code = code.strip_prefix("<?php").unwrap_or(code).trim_start();
    let mut call = php(code.to_owned());
    call.args.push("bootstrap=none".to_owned());
    Ok(Part::Call(call))
}

pub(super) fn wp_cli(command: String) -> CommandCall {
    CommandCall {
        command: "wordpress.wp-cli".to_owned(),
        args: vec![format!("command={command}")],
    }
}

/// Returns a guest path as a PHP string literal. A relative path is resolved from `/wordpress`.
pub(super) fn guest_path(path: &str) -> Result<String, String> {
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/wordpress/{path}")
    };
    wp_codebox_contracts::GuestPath::new(path.trim_end_matches('/'))
        .map(|path| php_literal(&json!(path.as_str())))
        .map_err(|_| "each path of the step must be a path in the guest, without `..`".to_owned())
}
