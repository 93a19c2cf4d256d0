//! The runner's side of a spawner: guests with a kernel uid of their own.
//!
//! The launcher's module `spawner` describes the process. A runner started as root starts the
//! spawner before it drops root; later requests need no right that the guest's uid lacks. A runner
//! that is not root starts a spawner with subordinate ids of its user; directories that need other
//! owners are copied, see [`GuestStore`].

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
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    BindSource, HostSource, LaunchMount, LaunchPlan, PLAN_VERSION, PlanIdentity, SPAWNER_ROLE,
    SandboxAudit, SpawnerPlan, SpawnerReply, SpawnerRequest, SpawnerView,
};

/// Lock file of ids in use by spawners that root started, for all state directories of the host.
const ROOT_LOCK_FILE: &str = "/run/wp-codebox/ids";
/// Lock file of ids in use by a user's spawners, in the user's runtime directory (XDG_RUNTIME_DIR).
const USER_LOCK_FILE: &str = "wp-codebox-ids";
/// The same lock file for a user without a runtime directory, in the state directory.
const STATE_LOCK_FILE: &str = "guest-ids";
/// Directory over which the spawner mounts the views, in its own mount namespace only.
const VIEW_DIRECTORY: &str = "/run/wp-codebox/views";
/// Candidates for the view directory of a spawner without root, which cannot create one. The first
/// candidate that hides no path of a guest is used.
const USER_VIEW_DIRECTORIES: [&str; 4] = ["/media", "/mnt", "/srv", "/run"];
/// Deadline for the spawner to end its guests and itself.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Kernel uid and gid of a run's guests.
#[derive(Debug, Clone)]
pub enum GuestIdentity {
    /// Ids that no other guest and no host process has.
    Own(Arc<Spawner>),
    /// The runner's ids.
    Shared {
        /// Why the guests share the runner's ids, as one clause.
        reason: String,
    },
}

impl GuestIdentity {
    /// Returns [`GuestIdentity::Shared`] with this reason.
    #[must_use]
    pub fn shared(reason: impl Into<String>) -> Self {
        Self::Shared {
            reason: reason.into(),
        }
    }

    /// Returns the store for copies of guests' files; only a spawner without root has one.
    #[must_use]
    pub fn store(&self) -> Option<&GuestStore> {
        self.spawner()?.store.as_ref()
    }

    /// Returns the spawner of the launchers; `None` when the runner starts them itself.
    #[must_use]
    pub fn spawner(&self) -> Option<&Arc<Spawner>> {
        match self {
            Self::Own(spawner) => Some(spawner),
            Self::Shared { .. } => None,
        }
    }
}

/// A running spawner. Dropping it ends the spawner and its guests.
#[derive(Debug)]
pub struct Spawner {
    channel: Mutex<SpawnerChannel>,
    process: Mutex<ChildProcess>,
    lifetime: Mutex<Option<OwnedFd>>,
    id: u32,
    /// Host path and the path under which launchers find it.
    places: Vec<(String, String)>,
    store: Option<GuestStore>,
}

impl Spawner {
    /// Starts a spawner. Must be called in a single-threaded process, either as root or as the
    /// state's owner with subordinate ids.
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
        };
        let bytes = serde_json::to_vec(&plan).map_err(|e| host("its plan")(e.into()))?;
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| host("a pipe")(e.into()));
        let (plan_read, plan_write) = pipe()?;
        let (lifetime_read, lifetime) = pipe()?;
        let (channel, theirs) = Channel::pair().map_err(|e| host("a socket")(e.into()))?;
        let program = spec.launcher.to_string_lossy().into_owned();
        let command = WrappedCommand {
            program,
            args: vec![SPAWNER_ROLE.to_owned()],
            audit: SandboxAudit::default(),
        };
        let process = spawn::spawn(
            &command,
            plan_read.as_fd(),
            theirs.as_fd(),
            lifetime_read.as_fd(),
        )
        .map_err(host("its start"))?;
        drop((plan_read, theirs, lifetime_read));
        let until = Instant::now() + REPLY_TIMEOUT;
        spawn::send_plan(plan_write, &bytes, until).map_err(host("its plan"))?;
        for (index, view) in spec.views.iter().enumerate() {
            channel
                .send(&SpawnerRequest::Source { index }, &[view.directory])
                .map_err(|_| host("a source")(broken()))?;
        }
        let mut channel = SpawnerChannel::new(channel);
        let (id, states, store) = channel.ready(&spec, until)?;
        let places = spec
            .views
            .iter()
            .zip(&states)
            .filter(|(_, state)| !matches!(state, ViewState::Refused(_)))
            .map(|(view, _)| (view.path.clone(), format!("{VIEW_DIRECTORY}/{}", view.name)))
            .collect();
        let spawner = Self {
            channel: Mutex::new(channel),
            process: Mutex::new(process),
            lifetime: Mutex::new(Some(lifetime)),
            id,
            places,
            store: store.map(|mount| GuestStore::new(mount, place)),
        };
        Ok((spawner, states))
    }

    /// Returns the kernel uid and gid of this spawner's guests.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    fn channel(&self) -> MutexGuard<'_, SpawnerChannel> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the plan with the paths under which its launcher finds the host's directories. A
    /// spawner without root copies or mounts them first.
    pub(crate) fn translate(&self, plan: &LaunchPlan) -> io::Result<LaunchPlan> {
        let mut plan = plan.clone();
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
        Ok(plan)
    }

    /// Mounts a host directory without an id mapping.
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

    /// Replaces a path by its path in the innermost view that contains it.
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
    /// without root joins the cgroups with the launcher; root's launcher is moved afterwards
    /// through member files that root opened.
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

    /// Makes a guest's scratch readable for the state's owner.
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

    /// Waits for the exit of a launcher and returns it.
    pub(crate) fn ended(&self, pid: i32) -> io::Result<ProcessEnd> {
        self.channel().ended(pid)
    }

    /// Returns how the spawner itself ended; `None` if the spawner is still alive at `until`.
    pub(crate) fn own_end(&self, until: Instant) -> Option<ProcessEnd> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let ended = poll_in(process.pidfd(), left);
        ended.then(|| process.wait().ok()).flatten()
    }

    /// Returns a pidfd, readable once the spawner has ended.
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
        // The spawner has another uid, so this process cannot kill it if it does not end by itself.
        if poll_in(process.pidfd(), EXIT_TIMEOUT) {
            let _ = process.wait();
        }
    }
}

/// Uses the user's runtime directory where it exists, so that two state directories of the user
/// cannot allocate the same id.
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
