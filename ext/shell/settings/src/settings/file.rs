//! The configuration file `config.json`: the settings of this host or user, as a JSON object.

use super::xdg::xdg;
use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode, LimitsRequest, parse_json};

/// Maximum size of the configuration file in bytes; a larger one is refused.
const LARGEST: u64 = 64 * 1024;
/// Environment variable with the path of the file.
const VARIABLE: &str = "WP_CODEBOX_CONFIG";
/// `O_NONBLOCK` in the type that `custom_flags` takes.
const NONBLOCK: i32 = OFlags::NONBLOCK.bits() as i32;
/// Configuration file of this host, for all users.
const SYSTEM: &str = "/etc/wp-codebox/config.json";

/// Members of the file. Each is optional; paths are absolute.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Members {
    state: Option<String>,
    wordpress: Option<String>,
    share: Option<String>,
    launcher: Option<String>,
    php: Option<String>,
    cgroup: Option<String>,
    identity: Option<String>,
    guest_ids: Option<String>,
    agents_dir: Option<String>,
    browser: Option<String>,
    cache: Option<String>,
    max_runs: Option<u32>,
    user_max_runs: Option<u32>,
    max_limits: LimitsRequest,
}

/// Path and members of the configuration file that was read; empty if there is none.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    path: Option<PathBuf>,
    members: Members,
}

/// Returns the files of this user and of this host, in the order in which they are tried.
fn files() -> Vec<PathBuf> {
    let user = match rustix::process::geteuid().is_root() {
        true => None,
        false => xdg("XDG_CONFIG_HOME", ".config").map(|c| c.join("wp-codebox/config.json")),
    };
    user.into_iter().chain([PathBuf::from(SYSTEM)]).collect()
}

/// Returns a text for messages that lists the places where a configuration file is searched.
pub(super) fn candidates() -> String {
    let files = files();
    let files: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    format!("{VARIABLE} or {}", files.join(" or "))
}

impl ConfigFile {
    /// Reads the file that `WP_CODEBOX_CONFIG` names, else the user's, else the host's. If none
    /// exists, returns a configuration without values.
    pub(super) fn read() -> Result<Self, ErrorBody> {
        if let Some(named) = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
            return Self::load(named.into());
        }
        for file in files() {
            if file.exists() {
                return Self::load(file);
            }
        }
        Ok(Self::default())
    }

    fn load(path: PathBuf) -> Result<Self, ErrorBody> {
        let invalid = |why: String| {
            ErrorBody::new(
                ErrorCode::ConfigInvalid,
                format!("the configuration file {} {why}", path.display()),
            )
            .hint("wp-codebox config --help describes this file")
        };
        let mut text = String::new();
        // Without NONBLOCK, opening a FIFO would wait for a writer.
        let mut options = std::fs::OpenOptions::new();
        let options = options.read(true).custom_flags(NONBLOCK);
        let opened = options
            .open(&path)
            .and_then(|file| match file.metadata()?.is_file() {
                true => file.take(LARGEST + 1).read_to_string(&mut text),
                false => Err(std::io::Error::other("it is not a regular file")),
            });
        opened.map_err(|e| invalid(format!("cannot be read: {e}")))?;
        if text.len() as u64 > LARGEST {
            return Err(invalid("is larger than 64 KiB".to_owned()));
        }
        // Parse to a map first: serde would also accept a JSON array for a struct.
        let members: Members = parse_json(text.as_bytes())
            .and_then(|object: Map<String, Value>| serde_json::from_value(object.into()))
            .map_err(|e| invalid(format!("is not valid: {e}")))?;
        let file = Self {
            path: Some(path.clone()),
            members,
        };
        for key in [
            "state",
            "wordpress",
            "share",
            "launcher",
            "php",
            "cgroup",
            "agents_dir",
            "browser",
            "cache",
        ] {
            if file
                .value(key)
                .is_some_and(|value| !Path::new(&value).is_absolute())
            {
                return Err(invalid(format!(
                    "has a relative path in {key:?}; write an absolute one"
                )));
            }
        }
        Ok(file)
    }

    /// Returns the path of the file that was read.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the highest limits of a run that another user starts through a service of root.
    pub(super) fn max_limits(&self) -> &LimitsRequest {
        &self.members.max_limits
    }

    /// Returns the value of a member.
    pub(super) fn value(&self, key: &str) -> Option<String> {
        let members = &self.members;
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        match key {
            "state" => members.state.clone(),
            "wordpress" => members.wordpress.clone(),
            "share" => members.share.clone(),
            "launcher" => members.launcher.clone(),
            "php" => members.php.clone(),
            "cgroup" => members.cgroup.clone(),
            "identity" => members.identity.clone(),
            "guest_ids" => members.guest_ids.clone(),
            "agents_dir" => members.agents_dir.clone(),
            "browser" => members.browser.clone(),
            "cache" => members.cache.clone(),
            "max_runs" => number(members.max_runs),
            "user_max_runs" => number(members.user_max_runs),
            _ => None,
        }
    }
}
