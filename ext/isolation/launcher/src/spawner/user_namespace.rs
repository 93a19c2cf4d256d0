//! Creates user namespaces. Another process writes their id maps.
//!
//! Mapping ids other than one's own requires CAP_SETUID in the parent namespace, so a forked
//! child that stays in the parent namespace writes the maps. For a user without root, the child
//! runs `newuidmap` and `newgidmap`, which check /etc/subuid and /etc/subgid.

use crate::error::{At, Failure, Step};
use crate::namespaces::{unshare, unshare_mounts};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Gid, Pid, Signal, Uid, WaitOptions, kill_process, waitpid};
use rustix::thread::UnshareFlags;
use std::fs;
use std::process::Command;
use wp_codebox_contracts::{KernelIds, NEWGIDMAP, NEWUIDMAP, SpawnerPlan};

/// Id that the owner of the state directory has in the spawner's user namespace.
pub(super) const OWNER: u32 = 0;
/// Id that the guest has in the spawner's user namespace.
pub(super) const GUEST: u32 = 1;

/// Function that writes the uid map and the gid map of the user namespace of a process, given by
/// pid.
type MapWriter = fn(i32, &str, &str) -> Result<(), Failure>;

/// Returns a user namespace for idmapped mounts: files of the id `inside` appear as files of the
/// owner `outside`, numbered in the caller's namespace.
pub(super) fn of(inside: u32, outside: KernelIds) -> Result<OwnedFd, Failure> {
    mapped(
        &format!("{inside} {} 1", outside.uid),
        &format!("{inside} {} 1", outside.gid),
    )
}

/// Returns a user namespace for idmapped mounts: files that belong to `disk` on disk appear as
/// files of `shown`.
pub(super) fn from_disk(disk: KernelIds, shown: KernelIds) -> Result<OwnedFd, Failure> {
    mapped(
        &format!("{} {} 1", disk.uid, shown.uid),
        &format!("{} {} 1", disk.gid, shown.gid),
    )
}

/// Forks a child that enters a new user namespace, writes the namespace's id maps from this
/// process, and returns the namespace.
fn mapped(uids: &str, gids: &str) -> Result<OwnedFd, Failure> {
    let (entered, enter) = pipe_with(PipeFlags::CLOEXEC).at(Step::View, "pipe")?;
    let (wait, hold) = pipe_with(PipeFlags::CLOEXEC).at(Step::View, "pipe")?;
    // SAFETY: this process has a single thread, so the child may run any code.
    let raw = unsafe { libc::fork() };
    if raw == 0 {
        drop((entered, hold));
        if unshare(UnshareFlags::NEWUSER, "user namespace").is_ok() {
            let _ = rustix::io::write(&enter, b"1");
        }
        drop(enter);
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(&wait, &mut [0_u8; 1]));
        // SAFETY: ends the child without running anything of the parent's state.
        unsafe { libc::_exit(0) }
    }
    let child = Pid::from_raw(raw).filter(|_| raw > 0);
    let Some(child) = child else {
        return Err(std::io::Error::last_os_error()).at(Step::View, "fork");
    };
    drop((enter, wait));
    let ready = rustix::io::retry_on_intr(|| rustix::io::read(&entered, &mut [0_u8; 1]));
    let made = match ready {
        Ok(1) => write_maps(raw, uids, gids).and_then(|()| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            rustix::fs::open(format!("/proc/{raw}/ns/user"), flags, Mode::empty())
                .at(Step::View, "namespace")
        }),
        _ => Err(Failure::rule(Step::Unshare, "user namespace")),
    };
    drop(hold);
    let _ = kill_process(child, Signal::KILL);
    let _ = rustix::io::retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
    made
}

fn write_maps(pid: i32, uids: &str, gids: &str) -> Result<(), Failure> {
    fs::write(format!("/proc/{pid}/uid_map"), uids).at(Step::UidMap, "idmapped mount")?;
    fs::write(format!("/proc/{pid}/gid_map"), gids).at(Step::GidMap, "idmapped mount")
}

/// Writes the id maps of a process with the set-uid programs `newuidmap` and `newgidmap`.
fn have_maps_written(pid: i32, uids: &str, gids: &str) -> Result<(), Failure> {
    let written = |step, program: &'static str, map: &str| {
        let done = Command::new(program)
            .arg(pid.to_string())
            .args(map.split_whitespace())
            .status()
            .at(step, program)?;
        match done.success() {
            true => Ok(()),
            false => Err(Failure::rule(step, program)),
        }
    };
    written(Step::UidMap, NEWUIDMAP, uids)?;
    written(Step::GidMap, NEWGIDMAP, gids)
}

/// Enters the spawner's user and mount namespaces as the owner of the state directory. Keeps only
/// capabilities that are valid inside these namespaces.
pub(super) fn enter(plan: &SpawnerPlan, guest: KernelIds) -> Result<(), Failure> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let line = |owner: u32, guest: u32| format!("{OWNER} {owner} 1\n{GUEST} {guest} 1");
    let (uids, gids) = (
        line(plan.owner.uid, guest.uid),
        line(plan.owner.gid, guest.gid),
    );
    let (entered, enter) = pipe_with(PipeFlags::CLOEXEC).at(Step::Unshare, "pipe")?;
    let (write, refused): (MapWriter, _) = if rustix::process::geteuid().is_root() {
        (write_maps, "the id maps of the spawner")
    } else {
        (
            have_maps_written,
            "newuidmap or newgidmap, which refused to map the ids",
        )
    };
    // SAFETY: this process has a single thread, so the child may run any code.
    let raw = unsafe { libc::fork() };
    if raw == 0 {
        drop(enter);
        let told = rustix::io::retry_on_intr(|| rustix::io::read(&entered, &mut [0_u8; 1]));
        let written = matches!(told, Ok(1)) && write(own, &uids, &gids).is_ok();
        // SAFETY: ends the child without running anything of the parent's state.
        unsafe { libc::_exit(i32::from(!written)) }
    }
    let Some(writer) = Pid::from_raw(raw).filter(|_| raw > 0) else {
        return Err(std::io::Error::last_os_error()).at(Step::Fork, "map writer");
    };
    drop(entered);
    // Create both namespaces in one call: the mount namespace must belong to the new user
    // namespace.
    let inside = unshare_mounts(UnshareFlags::NEWUSER, "spawner");
    if inside.is_ok() {
        let _ = rustix::io::write(&enter, b"1");
    }
    drop(enter);
    let status = rustix::io::retry_on_intr(|| waitpid(Some(writer), WaitOptions::empty()))
        .at(Step::UidMap, "map writer")?;
    inside?;
    if status.and_then(|(_, status)| status.exit_status()) != Some(0) {
        return Err(Failure::rule(Step::UidMap, refused));
    }
    let (uid, gid) = (Uid::from_raw(OWNER), Gid::from_raw(OWNER));
    rustix::thread::set_thread_groups(&[gid]).at(Step::GiveUpRoot, "groups")?;
    rustix::thread::set_thread_res_gid(gid, gid, gid).at(Step::GiveUpRoot, "gid")?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).at(Step::GiveUpRoot, "uid")?;
    // Changing ids cleared the dumpable flag. Without this flag, the `/proc` files of future
    // children would belong to host root. Other processes of the owner still cannot trace this
    // process, because they have no capability in this namespace.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
        .at(Step::GiveUpRoot, "dumpable")
}
