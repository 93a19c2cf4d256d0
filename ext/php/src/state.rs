//! The state directory and this process's access to it.
//!
//! Only one user, the owner, writes below the state directory. A process of root switches to the
//! owner's filesystem uid and gid during a write; otherwise the owner could not modify what root
//! created.

use crate::fields::Fields;
use crate::guard::Failure;
use crate::ini::Settings;
use crate::user::{self, STATES};
use rustix::fd::AsFd;
use rustix::fs::{fstat, stat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use serde_json::{Map, Value};
use std::path::Path;
use wp_codebox_artifacts::{
    Dir, HostKey, KeyError, StateVersionError, TrustedKeys, VerifyOptions, check_state_version,
};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, Sha256Hex};

/// Reason why the state directory cannot be used.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(StateDirInvalid)]
pub(crate) enum StateError {
    /// The directory cannot be opened.
    #[error(
        "the state directory cannot be opened ({errno}); create it with mode 0700 for the user that runs PHP, or set wp_codebox.state_dir"
    )]
    Open { errno: rustix::io::Errno },
    /// The default directory of this user does not exist.
    #[error(
        "user {user} has no state directory {path}; make it as root with `wp-codebox users add {user}`, or set wp_codebox.state_dir"
    )]
    NoneOfUser { user: String, path: String },
    /// Root has no default directory.
    #[error(
        "root has no state directory of a site; run PHP as the user of the site, or set wp_codebox.state_dir to that user's directory ({STATES}/USER)"
    )]
    NoneOfRoot,
    /// The directory of all state directories is itself a state directory.
    #[error(
        "{STATES} is itself a state directory, but each user has its own one below it; as root, `wp-codebox users add {user}` says how to move it"
    )]
    OldLayout { user: String },
    /// The directory belongs to another user.
    #[error(
        "the state directory belongs to user {owner}, but this process runs as {us}; run it as the owner, or set wp_codebox.state_dir to another directory"
    )]
    Foreign { owner: u32, us: u32 },
    /// The mode of the directory gives permissions to its group or to others.
    #[error(
        "the mode of the state directory gives permissions to its group or to others; run `chmod 0700` on it"
    )]
    TooOpen,
    /// A newer program wrote the directory, or its version cannot be read.
    #[error(transparent)]
    Version(#[from] StateVersionError),
}

/// The opened state directory.
#[derive(Debug)]
pub(crate) struct State {
    /// Directory handle, through which the artifacts crate reads and writes.
    pub(crate) directory: Dir,
    owner: (u32, u32),
}

impl State {
    /// Opens the state directory and checks owner and mode.
    pub(crate) fn open(settings: &Settings) -> Result<Self, StateError> {
        let directory =
            Dir::open(Path::new(&settings.state_dir)).map_err(|errno| unopened(settings, errno))?;
        let stat = fstat(&directory).map_err(|errno| StateError::Open { errno })?;
        let us = geteuid().as_raw();
        if us != 0 && stat.st_uid != us {
            return Err(StateError::Foreign {
                owner: stat.st_uid,
                us,
            });
        }
        if stat.st_mode & 0o077 != 0 {
            return Err(StateError::TooOpen);
        }
        check_state_version(directory.as_fd())?;
        Ok(Self {
            directory,
            owner: (stat.st_uid, stat.st_gid),
        })
    }

    /// Switches to the owner's filesystem uid and gid until the guard is dropped. No PHP code may
    /// run in that time.
    pub(crate) fn as_owner(&self) -> OwnerScope {
        let (uid, gid) = self.owner;
        let active = geteuid().as_raw() == 0 && uid != 0;
        if active {
            // SAFETY: changes the filesystem ids of this thread only; undone in `drop`.
            unsafe {
                libc::setfsgid(gid);
                libc::setfsuid(uid);
            }
        }
        OwnerScope { active }
    }
}

/// Returns why the state directory cannot be opened. For a default directory that does not exist, the
/// error says who makes it.
fn unopened(settings: &Settings, errno: Errno) -> StateError {
    let is_missing = matches!(errno, Errno::NOENT | Errno::ACCESS);
    if !settings.has_default_state || !is_missing {
        return StateError::Open { errno };
    }
    let user = user::name(geteuid().as_raw());
    // Only root owns the directory of all state directories.
    match stat(STATES).is_ok_and(|found| found.st_uid != 0) {
        true => StateError::OldLayout { user },
        false if geteuid().is_root() => StateError::NoneOfRoot,
        false => StateError::NoneOfUser {
            user,
            path: settings.state_dir.clone(),
        },
    }
}

/// Guard of [`State::as_owner`]; its drop restores the filesystem uid and gid.
#[derive(Debug)]
#[must_use]
pub(crate) struct OwnerScope {
    active: bool,
}

impl Drop for OwnerScope {
    fn drop(&mut self) {
        if self.active {
            // SAFETY: changes the filesystem ids of this thread only, back to its effective ids.
            unsafe {
                libc::setfsuid(geteuid().as_raw());
                libc::setfsgid(getegid().as_raw());
            }
        }
    }
}

/// Name of the member with the ids of further trusted keys. The site fills it from its settings,
/// never from the input of a caller.
pub(crate) const TRUSTED_KEYS: &str = "trusted_keys";

/// Takes the ids of further trusted keys.
pub(crate) fn known_keys(fields: &mut Fields) -> Result<Vec<Sha256Hex>, ErrorBody> {
    let ids = fields.texts(TRUSTED_KEYS)?.into_iter().enumerate();
    ids.map(|(index, id)| {
        let name = format!("{TRUSTED_KEYS}[{index}]");
        let rule = "the id of a signing key, 64 lowercase hex digits";
        Sha256Hex::new(id).map_err(|_| fields.refuse(&name, rule))
    })
    .collect()
}

/// Reads the options of a verification, whose only permitted member has further trusted keys.
pub(crate) fn verify_options(
    settings: &Settings,
    options: Map<String, Value>,
) -> Result<VerifyOptions, Failure> {
    let mut fields = Fields::new(options, "", &[TRUSTED_KEYS], ErrorCode::InputInvalid)?;
    let known = known_keys(&mut fields)?;
    Ok(VerifyOptions {
        trusted: trusted_keys(settings, known)?,
    })
}

/// Returns the keys whose signatures this site trusts: the host's own keys, if there is a state
/// directory with one, and the `known` keys of the site's settings.
pub(crate) fn trusted_keys(
    settings: &Settings,
    known: Vec<Sha256Hex>,
) -> Result<TrustedKeys, Failure> {
    let host = match Dir::open(Path::new(&settings.state_dir)) {
        Err(_) => Vec::new(),
        Ok(directory) => match HostKey::load(&directory) {
            Ok(key) => key.public_keys(),
            Err(KeyError::Missing) => Vec::new(),
            Err(error) => return Err(error.body().into()),
        },
    };
    Ok(TrustedKeys { host, known })
}
