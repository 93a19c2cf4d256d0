//! Flags of every command that starts a guest: what it is made of and where its run is kept.

use super::settings::PathArgs;
use clap::{Args, ValueEnum};
use wp_codebox_contracts::GitChoice;

/// Where a run is kept, and the form of the answer.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    /// Partition of the state directory the bundle is stored in.
    #[arg(long, default_value = "cli", value_name = "ID")]
    pub site: String,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// What a guest is made of.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GuestArgs {
    /// Host directory and where the guest sees it: HOST:GUEST[:readonly|readwrite]; may be repeated.
    #[arg(long = "mount", value_name = "HOST:GUEST[:MODE]")]
    pub mounts: Vec<String>,
    /// Git repository of each mount in the guest. baseline: one commit of what is mounted; auto:
    /// that where the directory lies in a work tree; history: the real commits, all of them. The
    /// host's own .git, its settings and hooks are never shown.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub git: GitMode,
    /// WordPress version the directory must have; `latest` takes what is there.
    #[arg(long, value_name = "VERSION")]
    pub wp: Option<String>,
}

/// Values of `--git`, without words of their own: clap would print another form of the help for them.
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
