//! The `wp_codebox.*` settings. All are `PHP_INI_SYSTEM`: a script cannot change which binaries run
//! or where state is stored.

use crate::user;
use ext_php_rs::flags::IniEntryPermission;
use ext_php_rs::zend::{IniEntryDef, IniEntryDefs};
use std::ffi::{CStr, c_char, c_int};
use wp_codebox_contracts::{
    CodedError, DEFAULT_MAX_LIMITS, ErrorBody, GuestIds, IdentityChoice, InvalidGuestIds,
    LIMIT_FIELDS, LimitsRequest, OuterSandbox, OuterSandboxKind, OuterSandboxNeed,
};
use wp_codebox_policy as policy;

unsafe extern "C" {
    fn zend_ini_string(name: *const c_char, name_length: usize, orig: c_int) -> *const c_char;
}

const STATE_DIR: &CStr = c"wp_codebox.state_dir";
const SHARE_DIR: &CStr = c"wp_codebox.share_dir";
const RUNNER: &CStr = c"wp_codebox.runner";
const LAUNCHER: &CStr = c"wp_codebox.launcher";
const PHP_BINARY: &CStr = c"wp_codebox.php_binary";
const CGROUP: &CStr = c"wp_codebox.cgroup";
const IDENTITY: &CStr = c"wp_codebox.identity";
const GUEST_IDS: &CStr = c"wp_codebox.guest_ids";
const MOUNT_ROOTS: &CStr = c"wp_codebox.mount_roots";
const AGENTS_DIR: &CStr = c"wp_codebox.agents_dir";

const OUTER_SANDBOX: &CStr = c"wp_codebox.outer_sandbox";
const OUTER_SANDBOX_PROGRAM: &CStr = c"wp_codebox.outer_sandbox_program";

const MAX_RUNS: &CStr = c"wp_codebox.max_runs";
const MAX_GROUPS: &CStr = c"wp_codebox.max_groups";
const MAX_LIMITS: &CStr = c"wp_codebox.max_limits";
const RUNNER_SOCKET: &CStr = c"wp_codebox.runner_socket";

const PROVIDER_KEYS: &CStr = c"wp_codebox.provider_keys";
const PRIVATE_MODELS: &CStr = c"wp_codebox.private_models";

/// Highest accepted value of `wp_codebox.max_runs`, the limit of concurrent runs of a site.
const MOST_RUNS: u32 = 256;
/// Highest accepted value of `wp_codebox.max_groups`, the limit of concurrent batches and fan-outs
/// of a user.
const MOST_GROUPS: u32 = 64;

/// The contracts' default of `wp_codebox.max_limits` as text.
const DEFAULT_MAX_LIMITS_TEXT: &CStr =
    c"wall_clock_ms:28800000 memory_bytes:17179869184 disk_bytes:17179869184";

static ENTRIES: IniEntryDefs<19> = IniEntryDefs::new([
    setting(STATE_DIR, c""),
    setting(SHARE_DIR, c"/usr/share/wp-codebox"),
    setting(RUNNER, c"/usr/bin/wp-codebox"),
    setting(LAUNCHER, c"/usr/libexec/wp-codebox-launch"),
    setting(PHP_BINARY, c"/usr/bin/php"),
    setting(CGROUP, c""),
    setting(IDENTITY, c"auto"),
    setting(GUEST_IDS, c""),
    setting(MOUNT_ROOTS, c""),
    setting(AGENTS_DIR, c"/opt/wp-codebox/agents"),
    setting(OUTER_SANDBOX, c"none"),
    setting(OUTER_SANDBOX_PROGRAM, c""),
    setting(MAX_RUNS, c"8"),
    setting(MAX_GROUPS, c"2"),
    setting(MAX_LIMITS, DEFAULT_MAX_LIMITS_TEXT),
    setting(RUNNER_SOCKET, c""),
    setting(PROVIDER_KEYS, c""),
    setting(PRIVATE_MODELS, c""),
    IniEntryDef::end(),
]);

/// Defines a setting that only PHP's configuration files can change.
const fn setting(name: &'static CStr, default: &'static CStr) -> IniEntryDef {
    IniEntryDef::new(name, default, IniEntryPermission::System)
}

/// Reason why a setting is invalid. `name` is the setting.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(ConfigInvalid, detail = Self::detail)]
pub(crate) enum ConfigError {
    /// The value is not UTF-8 text.
    #[error("{name} is not valid UTF-8; set it to UTF-8 text in php.ini")]
    NotUtf8 { name: String },
    /// The value is not an absolute path.
    #[error("{name} must be an absolute path without `.` and `..` segments; set it in php.ini")]
    NotAbsolute { name: String },
    /// The value is not a kind of process wrapper (`none`, `bubblewrap`, `gvisor`).
    #[error("{name} must be none, bubblewrap or gvisor; set it in php.ini")]
    NotAKind { name: String },
    /// The value is not one of the words for the guests' kernel uid (`auto`, `own`, `shared`).
    #[error("{name} must be auto, own or shared; set it in php.ini")]
    NotAnIdentity { name: String },
    /// The value is not a range of user and group ids (FIRST:COUNT).
    #[error("{name} is not valid: {source}; correct it in php.ini")]
    NotIds {
        name: String,
        source: InvalidGuestIds,
    },
    /// The value is not a valid number of runs or groups.
    #[error("{name} must be a whole number from 1 to {most}; set it in php.ini")]
    NotACount { name: String, most: u32 },
    /// An entry of a list is not a limit of a run with its highest value.
    #[error(
        "{name} must be a list of LIMIT:NUMBER, separated by spaces or commas, with the limits wall_clock_ms, processes, memory_bytes, disk_bytes, output_bytes and cpu_milli; set it in php.ini"
    )]
    NotLimits { name: String },
    /// An entry of a list has no valid host, or lacks the name of the key that the list requires.
    #[error("{name} must be a list of {form}, separated by spaces or commas; set it in php.ini")]
    NotHosts { name: String, form: &'static str },
}

impl ConfigError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        let (Self::NotUtf8 { name }
        | Self::NotAbsolute { name }
        | Self::NotAKind { name }
        | Self::NotAnIdentity { name }
        | Self::NotIds { name, .. }
        | Self::NotACount { name, .. }
        | Self::NotLimits { name }
        | Self::NotHosts { name, .. }) = self;
        body.with("setting", name.as_str())
    }
}

/// Registers the settings. Called once in MINIT.
pub(crate) fn register(module_number: i32) {
    IniEntryDef::register(ENTRIES.as_slice(), module_number);
}

/// Values of the settings, as text that is not validated yet.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Directory in which the runs, keys, bundles and WordPress templates are stored. If the setting
    /// is empty, that of the user of this process.
    pub(crate) state_dir: String,
    /// Whether the setting is empty, so that `state_dir` is the default.
    pub(crate) has_default_state: bool,
    /// Directory with WP-CLI, the SQLite drop-in and the guest programs.
    pub(crate) share_dir: String,
    /// Path of the supervisor, the program that PHP starts for each run.
    pub(crate) runner: String,
    /// Path of the launcher, the program that isolates the guest's processes.
    pub(crate) launcher: String,
    /// Path of the PHP for guests.
    pub(crate) php_binary: String,
    /// Cgroup directory below which each run gets its cgroups; if empty, the supervisor's own cgroup.
    pub(crate) cgroup: String,
    /// Kernel uid of guests: `own` (a separate uid for each), `shared` (that of the owner of the
    /// state directory) or `auto` (own if possible).
    pub(crate) identity: String,
    /// Range of uids and gids for guests, `FIRST:COUNT`. If empty, the supervisor uses the range in its
    /// environment, which the service that started it may set, or else the default range.
    pub(crate) guest_ids: String,
    /// Host directories whose content abilities and admin screens may mount into a sandbox.
    pub(crate) mount_roots: Vec<String>,
    /// Directory with the programs of agent presets; if empty, none is installed.
    pub(crate) agents_dir: String,
    /// Kind of process wrapper around the launcher, an additional layer of isolation.
    pub(crate) outer_sandbox: String,
    /// Program of the process wrapper; if empty, it is searched in the system directories.
    pub(crate) outer_sandbox_program: String,
    /// Limit of concurrent runs of a site, as text.
    pub(crate) max_runs: String,
    /// Limit of concurrent batches and fan-outs of a user, as text.
    pub(crate) max_groups: String,
    /// Entries `LIMIT:NUMBER`: the highest limits that any run of a site may have.
    pub(crate) max_limits: Vec<String>,
    /// Socket of a service that starts supervisors; if empty, PHP starts them.
    pub(crate) runner_socket: String,
    /// Entries `NAME@host[:port]`: an environment variable with an API key, and the host of the
    /// model provider to which the key may be sent.
    pub(crate) provider_keys: Vec<String>,
    /// Entries `host[:port]`: addresses on this host or in its private network where a model may be
    /// called.
    pub(crate) private_models: Vec<String>,
}

impl Settings {
    /// Reads all settings; fails only if one is not UTF-8.
    pub(crate) fn read() -> Result<Self, ConfigError> {
        let state_dir = read(STATE_DIR)?;
        let has_default_state = state_dir.is_empty();
        Ok(Self {
            state_dir: match has_default_state {
                true => user::default_state(),
                false => state_dir,
            },
            has_default_state,
            share_dir: read(SHARE_DIR)?,
            runner: read(RUNNER)?,
            launcher: read(LAUNCHER)?,
            php_binary: read(PHP_BINARY)?,
            cgroup: read(CGROUP)?,
            identity: read(IDENTITY)?,
            guest_ids: read(GUEST_IDS)?,
            mount_roots: read(MOUNT_ROOTS)?
                .split(':')
                .filter(|root| !root.is_empty())
                .map(str::to_owned)
                .collect(),
            agents_dir: read(AGENTS_DIR)?,
            outer_sandbox: read(OUTER_SANDBOX)?,
            outer_sandbox_program: read(OUTER_SANDBOX_PROGRAM)?,
            max_runs: read(MAX_RUNS)?,
            max_groups: read(MAX_GROUPS)?,
            max_limits: listed(MAX_LIMITS)?,
            runner_socket: read(RUNNER_SOCKET)?,
            provider_keys: listed(PROVIDER_KEYS)?,
            private_models: listed(PRIVATE_MODELS)?,
        })
    }

    /// Reads all settings and returns an error for an invalid one.
    pub(crate) fn checked() -> Result<Self, ConfigError> {
        let settings = Self::read()?;
        for (name, value) in [
            (STATE_DIR, &settings.state_dir),
            (SHARE_DIR, &settings.share_dir),
            (RUNNER, &settings.runner),
            (LAUNCHER, &settings.launcher),
            (PHP_BINARY, &settings.php_binary),
        ] {
            absolute(name, value)?;
        }
        if !settings.cgroup.is_empty() {
            absolute(CGROUP, &settings.cgroup)?;
        }
        if !settings.agents_dir.is_empty() {
            absolute(AGENTS_DIR, &settings.agents_dir)?;
        }
        for root in &settings.mount_roots {
            absolute(MOUNT_ROOTS, root)?;
        }
        if !settings.outer_sandbox_program.is_empty() {
            absolute(OUTER_SANDBOX_PROGRAM, &settings.outer_sandbox_program)?;
        }
        if !settings.runner_socket.is_empty() {
            absolute(RUNNER_SOCKET, &settings.runner_socket)?;
        }
        let keyed = |entry: &String| {
            let parts = entry.split_once('@');
            parts.is_some_and(|(key, host)| policy::check_env_name(key).is_ok() && is_host(host))
        };
        if !settings.provider_keys.iter().all(keyed) {
            return Err(ConfigError::NotHosts {
                name: text(PROVIDER_KEYS),
                form: "NAME@host or NAME@host:port",
            });
        }
        if !settings.private_models.iter().all(|entry| is_host(entry)) {
            return Err(ConfigError::NotHosts {
                name: text(PRIVATE_MODELS),
                form: "host or host:port",
            });
        }
        settings.outer_sandbox()?;
        settings.identity()?;
        settings.guest_ids()?;
        settings.max_runs()?;
        settings.max_groups()?;
        settings.max_limits()?;
        Ok(settings)
    }

    /// Returns the limit of concurrent runs of a site.
    pub(crate) fn max_runs(&self) -> Result<u32, ConfigError> {
        count(MAX_RUNS, &self.max_runs, MOST_RUNS)
    }

    /// Returns the limit of concurrent batches and fan-outs of a user.
    pub(crate) fn max_groups(&self) -> Result<u32, ConfigError> {
        count(MAX_GROUPS, &self.max_groups, MOST_GROUPS)
    }

    /// Returns the highest limits that a run may have. A limit that the setting does not name has its
    /// default bound, or none.
    pub(crate) fn max_limits(&self) -> Result<LimitsRequest, ConfigError> {
        let mut bounds = DEFAULT_MAX_LIMITS;
        for entry in &self.max_limits {
            let parsed = entry.split_once(':').and_then(|(name, number)| {
                let field = LIMIT_FIELDS.iter().find(|field| field.name == name)?;
                *(field.member)(&mut bounds) =
                    Some(number.parse().ok().filter(|number| *number > 0)?);
                Some(())
            });
            parsed.ok_or_else(|| ConfigError::NotLimits {
                name: text(MAX_LIMITS),
            })?;
        }
        Ok(bounds)
    }

    /// Returns the parsed setting for the kernel uid of guests.
    pub(crate) fn identity(&self) -> Result<IdentityChoice, ConfigError> {
        match self.identity.as_str() {
            "auto" | "" => Ok(IdentityChoice::Auto),
            "own" => Ok(IdentityChoice::Own),
            "shared" => Ok(IdentityChoice::Shared),
            _ => Err(ConfigError::NotAnIdentity {
                name: text(IDENTITY),
            }),
        }
    }

    /// Returns the parsed uid and gid range for guests; `None` if the setting is empty.
    pub(crate) fn guest_ids(&self) -> Result<Option<GuestIds>, ConfigError> {
        match self.guest_ids.as_str() {
            "" => Ok(None),
            given => GuestIds::parse(given)
                .map(Some)
                .map_err(|source| ConfigError::NotIds {
                    name: text(GUEST_IDS),
                    source,
                }),
        }
    }

    /// Returns the process wrapper around the launcher. If the settings name a wrapper, every run
    /// uses it; no caller can omit it.
    pub(crate) fn outer_sandbox(&self) -> Result<OuterSandbox, ConfigError> {
        let kind = match self.outer_sandbox.as_str() {
            "none" | "" => OuterSandboxKind::None,
            "bubblewrap" => OuterSandboxKind::Bubblewrap,
            "gvisor" => OuterSandboxKind::Gvisor,
            _ => {
                return Err(ConfigError::NotAKind {
                    name: text(OUTER_SANDBOX),
                });
            }
        };
        let program = self.outer_sandbox_program.clone();
        Ok(OuterSandbox {
            kind,
            program: (!program.is_empty()).then_some(program),
            need: OuterSandboxNeed::Required,
        })
    }
}

fn count(name: &CStr, value: &str, most: u32) -> Result<u32, ConfigError> {
    match value.trim().parse::<u32>() {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        Ok(_) | Err(_) => Err(ConfigError::NotACount {
            name: text(name),
            most,
        }),
    }
}

fn absolute(name: &CStr, value: &str) -> Result<(), ConfigError> {
    if is_absolute(value) {
        Ok(())
    } else {
        Err(ConfigError::NotAbsolute { name: text(name) })
    }
}

/// Returns whether a host path is absolute, without NUL, `.` and `..` segments.
pub(crate) fn is_absolute(path: &str) -> bool {
    path.starts_with('/')
        && !path.contains('\0')
        && path
            .split('/')
            .all(|segment| !matches!(segment, "." | ".."))
}

/// Returns whether a text is `host` or `host:port` as in a URL; an IPv6 address has brackets.
fn is_host(entry: &str) -> bool {
    // Without these characters the text cannot contain a path, user or query.
    !entry.contains(['/', '@', '?', '#'])
        && policy::ModelBase::parse(&format!("https://{entry}")).is_ok()
}

fn listed(name: &CStr) -> Result<Vec<String>, ConfigError> {
    let value = read(name)?;
    let entries = value.split([' ', '\t', '\n', ',']);
    Ok(entries
        .filter(|entry| !entry.is_empty())
        .map(str::to_owned)
        .collect())
}

fn text(name: &CStr) -> String {
    name.to_string_lossy().into_owned()
}

fn read(name: &CStr) -> Result<String, ConfigError> {
    // SAFETY: the name is NUL-terminated and its length excludes the NUL. The engine returns NULL
    // or a NUL-terminated string that lives at least until the setting changes, which cannot happen
    // before the copy below.
    let value = unsafe {
        let value = zend_ini_string(name.as_ptr(), name.count_bytes(), 0);
        if value.is_null() {
            return Ok(String::new());
        }
        CStr::from_ptr(value)
    };
    match value.to_str() {
        Ok(value) => Ok(value.to_owned()),
        Err(_) => Err(ConfigError::NotUtf8 { name: text(name) }),
    }
}
