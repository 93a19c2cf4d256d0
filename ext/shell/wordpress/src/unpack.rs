//! The directory into which a core is unpacked or copied, with the checks for every source.
//!
//! Names, entries and contents are untrusted. Names are checked before anything is created; bytes
//! are counted while they are written, because sizes that an archive states may be wrong. The
//! directory is new and no other user may enter it, so no path in it leads through a link.

use super::progress::Progress;
use md5::{Digest, Md5};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::CodedError;

/// Modes of the cached directories and files: guests of other users must be able to read them.
pub(super) const DIRECTORY_MODE: u32 = 0o755;
pub(super) const FILE_MODE: u32 = 0o644;
/// Maximum length of a path in bytes.
const MAX_PATH: usize = 1024;
/// Maximum length of a file name in bytes; the limit of the usual file systems.
const MAX_NAME: usize = 255;
/// Maximum number of components of a path.
const MAX_DEPTH: usize = 32;
/// Size in bytes of the buffer for copying.
const BUFFER: usize = 64 * 1024;

/// Maximum sizes and numbers that an install accepts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum size of an archive in bytes.
    pub(super) archive: u64,
    /// Maximum size of all unpacked files together in bytes.
    pub(super) total: u64,
    /// Maximum size of one unpacked file in bytes.
    pub(super) file: u64,
    /// Maximum number of files and directories in the source, including those that are skipped.
    pub(super) entries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            archive: 256 << 20,
            total: 1 << 30,
            file: 64 << 20,
            entries: 20_000,
        }
    }
}

/// Reason why a source was not unpacked. In the messages "it" means the source: [`Self::body`] puts
/// `… was not installed: ` with the name of the source before them.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(
    WordpressInvalid,
    hint = "use a release: `wp-codebox wordpress install VERSION`, or a zip from https://wordpress.org/download/releases/"
)]
pub(super) enum UnpackError {
    /// The name of an entry is not a plain relative path, or is too long or too deep.
    #[error("the name {name:?} in it is not a plain relative path, or is too long or too deep")]
    Name { name: String },
    /// A symbolic link, device, FIFO or socket.
    #[error("{name:?} in it is {kind}, but a core has only files and directories")]
    Special { name: String, kind: &'static str },
    /// Two entries have the same path, or a file has the path of a directory.
    #[error("the name {name:?} occurs twice in it")]
    Duplicate { name: String },
    /// The list of a zip contains a name twice; the zip library does not report which one.
    #[error("a name occurs twice in its list of entries")]
    DuplicateEntry,
    /// The source exceeds a limit.
    #[error("it has more than {most} {unit}")]
    TooLarge { most: u64, unit: &'static str },
    /// The archive of a release contains a file outside of the directory `wordpress`.
    #[error("it contains {name:?} outside of its directory \"wordpress\"")]
    Outside { name: String },
    /// The archive cannot be decoded, or it ends early.
    #[error("it is damaged or is not an archive of the expected kind: {reason}")]
    Damaged { reason: String },
    /// A file or directory of the source cannot be read.
    #[error("{path} cannot be read: {source}")]
    #[code(InputInvalid, hint = "run the command as a user who may read it")]
    Unreadable {
        path: String,
        #[source]
        source: io::Error,
    },
    /// The cache cannot be written.
    #[error("{path:?} cannot be written: {source}")]
    #[code(
        WordpressUnavailable,
        hint = "free space on that disk, or set XDG_CACHE_HOME to a directory that you can write (not for root)"
    )]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Checks that a name is a relative path without special components, and returns it.
pub(super) fn checked(name: &[u8]) -> Result<&str, UnpackError> {
    let refused = || UnpackError::Name {
        name: String::from_utf8_lossy(name).chars().take(200).collect(),
    };
    let path = std::str::from_utf8(name).map_err(|_| refused())?;
    let plain = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.len() <= MAX_NAME
            && !part.chars().any(|c| c == '\\' || c.is_control())
    };
    let mut parts = path.split('/');
    if path.len() <= MAX_PATH && parts.clone().count() <= MAX_DEPTH && parts.all(plain) {
        return Ok(path);
    }
    Err(refused())
}

/// The directory into which files are written, with the entries and bytes so far.
pub(super) struct Tree<'p> {
    root: PathBuf,
    limits: Limits,
    entries: u64,
    bytes: u64,
    files: BTreeMap<String, [u8; 16]>,
    directories: BTreeSet<String>,
    buffer: Vec<u8>,
    progress: &'p dyn Progress,
}

impl<'p> Tree<'p> {
    /// Creates the directory, which must not exist. The caller ensures that only this user may
    /// enter its parent.
    pub(super) fn create(
        root: &Path,
        limits: Limits,
        progress: &'p dyn Progress,
    ) -> Result<Self, UnpackError> {
        create_directory(root)?;
        Ok(Self {
            root: root.to_owned(),
            limits,
            entries: 0,
            bytes: 0,
            files: BTreeMap::new(),
            directories: BTreeSet::new(),
            buffer: vec![0; BUFFER],
            progress,
        })
    }

    pub(super) fn progress(&self) -> &'p dyn Progress {
        self.progress
    }

    /// Counts an entry of the source, whether it is unpacked or skipped.
    pub(super) fn count(&mut self) -> Result<(), UnpackError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(UnpackError::TooLarge {
                most: self.limits.entries,
                unit: "files and directories",
            });
        }
        Ok(())
    }

    /// Creates a directory and its parents, unless they exist. The caller must have [`checked`] the
    /// path.
    pub(super) fn directory(&mut self, path: &str) -> Result<(), UnpackError> {
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let Some(above) = path.get(..end) else {
                continue;
            };
            if self.files.contains_key(above) {
                return Err(UnpackError::Duplicate {
                    name: above.to_owned(),
                });
            }
            if !self.directories.contains(above) {
                create_directory(&self.root.join(above))?;
                self.directories.insert(above.to_owned());
            }
        }
        Ok(())
    }

    /// Writes a file. The caller must have [`checked`] the path. `failed` converts an error of
    /// reading `content`.
    pub(super) fn file(
        &mut self,
        path: &str,
        content: &mut dyn Read,
        failed: impl FnOnce(io::Error) -> UnpackError,
    ) -> Result<(), UnpackError> {
        if self.files.contains_key(path) || self.directories.contains(path) {
            return Err(UnpackError::Duplicate {
                name: path.to_owned(),
            });
        }
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent)?;
        }
        let target = self.root.join(path);
        let written = |source| UnpackError::Write {
            path: target.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&target)
            .map_err(written)?;
        let mut size = 0_u64;
        let mut digest = Md5::new();
        loop {
            let count = match content.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
            };
            let piece = self.buffer.get(..count).unwrap_or_default();
            size += count as u64;
            self.bytes += count as u64;
            self.within(size)?;
            digest.update(piece);
            file.write_all(piece).map_err(written)?;
            self.progress.advance(self.bytes);
        }
        // Set the mode explicitly: the umask may have removed permissions.
        file.set_permissions(Permissions::from_mode(FILE_MODE))
            .map_err(written)?;
        self.files.insert(path.to_owned(), digest.finalize().into());
        Ok(())
    }

    /// Checks that the size of the current file and the total size of all files so far are within
    /// their limits.
    fn within(&self, size: u64) -> Result<(), UnpackError> {
        let (most, unit) = if size > self.limits.file {
            (self.limits.file, "bytes in one file")
        } else if self.bytes > self.limits.total {
            (self.limits.total, "bytes in all its files")
        } else {
            return Ok(());
        };
        Err(UnpackError::TooLarge { most, unit })
    }

    /// Returns the MD5 of each file by its path.
    pub(super) fn into_files(self) -> BTreeMap<String, [u8; 16]> {
        self.files
    }
}

fn create_directory(path: &Path) -> Result<(), UnpackError> {
    // Set the mode explicitly: the umask may remove permissions.
    fs::create_dir(path)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE)))
        .map_err(|source| UnpackError::Write {
            path: path.to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::super::progress::Silent;
    use super::*;
    use wp_codebox_contracts::ErrorCode;

    const SMALL: Limits = Limits {
        archive: 1000,
        total: 20,
        file: 12,
        entries: 3,
    };

    fn tree(parent: &Path) -> Tree<'static> {
        Tree::create(&parent.join("core"), SMALL, &Silent).unwrap()
    }

    fn add(tree: &mut Tree<'_>, path: &str, content: &[u8]) -> Result<(), UnpackError> {
        tree.file(path, &mut &content[..], |error| UnpackError::Damaged {
            reason: error.to_string(),
        })
    }

    #[test]
    fn name_that_is_not_a_plain_relative_path_is_refused() {
        let deep = "a/".repeat(MAX_DEPTH);
        for good in [
            "a",
            "a/b.php",
            "a/..b",
            "a/b c/é.php",
            &deep[..deep.len() - 1],
        ] {
            assert_eq!(checked(good.as_bytes()).unwrap(), good);
        }
        let (long, wide) = ("a".repeat(MAX_NAME + 1), "a/".repeat(MAX_PATH));
        for bad in [
            &b""[..],
            b"/etc/passwd",
            b"../out",
            b"a/../../out",
            b"a/./b",
            b"a//b",
            b"a/",
            b"a\\..\\b",
            b"a\0b",
            b"a\nb",
            b"\xff",
            long.as_bytes(),
            wide.as_bytes(),
            format!("{deep}a").as_bytes(),
        ] {
            let error = checked(bad).unwrap_err();
            assert!(matches!(error, UnpackError::Name { .. }), "{bad:?}");
        }
    }

    #[test]
    fn written_files_have_standard_modes_and_their_md5_is_returned() {
        let temp = tempfile::tempdir().unwrap();
        let mut tree = tree(temp.path());
        add(&mut tree, "a/b/c.php", b"hello").unwrap();
        tree.directory("a/empty").unwrap();
        let files = tree.into_files();
        assert_eq!(
            wp_codebox_contracts::hex(&files["a/b/c.php"]),
            "5d41402abc4b2a76b9719d911017c592"
        );
        let mode = |path: &str| {
            let meta = fs::metadata(temp.path().join("core").join(path)).unwrap();
            meta.permissions().mode() & 0o7777
        };
        assert_eq!(mode("a/b/c.php"), FILE_MODE);
        for directory in ["", "a", "a/b", "a/empty"] {
            assert_eq!(mode(directory), DIRECTORY_MODE, "{directory}");
        }
    }

    #[test]
    fn file_at_the_path_of_a_file_or_directory_or_below_a_file_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let mut tree = tree(temp.path());
        add(&mut tree, "a", b"1").unwrap();
        // Positive control: names that differ only in case are different files on Linux.
        add(&mut tree, "A", b"2").unwrap();
        tree.directory("d").unwrap();
        tree.directory("d").unwrap();
        for path in ["a", "a/b", "d"] {
            let error = add(&mut tree, path, b"2").unwrap_err();
            assert!(matches!(error, UnpackError::Duplicate { .. }), "{path}");
        }
        let error = tree.directory("a").unwrap_err();
        assert!(matches!(error, UnpackError::Duplicate { .. }));
    }

    #[test]
    fn bytes_and_entries_beyond_the_limits_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let mut one = tree(temp.path());
        add(&mut one, "exactly", &[0; 12]).unwrap();
        add(&mut one, "to the end", &[0; 8]).unwrap();
        let error = add(&mut one, "more", &[0; 1]).unwrap_err();
        assert!(
            matches!(error, UnpackError::TooLarge { most: 20, .. }),
            "{error}"
        );
        let temp = tempfile::tempdir().unwrap();
        let mut one = tree(temp.path());
        let error = add(&mut one, "large", &[0; 13]).unwrap_err();
        assert!(
            matches!(error, UnpackError::TooLarge { most: 12, .. }),
            "{error}"
        );
        (0..3).for_each(|_| one.count().unwrap());
        let error = one.count().unwrap_err();
        assert!(
            matches!(error, UnpackError::TooLarge { most: 3, .. }),
            "{error}"
        );
    }

    #[test]
    fn error_of_reading_the_source_and_error_of_writing_the_cache_have_different_types() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("no more"))
            }
        }
        let temp = tempfile::tempdir().unwrap();
        let mut tree = tree(temp.path());
        let failed = |error: io::Error| UnpackError::Damaged {
            reason: error.to_string(),
        };
        let error = tree.file("a", &mut Broken, failed).unwrap_err();
        assert!(matches!(error, UnpackError::Damaged { .. }));
        assert_eq!(error.code(), ErrorCode::WordpressInvalid);
        fs::remove_dir_all(temp.path().join("core")).unwrap();
        let error = add(&mut tree, "b", b"1").unwrap_err();
        assert!(matches!(error, UnpackError::Write { .. }));
        assert_eq!(error.code(), ErrorCode::WordpressUnavailable);
    }
}
