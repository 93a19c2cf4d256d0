//! The public contract and the differences on purpose, as data of `tests/conformance/public/`.

use crate::findings::TaskError;
use crate::tree;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// File with the differences, for findings.
pub const DIFFERENCES: &str = "tests/conformance/public/differences.json";

/// Names of the public contract.
pub struct Public {
    /// Commands with the names of their arguments, in the order of the contract.
    pub commands: Vec<(String, Vec<String>)>,
    /// Abilities without the prefix `wp-codebox/`, with their input fields.
    pub abilities: BTreeMap<String, Vec<String>>,
    /// Methods of the facade.
    pub methods: Vec<String>,
    /// Hooks with their number of arguments.
    pub hooks: BTreeMap<String, usize>,
    /// Schema ids of outputs of commands and abilities.
    pub schemas: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Command {
    id: String,
    #[serde(default)]
    args: Vec<Argument>,
    output: Option<Value>,
}

#[derive(Deserialize)]
struct Argument {
    name: String,
}

#[derive(Deserialize)]
struct Surface {
    abilities: BTreeMap<String, Ability>,
    #[serde(rename = "WP_Codebox_API")]
    methods: Vec<String>,
    hooks: BTreeMap<String, Hook>,
}

#[derive(Deserialize)]
struct Ability {
    input: Value,
    output: Value,
}

#[derive(Deserialize)]
struct Hook {
    /// Arguments of each place that calls the hook.
    args: Vec<Vec<String>>,
}

impl Public {
    /// Reads the two files of the public contract.
    pub fn read(root: &Path) -> Result<Self, TaskError> {
        let directory = root.join("tests/conformance/public");
        let commands: Vec<Command> = json(&directory.join("commands.json"))?;
        let surface: Surface = json(&directory.join("php-surface.json"))?;
        let mut schemas: BTreeSet<String> = commands
            .iter()
            .filter_map(|command| command.output.as_ref()?.get("$id")?.as_str())
            .map(str::to_owned)
            .collect();
        for ability in surface.abilities.values() {
            let id = ability.output.pointer("/properties/schema/const");
            schemas.extend(id.and_then(Value::as_str).map(str::to_owned));
        }
        Ok(Public {
            commands: commands
                .into_iter()
                .map(|c| (c.id, c.args.into_iter().map(|a| a.name).collect()))
                .collect(),
            abilities: surface
                .abilities
                .into_iter()
                .map(|(name, ability)| (short(&name).to_owned(), fields(&ability.input)))
                .collect(),
            methods: surface.methods.iter().filter_map(|m| method(m)).collect(),
            hooks: surface
                .hooks
                .into_iter()
                .map(|(name, hook)| {
                    (
                        name,
                        hook.args.iter().map(Vec::len).max().unwrap_or_default(),
                    )
                })
                .collect(),
            schemas,
        })
    }
}

/// Returns an ability's name without its prefix.
fn short(name: &str) -> &str {
    name.strip_prefix("wp-codebox/").unwrap_or(name)
}

/// Returns the names of the properties of a JSON schema.
pub fn fields(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .map(|p| p.keys().cloned().collect())
        .unwrap_or_default()
}

/// Returns the name in a signature such as `static get_run(array $input): array`.
fn method(signature: &str) -> Option<String> {
    let (name, _) = signature.strip_prefix("static ")?.split_once('(')?;
    Some(name.to_owned())
}

fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, TaskError> {
    serde_json::from_str(&tree::read(path)?).map_err(|source| TaskError::Json {
        path: path.to_owned(),
        source,
    })
}

/// Parts of the public contract that this project does not have, with the reasons.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Differences {
    commands: Vec<Difference>,
    /// `command argument`.
    arguments: Vec<Difference>,
    /// `command argument=value`.
    values: Vec<Difference>,
    abilities: Vec<Difference>,
    /// `ability field`.
    inputs: Vec<Difference>,
    /// `ability field`: the schema has the field, and every call with it is refused by name.
    refused_inputs: Vec<Difference>,
    methods: Vec<Difference>,
    hooks: Vec<Difference>,
    schemas: Vec<Difference>,
    /// Path in a recipe, such as `$.fuzzRun`: validation refuses the property, whatever its value.
    recipes: Vec<Difference>,
}

/// Names with one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    /// Why they do not exist, and what to use.
    why: String,
    names: Vec<String>,
}

impl Differences {
    /// Reads `differences.json`.
    pub fn read(root: &Path) -> Result<Self, TaskError> {
        json(&root.join(DIFFERENCES))
    }

    /// Parses the text of `differences.json`.
    #[cfg(test)]
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    fn kinds(&self) -> [(&'static str, &[Difference]); 10] {
        [
            ("commands", &self.commands),
            ("arguments", &self.arguments),
            ("values", &self.values),
            ("abilities", &self.abilities),
            ("inputs", &self.inputs),
            ("refused_inputs", &self.refused_inputs),
            ("methods", &self.methods),
            ("hooks", &self.hooks),
            ("schemas", &self.schemas),
            ("recipes", &self.recipes),
        ]
    }

    fn rows(&self) -> impl Iterator<Item = (&'static str, &Difference, &str)> {
        self.kinds().into_iter().flat_map(|(kind, differences)| {
            differences.iter().flat_map(move |difference| {
                difference
                    .names
                    .iter()
                    .map(move |name| (kind, difference, name.as_str()))
            })
        })
    }

    /// Returns every listed name with its kind.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.rows().map(|(kind, _, name)| (kind, name))
    }

    /// Returns the reason for one name.
    pub fn why(&self, kind: &str, name: &str) -> Option<&str> {
        self.rows()
            .find(|(found, _, listed)| *found == kind && *listed == name)
            .map(|(_, difference, _)| difference.why.as_str())
    }

    /// Returns a sentence for each refused value of the arguments of a command.
    pub fn values_of(&self, command: &str) -> Vec<String> {
        self.rows()
            .filter_map(|(kind, difference, name)| {
                let value = name.strip_prefix(command)?.strip_prefix(' ')?;
                (kind == "values").then(|| format!("not `{value}`: {}", difference.why))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::method;

    #[test]
    fn method_name_is_read_from_a_published_signature() {
        let signature = "static get_artifact(array $input): WP_Error|array";
        assert_eq!(method(signature).as_deref(), Some("get_artifact"));
        assert_eq!(method("get_artifact"), None);
    }
}
