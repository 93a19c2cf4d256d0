//! Where the parts of an installation lie: flag, else environment, else beside
//! this program, else the packaged place.

use clap::Args;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestIds, IdentityChoice};

/// A file by which a share directory is known.
const SHARE_MARK: &str = "guest/run-php.php";

/// Where programs of agent presets are, unless something else is said.
const AGENTS_DIR: &str = "/opt/wp-codebox/agents";

/// Heading of these options in the help.
const HEADING: &str = "Places on this host";

/// Host paths, shared by several subcommands.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PathArgs {
    /// State directory: templates, runs, bundles, keys. One owner who is not root.
    /// [default: $WP_CODEBOX_STATE_DIR, else /var/lib/wp-codebox]
    #[arg(long = "state", value_name = "DIR", help_heading = HEADING)]
    pub state: Option<PathBuf>,
    /// Directory whose WordPress core the guest gets. [default: $WP_CODEBOX_WORDPRESS]
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    pub wordpress: Option<PathBuf>,
    /// Directory with WP-CLI, the SQLite drop-in and the guest programs.
    /// [default: $WP_CODEBOX_SHARE_DIR, else share/ beside this program or one above, else /usr/share/wp-codebox]
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    pub share: Option<PathBuf>,
    /// The launcher. [default: $WP_CODEBOX_LAUNCHER, else beside this program, else /usr/libexec/wp-codebox-launch]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub launcher: Option<PathBuf>,
    /// Cgroup directory, delegated to the owner of the state directory, below which runs get
    /// their groups. [default: $WP_CODEBOX_CGROUP, else below the runner's own group]
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    pub cgroup: Option<PathBuf>,
    /// Whose kernel user guests run as: `own`, a user that nothing else on this host has (as root,
    /// or with ids in /etc/subuid and /etc/subgid); `shared`, the owner of the state directory;
    /// `auto`, own where it can be had.
    /// [default: $WP_CODEBOX_IDENTITY, else auto]
    #[arg(long, value_name = "KIND", value_parser = ["auto", "own", "shared"], help_heading = HEADING)]
    pub identity: Option<String>,
    /// Numbers that are set aside for guests' users and groups.
    /// [default: $WP_CODEBOX_GUEST_IDS, else 1900000000:4096; not as root: those that /etc/subuid and
    /// /etc/subgid give the user]
    #[arg(long, value_name = "FIRST:COUNT", help_heading = HEADING)]
    pub guest_ids: Option<String>,
    /// Directory with the programs of agent presets, one directory per preset.
    /// [default: $WP_CODEBOX_AGENTS_DIR, else /opt/wp-codebox/agents]
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    pub agents_dir: Option<PathBuf>,
    /// Program of the browser for browser commands. [default: $WP_CODEBOX_BROWSER, else /usr/bin/chromium]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub browser: Option<PathBuf>,
    /// PHP for the guest. [default: $WP_CODEBOX_PHP, else /usr/bin/php]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub php: Option<PathBuf>,
}

/// Resolved places. They may still be missing: whoever uses one checks it.
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

/// As given by flag or environment.
fn given(flag: &Option<PathBuf>, variable: &str) -> Option<PathBuf> {
    flag.as_ref()
        .map(|p| std::path::absolute(p).unwrap_or_else(|_| p.clone()))
        .or_else(|| std::env::var_os(variable).map(PathBuf::from))
}

/// The same for what is no path.
fn text(flag: &Option<String>, variable: &str) -> Option<String> {
    let set = |value: &String| !value.is_empty();
    flag.clone()
        .or_else(|| std::env::var(variable).ok().filter(set))
}

impl Settings {
    /// Whose kernel uid guests get.
    pub(crate) fn identity(&self) -> Result<IdentityChoice, ErrorBody> {
        let Some(given) = &self.identity else {
            return Ok(IdentityChoice::default());
        };
        serde_json::from_value(given.as_str().into()).map_err(|_| {
            let message = format!("WP_CODEBOX_IDENTITY {given:?} must be auto, own or shared");
            ErrorBody::new(ErrorCode::InputInvalid, message)
        })
    }

    /// The ids set aside for guests.
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
            identity: text(&args.identity, "WP_CODEBOX_IDENTITY"),
            guest_ids: text(&args.guest_ids, "WP_CODEBOX_GUEST_IDS"),
            browser: given(&args.browser, "WP_CODEBOX_BROWSER"),
            agents_dir: given(&args.agents_dir, "WP_CODEBOX_AGENTS_DIR")
                .or_else(|| Some(AGENTS_DIR.into())),
        }
    }
}
