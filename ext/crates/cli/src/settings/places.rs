//! Default directories of this host and of its users.

use super::source::Origin;
use super::xdg::xdg;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// State directory of the host, used by root and by the user who owns it.
pub(super) const SYSTEM_STATE: &str = "/var/lib/wp-codebox";

/// Returns the default state directory: the host's for root and for its owner, else the user's.
pub(super) fn default_state() -> (PathBuf, Origin) {
    let user = rustix::process::geteuid();
    let system = PathBuf::from(SYSTEM_STATE);
    if user.is_root() {
        return (system, Origin::Default);
    }
    if std::fs::symlink_metadata(&system).is_ok_and(|m| m.uid() == user.as_raw()) {
        return (system, Origin::Found("it belongs to this user".to_owned()));
    }
    let own = xdg("XDG_STATE_HOME", ".local/state").map(|state| state.join("wp-codebox"));
    (own.unwrap_or(system), Origin::Default)
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
