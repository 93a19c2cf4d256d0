//! Configuration of a service that root started and that serves other users: its programs, because
//! their requests name none, and the shares of these users.

use super::shares::host_shares;
use super::{PathArgs, Settings};
use clap::Args;
use std::path::PathBuf;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_supervisor::{HostConfig, HostPrograms};

/// Programs of `wp-codebox supervise` for callers other than root. Without an option, the
/// environment variable, the configuration file and the default of the setting apply.
#[derive(Debug, Clone, Default, Args)]
pub struct ProgramArgs {
    /// Path of the launcher; only root may be able to replace it.
    #[arg(long)]
    pub launcher: Option<PathBuf>,
    /// Share directory.
    #[arg(long)]
    pub share: Option<PathBuf>,
    /// PHP program that callers may choose besides php and phpN.M in /usr/bin and /usr/local/bin;
    /// may be repeated.
    #[arg(long)]
    pub php: Vec<PathBuf>,
    /// Browser program.
    #[arg(long)]
    pub browser: Option<PathBuf>,
}

/// Returns the configuration of this host. Reads no directory that another user can write.
///
/// # Errors
/// `wp_codebox_config_invalid` if the configuration file cannot be used.
pub fn host_config(args: &ProgramArgs) -> Result<HostConfig, ErrorBody> {
    let settings = Settings::resolve(&PathArgs {
        launcher: args.launcher.clone(),
        share: args.share.clone(),
        browser: args.browser.clone(),
        ..PathArgs::default()
    })?;
    let shares = host_shares(&settings.chosen, &settings.max_limits)?;
    let mut php = args.php.clone();
    php.push(settings.php_binary);
    Ok(HostConfig {
        programs: HostPrograms {
            launcher: settings.launcher,
            share_dir: settings.share_dir,
            php,
            browser: settings.browser,
        },
        shares,
    })
}
