//! Settings of this host, mostly paths. The value of each comes from the first of these that has
//! one: flag, environment variable, configuration file, search of the usual places, built-in
//! default. Exception: a WordPress site around the current directory precedes the configuration
//! file.

mod file;
mod places;
mod programs;
mod shares;
mod show;
mod source;
mod state;
mod wordpress;
mod xdg;

pub use programs::{ProgramArgs, host_config};
pub use state::prepare_state;
pub use wordpress::CoreInstaller;

use clap::Args;
use file::ConfigFile;
use source::{Chosen, Origin, Setting, chosen};
use std::path::{Path, PathBuf};
use wp_codebox_backend_native::find_php;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestIds, IdentityChoice, LimitsRequest};
use wp_codebox_recipe::WpFallback;
use wp_codebox_supervisor::HostShares;
use wp_codebox_wordpress::Cores;

/// File whose presence identifies a share directory.
const SHARE_MARK: &str = "guest/run-php.php";

/// Default directory of the programs of agent presets.
const AGENTS_DIR: &str = "/opt/wp-codebox/agents";

/// Heading of these options in the help.
const HEADING: &str = "Places on this host";

/// Host paths that several subcommands share.
#[derive(Debug, Clone, Default, Args)]
pub struct PathArgs {
    /// State directory with templates, runs, bundles and keys; its owner is one user, never root.
    /// [default: $WP_CODEBOX_STATE_DIR, else for root /var/lib/wp-codebox/wp-codebox, for a user of
    /// `wp-codebox users` /var/lib/wp-codebox/USER, for other users ~/.local/state/wp-codebox]
    #[arg(long = "state", value_name = "DIR", help_heading = HEADING)]
    pub state: Option<PathBuf>,
    /// State directory, which commands that start a sandbox create if it is missing.
    #[arg(
        long,
        alias = "registry",
        value_name = "DIR",
        conflicts_with = "state",
        hide = true
    )]
    pub run_registry: Option<PathBuf>,
    /// Directory whose WordPress core the guest gets. [default: $WP_CODEBOX_WORDPRESS, else the
    /// site around the current directory, else a core of `wp-codebox wordpress list`]
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
    /// Cgroup below which each run gets a cgroup; the owner of the state directory must be allowed to
    /// write it. [default: $WP_CODEBOX_CGROUP, else the cgroup of the supervisor process]
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
    /// Browser program for browser commands. [default: $WP_CODEBOX_BROWSER, else
    /// /usr/bin/chromium-headless-shell, else /usr/bin/chromium]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub browser: Option<PathBuf>,
    /// PHP program for the guest. [default: $WP_CODEBOX_PHP, else the newest php or phpX.Y on the
    /// PATH, in /usr/bin and in /usr/local/bin]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub php: Option<PathBuf>,
}

/// Settings for runs. A path may be missing on the host; the code that uses it checks this.
#[derive(Debug, Clone)]
pub struct Settings {
    /// State directory: records, bundles, keys.
    pub state_dir: PathBuf,
    /// Directory with WP-CLI, the SQLite drop-in and the guest programs.
    pub share_dir: PathBuf,
    /// The launcher.
    pub launcher: PathBuf,
    /// PHP program for the guest.
    pub php_binary: PathBuf,
    /// WordPress directory that a setting names or that contains the current directory; `None`:
    /// use a cached core.
    pub wordpress: Option<PathBuf>,
    /// Cached WordPress cores.
    pub cores: Cores,
    /// Directory for the cgroups of runs.
    pub cgroup: Option<PathBuf>,
    /// Kernel user of guests, as text.
    pub identity: Option<String>,
    /// Range of uids and gids for guests, as text.
    pub guest_ids: Option<String>,
    /// Directory with the programs of agent presets.
    pub agents_dir: Option<PathBuf>,
    /// Browser program.
    pub browser: Option<PathBuf>,
    /// What to do if no WordPress of this host has the version that a recipe asks for.
    pub wp_fallback: WpFallback,
    /// Highest limits of a run of another user.
    max_limits: LimitsRequest,
    /// All values with their origins, in the order in which `wp-codebox config` prints them.
    chosen: Vec<Chosen>,
    /// Configuration file that was read; `None` if there is none.
    file: Option<PathBuf>,
    missing_state: MissingState,
}

/// What happens to a missing state directory that the caller named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingState {
    Refused,
    Created,
}

impl Settings {
    /// Returns which kernel uid guests get.
    ///
    /// # Errors
    /// `wp_codebox_input_invalid` if the setting is none of the known ones.
    pub fn identity(&self) -> Result<IdentityChoice, ErrorBody> {
        let Some(given) = &self.identity else {
            return Ok(IdentityChoice::default());
        };
        serde_json::from_value(given.as_str().into()).map_err(|_| {
            let message =
                format!("the setting \"identity\" is {given:?}, but must be auto, own or shared");
            ErrorBody::new(ErrorCode::InputInvalid, message)
        })
    }

    /// Returns the range of uids and gids for guests; `None` for the default range.
    ///
    /// # Errors
    /// `wp_codebox_input_invalid` if the setting is no range.
    pub fn guest_ids(&self) -> Result<Option<GuestIds>, ErrorBody> {
        let given = self.guest_ids.as_deref().map(GuestIds::parse);
        given
            .transpose()
            .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, e.to_string()))
    }

    /// Returns where the value of a setting came from.
    fn origin(&self, setting: Setting) -> &Origin {
        let row = self.chosen.iter().find(|row| row.setting == setting);
        row.map_or(&Origin::Default, |row| &row.origin)
    }

    /// Resolves all settings for the current directory.
    ///
    /// # Errors
    /// `wp_codebox_config_invalid` if the configuration file cannot be used.
    pub fn resolve(args: &PathArgs) -> Result<Self, ErrorBody> {
        let file = ConfigFile::read()?;
        let beside = std::env::current_exe()
            .ok()
            .and_then(|exe| exe.parent().map(Path::to_owned))
            .unwrap_or_default();
        let path =
            |flag: &Option<PathBuf>, setting, find: &dyn Fn() -> Option<(PathBuf, Origin)>| {
                chosen(setting, flag.as_deref().map(absolute), &file, find)
            };
        let text = |flag: &Option<String>, setting| {
            chosen(setting, flag.as_ref().map(PathBuf::from), &file, &|| None)
        };
        // Chooses the first place that contains `mark`. If none does, the last place is used, so
        // that errors name it.
        let pick = |mark: &str, places: &[PathBuf]| {
            // Do not join an empty name: it would add a trailing slash, with which a file does not
            // exist.
            let there = |place: &&PathBuf| match mark {
                "" => place.exists(),
                mark => place.join(mark).exists(),
            };
            let found = places.iter().find(there);
            let default = || Some((places.last()?.clone(), Origin::Default));
            found
                .map(|place| (place.clone(), Origin::Found("it exists".to_owned())))
                .or_else(default)
        };
        let share = [
            beside.join("share"),
            beside.join("../share"),
            "/usr/share/wp-codebox".into(),
        ];
        let launcher = [
            beside.join("wp-codebox-launch"),
            "/usr/libexec/wp-codebox-launch".into(),
        ];
        let default = |path: &str| Some((PathBuf::from(path), Origin::Default));
        let state = match &args.run_registry {
            None => &args.state,
            registry => registry,
        };
        let mut chosen = vec![
            path(state, Setting::State, &|| Some(places::default_state())),
            path(&args.wordpress, Setting::Wordpress, &|| None),
            path(&args.share, Setting::Share, &|| {
                let (path, origin) = pick(SHARE_MARK, &share)?;
                Some((path.canonicalize().unwrap_or(path), origin))
            }),
            path(&args.launcher, Setting::Launcher, &|| pick("", &launcher)),
            path(&args.php, Setting::Php, &|| {
                let path = std::env::var_os("PATH");
                let found = find_php(path.as_deref());
                let origin = Origin::Found(
                    "it is the newest on the PATH, in /usr/bin and in /usr/local/bin".to_owned(),
                );
                // Errors name this path when there is no PHP.
                found
                    .map(|php| (php, origin))
                    .or_else(|| default("/usr/bin/php"))
            }),
            path(&args.cgroup, Setting::Cgroup, &|| None),
            text(&args.identity, Setting::Identity),
            text(&args.guest_ids, Setting::GuestIds),
            path(&args.agents_dir, Setting::AgentsDir, &|| {
                default(AGENTS_DIR)
            }),
            path(&args.browser, Setting::Browser, &|| None),
            path(&None, Setting::Cache, &|| Some(places::default_cache())),
        ];
        chosen.extend(shares::chosen_shares(&file)?);
        let mut settings = Self::of(chosen, file.path().map(Path::to_owned));
        settings.max_limits = HostShares::ceilings(file.max_limits());
        if args.run_registry.is_some() {
            settings.missing_state = MissingState::Created;
        }
        Ok(settings)
    }

    fn of(mut chosen: Vec<Chosen>, file: Option<PathBuf>) -> Self {
        let value = |setting: Setting| {
            let row = chosen.iter().find(|row| row.setting == setting);
            row.and_then(|row| row.value.clone())
        };
        let text = |setting| value(setting).map(|value| value.to_string_lossy().into_owned());
        let cores = Cores::new(&value(Setting::Cache).unwrap_or_default());
        let mut settings = Self {
            state_dir: value(Setting::State).unwrap_or_default(),
            share_dir: value(Setting::Share).unwrap_or_default(),
            launcher: value(Setting::Launcher).unwrap_or_default(),
            php_binary: value(Setting::Php).unwrap_or_default(),
            wordpress: value(Setting::Wordpress),
            cgroup: value(Setting::Cgroup),
            identity: text(Setting::Identity),
            guest_ids: text(Setting::GuestIds),
            agents_dir: value(Setting::AgentsDir),
            browser: value(Setting::Browser),
            cores,
            chosen: Vec::new(),
            file,
            wp_fallback: WpFallback::default(),
            max_limits: LimitsRequest::default(),
            missing_state: MissingState::Refused,
        };
        settings.find_wordpress(&mut chosen);
        settings.chosen = chosen;
        settings
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
