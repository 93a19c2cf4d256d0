//! Checks whether a recipe can run on a node of a cluster: it must not require a certain version of
//! PHP or name PHP extensions.
//!
//! `validate` compares a recipe with the PHP of this host. The guests of a placed run have the PHP of
//! a node, which this host does not know. Fields of the run itself, such as a preview, are refused
//! when the supervisor makes the task.

use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_recipe::Recipe;

/// Fails if the recipe requires a certain version of PHP or names PHP extensions.
///
/// # Errors
/// `wp_codebox_placement_unsupported` with the name of the field.
pub fn check_placed(recipe: &Recipe) -> Result<(), ErrorBody> {
    let runtime = &recipe.runtime;
    let preferred = runtime
        .blueprint
        .as_ref()
        .and_then(|blueprint| blueprint.get("preferredVersions")?.get("php")?.as_str());
    let needed = [
        ("runtime.phpVersion", runtime.php_version.is_some()),
        (
            "runtime.blueprint.preferredVersions.php",
            preferred.is_some_and(|version| version != "latest"),
        ),
        (
            "runtime.bundledExtensions",
            !runtime.bundled_extensions.is_empty(),
        ),
    ];
    match needed.into_iter().find(|(_, is_needed)| *is_needed) {
        None => Ok(()),
        Some((field, _)) => Err(ErrorBody::new(
            ErrorCode::PlacementUnsupported,
            format!(
                "{field} cannot be sent to another host: the guests have the PHP of the node that takes the run"
            ),
        )
        .with("field", field)
        .hint("remove the field, and choose nodes that have this PHP with --capability; or run the recipe on this host")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wp_codebox_recipe::parse;

    fn recipe(runtime: &Value) -> Recipe {
        let document = json!({
            "schema": "wp-codebox/workspace-recipe/v1",
            "runtime": runtime,
            "workflow": {"steps": [{"command": "wordpress.wp-cli", "args": ["command=option get home"]}]},
        });
        parse(document.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn recipe_for_a_cluster_that_needs_a_php_version_or_extension_is_refused_and_the_field_named() {
        for fits in [
            json!({}),
            json!({"blueprint": {"preferredVersions": {"php": "latest", "wp": "6.8"}}}),
        ] {
            assert!(check_placed(&recipe(&fits)).is_ok(), "{fits}");
        }
        for (needs, field) in [
            (json!({"phpVersion": "8.2"}), "runtime.phpVersion"),
            (
                json!({"blueprint": {"preferredVersions": {"php": "8.3"}}}),
                "runtime.blueprint.preferredVersions.php",
            ),
            (
                json!({"bundledExtensions": ["intl"]}),
                "runtime.bundledExtensions",
            ),
        ] {
            let error = check_placed(&recipe(&needs)).unwrap_err();
            assert_eq!(error.code, ErrorCode::PlacementUnsupported);
            assert!(error.message.starts_with(field), "{error}");
        }
    }
}
