//! Converts each kind of step of a blueprint.

use super::package::PackageKind;
use super::part::{Part, PartResult, Scope, bare, check_members, guest_path, php, wp_cli};
use super::{packages, steps};
use crate::grammar::Pattern;
use crate::php_source::{is_define, php_literal, program};
use serde_json::{Map, Value, json};
use wp_codebox_contracts::CommandCall;

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
    (
        "installPlugin",
        &[
            "pluginData",
            "pluginZipFile",
            "options",
            "ifAlreadyInstalled",
        ],
    ),
    (
        "installTheme",
        &["themeData", "themeZipFile", "options", "ifAlreadyInstalled"],
    ),
    ("runPHPWithOptions", &["options"]),
    ("runSql", &["sql"]),
    (
        "importWxr",
        &[
            "file",
            "wxrFile",
            "importer",
            "rewriteUrls",
            "fetchAttachments",
        ],
    ),
    ("importThemeStarterContent", &["themeSlug"]),
    ("resetData", &[]),
    ("request", &["request"]),
    ("runWpInstallationWizard", &["options"]),
    ("setSiteLanguage", &["language"]),
    ("unzip", &["zipFile", "zipPath", "extractToPath"]),
    ("writeFiles", &["writeToPath", "filesTree"]),
];

pub(super) fn step(
    name: &str,
    row: &Value,
    path_of_step: &str,
    scope: &mut Scope<'_>,
) -> PartResult {
    if let Some((_, own)) = MEMBERS.iter().find(|known| known.0 == name) {
        let members: Vec<&str> = own.iter().chain(&["step", "progress"]).copied().collect();
        check_members(name, row, &members)?;
    }
    for (member, members) in [
        ("code", &["filename", "content"][..]),
        ("data", &["resource", "name", "contents", "path"][..]),
    ] {
        check_members(member, row.get(member).unwrap_or(&Value::Null), members)?;
    }
    let text = |field: &str| -> Result<&str, String> {
        row.get(field)
            .and_then(Value::as_str)
            .ok_or_else(|| format!("the step needs the member \"{field}\", a string"))
    };
    let path = |field: &str| -> Result<String, String> { guest_path(text(field)?) };
    let object = |field: &str| -> Result<&Map<String, Value>, String> {
        row.get(field)
            .and_then(Value::as_object)
            .ok_or_else(|| format!("the step needs the member \"{field}\", an object"))
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
                .ok_or("the step needs the member \"code\", a string")?;
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
            let (path, data) = (path("path")?, steps::content(row.get("data"))?);
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
        "installPlugin" => packages::install(PackageKind::Plugin, row, path_of_step, scope),
        "installTheme" => packages::install(PackageKind::Theme, row, path_of_step, scope),
        "runPHPWithOptions" => steps::php_options(row),
        "runSql" => steps::sql(row),
        "importWxr" => steps::wxr(row),
        "importThemeStarterContent" => steps::guest_program("starter-content.php"),
        "resetData" => steps::guest_program("reset-data.php"),
        "request" => steps::request(row),
        "runWpInstallationWizard" => steps::installed(row),
        "setSiteLanguage" => steps::language(row),
        "unzip" => steps::unzip(row),
        "writeFiles" => steps::write_files(row),
        "importWordPressFiles" => Err(
            "the files of WordPress itself cannot be replaced: unpack the archive on this host, and mount its plugins and themes"
                .to_owned(),
        ),
        // Creates the network with its main site only. Later steps of the blueprint can create
        // further sites. The guest has only one address, so these sites must be in subdirectories.
        "enableMultisite" => {
            let question = json!({"name": "blueprint", "title": "Network", "sites": []});
            Ok(Part::Call(program("make-network.php", &question)))
        }
        "defineSiteUrl" => Err("the guest has a fixed address; remove the step".to_owned()),
        "" => Err("the member `step` with the name of the step is missing".to_owned()),
        _ => {
            Err("this backend does not support this step; use runPHP or wp-cli instead".to_owned())
        }
    }
}

/// Returns a step that fails if the user does not exist. It starts no login session: steps are
/// programs in the guest without a browser.
pub(super) fn login(user: &str) -> PartResult {
    let user = php_literal(&json!(user));
    Ok(Part::Call(php(format!(
        "if ( ! get_user_by( 'login', {user} ) ) {{ fwrite( STDERR, 'the user of the login step does not exist' ); exit( 1 ); }}"
    ))))
}

pub(super) fn options_call(options: &Map<String, Value>) -> CommandCall {
    let options = php_literal(&json!(options));
    php(format!(
        "foreach ( {options} as $name => $value ) {{ update_option( $name, $value ); }}"
    ))
}

pub(super) fn define(constants: &Map<String, Value>) -> PartResult {
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
