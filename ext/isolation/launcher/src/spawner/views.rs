//! Views: mounts of host directories for launchers that run under a uid of their own.
//!
//! An idmapped mount shows files of one owner as files of another user without changing the disk.
//! Only root may create one for a disk file system, and only before the mount is attached. The
//! spawner's plan names the owner on disk. Ids without a mapping appear as the overflow id (65534),
//! for which only the permission bits of others apply.

use super::user_namespace;
use crate::channel::Channel;
use crate::error::{At, Failure, Step};
use crate::mounting::{QUIET, READ_ONLY, attach, clone_of, clone_tree, link, new_mount, set_idmap};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags, fstat, fstatfs, fstatvfs, mkdirat, openat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};
use rustix::thread::UnshareFlags;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use wp_codebox_contracts::{KernelIds, SCRATCH, SpawnerPlan, SpawnerReply, ViewAccess};

/// Function that clones a mount without attaching the clone, with or without the mounts below it.
type Clone = fn(BorrowedFd<'_>) -> Result<OwnedFd, Errno>;

/// User namespaces for idmapped mounts. One is kept for each pair of owners and used again, because
/// many directories have the same owner.
#[derive(Default)]
struct Mappings {
    made: BTreeMap<[u32; 4], OwnedFd>,
}

impl Mappings {
    fn get(&mut self, disk: KernelIds, shown: KernelIds) -> Result<&OwnedFd, Failure> {
        let key = [disk.uid, disk.gid, shown.uid, shown.gid];
        Ok(match self.made.entry(key) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(place) => place.insert(user_namespace::from_disk(disk, shown)?),
        })
    }
}

/// Creates two mounts of each host directory, while the directory is still reachable in this mount
/// namespace: one for launchers, and one for the owner of the state directory, which is sent to the
/// supervisor. The second is not created if the host directory belongs to that owner.
pub(super) fn prepare(
    plan: &SpawnerPlan,
    sources: &[OwnedFd],
    guest: KernelIds,
    channel: &Channel,
) -> Result<Vec<Option<OwnedFd>>, Failure> {
    let mut mappings = Mappings::default();
    let mut mounts = Vec::new();
    for (index, (view, source)) in plan.views.iter().zip(sources).enumerate() {
        let mut uncovered = Vec::new();
        for name in &view.covered {
            if remove_leaked_covers(source, name).at(Step::View, name)? {
                uncovered.push(name.clone());
            }
        }
        // Only the state directory is writable. Its subdirectories may be separate file systems, so
        // the copy includes the mounts below it. Of any other directory only its own mount is
        // copied: guests see it through an overlay, which does not show the mounts below it either.
        let (attributes, clone) = match view.access {
            ViewAccess::Read => (READ_ONLY, clone_of as Clone),
            ViewAccess::Write => (QUIET, clone_tree as Clone),
        };
        let mut shown = |as_whom: KernelIds| -> Result<Result<OwnedFd, Errno>, Failure> {
            let mapping = mappings.get(view.owner, as_whom)?;
            Ok(clone(source.as_fd()).and_then(|mount| {
                set_idmap(mount.as_fd(), attributes, mapping.as_fd())?;
                Ok(mount)
            }))
        };
        let both = match shown(guest)? {
            Err(errno) => Err(errno),
            Ok(mount) if view.owner == plan.owner => Ok((mount, None)),
            Ok(mount) => shown(plan.owner)?.map(|theirs| (mount, Some(theirs))),
        };
        let (mount, theirs, errno) = match both {
            Ok((mount, theirs)) => (Some(mount), theirs, 0),
            Err(errno) => (None, None, errno.raw_os_error()),
        };
        let reply = SpawnerReply::View {
            index,
            errno,
            uncovered,
        };
        let fds: Vec<_> = theirs.iter().map(AsFd::as_fd).collect();
        channel.send_with(&reply, &fds)?;
        mounts.push(mount);
    }
    Ok(mounts)
}

/// Attaches the mounts for launchers, and the file system for the guests' files if there is one, in
/// a private mount namespace.
pub(super) fn attach_all(
    plan: &SpawnerPlan,
    mounts: &[Option<OwnedFd>],
    scratch: Option<&OwnedFd>,
) -> Result<(), Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    crate::namespaces::unshare_mounts(UnshareFlags::empty(), "mount namespace")?;
    make_place(&plan.place)?;
    let place = cover_place(&plan.place)?;
    if let Some(scratch) = scratch {
        let point = directory(&place, SCRATCH)?;
        attach(scratch.as_fd(), point.as_fd()).at(Step::Scratch, SCRATCH)?;
    }
    for (view, mount) in plan.views.iter().zip(mounts) {
        let Some(mount) = mount else { continue };
        let point = directory(&place, &view.name)?;
        attach(mount.as_fd(), point.as_fd()).at(Step::View, &view.name)?;
        for covered in &view.covered {
            match openat(
                mount,
                covered.as_str(),
                flags | OFlags::NOFOLLOW,
                Mode::empty(),
            ) {
                Ok(point) => cover(&point)?,
                // The path does not exist, so nothing is hidden. If it is created later, no guest
                // sees it, because no launch plan contains a path below it.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno).at(Step::View, covered),
            }
        }
    }
    Ok(())
}

/// Mounts an empty tmpfs over a directory. This mount namespace is one of
/// [`crate::namespaces::unshare_mounts`], so no other one shows the tmpfs.
pub(super) fn cover_place(path: &str) -> Result<OwnedFd, Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let base = rustix::fs::open(path, flags, Mode::empty()).at(Step::View, "view directory")?;
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let options = [("size", "1m"), ("mode", "0755")];
    let place = new_mount("tmpfs", &options, &[], quiet).at(Step::View, "tmpfs")?;
    attach(place.as_fd(), base.as_fd()).at(Step::View, "attach")?;
    Ok(place)
}

fn make_place(path: &str) -> Result<(), Failure> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno).at(Step::View, "view directory"),
    }
}

/// Creates a new directory below `place` and opens it.
pub(super) fn directory(place: &OwnedFd, name: &str) -> Result<OwnedFd, Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    mkdirat(place, name, Mode::from_raw_mode(0o755))
        .and_then(|()| openat(place, name, flags, Mode::empty()))
        .at(Step::View, name)
}

/// Size in bytes and mode of the empty tmpfs that covers a directory.
const COVER: (u64, u32) = (4096, 0o555);

fn cover(point: &OwnedFd) -> Result<(), Failure> {
    let (size, mode) = (COVER.0.to_string(), format!("{:04o}", COVER.1));
    let empty = new_mount(
        "tmpfs",
        &[("size", &size), ("mode", &mode)],
        &[],
        MountAttrFlags::MOUNT_ATTR_RDONLY,
    )
    .at(Step::View, "empty mount")?;
    attach(empty.as_fd(), point.as_fd()).at(Step::View, "empty mount")
}

/// Unmounts covers that an earlier version left on the host's directory `name`, and returns whether
/// there was one. Where `/` is shared, each of its runs left one: its clones were in the host's peer
/// group. Any other mount stays.
fn remove_leaked_covers(parent: &OwnedFd, name: &str) -> Result<bool, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut found = false;
    loop {
        let point = match openat(parent, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(found),
            opened => opened?,
        };
        if !is_cover(parent, &point)? {
            return Ok(found);
        }
        // The path leads to the root of the topmost mount there, which `point` keeps busy.
        unmount(link(&point), UnmountFlags::DETACH)?;
        found = true;
    }
}

/// Returns whether a directory is the root of an empty read-only tmpfs of root with the size and
/// mode of a cover, mounted over an entry of `parent`.
fn is_cover(parent: &OwnedFd, point: &OwnedFd) -> Result<bool, Errno> {
    let (stat, above) = (fstat(point)?, fstat(parent)?);
    let system = fstatfs(point)?;
    let read_only = fstatvfs(point)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    let size = u64::try_from(system.f_bsize).unwrap_or(0) * system.f_blocks;
    Ok(stat.st_dev != above.st_dev
        && system.f_type == libc::TMPFS_MAGIC
        && read_only
        && system.f_bfree == system.f_blocks
        && (size, stat.st_mode & 0o7777, stat.st_uid) == (COVER.0, COVER.1, 0))
}

/// Checks that this kernel supports idmapped mounts of a tmpfs (Linux 6.3), which the scratch file
/// systems of guests are.
pub(super) fn check_scratch(mapping: &OwnedFd) -> Result<(), Failure> {
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let scratch = new_mount("tmpfs", &[("size", "4k")], &[], quiet).at(Step::View, "tmpfs")?;
    set_idmap(scratch.as_fd(), QUIET, mapping.as_fd()).at(Step::View, "idmapped tmpfs")
}

/// Returns true if a name of a view or of a covered entry consists of ASCII letters, digits and `-`
/// only.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}
