//! Generates documents from the definitions of abilities in `abilities/definitions/`: the methods
//! of the PHP class `WP_Codebox_API` and the table in `docs/abilities.md`.

mod methods;

use crate::findings::TaskError;
use crate::generated::{Generated, with_block};
use crate::{commands, php, tree};
use methods::{Answer, Input, METHODS, Method};
use serde::Deserialize;
use std::path::Path;

const FACADE: &str = "plugin-php/includes/WP_Codebox_API.php";
const FACADE_BEGIN: &str = "	// Generated from abilities/definitions/ by `cargo xtask generate`: a method for each ability, and those of ext/tools/xtask/src/abilities/methods.rs.";
const FACADE_END: &str = "	// End of the generated methods.";
const TABLE: &str = "docs/abilities.md";
const TABLE_BEGIN: &str =
    "<!-- Generated from abilities/definitions/ by `cargo xtask generate` -->";
const TABLE_END: &str = "<!-- End of the generated table -->";

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

/// A method of `WP_Codebox_API` with the sentence that describes it.
struct FacadeMethod {
    name: String,
    ability: String,
    input: Input,
    answer: Answer,
    description: String,
}

/// Returns the PHP class and the page with the table, both with current text.
pub fn documents(root: &Path) -> Result<[Generated; 2], TaskError> {
    let definitions = definitions(root)?;
    let methods = facade_methods(&definitions, METHODS);
    let facade: String = other_names(&methods) + &methods.iter().map(method).collect::<String>();
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

/// Returns the name of each ability with the name of its input schema.
pub fn inputs(root: &Path) -> Result<Vec<(String, String)>, TaskError> {
    let definitions = definitions(root)?;
    Ok(definitions
        .into_iter()
        .map(|d| (d.name, d.input_schema))
        .collect())
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
    let script = root.join("ext/tools/xtask/src/abilities/definitions.php");
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

/// Returns all methods, sorted by name: one named after each ability, and those of the table.
fn facade_methods(definitions: &[Definition], table: &[Method]) -> Vec<FacadeMethod> {
    let own = definitions.iter().map(|definition| FacadeMethod {
        name: definition.name.replace('-', "_"),
        ability: definition.name.clone(),
        input: Input::Optional,
        answer: Answer::ResultOrError,
        description: definition.description.clone(),
    });
    let listed = table.iter().map(|row| FacadeMethod {
        name: row.name.to_owned(),
        ability: row.ability.to_owned(),
        input: row.input,
        answer: row.answer,
        description: definitions
            .iter()
            .find(|definition| definition.name == row.ability)
            .map_or_else(
                || {
                    format!(
                        "Answers an error, because no ability is named wp-codebox/{}.",
                        row.ability
                    )
                },
                |definition| definition.description.clone(),
            ),
    });
    let mut methods: Vec<FacadeMethod> = own
        .filter(|method| !table.iter().any(|row| row.name == method.name))
        .chain(listed)
        .collect();
    methods.sort_by(|a, b| a.name.cmp(&b.name));
    methods
}

/// Returns the constant that maps methods to abilities where the names differ.
fn other_names(methods: &[FacadeMethod]) -> String {
    let others: Vec<&FacadeMethod> = methods
        .iter()
        .filter(|method| method.name != method.ability.replace('-', "_"))
        .collect();
    let width = others.iter().map(|method| method.name.len()).max();
    let rows: String = others
        .iter()
        .map(|method| {
            let name = format!("'{}'", method.name);
            let width = width.unwrap_or_default() + 2;
            format!("\t\t{name:width$} => 'wp-codebox/{}',\n", method.ability)
        })
        .collect();
    format!(
        "
	/** Ability by method, for methods whose name differs from the ability's. */
	private const OTHER_NAMES = [
{rows}	];
"
    )
}

fn method(method: &FacadeMethod) -> String {
    let input = match method.input {
        Input::Optional => "array $input = []",
        Input::Required => "array $input",
    };
    let call = format!(
        "self::execute_ability( 'wp-codebox/{}', $input )",
        method.ability
    );
    let (documented, returned, call) = match method.answer {
        Answer::ResultOrError => ("array<string, mixed>|WP_Error", "array|WP_Error", call),
        Answer::Result => (
            "array<string, mixed> On failure `success` is false and `error` has code and message.",
            "array",
            format!("self::as_array( {call} )"),
        ),
    };
    format!(
        "
	/**
	 * {}
	 * @param array<string, mixed> $input Input of the ability.
	 * @return {documented}
	 */
	public static function {}( {input} ): {returned} {{
		return {call};
	}}
",
        method.description, method.name,
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
    use super::{Answer, Definition, Input, Method, facade_methods, method, other_names, row};

    fn definition(name: &str) -> Definition {
        Definition {
            name: name.to_owned(),
            description: "Shows one run.".to_owned(),
            input_schema: "run-reference-input".to_owned(),
            output_schemas: vec!["run".to_owned(), "run-handle".to_owned()],
            allowed: vec!["wp_codebox_run".to_owned()],
        }
    }

    fn facade(definitions: &[Definition], table: &[Method]) -> String {
        facade_methods(definitions, table)
            .iter()
            .map(method)
            .collect()
    }

    const fn listed(name: &'static str, input: Input, answer: Answer) -> Method {
        Method {
            name,
            ability: "get-run",
            input,
            answer,
        }
    }

    #[test]
    fn facade_method_is_named_after_its_ability() {
        let text = facade(&[definition("get-run")], &[]);
        assert!(
            text.contains("function get_run( array $input = [] ): array|WP_Error {"),
            "{text}"
        );
        assert!(
            text.contains("return self::execute_ability( 'wp-codebox/get-run', $input );"),
            "{text}"
        );
        assert!(text.contains("Shows one run."), "{text}");
    }

    #[test]
    fn method_table_entry_changes_the_signature_of_the_method_with_the_same_name() {
        let row = listed("get_run", Input::Required, Answer::ResultOrError);
        let text = facade(&[definition("get-run")], &[row]);
        assert!(
            text.contains("function get_run( array $input ): array|WP_Error {"),
            "{text}"
        );
        assert_eq!(text.matches("function ").count(), 1, "{text}");
    }

    #[test]
    fn method_table_entry_with_another_name_adds_a_method_and_maps_its_name_to_the_ability() {
        let row = listed("read_run", Input::Required, Answer::Result);
        let methods = facade_methods(&[definition("get-run")], &[row]);
        let text: String = methods.iter().map(method).collect();
        assert!(text.contains("function get_run( "), "{text}");
        assert!(
            text.contains("function read_run( array $input ): array {"),
            "{text}"
        );
        assert!(
            text.contains(
                "self::as_array( self::execute_ability( 'wp-codebox/get-run', $input ) )"
            ),
            "{text}"
        );
        let names = other_names(&methods);
        assert!(
            names.contains("\t\t'read_run' => 'wp-codebox/get-run',\n"),
            "{names}"
        );
        assert!(!names.contains("get_run'"), "{names}");
    }

    #[test]
    fn method_table_entry_for_an_undefined_ability_gets_a_method_that_returns_an_error() {
        let row = listed("read_run", Input::Required, Answer::ResultOrError);
        let text = facade(&[], &[row]);
        assert!(
            text.contains("no ability is named wp-codebox/get-run"),
            "{text}"
        );
        assert!(text.contains("function read_run( "), "{text}");
    }

    #[test]
    fn ability_table_row_names_schemas_and_capabilities() {
        assert_eq!(
            row(&definition("get-run")),
            "| `get-run` | Shows one run. | `run-reference-input` | `run` or `run-handle` | `wp_codebox_run` |\n"
        );
    }
}
