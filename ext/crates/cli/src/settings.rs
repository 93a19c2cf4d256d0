//! Paths of an installation: from flag, else environment, else next to this program, else the
//! packaged path.

use clap::Args;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestIds, IdentityChoice};

/// File whose presence identifies a share directory.
const SHARE_MARK: &str = "guest/run-php.php";

/// Default directory of the programs of agent presets.
const AGENTS_DIR: &str = "/opt/wp-codebox/agents";

/// Heading of these options in the help.
const HEADING: &str = "Places on this host";

/// Host paths that several subcommands share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PathArgs {
    /// State directory with templates, runs, bundles and keys; owned by one user other than root.
    /// [default: $WP_CODEBOX_STATE_DIR, else /var/lib/wp-codebox]
    #[arg(long = "state", value_name = "DIR", help_heading = HEADING)]
    pub state: Option<PathBuf>,
    /// Directory whose WordPress core the guest gets. [default: $WP_CODEBOX_WORDPRESS]
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    pub wordpress: Option<PathBuf>,
    /// Directory with WP-CLI, the SQLite drop-in and the guest programs. [default:
    /// $WP_CODEBOX_SHARE_DIR, else share/ next to this program or one level above, else
    /// /usr/share/wp-codebox]
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    pub share: Option<PathBuf>,
    /// Path of the launcher. [default: $WP_CODEBOX_LAUNCHER, else next to this program, else
    /// /usr/libexec/wp-codebox-launch]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub launcher: Option<PathBuf>,
    /// Cgroup directory for the cgroups of runs, delegated to the owner of the state directory.
    /// [default: $WP_CODEBOX_CGROUP, else below the runner's own cgroup]
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    pub cgroup: Option<PathBuf>,
    /// Kernel user of guests: `own`, a separate uid that no other process of this host has (needs
    /// root, or ids in /etc/subuid and /etc/subgid); `shared`, the owner of the state directory;
    /// `auto`, own if possible. [default: $WP_CODEBOX_IDENTITY, else auto]
    #[arg(long, value_name = "KIND", value_parser = ["auto", "own", "shared"], help_heading = HEADING)]
    pub identity: Option<String>,
    /// Range of uids and gids for guests. [default: $WP_CODEBOX_GUEST_IDS, else 1900000000:4096;
    /// without root: the user's range in /etc/subuid and /etc/subgid]
    #[arg(long, value_name = "FIRST:COUNT", help_heading = HEADING)]
    pub guest_ids: Option<String>,
    /// Directory with the programs of agent presets, one directory per preset. [default:
    /// $WP_CODEBOX_AGENTS_DIR, else /opt/wp-codebox/agents]
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    pub agents_dir: Option<PathBuf>,
    /// Browser program for browser commands. [default: $WP_CODEBOX_BROWSER, else /usr/bin/chromium]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub browser: Option<PathBuf>,
    /// PHP program for the guest. [default: $WP_CODEBOX_PHP, else /usr/bin/php]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub php: Option<PathBuf>,
}

/// Host paths for runs. A path need not exist: the code that uses it checks it.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub state_dir: PathBuf,
    pub share_dir: PathBuf,
    pub launcher: PathBuf,
    pub php_binary: PathBuf,
    pub wordpress: Option<PathBuf>,
    pub cgroup: Option<PathBuf>,
    pub identity: Option<String>,
    pub guest_ids: Option<String>,
    pub agents_dir: Option<PathBuf>,
    pub browser: Option<PathBuf>,
}

/// Returns the path from the flag, else from the environment variable.
fn given(flag: &Option<PathBuf>, variable: &str) -> Option<PathBuf> {
    flag.as_ref()
        .map(|p| std::path::absolute(p).unwrap_or_else(|_| p.clone()))
        .or_else(|| std::env::var_os(variable).map(PathBuf::from))
}

/// Returns the text from the flag, else from the environment variable.
fn text(flag: &Option<String>, variable: &str) -> Option<String> {
    let set = |value: &String| !value.is_empty();
    flag.clone()
        .or_else(|| std::env::var(variable).ok().filter(set))
}

impl Settings {
    /// Returns which kernel uid guests get.
    pub(crate) fn identity(&self) -> Result<IdentityChoice, ErrorBody> {
        let Some(given) = &self.identity else {
            return Ok(IdentityChoice::default());
        };
        serde_json::from_value(given.as_str().into()).map_err(|_| {
            let message = format!("WP_CODEBOX_IDENTITY {given:?} must be auto, own or shared");
            ErrorBody::new(ErrorCode::InputInvalid, message)
        })
    }

    /// Returns the range of uids and gids for guests; `None` for the default range.
    pub(crate) fn guest_ids(&self) -> Result<Option<GuestIds>, ErrorBody> {
        let given = self.guest_ids.as_deref().map(GuestIds::parse);
        given
            .transpose()
            .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, e.to_string()))
    }

    pub(crate) fn resolve(args: &PathArgs) -> Self {
        let beside = std::env::current_exe()
            .ok()
            .and_then(|exe| exe.parent().map(Path::to_owned))
            .unwrap_or_default();
        // A path is chosen if it contains `mark`; if none does, the last one is used and appears in
        // the error.
        let pick = |flag: &Option<PathBuf>, variable: &str, mark: &str, places: &[PathBuf]| {
            // Joining an empty name would add a trailing slash, which requires a directory.
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
            identity: text(&args.identity, "WP_CODEBOX_IDENTITY"),
            guest_ids: text(&args.guest_ids, "WP_CODEBOX_GUEST_IDS"),
            browser: given(&args.browser, "WP_CODEBOX_BROWSER"),
            agents_dir: given(&args.agents_dir, "WP_CODEBOX_AGENTS_DIR")
                .or_else(|| Some(AGENTS_DIR.into())),
        }
    }
}
