//! Builds recipes from a flat list of options, for callers that want one test run, benchmark or
//! ability call and do not know the format of a recipe.
//!
//! A built recipe is one that `parse` accepts. Issues name the option, not the recipe's field.

use crate::issue::{Issue, IssueCode, member};
use crate::json;
use crate::parse::{RECIPE_SCHEMA, parse};
use serde_json::{Map, Value, json};
use wp_codebox_contracts::parse_json;
use wp_codebox_policy::{AcceptedArg, Format, descriptor};

/// What a built recipe does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildKind {
    /// Runs the PHPUnit tests of a plugin.
    Phpunit,
    /// Runs the benchmarks of a plugin.
    Bench,
    /// Runs the given steps; without steps, it lists the plugins.
    Template,
    /// Calls one ability in a sandbox.
    GenericAbilityRuntimeRun,
    /// Runs a workflow of an agent package in a sandbox.
    RuntimePackageRun,
}

/// Options that every kind accepts: name, and path of the recipe's member that gets the value.
const COMMON: &[(&str, &str)] = &[
    ("name", "$.runtime.name"),
    ("wp", "$.runtime.wp"),
    ("wordpressVersion", "$.runtime.wp"),
    ("phpVersion", "$.runtime.phpVersion"),
    ("blueprint", "$.runtime.blueprint"),
    ("distribution", "$.distribution"),
    ("mounts", "$.inputs.mounts"),
    ("workspaces", "$.inputs.workspaces"),
    ("extraPlugins", "$.inputs.extra_plugins"),
    ("agentBundles", "$.inputs.agent_bundles"),
    ("runtimeEnv", "$.inputs.runtimeEnv"),
    ("secretEnv", "$.inputs.secretEnv"),
    ("services", "$.inputs.services"),
    ("pluginRuntime", "$.inputs.pluginRuntime"),
    ("fixtureUsers", "$.inputs.fixtureUsers"),
    ("userSessions", "$.inputs.userSessions"),
    ("siteSeeds", "$.inputs.siteSeeds"),
    ("stagedFiles", "$.inputs.stagedFiles"),
    ("before", "$.workflow.before"),
    ("after", "$.workflow.after"),
    ("artifacts", "$.artifacts"),
    ("probes", "$.probes"),
    ("metadata", "$.metadata"),
];

/// Options that become members of the built step.
const STEP: &[&str] = &["timeoutMs", "allowFailure", "advisory"];

impl BuildKind {
    /// All kinds, in the order of the help text.
    pub const ALL: [Self; 5] = [
        Self::Phpunit,
        Self::Bench,
        Self::Template,
        Self::GenericAbilityRuntimeRun,
        Self::RuntimePackageRun,
    ];

    /// Returns the name of the kind on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Phpunit => "phpunit",
            Self::Bench => "bench",
            Self::Template => "template",
            Self::GenericAbilityRuntimeRun => "generic-ability-runtime-run",
            Self::RuntimePackageRun => "runtime-package-run",
        }
    }

    const fn command(self) -> Option<&'static str> {
        match self {
            Self::Phpunit => Some("wordpress.phpunit"),
            Self::Bench => Some("wordpress.bench"),
            Self::GenericAbilityRuntimeRun | Self::RuntimePackageRun => Some("wordpress.ability"),
            Self::Template => None,
        }
    }

    /// Options of this kind that are neither a common member nor an argument of its command.
    const fn own(self) -> &'static [&'static str] {
        match self {
            Self::Phpunit | Self::Bench => &["source"],
            Self::Template => &["steps"],
            Self::GenericAbilityRuntimeRun => &["ability"],
            Self::RuntimePackageRun => &[
                "schema",
                "package",
                "workflow",
                "artifactDeclarations",
                "requiredArtifacts",
                "outputProjections",
            ],
        }
    }
}

/// Builds a recipe from options, a JSON object. Names of options are accepted in camel case, in
/// snake case and with hyphens.
///
/// # Errors
/// All wrong options, with their paths.
pub fn build(kind: BuildKind, options: &[u8]) -> Result<Value, Vec<Issue>> {
    let Value::Object(options) = json::read(options)? else {
        return Err(vec![invalid("$", "the options must be a JSON object")]);
    };
    let mut building = Building::new(kind);
    for (name, value) in &options {
        building.take(name, value);
    }
    building.finish()
}

fn invalid(path: impl Into<String>, why: impl Into<String>) -> Issue {
    Issue::new(IssueCode::InvalidRecipe, path, why)
}

/// An option as the caller wrote it.
struct Given<'a> {
    path: String,
    value: &'a Value,
}

struct Building<'a> {
    kind: BuildKind,
    recipe: Map<String, Value>,
    step: Map<String, Value>,
    args: Vec<String>,
    own: Vec<(&'static str, Given<'a>)>,
    /// Where the members of the recipe come from: place in the recipe, path of the option.
    places: Vec<(&'static str, String)>,
    issues: Vec<Issue>,
}

impl<'a> Building<'a> {
    fn new(kind: BuildKind) -> Self {
        Self {
            kind,
            recipe: Map::from_iter([("schema".to_owned(), json!(RECIPE_SCHEMA))]),
            step: Map::new(),
            args: Vec::new(),
            own: Vec::new(),
            places: Vec::new(),
            issues: Vec::new(),
        }
    }

    fn take(&mut self, written: &str, value: &'a Value) {
        let path = member("$", written);
        let name = camel(written);
        if let Some(own) = self.kind.own().iter().find(|own| **own == name) {
            return self.own.push((own, Given { path, value }));
        }
        if STEP.contains(&name.as_str()) {
            self.step.insert(name, value.clone());
            return;
        }
        // The option `name` is the recipe's name, so it never sets an argument `name`.
        if let Some(arg) = self
            .accepted()
            .iter()
            .find(|arg| arg.name != "name" && is_named(arg.name, &name))
        {
            match text(arg, value) {
                Ok(text) => self.args.push(format!("{}={text}", arg.name)),
                Err(why) => self.issues.push(invalid(path, why)),
            }
            return;
        }
        match COMMON.iter().find(|row| row.0 == name) {
            Some((_, place)) if self.places.iter().any(|(other, _)| other == place) => {
                let why = "another option sets the same value; remove one of them";
                self.issues.push(invalid(path, why));
            }
            Some((_, place)) => {
                json::set(&mut self.recipe, place, value.clone());
                self.places.push((place, path));
            }
            None => {
                let why = format!(
                    "recipe build {} has no such option; its options are {}",
                    self.kind.name(),
                    self.names().join(", ")
                );
                self.issues.push(invalid(path, why));
            }
        }
    }

    fn accepted(&self) -> &'static [AcceptedArg] {
        let found = self.kind.command().and_then(descriptor);
        found.map_or(&[], |command| command.accepted_args)
    }

    fn names(&self) -> Vec<String> {
        let args = self.accepted().iter().map(|arg| camel(arg.name));
        let fixed = self.kind.own().iter().chain(STEP).copied();
        let common = COMMON.iter().map(|row| row.0);
        args.filter(|name| name != "name")
            .chain(fixed.chain(common).map(str::to_owned))
            .collect()
    }

    fn finish(mut self) -> Result<Value, Vec<Issue>> {
        match self.kind {
            BuildKind::Phpunit => self.plugin("$.inputs.mounts"),
            BuildKind::Bench => self.plugin("$.inputs.extra_plugins"),
            BuildKind::Template => {}
            BuildKind::GenericAbilityRuntimeRun => self.ability(),
            BuildKind::RuntimePackageRun => self.package(),
        }
        let steps = match self.kind.command() {
            Some(command) => {
                self.missing_args();
                self.step.insert("command".to_owned(), json!(command));
                self.step.insert("args".to_owned(), json!(self.args));
                json!([self.step])
            }
            None => self.steps(),
        };
        json::set(&mut self.recipe, "$.workflow.steps", steps);
        let recipe = Value::Object(self.recipe);
        if let Err(found) = parse(recipe.to_string().as_bytes()) {
            let places = &self.places;
            self.issues
                .extend(found.into_iter().map(|issue| locate(issue, places)));
        }
        if self.issues.is_empty() {
            Ok(recipe)
        } else {
            Err(self.issues)
        }
    }

    /// Reports required arguments of the command that no option gave. The argument `name` of an
    /// ability call is not checked: the option `ability` sets it.
    fn missing_args(&mut self) {
        let required = self.accepted().iter().filter(|arg| arg.required);
        for arg in required.filter(|arg| arg.name != "name") {
            let given = |text: &String| {
                text.strip_prefix(arg.name)
                    .is_some_and(|rest| rest.starts_with('='))
            };
            if !self.args.iter().any(given) {
                let why = format!("this option is required: {}", arg.description);
                self.issues
                    .push(invalid(member("$", &camel(arg.name)), why));
            }
        }
    }

    fn own(&self, name: &str) -> Option<(&'a Value, String)> {
        let row = self.own.iter().find(|row| row.0 == name)?;
        Some((row.1.value, row.1.path.clone()))
    }

    /// Inserts the plugin of the option `source` at the start of the recipe's list with the path
    /// `list`.
    fn plugin(&mut self, list: &'static str) {
        let Some((source, path)) = self.own("source") else {
            return;
        };
        let named = |args: &[String]| {
            let given = args.iter().find_map(|arg| arg.strip_prefix("plugin-slug="));
            given.map(str::to_owned)
        };
        let Some(source) = source.as_str().filter(|source| !source.is_empty()) else {
            let why = "source is the directory of the plugin, relative to the recipe";
            return self.issues.push(invalid(path, why));
        };
        let last = source.trim_end_matches('/').rsplit('/').next();
        let Some(slug) = named(&self.args).or_else(|| {
            last.filter(|last| !matches!(*last, "" | "." | ".."))
                .map(str::to_owned)
        }) else {
            let why = "the plugin's slug cannot be taken from this path; set pluginSlug";
            return self.issues.push(invalid(path, why));
        };
        if named(&self.args).is_none() {
            self.args.push(format!("plugin-slug={slug}"));
        }
        let row = match self.kind {
            BuildKind::Phpunit => json!({
                "source": source,
                "target": format!("/wordpress/wp-content/plugins/{slug}"),
            }),
            _ => json!({"source": source, "slug": slug, "activate": true}),
        };
        let given = json::get(&self.recipe, list).cloned();
        let rows = match given {
            Some(Value::Array(rows)) => rows,
            Some(_) => return,
            None => Vec::new(),
        };
        let rows: Vec<Value> = std::iter::once(row).chain(rows).collect();
        json::set(&mut self.recipe, list, Value::Array(rows));
    }

    fn steps(&mut self) -> Value {
        match self.own("steps") {
            Some((steps, path)) => {
                self.places.push(("$.workflow.steps", path));
                steps.clone()
            }
            None => {
                let mut step = self.step.clone();
                step.insert("command".to_owned(), json!("wordpress.wp-cli"));
                step.insert("args".to_owned(), json!(["command=plugin list"]));
                json!([step])
            }
        }
    }

    /// Reads `ability`: its name, or an object `{name, input}`.
    fn ability(&mut self) {
        let Some((ability, path)) = self.own("ability") else {
            let why = "this option is required: the name of the ability, or {name, input}";
            return self.issues.push(invalid("$.ability", why));
        };
        let (name, input) = match ability {
            Value::String(name) => (Some(name.as_str()), None),
            Value::Object(members) => (
                members.get("name").and_then(Value::as_str),
                members.get("input"),
            ),
            _ => (None, None),
        };
        let Some(name) = name else {
            let why = "the name of an ability such as example/report, or {name, input}";
            return self.issues.push(invalid(path, why));
        };
        self.args.insert(0, format!("name={name}"));
        if let Some(input) = input {
            if self.args.iter().any(|arg| arg.starts_with("input=")) {
                let why = "the option input is given too; remove one of them";
                return self.issues.push(invalid(member(&path, "input"), why));
            }
            self.args.push(format!("input={input}"));
        }
    }

    /// Reads a `runtime-package-task/v1`: the run imports the package as an agent bundle, and
    /// the step calls the ability that the workflow of the package names.
    fn package(&mut self) {
        let mut need = |name: &'static str, parts: &[&str]| -> Option<&'a Value> {
            let found = self.own(name).map(|(value, _)| value);
            let complete = found.filter(|value| {
                parts
                    .iter()
                    .all(|part| value.get(part).is_some_and(Value::is_string))
            });
            if complete.is_none() {
                let why = format!("this option is required: {{{}}}", parts.join(", "));
                self.issues.push(invalid(member("$", name), why));
            }
            complete
        };
        let package = need("package", &["slug", "source"]);
        let workflow = need("workflow", &["id"]);
        let (Some(package), Some(workflow)) = (package, workflow) else {
            return;
        };
        let spec = &workflow["spec"];
        let ability = spec["ability"].as_str().or(workflow["id"].as_str());
        self.args
            .insert(0, format!("name={}", ability.unwrap_or_default()));
        let merged = self.merged_input(&spec["input"]);
        self.args.retain(|arg| !arg.starts_with("input="));
        self.args.push(format!("input={}", Value::Object(merged)));
        let bundle = json!({"source": package["source"], "slug": package["slug"]});
        json::set(&mut self.recipe, "$.inputs.agent_bundles", json!([bundle]));
        let required = self.own("requiredArtifacts").map(|(value, _)| value);
        let required: Vec<&str> = required
            .and_then(Value::as_array)
            .map(|rows| rows.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let declared = self.own("artifactDeclarations").map(|(value, _)| value);
        let rows: Vec<Value> = declared
            .and_then(Value::as_array)
            .map(|rows| {
                rows.iter()
                    .map(|row| declared_row(row, &required))
                    .collect()
            })
            .unwrap_or_default();
        if !rows.is_empty() {
            json::set(&mut self.recipe, "$.artifacts.paths", Value::Array(rows));
        }
    }

    /// Returns the input in the workflow's `spec`, overridden by the members of the option `input`.
    fn merged_input(&self, of_spec: &Value) -> Map<String, Value> {
        let mut merged = of_spec.as_object().cloned().unwrap_or_default();
        let given = self.args.iter().find_map(|arg| arg.strip_prefix("input="));
        if let Some(Ok(Value::Object(given))) = given.map(|text| parse_json(text.as_bytes())) {
            merged.extend(given);
        }
        merged
    }
}

/// Returns the row of `artifacts.paths` for a declared artifact of a package.
fn declared_row(row: &Value, required: &[&str]) -> Value {
    let name = row["name"].as_str().unwrap_or_default();
    json!({"name": name, "path": row["path"], "required": required.contains(&name)})
}

/// Returns an issue of the recipe with the path of the option that it comes from.
fn locate(mut issue: Issue, places: &[(&'static str, String)]) -> Issue {
    for (place, option) in places {
        if let Some(rest) = issue.path.strip_prefix(place)
            && (rest.is_empty() || rest.starts_with(['.', '[']))
        {
            issue.path = format!("{option}{rest}");
            return issue;
        }
    }
    issue
}

/// Returns a name in camel case: `plugin-slug` and `plugin_slug` are `pluginSlug`.
fn camel(name: &str) -> String {
    let mut parts = name.split(['-', '_']).filter(|part| !part.is_empty());
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut all, part| {
        let mut rest = part.chars();
        all.extend(rest.next().map(|c| c.to_ascii_uppercase()));
        all.push_str(rest.as_str());
        all
    })
}

/// Returns whether an option names an argument; `-json` at the argument's end may be left out.
fn is_named(arg: &str, option: &str) -> bool {
    camel(arg) == option || camel(arg.strip_suffix("-json").unwrap_or(arg)) == option
}

/// Returns an option's value as the text of an argument.
fn text(arg: &AcceptedArg, value: &Value) -> Result<String, String> {
    let is_json = matches!(
        arg.format,
        Format::Json
            | Format::JsonObject
            | Format::JsonList
            | Format::JsonObjectOrFile
            | Format::JsonListOrFile
    );
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Array(_) | Value::Object(_) if is_json => Ok(value.to_string()),
        Value::Array(rows) => rows
            .iter()
            .map(|row| row.as_str().filter(|text| !text.contains(',')))
            .collect::<Option<Vec<_>>>()
            .map(|rows| rows.join(","))
            .ok_or_else(|| "must be a list of texts without commas".to_owned()),
        Value::Object(_) | Value::Null => Err(format!("{} cannot be an object or null", arg.name)),
    }
}

#[cfg(test)]
mod tests;
