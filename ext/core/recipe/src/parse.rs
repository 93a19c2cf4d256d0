//! Parses the bytes of a recipe to the Rust types of the model.

use crate::grammar::{RECIPE, check};
use crate::issue::{Issue, IssueCode};
use crate::json;
use crate::model::Recipe;
use serde_json::Value;

/// Schema id of a recipe document.
pub const RECIPE_SCHEMA: &str = "wp-codebox/workspace-recipe/v1";

/// Parses a recipe. The issues are all deviations from the grammar; `validate` checks further
/// rules only for a recipe that matches the grammar.
pub fn parse(bytes: &[u8]) -> Result<Recipe, Vec<Issue>> {
    let document = json::read(bytes)?;
    let issues = check(&RECIPE, &document);
    if !issues.is_empty() {
        return Err(issues);
    }
    typed(document)
}

/// Converts parsed JSON to the typed model. The model represents everything that the grammar
/// accepts; JSON for which the conversion fails is refused.
fn typed(document: Value) -> Result<Recipe, Vec<Issue>> {
    let mut recipe = serde_json::from_value(document).map_err(|error| {
        vec![Issue::new(
            IssueCode::InvalidRecipe,
            "$",
            format!("the recipe cannot be read: {error}"),
        )]
    })?;
    crate::places::normalise(&mut recipe);
    Ok(recipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::fullest;

    #[test]
    fn recipe_type_round_trips_every_member_of_the_grammar() {
        let document = fullest(&RECIPE);
        assert_eq!(check(&RECIPE, &document), []);
        let recipe = parse(document.to_string().as_bytes()).unwrap();
        assert_eq!(
            gone(&document, &serde_json::to_value(&recipe).unwrap(), "$"),
            Vec::<String>::new()
        );
    }

    /// Returns the paths of all values of `a` that `b` lacks or that are different in `b`.
    fn gone(a: &Value, b: &Value, path: &str) -> Vec<String> {
        match (a, b) {
            (Value::Object(a), Value::Object(b)) => a
                .iter()
                .flat_map(|(k, v)| match b.get(k) {
                    Some(w) => gone(v, w, &format!("{path}.{k}")),
                    None => vec![format!("{path}.{k}")],
                })
                .collect(),
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
                .iter()
                .zip(b)
                .flat_map(|(v, w)| gone(v, w, path))
                .collect(),
            (a, b) if a == b => vec![],
            _ => vec![path.to_owned()],
        }
    }

    #[test]
    fn unknown_member_is_refused_in_every_recipe_object_but_those_with_free_members() {
        // Adds one unknown member to each object of the largest document in turn.
        let document = fullest(&RECIPE);
        let mut places = Vec::new();
        objects(&document, String::new(), &mut places);
        let mut accepted = Vec::new();
        for place in &places {
            let mut spoiled = document.clone();
            let holder = spoiled.pointer_mut(place).unwrap();
            holder["zzUnknown"] = serde_json::json!({"zz": [1]});
            let issues = check(&RECIPE, &spoiled);
            if !issues.iter().any(|i| i.path.ends_with(".zzUnknown")) {
                accepted.push(place.as_str());
            }
        }
        // `equals` is compared with any value.
        accepted.retain(|at| !at.ends_with("/metadata") && !at.ends_with("/while/equals"));
        let free = [
            "/runtime/blueprint",
            "/runtime/preview/lease",
            "/runtime/backendPackage",
            "/inputs/workspace_preloads/0/payload/meta",
            "/inputs/workspace_preloads/0/provenance",
            "/inputs/component_manifest/components/0/provenance",
            "/inputs/component_manifest/providers/0/provenance",
            "/inputs/agent_bundles/0/bundle",
            "/fuzzRun/cases/0/input",
            "/adversarialCampaigns/0/corpus/0/actions/0/input",
            "/adversarialCampaigns/0/corpus/0/input",
            "/adversarialCampaigns/0/faultSchedule/rules/0",
            "/artifacts/typed/0/payloadSchema",
        ];
        assert_eq!(accepted, free);
        assert!(places.len() > 200, "{}", places.len());
    }

    fn objects(value: &Value, path: String, places: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    objects(value, format!("{path}/{key}"), places);
                }
                places.push(path);
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    objects(item, format!("{path}/{index}"), places);
                }
            }
            _ => {}
        }
    }
}
