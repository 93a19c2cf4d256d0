//! Host facts that recipe checks need, provided by the caller.
//!
//! Paths are given as written in the recipe. Relative paths are resolved from the recipe's
//! directory, never from a process's working directory.

use crate::model::SiteSeed;

/// What exists at a path of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing exists at the path.
    Missing,
    /// Regular file.
    File,
    /// Directory.
    Directory,
    /// Device, socket, FIFO, or dangling symbolic link.
    Other,
    /// The host's settings do not allow guests to see this path.
    Denied,
}

/// Whether the caller has the value of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretStatus {
    /// The caller has the secret's value.
    Available {
        /// Where the value comes from, in one word such as `environment`.
        source: &'static str,
    },
    /// The caller has a value that a run does not accept as secret.
    Unusable {
        /// Rule that the value breaks, as the end of a sentence such as `must be one line`.
        rule: &'static str,
    },
    /// The caller does not have the secret.
    Missing,
}

/// A file or directory listed in a zip archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZipEntry {
    /// Path of the entry in the archive.
    pub name: String,
    /// Size of the entry after unpacking, in bytes, as stated in the archive.
    pub size: u64,
    /// Kind of the entry: regular file or directory, or something else such as a symbolic link.
    pub special: ZipKind,
}

/// Kind of an entry of a zip archive. An archive with a `Special` entry is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZipKind {
    /// Regular file or directory.
    Plain,
    /// Symbolic link, device or other special file.
    Special,
}

/// Error: the list of entries in a zip archive cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ZipUnreadable {
    /// Why the list cannot be read, in one sentence without a host path.
    pub reason: String,
}

/// Value of [`HostFacts::wordpress_version`] while the host has no WordPress. A recipe that
/// requires a certain version is then not refused.
pub const UNKNOWN_VERSION: &str = "unknown";

/// Returns whether `version` is `wanted` or a more specific form of it: 7.1.1 fits 7.1.
#[must_use]
pub fn version_fits(version: &str, wanted: &str) -> bool {
    version == wanted
        || version
            .strip_prefix(wanted)
            .is_some_and(|rest| rest.starts_with(['.', '-']))
}

/// Returns whether `version` fits the selector `wanted` of a recipe: a version or series as in
/// [`version_fits`]; `latest`, which every version fits; `trunk`, `nightly` or `master`, which
/// only pre-releases fit; or `beta`, which only betas and release candidates fit.
#[must_use]
pub fn selector_fits(version: &str, wanted: &str) -> bool {
    let before = |words: &[&str]| {
        let (_, suffix) = version.split_once('-').unwrap_or_default();
        words.iter().any(|word| suffix.starts_with(word))
    };
    match wanted {
        "latest" => true,
        "trunk" | "nightly" | "master" => before(&["alpha", "beta", "RC", "src", "dev"]),
        "beta" => before(&["beta", "RC"]),
        wanted => version_fits(version, wanted),
    }
}

/// What happens if no WordPress of this host fits the recipe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WpFallback {
    /// The recipe is refused.
    #[default]
    Refuse,
    /// The recipe runs with the nearest version, and the result says so.
    Nearest,
}

/// Facts about the host that runs the guests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// Version of the WordPress in guests, e.g. `7.1.1`; [`UNKNOWN_VERSION`] if the host has none.
    pub wordpress_version: String,
    /// Version of the PHP in guests, e.g. `8.2.7`.
    pub php_version: String,
    /// Extensions of the PHP in guests, in lower case.
    pub php_extensions: Vec<String>,
    /// Server programs that guests can run, e.g. `mariadbd`.
    pub server_programs: Vec<String>,
    /// Whether the run belongs to a site whose content a guest may copy.
    pub parent_site: ParentSite,
    /// What happens if no WordPress of this host fits the recipe.
    pub wp_fallback: WpFallback,
    /// Default theme that guests have; `None` if the host has no WordPress.
    pub theme: Option<String>,
}

/// Whether the run belongs to a site whose content a guest may copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentSite {
    /// The run belongs to a site from which content can be copied.
    Present,
    /// The run belongs to no site from which content can be copied.
    Absent,
}

/// Provides facts about the host, its files and the caller's secrets. An implementation must not
/// change its answers while one recipe is processed.
pub trait Sources {
    /// Returns what exists at a path.
    fn kind(&self, path: &str) -> PathKind;
    /// Returns the entries listed in a zip archive. An incomplete list must be an error.
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
    /// Returns the content of the parent site that a seed selects, as a fixture, or why it cannot
    /// be read, in one sentence.
    fn parent_content(&self, seed: &SiteSeed) -> Result<String, String>;

    /// Returns whether the host lets a run download plugins and themes that a recipe names.
    fn allows_downloads(&self) -> bool {
        false
    }
    /// Returns what the host provides to guests.
    fn facts(&self) -> &HostFacts;
}

/// Maximum uncompressed size of an archive, in bytes.
pub const MAX_UNPACKED_BYTES: u64 = 100 * 1024 * 1024;
/// Maximum number of entries in an archive to be unpacked.
pub const MAX_UNPACKED_FILES: usize = 5000;

/// Reason why an archive must not be unpacked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The name of an entry would lead out of the directory to which the archive is unpacked.
    #[error(
        "the archive's entry {name:?} leads out of the directory to which the archive is unpacked; remove it"
    )]
    Outside {
        /// Shortened name of the entry that leads out of the directory.
        name: String,
    },
    /// An entry is a symbolic link, device or other special file.
    #[error("the archive's entry {name:?} is neither a regular file nor a directory; remove it")]
    Special {
        /// Shortened name of the entry that is neither a regular file nor a directory.
        name: String,
    },
    /// Two entries of the archive have the same name.
    #[error("the archive has two entries with the name {name:?}; remove one")]
    Twice {
        /// Shortened name that two entries have.
        name: String,
    },
    /// The archive has more than [`MAX_UNPACKED_FILES`] entries.
    #[error(
        "the archive has {count} entries, but may have at most {MAX_UNPACKED_FILES}; remove files from it"
    )]
    Entries {
        /// Number of entries in the archive.
        count: usize,
    },
    /// The archive's files have more than [`MAX_UNPACKED_BYTES`] bytes together.
    #[error(
        "the archive's unpacked files have more than {MAX_UNPACKED_BYTES} bytes together; remove files from it"
    )]
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
    fn wordpress_version_fits_itself_and_its_release_series_but_not_a_mere_text_prefix() {
        for (version, wanted) in [("7.1.1", "7.1.1"), ("7.1.1", "7.1"), ("7.1-RC1", "7.1")] {
            assert!(version_fits(version, wanted), "{version} {wanted}");
        }
        for (version, wanted) in [
            ("7.10", "7.1"),
            ("7.1", "7.1.1"),
            ("7.1", ""),
            ("17.1", "7.1"),
        ] {
            assert!(!version_fits(version, wanted), "{version} {wanted}");
        }
    }

    #[test]
    fn wordpress_version_selector_fits_releases_by_version_and_pre_releases_by_word() {
        for (version, wanted) in [
            ("7.1.1", "latest"),
            ("7.1.1", "7.1"),
            ("7.2-alpha-61000", "trunk"),
            ("7.2-beta1", "nightly"),
            ("7.2-RC1", "beta"),
        ] {
            assert!(selector_fits(version, wanted), "{version} {wanted}");
        }
        for (version, wanted) in [
            ("7.1.1", "trunk"),
            ("7.1.1", "beta"),
            ("7.2-alpha-61000", "beta"),
            ("7.1.1", "7.0"),
            ("7.1.1", "stable"),
        ] {
            assert!(!selector_fits(version, wanted), "{version} {wanted}");
        }
    }

    #[test]
    fn archive_is_refused_for_escaping_path_special_entry_duplicate_entry_or_excess_size() {
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
