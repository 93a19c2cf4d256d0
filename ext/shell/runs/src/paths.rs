//! Paths of this host as text, and those of a run.

use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunPaths};
use wp_codebox_settings::Settings;

/// Returns the error for wrong usage of a command.
pub fn input(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

/// Returns a path as text.
///
/// # Errors
/// `wp_codebox_input_invalid` if it is not UTF-8.
pub fn text(path: &Path) -> Result<String, ErrorBody> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| input(format!("{} is not valid UTF-8", path.display())))
}

/// Returns the host paths of a run with the WordPress that the settings name.
///
/// # Errors
/// `wp_codebox_config_invalid` if they name none; `wp_codebox_input_invalid` as of [`run_paths`].
pub fn named_paths(settings: &Settings) -> Result<RunPaths, ErrorBody> {
    run_paths(settings, settings.named_wordpress()?)
}

/// Returns the host paths of a run that is started with this program.
///
/// # Errors
/// `wp_codebox_input_invalid` if a path is not UTF-8 or a setting is not valid.
pub fn run_paths(settings: &Settings, wordpress: &Path) -> Result<RunPaths, ErrorBody> {
    let root = text(wordpress)?;
    // Real paths, because they are compared with the real paths of mount sources.
    let real = |path: PathBuf| text(&path.canonicalize().unwrap_or(path));
    Ok(RunPaths {
        state_dir: text(&settings.state_dir)?,
        share_dir: text(&settings.share_dir)?,
        launcher: text(&settings.launcher)?,
        php_binary: text(&settings.php_binary)?,
        wordpress: root,
        code_roots: vec![
            real(wordpress.join("wp-content/plugins"))?,
            real(wordpress.join("wp-content/themes"))?,
        ],
        denied: vec![real(wordpress.to_owned())?],
        allowed_roots: None,
        cgroup: settings.cgroup.as_deref().map(text).transpose()?,
        identity: settings.identity()?,
        guest_ids: settings.guest_ids()?,
        agents_dir: settings.agents_dir.as_deref().map(text).transpose()?,
        browser: settings.browser.as_deref().map(text).transpose()?,
    })
}

/// Returns the absolute path of a path of this host.
pub fn absolute(host: &str) -> Result<String, ErrorBody> {
    let path: PathBuf = std::path::absolute(host).map_err(|e| input(format!("{host:?}: {e}")))?;
    text(&path)
}
