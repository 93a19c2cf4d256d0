//! Where the parts of an installation lie: flag, else environment, else beside
//! this program, else the packaged place.

use super::args::PathArgs;
use std::path::{Path, PathBuf};

/// Resolved places. They may still be missing: whoever uses one checks it.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub state_dir: PathBuf,
    pub share_dir: PathBuf,
    pub launcher: PathBuf,
    pub php_binary: PathBuf,
    pub wordpress: Option<PathBuf>,
}

impl Settings {
    pub(crate) fn resolve(args: &PathArgs) -> Self {
        let beside = std::env::current_exe()
            .ok()
            .and_then(|exe| exe.parent().map(Path::to_owned))
            .unwrap_or_default();
        let pick = |flag: &Option<PathBuf>, variable: &str, places: &[PathBuf]| -> PathBuf {
            flag.as_ref()
                .map(|p| std::path::absolute(p).unwrap_or_else(|_| p.clone()))
                .or_else(|| std::env::var_os(variable).map(PathBuf::from))
                .or_else(|| places.iter().find(|p| p.exists()).cloned())
                .or_else(|| places.last().cloned())
                .unwrap_or_default()
        };
        Self {
            state_dir: pick(
                &args.state,
                "WP_CODEBOX_STATE_DIR",
                &["/var/lib/wp-codebox".into()],
            ),
            share_dir: pick(
                &args.share,
                "WP_CODEBOX_SHARE_DIR",
                &[
                    beside.join("share"),
                    beside.join("../share/wp-codebox"),
                    "/usr/share/wp-codebox".into(),
                ],
            ),
            launcher: pick(
                &args.launcher,
                "WP_CODEBOX_LAUNCHER",
                &[
                    beside.join("wp-codebox-launch"),
                    "/usr/libexec/wp-codebox-launch".into(),
                ],
            ),
            php_binary: pick(&args.php, "WP_CODEBOX_PHP", &["/usr/bin/php".into()]),
            wordpress: args
                .wordpress
                .as_ref()
                .map(|p| std::path::absolute(p).unwrap_or_else(|_| p.clone()))
                .or_else(|| std::env::var_os("WP_CODEBOX_WORDPRESS").map(PathBuf::from)),
        }
    }
}
