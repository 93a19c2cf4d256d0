//! Unpacked layers on a node: `<root>/<submitter>/<digest>/`.
//!
//! Each submitter has its own layers. A submitter that only knows a digest therefore never gets
//! another submitter's files: its task names a layer that the node fetches from that submitter's
//! own objects. The price is that two submitters with equal files have two copies.
//!
//! Invariants: a directory `<digest>` is complete from the moment it exists, also after a power
//! failure: it is unpacked under another name, synced, then renamed. No process writes into it
//! afterwards. A process that uses a layer holds a shared `flock` on `<digest>.lock`; unpacking and
//! removal hold an exclusive one, so the kernel releases the lock of a process that dies. The lock
//! file is removed only under its exclusive lock, and every process that locked it checks that it
//! is still the file of that name.
//!
//! Mount rules refuse sources in a state directory. The root must therefore lie outside of the state
//! directory of the node's runs.

use super::error::LayerError;
use super::unpack::unpack;
use crate::bus::ObjectName;
use crate::capped::Capped;
use crate::names::SubmitterName;
use crate::objects::Objects;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    self, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{CaptureLimits, Dir, remove_tree, remove_tree_in};
use wp_codebox_contracts::Sha256Hex;

const LOCK: &str = ".lock";
const UNPACKING: &str = ".unpacking-";
const REMOVING: &str = ".removing-";
/// Largest compressed layer that is fetched: the limit of mounts, plus what gzip adds to bytes that
/// it cannot compress.
const MAX_COMPRESSED: u64 = CaptureLimits::TREE.total_bytes + 256 * 1024 * 1024;
/// How often a layer is looked up again after another process removed it in between.
const ROUNDS: u32 = 32;

/// The unpacked layers of a node.
#[derive(Debug, Clone)]
pub struct LayerCache {
    root: PathBuf,
}

/// A layer that this process uses. The layer is not removed before this value is dropped and every
/// process that inherited [`LayerInUse::as_fd`] has ended.
#[derive(Debug)]
pub struct LayerInUse {
    path: PathBuf,
    lock: OwnedFd,
}

impl LayerInUse {
    /// Returns the directory with the layer's files. Nothing may be written into it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for LayerInUse {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }
}

/// What a collection removed and what remains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// Number of removed layers.
    pub removed: u64,
    /// Size of the files in removed layers, in bytes.
    pub removed_bytes: u64,
    /// Size of the files in remaining layers, in bytes.
    pub bytes: u64,
    /// Number of layers that would have been removed, but are in use.
    pub in_use: u64,
}

/// File names of one layer in the directory of its submitter.
struct Names {
    layer: String,
    lock: String,
    unpacking: String,
    removing: String,
}

impl Names {
    fn of(digest: &Sha256Hex) -> Self {
        Self {
            layer: digest.to_string(),
            lock: format!("{digest}{LOCK}"),
            unpacking: format!("{UNPACKING}{digest}"),
            removing: format!("{REMOVING}{digest}"),
        }
    }
}

impl LayerCache {
    /// Opens the directory of layers, and creates it with mode 0700 if it is missing.
    ///
    /// # Errors
    /// [`LayerError::Cache`].
    pub fn open(root: &Path) -> Result<Self, LayerError> {
        match fs::mkdir(root, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(source) => return Err(cache("created", source)),
        }
        // Mount rules compare the path of a source, with links resolved, with the roots that a
        // request allows.
        let root = std::fs::canonicalize(root)
            .map_err(|e| cache("opened", Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
        Dir::open(&root).map_err(|e| cache("opened", e))?;
        Ok(Self { root })
    }

    /// Returns a layer of this submitter, and fetches and unpacks it first if it is missing. When
    /// several processes ask for one layer at once, one of them fetches it and the others wait.
    ///
    /// # Errors
    /// [`LayerError::Bus`] if the object is missing or the server fails, and the errors of
    /// [`unpack`]. Nothing is left behind then.
    pub fn get(
        &self,
        objects: &dyn Objects,
        submitter: &SubmitterName,
        digest: &Sha256Hex,
    ) -> Result<LayerInUse, LayerError> {
        let names = Names::of(digest);
        let dir = Dir::open(&self.root)
            .and_then(|root| root.private_dir(submitter.as_str()))
            .map_err(|e| cache("opened", e))?;
        let path = self.root.join(submitter.as_str());
        for _ in 0..ROUNDS {
            let Some(lock) = locked(&dir, &names.lock, FlockOperation::LockShared)? else {
                continue;
            };
            if is_there(&dir, &names.layer)? {
                touch(&lock)?;
                return Ok(LayerInUse {
                    path: path.join(&names.layer),
                    lock,
                });
            }
            drop(lock);
            let exclusive = FlockOperation::LockExclusive;
            if let Some(lock) = locked(&dir, &names.lock, exclusive)?
                && !is_there(&dir, &names.layer)?
            {
                fetch(objects, digest, &path, (&dir, &names, lock))?;
            }
        }
        Err(cache("locked", Errno::AGAIN))
    }

    /// Removes the layers that were not used for the longest time until the others have at most
    /// `most` bytes, and what dead processes left. Layers in use stay. Only the order of removal
    /// depends on this host's clock.
    ///
    /// # Errors
    /// [`LayerError::Cache`] and [`LayerError::Removal`]; other layers may have been removed.
    pub fn collect(&self, most: u64) -> Result<CacheReport, LayerError> {
        let failed = |e| cache("read", e);
        let root = Dir::open(&self.root).map_err(failed)?;
        let mut rows = Vec::new();
        let mut report = CacheReport::default();
        for submitter in root.names().map_err(failed)? {
            let Ok(dir) = root.dir(&submitter) else {
                continue;
            };
            for name in dir.names().map_err(failed)? {
                let Some(digest) = digest_of_lock(&name) else {
                    continue;
                };
                let Ok(Some(stat)) = dir.stat(&name) else {
                    continue;
                };
                let bytes = recorded_bytes(&dir, &name);
                report.bytes += bytes;
                let used = (
                    stat.st_mtime,
                    i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
                );
                rows.push((used, submitter.clone(), digest, bytes));
            }
        }
        rows.sort();
        for (_, submitter, digest, bytes) in rows {
            let dir = root.dir(&submitter).map_err(failed)?;
            let names = Names::of(&digest);
            let is_whole = is_there(&dir, &names.layer)?;
            if is_whole && report.bytes <= most {
                continue;
            }
            match try_exclusive(&dir, &names.lock)? {
                None => report.in_use += u64::from(is_whole),
                Some(lock) => {
                    discard(&dir, &names, lock)?;
                    report.removed += u64::from(is_whole);
                    report.removed_bytes += bytes;
                    report.bytes = report.bytes.saturating_sub(bytes);
                }
            }
        }
        Ok(report)
    }
}

/// Fetches and unpacks a layer under its exclusive lock.
fn fetch(
    objects: &dyn Objects,
    digest: &Sha256Hex,
    path: &Path,
    (dir, names, lock): (&Dir, &Names, OwnedFd),
) -> Result<(), LayerError> {
    let temporary = |step, source| LayerError::Temporary { step, source };
    // A process that died left this directory; the lock proves that no living one writes into it.
    remove_tree_in(dir.as_fd(), names.unpacking.as_bytes())?;
    let file = tempfile::tempfile_in(path).map_err(|e| temporary("created", e))?;
    let mut capped = Capped::new(file, MAX_COMPRESSED);
    let got = objects.get(&ObjectName::Layer(digest.clone()), &mut capped);
    if capped.is_exceeded {
        return Err(LayerError::TooLarge {
            what: "compressed bytes",
            limit: MAX_COMPRESSED,
        });
    }
    got?;
    let mut file = capped.file;
    file.rewind().map_err(|e| temporary("read", e))?;
    let into = path.join(&names.unpacking);
    let unpacked = unpack(file, digest, &into, &CaptureLimits::TREE)?;
    let placed = record_bytes(&lock, unpacked.bytes)
        // One call for thousands of files; after it a power failure leaves no empty ones.
        .and_then(|()| fs::syncfs(dir))
        .and_then(|()| {
            let (from, to) = (names.unpacking.as_str(), names.layer.as_str());
            fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE)
        })
        .and_then(|()| fs::fsync(dir));
    placed.map_err(|e| {
        let _ = remove_tree(&into);
        cache("written", e)
    })
}

/// Removes a layer under its exclusive lock. The layer is renamed first, so that an interrupted
/// removal leaves no incomplete layer under the layer's name.
fn discard(dir: &Dir, names: &Names, lock: OwnedFd) -> Result<(), LayerError> {
    let failed = |e| cache("written", e);
    remove_tree_in(dir.as_fd(), names.removing.as_bytes())?;
    match fs::renameat(dir, names.layer.as_str(), dir, names.removing.as_str()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(failed(error)),
    }
    remove_tree_in(dir.as_fd(), names.removing.as_bytes())?;
    remove_tree_in(dir.as_fd(), names.unpacking.as_bytes())?;
    fs::unlinkat(dir, names.lock.as_str(), fs::AtFlags::empty()).map_err(failed)?;
    drop(lock);
    Ok(())
}

/// Opens and locks a lock file, and waits for the lock. `None` if another file has this name by
/// now, so that the lock protects nothing.
fn locked(dir: &Dir, name: &str, operation: FlockOperation) -> Result<Option<OwnedFd>, LayerError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file =
        fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR).map_err(|e| cache("opened", e))?;
    rustix::io::retry_on_intr(|| fs::flock(&file, operation)).map_err(|e| cache("locked", e))?;
    Ok(is_same(dir, name, &file)?.then_some(file))
}

/// Locks an existing lock file exclusively; `None` if another process holds a lock on it or removed
/// it.
fn try_exclusive(dir: &Dir, name: &str) -> Result<Option<OwnedFd>, LayerError> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match fs::openat(dir, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(cache("opened", error)),
    };
    match fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(is_same(dir, name, &file)?.then_some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(cache("locked", error)),
    }
}

fn is_same(dir: &Dir, name: &str, file: &OwnedFd) -> Result<bool, LayerError> {
    let failed = |e| cache("read", e);
    let (own, there) = (
        fs::fstat(file).map_err(failed)?,
        dir.stat(name.as_bytes()).map_err(failed)?,
    );
    Ok(there.is_some_and(|there| (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)))
}

fn is_there(dir: &Dir, name: &str) -> Result<bool, LayerError> {
    let stat = dir.stat(name.as_bytes());
    Ok(stat.map_err(|e| cache("read", e))?.is_some())
}

fn touch(lock: &OwnedFd) -> Result<(), LayerError> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    fs::futimens(lock, &times).map_err(|e| cache("written", e))
}

fn record_bytes(lock: &OwnedFd, bytes: u64) -> Result<(), Errno> {
    fs::ftruncate(lock, 0)?;
    let text = bytes.to_string();
    match rustix::io::pwrite(lock, text.as_bytes(), 0) {
        Ok(count) if count == text.len() => Ok(()),
        Ok(_) => Err(Errno::NOSPC),
        Err(error) => Err(error),
    }
}

fn recorded_bytes(dir: &Dir, name: &[u8]) -> u64 {
    let mut text = String::new();
    let read = dir.open_file(name).map(|(file, _)| {
        let read = File::from(file).take(32).read_to_string(&mut text);
        read.is_ok()
    });
    match read {
        Ok(true) => text.parse().unwrap_or_default(),
        Ok(false) | Err(_) => 0,
    }
}

fn digest_of_lock(name: &[u8]) -> Option<Sha256Hex> {
    let name = std::str::from_utf8(name).ok()?;
    Sha256Hex::new(name.strip_suffix(LOCK)?).ok()
}

const fn cache(step: &'static str, source: Errno) -> LayerError {
    LayerError::Cache { step, source }
}
