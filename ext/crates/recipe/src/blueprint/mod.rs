//! Converts Playground blueprints: supported steps become steps of a recipe; unsupported parts are
//! listed by name with the reason.
//!
//! Blueprints are written for a WordPress that runs in a browser and downloads packages. A guest
//! downloads nothing, so every part that names a remote package is refused, never dropped.

use crate::grammar::Pattern;
use crate::model::Metadata;
use crate::php_source::{is_define, php_literal, program, settings};
use serde::Serialize;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{CommandCall, OnFailure, Workflow, WorkflowStep};

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

/// A blueprint translated to recipe steps, as far as its parts are supported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blueprint {
    /// One row for each part of the blueprint, in the order of the blueprint.
    pub rows: Vec<BlueprintRow>,
    /// Recipe steps that do what the supported parts request.
    pub steps: Vec<WorkflowStep>,
    /// Constants that the blueprint defines, which go into the guest's `wp-config.php`.
    pub constants: Map<String, Value>,
}

/// What a part of a blueprint is translated to.
enum Part {
    Call(CommandCall),
    Constants(Map<String, Value>),
    /// The part is descriptive and requires no action.
    Ignored,
}

type PartResult = Result<Part, String>;

/// Translates a blueprint and checks each of its parts.
#[must_use]
pub fn blueprint(document: &Metadata) -> Blueprint {
    let mut all = Blueprint::default();
    for (name, value) in document {
        match name.as_str() {
            "steps" => {}
            name => all.take(name.to_owned(), name, top(name, value)),
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
                all.take(format!("steps[{index}]"), name, step(name, row));
            }
        }
        Some(_) => all.take(
            "steps".to_owned(),
            "steps",
            Err(format!("must be a list of at most {MAX_STEPS} steps")),
        ),
    }
    all
}

/// Returns the recipe steps of a blueprint. Unsupported parts are left out, so callers validate the
/// blueprint first.
pub(crate) fn steps(document: Option<&Metadata>) -> Vec<WorkflowStep> {
    document.map_or_else(Vec::new, |document| blueprint(document).steps)
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
        ("login" | "features" | "plugins" | "extraLibraries" | "phpExtensionBundles", value)
            if is_nothing(value) =>
        {
            Ok(Part::Ignored)
        }
        ("preferredVersions", Value::Object(versions))
            if versions.values().all(|v| v == "latest") =>
        {
            Ok(Part::Ignored)
        }
        ("preferredVersions", _) => Err(
            "guests have the WordPress and PHP of this host; set \"latest\", or omit it".to_owned(),
        ),
        ("plugins", _) => Err(DOWNLOAD.to_owned()),
        ("features", _) => Err(
            "a blueprint cannot open the network; set the network in the policy of the run"
                .to_owned(),
        ),
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

const DOWNLOAD: &str = "this backend downloads nothing: unpack the package on this host, and mount its directory or list it in the recipe's extra_plugins";

/// Members of the supported steps, in addition to `step` and `progress`. `login` accepts a password
/// and ignores it, as other runtimes do. `method`, which selects how a constant is written, has no
/// effect: every constant goes into wp-config.php.
const MEMBERS: &[(&str, &[&str])] = &[
    ("login", &["username", "password"]),
    ("activatePlugin", &["pluginPath", "pluginName"]),
    ("activateTheme", &["themeFolderName"]),
    ("setSiteOptions", &["options"]),
    ("updateUserMeta", &["userId", "meta"]),
    ("defineWpConfigConsts", &["consts", "method"]),
    ("runPHP", &["code"]),
    ("wp-cli", &["command"]),
    ("mkdir", &["path"]),
    ("writeFile", &["path", "data"]),
    ("rm", &["path"]),
    ("rmdir", &["path"]),
    ("mv", &["fromPath", "toPath"]),
    ("cp", &["fromPath", "toPath"]),
    ("enableMultisite", &[]),
];

/// Refuses unknown members of an object: a step without them would do something else.
fn check_members(name: &str, value: &Value, members: &[&str]) -> Result<(), String> {
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

fn step(name: &str, row: &Value) -> PartResult {
    if let Some((_, own)) = MEMBERS.iter().find(|known| known.0 == name) {
        let members: Vec<&str> = own.iter().chain(&["step", "progress"]).copied().collect();
        check_members(name, row, &members)?;
    }
    for (member, members) in [
        ("code", &["filename", "content"][..]),
        ("data", &["resource", "name", "contents"][..]),
    ] {
        check_members(member, row.get(member).unwrap_or(&Value::Null), members)?;
    }
    let text = |field: &str| -> Result<&str, String> {
        row.get(field)
            .and_then(Value::as_str)
            .ok_or_else(|| format!("the step needs the member {field} with a text"))
    };
    let path = |field: &str| -> Result<String, String> { guest_path(text(field)?) };
    let object = |field: &str| -> Result<&Map<String, Value>, String> {
        row.get(field)
            .and_then(Value::as_object)
            .ok_or_else(|| format!("the step needs the member {field} with an object"))
    };
    match name {
        "login" => login(text("username").unwrap_or("admin")),
        "activatePlugin" => {
            let plugin = plugin_file(text("pluginPath")?)?;
            let question = json!({"plugins": [plugin]});
            Ok(Part::Call(program("activate-plugins.php", &question)))
        }
        "activateTheme" => {
            let theme = text("themeFolderName")?;
            if !Pattern::Name.fits(theme) {
                return Err("themeFolderName must be the name of a directory".to_owned());
            }
            Ok(Part::Call(wp_cli(format!("theme activate {theme}"))))
        }
        "setSiteOptions" => Ok(Part::Call(options_call(object("options")?))),
        "updateUserMeta" => {
            let user = row.get("userId").and_then(Value::as_u64);
            let user = user.ok_or("the step needs the member userId with a whole number")?;
            let meta = php_literal(&json!(object("meta")?));
            Ok(Part::Call(php(format!(
                "foreach ( {meta} as $name => $value ) {{ update_user_meta( {user}, $name, $value ); }}"
            ))))
        }
        "defineWpConfigConsts" => define(object("consts")?),
        "runPHP" => {
            let code = row
                .get("code")
                .and_then(|code| code.as_str().or_else(|| code.get("content")?.as_str()))
                .ok_or("the step needs the member code with a text")?;
            bare(code)
        }
        "wp-cli" => Ok(Part::Call(wp_cli(command_line(row.get("command"))?))),
        "mkdir" => {
            let path = path("path")?;
            bare(&format!(
                "is_dir( {path} ) || mkdir( {path}, 0755, true ) || exit( 1 );"
            ))
        }
        "writeFile" => {
            let data = row
                .get("data")
                .and_then(|data| {
                    let literal = data.get("resource").and_then(Value::as_str) == Some("literal");
                    data.as_str()
                        .or_else(|| literal.then(|| data.get("contents")?.as_str()).flatten())
                })
                .ok_or("the step needs the member data with a text or a literal resource that has a text")?;
            let (path, data) = (path("path")?, php_literal(&json!(data)));
            bare(&format!(
                "false === file_put_contents( {path}, {data} ) && exit( 1 );"
            ))
        }
        "rm" => bare(&format!("unlink( {} ) || exit( 1 );", path("path")?)),
        "rmdir" => bare(&format!("rmdir( {} ) || exit( 1 );", path("path")?)),
        "mv" | "cp" => {
            let function = if name == "mv" { "rename" } else { "copy" };
            let (from, to) = (path("fromPath")?, path("toPath")?);
            bare(&format!("{function}( {from}, {to} ) || exit( 1 );"))
        }
        "installPlugin" | "installTheme" | "setSiteLanguage" | "importWordPressFiles" => {
            Err(DOWNLOAD.to_owned())
        }
        // Creates the network with its main site only. Later steps of the blueprint can create
        // further sites. The guest has only one address, so these sites must be in subdirectories.
        "enableMultisite" => {
            let question = json!({"name": "blueprint", "title": "Network", "sites": []});
            Ok(Part::Call(program("make-network.php", &question)))
        }
        "defineSiteUrl" => Err("the guest has a fixed address; remove the step".to_owned()),
        "runSql" => Err(
            "the guest's database is SQLite and cannot import a MySQL dump; use runPHP or a site seed"
                .to_owned(),
        ),
        "" => Err("the member `step` with the name of the step is missing".to_owned()),
        _ => Err("this backend does not support this step; use runPHP or wp-cli instead".to_owned()),
    }
}

fn php(code: String) -> CommandCall {
    CommandCall {
        command: "wordpress.run-php".to_owned(),
        args: vec![format!("code={code}")],
    }
}

/// Returns a step that runs PHP code without loading WordPress first: blueprint code that needs
/// WordPress contains the `require` of `wp-load.php`.
fn bare(code: &str) -> PartResult {
    let code = code.trim_start();
    let code = code.strip_prefix("<?php").unwrap_or(code).trim_start();
    let mut call = php(code.to_owned());
    call.args.push("bootstrap=none".to_owned());
    Ok(Part::Call(call))
}

fn wp_cli(command: String) -> CommandCall {
    CommandCall {
        command: "wordpress.wp-cli".to_owned(),
        args: vec![format!("command={command}")],
    }
}

/// Returns a step that fails if the user does not exist. It starts no login session: steps are
/// programs in the guest without a browser.
fn login(user: &str) -> PartResult {
    let user = php_literal(&json!(user));
    Ok(Part::Call(php(format!(
        "if ( ! get_user_by( 'login', {user} ) ) {{ fwrite( STDERR, 'the user of the login step does not exist' ); exit( 1 ); }}"
    ))))
}

fn options_call(options: &Map<String, Value>) -> CommandCall {
    let options = php_literal(&json!(options));
    php(format!(
        "foreach ( {options} as $name => $value ) {{ update_option( $name, $value ); }}"
    ))
}

fn define(constants: &Map<String, Value>) -> PartResult {
    for (name, value) in constants {
        if !is_define(name) {
            return Err(format!(
                "a blueprint may not define the constant {name:?}: the name is invalid, or the guest itself defines it"
            ));
        }
        if value.is_array() || value.is_object() {
            return Err(format!(
                "{name} must be text, a number, true, false or null"
            ));
        }
    }
    Ok(Part::Constants(constants.clone()))
}

/// Returns the WP-CLI command line in `value`, a text or a list of words, without the leading `wp`.
fn command_line(value: Option<&Value>) -> Result<String, String> {
    let line = match value {
        Some(Value::String(line)) => line.trim().to_owned(),
        Some(Value::Array(words)) => words
            .iter()
            .filter_map(Value::as_str)
            .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
            .collect::<Vec<_>>()
            .join(" "),
        _ => return Err("the step needs the command as text or a list of words".to_owned()),
    };
    let line = line
        .strip_prefix("wp ")
        .or_else(|| line.strip_prefix("'wp' "))
        .unwrap_or(&line)
        .to_owned();
    if line.is_empty() {
        return Err("the step needs the command as text or a list of words".to_owned());
    }
    Ok(line)
}

/// Converts the path of a plugin's directory or main file to the form that WordPress uses: relative
/// to the plugins directory.
fn plugin_file(path: &str) -> Result<String, String> {
    let path = path.trim_start_matches('/');
    let path = path.strip_prefix("wordpress/").unwrap_or(path);
    let path = path.strip_prefix("wp-content/plugins/").unwrap_or(path);
    let path = path.trim_end_matches('/');
    let plain = crate::sources::is_below(path) && !path.starts_with('-');
    if plain {
        Ok(path.to_owned())
    } else {
        Err("pluginPath must be a directory or file below the directory of plugins".to_owned())
    }
}

/// Returns a guest path as a PHP string literal. A relative path is resolved from `/wordpress`.
fn guest_path(path: &str) -> Result<String, String> {
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/wordpress/{path}")
    };
    wp_codebox_contracts::GuestPath::new(path.trim_end_matches('/'))
        .map(|path| php_literal(&json!(path.as_str())))
        .map_err(|_| "each path of the step must be a path in the guest, without `..`".to_owned())
}

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
    fn unsupported_blueprint_parts_are_listed_with_reasons() {
        for (name, value) in [
            ("plugins", json!(["akismet"])),
            ("features", json!({"networking": true})),
            ("preferredVersions", json!({"php": "7.4"})),
            ("wat", json!(1)),
            ("steps", json!("x")),
            ("constants", json!({"DB_NAME": "x"})),
        ] {
            let all = validated(json!({name: value}));
            assert!(!all.rows[0].supported, "{name}");
            assert!(all.rows[0].reason.as_ref().unwrap().len() > 10);
        }
        for row in [
            json!({"step": "installPlugin", "pluginData": {"resource": "wordpress.org/plugins", "slug": "x"}}),
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
