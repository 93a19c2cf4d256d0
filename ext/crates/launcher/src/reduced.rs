//! Level `reduced`: a guest without namespaces, for hosts that forbid them.
//!
//! Landlock, seccomp, limits and the host's own files at their own paths. The launcher
//! enters a Landlock domain of its own first: from then on `kill(-1)` reaches exactly
//! what it starts, in one step of the kernel and however fast it forks, and nothing of
//! the guest can signal the launcher. The guest's first process is in a domain below, so
//! it can do the same for what it started, should the launcher be killed.
//!
//! Whoever kills both with SIGKILL at the same moment leaves the programs running: no
//! kernel object holds them together here. That is why the axis is best effort.

use crate::channel::Channel;
use crate::error::{At, Failure, NOT_STARTED, Step};
use crate::landlock::{self, Place, PlaceKind};
use crate::mounting::{is_directory, source};
use crate::seccomp::{self, CallList};
use crate::{init, parent, privileges, probe_reduced};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, test_kill_process, wait, waitpid};
use wp_codebox_contracts::{BindSource, GuestReply, LaunchMount, LaunchPlan, LaunchPurpose};

/// Builds the guest, waits for its end and leaves no process of it.
pub(crate) fn launch(
    plan: &LaunchPlan,
    channel: &Channel,
    lifetime: &OwnedFd,
) -> Result<u8, Failure> {
    let places = open_places(plan)?;
    let others = tasks_of_this_user();
    privileges::drop_any_capabilities()?;
    privileges::no_new_privs()?;
    privileges::not_dumpable()?;
    adopt_orphans()?;
    confine_signals()?;
    let own = rustix::process::getpid();
    let own_fd = pidfd_open(own, PidfdFlags::empty()).at(Step::Fork, "pidfd")?;
    // SAFETY: this process has a single thread, so the child may run any code.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()).at(Step::Fork, "first process"),
        0 => {
            let guest = Guest {
                plan,
                places: &places,
                others,
                launcher: own,
            };
            Ok(guest.run(channel, lifetime, &own_fd))
        }
        pid => {
            drop((own_fd, places));
            let answer = parent::attend(pid, channel, lifetime, |guest| {
                channel.send_building(&GuestReply::Spawned { pid }, &[guest], lifetime)
            });
            end_everything();
            answer
        }
    }
}

/// Opens what the plan names. What is not pinned must belong to somebody else: the guest
/// could change mode and times of its own user's files through a descriptor.
fn open_places(plan: &LaunchPlan) -> Result<Vec<Place>, Failure> {
    let mut places = Vec::new();
    for mount in &plan.mounts {
        let LaunchMount::Bind {
            source: BindSource::Host(host),
            target,
            writable,
        } = mount
        else {
            return Err(Failure::rule(Step::Plan, "a step that needs a mount"));
        };
        let about = if host.inode.is_some() {
            "the run's own tree"
        } else {
            target.as_str()
        };
        let fd = source(host).at(Step::Landlock, about)?;
        let stat = rustix::fs::fstat(&fd).at(Step::Landlock, about)?;
        let own = stat.st_uid == rustix::process::geteuid().as_raw();
        if own && host.inode.is_none() {
            return Err(Failure::rule(
                Step::Landlock,
                format!("{about} belongs to the guest's user"),
            ));
        }
        let directory = is_directory(fd.as_fd()).at(Step::Landlock, about)?;
        let kind = match (directory, writable) {
            (true, true) => PlaceKind::Write,
            (true, false) => PlaceKind::Read,
            (false, false) => PlaceKind::File,
            (false, true) => return Err(Failure::rule(Step::Landlock, about)),
        };
        places.push(Place { fd, kind });
    }
    Ok(places)
}

/// Orphans of the guest become this process's children instead of the host's init's.
pub(crate) fn adopt_orphans() -> Result<(), Failure> {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes one number and touches no memory.
    let result = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    if result < 0 {
        return Err(std::io::Error::last_os_error()).at(Step::ParentDeath, "subreaper");
    }
    Ok(())
}

/// Enters the signal domain and proves it on a process that was made before: without the
/// proof `kill(-1)` could reach the runner and everything else of this user.
fn confine_signals() -> Result<(), Failure> {
    let (wait, hold) = pipe_with(PipeFlags::CLOEXEC).at(Step::Fork, "pipe")?;
    // SAFETY: this process has a single thread; the child only reads and exits.
    let raw = unsafe { libc::fork() };
    if raw == 0 {
        drop(hold);
        // Ends with this process's write end, however that goes away.
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(&wait, &mut [0_u8; 1]));
        // SAFETY: ends the child without running anything of the parent's state.
        unsafe { libc::_exit(0) }
    }
    let Some(outsider) = Pid::from_raw(raw).filter(|_| raw > 0) else {
        return Err(std::io::Error::last_os_error()).at(Step::Fork, "outsider");
    };
    let before = test_kill_process(outsider);
    let confined = landlock::confine_signals();
    let after = test_kill_process(outsider);
    drop(hold);
    let _ = rustix::io::retry_on_intr(|| waitpid(Some(outsider), WaitOptions::empty()));
    confined?;
    if before.is_ok() && after == Err(Errno::PERM) {
        Ok(())
    } else {
        Err(Failure::rule(Step::Landlock, "signals are not confined"))
    }
}

/// Kills everything in this process's Landlock domain and below but itself, and waits until it
/// is gone. Call it only after the domain was proved.
fn end_everything() {
    loop {
        // SAFETY: takes two numbers; the domain bounds whom it reaches.
        unsafe { libc::kill(-1, libc::SIGKILL) };
        // Any child: `waitpid` without a number would mean those of this process group.
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            // No child is left, and orphans would be children.
            Err(_) => return,
        }
    }
}

/// The first process of the guest, in the place of pid 1.
struct Guest<'a> {
    plan: &'a LaunchPlan,
    places: &'a [Place],
    others: u64,
    launcher: Pid,
}

impl Guest<'_> {
    /// Serves until the end; returns the exit status.
    fn run(&self, channel: &Channel, lifetime: &OwnedFd, launcher: &OwnedFd) -> u8 {
        let ends = [lifetime.as_fd(), launcher.as_fd()];
        let answer = match self.build(channel) {
            Ok(()) => {
                let served = match self.plan.purpose {
                    LaunchPurpose::Serve => init::serve(channel, ends),
                    LaunchPurpose::Probe => {
                        init::linger(ends);
                        Ok(())
                    }
                };
                end_everything();
                served
            }
            // Not in its domain yet, or not proved to be.
            Err(failure) => Err(failure),
        };
        match answer {
            Ok(()) => 0,
            Err(failure) => {
                let _ = channel.send(&failure.reply());
                NOT_STARTED
            }
        }
    }

    fn build(&self, channel: &Channel) -> Result<(), Failure> {
        rustix::process::setsid().at(Step::ParentDeath, "setsid")?;
        adopt_orphans()?;
        privileges::limit(&self.plan.limits, self.others)?;
        let control = probe_reduced::control(self.launcher)?;
        let landlock_abi = landlock::restrict_to(self.places)?;
        seccomp::install(CallList::Reduced)?;
        let report = probe_reduced::run(self.plan, &control, landlock_abi)?;
        channel.send(&GuestReply::Ready { report })
    }
}

/// Threads of this user that are alive now: RLIMIT_NPROC counts them with the guest's.
fn tasks_of_this_user() -> u64 {
    let own = rustix::process::getuid().as_raw().to_string();
    let mut count = 0_u64;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let numeric = entry
            .file_name()
            .to_string_lossy()
            .bytes()
            .all(|b| b.is_ascii_digit());
        let status = numeric.then(|| std::fs::read_to_string(entry.path().join("status")));
        let Some(Ok(status)) = status else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()
        };
        if field("Uid:") == Some(own.as_str()) {
            let threads = field("Threads:").and_then(|n| n.parse::<u64>().ok());
            count = count.saturating_add(threads.unwrap_or(1));
        }
    }
    count
}
