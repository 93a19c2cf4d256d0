//! Arguments of `wp-codebox wordpress`. The doc comments are the help texts.

use clap::{Args, Subcommand};
use std::ffi::OsString;

/// Subcommands of `wordpress`.
#[derive(Debug, Subcommand)]
pub(crate) enum WordpressCommand {
    /// Install a WordPress core into the cache, from which sandboxes get their WordPress.
    Install(InstallArgs),
    /// List the WordPress cores in the cache.
    List(ListArgs),
    /// Choose the WordPress core that sandboxes get by default.
    Use(UseArgs),
}

/// Arguments of `wordpress install`.
#[derive(Debug, Args)]
#[command(after_help = "\
A version that is installed already is not downloaded again. The first one becomes the default. \
Releases come from wordpress.org and are compared with its published checksums. If it cannot be \
reached, `latest` installs the core of a pinned npm package instead. From a FILE or DIR, only \
files of the core and its default themes are taken: no configuration, plugins or uploads.

Examples:
  wp-codebox wordpress install
  wp-codebox wordpress install 6.9.1
  wp-codebox wordpress install ./wordpress-6.9.zip --offline
  wp-codebox wordpress install /srv/site --json

Exit status: 0 installed, 1 wrong usage, no such version or not a WordPress core, 125 not \
installed because of the network or the cache.

Environment:
  HTTPS_PROXY, NO_PROXY        proxy, and hosts to reach without it
  XDG_CACHE_HOME               instead of ~/.cache, unless root
  WP_CODEBOX_WORDPRESS_ORIGIN  mirror of WordPress and npm: https, or for tests
                               http://127.0.0.1:PORT

Files:
  /var/cache/wp-codebox  cache of root
  ~/.cache/wp-codebox    cache of other users")]
pub(crate) struct InstallArgs {
    /// A version such as 6.9.1; `latest`; `npm`, the core of a pinned npm package; a zip; or a
    /// directory with WordPress.
    #[arg(
        value_name = "VERSION|latest|npm|FILE|DIR",
        default_value = "latest",
        hide_default_value = true
    )]
    pub source: OsString,
    /// Use no network: a core that is in the cache, or FILE or DIR.
    #[arg(long)]
    pub offline: bool,
    /// Print JSON on standard output, and no progress.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `wordpress list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox wordpress list
  wp-codebox wordpress list --json | jq -r '.cores[].version'

Exit status: 0 listed, also when no core is installed; 125 the cache cannot be read.")]
pub(crate) struct ListArgs {
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `wordpress use`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox wordpress use 6.9.1
  wp-codebox wordpress use 6.9

Exit status: 0 chosen, 125 this version is not installed or the cache cannot be written.")]
pub(crate) struct UseArgs {
    /// Installed version, or a series such as 6.9 for its newest release.
    #[arg(value_name = "VERSION")]
    pub version: String,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}
