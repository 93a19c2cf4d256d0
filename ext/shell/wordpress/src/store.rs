//! Writes the cache of WordPress cores.
//!
//! A core is unpacked into a directory `.new-…`, which is renamed when it is complete, so readers
//! never see an incomplete core. Only a process that holds the lock creates or removes entries of
//! the cache, except for the lock file.

use super::cache::{CURRENT, CacheError, Core, Cores, RECORD, Record, io_error};
use super::progress::{Progress, Silent};
use super::unpack::{DIRECTORY_MODE, FILE_MODE};
use super::version::Version;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::{Builder, TempDir};
use wp_codebox_artifacts::remove_tree;
use wp_codebox_contracts::ErrorBody;

/// Prefix of temporary names, which are renamed or removed before the lock is released.
const NEW: &str = ".new-";

impl Cores {
    /// Makes an installed version the default and returns its core. A series selects its newest
    /// release.
    ///
    /// # Errors
    /// If the version is not installed, or the cache cannot be used.
    pub fn use_version(&self, version: &str) -> Result<Core, ErrorBody> {
        self.choose(version).map_err(ErrorBody::from)
    }

    fn choose(&self, version: &str) -> Result<Core, CacheError> {
        let found = self.core(Some(version))?;
        let core = found.ok_or_else(|| CacheError::NotInstalled {
            version: version.to_owned(),
        })?;
        let _lock = self.lock(&Silent)?;
        self.write_current(&core.version)?;
        Ok(Core {
            current: true,
            ..core
        })
    }

    /// Creates the cache unless it exists.
    pub(super) fn prepare(&self) -> Result<(), CacheError> {
        let cache = self.root.parent().unwrap_or(&self.root);
        for path in [cache, &self.root] {
            let failed = io_error("create", path);
            match fs::create_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(path).map_err(&failed)?;
                }
                created => created.map_err(&failed)?,
            }
            // Set the mode explicitly, because the umask may remove permissions: guests of other
            // users must be able to read the cores.
            fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE)).map_err(&failed)?;
        }
        self.trusted().map(drop)
    }

    /// Takes the lock that only one install can hold; dropping the descriptor releases it. Waits
    /// while another install runs.
    pub(super) fn lock(&self, progress: &dyn Progress) -> Result<OwnedFd, CacheError> {
        let path = self.root.join(".lock");
        let failed = |error: Errno| io_error("lock", &path)(error.into());
        // Mode 0600: another user who could open the file could hold the lock forever.
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let lock = rustix::fs::open(&path, flags, mode).map_err(failed)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(Errno::WOULDBLOCK) => progress.note("waiting for another install to finish"),
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
        retry_on_intr(|| rustix::fs::flock(&lock, FlockOperation::LockExclusive))
            .map_err(failed)?;
        Ok(lock)
    }

    /// Removes temporary directories of crashed installs. The caller must hold the lock.
    pub(super) fn sweep(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(NEW.as_bytes()) {
                // Ignore errors: the next install tries again, and the directory does no harm.
                let _ = remove_tree(&entry.path());
            }
        }
    }

    /// Creates the temporary directory of an install, which only this user may enter. The drop of
    /// the value removes the directory.
    pub(super) fn stage(&self) -> Result<TempDir, CacheError> {
        Builder::new()
            .prefix(NEW)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&self.root)
            .map_err(io_error("create a directory in", &self.root))
    }

    /// Moves a complete core from a [stage](Self::stage) to the directory of its version. The
    /// caller must hold the lock.
    pub(super) fn place(
        &self,
        core: &Path,
        version: &Version,
        source: &str,
    ) -> Result<Core, CacheError> {
        let record = Record {
            source: source.to_owned(),
            installed_at: wp_codebox_runtime::now_rfc3339(),
        };
        let path = core.join(RECORD);
        let text = serde_json::to_vec(&record).map_err(|e| io_error("write", &path)(e.into()))?;
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(FILE_MODE)))
            .map_err(io_error("write", &path))?;
        // All files must be on the disk before the directory gets the name of a complete core.
        File::open(core)
            .and_then(|dir| rustix::fs::syncfs(&dir).map_err(Into::into))
            .map_err(io_error("sync", core))?;
        let place = self.path_of(version);
        fs::rename(core, &place).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => {
                CacheError::Occupied {
                    path: place.clone(),
                }
            }
            _ => io_error("rename to", &place)(error),
        })?;
        self.sync()?;
        let core = self.exactly(version)?;
        core.ok_or(CacheError::Occupied { path: place })
    }

    /// Makes a core the default if the cache has no default.
    pub(super) fn choose_first(&self, core: Core) -> Result<Core, CacheError> {
        let chosen = self.read_small(CURRENT);
        let chosen = chosen.and_then(|text| Version::parse(text.trim_end()));
        let exists = match &chosen {
            Some(version) => self.exactly(version)?.is_some(),
            None => false,
        };
        if !exists {
            self.write_current(&core.version)?;
        }
        Ok(Core {
            current: !exists || chosen.is_some_and(|c| c.as_str() == core.version),
            ..core
        })
    }

    /// Replaces the file with the default version atomically, by a rename.
    fn write_current(&self, version: &str) -> Result<(), CacheError> {
        let path = self.root.join(CURRENT);
        let failed = io_error("write", &path);
        let mut file = Builder::new()
            .prefix(NEW)
            .permissions(Permissions::from_mode(FILE_MODE))
            .tempfile_in(&self.root)
            .map_err(&failed)?;
        file.write_all(format!("{version}\n").as_bytes())
            .and_then(|()| {
                file.as_file()
                    .set_permissions(Permissions::from_mode(FILE_MODE))
            })
            .and_then(|()| file.as_file().sync_all())
            .map_err(&failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        self.sync()
    }

    fn sync(&self) -> Result<(), CacheError> {
        File::open(&self.root)
            .and_then(|dir| dir.sync_all())
            .map_err(io_error("sync", &self.root))
    }
}
