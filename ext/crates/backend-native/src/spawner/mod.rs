//! The runner's side of a spawner: guests with a kernel uid of their own.
//!
//! See the launcher's module of that name for what the process does. It is started while the
//! runner is root and outlives that; whatever the runner asks of it later needs no right that
//! the guest's uid lacks. A runner that is not root starts one with subordinate ids of its user;
//! what that shows is copied, see [`GuestStore`].

mod error;
mod line;
mod request;
mod store;

pub use error::SpawnerError;
pub use request::{SpawnerRequestSpec, ViewSource, ViewState};
pub use store::GuestStore;

use crate::cgroup::Cgroup;
use crate::channel::{Channel, poll_in};
use crate::process_sandbox::WrappedCommand;
use crate::spawn::{self, ChildProcess, ProcessEnd};
use error::{broken, host};
use line::{Line, PATIENCE};
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

/// Root's file in which ids in use are locked, for all state directories of the host.
const LOCKS: &str = "/run/wp-codebox/ids";
/// A user's, in the directory that the system gives each user who is logged in.
const USERS_LOCKS: &str = "wp-codebox-ids";
/// A user's without such a directory, in the state directory.
const STATES_LOCKS: &str = "guest-ids";
/// Directory that the views cover, in the spawner's mount namespace only.
const PLACE: &str = "/run/wp-codebox/views";
/// The same for a user, who cannot make one: the first that hides nothing a guest sees.
const USERS_PLACES: [&str; 4] = ["/media", "/mnt", "/srv", "/run"];
/// Time for it to end its guests and itself.
const ENDING: Duration = Duration::from_secs(10);

/// Whose kernel uid the guests of a run have.
#[derive(Debug, Clone)]
pub enum GuestIdentity {
    /// One that nothing else on the host has.
    Own(Arc<Spawner>),
    /// The runner's.
    Shared {
        /// Why, one clause.
        reason: String,
    },
}

impl GuestIdentity {
    /// The runner's, for this reason.
    #[must_use]
    pub fn shared(reason: impl Into<String>) -> Self {
        Self::Shared {
            reason: reason.into(),
        }
    }

    /// Where guests' files are copied to, when root did not make views of them.
    #[must_use]
    pub fn store(&self) -> Option<&GuestStore> {
        self.spawner()?.store.as_ref()
    }

    /// What starts its launchers, when that is not the runner itself.
    #[must_use]
    pub fn spawner(&self) -> Option<&Arc<Spawner>> {
        match self {
            Self::Own(spawner) => Some(spawner),
            Self::Shared { .. } => None,
        }
    }
}

/// A running spawner. Ends with its guests when dropped.
#[derive(Debug)]
pub struct Spawner {
    line: Mutex<Line>,
    process: Mutex<ChildProcess>,
    lifetime: Mutex<Option<OwnedFd>>,
    id: u32,
    /// Host path, and where launchers find it.
    places: Vec<(String, String)>,
    store: Option<GuestStore>,
}

impl Spawner {
    /// Starts one. Must be called in a process with a single thread; as root, or as the state's
    /// owner with subordinate ids.
    pub fn start(spec: SpawnerRequestSpec<'_>) -> Result<(Self, Vec<ViewState>), SpawnerError> {
        let (locks, place) = if rustix::process::geteuid().is_root() {
            (LOCKS.into(), PLACE)
        } else {
            (users_locks(&spec), users_place(&spec))
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
        let until = Instant::now() + PATIENCE;
        spawn::send_plan(plan_write, &bytes, until).map_err(host("its plan"))?;
        for (index, view) in spec.views.iter().enumerate() {
            channel
                .send(&SpawnerRequest::Source { index }, &[view.directory])
                .map_err(|_| host("a source")(broken()))?;
        }
        let mut line = Line::new(channel);
        let (id, states, store) = line.ready(&spec, until)?;
        let places = spec
            .views
            .iter()
            .zip(&states)
            .filter(|(_, state)| !matches!(state, ViewState::Refused(_)))
            .map(|(view, _)| (view.path.clone(), format!("{PLACE}/{}", view.name)))
            .collect();
        let spawner = Self {
            line: Mutex::new(line),
            process: Mutex::new(process),
            lifetime: Mutex::new(Some(lifetime)),
            id,
            places,
            store: store.map(|mount| GuestStore::new(mount, place)),
        };
        Ok((spawner, states))
    }

    /// Kernel uid and gid of its guests.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan with the paths under which its launcher finds the host's directories. A user's
    /// spawner gets them first.
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

    /// Shows a host directory as it is.
    fn show(&self, name: &str, path: &str) -> io::Result<()> {
        let request = SpawnerRequest::Show {
            name: name.to_owned(),
            path: path.to_owned(),
        };
        match self.line().ask(&request, &[])? {
            (SpawnerReply::Shown { errno: 0 }, _) => Ok(()),
            (SpawnerReply::Shown { errno }, _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// The innermost view that a path lies in.
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

    /// Starts a launcher with its three descriptors and answers its pid and pidfd. A user's spawner enters the groups with it;
    /// root's is put there afterwards, by the right with which root opened them.
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
            .line()
            .ask(&SpawnerRequest::Launch { wrapper }, &descriptors)?;
        match (reply, fds.pop()) {
            (SpawnerReply::Launched { pid: pid @ 1.. }, Some(pidfd)) => Ok((pid, pidfd)),
            (SpawnerReply::NotLaunched { errno }, _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Makes a guest's scratch readable for the state's owner.
    pub(crate) fn expose(&self, mount: BorrowedFd<'_>) -> io::Result<()> {
        match self.line().ask(&SpawnerRequest::Expose, &[mount])? {
            (SpawnerReply::Exposed { errno: 0 }, _) => Ok(()),
            (SpawnerReply::Exposed { errno }, _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Kills a launcher; its guest follows.
    pub(crate) fn kill(&self, pid: i32) {
        // Of a spawner that is gone, every launcher is dead.
        self.line().tell(&SpawnerRequest::Kill { pid });
    }

    /// The end of a launcher; waits for it.
    pub(crate) fn ended(&self, pid: i32) -> io::Result<ProcessEnd> {
        self.line().ended(pid)
    }

    /// How this process itself ended, when it does before `until`.
    pub(crate) fn own_end(&self, until: Instant) -> Option<ProcessEnd> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let ended = poll_in(process.pidfd(), left);
        ended.then(|| process.wait().ok()).flatten()
    }

    /// Readable once the process is gone.
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
        // It is not this process's user: what does not end by itself cannot be ended from here.
        if poll_in(process.pidfd(), ENDING) {
            let _ = process.wait();
        }
    }
}

/// In the user's own runtime directory, where there is one: then no two of its state directories
/// give the same id away.
fn users_locks(spec: &SpawnerRequestSpec<'_>) -> PathBuf {
    let runtime = PathBuf::from(format!("/run/user/{}", spec.owner.uid));
    let own = std::fs::metadata(&runtime)
        .is_ok_and(|found| found.is_dir() && found.uid() == spec.owner.uid);
    if own {
        runtime.join(USERS_LOCKS)
    } else {
        spec.state_dir.join(STATES_LOCKS)
    }
}

fn users_place(spec: &SpawnerRequestSpec<'_>) -> &'static str {
    let needed = [spec.state_dir, spec.share_dir, spec.launcher];
    let hides_nothing = |place: &&str| {
        Path::new(place).is_dir() && !needed.iter().any(|path| path.starts_with(place))
    };
    let found = USERS_PLACES.into_iter().find(hides_nothing);
    found.unwrap_or(PLACE)
}

fn planned(view: &ViewSource<'_>) -> SpawnerView {
    SpawnerView {
        name: view.name.clone(),
        owner: view.owner,
        access: view.access,
        covered: view.covered.clone(),
    }
}
