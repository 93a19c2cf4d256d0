//! What guests see whose kernel uid was given by `newuidmap`: copies that are theirs.
//!
//! The store is a file system in memory, made by the spawner. Here it is a mount in which the
//! guest's files are this process's own, so whatever is copied into it is the guest's. Directories
//! that every user may read are not copied but shown as they are.

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

/// Where guests of a user's spawner find copies.
#[derive(Debug)]
pub struct GuestStore {
    mount: OwnedFd,
    /// Path of the spawner's views, in its mount namespace.
    place: String,
    made: Mutex<Made>,
}

/// What is there already, by what it was made from.
#[derive(Debug, Default)]
struct Made {
    count: usize,
    sources: BTreeMap<Version, String>,
}

/// A directory as it was found: one that was made anew under the same name is another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    path: String,
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

/// How a directory becomes one that guests can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copying {
    /// Its files.
    Tree,
    /// An overlay's layer, with what it hides.
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

    /// A new directory of the guest's; answers it and the path under which launchers find it.
    pub fn directory(&self, name: &str) -> io::Result<(OwnedFd, String)> {
        mkdirat(&self.mount, name, Mode::from_raw_mode(0o755))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(&self.mount, name, flags, Mode::empty())?;
        Ok((directory, self.path(name)))
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{STORE}/{name}", self.place)
    }

    /// The layers of an overlay that guests write to, topmost first: copied, since a
    /// file whose owner is not mapped cannot be changed through an overlay.
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

    /// The layers of an overlay that guests only read, topmost first: the lowest like any source
    /// that is only read.
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

    /// A read-only source: itself where every user can read it by its path, shown under a name of
    /// its own where every user could but for the directories above, else copied.
    pub(crate) fn readable(
        &self,
        source: &HostSource,
        show: &mut dyn FnMut(&str, &str) -> io::Result<()>,
    ) -> io::Result<HostSource> {
        let path = Path::new(&source.path);
        // What the place covers cannot be opened where launchers are.
        if path.starts_with(&self.place) {
            return self.copied(source, Copying::Tree);
        }
        if path.ancestors().all(for_all) {
            return Ok(source.clone());
        }
        if !path.is_dir() || !tree_for_all(path)? {
            return self.copied(source, Copying::Tree);
        }
        let path = self.once(source, |_, name| {
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
        self.once(source, |from, name| self.copy(from, name, copying))
            .map(HostSource::of)
    }

    /// Makes something of a source unless it is there already.
    fn once(
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
        // Held while it is made: two guests that begin at once share it.
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

/// Whether every user may read a file, or look into a directory and read it.
fn for_all(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| is_for_all(&found))
}

fn is_for_all(found: &std::fs::Metadata) -> bool {
    let wanted = if found.is_dir() { 0o5 } else { 0o4 };
    found.permissions().mode() & wanted == wanted
}

/// The same for everything below a directory. Links have no modes.
fn tree_for_all(directory: &Path) -> io::Result<bool> {
    if !for_all(directory) {
        return Ok(false);
    }
    let device = directory.metadata()?.dev();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next)? {
            let entry = entry?;
            let found = entry.metadata()?;
            if !found.is_symlink() && (!is_for_all(&found) || found.dev() != device) {
                return Ok(false);
            }
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(true)
}
