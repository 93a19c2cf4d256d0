//! Copies of host files for guests whose kernel uid is mapped by `newuidmap` (supervisor without root).
//!
//! The store is a tmpfs that the spawner mounts. This process reaches it through an idmapped mount
//! in which the guest's files appear to belong to this process. So the copies, which this process
//! creates, belong to the guest. Read-only directories that every user may read are not copied.

use crate::reduced::open_source;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, openat};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use wp_codebox_artifacts::{CaptureLimits, ExcludeRules, Links, copy_tree, snapshot_layer};
use wp_codebox_contracts::{HostSource, STORE};

/// Tmpfs with copies of host files for the guests of a spawner without root.
#[derive(Debug)]
pub struct GuestStore {
    mount: OwnedFd,
    /// Path in the spawner's mount namespace below which launchers find their mounts.
    place: String,
    made: Mutex<FinishedCopies>,
}

/// Paths of the copies and mounts made so far, by their source, so that none is made twice.
#[derive(Debug, Default)]
struct FinishedCopies {
    count: usize,
    sources: BTreeMap<Version, String>,
}

/// Identity of a source directory. A directory created anew under the same name gets a different
/// value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    path: String,
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

/// Which entries of a source are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copying {
    /// All files of the directory tree.
    Tree,
    /// All files of an overlay layer, including whiteouts (markers of deleted files).
    Layer,
}

impl GuestStore {
    pub(crate) fn new(mount: OwnedFd, place: &str) -> Self {
        Self {
            mount,
            place: place.to_owned(),
            made: Mutex::default(),
        }
    }

    /// Creates a directory that belongs to the guest's user. Returns its descriptor and the path
    /// under which launchers find it.
    pub fn directory(&self, name: &str) -> io::Result<(OwnedFd, String)> {
        mkdirat(&self.mount, name, Mode::from_raw_mode(0o755))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(&self.mount, name, flags, Mode::empty())?;
        Ok((directory, self.path(name)))
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{STORE}/{name}", self.place)
    }

    /// Replaces the lower directories of a writable overlay with copies; `lowers` begins with the
    /// topmost. The copies are needed because through an overlay a guest cannot change a file whose
    /// owner has no id in its user namespace.
    pub(crate) fn lowers(&self, lowers: &mut [HostSource]) -> io::Result<()> {
        let bottom = lowers.len().saturating_sub(1);
        for (position, lower) in lowers.iter_mut().enumerate() {
            let copying = match position == bottom {
                true => Copying::Tree,
                false => Copying::Layer,
            };
            *lower = self.copied(lower, copying)?;
        }
        Ok(())
    }

    /// Makes the lower directories of a read-only overlay readable for the guest; `lowers` begins
    /// with the topmost. The lowest is replaced by the result of [`Self::readable`], all others by
    /// copies.
    pub(crate) fn merged(
        &self,
        lowers: &mut [HostSource],
        show: &mut dyn FnMut(&str, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some((bottom, layers)) = lowers.split_last_mut() else {
            return Ok(());
        };
        for layer in layers {
            *layer = self.copied(layer, Copying::Layer)?;
        }
        *bottom = self.readable(bottom, show)?;
        Ok(())
    }

    /// Makes a read-only source usable for launchers and returns its new location. The source is
    /// left unchanged if every user may read it and enter all its parent directories. If only
    /// parent directories are closed to other users, it is mounted under a new name, otherwise
    /// copied.
    pub(crate) fn readable(
        &self,
        source: &HostSource,
        show: &mut dyn FnMut(&str, &str) -> io::Result<()>,
    ) -> io::Result<HostSource> {
        let path = Path::new(&source.path);
        // Over this directory the spawner mounts its views (mounts of host directories), so
        // launchers cannot open a host file below it.
        if path.starts_with(&self.place) {
            return self.copied(source, Copying::Tree);
        }
        if path.ancestors().all(is_world_readable) {
            return Ok(source.clone());
        }
        if !path.is_dir() || !tree_is_world_readable(path)? {
            return self.copied(source, Copying::Tree);
        }
        let path = self.copy_once(source, |_, name| {
            show(name, &source.path)?;
            Ok(format!("{}/{name}", self.place))
        })?;
        let inode = source.inode;
        Ok(HostSource { path, inode })
    }

    fn holds(&self, source: &HostSource) -> bool {
        Path::new(&source.path).starts_with(self.path(""))
    }

    fn copied(&self, source: &HostSource, copying: Copying) -> io::Result<HostSource> {
        if self.holds(source) {
            return Ok(source.clone());
        }
        self.copy_once(source, |from, name| self.copy(from, name, copying))
            .map(HostSource::of)
    }

    /// Calls `make`, which copies or mounts the source, unless an earlier call has done so for this
    /// source. Returns the path under which launchers find the result.
    fn copy_once(
        &self,
        source: &HostSource,
        make: impl FnOnce(&OwnedFd, &str) -> io::Result<String>,
    ) -> io::Result<String> {
        let from = open_source(source)?;
        let stat = fstat(&from)?;
        let version = Version {
            path: source.path.clone(),
            device: stat.st_dev,
            inode: stat.st_ino,
            changed: (
                stat.st_ctime,
                i64::try_from(stat.st_ctime_nsec).unwrap_or(0),
            ),
        };
        // The lock is held during the copy, so a second guest that starts meanwhile waits and uses
        // the same copy.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = made.sources.get(&version) {
            return Ok(path.clone());
        }
        made.count += 1;
        let path = make(&from, &format!("source-{}", made.count))?;
        made.sources.insert(version, path.clone());
        Ok(path)
    }

    fn copy(&self, from: &OwnedFd, name: &str, copying: Copying) -> io::Result<String> {
        if FileType::from_raw_mode(fstat(from)?.st_mode) != FileType::Directory {
            return self.copy_file(from, name);
        }
        let (to, path) = self.directory(name)?;
        let limits = &CaptureLimits::TREE;
        match copying {
            Copying::Tree => {
                let all = ExcludeRules::default();
                copy_tree(from.as_fd(), to.as_fd(), &all, Links::AsTheyAre, limits)
                    .map_err(io::Error::other)?;
            }
            Copying::Layer => {
                snapshot_layer(from.as_fd(), None, to.as_fd(), limits).map_err(io::Error::other)?;
            }
        }
        Ok(path)
    }

    fn copy_file(&self, from: &OwnedFd, name: &str) -> io::Result<String> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let to = openat(&self.mount, name, flags, Mode::from_raw_mode(0o444))?;
        let mut from = std::fs::File::from(from.try_clone()?);
        io::copy(&mut from, &mut std::fs::File::from(to))?;
        Ok(self.path(name))
    }
}

/// Returns whether every user may read a file, or list and enter a directory.
fn is_world_readable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| mode_is_world_readable(&found))
}

fn mode_is_world_readable(found: &std::fs::Metadata) -> bool {
    let wanted = if found.is_dir() { 0o5 } else { 0o4 };
    found.permissions().mode() & wanted == wanted
}

/// Returns whether every user may read everything below a directory and all of it lies on one file
/// system. Ignores symbolic links, which have no modes.
fn tree_is_world_readable(directory: &Path) -> io::Result<bool> {
    if !is_world_readable(directory) {
        return Ok(false);
    }
    let device = directory.metadata()?.dev();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next)? {
            let entry = entry?;
            let found = entry.metadata()?;
            if !found.is_symlink() && (!mode_is_world_readable(&found) || found.dev() != device) {
                return Ok(false);
            }
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(true)
}
