//! Generates documents from the definitions of abilities in `abilities/definitions/`: the methods
//! of the PHP class `WP_Codebox_API` and the table in `docs/abilities.md`.

use crate::findings::TaskError;
use crate::generated::{Generated, with_block};
use crate::{commands, php, tree};
use serde::Deserialize;
use std::path::Path;

const FACADE: &str = "plugin-php/includes/WP_Codebox_API.php";
const FACADE_BEGIN: &str = "	// Generated from abilities/definitions/ by `cargo xtask generate`: a method for each ability.";
const FACADE_END: &str = "	// End of the generated methods.";
const TABLE: &str = "docs/abilities.md";
const TABLE_BEGIN: &str =
    "<!-- Generated from abilities/definitions/ by `cargo xtask generate` -->";
const TABLE_END: &str = "<!-- End of the generated table -->";

/// Abilities whose method in `WP_Codebox_API` is not named after them, each with that method.
/// `WP_Codebox_API::OTHER_NAMES` maps these methods back to the abilities.
const OTHER_METHODS: &[(&str, &str)] = &[("apply-artifact-preflight", "preflight_apply_artifact")];

/// Definition of one ability, as `definitions.php` prints it.
#[derive(Deserialize)]
struct Definition {
    name: String,
    description: String,
    input_schema: String,
    output_schemas: Vec<String>,
    /// Capabilities and scopes that permit the ability; a user needs one of them.
    allowed: Vec<String>,
}

impl Definition {
    fn method(&self) -> String {
        OTHER_METHODS
            .iter()
            .find(|(name, _)| *name == self.name)
            .map_or_else(
                || self.name.replace('-', "_"),
                |(_, method)| (*method).to_owned(),
            )
    }
}

/// Returns the PHP class and the page with the table, both with current text.
pub fn documents(root: &Path) -> Result<[Generated; 2], TaskError> {
    let definitions = definitions(root)?;
    let facade: String = definitions.iter().map(method).collect();
    let table: String = definitions.iter().map(row).collect();
    let head = "| ability | what it does | input | answer | allowed to |\n|---|---|---|---|---|\n";
    Ok([
        document(
            root,
            FACADE,
            [FACADE_BEGIN, FACADE_END],
            &format!("{facade}\n"),
        )?,
        document(
            root,
            TABLE,
            [TABLE_BEGIN, TABLE_END],
            &format!("{head}{table}"),
        )?,
    ])
}

fn document(
    root: &Path,
    path: &'static str,
    [begin, end]: [&str; 2],
    block: &str,
) -> Result<Generated, TaskError> {
    let text = tree::read(&root.join(path))?;
    match with_block(&text, begin, block, end) {
        Some(text) => Ok(Generated { path, text }),
        None => Err(TaskError::Findings(vec![format!(
            "{path}: a marker of its generated lines is missing: {begin} and {end}"
        )])),
    }
}

fn definitions(root: &Path) -> Result<Vec<Definition>, TaskError> {
    let program = php::program();
    let script = root.join("ext/crates/xtask/src/abilities/definitions.php");
    let arguments = [script.display().to_string(), root.display().to_string()];
    let answer = commands::quiet(root, program, &[&arguments[0], &arguments[1]])?;
    if !answer.success {
        return Err(TaskError::Findings(vec![format!(
            "abilities/definitions/: {}",
            answer.said.trim()
        )]));
    }
    serde_json::from_slice(&answer.stdout).map_err(|source| TaskError::Answer {
        program: program.to_owned(),
        source,
    })
}

fn method(definition: &Definition) -> String {
    format!(
        "
	/**
	 * {}
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed>|WP_Error
	 */
	public static function {}( array $input = [] ): array|WP_Error {{
		return self::execute_ability( 'wp-codebox/{}', $input );
	}}
",
        definition.description,
        definition.method(),
        definition.name
    )
}

fn row(definition: &Definition) -> String {
    let code = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(" or ")
    };
    format!(
        "| `{}` | {} | `{}` | {} | {} |\n",
        definition.name,
        definition.description.replace('|', "\\|"),
        definition.input_schema,
        code(&definition.output_schemas),
        code(&definition.allowed)
    )
}

#[cfg(test)]
mod tests {
    use super::{Definition, method, row};

    fn definition(name: &str) -> Definition {
        Definition {
            name: name.to_owned(),
            description: "Shows one run.".to_owned(),
            input_schema: "run-reference-input".to_owned(),
            output_schemas: vec!["run".to_owned(), "run-handle".to_owned()],
            allowed: vec!["wp_codebox_run".to_owned()],
        }
    }

    #[test]
    fn facade_method_is_named_after_its_ability_or_the_listed_alias() {
        let usual = method(&definition("get-run"));
        assert!(usual.contains("function get_run("), "{usual}");
        assert!(usual.contains("'wp-codebox/get-run'"), "{usual}");
        let other = method(&definition("apply-artifact-preflight"));
        assert!(
            other.contains("function preflight_apply_artifact("),
            "{other}"
        );
        assert!(
            other.contains("'wp-codebox/apply-artifact-preflight'"),
            "{other}"
        );
    }

    #[test]
    fn ability_table_row_names_schemas_and_capabilities() {
        assert_eq!(
            row(&definition("get-run")),
            "| `get-run` | Shows one run. | `run-reference-input` | `run` or `run-handle` | `wp_codebox_run` |\n"
        );
    }
}
