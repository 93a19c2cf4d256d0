//! Mount system calls on file descriptors.
//!
//! Sources are opened before any mount can cover them. Targets are reached from the new root, one
//! directory at a time and without following symbolic links. No path is resolved through a tree
//! that another process could have changed.

use crate::error::{At, Failure, Step};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use wp_codebox_contracts::{GuestPath, HostSource};

const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const CLONE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_EMPTY_PATH);

/// Attributes of a read-only mount; executing programs from it is allowed.
pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | QUIET;
/// Attributes of a writable mount: no set-uid programs, no device nodes.
pub(crate) const QUIET: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
/// Argument of `mount_setattr` that changes nothing.
const NO_CHANGE: libc::mount_attr = libc::mount_attr {
    attr_set: 0,
    attr_clr: 0,
    propagation: 0,
    userns_fd: 0,
};
/// Attributes of a bind-mounted device node.
pub(crate) const DEVICE: u64 =
    libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;

/// Sets attributes on a mount, optionally on all mounts below it as well.
pub(crate) fn set_attributes(
    mount: BorrowedFd<'_>,
    attributes: u64,
    recursive: bool,
) -> Result<(), Errno> {
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    let attributes = libc::mount_attr {
        attr_set: attributes,
        ..NO_CHANGE
    };
    mount_setattr(mount, &attributes, flags)
}

/// Sets attributes on a mount that is not attached yet and on all mounts below it, and maps file
/// owners through the user namespace `mapping`. Fails with EINVAL when the file system does not
/// support idmapped mounts.
pub(crate) fn set_idmap(
    mount: BorrowedFd<'_>,
    attributes: u64,
    mapping: BorrowedFd<'_>,
) -> Result<(), Errno> {
    let mapping = u64::try_from(mapping.as_raw_fd()).map_err(|_| Errno::BADF)?;
    let attributes = libc::mount_attr {
        attr_set: attributes | libc::MOUNT_ATTR_IDMAP,
        userns_fd: mapping,
        ..NO_CHANGE
    };
    mount_setattr(mount, &attributes, libc::AT_RECURSIVE)
}

fn mount_setattr(
    mount: BorrowedFd<'_>,
    attributes: &libc::mount_attr,
    flags: libc::c_int,
) -> Result<(), Errno> {
    let flags = flags | libc::AT_EMPTY_PATH;
    // SAFETY: the path is an empty NUL-terminated string, the structure is valid for reading
    // and its size is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const *attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 {
        return Err(last_errno());
    }
    Ok(())
}

/// Returns the errno of the last system call.
pub(crate) fn last_errno() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    Errno::from_raw_os_error(code.unwrap_or(libc::EINVAL))
}

/// Creates a new mount of a file system of the type `kind`, not attached yet.
pub(crate) fn new_mount(
    kind: &str,
    options: &[(&str, &str)],
    flags: &[&str],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), *key, *value)?;
    }
    for key in flags {
        fsconfig_set_flag(context.as_fd(), *key)?;
    }
    fsconfig_create(context.as_fd())?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Returns a copy of the mount at a descriptor and of all mounts below it, private and not attached
/// yet.
pub(crate) fn clone_tree(source: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    private_clone(source, OpenTreeFlags::AT_RECURSIVE, libc::AT_RECURSIVE)
}

/// Returns a copy of the mount at a descriptor, without the mounts below it, private and not
/// attached yet.
pub(crate) fn clone_of(source: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    private_clone(source, OpenTreeFlags::empty(), 0)
}

/// Clones a mount and takes the clone out of the source's peer group. The clone of a shared mount
/// is in that group, also when it is attached in a mount namespace whose other mounts are private:
/// a mount on the clone would then appear on the host.
fn private_clone(
    source: BorrowedFd<'_>,
    depth: OpenTreeFlags,
    flags: libc::c_int,
) -> Result<OwnedFd, Errno> {
    let clone = open_tree(source, c"", CLONE | depth)?;
    let private = libc::mount_attr {
        propagation: libc::MS_PRIVATE,
        ..NO_CHANGE
    };
    mount_setattr(clone.as_fd(), &private, flags)?;
    Ok(clone)
}

/// Attaches a mount at the directory or file to which the descriptor `target` refers.
pub(crate) fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, c"", target, c"", flags)
}

/// Opens a host path with O_PATH, before the new root covers it.
///
/// If the supervisor recorded an inode for the path, any other inode is refused: a process that may
/// write a parent directory could have replaced the path or made it a symbolic link.
pub(crate) fn source(host: &HostSource) -> Result<OwnedFd, Errno> {
    let Some(wanted) = host.inode else {
        return rustix::fs::open(&host.path, PATH, Mode::empty());
    };
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let fd = openat2(rustix::fs::CWD, &host.path, PATH, Mode::empty(), resolve)?;
    let stat = rustix::fs::fstat(&fd)?;
    if (stat.st_dev, stat.st_ino) == (wanted.device, wanted.inode) {
        Ok(fd)
    } else {
        Err(Errno::STALE)
    }
}

/// Returns the `/proc/self/fd` path of a descriptor. As a mount option it needs no escaping of `:`
/// and `,` in host paths, and it keeps host paths out of the guest's `mountinfo`.
pub(crate) fn link(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Returns whether a descriptor refers to a directory.
pub(crate) fn is_directory(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let stat = rustix::fs::fstat(fd)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// The guest's root directory while it is being built.
pub(crate) struct Tree {
    root: OwnedFd,
}

impl Tree {
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens a directory of the tree; creates it and its parents when missing.
    pub(crate) fn directory(&self, path: &GuestPath) -> Result<OwnedFd, Failure> {
        let mut here = self.reopen().at(Step::Target, path.as_str())?;
        for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
            here = enter(here.as_fd(), name, true).at(Step::Target, path.as_str())?;
        }
        Ok(here)
    }

    /// Opens the parent directory of `path` in the guest's tree; creates it when missing.
    pub(crate) fn parent(&self, path: &GuestPath) -> Result<OwnedFd, Failure> {
        let parent = path
            .as_str()
            .rsplit_once('/')
            .map_or("", |(parent, _)| parent);
        let parent = if parent.is_empty() { "/" } else { parent };
        let parent =
            GuestPath::new(parent).map_err(|_| Failure::rule(Step::Target, path.as_str()))?;
        self.directory(&parent)
    }

    /// Opens a file of the tree; creates it empty when missing.
    pub(crate) fn file(&self, path: &GuestPath) -> Result<OwnedFd, Failure> {
        let parent = self.parent(path)?;
        let name = path.name();
        match openat(&parent, name, PATH | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(fd) => Ok(fd),
            Err(Errno::NOENT) => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                openat(&parent, name, flags, Mode::from_raw_mode(0o444))
                    .and_then(|_| openat(&parent, name, PATH | OFlags::NOFOLLOW, Mode::empty()))
                    .at(Step::Target, path.as_str())
            }
            Err(errno) => Err(errno).at(Step::Target, path.as_str()),
        }
    }

    /// Opens a path of the guest's tree that must exist.
    pub(crate) fn existing(&self, path: &GuestPath) -> Result<OwnedFd, Errno> {
        let mut here = self.reopen()?;
        for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
            here = openat(&here, name, PATH | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(here)
    }

    /// Attaches a mount at a path of the guest's tree; creates the mount point there: a directory
    /// if the mount's root is a directory, otherwise a file.
    pub(crate) fn mount(
        &self,
        mount: BorrowedFd<'_>,
        target: &GuestPath,
        step: Step,
    ) -> Result<(), Failure> {
        let point = if is_directory(mount).at(step, target.as_str())? {
            self.directory(target)?
        } else {
            self.file(target)?
        };
        attach(mount, point.as_fd()).at(step, target.as_str())
    }

    fn reopen(&self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.root, 3)
    }
}

fn enter(parent: BorrowedFd<'_>, name: &str, make: bool) -> Result<OwnedFd, Errno> {
    let flags = PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::NOENT) if make => {
            mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
            openat(parent, name, flags, Mode::empty())
        }
        other => other,
    }
}

/// Returns the permission bits of the inode behind a descriptor.
pub(crate) fn mode_of(fd: BorrowedFd<'_>) -> Result<u32, Errno> {
    Ok(rustix::fs::statat(fd, c"", AtFlags::EMPTY_PATH)?.st_mode & 0o7777)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::{Path, PathBuf};
    use wp_codebox_contracts::InodeId;

    /// A temporary directory, removed on drop.
    struct TestDirectory(PathBuf);

    impl TestDirectory {
        fn new(name: &str) -> Self {
            let name = format!("wp-codebox-source-{name}-{}", std::process::id());
            let path = std::fs::canonicalize(std::env::temp_dir())
                .unwrap()
                .join(name);
            std::fs::create_dir_all(path.join("parent/plugin")).unwrap();
            std::fs::create_dir_all(path.join("other/plugin")).unwrap();
            Self(path)
        }
    }

    impl Drop for TestDirectory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn pinned(path: &Path) -> HostSource {
        let meta = std::fs::metadata(path).unwrap();
        HostSource {
            path: path.to_str().unwrap().to_owned(),
            inode: Some(InodeId {
                device: meta.dev(),
                inode: meta.ino(),
            }),
        }
    }

    fn inode(fd: &OwnedFd) -> u64 {
        rustix::fs::fstat(fd).unwrap().st_ino
    }

    #[test]
    fn source_with_a_recorded_inode_is_refused_if_its_path_leads_to_another_inode() {
        let place = TestDirectory::new("stale");
        let host = pinned(&place.0.join("parent/plugin"));
        let wanted = host.inode.unwrap().inode;
        assert_eq!(inode(&source(&host).unwrap()), wanted, "control");
        let (parent, other) = (place.0.join("parent"), place.0.join("other"));
        std::fs::rename(&parent, place.0.join("away")).unwrap();
        std::fs::rename(&other, &parent).unwrap();
        assert_eq!(source(&host).unwrap_err(), Errno::STALE);
        let unpinned = HostSource::of(host.path.clone());
        assert_ne!(inode(&source(&unpinned).unwrap()), wanted, "control");
        // A file on another device is a different file even with an equal inode number.
        std::fs::remove_dir_all(&parent).unwrap();
        std::fs::rename(place.0.join("away"), &parent).unwrap();
        let mut elsewhere = host.clone();
        elsewhere.inode = elsewhere.inode.map(|id| InodeId {
            device: id.device + 1,
            ..id
        });
        assert_eq!(source(&elsewhere).unwrap_err(), Errno::STALE);
        assert_eq!(inode(&source(&host).unwrap()), wanted, "control");
    }

    #[test]
    fn source_with_a_recorded_inode_is_refused_if_its_path_has_a_symlink_even_to_that_inode() {
        let place = TestDirectory::new("link");
        let host = pinned(&place.0.join("parent/plugin"));
        let parent = place.0.join("parent");
        std::fs::rename(&parent, place.0.join("away")).unwrap();
        for to in ["other", "away"] {
            // A link is refused even when it leads to the recorded directory.
            symlink(place.0.join(to), &parent).unwrap();
            assert_eq!(source(&host).unwrap_err(), Errno::LOOP, "{to}");
            let unpinned = HostSource::of(host.path.clone());
            source(&unpinned).unwrap();
            std::fs::remove_file(&parent).unwrap();
        }
        assert_eq!(source(&host).unwrap_err(), Errno::NOENT);
    }
}
