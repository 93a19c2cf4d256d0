//! Converts a snapshot of a site to a blueprint that sets up the same site, as far as the snapshot
//! has the content.

use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Schema ids of snapshots.
const SCHEMAS: [&str; 2] = [
    "wp-codebox/wordpress-state/v1",
    "wp-codebox/wordpress-runtime-snapshot/v1",
];
/// Value in place of a secret.
const MASK: &str = "[redacted]";
/// Directory of the replayed site below which files are written.
const CONTENT: &str = "/wordpress/wp-content/";
/// Options that describe an installation and must not be copied to another one.
const OF_INSTALLATION: &[&str] = &[
    "siteurl",
    "home",
    "admin_email",
    "new_admin_email",
    "cron",
    "active_plugins",
    "template",
    "stylesheet",
    "db_version",
    "initial_db_version",
    "fresh_site",
    "rewrite_rules",
    "auto_core_update_notified",
    "can_compress_scripts",
    "recovery_keys",
    "finished_updating_comment_type",
    "https_detection_errors",
];

/// Blueprint made from a snapshot, and what it does not contain.
#[derive(Debug, PartialEq)]
pub(super) struct Site {
    pub schema: String,
    pub blueprint: Value,
    /// What the blueprint does not set up, one code and sentence each.
    pub limitations: Vec<(&'static str, String)>,
}

/// Reads a snapshot.
///
/// # Errors
/// `wp_codebox_input_invalid` if it is not a snapshot of a known kind.
pub(super) fn site(bytes: &[u8], landing_page: &str) -> Result<Site, ErrorBody> {
    let invalid =
        |why: String| ErrorBody::new(ErrorCode::InputInvalid, format!("--snapshot: {why}"));
    let snapshot: Value =
        serde_json::from_slice(bytes).map_err(|_| invalid("it is not JSON".to_owned()))?;
    let schema = snapshot["schema"].as_str().unwrap_or_default();
    if !SCHEMAS.contains(&schema) {
        return Err(invalid(format!(
            "its schema is {schema:?}, but must be {}",
            SCHEMAS.join(" or ")
        )));
    }
    let mut limitations = Vec::new();
    let options = options(&snapshot);
    let mut steps = files(&snapshot, &mut limitations);
    steps.extend(plugins(&options));
    steps.extend(theme(&snapshot, &options));
    steps.extend(site_options(&options, &mut limitations));
    content(&snapshot, &mut limitations);
    let mut blueprint = json!({"landingPage": landing_page, "steps": steps});
    let version = &snapshot["wordpress"]["version"];
    if let Some(version) = version.as_str() {
        blueprint["meta"] = json!({"title": format!("Replay of a WordPress {version} site")});
    }
    Ok(Site {
        schema: schema.to_owned(),
        blueprint,
        limitations,
    })
}

/// Returns the options by name. A snapshot lists them as rows {name, value}, as rows of the options
/// table, or as an object.
fn options(snapshot: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    match &snapshot["options"] {
        Value::Object(options) => found.clone_from(options),
        Value::Array(rows) => {
            for row in rows {
                let name = row["name"].as_str().or_else(|| row["option_name"].as_str());
                let value = row.get("value").or_else(|| row.get("option_value"));
                if let (Some(name), Some(value)) = (name, value) {
                    found.insert(name.to_owned(), value.clone());
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    found
}

/// Returns a blueprint step for each file whose content the snapshot has.
fn files(snapshot: &Value, limitations: &mut Vec<(&'static str, String)>) -> Vec<Value> {
    let rows = match &snapshot["files"] {
        Value::Array(rows) => rows.as_slice(),
        files => files["items"].as_array().map_or(&[][..], Vec::as_slice),
    };
    let (mut steps, mut without, mut outside) = (Vec::new(), 0, 0);
    for row in rows {
        let path = row["path"].as_str().unwrap_or_default();
        let Some(path) = content_path(path) else {
            outside += 1;
            continue;
        };
        let text = ["content", "contents", "data"]
            .iter()
            .find_map(|name| row[*name].as_str());
        match text {
            Some(text) => steps.push(json!({"step": "writeFile", "path": path, "data": text})),
            None => without += 1,
        }
    }
    if without > 0 {
        limitations.push((
            "files-without-content",
            format!("{without} files of wp-content are listed without their content; mount them where the site is replayed"),
        ));
    }
    if outside > 0 {
        limitations.push((
            "files-outside-wp-content",
            format!("{outside} files are not below wp-content and are left out"),
        ));
    }
    steps
}

/// Returns the path of a file in the replayed site; `None` if it is not below wp-content.
fn content_path(path: &str) -> Option<String> {
    let below = path
        .strip_prefix(CONTENT)
        .or_else(|| path.strip_prefix("wp-content/"))
        .unwrap_or(path);
    let plain = !below.is_empty()
        && !below.contains('\0')
        && below
            .split('/')
            .all(|part| !matches!(part, "" | "." | ".."));
    plain.then(|| format!("{CONTENT}{below}"))
}

fn plugins(options: &Map<String, Value>) -> Vec<Value> {
    let active = options.get("active_plugins").and_then(Value::as_array);
    active
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter_map(|file| content_path(&format!("plugins/{file}")))
        .map(|path| json!({"step": "activatePlugin", "pluginPath": path}))
        .collect()
}

fn theme(snapshot: &Value, options: &Map<String, Value>) -> Option<Value> {
    let of_option = options.get("stylesheet").and_then(Value::as_str);
    let theme = snapshot["wordpress"]["theme"].as_str().or(of_option)?;
    Some(json!({"step": "activateTheme", "themeFolderName": theme}))
}

fn site_options(
    options: &Map<String, Value>,
    limitations: &mut Vec<(&'static str, String)>,
) -> Option<Value> {
    let mut kept = Map::new();
    let mut masked = 0;
    for (name, value) in options {
        if OF_INSTALLATION.contains(&name.as_str()) || name.ends_with("user_roles") {
            continue;
        }
        let is_cut = value.get("cut").is_some_and(|cut| *cut == true);
        if is_cut || value.to_string().contains(MASK) {
            masked += 1;
            continue;
        }
        kept.insert(name.clone(), value.clone());
    }
    if masked > 0 {
        limitations.push((
            "options-left-out",
            format!("{masked} options are left out, because they hold a secret or are too long for the snapshot"),
        ));
    }
    (!kept.is_empty()).then(|| json!({"step": "setSiteOptions", "options": kept}))
}

/// Adds a limitation for each kind of database content that the blueprint does not set up.
fn content(snapshot: &Value, limitations: &mut Vec<(&'static str, String)>) {
    let types = snapshot["postTypes"].as_array().into_iter().flatten();
    let posts: u64 = types.filter_map(|row| row["count"].as_u64()).sum();
    if posts > 0 {
        limitations.push((
            "posts-left-out",
            format!("{posts} posts are not created, because the snapshot has only their digests; a package that the command wordpress.export-replay-package writes imports them"),
        ));
    }
    let tables = snapshot["database"]["tables"]
        .as_array()
        .map_or(0, Vec::len);
    if tables > 0 {
        limitations.push((
            "tables-left-out",
            format!("rows of {tables} tables are in the snapshot only: a blueprint cannot load a database"),
        ));
    }
    let omitted = snapshot["omitted"].as_array().into_iter().flatten();
    limitations
        .extend(omitted.filter_map(|row| Some(("snapshot-omitted", row.as_str()?.to_owned()))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(snapshot: &Value) -> Result<Site, ErrorBody> {
        site(snapshot.to_string().as_bytes(), "/shop/")
    }

    #[test]
    fn snapshot_becomes_a_supported_blueprint_and_each_left_out_part_a_limitation() {
        let given = read(&json!({
            "schema": SCHEMAS[0],
            "wordpress": {"version": "7.1.1", "theme": "twentytwentyfive"},
            "files": {"items": [{"path": "plugins/a/a.php", "content": "<?php"}, {"path": "uploads/b.png", "bytes": 3}]},
            "options": [
                {"name": "blogname", "value": "A"}, {"name": "siteurl", "value": "http://x"},
                {"name": "api_key", "value": MASK}, {"name": "big", "value": {"bytes": 99, "cut": true}},
                {"name": "active_plugins", "value": ["a/a.php", "../x.php"]},
            ],
            "postTypes": [{"type": "post", "count": 2}],
            "database": {"tables": [{"name": "wp_posts"}]},
            "omitted": ["something"],
        }))
        .unwrap();
        let steps = given.blueprint["steps"].as_array().unwrap();
        let names: Vec<_> = steps
            .iter()
            .map(|step| step["step"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "writeFile",
                "activatePlugin",
                "activateTheme",
                "setSiteOptions"
            ]
        );
        assert_eq!(steps[3]["options"], json!({"blogname": "A"}));
        let codes: Vec<_> = given.limitations.iter().map(|row| row.0).collect();
        assert_eq!(
            codes,
            [
                "files-without-content",
                "options-left-out",
                "posts-left-out",
                "tables-left-out",
                "snapshot-omitted"
            ]
        );
        let document = given.blueprint.as_object().unwrap();
        let checked = wp_codebox_recipe::blueprint(document);
        assert!(
            checked.rows.iter().all(|row| row.supported),
            "{:?}",
            checked.rows
        );
    }

    #[test]
    fn document_that_is_no_snapshot_is_refused_and_paths_outside_wp_content_are_left_out() {
        assert!(site(b"{", "/").is_err());
        assert!(read(&json!({"schema": "wp-codebox/other/v1"})).is_err());
        assert_eq!(content_path("../wp-config.php"), None);
        assert_eq!(content_path("/etc/passwd"), None);
        let path = Some("/wordpress/wp-content/a.txt".to_owned());
        for good in ["a.txt", "wp-content/a.txt", "/wordpress/wp-content/a.txt"] {
            assert_eq!(content_path(good), path, "{good}");
        }
    }
}
