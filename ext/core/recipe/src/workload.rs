//! Workloads, `wp-codebox/wordpress-workload-run/v1`: commands and their inputs in one document.
//!
//! A workload is converted to a recipe, so that both have the same rules and the same execution.
//! Issues name the field of the workload, not that of the recipe.

use crate::blueprint::blueprint;
use crate::issue::{Issue, IssueCode, member};
use crate::json;
use crate::model::Recipe;
use crate::parse::{RECIPE_SCHEMA, parse};
use serde_json::{Map, Value, json};

/// Schema id of a workload.
pub const WORKLOAD_RUN: &str = "wp-codebox/wordpress-workload-run/v1";
/// Schema id of the result of a workload.
pub const WORKLOAD_RESULT: &str = "wp-codebox/wordpress-workload-run-result/v1";

/// Members of a workload that a recipe has too: name, further spelling, path in the recipe.
const MEMBERS: &[(&str, &str, &str)] = &[
    ("wordpress_version", "wordpressVersion", "$.runtime.wp"),
    ("mounts", "mounts", "$.inputs.mounts"),
    ("secret_env", "secretEnv", "$.inputs.secretEnv"),
    ("staged_files", "stagedFiles", "$.inputs.stagedFiles"),
    ("before", "before", "$.workflow.before"),
    ("steps", "steps", "$.workflow.steps"),
    ("after", "after", "$.workflow.after"),
    ("metadata", "metadata", "$.metadata"),
    ("runtime_env", "runtimeEnv", "$.inputs.runtimeEnv"),
    ("blueprint", "blueprint", "$.runtime.blueprint"),
];

/// Preview that a workload asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadPreview {
    /// Time for which the sandbox is held after its steps, in seconds.
    pub hold_seconds: u64,
    /// Port of the preview; absent: a free one.
    pub port: Option<u16>,
    /// Listen address of the preview.
    pub bind: Option<String>,
    /// Origin that visitors use.
    pub public_url: Option<String>,
}

/// A workload, converted to a recipe.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The document as the caller gave it.
    pub request: Value,
    /// The recipe that does what the workload requests.
    pub recipe: Recipe,
    /// Preview of the sandbox's site; absent: none.
    pub preview: Option<WorkloadPreview>,
    places: Places,
}

/// Where the rows of the recipe come from in the workload.
#[derive(Debug, Clone, Default, PartialEq)]
struct Places {
    /// Index in `artifacts` of each row in the recipe's `artifacts.paths`.
    paths: Vec<usize>,
    /// Index in `artifacts` of each row in the recipe's `artifacts.typed`.
    typed: Vec<usize>,
    /// Path in the workload of each blueprint step that `post_runtime_blueprint` added.
    later: Vec<String>,
    /// Number of steps of the workload's `blueprint`.
    own_steps: usize,
}

/// Reads a workload. The issues are all deviations from the format and all parts that this backend
/// cannot support on any host; `validate` checks the recipe against the host.
///
/// # Errors
/// The issues, with the paths of the workload.
pub fn workload(bytes: &[u8]) -> Result<Workload, Vec<Issue>> {
    let request = match json::read(bytes)? {
        Value::Object(request) => request,
        _ => return Err(vec![invalid("$", "a workload is a JSON object")]),
    };
    let mut translation = Translation::default();
    translation.schema(&request);
    for (name, value) in &request {
        translation.take(name, value);
    }
    if !request.contains_key("steps") {
        let why = "the workload has no steps; add at least one {command, args}";
        translation.issues.push(invalid("$.steps", why));
    }
    translation.blueprints(&request);
    let Translation {
        mut issues,
        mut recipe,
        places,
        preview,
    } = translation;
    recipe.insert("schema".to_owned(), json!(RECIPE_SCHEMA));
    let text = Value::Object(recipe).to_string();
    match parse(text.as_bytes()) {
        Ok(recipe) if issues.is_empty() => Ok(Workload {
            request: Value::Object(request),
            recipe,
            preview,
            places,
        }),
        Ok(_) => Err(issues),
        Err(found) => {
            for issue in found.into_iter().map(|issue| places.locate(issue)) {
                // A missing list of steps is reported above, with the name of the workload's
                // member; the recipe then has no workflow either.
                let known = issue.path == "$.workflow"
                    || issues.iter().any(|other| other.path == issue.path);
                if !known {
                    issues.push(issue);
                }
            }
            Err(issues)
        }
    }
}

impl Workload {
    /// Returns an issue of the recipe with the path of the field in the workload.
    #[must_use]
    pub fn locate(&self, issue: Issue) -> Issue {
        self.places.locate(issue)
    }
}

fn invalid(path: impl Into<String>, why: impl Into<String>) -> Issue {
    Issue::new(IssueCode::InvalidRecipe, path, why)
}

/// Returns whether a member is given without content. PHP encodes an empty object as `[]`.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(rows) => rows.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[derive(Default)]
struct Translation {
    issues: Vec<Issue>,
    recipe: Map<String, Value>,
    places: Places,
    preview: Option<WorkloadPreview>,
}

impl Translation {
    fn schema(&mut self, request: &Map<String, Value>) {
        if request.get("schema").and_then(Value::as_str) != Some(WORKLOAD_RUN) {
            let why = format!("schema must be {WORKLOAD_RUN:?}");
            self.issues.push(invalid("$.schema", why));
        }
    }

    fn set(&mut self, path: &str, value: Value) {
        json::set(&mut self.recipe, path, value);
    }

    fn take(&mut self, name: &str, value: &Value) {
        let path = member("$", name);
        // An empty `steps` is not skipped, because the recipe's grammar refuses it.
        if is_empty(value) && name != "steps" {
            return;
        }
        match name {
            "schema" | "blueprint" | "post_runtime_blueprint" | "postRuntimeBlueprint" => {}
            "runtime_env" | "runtimeEnv" => self.environment(value),
            "artifacts" => self.artifacts(value),
            "preview" => self.preview(value),
            "runtime_overlays" | "runtimeOverlays" => self.issues.push(Issue::new(
                IssueCode::UnsupportedRuntimeOverlay,
                path,
                "this backend has no overlays over the guest's WordPress; mount the code with mounts",
            )),
            "runtime_stack_mounts" | "runtimeStackMounts" => self.issues.push(Issue::new(
                IssueCode::UnsupportedRuntimeStack,
                path,
                "this backend cannot mount a layer below the guest's WordPress; use mounts",
            )),
            _ => match MEMBERS.iter().find(|row| row.0 == name || row.1 == name) {
                Some((_, _, place)) => self.set(place, value.clone()),
                None => self.issues.push(invalid(
                    path,
                    "a workload has no such member; remove it, or see `wp-codebox help run-wordpress-workload`",
                )),
            },
        }
    }

    /// Takes the environment variables; numbers and booleans become texts.
    fn environment(&mut self, value: &Value) {
        let mut value = value.clone();
        for (_, value) in value.as_object_mut().into_iter().flatten() {
            if value.is_number() || value.is_boolean() {
                *value = Value::String(value.to_string());
            }
        }
        self.set("$.inputs.runtimeEnv", value);
    }

    fn artifacts(&mut self, value: &Value) {
        let Some(rows) = value.as_array() else {
            let why = "artifacts must be a list of {name, path}";
            return self.issues.push(invalid("$.artifacts", why));
        };
        let (mut paths, mut typed) = (Vec::new(), Vec::new());
        for (index, row) in rows.iter().enumerate() {
            let mut row = row.clone();
            name_by_path(&mut row);
            match row.get("type") {
                Some(_) => {
                    typed.push(row);
                    self.places.typed.push(index);
                }
                None => {
                    paths.push(row);
                    self.places.paths.push(index);
                }
            }
        }
        for (path, rows) in [("$.artifacts.paths", paths), ("$.artifacts.typed", typed)] {
            if !rows.is_empty() {
                self.set(path, Value::Array(rows));
            }
        }
    }

    fn preview(&mut self, value: &Value) {
        let mut refuse = |name: &str, why: &str| {
            let path = match name {
                "" => "$.preview".to_owned(),
                name => member("$.preview", name),
            };
            let issue = Issue::new(IssueCode::UnsupportedRuntimePreview, path, why);
            self.issues.push(issue);
        };
        let Some(members) = value.as_object() else {
            return refuse(
                "",
                "preview must be an object such as {\"hold_seconds\": 60}",
            );
        };
        let mut preview = WorkloadPreview::default();
        for (name, value) in members {
            let text = || value.as_str().map(str::to_owned);
            let read = match name.as_str() {
                "hold_seconds" | "holdSeconds" => {
                    value.as_u64().map(|seconds| preview.hold_seconds = seconds)
                }
                "port" => value
                    .as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .map(|port| preview.port = Some(port)),
                "bind" => text().map(|bind| preview.bind = Some(bind)),
                "public_url" | "publicUrl" => text().map(|url| preview.public_url = Some(url)),
                "lease" => {
                    refuse(
                        name,
                        "a workload cannot set the lease of its preview, which the run creates; remove it, and read the lease with `wp-codebox preview-lease status`",
                    );
                    continue;
                }
                "site_url" | "siteUrl" => {
                    refuse(
                        name,
                        "the site takes its address from each visitor's request; remove this, and set public_url if a proxy is in front of the site",
                    );
                    continue;
                }
                _ => {
                    refuse(
                        name,
                        "unknown member; a preview accepts hold_seconds, port, bind and public_url",
                    );
                    continue;
                }
            };
            if read.is_none() {
                refuse(
                    name,
                    "hold_seconds and port must be whole numbers, bind and public_url must be texts",
                );
            }
        }
        if preview.hold_seconds == 0 {
            refuse(
                "",
                "set hold_seconds, the time for which the sandbox and its preview stay open after the last step",
            );
        }
        self.preview = Some(preview);
    }

    /// Sets the recipe's blueprint: the workload's `blueprint`, followed by the parts of its
    /// `post_runtime_blueprint` as steps.
    fn blueprints(&mut self, request: &Map<String, Value>) {
        let given = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| request.get(*name));
            found.filter(|value| !is_empty(value))
        };
        let own = given(["blueprint", "blueprint"]);
        let later = given(["post_runtime_blueprint", "postRuntimeBlueprint"]);
        let Some(later) = later else {
            if let Some(own) = own {
                self.set("$.runtime.blueprint", own.clone());
            }
            return;
        };
        let (own, later) = match (own.cloned().unwrap_or_else(|| json!({})), later) {
            (Value::Object(own), Value::Object(later)) => (own, later),
            (_, Value::Object(_)) => {
                return self
                    .issues
                    .push(invalid("$.blueprint", "a blueprint is a JSON object"));
            }
            _ => {
                let path = "$.post_runtime_blueprint";
                return self
                    .issues
                    .push(invalid(path, "a blueprint is a JSON object"));
            }
        };
        let mut own = own;
        let mut steps = match own.remove("steps") {
            None => Vec::new(),
            Some(Value::Array(steps)) => steps,
            Some(_) => {
                let why = "steps of a blueprint must be a list";
                return self.issues.push(invalid("$.blueprint.steps", why));
            }
        };
        self.places.own_steps = steps.len();
        for (name, value) in later {
            steps.extend(self.part(name, value));
        }
        own.insert("steps".to_owned(), Value::Array(steps));
        self.set("$.runtime.blueprint", Value::Object(own));
    }

    /// Returns the steps for a part of `post_runtime_blueprint`.
    fn part(&mut self, name: &str, value: &Value) -> Vec<Value> {
        let path = member("$.post_runtime_blueprint", name);
        let step = match (name, value) {
            ("steps", Value::Array(rows)) => {
                let places = (0..rows.len()).map(|index| format!("{path}[{index}]"));
                self.places.later.extend(places);
                return rows.clone();
            }
            ("siteOptions", Value::Object(options)) => {
                json!({"step": "setSiteOptions", "options": options})
            }
            ("constants", Value::Object(constants)) => {
                json!({"step": "defineWpConfigConsts", "consts": constants})
            }
            ("login", Value::Bool(true)) => json!({"step": "login"}),
            ("login", Value::Object(login)) => {
                let mut step = login.clone();
                step.insert("step".to_owned(), json!("login"));
                Value::Object(step)
            }
            _ => {
                let alone = Map::from_iter([(name.to_owned(), value.clone())]);
                let reasons = blueprint(&alone)
                    .rows
                    .into_iter()
                    .filter_map(|row| row.reason);
                let issues = reasons
                    .map(|why| Issue::new(IssueCode::UnsupportedBlueprint, path.clone(), why));
                self.issues.extend(issues);
                return Vec::new();
            }
        };
        self.places.later.push(path);
        vec![step]
    }
}

/// Names an artifact without a name by the last part of its path.
fn name_by_path(row: &mut Value) {
    let Some(members) = row.as_object_mut() else {
        return;
    };
    let path = members.get("path").and_then(Value::as_str);
    let name = path.and_then(|path| path.rsplit('/').next());
    if let (None, Some(name)) = (members.get("name"), name) {
        let name = Value::from(name);
        members.insert("name".to_owned(), name);
    }
}

impl Places {
    /// Converts the path of an issue from the recipe to the workload.
    fn locate(&self, mut issue: Issue) -> Issue {
        if let Some(path) = self.path(&issue.path) {
            issue.path = path;
        }
        issue
    }

    fn path(&self, path: &str) -> Option<String> {
        for (list, indices) in [("paths", &self.paths), ("typed", &self.typed)] {
            if let Some((index, rest)) = row(path, &format!("$.artifacts.{list}[")) {
                let own = indices.get(index)?;
                return Some(format!("$.artifacts[{own}]{rest}"));
            }
        }
        if let Some((index, rest)) = row(path, "$.runtime.blueprint.steps[") {
            let later = index.checked_sub(self.own_steps);
            if let Some(place) = later.and_then(|later| self.later.get(later)) {
                return Some(format!("{place}{rest}"));
            }
        }
        MEMBERS.iter().find_map(|(name, _, place)| {
            let rest = path.strip_prefix(place)?;
            let whole = rest.is_empty() || rest.starts_with(['.', '[']);
            whole.then(|| format!("$.{name}{rest}"))
        })
    }
}

/// Splits a path below a row of a list into the row's index and the rest.
fn row<'p>(path: &'p str, list: &str) -> Option<(usize, &'p str)> {
    let (index, rest) = path.strip_prefix(list)?.split_once(']')?;
    Some((index.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: &Value) -> Result<Workload, Vec<Issue>> {
        workload(document.to_string().as_bytes())
    }

    fn with(more: &Value) -> Value {
        let mut document = json!({"schema": WORKLOAD_RUN, "steps": [
            {"command": "wordpress.run-php", "args": ["code=1;"]},
        ]});
        let members = document.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        document
    }

    fn paths(document: &Value) -> Vec<String> {
        let issues = read(document).unwrap_err();
        issues.into_iter().map(|issue| issue.path).collect()
    }

    #[test]
    fn workload_members_become_the_corresponding_recipe_members() {
        let given = read(&with(&json!({
            "wordpress_version": "7.1",
            "blueprint": {"siteOptions": {"blogname": "A"}, "steps": [{"step": "login"}]},
            "post_runtime_blueprint": {"steps": [{"step": "mkdir", "path": "/wordpress/a"}], "login": true},
            "mounts": [{"source": "a", "target": "/workspace/a", "mode": "readonly", "metadata": {"b": 1}}],
            "runtime_env": {"A": 1, "B": "b"},
            "secret_env": ["TOKEN"],
            "staged_files": [{"source": "s", "target": "/run/codebox/staged/s"}],
            "artifacts": [{"path": "/tmp/a.json"}, {"name": "b", "type": "report", "path": "/tmp/b"}],
            "before": [{"command": "wordpress.wp-cli", "args": ["command=option list"], "advisory": true}],
            "preview": {"hold_seconds": 60, "port": 8080, "publicUrl": "https://example.org"},
            "metadata": {"task": 7},
            "runtime_overlays": [],
            "runtime_stack_mounts": [],
        })))
        .unwrap();
        let recipe = &given.recipe;
        assert_eq!(recipe.runtime.wp.as_deref(), Some("7.1"));
        let blueprint = json!(recipe.runtime.blueprint);
        let steps: Vec<_> = blueprint["steps"].as_array().unwrap().iter().collect();
        let names: Vec<_> = steps.iter().map(|step| &step["step"]).collect();
        assert_eq!(names.len(), 3);
        assert_eq!(names[0], "login");
        assert_eq!(blueprint["siteOptions"]["blogname"], "A");
        assert_eq!(recipe.inputs.runtime_env["A"], "1");
        assert_eq!(recipe.inputs.secret_env, ["TOKEN"]);
        assert_eq!(recipe.artifacts.paths[0].name, "a.json");
        assert_eq!(recipe.artifacts.typed[0].kind, "report");
        assert_eq!(recipe.workflow.before[0].advisory, Some(true));
        assert_eq!(recipe.workflow.steps[0].command, "wordpress.run-php");
        let preview = given.preview.unwrap();
        assert_eq!((preview.hold_seconds, preview.port), (60, Some(8080)));
        assert_eq!(json!(recipe.metadata), json!({"task": 7}));
    }

    #[test]
    fn null_and_empty_list_and_empty_object_as_a_workload_member_count_as_absent() {
        for empty in [json!(null), json!([]), json!({})] {
            let given = read(&with(&json!({
                "blueprint": empty, "preview": empty, "mounts": empty, "runtime_env": empty,
                "runtime_overlays": empty, "metadata": empty, "after": empty,
            })));
            assert!(given.is_ok(), "{given:?}");
        }
    }

    #[test]
    fn wrong_unknown_and_unsupported_members_are_reported_with_paths_of_the_workload() {
        for (more, path) in [
            (json!({"schema": "wp-codebox/other/v1"}), "$.schema"),
            (json!({"steps": []}), "$.steps"),
            (json!({"steps": [{"args": []}]}), "$.steps[0].command"),
            (json!({"mounts": [{"target": "/a"}]}), "$.mounts[0].source"),
            (json!({"frobnicate": 1}), "$.frobnicate"),
            (json!({"runtime_overlays": [{}]}), "$.runtime_overlays"),
            (
                json!({"runtime_stack_mounts": [{}]}),
                "$.runtime_stack_mounts",
            ),
            (json!({"preview": {"port": 80}}), "$.preview"),
            (
                json!({"preview": {"hold_seconds": 9, "lease": {}}}),
                "$.preview.lease",
            ),
            (
                json!({"preview": {"hold_seconds": "9"}}),
                "$.preview.hold_seconds",
            ),
            (
                json!({"artifacts": [{"path": "/a", "type": "t"}, {"path": 1}]}),
                "$.artifacts[1].path",
            ),
            (
                json!({"post_runtime_blueprint": {"plugins": ["x"]}}),
                "$.post_runtime_blueprint.plugins",
            ),
        ] {
            let found = paths(&with(&more));
            assert!(found.iter().any(|found| found == path), "{more}: {found:?}");
        }
        let bare = json!({"schema": WORKLOAD_RUN});
        assert_eq!(paths(&bare), ["$.steps"]);
        assert_eq!(workload(b"[]").unwrap_err()[0].path, "$");
        assert!(read(&with(&json!({}))).is_ok());
    }

    #[test]
    fn issue_of_a_post_runtime_blueprint_step_has_the_path_of_the_step_in_the_workload() {
        let given = read(&with(&json!({
            "blueprint": {"steps": [{"step": "login"}]},
            "post_runtime_blueprint": {"steps": [{"step": "login"}, {"step": "resetData"}]},
        })))
        .unwrap();
        let located = |path: &str| given.locate(invalid(path, "")).path;
        let own = "$.runtime.blueprint.steps[0]";
        assert_eq!(located(own), "$.blueprint.steps[0]");
        let later = "$.runtime.blueprint.steps[2].step";
        assert_eq!(located(later), "$.post_runtime_blueprint.steps[1].step");
        assert_eq!(located("$.workflow.steps[1]"), "$.steps[1]");
    }
}
