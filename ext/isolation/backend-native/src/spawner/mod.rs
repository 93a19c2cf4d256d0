//! The supervisor's side of a spawner, a process that starts launchers under a kernel uid of their own.
//!
//! The launcher's module `spawner` describes the process. A supervisor started as root starts the
//! spawner before it drops root; neither of them needs root for the requests that follow. A supervisor
//! that is not root starts a spawner with subordinate ids of its user. That spawner cannot make
//! idmapped mounts, so directories whose files must belong to the guest's user are copied, see
//! [`GuestStore`].

mod channel;
mod error;
mod request;
mod store;

pub use error::SpawnerError;
pub use request::{SpawnerRequestSpec, ViewSource, ViewState};
pub use store::GuestStore;

use crate::cgroup::Cgroup;
use crate::channel::{Channel, poll_in};
use crate::process_sandbox::WrappedCommand;
use crate::spawn::{self, ChildProcess, ProcessEnd};
use channel::{REPLY_TIMEOUT, SpawnerChannel};
use error::{broken, host};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    BindSource, HostSource, LaunchMount, LaunchPlan, PLAN_VERSION, PlanIdentity, SCRATCH,
    SPAWNER_ROLE, SandboxAudit, SpawnerPlan, SpawnerReply, SpawnerRequest, SpawnerScratch,
    SpawnerView,
};

/// Lock file of the guest ids that spawners started by root use, for all state directories of the
/// host.
const ROOT_LOCK_FILE: &str = "/run/wp-codebox/ids";
/// Lock file of the guest ids that a user's spawners use, in that user's runtime directory
/// (XDG_RUNTIME_DIR).
const USER_LOCK_FILE: &str = "wp-codebox-ids";
/// Name of the lock file of guest ids in the state directory, used if the user has no runtime
/// directory (XDG_RUNTIME_DIR).
const STATE_LOCK_FILE: &str = "guest-ids";
/// Directory below which the spawner mounts host directories for launchers, visible in its own
/// mount namespace only.
const VIEW_DIRECTORY: &str = "/run/wp-codebox/views";
/// Candidates for the view directory of a spawner without root rights, which cannot create one. The
/// first existing candidate that contains neither state directory, share directory nor launcher is
/// used.
const USER_VIEW_DIRECTORIES: [&str; 4] = ["/media", "/mnt", "/srv", "/run"];
/// Maximum wait for the spawner to kill its guests and exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Kernel uid and gid as which the guests of a run execute.
#[derive(Debug, Clone)]
pub enum GuestIdentity {
    /// Ids that no host process and no guest of another run has; the spawner starts the guests
    /// under them.
    Own(Arc<Spawner>),
    /// The ids of the supervisor itself.
    Shared {
        /// Why the guests do not have ids of their own: one clause for the isolation report.
        reason: String,
    },
}

impl GuestIdentity {
    /// Returns [`GuestIdentity::Shared`] with the given reason.
    #[must_use]
    pub fn shared(reason: impl Into<String>) -> Self {
        Self::Shared {
            reason: reason.into(),
        }
    }

    /// Returns the store that holds copies of host files for guests; only a spawner without root
    /// has one.
    #[must_use]
    pub fn store(&self) -> Option<&GuestStore> {
        self.spawner()?.store.as_ref()
    }

    /// Returns the spawner that starts the launchers; `None` when the supervisor starts them itself.
    #[must_use]
    pub fn spawner(&self) -> Option<&Arc<Spawner>> {
        match self {
            Self::Own(spawner) => Some(spawner),
            Self::Shared { .. } => None,
        }
    }
}

/// A running spawner process. Dropping this value ends the process and its guests.
#[derive(Debug)]
pub struct Spawner {
    channel: Mutex<SpawnerChannel>,
    process: Mutex<ChildProcess>,
    lifetime: Mutex<Option<OwnedFd>>,
    id: u32,
    /// Host paths, each with the path under which launchers find the directory.
    places: Vec<(String, String)>,
    store: Option<GuestStore>,
    scratch: SpawnerStorage,
    removed: Vec<String>,
}

/// Storage for the writable files of a spawner's guests.
#[derive(Debug)]
pub(crate) enum SpawnerStorage {
    /// A tmpfs of each guest.
    Memory,
    /// A file system of this size in bytes that all guests share.
    FileSystem {
        /// Mount of the file system, in which the guests' files belong to this process.
        mount: OwnedFd,
        /// Path under which launchers find it.
        path: String,
        bytes: u64,
    },
    /// No file system could be made for them, for this reason.
    Missing(String),
}

impl Spawner {
    /// Starts a spawner. Must be called in a single-threaded process, either as root or as the
    /// owner of the state directory with subordinate ids.
    pub fn start(spec: SpawnerRequestSpec<'_>) -> Result<(Self, Vec<ViewState>), SpawnerError> {
        let (locks, place) = if rustix::process::geteuid().is_root() {
            (ROOT_LOCK_FILE.into(), VIEW_DIRECTORY)
        } else {
            (user_lock_file(&spec), user_view_directory(&spec))
        };
        let plan = SpawnerPlan {
            version: PLAN_VERSION,
            owner: spec.owner,
            guest_id: spec.guest_id,
            ids: spec.ids,
            locks: locks.to_string_lossy().into_owned(),
            place: place.to_owned(),
            views: spec.views.iter().map(planned).collect(),
            scratch: match spec.scratch {
                Some((_, bytes)) => SpawnerScratch::FileSystem(bytes),
                None => SpawnerScratch::Memory,
            },
        };
        let bytes = serde_json::to_vec(&plan).map_err(|e| host("sending its plan")(e.into()))?;
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| host("creating a pipe")(e.into()));
        let (plan_read, plan_write) = pipe()?;
        let (lifetime_read, lifetime) = pipe()?;
        let (channel, theirs) = Channel::pair().map_err(|e| host("creating a socket")(e.into()))?;
        let program = spec.launcher.to_string_lossy().into_owned();
        let command = WrappedCommand {
            program,
            args: vec![SPAWNER_ROLE.to_owned()],
            env: BTreeMap::new(),
            cwd: None,
            audit: SandboxAudit::default(),
        };
        let process = spawn::spawn(
            &command,
            plan_read.as_fd(),
            theirs.as_fd(),
            lifetime_read.as_fd(),
        )
        .map_err(host("executing the launcher"))?;
        drop((plan_read, theirs, lifetime_read));
        let until = Instant::now() + REPLY_TIMEOUT;
        spawn::send_plan(plan_write, &bytes, until).map_err(host("sending its plan"))?;
        let views = spec.views.iter().map(|view| view.directory);
        let file = spec.scratch.as_ref().map(|(file, _)| file.as_fd());
        for (index, source) in views.chain(file).enumerate() {
            channel
                .send(&SpawnerRequest::Source { index }, &[source])
                .map_err(|_| host("sending a directory")(broken()))?;
        }
        let mut channel = SpawnerChannel::new(channel);
        let ready = channel.ready(&spec, until)?;
        let places = spec
            .views
            .iter()
            .zip(&ready.states)
            .filter(|(_, state)| !matches!(state, ViewState::Refused(_)))
            .map(|(view, _)| (view.path.clone(), format!("{VIEW_DIRECTORY}/{}", view.name)))
            .collect();
        let spawner = Self {
            channel: Mutex::new(channel),
            process: Mutex::new(process),
            lifetime: Mutex::new(Some(lifetime)),
            id: ready.id,
            places,
            store: ready.store.map(|mount| GuestStore::new(mount, place)),
            scratch: match (ready.scratch, &spec.scratch) {
                (Some(Ok(mount)), Some((_, bytes))) => SpawnerStorage::FileSystem {
                    mount,
                    path: format!("{VIEW_DIRECTORY}/{SCRATCH}"),
                    bytes: *bytes,
                },
                (Some(Err(reason)), _) => SpawnerStorage::Missing(reason),
                _ => SpawnerStorage::Memory,
            },
            removed: ready.removed,
        };
        Ok((spawner, ready.states))
    }

    /// Returns the number that is both kernel uid and kernel gid of this spawner's guests.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns where the writable files of this spawner's guests lie.
    pub(crate) fn scratch(&self) -> &SpawnerStorage {
        &self.scratch
    }

    /// Returns the host directories from which the spawner removed a mount that an earlier version
    /// had left there. Such a mount hides the directory from every process of the host.
    #[must_use]
    pub fn removed_mounts(&self) -> &[String] {
        &self.removed
    }

    fn channel(&self) -> MutexGuard<'_, SpawnerChannel> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the host paths of a launch plan by the paths under which the launcher finds
    /// these directories. A spawner without root copies or mounts the directories first.
    pub(crate) fn translate(&self, plan: &mut LaunchPlan) -> io::Result<()> {
        plan.identity = PlanIdentity::Own;
        for mount in &mut plan.mounts {
            match mount {
                LaunchMount::Bind {
                    source: BindSource::Host(source),
                    ..
                } => match &self.store {
                    Some(store) => {
                        *source =
                            store.readable(source, &mut |name, path| self.show(name, path))?;
                    }
                    None => self.place(source),
                },
                LaunchMount::Overlay { lowers, .. } => match &self.store {
                    Some(store) => store.lowers(lowers)?,
                    None => lowers.iter_mut().for_each(|lower| self.place(lower)),
                },
                LaunchMount::Merged { lowers, .. } => match &self.store {
                    Some(store) => {
                        store.merged(lowers, &mut |name, path| self.show(name, path))?;
                    }
                    None => lowers.iter_mut().for_each(|lower| self.place(lower)),
                },
                LaunchMount::Bind { .. }
                | LaunchMount::Directory { .. }
                | LaunchMount::File(_)
                | LaunchMount::Symlink { .. }
                | LaunchMount::Scratch { .. }
                | LaunchMount::Proc
                | LaunchMount::Dev => {}
            }
        }
        if let Some(scratch) = &mut plan.scratch {
            self.place(&mut scratch.directory);
        }
        Ok(())
    }

    /// Makes the spawner mount a host directory for launchers, read-only and without an id mapping.
    fn show(&self, name: &str, path: &str) -> io::Result<()> {
        let request = SpawnerRequest::Show {
            name: name.to_owned(),
            path: path.to_owned(),
        };
        match self.channel().ask(&request, &[])? {
            (SpawnerReply::Shown { errno: 0 }, _) => Ok(()),
            (SpawnerReply::Shown { errno }, _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Replaces a host path by its path in the mount made for launchers. If several mounts contain
    /// the path, the innermost is used.
    fn place(&self, source: &mut HostSource) {
        let below = |host: &str| {
            let rest = source.path.strip_prefix(host)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        };
        let found = self
            .places
            .iter()
            .filter_map(|(host, place)| Some((host.len(), place, below(host)?)))
            .max_by_key(|(length, ..)| *length);
        if let Some((_, place, rest)) = found {
            source.path = format!("{place}{rest}");
        }
    }

    /// Starts a launcher with its three descriptors and returns its pid and pidfd. A spawner
    /// without root moves the launcher into the cgroups through the `cgroup.procs` files sent here.
    /// With a spawner started by root, the supervisor moves the launcher later, through files that root
    /// opened.
    pub(crate) fn launch(
        &self,
        command: &WrappedCommand,
        descriptors: [BorrowedFd<'_>; 3],
        cgroup: &Cgroup,
    ) -> io::Result<(i32, OwnedFd)> {
        let mut descriptors = Vec::from(descriptors);
        if let (Some(_), Cgroup::Group(group)) = (&self.store, cgroup) {
            descriptors.extend(group.members());
        }
        let wrapper = match command.audit.kind.as_str() {
            "none" => Vec::new(),
            _ => std::iter::once(&command.program)
                .chain(&command.args)
                .cloned()
                .collect(),
        };
        let (reply, mut fds) = self
            .channel()
            .ask(&SpawnerRequest::Launch { wrapper }, &descriptors)?;
        match (reply, fds.pop()) {
            (SpawnerReply::Launched { pid: pid @ 1.. }, Some(pidfd)) => Ok((pid, pidfd)),
            (SpawnerReply::NotLaunched { errno }, _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Makes the guest's scratch tmpfs readable for the owner of the state directory.
    pub(crate) fn expose(&self, mount: BorrowedFd<'_>) -> io::Result<()> {
        match self.channel().ask(&SpawnerRequest::Expose, &[mount])? {
            (SpawnerReply::Exposed { errno: 0 }, _) => Ok(()),
            (SpawnerReply::Exposed { errno }, _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Kills a launcher; the parent-death signal then ends its guest.
    pub(crate) fn kill(&self, pid: i32) {
        // If the spawner has ended, all its launchers are dead.
        self.channel().send(&SpawnerRequest::Kill { pid });
    }

    /// Waits until the launcher with this pid has exited and returns how.
    pub(crate) fn ended(&self, pid: i32) -> io::Result<ProcessEnd> {
        self.channel().ended(pid)
    }

    /// Returns how the spawner process ended; `None` if it is still alive at `until`.
    pub(crate) fn own_end(&self, until: Instant) -> Option<ProcessEnd> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let ended = poll_in(process.pidfd(), left);
        ended.then(|| process.wait().ok()).flatten()
    }

    /// Returns a pidfd that becomes readable when the spawner process has ended.
    pub(crate) fn pidfd(&self) -> io::Result<OwnedFd> {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.pidfd().try_clone_to_owned()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        let lifetime = self
            .lifetime
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        *lifetime = None;
        let process = self
            .process
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // A spawner that does not end in time keeps running: it has a different uid, so this
        // process cannot kill it.
        if poll_in(process.pidfd(), EXIT_TIMEOUT) {
            let _ = process.wait();
        }
    }
}

/// Returns the path of the lock file of guest ids. It is in the user's runtime directory, so that
/// spawners for two state directories of the user cannot allocate the same id. If the user has no
/// runtime directory, the file is in the state directory.
fn user_lock_file(spec: &SpawnerRequestSpec<'_>) -> PathBuf {
    let runtime = PathBuf::from(format!("/run/user/{}", spec.owner.uid));
    let own = std::fs::metadata(&runtime)
        .is_ok_and(|found| found.is_dir() && found.uid() == spec.owner.uid);
    if own {
        runtime.join(USER_LOCK_FILE)
    } else {
        spec.state_dir.join(STATE_LOCK_FILE)
    }
}

fn user_view_directory(spec: &SpawnerRequestSpec<'_>) -> &'static str {
    let needed = [spec.state_dir, spec.share_dir, spec.launcher];
    let hides_nothing = |place: &&str| {
        Path::new(place).is_dir() && !needed.iter().any(|path| path.starts_with(place))
    };
    let found = USER_VIEW_DIRECTORIES.into_iter().find(hides_nothing);
    found.unwrap_or(VIEW_DIRECTORY)
}

fn planned(view: &ViewSource<'_>) -> SpawnerView {
    SpawnerView {
        name: view.name.clone(),
        owner: view.owner,
        access: view.access,
        covered: view.covered.clone(),
    }
}
