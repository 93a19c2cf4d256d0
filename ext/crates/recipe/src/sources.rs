//! Host facts that recipe checks need, provided by the caller.
//!
//! Paths are given as written in the recipe. Relative paths are resolved from the recipe's
//! directory, never from a process's working directory.

/// Kind of a host path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// No such path.
    Missing,
    /// Regular file.
    File,
    /// Directory.
    Directory,
    /// Device, socket, FIFO, or dangling symbolic link.
    Other,
    /// Path that may not be exposed to a guest.
    Denied,
}

/// Availability of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretStatus {
    /// The caller has the secret; `source` names its origin in one word, such as `environment`.
    Available {
        /// Origin of the value, in one word.
        source: &'static str,
    },
    /// The secret is not available.
    Missing,
}

/// Directory entry of a zip archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    /// Name in the archive.
    pub name: String,
    /// Uncompressed size in bytes.
    pub size: u64,
    /// Kind of the entry.
    pub special: ZipKind,
}

/// Kind of a zip entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZipKind {
    /// File or directory.
    Plain,
    /// Symbolic link, device or other special file.
    Special,
}

/// Reason why the directory of an archive cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ZipUnreadable {
    /// Description without a host path.
    pub reason: String,
}

/// Facts about the host that runs the guests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// Version of the WordPress in guests, e.g. `7.1.1`.
    pub wordpress_version: String,
    /// Version of the PHP in guests, e.g. `8.2.7`.
    pub php_version: String,
    /// Extensions of the PHP in guests, in lower case.
    pub php_extensions: Vec<String>,
    /// Whether the run has a parent site, from which content can be copied.
    pub parent_site: ParentSite,
}

/// Whether a run has a parent site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentSite {
    /// There is a parent site.
    Present,
    /// There is no parent site.
    Absent,
}

/// Provides facts about host files, secrets and the host. An implementation must return the same
/// facts during the processing of one recipe.
pub trait Sources {
    /// Returns the kind of a path.
    fn kind(&self, path: &str) -> PathKind;
    /// Returns the directory of a zip archive; a truncated directory must be an error.
    fn zip(&self, path: &str) -> Result<Vec<ZipEntry>, ZipUnreadable>;
    /// Returns the SHA-256 of a file in lower-case hex; `None` when it cannot be read.
    fn sha256(&self, path: &str) -> Option<String>;
    /// Returns whether the recipe must state the expected sha256 of every archive.
    fn requires_sha256(&self) -> bool;
    /// Returns the name of the file with the plugin header, relative to the plugin's directory or
    /// archive.
    fn plugin_file(&self, path: &str) -> Option<String>;
    /// Returns whether a secret is available, never its value.
    fn secret(&self, name: &str) -> SecretStatus;
    /// Returns facts about the host.
    fn facts(&self) -> &HostFacts;
}

/// Maximum uncompressed size of an archive, in bytes.
pub const MAX_UNPACKED_BYTES: u64 = 100 * 1024 * 1024;
/// Maximum number of entries in an archive.
pub const MAX_UNPACKED_FILES: usize = 5000;

/// Reason why an archive must not be unpacked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// An entry would be unpacked outside of the archive's directory.
    #[error("the archive has an entry outside of its own directory: {name:?}")]
    Outside {
        /// Shortened name of the entry.
        name: String,
    },
    /// An entry is a symbolic link, device or other special file.
    #[error("the archive has an entry that is not a plain file or directory: {name:?}")]
    Special {
        /// Shortened name of the entry.
        name: String,
    },
    /// Two entries have the same name.
    #[error("the archive has the entry {name:?} twice")]
    Twice {
        /// Shortened name of the entry.
        name: String,
    },
    /// The archive has too many entries.
    #[error("the archive has {count} entries, at most {MAX_UNPACKED_FILES} are accepted")]
    Entries {
        /// Number of entries.
        count: usize,
    },
    /// The archive is too large.
    #[error("the archive unpacks to more than {MAX_UNPACKED_BYTES} bytes")]
    Bytes,
}

/// Checks whether an archive may be unpacked. The sizes come from the archive itself and may be
/// false, so the unpacking code must count the bytes again.
pub fn check_archive(entries: &[ZipEntry]) -> Result<(), ArchiveError> {
    if entries.len() > MAX_UNPACKED_FILES {
        return Err(ArchiveError::Entries {
            count: entries.len(),
        });
    }
    let mut total: u64 = 0;
    let mut names = std::collections::BTreeSet::new();
    for entry in entries {
        let name = || entry.name.chars().take(200).collect::<String>();
        if !is_below(entry.name.strip_suffix('/').unwrap_or(&entry.name)) {
            return Err(ArchiveError::Outside { name: name() });
        }
        match entry.special {
            ZipKind::Plain => {}
            ZipKind::Special => return Err(ArchiveError::Special { name: name() }),
        }
        if !names.insert(entry.name.trim_end_matches('/').to_lowercase()) {
            return Err(ArchiveError::Twice { name: name() });
        }
        total = total.saturating_add(entry.size);
        if total > MAX_UNPACKED_BYTES {
            return Err(ArchiveError::Bytes);
        }
    }
    Ok(())
}

/// Returns whether a relative path is normalised and does not leave its base directory.
pub(crate) fn is_below(path: &str) -> bool {
    path.len() <= 4000
        && !path.contains(['\0', '\n', '\\', ':'])
        && path.split('/').all(|s| !matches!(s, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, size: u64) -> ZipEntry {
        ZipEntry {
            name: name.to_owned(),
            size,
            special: ZipKind::Plain,
        }
    }

    #[test]
    fn unsafe_archives_are_refused() {
        assert!(check_archive(&[entry("a/", 0), entry("a/b.php", MAX_UNPACKED_BYTES)]).is_ok());
        for name in [
            "../a", "/a", "a/../b", "a//b", "a\\..\\b", "C:/a", "", "/", "a\0b", "./a",
        ] {
            assert!(
                matches!(
                    check_archive(&[entry(name, 1)]),
                    Err(ArchiveError::Outside { .. })
                ),
                "{name:?}"
            );
        }
        let big = [entry("a", MAX_UNPACKED_BYTES), entry("b", 1)];
        assert_eq!(check_archive(&big), Err(ArchiveError::Bytes));
        let wraps = [entry("a", u64::MAX), entry("b", u64::MAX)];
        assert_eq!(check_archive(&wraps), Err(ArchiveError::Bytes));
        let many: Vec<_> = (0..=MAX_UNPACKED_FILES)
            .map(|i| entry(&i.to_string(), 0))
            .collect();
        assert!(check_archive(&many[1..]).is_ok());
        assert!(matches!(
            check_archive(&many),
            Err(ArchiveError::Entries { .. })
        ));
        assert!(matches!(
            check_archive(&[entry("a/B", 0), entry("a/b", 0)]),
            Err(ArchiveError::Twice { .. })
        ));
        let mut link = entry("a", 0);
        link.special = ZipKind::Special;
        assert!(matches!(
            check_archive(&[link]),
            Err(ArchiveError::Special { .. })
        ));
    }
}
