//! Who is on the other side of a unix socket, and with whose rights a request is carried out.

use rustix::fd::AsFd;
use rustix::net::sockopt::{socket_acceptconn, socket_peercred};
use rustix::process::{Gid, Uid};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use wp_codebox_backend_native::peer_groups;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestIds, KernelIds, RunRequest};

/// Whether a user may speak to this process: its own, or root. A request names binaries,
/// and a cancellation ends somebody's work.
pub(crate) fn may_speak(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// Who asks for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The user of this process, or root.
    Trusted,
    /// Another user, whom a service that root started serves. What the request names is opened
    /// with this user's rights, and nothing that the request names is run as root.
    Other {
        /// User.
        uid: u32,
        /// Group.
        gid: u32,
        /// Its other groups, when the connection was made.
        groups: Vec<u32>,
        /// The service's range of ids for guests.
        ids: Option<GuestIds>,
    },
}

/// Refuses a frame socket whose other side may not speak. What the kernel says of it was
/// true when the connection was made.
///
/// A service that root started admits any user that its socket's mode lets in: the state
/// directory of the request must belong to that user.
pub(crate) fn check(socket: impl AsFd, ids: Option<GuestIds>) -> Result<Caller, ErrorBody> {
    let refuse = |why: String| Err(ErrorBody::new(ErrorCode::Forbidden, why));
    if socket_acceptconn(&socket).unwrap_or(false) {
        return refuse(
            "the frame socket is a listener: the socket unit needs Accept=yes".to_owned(),
        );
    }
    let unknown = |error: &dyn std::fmt::Display| {
        let message = format!("the frame socket is no connected unix socket ({error})");
        ErrorBody::new(ErrorCode::Forbidden, message)
    };
    let peer = socket_peercred(&socket).map_err(|error| unknown(&error))?;
    let uid = peer.uid.as_raw();
    if may_speak(uid) {
        return Ok(Caller::Trusted);
    }
    if !rustix::process::geteuid().is_root() {
        return refuse(format!(
            "uid {uid} may not start runs of uid {}: connect as that user or as root",
            rustix::process::geteuid().as_raw()
        ));
    }
    Ok(Caller::Other {
        uid,
        gid: peer.gid.as_raw(),
        groups: peer_groups(&socket).map_err(|error| unknown(&error))?,
        ids,
    })
}

impl Caller {
    /// Refuses what only the operator of the service decides.
    pub fn check(&self, request: &RunRequest) -> Result<(), ErrorBody> {
        if *self == Self::Trusted {
            return Ok(());
        }
        let refuse = |what: &str| {
            let message = format!(
                "{what} is decided by the service that starts runs: leave it out of the request"
            );
            Err(ErrorBody::new(ErrorCode::Forbidden, message))
        };
        if request.paths.cgroup.is_some() {
            return refuse("the cgroup directory (wp_codebox.cgroup)");
        }
        if request.paths.guest_ids.is_some() {
            return refuse(
                "the range of guest ids (wp_codebox.guest_ids; --guest-ids of the service)",
            );
        }
        // It is started before root is given up.
        only_root_can_change(Path::new(&request.paths.launcher))
    }

    /// Does something with the caller's user, group and groups, and without the capabilities of
    /// root, in a process that still has a single thread.
    pub fn with_its_rights<T>(&self, work: impl FnOnce() -> T) -> Result<T, ErrorBody> {
        let Self::Other {
            uid, gid, groups, ..
        } = self
        else {
            return Ok(work());
        };
        let failed = |error: rustix::io::Errno| {
            let message = format!("the rights of uid {uid} cannot be taken on or off: {error}");
            ErrorBody::new(ErrorCode::Internal, message)
        };
        let groups: Vec<Gid> = groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        let become_effective = |uid: Uid, gid: Gid, groups: &[Gid]| {
            rustix::thread::set_thread_groups(groups)?;
            rustix::thread::set_thread_res_gid(Gid::ROOT, gid, Gid::ROOT)?;
            rustix::thread::set_thread_res_uid(Uid::ROOT, uid, Uid::ROOT)
        };
        become_effective(Uid::from_raw(*uid), Gid::from_raw(*gid), &groups).map_err(failed)?;
        let done = work();
        // Root first: only it may change the groups back.
        rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(failed)?;
        become_effective(Uid::ROOT, Gid::ROOT, &[]).map_err(failed)?;
        Ok(done)
    }

    /// The ids set aside for guests: the service's, or as the request says.
    pub fn guest_ids(&self, request: &RunRequest) -> GuestIds {
        let given = match self {
            Self::Trusted => request.paths.guest_ids,
            Self::Other { ids, .. } => *ids,
        };
        given.unwrap_or_default()
    }

    /// Whether the caller has the rights of this user and this group. Only then may files of both
    /// be shown to a guest as the guest's own, and may a run become both: a directory can have a
    /// group that its owner is not in (set-gid directories above it).
    pub fn has_rights_of(&self, ids: KernelIds) -> bool {
        match self {
            Self::Trusted => true,
            Self::Other {
                uid, gid, groups, ..
            } => *uid == ids.uid && (*gid == ids.gid || groups.contains(&ids.gid)),
        }
    }
}

/// Refuses a program that others than root could replace.
fn only_root_can_change(program: &Path) -> Result<(), ErrorBody> {
    let real = std::fs::canonicalize(program).ok();
    let safe = real.as_deref().is_some_and(|real| {
        real.ancestors().all(|part| {
            std::fs::symlink_metadata(part).is_ok_and(|meta| {
                // A sticky directory such as /tmp lets others add names, not replace root's.
                meta.uid() == 0 && (meta.mode() & 0o022 == 0 || meta.mode() & 0o1000 != 0)
            })
        })
    });
    if safe {
        return Ok(());
    }
    let message = format!(
        "the launcher {} could be replaced by others than root, and the service would start it as root; install it where only root writes",
        program.display()
    );
    Err(ErrorBody::new(ErrorCode::Forbidden, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn oneself_may_speak_and_a_listener_is_no_conversation() {
        let (a, _b) = UnixStream::pair().unwrap();
        assert_eq!(check(&a, None).unwrap(), Caller::Trusted);
        let temp = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(temp.path().join("s")).unwrap();
        let error = check(&listener, None).unwrap_err();
        assert!(error.message.contains("Accept=yes"), "{error}");
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(check(&file, None).unwrap_err().code, ErrorCode::Forbidden);
        assert!(may_speak(0) && !may_speak(65_534));
    }

    #[test]
    fn a_caller_has_the_rights_of_its_own_groups_only() {
        let caller = Caller::Other {
            uid: 33,
            gid: 33,
            groups: vec![44],
            ids: None,
        };
        let has = |uid, gid| caller.has_rights_of(KernelIds { uid, gid });
        assert!(has(33, 33) && has(33, 44));
        assert!(!has(33, 4) && !has(0, 33) && !has(0, 0));
        assert!(Caller::Trusted.has_rights_of(KernelIds { uid: 0, gid: 0 }));
    }

    #[test]
    fn only_a_program_below_directories_of_root_is_started_as_root() {
        only_root_can_change(Path::new("/bin/sh")).unwrap();
        let temp = tempfile::tempdir().unwrap();
        let program = temp.path().join("launch");
        std::fs::write(&program, "").unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(temp.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let error = only_root_can_change(&program).unwrap_err();
        assert_eq!(error.code, ErrorCode::Forbidden);
        assert!(only_root_can_change(Path::new("/does/not/exist")).is_err());
    }
}
