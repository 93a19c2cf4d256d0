//! Reads content of the parent site for site seeds, with a PHP program that runs no code of the site.

use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use wp_codebox_contracts::RunPaths;
use wp_codebox_recipe::{ParentSite, SiteSeed};

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

/// Returns the content that a seed selects, as a fixture in JSON; the error is one sentence.
pub(super) fn content(paths: &RunPaths, seed: &SiteSeed) -> Result<String, String> {
    let question = json!({
        "wordpress": paths.wordpress, "name": seed.name, "scopes": seed.scopes,
    });
    let unable = |e: std::io::Error| format!("the PHP of the guests cannot be started: {e}");
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
