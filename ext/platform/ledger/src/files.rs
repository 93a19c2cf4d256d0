//! The files of a ledger: where they are, and whether other users can reach them.
//!
//! The directories must belong to this user or root, and no other user may write them. Below such
//! a directory no other user can exchange a file between check and use, so SQLite may open the
//! database by its path. The database is never opened here: closing any descriptor of a file
//! releases all POSIX locks that SQLite holds on it in this process (fcntl(2)).

use rustix::fd::OwnedFd;
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wp_codebox_contracts::CodedError;

/// Pause between two attempts to lock.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Why a file or directory of the ledger is not usable.
#[derive(Debug, thiserror::Error, CodedError)]
pub enum FilesError {
    /// The path names no file in a directory.
    #[error("{} does not name a file in a directory; give the path of a file", .path.display())]
    #[code(InputInvalid)]
    Path {
        /// Path that was given.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("{} cannot be {action}: {source}; check that this user may write its directory", .path.display())]
    #[code(LedgerUnavailable)]
    Io {
        /// What was attempted, as a participle.
        action: &'static str,
        /// File or directory.
        path: PathBuf,
        /// Error of the system call.
        #[source]
        source: Errno,
    },
    /// Another user could change the file or directory.
    #[error("another user can write to {}; make the user that runs this program its owner, with mode 0700 or 0600", .path.display())]
    #[code(LedgerUnavailable)]
    NotPrivate {
        /// File or directory.
        path: PathBuf,
    },
    /// A symbolic link, FIFO, device or directory is where a file must be.
    #[error("{} is not a regular file or has more than one hard link; remove it, or restore the ledger from a backup", .path.display())]
    #[code(LedgerDamaged)]
    NotRegular {
        /// Path of what is not a regular file.
        path: PathBuf,
    },
}

/// Paths of a ledger's database and of its anchor. They should be on different disks, or at least
/// in different directories and backups: the anchor reveals an older copy of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerFiles {
    /// SQLite database. SQLite creates `<name>-wal` and `<name>-shm` beside it, this crate
    /// `<name>.lock`.
    pub database: PathBuf,
    /// JSON file with the number of entries and the newest hash.
    pub anchor: PathBuf,
}

impl LedgerFiles {
    /// Returns the usual paths below a state directory.
    #[must_use]
    pub fn in_state(state_dir: &Path) -> Self {
        Self {
            database: state_dir.join("ledger/ledger.sqlite"),
            anchor: state_dir.join("ledger-anchor/anchor.json"),
        }
    }
}

/// Whether a file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Present,
    Missing,
}

/// A name in a directory that no other user can write.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) directory: OwnedFd,
    pub(crate) name: String,
    /// Path without symbolic links.
    pub(crate) path: PathBuf,
}

impl Place {
    /// Opens the directory of a file, and creates it with mode 0700 if it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, FilesError> {
        let invalid = || FilesError::Path {
            path: path.to_owned(),
        };
        let name = path
            .file_name()
            .and_then(OsStr::to_str)
            .ok_or_else(invalid)?;
        let parent = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Err(invalid()),
        };
        let failed = |action| {
            move |source| FilesError::Io {
                action,
                path: parent.to_owned(),
                source,
            }
        };
        match fs::mkdir(parent, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed("created")(error)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = fs::open(parent, flags, Mode::empty()).map_err(failed("opened"))?;
        let stat = fs::fstat(&directory).map_err(failed("read"))?;
        if !is_private(&stat) {
            return Err(FilesError::NotPrivate {
                path: parent.to_owned(),
            });
        }
        let resolved = std::fs::canonicalize(parent)
            .map_err(|e| failed("read")(Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
        Ok(Self {
            directory,
            name: name.to_owned(),
            path: resolved.join(name),
        })
    }

    /// Returns the place of `<name><suffix>` in the same directory.
    fn beside(&self, suffix: &str) -> (String, PathBuf) {
        let name = format!("{}{suffix}", self.name);
        let path = self.path.with_file_name(&name);
        (name, path)
    }

    /// Returns whether `<name><suffix>` exists in this directory. Fails if it is anything but a
    /// private regular file with one name.
    pub(crate) fn check(&self, suffix: &str) -> Result<Presence, FilesError> {
        let (name, path) = self.beside(suffix);
        let stat = match fs::statat(&self.directory, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Presence::Missing),
            Err(source) => {
                let action = "read";
                return Err(FilesError::Io {
                    action,
                    path,
                    source,
                });
            }
        };
        let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_regular || stat.st_nlink != 1 {
            return Err(FilesError::NotRegular { path });
        }
        if !is_private(&stat) {
            return Err(FilesError::NotPrivate { path });
        }
        Ok(Presence::Present)
    }

    /// Creates an empty file that does not exist, with mode 0600.
    pub(crate) fn create(&self) -> Result<(), FilesError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let name = self.name.as_str();
        fs::openat(&self.directory, name, flags | OFlags::CLOEXEC, mode)
            .and_then(|_| fs::fsync(&self.directory))
            .map_err(|source| FilesError::Io {
                action: "created",
                path: self.path.clone(),
                source,
            })
    }
}

/// Returns whether only this user, or root, can write a file or directory.
fn is_private(stat: &Stat) -> bool {
    let own = rustix::process::geteuid().as_raw();
    (stat.st_uid == own || stat.st_uid == 0) && stat.st_mode & 0o022 == 0
}

/// The lock that a process holds while it changes database and anchor.
#[derive(Debug)]
pub(crate) struct Lock {
    file: OwnedFd,
    path: PathBuf,
    /// How long [`Lock::take`] waits for another process.
    patience: Duration,
}

/// Which other processes may hold the lock at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sharing {
    /// Other readers.
    Readers,
    /// No other process.
    Nobody,
}

/// Why the lock was not taken.
#[derive(Debug)]
pub(crate) enum LockFailure {
    /// Another process held the lock during the whole wait.
    Busy { seconds: u64 },
    /// The system call failed.
    Files(FilesError),
}

/// The lock, held until this value is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a Lock);

impl Lock {
    /// Opens the lock file beside the database.
    pub(crate) fn open(database: &Place, patience: Duration) -> Result<Self, FilesError> {
        let (name, path) = database.beside(".lock");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mode = Mode::RUSR | Mode::WUSR;
        match fs::openat(&database.directory, name, flags | OFlags::CLOEXEC, mode) {
            Ok(file) => {
                database.check(".lock")?;
                Ok(Self {
                    file,
                    path,
                    patience,
                })
            }
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => Err(FilesError::NotRegular { path }),
            Err(source) => {
                let action = "opened";
                Err(FilesError::Io {
                    action,
                    path,
                    source,
                })
            }
        }
    }

    /// Waits for the lock. The kernel releases the lock of a process that dies.
    pub(crate) fn take(&self, sharing: Sharing) -> Result<Held<'_>, LockFailure> {
        let operation = match sharing {
            Sharing::Readers => FlockOperation::NonBlockingLockShared,
            Sharing::Nobody => FlockOperation::NonBlockingLockExclusive,
        };
        let begin = Instant::now();
        loop {
            match fs::flock(&self.file, operation) {
                Ok(()) => return Ok(Held(self)),
                Err(Errno::INTR) => {}
                // A blocking call would wait forever for a stopped process.
                Err(Errno::WOULDBLOCK) if begin.elapsed() < self.patience => {
                    std::thread::sleep(POLL_INTERVAL);
                }
                Err(Errno::WOULDBLOCK) => {
                    let seconds = self.patience.as_secs();
                    return Err(LockFailure::Busy { seconds });
                }
                Err(source) => {
                    return Err(LockFailure::Files(FilesError::Io {
                        action: "locked",
                        path: self.path.clone(),
                        source,
                    }));
                }
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // An error leaves the lock until the process ends or the ledger is dropped.
        let _ = fs::flock(&self.0.file, FlockOperation::Unlock);
    }
}
