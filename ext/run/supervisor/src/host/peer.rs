//! Peer credentials of a unix socket, and the user with whose permissions a request is carried out.

use super::host_programs::HostPrograms;
use super::places::{self, HostShares, Place};
use rustix::fd::AsFd;
use rustix::net::sockopt::{socket_acceptconn, socket_peercred};
use rustix::process::{Gid, Uid};
use wp_codebox_backend_native::peer_groups;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestIds, KernelIds, RunRequest};

/// Returns whether a user may connect to this process: the process's own user or root. Other users
/// may not, because a request names programs to run and a cancel frame ends a run.
pub(crate) fn may_connect(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// User that requests a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The user of this process, or root.
    Trusted,
    /// Another user, served by a service that root started. The paths of the request are opened
    /// with this user's permissions, and the programs come from the configuration of the service.
    Other {
        /// User id.
        uid: u32,
        /// Primary group id.
        gid: u32,
        /// Supplementary group ids at the time of the connection.
        groups: Vec<u32>,
        /// Range of user and group ids that the service's configuration reserves for guests; `None`
        /// if the configuration sets no range.
        ids: Option<GuestIds>,
        /// Programs and shares of the service's configuration.
        host: Box<HostConfig>,
    },
}

/// What the configuration of a service sets for callers other than root and its own user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// Programs that their requests may use.
    pub programs: HostPrograms,
    /// How much they may run.
    pub shares: HostShares,
}

/// Configuration of the service for callers other than root and its own user.
pub struct ServiceConfig<'a> {
    /// Range of user and group ids for guests, `FIRST:COUNT`.
    pub guest_ids: Option<&'a str>,
    /// Returns the configuration of this host; called only for such a caller.
    pub host: &'a dyn Fn() -> Result<HostConfig, ErrorBody>,
}

/// Rejects a frame socket (the connection to the caller) whose peer may not start runs. The
/// credentials are those at the time of the connection (`SO_PEERCRED`).
///
/// If root started the service, the file mode of the service's socket decides which users can
/// connect and thereby start runs; the state directory of the request must belong to the connected
/// user.
pub(crate) fn check(socket: impl AsFd, service: &ServiceConfig<'_>) -> Result<Caller, ErrorBody> {
    let ids = service.guest_ids.map(GuestIds::parse).transpose();
    let ids = ids.map_err(|e| ErrorBody::new(ErrorCode::ConfigInvalid, e.to_string()))?;
    let refuse = |why: String| Err(ErrorBody::new(ErrorCode::Forbidden, why));
    if socket_acceptconn(&socket).unwrap_or(false) {
        return refuse(
            "the socket on descriptor 3 is a listener: the service's socket unit needs Accept=yes"
                .to_owned(),
        );
    }
    let unknown = |error: &dyn std::fmt::Display| {
        let message = format!(
            "the socket on descriptor 3 is not a connected unix socket ({error}); check that the service's socket unit has ListenStream=PATH"
        );
        ErrorBody::new(ErrorCode::Forbidden, message)
    };
    let peer = socket_peercred(&socket).map_err(|error| unknown(&error))?;
    let uid = peer.uid.as_raw();
    if may_connect(uid) {
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
        host: Box::new((service.host)()?),
    })
}

impl Caller {
    /// Takes a place of this host for a run of another user. A trusted caller needs none.
    ///
    /// # Errors
    /// `wp_codebox_busy` if the user, or all such users together, have as many runs as they may.
    pub(crate) fn take_place(&self) -> Result<Option<Place>, ErrorBody> {
        match self {
            Self::Trusted => Ok(None),
            Self::Other { uid, host, .. } => places::take(*uid, &host.shares).map(Some),
        }
    }

    /// Accepts the request of a trusted caller as it is. For another user, rejects a request with
    /// settings that only the operator of the service may set or limits above those of the host, and
    /// replaces the programs by those of the service. Opens nothing that the request names.
    pub fn admit(&self, request: &mut RunRequest) -> Result<(), ErrorBody> {
        let Self::Other { host, .. } = self else {
            return Ok(());
        };
        let refuse = |field: &str, what: &str| {
            let message = format!("only the service that starts runs may set {what}");
            let hint = format!("leave {field} out of the request");
            let error = ErrorBody::new(ErrorCode::Forbidden, message);
            Err(error.hint(hint).with("field", field))
        };
        if request.paths.cgroup.is_some() {
            return refuse("paths.cgroup", "the cgroup directory (wp_codebox.cgroup)");
        }
        if request.paths.guest_ids.is_some() {
            return refuse(
                "paths.guest_ids",
                "the range of guest ids (wp_codebox.guest_ids; --guest-ids of the service)",
            );
        }
        host.shares.bound(&mut request.limits)?;
        host.programs.apply(request)
    }

    /// Returns whether the caller is root or the user of this process.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        *self == Self::Trusted
    }

    /// Runs `work` with the effective user id, group id and supplementary groups of the caller,
    /// i.e. without root's capabilities. For a trusted caller the ids stay as they are. The process
    /// must still be single-threaded.
    pub fn with_caller_ids<T>(&self, work: impl FnOnce() -> T) -> Result<T, ErrorBody> {
        let Self::Other {
            uid, gid, groups, ..
        } = self
        else {
            return Ok(work());
        };
        let failed = |error: rustix::io::Errno| {
            let message = format!("the process cannot switch to or from uid {uid}: {error}");
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
        // Root is restored first: only root may change the groups back.
        rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(failed)?;
        become_effective(Uid::ROOT, Gid::ROOT, &[]).map_err(failed)?;
        Ok(done)
    }

    /// Returns the user and group ids that guests may get. For a trusted caller this is the range
    /// in the request, for another user the range that the service configures; without one, a
    /// default range.
    pub fn guest_ids(&self, request: &RunRequest) -> GuestIds {
        let given = match self {
            Self::Trusted => request.paths.guest_ids,
            Self::Other { ids, .. } => *ids,
        };
        given.unwrap_or_default()
    }

    /// Returns true if the caller is trusted, or is the user `ids.uid` and a member of the group
    /// `ids.gid`. Only then a guest may see files with these ids as its own, and the run may use
    /// these ids. The uid alone does not suffice: below a set-gid directory, a directory can have a
    /// group that its owner is not a member of.
    pub fn has_rights_of(&self, ids: KernelIds) -> bool {
        match self {
            Self::Trusted => true,
            Self::Other {
                uid, gid, groups, ..
            } => *uid == ids.uid && (*gid == ids.gid || groups.contains(&ids.gid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};
    use wp_codebox_contracts::LimitsRequest;

    #[test]
    fn caller_of_the_same_user_may_connect_and_a_listening_socket_is_rejected() {
        let (a, _b) = UnixStream::pair().unwrap();
        let config = ServiceConfig {
            guest_ids: None,
            host: &|| unreachable!("the caller is trusted"),
        };
        assert_eq!(check(&a, &config).unwrap(), Caller::Trusted);
        let temp = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(temp.path().join("s")).unwrap();
        let error = check(&listener, &config).unwrap_err();
        assert!(error.message.contains("Accept=yes"), "{error}");
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(
            check(&file, &config).unwrap_err().code,
            ErrorCode::Forbidden
        );
        assert!(may_connect(0) && !may_connect(65_534));
    }

    #[test]
    fn untrusted_caller_has_rights_only_of_its_own_uid_and_groups() {
        let caller = Caller::Other {
            uid: 33,
            gid: 33,
            groups: vec![44],
            ids: None,
            host: Box::new(HostConfig {
                programs: HostPrograms::default(),
                shares: HostShares {
                    max_runs: 1,
                    user_max_runs: 1,
                    max_limits: LimitsRequest::default(),
                },
            }),
        };
        let has = |uid, gid| caller.has_rights_of(KernelIds { uid, gid });
        assert!(has(33, 33) && has(33, 44));
        assert!(!has(33, 4) && !has(0, 33) && !has(0, 0));
        assert!(Caller::Trusted.has_rights_of(KernelIds { uid: 0, gid: 0 }));
    }
}
