//! The default state directory, and its creation at the first use.

use super::places::SYSTEM_STATE;
use super::source::{Origin, Setting};
use super::{MissingState, Settings};
use std::os::unix::fs::{DirBuilderExt, lchown};
use std::path::Path;
use std::process::{Command, Stdio};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// User that owns the state directory of the host.
const USER: &str = "wp-codebox";

/// Creates the default state directory if it is missing. Root gives it to a system user. Any other
/// user creates it for himself, and its missing parent directories, too. A directory that the user
/// named is created only if he named it with `--run-registry`.
///
/// # Errors
/// `wp_codebox_state_dir_invalid` if the directory cannot be created.
pub(crate) fn prepare_state(settings: &Settings) -> Result<(), ErrorBody> {
    let path = &settings.state_dir;
    let may_create = *settings.origin(Setting::State) == Origin::Default
        || settings.missing_state == MissingState::Created;
    if !may_create || path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let made = match rustix::process::geteuid().is_root() {
        true => for_system_user(path),
        // Directories of the XDG specification are private to their user.
        false => std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|e| e.to_string()),
    };
    made.map_err(|why| {
        let message = format!(
            "the state directory {} cannot be created: {why}",
            path.display()
        );
        ErrorBody::new(ErrorCode::StateDirInvalid, message)
            .hint("with --state, name an existing directory of your own (as root: of another user)")
    })
}

/// Creates the directory with mode 0700 for the system user, and that user if it is missing.
fn for_system_user(path: &Path) -> Result<(), String> {
    let (uid, gid) = match system_user() {
        Some(ids) => ids,
        None => {
            add_system_user()?;
            system_user().ok_or_else(|| format!("useradd did not create the user {USER}"))?
        }
    };
    // Another process may create the directory at the same time. So create it with mode 0700 under
    // a temporary name, set the owner, and rename it when it is complete.
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let made = std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&new)
        .and_then(|()| lchown(&new, Some(uid), Some(gid)))
        .and_then(|()| std::fs::rename(&new, path));
    let _ = std::fs::remove_dir(&new);
    match made {
        Err(_) if path.is_dir() => Ok(()),
        made => made.map_err(|e| e.to_string()),
    }
}

/// Returns uid and gid of the system user from the passwd file.
fn system_user() -> Option<(u32, u32)> {
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = passwd
        .lines()
        .find_map(|line| line.strip_prefix(USER)?.strip_prefix(':'))?
        .split(':')
        .skip(1);
    let ids = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (ids.0 != 0).then_some(ids)
}

fn add_system_user() -> Result<(), String> {
    let status = Command::new("/usr/sbin/useradd")
        .args([
            "--system",
            "--user-group",
            "--no-create-home",
            "--home-dir",
            SYSTEM_STATE,
        ])
        .args(["--shell", "/usr/sbin/nologin", USER])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        // Status 9: the user exists already, because another process created it meanwhile.
        Ok(status) if status.success() || status.code() == Some(9) => Ok(()),
        Ok(status) => Err(format!(
            "useradd could not create the user {USER} ({status})"
        )),
        Err(error) => Err(format!(
            "useradd cannot be started to create the user {USER}: {error}"
        )),
    }
}
