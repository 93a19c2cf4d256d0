//! Converts WordPress blueprints (JSON documents that describe how to set a site up): supported
//! steps become steps of a recipe; unsupported parts are listed by name with the reason.
//!
//! Blueprints are written for a WordPress that runs in a browser and downloads packages. A recipe
//! mounts packages of the host, and downloads others only if its policy opens their hosts. Parts
//! that are not supported are refused, never dropped.

mod convert;
mod package;
mod packages;
mod part;
mod steps;

pub(crate) use package::{Package, PackageSource};

use crate::model::Metadata;
use crate::model::Recipe;
use crate::php_source::settings;
use crate::sources::Sources;
use convert::{define, login, options_call, step};
use package::PackageKind;
use part::{Part, PartResult, Scope, check_members};
use serde::Serialize;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{OnFailure, Workflow, WorkflowStep};

/// Schema id of the response to the request `validate-blueprint`.
pub const BLUEPRINT_VALIDATION: &str = "wp-codebox/blueprint-validation/v1";
/// Maximum number of steps in a blueprint.
const MAX_STEPS: usize = 500;

/// Result for one part of a blueprint: whether this backend supports it, and the recipe command
/// that implements it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlueprintRow {
    /// Path of the part, e.g. `steps[0]` or `login`.
    pub path: String,
    /// Name of the step, e.g. `runPHP`; for a part that is not a step, its member name, e.g.
    /// `login`.
    pub step: String,
    /// Whether the part is supported.
    pub supported: bool,
    /// Why the part is not supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Recipe command that does what the part requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Value>,
}

/// A blueprint converted to recipe steps, as far as its parts are supported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blueprint {
    /// One row for each part of the blueprint, in the order of the blueprint.
    pub rows: Vec<BlueprintRow>,
    /// Recipe steps that do what the supported parts request.
    pub steps: Vec<WorkflowStep>,
    /// Constants that the blueprint defines, which go into the guest's `wp-config.php`.
    pub constants: Map<String, Value>,
    /// Plugins and themes that the blueprint installs from the host; empty outside of a recipe.
    pub(crate) packages: Vec<Package>,
    /// Path of each step that downloads a plugin or theme, and the host of the download.
    pub(crate) downloads: Vec<(String, String)>,
}

/// Converts a blueprint that is not part of a recipe, and checks each of its parts. It can install
/// no plugins and themes: only a recipe says what a run mounts and which hosts it reaches.
#[must_use]
pub fn blueprint(document: &Metadata) -> Blueprint {
    let mut all = translated(document, None);
    let installs: Vec<String> = all
        .packages
        .drain(..)
        .map(|package| package.path)
        .chain(all.downloads.drain(..).map(|(path, _)| path))
        .collect();
    for row in &mut all.rows {
        if installs.contains(&row.path) {
            row.supported = false;
            row.call = None;
            row.reason = Some(INSTALL.to_owned());
        }
        // For a recipe, validation compares the versions with the host's and reports that the
        // policy decides about the network. Here neither is possible, so `features` and every
        // version other than `latest` are refused.
        let versions = document.get("preferredVersions").and_then(Value::as_object);
        let latest = versions.is_none_or(|v| v.values().all(|v| v == "latest"));
        let open = !document.get("features").is_none_or(is_nothing);
        let reason = match row.path.as_str() {
            "preferredVersions" if !latest => VERSIONS,
            "features" if open => NETWORK,
            _ => continue,
        };
        row.supported = false;
        row.reason = Some(reason.to_owned());
    }
    all
}

/// Converts the blueprint of a recipe.
pub(crate) fn in_recipe(document: &Metadata, sources: &dyn Sources) -> Blueprint {
    translated(document, sources.facts().theme.as_deref())
}

/// Returns the plugins and themes that the blueprint of a recipe installs from the host.
pub(crate) fn packages(recipe: &Recipe, sources: &dyn Sources) -> Vec<Package> {
    let document = recipe.runtime.blueprint.as_ref();
    document.map_or_else(Vec::new, |document| in_recipe(document, sources).packages)
}

/// Returns the steps of a recipe's blueprint that download, and the host of each.
pub(crate) fn downloads(recipe: &Recipe, sources: &dyn Sources) -> Vec<(String, String)> {
    let document = recipe.runtime.blueprint.as_ref();
    document.map_or_else(Vec::new, |document| in_recipe(document, sources).downloads)
}

fn translated(document: &Metadata, theme: Option<&str>) -> Blueprint {
    let mut all = Blueprint::default();
    let mut scope = Scope {
        theme,
        packages: Vec::new(),
        downloads: Vec::new(),
    };
    for (name, value) in document {
        match (name.as_str(), value) {
            ("steps", _) => {}
            ("plugins", Value::Array(rows)) => {
                for (index, resource) in rows.iter().enumerate() {
                    let path = format!("plugins[{index}]");
                    let row = json!({"pluginData": resource});
                    let part = packages::install(PackageKind::Plugin, &row, &path, &mut scope);
                    all.take(path, "plugins", part);
                }
            }
            (name, value) => all.take(name.to_owned(), name, top(name, value)),
        }
    }
    match document.get("steps") {
        None => {}
        Some(Value::Array(rows)) if rows.len() <= MAX_STEPS => {
            for (index, row) in rows.iter().enumerate() {
                let name = row.get("step").and_then(Value::as_str).unwrap_or_default();
                // A blueprint may contain null or false in place of a step; both are skipped.
                if matches!(row, Value::Null | Value::Bool(false)) {
                    continue;
                }
                let path = format!("steps[{index}]");
                let part = step(name, row, &path, &mut scope);
                all.take(path, name, part);
            }
        }
        Some(_) => all.take(
            "steps".to_owned(),
            "steps",
            Err(format!("must be a list of at most {MAX_STEPS} steps")),
        ),
    }
    all.packages = scope.packages;
    all.downloads = scope.downloads;
    all
}

/// Returns the recipe steps of a recipe's blueprint. Unsupported parts are left out, so callers
/// validate the blueprint first.
pub(crate) fn steps(recipe: &Recipe, sources: &dyn Sources) -> Vec<WorkflowStep> {
    let document = recipe.runtime.blueprint.as_ref();
    document.map_or_else(Vec::new, |document| in_recipe(document, sources).steps)
}

/// Returns the response to the request `validate-blueprint`. `document` is the blueprint, or the
/// reason why its file could not be read.
#[must_use]
pub fn blueprint_validation(document: Result<&Metadata, &str>) -> Value {
    let validated = document.map(blueprint);
    let (rows, mut issues) = match &validated {
        Ok(validated) => (validated.rows.clone(), Vec::new()),
        Err(why) => (
            Vec::new(),
            vec![json!({"code": "invalid-blueprint", "path": "$", "message": why})],
        ),
    };
    for row in rows.iter().filter(|row| !row.supported) {
        issues.push(json!({
            "code": "unsupported-blueprint",
            "path": format!("$.{}", row.path),
            "message": row.reason,
        }));
    }
    let valid = issues.is_empty();
    json!({
        "success": valid,
        "schema": BLUEPRINT_VALIDATION,
        "valid": valid,
        "issues": issues,
        "steps": rows,
    })
}

impl Blueprint {
    /// Returns the blueprint as a workflow: its steps, and the file with its constants.
    #[must_use]
    pub fn workflow(&self) -> Workflow {
        Workflow {
            steps: self.steps.clone(),
            files: settings(self.constants.iter()).into_iter().collect(),
            ..Workflow::default()
        }
    }

    fn take(&mut self, path: String, name: &str, validated: PartResult) {
        let mut row = BlueprintRow {
            path,
            step: name.chars().take(100).collect(),
            supported: true,
            reason: None,
            call: None,
        };
        match validated {
            Err(reason) => {
                row.supported = false;
                row.reason = Some(reason);
            }
            Ok(Part::Ignored) => {}
            Ok(Part::Constants(constants)) => self.constants.extend(constants),
            Ok(Part::Call(call)) => {
                row.call = Some(json!(call));
                self.steps.push(WorkflowStep {
                    phase: "blueprint".to_owned(),
                    index: u32::try_from(self.steps.len()).unwrap_or(u32::MAX),
                    name: Some(row.step.clone()),
                    call,
                    timeout_ms: None,
                    on_failure: OnFailure::Stop,
                    expect_json: false,
                    continuation: None,
                    metadata: Map::new(),
                });
            }
        }
        self.rows.push(row);
    }
}

fn top(name: &str, value: &Value) -> PartResult {
    match (name, value) {
        ("$schema" | "landingPage", _) => Ok(Part::Ignored),
        ("meta", value) => {
            let members = ["title", "description", "author", "categories"];
            check_members("meta", value, &members).map(|()| Part::Ignored)
        }
        ("login", Value::Bool(true)) => login("admin"),
        ("login", Value::Object(row)) => {
            check_members("login", value, &["username", "password"])?;
            login(
                row.get("username")
                    .and_then(Value::as_str)
                    .unwrap_or("admin"),
            )
        }
        ("siteOptions", Value::Object(options)) => Ok(Part::Call(options_call(options))),
        ("constants", Value::Object(constants)) => define(constants),
        ("login" | "features" | "extraLibraries" | "phpExtensionBundles", value)
            if is_nothing(value) =>
        {
            Ok(Part::Ignored)
        }
        // Validation of the recipe compares the versions with those of the host.
        ("preferredVersions", value) => {
            check_members("preferredVersions", value, &["php", "wp"]).map(|()| Part::Ignored)
        }
        // Nothing to install: every guest has WP-CLI.
        ("extraLibraries", Value::Array(rows)) if rows.iter().all(|r| r == "wp-cli") => {
            Ok(Part::Ignored)
        }
        ("phpExtensionBundles", Value::Array(rows))
            if rows.iter().all(|r| r == "kitchen-sink" || r == "light") =>
        {
            Ok(Part::Ignored)
        }
        // A notice of the run says that the policy decides about the network.
        ("features", value) => {
            check_members("features", value, &["networking"]).map(|()| Part::Ignored)
        }
        _ => Err("this part of a blueprint is not supported here; remove it".to_owned()),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(rows) => rows.is_empty(),
        Value::Object(rows) => rows.values().all(is_nothing),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => false,
    }
}

const VERSIONS: &str = "guests have the WordPress and PHP of this host; set \"latest\", or omit it";
const NETWORK: &str =
    "a blueprint cannot open the network; set the network in the policy of the run";
const INSTALL: &str = "only the blueprint of a recipe can install plugins and themes: run it as runtime.blueprint of a recipe with `wp-codebox recipe-run`";

#[cfg(test)]
mod tests {
    use super::*;

    fn validated(document: Value) -> Blueprint {
        blueprint(document.as_object().unwrap())
    }

    #[test]
    fn supported_blueprint_parts_become_recipe_steps() {
        let all = validated(json!({
            "$schema": "x",
            "landingPage": "/",
            "login": true,
            "steps": [
                {"step": "login", "username": "admin"},
                {"step": "activatePlugin", "pluginPath": "/wordpress/wp-content/plugins/shop/shop.php"},
                {"step": "activateTheme", "themeFolderName": "twentytwentyfive"},
                {"step": "setSiteOptions", "options": {"blogname": "It's"}},
                {"step": "runPHP", "code": "<?php require '/wordpress/wp-load.php'; echo 1;"},
                {"step": "wp-cli", "command": "wp option get home"},
                {"step": "wp-cli", "command": ["wp", "post", "create", "--post_title=It's"]},
                {"step": "defineWpConfigConsts", "consts": {"MY_FLAG": true}},
                {"step": "enableMultisite"},
                {"step": "mkdir", "path": "wp-content/x"},
                {"step": "writeFile", "path": "/wordpress/wp-content/x/a.txt", "data": "a"},
                null
            ]
        }));
        let refused: Vec<_> = all.rows.iter().filter(|r| !r.supported).collect();
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(all.steps.len(), 11);
        assert_eq!(all.constants["MY_FLAG"], true);
        let lines: Vec<_> = all.steps.iter().map(|s| s.call.args[0].as_str()).collect();
        assert_eq!(lines[5], "code=require '/wordpress/wp-load.php'; echo 1;");
        assert_eq!(all.steps[5].call.args[1], "bootstrap=none");
        assert_eq!(lines[6], "command=option get home");
        assert_eq!(lines[7], r"command='post' 'create' '--post_title=It'\''s'");
        for step in &all.steps {
            let policy = wp_codebox_policy::defaults(vec![step.call.command.clone()]);
            wp_codebox_policy::assert_command(&policy, &step.call).unwrap();
        }
    }

    #[test]
    fn blueprint_steps_with_data_become_recipe_steps_and_unsupported_data_is_refused() {
        let all = validated(json!({"steps": [
            {"step": "runSql", "sql": {"resource": "literal", "name": "a.sql", "contents": "SELECT 1"}},
            {"step": "importWxr", "file": {"resource": "vfs", "path": "/tmp/a.xml"}},
            {"step": "resetData"},
            {"step": "request", "request": {"url": "/?a=1", "method": "POST", "headers": {"X-A": "b"}, "body": {"x y": "1&2"}}},
            {"step": "setSiteLanguage", "language": "de_DE"},
            {"step": "unzip", "zipFile": {"resource": "vfs", "path": "/tmp/a.zip"}, "extractToPath": "/tmp/a"},
            {"step": "writeFiles", "writeToPath": "/tmp/x", "filesTree": {"resource": "literal:directory", "name": "x", "files": {"a": {"b.txt": "c"}}}},
            {"step": "runPHPWithOptions", "options": {"code": "<?php echo 1;", "env": {"A": "b"}}},
            {"step": "importThemeStarterContent"},
            {"step": "runWpInstallationWizard", "options": {"adminPassword": "x"}},
        ]}));
        let refused: Vec<_> = all.rows.iter().filter(|r| !r.supported).collect();
        assert!(refused.is_empty(), "{refused:?}");
        let request = &all.steps[3].call;
        assert_eq!(request.args[3], "body=x%20y=1%262");
        for step in &all.steps {
            let policy = wp_codebox_policy::defaults(vec![step.call.command.clone()]);
            wp_codebox_policy::assert_command(&policy, &step.call).unwrap();
        }
        for row in [
            json!({"step": "runSql", "sql": {"resource": "url", "url": "https://example.org/a.sql"}}),
            json!({"step": "request", "request": {"url": "https://example.org/"}}),
            json!({"step": "writeFiles", "filesTree": {"resource": "literal:directory", "files": {"../a": "x"}}}),
            json!({"step": "setSiteLanguage", "language": "de'; exit"}),
            json!({"step": "runPHPWithOptions", "options": {"code": "1;", "relativeUri": "/"}}),
            json!({"step": "runWpInstallationWizard", "options": {"adminUsername": "ed"}}),
        ] {
            let all = validated(json!({"steps": [row]}));
            assert!(!all.rows[0].supported && all.steps.is_empty(), "{row}");
        }
    }

    /// `translated` converts the blueprint of a recipe, `blueprint` one that is given without a
    /// recipe.
    #[test]
    fn packages_are_installed_only_by_the_blueprint_of_a_recipe() {
        let document = json!({"plugins": ["akismet"], "steps": [
            {"step": "installPlugin", "pluginData": {"resource": "url", "url": "./own.zip"}},
            {"step": "installTheme", "themeData": {"resource": "wordpress.org/themes", "slug": "twentytwentyfive"}},
            {"step": "installTheme", "themeData": {"resource": "wordpress.org/themes", "slug": "other"}},
            {"step": "installPlugin", "pluginData": {"resource": "git:directory", "url": "https://example.org/a"}},
        ]});
        let all = translated(document.as_object().unwrap(), Some("twentytwentyfive"));
        let supported: Vec<_> = all.rows.iter().map(|row| row.supported).collect();
        assert_eq!(supported, [true, true, true, true, false]);
        assert_eq!(all.packages.len(), 1);
        assert_eq!(
            all.packages[0].target(),
            "/wordpress/wp-content/plugins/own"
        );
        let paths: Vec<_> = all
            .downloads
            .iter()
            .map(|(path, _)| path.as_str())
            .collect();
        assert_eq!(paths, ["plugins[0]", "steps[2]"]);
        let strict = blueprint(document.as_object().unwrap());
        assert!(strict.rows.iter().filter(|row| !row.supported).count() >= 4);
        let one = strict
            .rows
            .iter()
            .find(|row| row.path == "steps[0]")
            .unwrap();
        assert!(one.reason.as_ref().unwrap().contains("recipe"));
    }

    #[test]
    fn unsupported_blueprint_parts_are_listed_with_reasons() {
        for (name, value) in [
            ("plugins", json!(["akismet"])),
            ("features", json!({"teleport": true})),
            ("preferredVersions", json!({"node": "22"})),
            ("wat", json!(1)),
            ("steps", json!("x")),
            ("constants", json!({"DB_NAME": "x"})),
        ] {
            let all = validated(json!({name: value}));
            assert!(!all.rows[0].supported, "{name}");
            assert!(all.rows[0].reason.as_ref().unwrap().len() > 10);
        }
        for row in [
            json!({"step": "importWordPressFiles"}),
            json!({"step": "defineSiteUrl", "siteUrl": "https://example.org"}),
            json!({"step": "noSuchStep"}),
            json!({}),
            json!({"step": "wp-cli"}),
            json!({"step": "mkdir", "path": "../x"}),
            json!({"step": "activateTheme", "themeFolderName": "a b; rm"}),
            json!({"step": "activatePlugin", "pluginPath": "../x"}),
            json!({"step": "defineWpConfigConsts", "consts": {"ABSPATH": "/"}}),
        ] {
            let all = validated(json!({"steps": [row]}));
            assert!(!all.rows[0].supported, "{row}");
            assert!(all.steps.is_empty() && all.constants.is_empty());
        }
        for (document, member) in [
            (json!({"login": {"user": "ed"}}), "user"),
            (json!({"meta": {"title": "x", "version": 2}}), "version"),
            (
                json!({"steps": [{"step": "runPHP", "code": "1;", "relativeUri": "/x"}]}),
                "relativeUri",
            ),
            (
                json!({"steps": [{"step": "wp-cli", "command": "wp x", "wpCliPath": "/x"}]}),
                "wpCliPath",
            ),
            (
                json!({"steps": [{"step": "writeFile", "path": "a", "data": {"resource": "literal", "contents": "", "url": "x"}}]}),
                "url",
            ),
        ] {
            let all = validated(document);
            assert!(!all.rows[0].supported && all.steps.is_empty(), "{member}");
            let reason = all.rows[0].reason.as_ref().unwrap();
            assert!(
                reason.contains(&format!("no member {member:?}")),
                "{reason}"
            );
        }
        let known = validated(json!({
            "meta": {"title": "x"}, "login": {"username": "admin", "password": "password"},
            "steps": [{"step": "mkdir", "path": "x", "progress": {"caption": "x", "weight": 2}}],
        }));
        assert!(known.rows.iter().all(|row| row.supported), "{known:?}");
        let document = json!({"steps": [{"step": "defineSiteUrl"}]});
        let answer = blueprint_validation(Ok(document.as_object().unwrap()));
        assert_eq!(answer["valid"], false);
        assert_eq!(answer["issues"][0]["path"], "$.steps[0]");
    }
}
