//! Versions of the WordPress and the PHP that guests use.

use std::path::Path;
use std::process::{Command, Stdio};
use wp_codebox_backend_native::{ServerProgram, newest_default_theme};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_recipe::{HostFacts, UNKNOWN_VERSION, WpFallback};

/// PHP code that prints the version and the extensions of the PHP that runs it, as JSON.
const QUESTION: &str =
    "echo json_encode([PHP_VERSION, array_map('strtolower', get_loaded_extensions())]);";

/// Returns the version of the WordPress in a directory, or `unknown` if it cannot be read.
pub(crate) fn wordpress_version(wordpress: &Path) -> String {
    let text = std::fs::read_to_string(wordpress.join("wp-includes/version.php"));
    text.unwrap_or_default()
        .lines()
        .find_map(|line| line.trim().strip_prefix("$wp_version")?.split('\'').nth(1))
        .unwrap_or(UNKNOWN_VERSION)
        .to_owned()
}

/// Returns the names of the server programs that guests of this host can run.
fn server_programs() -> Vec<String> {
    [ServerProgram::MariaDb, ServerProgram::Redis]
        .into_iter()
        .filter(|program| program.find().is_ok())
        .map(|program| program.name().to_owned())
        .collect()
}

/// Returns the versions of the WordPress and the PHP with which this host runs guests.
pub(super) fn read(
    wordpress: &Path,
    php: &Path,
    wp_fallback: WpFallback,
) -> Result<HostFacts, ErrorBody> {
    let fail = |why: &str| {
        let message = format!("{} {why}: set the guest's PHP with --php", php.display());
        ErrorBody::new(ErrorCode::ConfigInvalid, message)
    };
    let answer = Command::new(php)
        .args(["-d", "display_errors=0", "-r", QUESTION])
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|_| fail("cannot be started"))?;
    let (php_version, php_extensions) =
        serde_json::from_slice::<(String, Vec<String>)>(&answer.stdout)
            .map_err(|_| fail("does not say its version"))?;
    Ok(HostFacts {
        wordpress_version: wordpress_version(wordpress),
        php_version,
        php_extensions,
        server_programs: server_programs(),
        parent_site: super::parent::presence(wordpress),
        wp_fallback,
        theme: newest_default_theme(&wordpress.join("wp-content/themes"))
            .and_then(|theme| Some(theme.file_name()?.to_str()?.to_owned())),
    })
}
