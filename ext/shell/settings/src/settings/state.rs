//! The default state directory, and its creation at the first use.

use super::places::SYSTEM_USER;
use super::source::{Origin, Setting};
use super::{MissingState, Settings};
use crate::accounts::{self, Account};
use crate::user_state::{STATES, UserStates};
use std::os::unix::fs::{DirBuilderExt, lchown};
use std::path::Path;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Creates the default state directory if it is missing. Root gives it to a system user. Any other
/// user creates it for himself, and its missing parent directories, too. A directory that the user
/// named is created only if he named it with `--run-registry`.
///
/// # Errors
/// `wp_codebox_state_dir_invalid` if the directory cannot be created.
pub fn prepare_state(settings: &Settings) -> Result<(), ErrorBody> {
    let path = &settings.state_dir;
    let is_default = *settings.origin(Setting::State) == Origin::Default;
    let may_create = is_default || settings.missing_state == MissingState::Created;
    if !may_create || path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let made = match (rustix::process::geteuid().is_root(), is_default) {
        (true, true) => {
            let states = UserStates::open_or_make()?;
            let account = system_user().map_err(|why| unmade(path, &why))?;
            states.make(&account)?;
            return Ok(());
        }
        (true, false) => for_system_user(path),
        // Directories of the XDG specification are private to their user.
        (false, _) => std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|e| e.to_string()),
    };
    made.map_err(|why| unmade(path, &why))
}

fn unmade(path: &Path, why: &str) -> ErrorBody {
    let message = format!(
        "the state directory {} cannot be created: {why}",
        path.display()
    );
    ErrorBody::new(ErrorCode::StateDirInvalid, message)
        .hint("with --state, name an existing directory of your own (as root: of another user)")
}

/// Creates a directory with mode 0700 for the system user.
fn for_system_user(path: &Path) -> Result<(), String> {
    let Account { uid, gid, .. } = system_user()?;
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

/// Returns the system user. Creates it if it is missing.
fn system_user() -> Result<Account, String> {
    if let Some(account) = Account::named(SYSTEM_USER) {
        return Ok(account);
    }
    let mut arguments = vec!["--system", "--no-create-home", "--home-dir", STATES];
    arguments.extend(["--shell", "/usr/sbin/nologin"]);
    // The group of the runner socket has the same name.
    arguments.extend(match accounts::group_id(SYSTEM_USER) {
        Some(_) => ["--gid", SYSTEM_USER].as_slice(),
        None => ["--user-group"].as_slice(),
    });
    arguments.push(SYSTEM_USER);
    let added = accounts::change("/usr/sbin/useradd", &arguments);
    // Another process may have created the user meanwhile.
    let found = Account::named(SYSTEM_USER);
    found.ok_or_else(|| {
        let why = added
            .err()
            .unwrap_or_else(|| "useradd created none".to_owned());
        format!("there is no user {SYSTEM_USER}: {why}")
    })
}
