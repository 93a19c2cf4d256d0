//! Staging directory in which a bundle is written, and its move to the final name.
//!
//! Order: write all files, sync them, sync the directories, rename, sync the parent. A reader
//! therefore sees no bundle or a complete one, even after a power failure.

use super::{BundleError, Durability};
use crate::canonical::CanonicalError;
use crate::dirfd::Dir;
use crate::removal::remove_tree_in;
use rustix::fd::AsFd;
use rustix::fs::{self, Advice, AtFlags, FallocateFlags, Mode, RenameFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use wp_codebox_contracts::RunId;

/// Name prefix of unfinished bundles; no run id starts with it.
pub(crate) const TEMPORARY_PREFIX: &str = ".writing-";

/// Space in bytes that [`check_room`] asks for. Most bundles need less.
const LEAST_ROOM: u64 = 16 << 20;

/// Checks that the bundle `<parent>/<run id>` could be written now if it had [`LEAST_ROOM`] bytes:
/// creates and removes a file of that size, without writing it, in the place of the bundle.
pub fn check_room(parent: &Dir, run: &RunId) -> Result<(), BundleError> {
    match parent.stat(run.as_str().as_bytes()) {
        Ok(None) => {}
        Ok(Some(_)) => return Err(BundleError::Exists),
        Err(error) => return Err(io(".", error)),
    }
    let mut staging = Staging::new(parent, run)?;
    staging.write("room", std::io::empty())?;
    for (name, file) in &staging.files {
        match fs::fallocate(file, FallocateFlags::empty(), 0, LEAST_ROOM) {
            // Some network file systems cannot reserve space.
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(error) => return Err(io(name, error)),
        }
    }
    Ok(())
}

/// Returns the name prefix of the unfinished bundles of a run.
pub(crate) fn staging_prefix(run_id: &RunId) -> String {
    format!("{TEMPORARY_PREFIX}{run_id}-")
}

pub(crate) struct Staging<'p> {
    parent: &'p Dir,
    name: String,
    root: Dir,
    directories: BTreeMap<String, Dir>,
    files: Vec<(String, File)>,
    placed: bool,
}

impl<'p> Staging<'p> {
    pub(crate) fn new(parent: &'p Dir, run_id: &RunId) -> Result<Self, BundleError> {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).map_err(|_| io(".", Errno::AGAIN))?;
        let random = u64::from_le_bytes(random);
        let name = format!("{}{random:016x}", staging_prefix(run_id));
        fs::mkdirat(parent, name.as_str(), Mode::from_raw_mode(0o700)).map_err(|e| io(".", e))?;
        let root = match parent.dir(name.as_bytes()) {
            Ok(root) => root,
            Err(error) => {
                // The directory is still empty.
                let _ = fs::unlinkat(parent, name.as_str(), AtFlags::REMOVEDIR);
                return Err(io(".", error));
            }
        };
        Ok(Self {
            parent,
            name,
            root,
            directories: BTreeMap::new(),
            files: Vec::new(),
            placed: false,
        })
    }

    /// Writes one file of the bundle and creates its directories as needed.
    pub(crate) fn write(&mut self, path: &str, mut content: impl Read) -> Result<(), BundleError> {
        let fail = |error| io(path, error);
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.directory(directory).map_err(fail)?;
        let dir = self.directories.get(directory).unwrap_or(&self.root);
        let mut file = File::from(dir.create(name.as_bytes()).map_err(fail)?);
        std::io::copy(&mut content, &mut file)
            .map_err(|e| fail(Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
        self.files.push((path.to_owned(), file));
        Ok(())
    }

    /// Writes a file again that [`Self::write`] wrote before.
    pub(crate) fn replace(&mut self, path: &str, content: impl Read) -> Result<(), BundleError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dir = self.directories.get(directory).unwrap_or(&self.root);
        fs::unlinkat(dir, name, AtFlags::empty()).map_err(|e| io(path, e))?;
        self.files.retain(|(written, _)| written != path);
        self.write(path, content)
    }

    fn directory(&mut self, path: &str) -> Result<(), Errno> {
        if path.is_empty() || self.directories.contains_key(path) {
            return Ok(());
        }
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.directory(above)?;
        let parent = self.directories.get(above).unwrap_or(&self.root);
        fs::mkdirat(parent, name, Mode::from_raw_mode(0o700))?;
        let made = parent.dir(name.as_bytes())?;
        self.directories.insert(path.to_owned(), made);
        Ok(())
    }

    /// Returns the open directory in which the bundle is written.
    pub(crate) const fn root(&self) -> &Dir {
        &self.root
    }

    /// Renames the bundle to its final name, after a sync of everything if `durability` requires
    /// one.
    pub(crate) fn place(mut self, name: &str, durability: Durability) -> Result<(), BundleError> {
        match durability {
            Durability::Synced => self.sync()?,
            Durability::Unsynced => {}
        }
        self.rename(name, RenameFlags::NOREPLACE)?;
        self.placed = true;
        match durability {
            Durability::Synced => fs::fsync(self.parent).map_err(|e| io(".", e)),
            Durability::Unsynced => Ok(()),
        }
    }

    /// Exchanges the written bundle with the existing bundle `name` (`RENAME_EXCHANGE`), so that
    /// `name` exists at every moment, and removes the old bundle.
    pub(crate) fn exchange(self, name: &str) -> Result<(), BundleError> {
        self.sync()?;
        self.rename(name, RenameFlags::EXCHANGE)?;
        // The staging name now refers to the old bundle, which Drop removes.
        fs::fsync(self.parent).map_err(|e| io(".", e))
    }

    fn rename(&self, name: &str, flags: RenameFlags) -> Result<(), BundleError> {
        match fs::renameat_with(self.parent, self.name.as_str(), self.parent, name, flags) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(BundleError::Exists),
            Err(error) => Err(io(".", error)),
        }
    }

    fn sync(&self) -> Result<(), BundleError> {
        // DONTNEED starts the write-back of all files before the first `fdatasync` waits for one,
        // so that one journal commit of the file system serves all files.
        for (_, file) in &self.files {
            let _ = fs::fadvise(file, 0, None, Advice::DontNeed);
        }
        for (path, file) in &self.files {
            fs::fdatasync(file).map_err(|e| io(path, e))?;
        }
        for (path, dir) in &self.directories {
            fs::fsync(dir).map_err(|e| io(path, e))?;
        }
        fs::fsync(&self.root).map_err(|e| io(".", e))
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if !self.placed {
            // A failure of the removal is ignored, because the earlier error is the one to
            // report.
            let _ = remove_tree_in(self.parent.as_fd(), self.name.as_bytes());
        }
    }
}

pub(super) fn io(member: &str, source: Errno) -> BundleError {
    match source {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => BundleError::NoSpace,
        _ => BundleError::Io {
            member: member.to_owned(),
            source,
        },
    }
}

pub(super) fn canonical(member: &str, source: CanonicalError) -> BundleError {
    BundleError::Canonical {
        member: member.to_owned(),
        source,
    }
}
