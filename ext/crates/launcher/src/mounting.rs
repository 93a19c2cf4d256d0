//! The mount system calls, by descriptor.
//!
//! Sources are opened before anything is mounted over them; targets are reached by
//! walking from the new root without following links. No path is ever resolved through
//! a tree that somebody else could have arranged.

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

/// The attributes of a mount that the guest may only read and execute from.
pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | QUIET;
/// The attributes of a mount that it may write.
pub(crate) const QUIET: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
/// The attributes of a bound device node.
pub(crate) const DEVICE: u64 =
    libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;

/// Sets attributes on a mount, or on it and all below it.
pub(crate) fn set_attributes(
    mount: BorrowedFd<'_>,
    attributes: u64,
    recursive: bool,
) -> Result<(), Errno> {
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    mount_setattr(mount, attributes, 0, flags)
}

/// Sets attributes on a detached mount and all below it, and maps the owners of their files as
/// `mapping`, a user namespace, says. EINVAL: a file system has no idmapped mounts.
pub(crate) fn set_idmap(
    mount: BorrowedFd<'_>,
    attributes: u64,
    mapping: BorrowedFd<'_>,
) -> Result<(), Errno> {
    let mapping = u64::try_from(mapping.as_raw_fd()).map_err(|_| Errno::BADF)?;
    let attributes = attributes | libc::MOUNT_ATTR_IDMAP;
    mount_setattr(mount, attributes, mapping, libc::AT_RECURSIVE)
}

fn mount_setattr(
    mount: BorrowedFd<'_>,
    attributes: u64,
    userns_fd: u64,
    flags: libc::c_int,
) -> Result<(), Errno> {
    let attributes = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd,
    };
    let flags = flags | libc::AT_EMPTY_PATH;
    // SAFETY: the path is an empty NUL-terminated string, the structure is valid for reading
    // and its size is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 {
        return Err(last_errno());
    }
    Ok(())
}

/// The last system call's error.
pub(crate) fn last_errno() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    Errno::from_raw_os_error(code.unwrap_or(libc::EINVAL))
}

/// A new mount of a file system, not attached anywhere yet.
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

/// A detached copy of what a descriptor shows, with everything mounted below it.
pub(crate) fn clone_tree(source: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    open_tree(source, c"", CLONE | OpenTreeFlags::AT_RECURSIVE)
}

/// A detached copy of what a descriptor shows, without what is mounted below it.
pub(crate) fn clone_of(source: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    open_tree(source, c"", CLONE)
}

/// Attaches a detached mount.
pub(crate) fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, c"", target, c"", flags)
}

/// Opens a host path without rights on it, before the guest's root hides anything.
///
/// Where the runner saw an inode, that one or nothing: whoever may write a directory on
/// the way could have put another one, or a link, in its place since.
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

/// A descriptor as a path of `/proc`: no host path, however odd, has to be quoted for an
/// option's syntax, and none is shown in the guest's `mountinfo`.
pub(crate) fn link(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Whether a descriptor shows a directory.
pub(crate) fn is_directory(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let stat = rustix::fs::fstat(fd)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// The guest's tree, while it is being built.
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

    /// A directory of the tree; made, with its parents, where it is missing.
    pub(crate) fn directory(&self, path: &GuestPath) -> Result<OwnedFd, Failure> {
        let mut here = self.reopen().at(Step::Target, path.as_str())?;
        for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
            here = enter(here.as_fd(), name, true).at(Step::Target, path.as_str())?;
        }
        Ok(here)
    }

    /// The directory that holds `path`; made where it is missing.
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

    /// A file of the tree; made empty where it is missing.
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

    /// Something that must be in the tree already.
    pub(crate) fn existing(&self, path: &GuestPath) -> Result<OwnedFd, Errno> {
        let mut here = self.reopen()?;
        for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
            here = openat(&here, name, PATH | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(here)
    }

    /// Attaches a mount at a path whose mount point is made to fit.
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

/// Permission bits of what a descriptor shows.
pub(crate) fn mode_of(fd: BorrowedFd<'_>) -> Result<u32, Errno> {
    Ok(rustix::fs::statat(fd, c"", AtFlags::EMPTY_PATH)?.st_mode & 0o7777)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::{Path, PathBuf};
    use wp_codebox_contracts::InodeId;

    /// A directory of this test's own, removed at its end.
    struct Place(PathBuf);

    impl Place {
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

    impl Drop for Place {
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
    fn another_directory_at_a_pinned_path_is_stale() {
        let place = Place::new("stale");
        let host = pinned(&place.0.join("parent/plugin"));
        let wanted = host.inode.unwrap().inode;
        assert_eq!(inode(&source(&host).unwrap()), wanted, "control");
        let (parent, other) = (place.0.join("parent"), place.0.join("other"));
        std::fs::rename(&parent, place.0.join("away")).unwrap();
        std::fs::rename(&other, &parent).unwrap();
        assert_eq!(source(&host).unwrap_err(), Errno::STALE);
        let unpinned = HostSource::of(host.path.clone());
        assert_ne!(inode(&source(&unpinned).unwrap()), wanted, "control");
        // Another device with the same inode number is another file, too.
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
    fn a_link_on_a_pinned_path_is_refused_wherever_it_leads() {
        let place = Place::new("link");
        let host = pinned(&place.0.join("parent/plugin"));
        let parent = place.0.join("parent");
        std::fs::rename(&parent, place.0.join("away")).unwrap();
        for to in ["other", "away"] {
            // Even a link to the very directory that was checked.
            symlink(place.0.join(to), &parent).unwrap();
            assert_eq!(source(&host).unwrap_err(), Errno::LOOP, "{to}");
            let unpinned = HostSource::of(host.path.clone());
            source(&unpinned).unwrap();
            std::fs::remove_file(&parent).unwrap();
        }
        assert_eq!(source(&host).unwrap_err(), Errno::NOENT);
    }
}
