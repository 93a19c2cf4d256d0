//! Allocation of a guest id: a kernel uid and gid that no other guest and no host process uses.
//!
//! Each id is represented by one byte of a lock file. The file belongs to root, or to the user that
//! started the spawner. The spawner's open file description holds the lock on the byte, so the
//! kernel releases it when the process ends for any reason. Processes of a killed spawner may run
//! under the id for a moment longer. So a spawner takes an unlocked id only when the kernel knows
//! no process with that uid.

use super::user_namespace::GUEST;
use crate::error::{At, Failure, Step};
use crate::mounting::last_errno;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, fstat, mkdirat, open, openat};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, wait, waitpid};
use std::path::Path;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{KernelIds, SpawnerPlan};

/// Maximum wait until killed processes no longer exist. A killed process exists until the kernel
/// has freed its memory, which may take some time.
const TEARDOWN: Duration = Duration::from_secs(5);

/// A guest id whose byte in the lock file is locked; dropping this value releases it.
pub(super) struct Lease {
    id: u32,
    _lock: OwnedFd,
}

impl Lease {
    /// Returns the id as uid and gid, which are the same number.
    pub(super) fn ids(&self) -> KernelIds {
        KernelIds {
            uid: self.id,
            gid: self.id,
        }
    }
}

/// Locks the first free id. The start of the search depends on the pid, so concurrent starts rarely
/// collide and a freed id is not reused at once.
pub(super) fn take(plan: &SpawnerPlan) -> Result<Lease, Failure> {
    let lock = if rustix::process::geteuid().is_root() {
        roots_file(&plan.locks)?
    } else {
        users_file(&plan.locks)?
    };
    let count = plan.ids.count;
    let start = rustix::process::getpid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
        % count;
    for offset in 0..count {
        let id = plan.ids.first + (start + offset) % count;
        match set_lock(&lock, id, libc::F_WRLCK) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::ACCESS) => continue,
            Err(errno) => return Err(errno).at(Step::GuestIds, "locking an id"),
        }
        if !in_use(id) {
            return Ok(Lease { id, _lock: lock });
        }
        set_lock(&lock, id, libc::F_UNLCK).at(Step::GuestIds, "unlocking an id")?;
    }
    Err(Errno::AGAIN).at(Step::GuestIds, "the guest ids, which are all in use")
}

/// Opens the lock file below directories of root; creates them when missing. Refuses a directory
/// that other users may write, because they could replace the file.
fn roots_file(path: &str) -> Result<OwnedFd, Failure> {
    let refused = || {
        Failure::rule(
            Step::GuestIds,
            "the lock file, which users other than root can change",
        )
    };
    let path = Path::new(path);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(refused());
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = open("/", flags, Mode::empty()).at(Step::GuestIds, "/")?;
    for part in parent.components().skip(1) {
        let part = part.as_os_str();
        match mkdirat(&here, part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno).at(Step::GuestIds, "lock directory"),
        }
        here = openat(&here, part, flags, Mode::empty()).at(Step::GuestIds, "lock directory")?;
        let stat = fstat(&here).at(Step::GuestIds, "lock directory")?;
        if stat.st_uid != 0 || stat.st_mode & 0o022 != 0 {
            return Err(refused());
        }
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock =
        openat(&here, name, flags, Mode::RUSR | Mode::WUSR).at(Step::GuestIds, "lock file")?;
    let stat = fstat(&lock).at(Step::GuestIds, "lock file")?;
    if stat.st_uid != 0 {
        return Err(refused());
    }
    Ok(lock)
}

/// Opens the lock file of a user's spawners. Other processes of that user are trusted, since the
/// subordinate ids belong to that user.
fn users_file(path: &str) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = open(path, flags, Mode::RUSR | Mode::WUSR).at(Step::GuestIds, "lock file")?;
    let stat = fstat(&lock).at(Step::GuestIds, "lock file")?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Failure::rule(
            Step::GuestIds,
            "the lock file, which belongs to another user",
        ));
    }
    Ok(lock)
}

/// Locks or unlocks the byte of an id with an open file description lock.
fn set_lock(file: &OwnedFd, id: u32, kind: libc::c_int) -> Result<(), Errno> {
    // SAFETY: an all-zero flock is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(kind).map_err(|_| Errno::INVAL)?;
    lock.l_whence = 0;
    lock.l_start = libc::off_t::from(id);
    lock.l_len = 1;
    // SAFETY: the structure is valid for reading for the length of the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result < 0 {
        Err(last_errno())
    } else {
        Ok(())
    }
}

/// Returns whether a process has the uid `id` of this user namespace. Considers the processes of
/// this pid namespace and of those below it. `getpriority` fails with ESRCH when no such process
/// exists.
fn in_use(id: u32) -> bool {
    // SAFETY: takes two numbers. `getpriority` may return -1 on success too, so only errno shows a
    // failure.
    unsafe {
        *libc::__errno_location() = 0;
        libc::getpriority(libc::PRIO_USER, id);
        *libc::__errno_location() != libc::ESRCH
    }
}

/// Kills every process that runs under the guest id and waits until none is left, at most for
/// [`TEARDOWN`].
pub(super) fn end_all_of_guest() {
    let until = Instant::now() + TEARDOWN;
    while in_use(GUEST) && Instant::now() < until {
        kill_as_guest();
        // Orphaned processes become children of this process, and the kernel counts each of them
        // until this process has reaped it.
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Calls `kill(-1)` in a child that runs under the guest id only, so that the kernel signals
/// processes of that id and no others.
fn kill_as_guest() {
    // SAFETY: this process has a single thread, so the child may run any code; it ends without
    // running anything of the parent's state.
    let child = unsafe {
        match libc::fork() {
            0 => {
                if become_user(GUEST).is_ok() {
                    libc::kill(-1, libc::SIGKILL);
                }
                libc::_exit(0)
            }
            raw => Pid::from_raw(raw).filter(|_| raw > 0),
        }
    };
    if let Some(child) = child {
        let _ = rustix::io::retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
    }
}

/// Switches permanently to the uid and gid `id` without supplementary groups. Leaving uid 0 clears
/// the capabilities.
pub(super) fn become_user(id: u32) -> Result<(), Errno> {
    use rustix::process::{Gid, Uid};
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)
}
