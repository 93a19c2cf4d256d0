//! Versions of the WordPress and the PHP that guests use.

use std::path::Path;
use wp_codebox_backend_native::{PhpLayout, ServerProgram, newest_default_theme};
use wp_codebox_contracts::{ErrorBody, RunPaths};
use wp_codebox_recipe::{HostFacts, WpFallback};
use wp_codebox_wordpress::wordpress_version;

/// Returns the names of the server programs that guests of this host can run.
fn server_programs() -> Vec<String> {
    [ServerProgram::MariaDb, ServerProgram::Redis]
        .into_iter()
        .filter(|program| program.find().is_ok())
        .map(|program| program.name().to_owned())
        .collect()
}

/// Returns the versions of the WordPress and the PHP with which this host runs guests.
pub(super) fn read(paths: &RunPaths, wp_fallback: WpFallback) -> Result<HostFacts, ErrorBody> {
    let wordpress = Path::new(&paths.wordpress);
    let php = PhpLayout::discover(Path::new(&paths.php_binary), Path::new(&paths.state_dir))?;
    Ok(HostFacts {
        wordpress_version: wordpress_version(wordpress),
        php_version: php.version,
        php_extensions: php.loaded,
        server_programs: server_programs(),
        parent_site: super::parent::presence(wordpress),
        wp_fallback,
        theme: newest_default_theme(&wordpress.join("wp-content/themes"))
            .and_then(|theme| Some(theme.file_name()?.to_str()?.to_owned())),
    })
}
