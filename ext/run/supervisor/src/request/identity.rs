//! Kernel user and group ids of a run's guests, set up while the supervisor is still root.
//!
//! As root, the supervisor creates id-mapped views of the state directory, the share directory and
//! the mount sources, in which their owner appears as the guest's user. A mount source on a file
//! system without id-mapped mounts is copied into the state directory. If the file system of the
//! state directory has no id-mapped mounts, the guests get no ids of their own. If an unprivileged
//! user with subordinate ids started the supervisor, it creates no views: it copies the sources
//! into a tmpfs that belongs to the guests' user.

use super::sources::{OpenMount, Shown};
use super::subordinate_ids;
use crate::host::peer::Caller;
use rustix::fs::{Mode, OFlags, fstat, openat};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use wp_codebox_artifacts::{CaptureLimits, ExcludeRules, TreeError, scan_tree};
use wp_codebox_backend_native::{
    GUEST_ID, GuestIdentity, HostFacts, Spawner, SpawnerError, SpawnerRequestSpec, ViewSource,
    ViewState,
};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, GuestIds, IdentityChoice, KernelIds, Limits, RunRequest,
    TMPFS_USER_XATTRS, ViewAccess,
};
use wp_codebox_runtime::{Owner, StateDir};

/// Subdirectories of the state directory that are hidden from all launchers (programs that start
/// guests).
const COVERED: [&str; 1] = ["keys"];

/// What user and group ids the guests of a run should get.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Whether guests must, may or must not get ids of their own.
    pub choice: IdentityChoice,
    /// Range from which guests get their ids.
    pub ids: GuestIds,
    /// Path of `wp-codebox-launch`, which runs as the spawner and, started by it, as the launcher
    /// of each guest.
    pub launcher: &'a Path,
    /// Directory of programs and files that guests read.
    pub share_dir: &'a Path,
    /// Disk limit of each guest in bytes.
    pub disk_bytes: u64,
}

impl<'a> Wanted<'a> {
    /// Takes the settings from the caller's run request.
    pub(crate) fn of(request: &'a RunRequest, limits: &Limits, caller: &Caller) -> Self {
        let paths = &request.paths;
        Self {
            choice: paths.identity,
            ids: caller.guest_ids(request),
            launcher: Path::new(&paths.launcher),
            share_dir: Path::new(&paths.share_dir),
            disk_bytes: limits.disk_bytes,
        }
    }
}

/// Gives guests a separate kernel uid, unless the request or the host prevents it. Returns an error
/// if the request demands such a uid and the host prevents it, or if other runs use all ids.
pub fn make(
    state: &StateDir,
    wanted: &Wanted<'_>,
    caller: &Caller,
    mounts: &mut [&mut OpenMount],
) -> Result<GuestIdentity, ErrorBody> {
    let choice = wanted.choice;
    if choice == IdentityChoice::Shared {
        return Ok(GuestIdentity::shared(
            "the request asks for the runner's uid",
        ));
    }
    if !rustix::process::geteuid().is_root() {
        return match of_user(state, wanted, mounts) {
            Ok(identity) => Ok(identity),
            Err(NotOwn::Exhausted(error)) => Err(*error),
            Err(NotOwn::Because(why)) => {
                fallback(choice, &format!("root did not start the runner, and {why}"))
            }
        };
    }
    let share = caller.with_caller_ids(|| open(wanted.share_dir))?;
    match start(state, wanted, caller, mounts, share.as_ref()) {
        Ok(identity) => Ok(identity),
        Err(error @ SpawnerError::Exhausted { .. }) => Err(exhausted(&error, wanted.ids)),
        Err(error) => fallback(choice, &error.to_string()),
    }
}

/// Gives a guest that runs a single program a kernel uid. Without root, works like [`make`]. As
/// root, the guest always gets an id of its own, but no id-mapped views: the files that the guest
/// sees must belong to that id or be readable by every user.
pub fn make_without_views(
    state: &StateDir,
    wanted: &Wanted<'_>,
) -> Result<GuestIdentity, ErrorBody> {
    if !rustix::process::geteuid().is_root() {
        return make(state, wanted, &Caller::Trusted, &mut []);
    }
    let scratch = match file_for_scratch(state, wanted.disk_bytes) {
        Ok(scratch) => scratch,
        Err(error) => return fallback(IdentityChoice::Own, &error.to_string()),
    };
    let spawner = Spawner::start(SpawnerRequestSpec {
        launcher: wanted.launcher,
        owner: ids_of(state),
        guest_id: GUEST_ID,
        ids: wanted.ids,
        state_dir: state.path(),
        share_dir: wanted.share_dir,
        views: Vec::new(),
        scratch,
    });
    match spawner {
        Ok((spawner, _)) => Ok(GuestIdentity::Own(Arc::new(spawner))),
        Err(error @ SpawnerError::Exhausted { .. }) => Err(exhausted(&error, wanted.ids)),
        // Root itself is no alternative: the launcher refuses uid 0.
        Err(error) => fallback(IdentityChoice::Own, &error.to_string()),
    }
}

fn exhausted(error: &SpawnerError, ids: GuestIds) -> ErrorBody {
    ErrorBody::new(ErrorCode::GuestIdsExhausted, error.to_string())
        .hint("wait until a sandbox has ended, or reserve more ids with --guest-ids FIRST:COUNT or the PHP setting wp_codebox.guest_ids; without root they must be ids of this user in /etc/subuid and /etc/subgid")
        .with("first", ids.first)
        .with("count", ids.count)
}

/// Reason why the guests of an unprivileged user get no uid of their own.
enum NotOwn {
    /// Other runs use all of the ids; a later attempt can succeed.
    Exhausted(Box<ErrorBody>),
    /// A permanent reason. The text continues the sentence "root did not start the supervisor, and …".
    Because(String),
}

/// Maximum size of mount sources that are copied if the request leaves the choice to the supervisor
/// (`auto`): copying a larger source takes more time and memory than a caller expects.
const COPIED: CaptureLimits = CaptureLimits {
    entries: 5000,
    total_bytes: 256 * 1024 * 1024,
    ..CaptureLimits::TREE
};

/// Takes one of the user's subordinate ids (see subuid(5)) for the guests. The mount sources are
/// copied later, when the run has a scratch directory.
fn of_user(
    state: &StateDir,
    wanted: &Wanted<'_>,
    mounts: &mut [&mut OpenMount],
) -> Result<GuestIdentity, NotOwn> {
    if !HostFacts::running_kernel_at_least(TMPFS_USER_XATTRS) {
        let (major, minor) = TMPFS_USER_XATTRS;
        let why = format!(
            "before Linux {major}.{minor} the files of a guest lie on disk, where only root can give them another owner"
        );
        return Err(NotOwn::Because(why));
    }
    let owner = ids_of(state);
    let own = KernelIds {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    };
    if owner != own {
        let why = "the state directory belongs to another user or group";
        return Err(NotOwn::Because(why.to_owned()));
    }
    let ids = subordinate_ids::find(own.uid, wanted.ids).map_err(NotOwn::Because)?;
    if wanted.choice == IdentityChoice::Auto {
        small_enough(mounts)?;
    }
    let (spawner, _) = Spawner::start(SpawnerRequestSpec {
        launcher: wanted.launcher,
        owner,
        guest_id: GUEST_ID,
        ids,
        state_dir: state.path(),
        share_dir: wanted.share_dir,
        views: Vec::new(),
        scratch: None,
    })
    .map_err(|error| match error {
        SpawnerError::Exhausted { .. } => NotOwn::Exhausted(Box::new(exhausted(&error, ids))),
        error => NotOwn::Because(error.to_string()),
    })?;
    for mount in mounts.iter_mut() {
        mount.shown = Shown::Stored;
    }
    Ok(GuestIdentity::Own(Arc::new(spawner)))
}

/// Fails if the mount sources are too large to copy. Ignores unreadable files, because the copying
/// reports them.
fn small_enough(mounts: &[&mut OpenMount]) -> Result<(), NotOwn> {
    let mut left = COPIED;
    for mount in mounts.iter().filter(|mount| is_directory(&mount.source)) {
        match scan_tree(mount.source.as_fd(), &ExcludeRules::default(), &left) {
            Ok(scan) => {
                left.entries = left.entries.saturating_sub(scan.entries);
                left.total_bytes = left.total_bytes.saturating_sub(scan.bytes);
            }
            Err(TreeError::Limit { .. }) => {
                return Err(NotOwn::Because(format!(
                    "the mounts have more than {} files or {} MiB; a guest with its own uid needs a copy of them, which only --identity own permits at this size",
                    COPIED.entries,
                    COPIED.total_bytes >> 20
                )));
            }
            Err(_) => {}
        }
    }
    Ok(())
}

fn ids_of(state: &StateDir) -> KernelIds {
    let Owner { uid, gid } = state.owner();
    KernelIds { uid, gid }
}

/// Lets the guests run with the supervisor's own uid, if the request allows that.
fn fallback(choice: IdentityChoice, why: &str) -> Result<GuestIdentity, ErrorBody> {
    match choice {
        IdentityChoice::Auto | IdentityChoice::Shared => Ok(GuestIdentity::shared(why)),
        IdentityChoice::Own => {
            let message = format!("the sandbox cannot have a kernel uid of its own: {why}");
            Err(ErrorBody::new(ErrorCode::IsolationUnavailable, message)
                .hint("start the run as root or through the service's socket (wp_codebox.runner_socket), give this user ids in /etc/subuid and /etc/subgid (usermod --add-subuids FIRST-LAST --add-subgids FIRST-LAST; package uidmap), or ask for --identity auto"))
        }
    }
}

fn start(
    state: &StateDir,
    wanted: &Wanted<'_>,
    caller: &Caller,
    mounts: &mut [&mut OpenMount],
    share: Option<&OwnedFd>,
) -> Result<GuestIdentity, SpawnerError> {
    let owner = ids_of(state);
    let mut views = vec![ViewSource {
        name: "state".to_owned(),
        directory: state.as_fd(),
        owner,
        access: ViewAccess::Write,
        path: state.path().to_string_lossy().into_owned(),
        covered: COVERED.map(str::to_owned).into(),
    }];
    let read = |name: String, directory, owner, path: &str| ViewSource {
        name,
        directory,
        owner,
        access: ViewAccess::Read,
        path: path.to_owned(),
        covered: Vec::new(),
    };
    if let Some((directory, of)) = share.and_then(|share| Some((share, owner_of(share)?)))
        && caller.has_rights_of(of)
    {
        views.push(read(
            "share".to_owned(),
            directory.as_fd(),
            of,
            &wanted.share_dir.to_string_lossy(),
        ));
    }
    // The views of mounts begin at index `first`; `shown` has the positions of the mounts that get
    // a view.
    let first = views.len();
    let mut shown = Vec::new();
    for (position, mount) in mounts.iter().enumerate() {
        let (Some(of), Some(path)) = (owner_of(&mount.source), mount.path.to_str()) else {
            continue;
        };
        if is_directory(&mount.source) && caller.has_rights_of(of) {
            let name = format!("mount-{position}");
            views.push(read(name, mount.source.as_fd(), of, path));
            shown.push(position);
        }
    }
    let (spawner, states) = Spawner::start(SpawnerRequestSpec {
        launcher: wanted.launcher,
        owner,
        guest_id: GUEST_ID,
        ids: wanted.ids,
        state_dir: state.path(),
        share_dir: wanted.share_dir,
        views,
        scratch: file_for_scratch(state, wanted.disk_bytes)?,
    })?;
    let mut states = states.into_iter();
    if let Some(ViewState::Refused(errno)) = states.next() {
        return Err(SpawnerError::Step {
            step: "view".to_owned(),
            subject: "the state directory's file system".to_owned(),
            errno,
        });
    }
    for mount in mounts.iter_mut() {
        mount.shown = Shown::Never;
    }
    for (position, view) in shown.into_iter().zip(states.skip(first - 1)) {
        let Some(mount) = mounts.get_mut(position) else {
            continue;
        };
        match view {
            ViewState::Refused(_) => {}
            ViewState::Shown => mount.shown = Shown::ByView,
            ViewState::ShownWith(own) => {
                // In this view the files appear as owned by the owner of the state directory, so
                // the supervisor can read even files of mode 0600.
                if let Ok(directory) = reopen(&own) {
                    mount.source = directory;
                    mount.shown = Shown::ByView;
                }
            }
        }
    }
    Ok(GuestIdentity::Own(Arc::new(spawner)))
}

/// Creates a file without a name in the state directory, in which the spawner makes the file system
/// for the guests' files; `None` where they lie on a tmpfs. The file ends with its last descriptor.
fn file_for_scratch(
    state: &StateDir,
    disk_bytes: u64,
) -> Result<Option<(OwnedFd, u64)>, SpawnerError> {
    if HostFacts::running_kernel_at_least(TMPFS_USER_XATTRS) {
        return Ok(None);
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let made = openat(state, ".", flags, Mode::RUSR | Mode::WUSR).and_then(|file| {
        rustix::fs::ftruncate(&file, disk_bytes)?;
        Ok(Some((file, disk_bytes)))
    });
    made.map_err(|errno| SpawnerError::Step {
        step: "scratch".to_owned(),
        subject: "a file for the guests' files in the state directory".to_owned(),
        errno: errno.raw_os_error(),
    })
}

fn open(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

fn reopen(mount: &OwnedFd) -> Result<OwnedFd, rustix::io::Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(mount, ".", flags, Mode::empty())
}

fn owner_of(directory: &OwnedFd) -> Option<KernelIds> {
    let stat = fstat(directory).ok()?;
    Some(KernelIds {
        uid: stat.st_uid,
        gid: stat.st_gid,
    })
}

/// Returns whether the source is a directory. An archive that is unpacked for the run is a file.
fn is_directory(source: &OwnedFd) -> bool {
    fstat(source).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory
    })
}
