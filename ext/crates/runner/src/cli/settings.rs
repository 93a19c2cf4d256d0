//! Where the parts of an installation lie: flag, else environment, else beside
//! this program, else the packaged place.

use super::args::PathArgs;
use std::path::{Path, PathBuf};

/// A file by which a share directory is known.
const SHARE_MARK: &str = "guest/run-php.php";

/// Where programs of agent presets are, unless something else is said.
const AGENTS_DIR: &str = "/opt/wp-codebox/agents";

/// Resolved places. They may still be missing: whoever uses one checks it.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub state_dir: PathBuf,
    pub share_dir: PathBuf,
    pub launcher: PathBuf,
    pub php_binary: PathBuf,
    pub wordpress: Option<PathBuf>,
    pub cgroup: Option<PathBuf>,
    pub agents_dir: Option<PathBuf>,
    pub browser: Option<PathBuf>,
}

/// As given by flag or environment.
fn given(flag: &Option<PathBuf>, variable: &str) -> Option<PathBuf> {
    flag.as_ref()
        .map(|p| std::path::absolute(p).unwrap_or_else(|_| p.clone()))
        .or_else(|| std::env::var_os(variable).map(PathBuf::from))
}

impl Settings {
    pub(crate) fn resolve(args: &PathArgs) -> Self {
        let beside = std::env::current_exe()
            .ok()
            .and_then(|exe| exe.parent().map(Path::to_owned))
            .unwrap_or_default();
        // A place counts when it holds `mark`; the last one is what an error will name.
        let pick = |flag: &Option<PathBuf>, variable: &str, mark: &str, places: &[PathBuf]| {
            // Joining nothing would ask for a directory of that name.
            let there = |place: &&PathBuf| match mark {
                "" => place.exists(),
                mark => place.join(mark).exists(),
            };
            let found = || places.iter().find(there);
            given(flag, variable)
                .or_else(|| found().or(places.last()).cloned())
                .unwrap_or_default()
        };
        let share = [
            beside.join("share"),
            beside.join("../share"),
            "/usr/share/wp-codebox".into(),
        ];
        let share = pick(&args.share, "WP_CODEBOX_SHARE_DIR", SHARE_MARK, &share);
        let launcher = [
            beside.join("wp-codebox-launch"),
            "/usr/libexec/wp-codebox-launch".into(),
        ];
        let state = ["/var/lib/wp-codebox".into()];
        let php = ["/usr/bin/php".into()];
        Self {
            state_dir: pick(&args.state, "WP_CODEBOX_STATE_DIR", "", &state),
            share_dir: share.canonicalize().unwrap_or(share),
            launcher: pick(&args.launcher, "WP_CODEBOX_LAUNCHER", "", &launcher),
            php_binary: pick(&args.php, "WP_CODEBOX_PHP", "", &php),
            wordpress: given(&args.wordpress, "WP_CODEBOX_WORDPRESS"),
            cgroup: given(&args.cgroup, "WP_CODEBOX_CGROUP"),
            browser: given(&args.browser, "WP_CODEBOX_BROWSER"),
            agents_dir: given(&args.agents_dir, "WP_CODEBOX_AGENTS_DIR")
                .or_else(|| Some(AGENTS_DIR.into())),
        }
    }
}
