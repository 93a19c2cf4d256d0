//! How the service gets a supervisor for a new sandbox.

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunMode};
use wp_codebox_runs::supervisor::Spawned;
use wp_codebox_runtime::Owner;
use wp_codebox_settings::Account;
use wp_codebox_settings::Settings;

/// Process that starts supervisors.
#[derive(Debug)]
pub(crate) enum Runner {
    /// This process starts supervisors, with its own permissions.
    Child,
    /// The service behind this socket starts a supervisor for each connection (packaging/systemd).
    /// If that service runs as root, guests get a kernel uid of their own.
    Socket(PathBuf),
}

impl Runner {
    /// Checks that the runner socket exists. Does not connect, because every connection starts a
    /// supervisor.
    pub(super) fn check(&self) -> Result<(), ErrorBody> {
        match self {
            Self::Socket(path) if !path.exists() => {
                let message = format!("the runner socket {} does not exist", path.display());
                Err(ErrorBody::new(ErrorCode::RunnerUnavailable, message)
                    .hint("start its service: systemctl enable --now wp-codebox.socket"))
            }
            Self::Child | Self::Socket(_) => Ok(()),
        }
    }

    /// Returns the group of the runner socket if the owner of the state directory is a member of it: to
    /// connect, a process that root started keeps this group when it becomes that owner.
    pub(crate) fn group(&self, owner: Owner) -> Option<u32> {
        let Self::Socket(path) = self else {
            return None;
        };
        let group = std::fs::metadata(path).ok()?.gid();
        let is_member = Account::of(owner.uid)?.is_in(group);
        is_member.then_some(group)
    }

    /// Returns a supervisor that waits for its request.
    pub(crate) fn supervisor(
        &self,
        settings: &Settings,
        mode: RunMode,
    ) -> Result<Spawned, ErrorBody> {
        match self {
            Self::Child => Spawned::next(mode),
            Self::Socket(path) => {
                let unusable = |why: String| {
                    let message = format!("the runner socket {}: {why}", path.display());
                    ErrorBody::new(ErrorCode::RunnerUnavailable, message)
                };
                let stream = UnixStream::connect(path).map_err(|e| {
                    unusable(e.to_string()).hint(match e.kind() {
                        ErrorKind::PermissionDenied => {
                            "let the owner of the state directory use it (wp-codebox users add), and start this service again"
                        }
                        _ => "start its service: systemctl enable --now wp-codebox.socket",
                    })
                })?;
                // The request contains secrets, so the process that listens must be trusted.
                let peer = socket_peercred(&stream).map_err(|e| unusable(e.to_string()))?;
                let uid = peer.uid.as_raw();
                let owner = std::fs::metadata(&settings.state_dir).map(|state| state.uid());
                let is_owner = owner.is_ok_and(|owner| owner == uid);
                if uid != 0 && uid != geteuid().as_raw() && !is_owner {
                    return Err(unusable(format!(
                        "uid {uid} listens on it, which is neither root nor the owner of the state directory"
                    )));
                }
                Ok(Spawned::connected(stream))
            }
        }
    }
}
