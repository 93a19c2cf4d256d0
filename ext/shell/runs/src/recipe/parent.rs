//! Reads content of the parent site (the WordPress site on this host) for site seeds, which are
//! parts of its content that a guest gets. The PHP program that reads it runs no code of the site.

use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ResolvedSeed, RunPaths};
use wp_codebox_recipe::{ParentSite, SiteSeed, task_seeds};

/// Program in the share directory that reads the site's database.
const PROGRAM: &str = "host/parent-content.php";

/// Returns whether the WordPress directory of a run is a site: it has a configuration, which may
/// also be in the parent directory.
pub(super) fn presence(wordpress: &Path) -> ParentSite {
    let config = |dir: &Path| dir.join("wp-config.php").is_file();
    // WordPress does not read the configuration of another site in the parent directory.
    let above = wordpress
        .parent()
        .is_some_and(|dir| config(dir) && !dir.join("wp-settings.php").is_file());
    if wordpress.is_absolute() && (config(wordpress) || above) {
        ParentSite::Present
    } else {
        ParentSite::Absent
    }
}

/// Returns the site seeds of a task with the content that they select.
pub(crate) fn seeds(paths: &RunPaths, rows: &[Value]) -> Result<Vec<ResolvedSeed>, ErrorBody> {
    let resolve = |(index, seed): (usize, SiteSeed)| {
        let content = match presence(Path::new(&paths.wordpress)) {
            ParentSite::Present => content(paths, &seed),
            ParentSite::Absent => {
                Err("it has no wp-config.php; name a site with --wordpress".to_owned())
            }
        };
        let content = content.map_err(|why| {
            let field = format!("site_seeds[{index}]");
            let message = format!("{field}: the parent site cannot be read: {why}");
            ErrorBody::new(ErrorCode::SiteSeedInvalid, message).with("field", field)
        })?;
        let scopes = match json!(seed.scopes) {
            Value::Object(scopes) => scopes,
            _ => Map::new(),
        };
        Ok(ResolvedSeed {
            name: seed.name,
            scopes,
            content,
        })
    };
    task_seeds(rows)?
        .into_iter()
        .enumerate()
        .map(resolve)
        .collect()
}

/// Returns the content that a seed selects, as a fixture in JSON; the error is one sentence.
pub(super) fn content(paths: &RunPaths, seed: &SiteSeed) -> Result<String, String> {
    let question = json!({
        "wordpress": paths.wordpress, "name": seed.name, "scopes": seed.scopes,
    });
    let unable =
        |e: std::io::Error| format!("the PHP program that sandboxes use cannot be started: {e}");
    let mut child = Command::new(&paths.php_binary)
        .args(["-d", "display_errors=0", "-d", "log_errors=0"])
        .arg(Path::new(&paths.share_dir).join(PROGRAM))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(unable)?;
    if let Some(mut input) = child.stdin.take() {
        // If the program has ended early, its missing answer is the error to report.
        let _ = input.write_all(question.to_string().as_bytes());
    }
    let output = child.wait_with_output().map_err(unable)?;
    let answer: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| "the program that reads its database gave no answer".to_owned())?;
    match (answer.get("fixture"), answer.get("error")) {
        (Some(fixture), _) => Ok(fixture.to_string()),
        (None, Some(Value::String(why))) => Err(why.clone()),
        (None, _) => Err("the program that reads its database gave no content".to_owned()),
    }
}
