//! Flags of every command that starts a guest: its content and the storage of its run.

use clap::{Args, ValueEnum};
use wp_codebox_contracts::{GitChoice, Service, ServiceKind};
use wp_codebox_settings::PathArgs;

/// Storage of the run and format of the output.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreArgs {
    /// Part of the state directory, sites/ID, in which the bundle is stored.
    #[arg(long, default_value = "cli", value_name = "ID")]
    pub site: String,
    /// Paths of this host.
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Content of a guest.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GuestArgs {
    /// Host directory and its path in the guest: HOST[:GUEST][:readonly|readwrite]; may be
    /// repeated. Without GUEST a plugin or theme gets its place in WordPress and is activated, any
    /// other directory is mounted below /workspace.
    #[arg(long = "mount", value_name = "HOST[:GUEST][:MODE]")]
    pub mounts: Vec<String>,
    /// Git repository of each mount in the guest. baseline: one commit of the mounted files; auto:
    /// baseline if the directory is in a work tree; history: all real commits. The guest never sees
    /// the host's own .git directory, its configuration and its hooks.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub git: GitMode,
    /// Required WordPress version, such as 6.9; see `wp-codebox wordpress list`. `latest` accepts
    /// any version.
    #[arg(long, value_name = "VERSION")]
    pub wp: Option<String>,
    #[command(flatten)]
    pub services: ServiceArgs,
}

/// Servers in a guest.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServiceArgs {
    /// Server in the guest: mysql, redis, smtp or http; may be repeated. With mysql the guest's
    /// WordPress uses MariaDB in place of SQLite; needs the package mariadb-server on this host.
    #[arg(long = "service", value_name = "KIND", value_parser = ["mysql", "redis", "smtp", "http"])]
    pub services: Vec<String>,
}

impl ServiceArgs {
    /// Returns whether no service is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Returns the services that the flags name. The guest gets their addresses and passwords in
    /// environment variables with the usual names.
    pub(crate) fn services(&self) -> Vec<Service> {
        let kinds = self.services.iter().filter_map(|name| {
            let mut all = ServiceKind::ALL.iter().copied();
            all.find(|kind| kind.as_str() == name)
        });
        kinds.map(Service::usual).collect()
    }
}

/// Values of `--git`, without doc comments of their own: with them clap would print the long form
/// of the help.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum GitMode {
    #[default]
    Auto,
    Baseline,
    History,
    None,
}

impl From<GitMode> for GitChoice {
    fn from(mode: GitMode) -> Self {
        match mode {
            GitMode::Auto => Self::Auto,
            GitMode::Baseline => Self::Baseline,
            GitMode::History => Self::History,
            GitMode::None => Self::None,
        }
    }
}
