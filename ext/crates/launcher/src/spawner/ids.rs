//! A kernel id that no other guest and no process of the host has.
//!
//! Each id is one byte of a lock file, root's or the user's own; the lock belongs to the spawner's open file
//! description, so the kernel frees it with the process, however that ends. A killed spawner may
//! leave processes of its id for a moment: an id whose byte is free is taken only when the kernel
//! knows no process with that uid.

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

/// Time for killed processes to be gone; the kernel's own work may hold one longer.
const TEARDOWN: Duration = Duration::from_secs(5);

/// A locked id.
pub(super) struct Lease {
    id: u32,
    _lock: OwnedFd,
}

impl Lease {
    /// The same number for user and group.
    pub(super) fn ids(&self) -> KernelIds {
        KernelIds {
            uid: self.id,
            gid: self.id,
        }
    }
}

/// Locks the first free id. Where the search begins differs by process: two starts at once
/// seldom meet, and a freed id is not used again at once.
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
            Err(errno) => return Err(errno).at(Step::GuestIds, "lock"),
        }
        if !in_use(id) {
            return Ok(Lease { id, _lock: lock });
        }
        set_lock(&lock, id, libc::F_UNLCK).at(Step::GuestIds, "unlock")?;
    }
    Err(Errno::AGAIN).at(Step::GuestIds, "every id is in use")
}

/// Root's file below directories of root's, made where it is missing. A directory that others may
/// write is refused: they could put another file in its place.
fn roots_file(path: &str) -> Result<OwnedFd, Failure> {
    let refused = || Failure::rule(Step::GuestIds, "others than root may change the lock file");
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
            Err(errno) => return Err(errno).at(Step::GuestIds, "directory"),
        }
        here = openat(&here, part, flags, Mode::empty()).at(Step::GuestIds, "directory")?;
        let stat = fstat(&here).at(Step::GuestIds, "directory")?;
        if stat.st_uid != 0 || stat.st_mode & 0o022 != 0 {
            return Err(refused());
        }
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = openat(&here, name, flags, Mode::RUSR | Mode::WUSR).at(Step::GuestIds, "file")?;
    let stat = fstat(&lock).at(Step::GuestIds, "file")?;
    if stat.st_uid != 0 {
        return Err(refused());
    }
    Ok(lock)
}

/// The file of a user, whose other processes are trusted: the ids are this user's to give away.
fn users_file(path: &str) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = open(path, flags, Mode::RUSR | Mode::WUSR).at(Step::GuestIds, "file")?;
    let stat = fstat(&lock).at(Step::GuestIds, "file")?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Failure::rule(
            Step::GuestIds,
            "the lock file belongs to another user",
        ));
    }
    Ok(lock)
}

/// Locks or unlocks the byte of an id for this open file description.
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

/// Whether any process of this pid namespace or one below has this uid, as this user namespace
/// writes it: there is no priority to tell of processes that do not exist.
fn in_use(id: u32) -> bool {
    // SAFETY: takes two numbers. The answer may be -1, so errno alone tells a failure.
    unsafe {
        *libc::__errno_location() = 0;
        libc::getpriority(libc::PRIO_USER, id);
        *libc::__errno_location() != libc::ESRCH
    }
}

/// Kills every process of the guest's id and waits until there is none.
pub(super) fn end_all_of_guest() {
    let until = Instant::now() + TEARDOWN;
    while in_use(GUEST) && Instant::now() < until {
        kill_as_guest();
        // Orphans are this process's children, and count until they are waited for.
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// `kill(-1)` by a process that has the guest's id only: the kernel lets it signal processes of
/// that id and no other.
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

/// Becomes a user without any other group, for good. Capabilities go with the last uid 0.
pub(super) fn become_user(id: u32) -> Result<(), Errno> {
    use rustix::process::{Gid, Uid};
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)
}
