//! Converts the blueprint steps that create content, send requests, set the site up or run PHP.

use super::packages::tree;
use super::part::{Part, PartResult, bare, check_members, guest_path, php};
use crate::php_source::{php_literal, program};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Returns the content of a resource as PHP source: a text, a literal, or a file of the guest.
pub(super) fn content(value: Option<&Value>) -> Result<String, String> {
    let wanted = "must be a text, a literal resource that has a text, or a vfs resource with the path of a file in the guest";
    let row = match value {
        Some(Value::String(text)) => return Ok(php_literal(&json!(text))),
        Some(Value::Object(row)) => row,
        _ => return Err(format!("the data {wanted}")),
    };
    let text = |name: &str| row.get(name).and_then(Value::as_str);
    match text("resource") {
        Some("literal") => text("contents")
            .map(|text| php_literal(&json!(text)))
            .ok_or_else(|| format!("the data {wanted}")),
        Some("vfs") => Ok(format!(
            "file_get_contents( {} )",
            guest_path(text("path").unwrap_or_default())?
        )),
        _ => Err(format!(
            "the data {wanted}; other resources must be downloaded, which a run does not do"
        )),
    }
}

pub(super) fn write_files(row: &Value) -> PartResult {
    let tree_row = row.get("filesTree").unwrap_or(&Value::Null);
    if tree_row.get("resource").and_then(Value::as_str) != Some("literal:directory") {
        return Err("filesTree must be a resource of kind literal:directory".to_owned());
    }
    let mut files = BTreeMap::new();
    tree(
        tree_row.get("files").unwrap_or(&Value::Null),
        "",
        &mut files,
    )?;
    let to = guest_path(
        row.get("writeToPath")
            .and_then(Value::as_str)
            .unwrap_or("/wordpress"),
    )?;
    let files = php_literal(&json!(files));
    bare(&format!(
        "foreach ( {files} as $name => $text ) {{ $file = {to} . '/' . $name; is_dir( dirname( $file ) ) || mkdir( dirname( $file ), 0755, true ); false === file_put_contents( $file, $text ) && exit( 1 ); }}"
    ))
}

pub(super) fn unzip(row: &Value) -> PartResult {
    let file = row.get("zipFile").and_then(|f| f.get("path"));
    let file = file.or_else(|| row.get("zipPath")).and_then(Value::as_str);
    let file =
        guest_path(file.ok_or(
            "the step needs zipPath, or zipFile as a vfs resource: an archive in the guest",
        )?)?;
    let to = row.get("extractToPath").and_then(Value::as_str);
    let to = guest_path(to.ok_or("the step needs the member \"extractToPath\", a string")?)?;
    Ok(Part::Call(php(format!(
        "require_once ABSPATH . 'wp-admin/includes/file.php'; WP_Filesystem(); $done = unzip_file( {file}, {to} ); if ( is_wp_error( $done ) ) {{ fwrite( STDERR, $done->get_error_message() ); exit( 1 ); }}"
    ))))
}

pub(super) fn sql(row: &Value) -> PartResult {
    let text = content(row.get("sql"))?;
    Ok(Part::Call(php(format!(
        "$codebox_sql = {text}; $codebox_question = array(); require rtrim( dirname( ABSPATH ), '/' ) . '/opt/codebox/guest/run-sql.php';"
    ))))
}

pub(super) fn wxr(row: &Value) -> PartResult {
    let given = row.get("file").or_else(|| row.get("wxrFile"));
    let text = content(given)?;
    Ok(Part::Call(php(format!(
        "$codebox_wxr = {text}; $codebox_question = array(); require rtrim( dirname( ABSPATH ), '/' ) . '/opt/codebox/guest/import-wxr.php';"
    ))))
}

/// Converts a step to a call of the guest program `name`, which needs no settings.
pub(super) fn guest_program(name: &str) -> PartResult {
    Ok(Part::Call(program(name, &json!({}))))
}

/// Converts `request`: a request to the guest's own site.
pub(super) fn request(row: &Value) -> PartResult {
    let request = row.get("request").and_then(Value::as_object);
    let request = request.ok_or("the step needs the member \"request\", an object")?;
    check_members(
        "request",
        &json!(request),
        &["url", "method", "headers", "body"],
    )?;
    let url = request
        .get("url")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !url.starts_with('/') || url.starts_with("//") {
        return Err(
            "the request must be to the guest's own site: give a path such as /wp-login.php"
                .to_owned(),
        );
    }
    let mut args = vec![format!("url={url}")];
    if let Some(method) = request.get("method").and_then(Value::as_str) {
        args.push(format!("method={method}"));
    }
    if let Some(headers) = request.get("headers").filter(|h| h.is_object()) {
        args.push(format!("headers-json={headers}"));
    }
    match request.get("body") {
        None | Some(Value::Null) => {}
        Some(Value::String(body)) => args.push(format!("body={body}")),
        Some(body) => args.push(format!("body={}", form(body))),
    }
    Ok(Part::Call(wp_codebox_contracts::CommandCall {
        command: "wordpress.http-request".to_owned(),
        args,
    }))
}

/// Encodes an object as the body of a URL-encoded form.
fn form(body: &Value) -> String {
    let rows: Map<String, Value> = body.as_object().cloned().unwrap_or_default();
    let escape = |text: &str| -> String {
        let byte = |b: u8| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                char::from(b).to_string()
            }
            other => format!("%{other:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    let pairs = rows.iter().map(|(name, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={}", escape(name), escape(&text))
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Converts `setSiteLanguage`. For a language other than English, the step fails if the guest does
/// not have its language files.
pub(super) fn language(row: &Value) -> PartResult {
    let language = row
        .get("language")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let plain = !language.is_empty()
        && language
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !plain {
        return Err("the step needs the member language, such as de_DE".to_owned());
    }
    if matches!(language, "en_US" | "en") {
        return Ok(Part::Call(php("update_option( 'WPLANG', '' );".to_owned())));
    }
    Ok(Part::Call(php(format!(
        "if ( ! in_array( '{language}', get_available_languages(), true ) ) {{ fwrite( STDERR, 'the language files of {language} are not in the guest; mount them to /wordpress/wp-content/languages' ); exit( 1 ); }} update_option( 'WPLANG', '{language}' );"
    ))))
}

/// Converts `runWpInstallationWizard`: guests start with an installed WordPress, so the step only
/// sets the password of the administrator.
pub(super) fn installed(row: &Value) -> PartResult {
    let options = row.get("options").unwrap_or(&Value::Null);
    check_members("options", options, &["adminUsername", "adminPassword"])?;
    let name = options
        .get("adminUsername")
        .and_then(Value::as_str)
        .unwrap_or("admin");
    if name != "admin" {
        return Err(
            "the administrator of a guest is `admin`; create another one with wp-cli".to_owned(),
        );
    }
    Ok(match options.get("adminPassword").and_then(Value::as_str) {
        None => Part::Ignored,
        Some(password) => Part::Call(php(format!(
            "wp_set_password( {}, get_user_by( 'login', 'admin' )->ID );",
            php_literal(&json!(password))
        ))),
    })
}

/// Converts `runPHPWithOptions`, whose options may be `code`, `scriptPath` and `env`.
pub(super) fn php_options(row: &Value) -> PartResult {
    let options = row.get("options").unwrap_or(&Value::Null);
    check_members("options", options, &["code", "scriptPath", "env"])?;
    let env = options
        .get("env")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut lines = String::new();
    for (name, value) in &env {
        let value = value.as_str().ok_or("each value of env must be a text")?;
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err("a name in env must be that of an environment variable".to_owned());
        }
        lines.push_str(&format!(
            "putenv( {} ); ",
            php_literal(&json!(format!("{name}={value}")))
        ));
    }
    if let Some(code) = options.get("code").and_then(Value::as_str) {
        let code = code.trim_start();
        let code = code.strip_prefix("<?php").unwrap_or(code);
        return bare(&format!("{lines}{code}"));
    }
    let script = options.get("scriptPath").and_then(Value::as_str);
    let script = script.ok_or("the step needs options.code or options.scriptPath")?;
    bare(&format!("{lines}require {};", guest_path(script)?))
}
