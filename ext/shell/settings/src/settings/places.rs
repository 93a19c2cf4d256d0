//! Default directories of this host and of its users.

use super::source::Origin;
use super::xdg::xdg;
use crate::accounts::Account;
use crate::user_state::{STATES, state_of};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// System user who owns the state directory of root's commands.
pub(super) const SYSTEM_USER: &str = "wp-codebox";

/// Returns the default state directory: that of the system user for root, the one below
/// `/var/lib/wp-codebox` for a user who has one there, else one in the user's home directory.
pub(super) fn default_state() -> (PathBuf, Origin) {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return (state_of(SYSTEM_USER), Origin::Default);
    }
    // Most users have no hosted site: only a host with state directories is asked for the name.
    let account = Path::new(STATES)
        .is_dir()
        .then(|| Account::of(user.as_raw()));
    if let Some(account) = account.flatten() {
        let hosted = state_of(&account.name);
        if std::fs::symlink_metadata(&hosted).is_ok_and(|m| m.uid() == user.as_raw()) {
            let why = "root made it for this user".to_owned();
            return (hosted, Origin::Found(why));
        }
    }
    let own = xdg("XDG_STATE_HOME", ".local/state").map(|state| state.join("wp-codebox"));
    let own = own.unwrap_or_else(|| state_of(&user.as_raw().to_string()));
    (own, Origin::Default)
}

/// Returns the default cache directory: `/var/cache/wp-codebox` for root, else one of the user.
pub(super) fn default_cache() -> (PathBuf, Origin) {
    const SYSTEM: &str = "/var/cache/wp-codebox";
    let path = match rustix::process::geteuid().is_root() {
        true => None,
        false => xdg("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("wp-codebox")),
    };
    (path.unwrap_or_else(|| SYSTEM.into()), Origin::Default)
}
