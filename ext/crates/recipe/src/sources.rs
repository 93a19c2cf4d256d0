//! What a recipe's checks may know of the world: asked for here, answered by whoever runs them.
//!
//! A path is given as the recipe has it. Relative ones are meant from the recipe's own
//! directory, never from the working directory of a process.

/// What lies at a host path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing.
    Missing,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A device, socket or pipe, or a link that leads nowhere.
    Other,
    /// Something that may not be given to a guest.
    Denied,
}

/// Whether a secret is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretStatus {
    /// The caller has it; `source` says where, in one word such as `environment`.
    Available {
        /// Where.
        source: &'static str,
    },
    /// Nobody has it.
    Missing,
}

/// One entry of a zip archive's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    /// Its name as it stands in the archive.
    pub name: String,
    /// Its size unpacked, bytes.
    pub size: u64,
    /// Whether it is a symbolic link or no plain file or directory.
    pub special: ZipKind,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZipKind {
    /// A file or directory.
    Plain,
    /// A link or device.
    Special,
}

/// Why an archive's directory cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ZipUnreadable {
    /// In words, without a host path.
    pub reason: String,
}

/// What this host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// Version of the WordPress that guests are made of, such as `7.1.1`.
    pub wordpress_version: String,
    /// Version of the guest's PHP, such as `8.2.7`.
    pub php_version: String,
    /// Extensions of the guest's PHP, small letters.
    pub php_extensions: Vec<String>,
    /// Whether there is a site that content could be taken from.
    pub parent_site: ParentSite,
}

/// Whether a run has a parent site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentSite {
    /// There is one.
    Present,
    /// The run stands alone.
    Absent,
}

/// Answers about host files, secrets and the host. An implementation answers the same
/// question the same way for as long as one recipe is looked at.
pub trait Sources {
    /// What lies at a path.
    fn kind(&self, path: &str) -> PathKind;
    /// The directory of a zip archive; a listing that is cut off must be an error.
    fn zip(&self, path: &str) -> Result<Vec<ZipEntry>, ZipUnreadable>;
    /// Lowercase hex sha256 of a file; none when it cannot be read.
    fn sha256(&self, path: &str) -> Option<String>;
    /// Whether an archive is accepted only with the sha256 that the recipe expects of it.
    fn requires_sha256(&self) -> bool;
    /// Name of the file with the plugin header, below a plugin's directory or archive.
    fn plugin_file(&self, path: &str) -> Option<String>;
    /// Whether a secret is there. The value is never asked for.
    fn secret(&self, name: &str) -> SecretStatus;
    /// What this host has.
    fn facts(&self) -> &HostFacts;
}

/// Largest unpacked archive, bytes.
pub const MAX_UNPACKED_BYTES: u64 = 100 * 1024 * 1024;
/// Most entries of an archive.
pub const MAX_UNPACKED_FILES: usize = 5000;

/// Why an archive must not be unpacked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// An entry would land elsewhere.
    #[error("the archive has an entry outside of its own directory: {name:?}")]
    Outside {
        /// Its name, shortened.
        name: String,
    },
    /// An entry is a link or device.
    #[error("the archive has an entry that is no plain file or directory: {name:?}")]
    Special {
        /// Its name, shortened.
        name: String,
    },
    /// Two entries have one name.
    #[error("the archive has the entry {name:?} twice")]
    Twice {
        /// Its name, shortened.
        name: String,
    },
    /// Too many entries.
    #[error("the archive has {count} entries, at most {MAX_UNPACKED_FILES} are accepted")]
    Entries {
        /// How many.
        count: usize,
    },
    /// Too large.
    #[error("the archive unpacks to more than {MAX_UNPACKED_BYTES} bytes")]
    Bytes,
}

/// Whether an archive may be unpacked. Sizes are what the archive says of itself:
/// whoever unpacks it counts again.
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

/// Whether a relative path is normalised and stays below where it begins.
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
    fn archives() {
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
