//! Cells of a benchmark matrix: one recipe per combination of values.

use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Schema id of a matrix; the member `schema` may be absent.
const BENCHMARK_MATRIX: &str = "wp-codebox/benchmark-matrix/v1";
/// Command whose results a matrix collects.
const BENCH: &str = "wordpress.bench";
/// Maximum number of combinations.
const MAX_CELLS: usize = 256;
/// Phases of a recipe's workflow in which benchmark steps are searched.
const PHASES: [&str; 3] = ["before", "steps", "after"];

/// Part of the recipe that gets the values of a dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Setting {
    /// A member of `runtime`.
    Runtime(String),
    /// A variable in `inputs.runtimeEnv`.
    Environment(String),
    /// An argument of the benchmark steps.
    Argument(String),
}

/// A dimension of the matrix.
#[derive(Debug, Clone)]
pub struct Dimension {
    /// Name of what the values set.
    pub name: String,
    /// The values.
    pub values: Vec<String>,
    setting: Setting,
}

/// One combination of values, with its recipe.
#[derive(Debug)]
pub struct Cell {
    /// The values, as `name=value` texts separated by commas.
    pub id: String,
    /// The values by the name of the dimension.
    pub values: Map<String, Value>,
    /// The recipe with these values.
    pub recipe: Value,
}

fn invalid(why: impl std::fmt::Display) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, format!("--matrix: {why}"))
}

/// Reads the dimensions of a matrix: `{"dimensions": [{name, values}]}`, or with an object
/// `{name: values}` in place of the list.
pub fn dimensions(document: &Value) -> Result<Vec<Dimension>, ErrorBody> {
    let members = document
        .as_object()
        .ok_or_else(|| invalid("a matrix is a JSON object with the member dimensions"))?;
    let known = ["schema", "dimensions", "metadata"];
    if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(invalid(format!(
            "unknown member {name:?}; a matrix has {}",
            known.join(", ")
        )));
    }
    if members
        .get("schema")
        .is_some_and(|schema| *schema != BENCHMARK_MATRIX)
    {
        return Err(invalid(format!(
            "schema must be {BENCHMARK_MATRIX:?} or absent"
        )));
    }
    let rows: Vec<(String, &Value)> = match members.get("dimensions") {
        Some(Value::Object(rows)) => rows.iter().map(|(name, v)| (name.clone(), v)).collect(),
        Some(Value::Array(rows)) => rows.iter().map(named).collect::<Result<_, _>>()?,
        Some(_) | None => Vec::new(),
    };
    if rows.is_empty() {
        return Err(invalid(
            "dimensions must be a list of {name, values}, at least one",
        ));
    }
    let mut all: Vec<Dimension> = Vec::new();
    for (name, values) in rows {
        if all.iter().any(|other| other.name == name) {
            return Err(invalid(format!("the dimension {name:?} is given twice")));
        }
        all.push(dimension(name, values)?);
    }
    let cells = all
        .iter()
        .try_fold(1_usize, |cells, row| cells.checked_mul(row.values.len()));
    match cells {
        Some(cells) if cells <= MAX_CELLS => Ok(all),
        Some(_) | None => Err(invalid(format!(
            "there are more than {MAX_CELLS} combinations; leave out values"
        ))),
    }
}

fn named(row: &Value) -> Result<(String, &Value), ErrorBody> {
    let name = row["name"].as_str();
    let name = name.ok_or_else(|| invalid("each dimension needs a name"))?;
    Ok((name.to_owned(), &row["values"]))
}

fn dimension(name: String, values: &Value) -> Result<Dimension, ErrorBody> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let values: Option<Vec<String>> = values
        .as_array()
        .and_then(|values| values.iter().map(text).collect());
    let values = values.filter(|values| !values.is_empty()).ok_or_else(|| {
        invalid(format!(
            "the dimension {name:?} needs values, a list of texts"
        ))
    })?;
    Ok(Dimension {
        setting: setting(&name)?,
        name,
        values,
    })
}

fn setting(name: &str) -> Result<Setting, ErrorBody> {
    let is_variable = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    if let Some(argument) = name.strip_prefix("arg.").filter(|rest| !rest.is_empty()) {
        return Ok(Setting::Argument(argument.to_owned()));
    }
    match name {
        "wp" => Ok(Setting::Runtime("wp".to_owned())),
        "phpVersion" | "php" => Ok(Setting::Runtime("phpVersion".to_owned())),
        name if is_variable(name) => Ok(Setting::Environment(name.to_owned())),
        name => Err(invalid(format!(
            "the dimension {name:?} is unknown; name a dimension wp, phpVersion, arg.NAME or like an environment variable, such as CACHE_SIZE"
        ))),
    }
}

/// Returns all combinations with their recipes, the last dimension changing fastest.
pub fn cells(recipe: &Value, dimensions: &[Dimension]) -> Result<Vec<Cell>, ErrorBody> {
    if benchmarks(&mut recipe.clone()).is_empty() {
        let message =
            format!("--recipe: the recipe has no step {BENCH}, so its runs would measure nothing");
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    let mut all = vec![Cell {
        id: String::new(),
        values: Map::new(),
        recipe: recipe.clone(),
    }];
    for dimension in dimensions {
        let cells = all.iter().flat_map(|cell| {
            dimension
                .values
                .iter()
                .map(move |value| cell.with(dimension, value))
        });
        all = cells.collect();
    }
    Ok(all)
}

/// Returns the argument lists of the benchmark steps; creates missing ones.
fn benchmarks(recipe: &mut Value) -> Vec<&mut Vec<Value>> {
    let Some(workflow) = recipe.get_mut("workflow").and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    workflow
        .iter_mut()
        .filter(|(phase, _)| PHASES.contains(&phase.as_str()))
        .filter_map(|(_, steps)| steps.as_array_mut())
        .flatten()
        .filter(|step| step["command"] == BENCH)
        .filter_map(|step| {
            let step = step.as_object_mut()?;
            step.entry("args")
                .or_insert_with(|| json!([]))
                .as_array_mut()
        })
        .collect()
}

impl Cell {
    fn with(&self, dimension: &Dimension, value: &str) -> Self {
        let mut values = self.values.clone();
        values.insert(dimension.name.clone(), json!(value));
        let mut recipe = self.recipe.clone();
        match &dimension.setting {
            Setting::Runtime(name) => set(&mut recipe, &["runtime"], name, value),
            Setting::Environment(name) => {
                set(&mut recipe, &["inputs", "runtimeEnv"], name, value);
            }
            Setting::Argument(name) => {
                let prefix = format!("{name}=");
                for args in benchmarks(&mut recipe) {
                    args.retain(|arg| !arg.as_str().is_some_and(|arg| arg.starts_with(&prefix)));
                    args.push(json!(format!("{prefix}{value}")));
                }
            }
        }
        let own = format!("{}={value}", dimension.name);
        Self {
            id: match self.id.is_empty() {
                true => own,
                false => format!("{},{own}", self.id),
            },
            values,
            recipe,
        }
    }
}

/// Sets member `name` of the object at `path` in the recipe; creates missing objects on the path.
/// Changes nothing if a value there is not an object: the validation of the recipe reports it.
fn set(recipe: &mut Value, path: &[&str], name: &str, value: &str) {
    let mut at = recipe;
    for step in path {
        let Some(members) = at.as_object_mut() else {
            return;
        };
        at = members.entry(*step).or_insert_with(|| json!({}));
    }
    if let Some(members) = at.as_object_mut() {
        members.insert(name.to_owned(), json!(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Value {
        json!({"schema": "s", "workflow": {"steps": [
            {"command": BENCH, "args": ["plugin-slug=a", "iterations=9"]},
            {"command": "wordpress.run-php", "args": ["code=1;"]},
        ]}})
    }

    #[test]
    fn each_combination_of_matrix_values_is_a_cell_whose_recipe_has_these_values() {
        let matrix = json!({"dimensions": [
            {"name": "wp", "values": ["6.9", "7.1"]},
            {"name": "arg.iterations", "values": [3]},
            {"name": "CACHE", "values": ["on", "off"]},
        ]});
        let cells = cells(&recipe(), &dimensions(&matrix).unwrap()).unwrap();
        let ids: Vec<_> = cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids[0], "wp=6.9,arg.iterations=3,CACHE=on");
        assert_eq!(ids.len(), 4);
        let last = &cells[3].recipe;
        assert_eq!(last["runtime"]["wp"], "7.1");
        assert_eq!(last["inputs"]["runtimeEnv"]["CACHE"], "off");
        let steps = &last["workflow"]["steps"];
        assert_eq!(steps[0]["args"], json!(["plugin-slug=a", "iterations=3"]));
        assert_eq!(steps[1]["args"], json!(["code=1;"]));
        assert_eq!(cells[3].values["arg.iterations"], "3");
    }

    #[test]
    fn matrix_with_an_unknown_dimension_no_values_too_many_cells_or_unknown_members_is_refused() {
        let refused = |matrix: Value| dimensions(&matrix).unwrap_err().message;
        let row =
            |name: &str, values: Value| json!({"dimensions": [{"name": name, "values": values}]});
        assert!(refused(row("colour", json!(["red"]))).contains("colour"));
        assert!(refused(row("wp", json!([]))).contains("needs values"));
        assert!(refused(row("wp", json!([{}]))).contains("needs values"));
        assert!(refused(json!({"dimensions": []})).contains("at least one"));
        assert!(refused(json!({"dimensions": {"wp": ["1"]}, "x": 1})).contains("\"x\""));
        assert!(refused(json!([])).contains("JSON object"));
        let many: Vec<_> = (0..=MAX_CELLS).map(|n| n.to_string()).collect();
        assert!(refused(row("wp", json!(many))).contains("combinations"));
        assert!(dimensions(&json!({"dimensions": {"wp": ["1"]}})).is_ok());
    }

    #[test]
    fn matrix_of_a_recipe_without_a_benchmark_step_is_refused() {
        let other = json!({"workflow": {"steps": [{"command": "wordpress.run-php"}]}});
        let matrix = dimensions(&json!({"dimensions": {"wp": ["1"]}})).unwrap();
        assert!(cells(&other, &matrix).is_err());
        assert!(cells(&recipe(), &matrix).is_ok());
    }
}
