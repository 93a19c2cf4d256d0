//! The state directory as this process may use it.
//!
//! One owner writes below it. Root acting for a site takes the owner's file identity for
//! the time of a write, or the owner could not go on writing what root created.

use crate::guard::Failure;
use crate::ini::Settings;
use rustix::fs::fstat;
use rustix::process::{getegid, geteuid};
use std::path::Path;
use wp_codebox_artifacts::{Dir, HostKey, KeyError, TrustedKeys};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// The directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    /// It cannot be opened.
    #[error(
        "the state directory cannot be opened ({errno}); create it with mode 0700 for the user that runs PHP, or set wp_codebox.state_dir"
    )]
    Open { errno: rustix::io::Errno },
    /// It belongs to another user.
    #[error(
        "the state directory belongs to user {owner}, but this process runs as {us}; use the owner, or set wp_codebox.state_dir"
    )]
    Foreign { owner: u32, us: u32 },
    /// Group or others have a right to it.
    #[error(
        "the state directory can be entered by its group or by everybody; run `chmod 0700` on it"
    )]
    TooOpen,
}

impl From<StateError> for ErrorBody {
    fn from(error: StateError) -> Self {
        let code = match error {
            StateError::Open { .. } | StateError::Foreign { .. } | StateError::TooOpen => {
                ErrorCode::StateDirInvalid
            }
        };
        ErrorBody::new(code, error.to_string())
    }
}

/// The open state directory.
#[derive(Debug)]
pub(crate) struct State {
    /// For the artifacts crate.
    pub(crate) directory: Dir,
    owner: (u32, u32),
}

impl State {
    /// Opens and checks it.
    pub(crate) fn open(settings: &Settings) -> Result<Self, StateError> {
        let directory = Dir::open(Path::new(&settings.state_dir))
            .map_err(|errno| StateError::Open { errno })?;
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
        Ok(Self {
            directory,
            owner: (stat.st_uid, stat.st_gid),
        })
    }

    /// Takes the owner's file identity until the guard is dropped. No PHP code may run meanwhile.
    pub(crate) fn as_owner(&self) -> OwnerScope {
        let (uid, gid) = self.owner;
        let active = geteuid().as_raw() == 0 && uid != 0;
        if active {
            // SAFETY: changes the file identity of this thread only; undone in `drop`.
            unsafe {
                libc::setfsgid(gid);
                libc::setfsuid(uid);
            }
        }
        OwnerScope { active }
    }
}

/// See [`State::as_owner`].
#[derive(Debug)]
#[must_use]
pub(crate) struct OwnerScope {
    active: bool,
}

impl Drop for OwnerScope {
    fn drop(&mut self) {
        if self.active {
            // SAFETY: as in `as_owner`; the effective ids have not changed.
            unsafe {
                libc::setfsuid(geteuid().as_raw());
                libc::setfsgid(getegid().as_raw());
            }
        }
    }
}

/// Whose signatures this host trusts. Without a state directory or a key: nobody's.
pub(crate) fn trusted_keys(settings: &Settings) -> Result<TrustedKeys, Failure> {
    let Ok(directory) = Dir::open(Path::new(&settings.state_dir)) else {
        return Ok(TrustedKeys::default());
    };
    match HostKey::load(&directory) {
        Ok(key) => Ok(TrustedKeys {
            host: Some(key.public_half()),
            known: Vec::new(),
        }),
        Err(KeyError::Missing) => Ok(TrustedKeys::default()),
        Err(error) => Err(error.body().into()),
    }
}
