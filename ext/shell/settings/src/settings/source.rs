//! The settings with their names, and the source of each value.

use super::file::ConfigFile;
use std::path::PathBuf;

/// A setting. [`Setting::names`] returns its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    State,
    Wordpress,
    Share,
    Launcher,
    Php,
    Cgroup,
    Identity,
    GuestIds,
    AgentsDir,
    Browser,
    Cache,
    MaxRuns,
    UserMaxRuns,
}

/// Names of a setting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names {
    /// Member of the configuration file, and name in `wp-codebox config`.
    pub key: &'static str,
    /// Option of the command line; `None` if no option sets this value.
    pub flag: Option<&'static str>,
    /// Environment variable.
    pub variable: &'static str,
}

impl Setting {
    /// Returns the names of the setting.
    pub(super) const fn names(self) -> Names {
        const fn row(key: &'static str, flag: &'static str, variable: &'static str) -> Names {
            Names {
                key,
                flag: Some(flag),
                variable,
            }
        }
        const fn without_flag(key: &'static str, variable: &'static str) -> Names {
            Names {
                key,
                flag: None,
                variable,
            }
        }
        match self {
            Self::State => row("state", "--state", "WP_CODEBOX_STATE_DIR"),
            Self::Wordpress => row("wordpress", "--wordpress", "WP_CODEBOX_WORDPRESS"),
            Self::Share => row("share", "--share", "WP_CODEBOX_SHARE_DIR"),
            Self::Launcher => row("launcher", "--launcher", "WP_CODEBOX_LAUNCHER"),
            Self::Php => row("php", "--php", "WP_CODEBOX_PHP"),
            Self::Cgroup => row("cgroup", "--cgroup", "WP_CODEBOX_CGROUP"),
            Self::Identity => row("identity", "--identity", "WP_CODEBOX_IDENTITY"),
            Self::GuestIds => row("guest_ids", "--guest-ids", "WP_CODEBOX_GUEST_IDS"),
            Self::AgentsDir => row("agents_dir", "--agents-dir", "WP_CODEBOX_AGENTS_DIR"),
            Self::Browser => row("browser", "--browser", "WP_CODEBOX_BROWSER"),
            Self::Cache => without_flag("cache", "WP_CODEBOX_CACHE_DIR"),
            Self::MaxRuns => without_flag("max_runs", "WP_CODEBOX_MAX_RUNS"),
            Self::UserMaxRuns => without_flag("user_max_runs", "WP_CODEBOX_USER_MAX_RUNS"),
        }
    }
}

/// Origin of a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An option of the command line.
    Flag,
    /// The setting's environment variable.
    Environment,
    /// The configuration file.
    File,
    /// A place where this program found the value; the text describes the place.
    Found(String),
    /// The built-in default, or no value.
    Default,
}

/// A setting with its value and the origin of the value.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    pub setting: Setting,
    /// Value; `None` lets the code that uses the setting choose.
    pub value: Option<PathBuf>,
    pub origin: Origin,
}

/// Chooses the value of a setting: flag, else environment, else file, else what `find` returns.
pub(super) fn chosen(
    setting: Setting,
    flag: Option<PathBuf>,
    file: &ConfigFile,
    find: &dyn Fn() -> Option<(PathBuf, Origin)>,
) -> Chosen {
    let names = setting.names();
    let environment = || std::env::var_os(names.variable).filter(|value| !value.is_empty());
    let (value, origin) = if let Some(value) = flag {
        (Some(value), Origin::Flag)
    } else if let Some(value) = environment() {
        (Some(value.into()), Origin::Environment)
    } else if let Some(value) = file.value(names.key) {
        (Some(value.into()), Origin::File)
    } else {
        match find() {
            Some((value, origin)) => (Some(value), origin),
            None => (None, Origin::Default),
        }
    };
    Chosen {
        setting,
        value,
        origin,
    }
}
