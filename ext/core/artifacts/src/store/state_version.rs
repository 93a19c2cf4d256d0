//! The version of the state directory, in its file `version`.
//!
//! It is the version of every file there that states none itself. Every change of such a file that
//! an earlier program would misread raises it. A directory without the file has version 1, which all
//! programs read that do not know the file.

use crate::dirfd::{ReadOutcome, read_within, write_all};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

const FILE: &str = "version";
/// Version that this program writes, and the newest that it reads.
const VERSION: u32 = 1;
/// Maximum size of the file in bytes.
const LARGEST: u64 = 16;

/// Reason why a state directory may not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateVersionError {
    /// A newer program wrote the directory.
    #[error(
        "the state directory has the version {found}, and this program reads versions up to {VERSION}; use the newer wp-codebox that wrote it"
    )]
    Newer {
        /// Version in the file.
        found: u32,
    },
    /// The file does not contain a version.
    #[error("the file `version` in the state directory is damaged; restore it from a backup")]
    Damaged,
    /// The file cannot be read.
    #[error(
        "the file `version` in the state directory cannot be read: {source}; check its owner and mode"
    )]
    Io {
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
}

/// Checks that this program reads the version of the state directory `state`.
pub fn check_state_version(state: BorrowedFd<'_>) -> Result<(), StateVersionError> {
    let failed = |source| StateVersionError::Io { source };
    // The owner of the directory may be another user than the one of this process, so the name may
    // be a link or a FIFO.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match fs::openat(state, FILE, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::LOOP) => return Err(StateVersionError::Damaged),
        file => file.map_err(failed)?,
    };
    match parse(&file)? {
        found if found > VERSION => Err(StateVersionError::Newer { found }),
        _ => Ok(()),
    }
}

fn parse(file: &OwnedFd) -> Result<u32, StateVersionError> {
    let failed = |source| StateVersionError::Io { source };
    let stat = fs::fstat(file).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(StateVersionError::Damaged);
    }
    let text = match read_within(file, &stat, LARGEST).map_err(failed)? {
        ReadOutcome::Bytes(bytes) => String::from_utf8(bytes),
        ReadOutcome::TooLarge => return Err(StateVersionError::Damaged),
    };
    text.ok()
        .and_then(|text| text.trim_end().parse().ok())
        .filter(|version| *version > 0)
        .ok_or(StateVersionError::Damaged)
}

/// Writes the version of this program into a state directory that states none. An existing file
/// stays. The caller has the ids of the directory's owner.
///
/// # Errors
/// The directory may be used nevertheless: it has version 1 without the file.
pub fn write_state_version(state: BorrowedFd<'_>) -> Result<(), Errno> {
    match fs::statat(state, FILE, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => {}
        found => return found.map(drop),
    }
    let temporary = format!(".{FILE}.{}", rustix::process::getpid().as_raw_nonzero());
    // O_EXCL: another thread of this process may write the same file, and must not empty it.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs::openat(state, temporary.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
    let written = write_all(&file, format!("{VERSION}\n").as_bytes())
        .and_then(|()| fs::fsync(&file))
        // Another program, which may be newer, may have written the file meanwhile.
        .and_then(|()| {
            fs::renameat_with(
                state,
                temporary.as_str(),
                state,
                FILE,
                RenameFlags::NOREPLACE,
            )
        });
    match written {
        Ok(()) => fs::fsync(state),
        Err(error) => {
            fs::unlinkat(state, temporary.as_str(), AtFlags::empty())?;
            match error {
                Errno::EXIST => Ok(()),
                error => Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsFd;

    #[test]
    fn threads_that_state_the_version_at_once_never_show_a_damaged_one() {
        for _ in 0..200 {
            let temp = tempfile::tempdir().unwrap();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let state = crate::Dir::open(temp.path()).unwrap();
                        let _ = write_state_version(state.as_fd());
                        check_state_version(state.as_fd()).unwrap();
                    });
                }
            });
        }
    }

    #[test]
    fn newer_or_damaged_version_is_refused_and_an_existing_one_is_never_replaced() {
        let temp = tempfile::tempdir().unwrap();
        let state = crate::Dir::open(temp.path()).unwrap();
        let file = temp.path().join(FILE);
        check_state_version(state.as_fd()).unwrap();
        write_state_version(state.as_fd()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
        check_state_version(state.as_fd()).unwrap();
        for (text, is_newer) in [
            ("2\n", true),
            ("4294967295", true),
            ("", false),
            ("0\n", false),
            ("-1", false),
            ("x", false),
            ("1 2", false),
            ("11111111111111111", false),
        ] {
            fs::write(&file, text).unwrap();
            let error = check_state_version(state.as_fd()).unwrap_err();
            assert_eq!(
                matches!(error, StateVersionError::Newer { .. }),
                is_newer,
                "{text}: {error}"
            );
            assert_eq!(
                matches!(error, StateVersionError::Damaged),
                !is_newer,
                "{text}: {error}"
            );
            write_state_version(state.as_fd()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
        assert!(matches!(
            check_state_version(state.as_fd()),
            Err(StateVersionError::Damaged)
        ));
        fs::remove_file(&file).unwrap();
        rustix::fs::mkfifoat(&state, FILE, Mode::RUSR).unwrap();
        assert!(matches!(
            check_state_version(state.as_fd()),
            Err(StateVersionError::Damaged)
        ));
    }
}
