//! Which entries of a directory belong to its layer.

use rustix::fd::BorrowedFd;
use rustix::fs::FileType;
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::os::fd::AsFd;
use wp_codebox_artifacts::{CaptureLimits, Dir, ExcludeRules, scan_tree};
use wp_codebox_contracts::Sha256Hex;

/// Which entries of a directory its layer contains.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Entries {
    /// All entries.
    All,
    /// The entries at these paths with everything below, and the directories on the way.
    Only(Vec<String>),
    /// All entries except those at these paths, with everything below.
    Without(Vec<String>),
}

/// Rules by which a directory is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackRules {
    entries: Entries,
    limits: CaptureLimits,
}

/// Whether a layer contains an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The layer contains it.
    Take,
    /// The layer contains the entry if it is a directory, because entries below it may belong to
    /// the layer.
    OnlyBelow,
    /// The layer does not contain it.
    LeaveOut,
}

impl PackRules {
    /// Returns the rules for a whole directory, with the limits of mounts.
    #[must_use]
    pub const fn whole() -> Self {
        Self {
            entries: Entries::All,
            limits: CaptureLimits::TREE,
        }
    }

    /// Returns the rules for the entries at these paths, relative to the directory. A missing entry
    /// is no error. Used for a WordPress root, which also contains settings with passwords and the
    /// site's uploads.
    #[must_use]
    pub fn only(paths: &[&str]) -> Self {
        Self {
            entries: Entries::Only(paths.iter().map(|path| (*path).to_owned()).collect()),
            ..Self::whole()
        }
    }

    /// Returns the rules for a directory without the entries at these paths.
    #[must_use]
    pub fn without(paths: &[String]) -> Self {
        Self {
            entries: Entries::Without(paths.to_vec()),
            ..Self::whole()
        }
    }

    /// Replaces the limits.
    #[must_use]
    pub const fn limited(mut self, limits: CaptureLimits) -> Self {
        self.limits = limits;
        self
    }

    pub(super) const fn limits(&self) -> &CaptureLimits {
        &self.limits
    }

    pub(super) fn choice(&self, path: &[u8]) -> Choice {
        let is_below = |outer: &String, inner: &[u8]| {
            let rest = inner.strip_prefix(outer.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        match &self.entries {
            Entries::All => Choice::Take,
            Entries::Only(paths) if paths.iter().any(|of| is_below(of, path)) => Choice::Take,
            Entries::Only(paths) => {
                let is_above = |of: &String| {
                    let rest = of.as_bytes().strip_prefix(path);
                    rest.is_some_and(|rest| rest.starts_with(b"/"))
                };
                match paths.iter().any(is_above) {
                    true => Choice::OnlyBelow,
                    false => Choice::LeaveOut,
                }
            }
            Entries::Without(paths) if paths.iter().any(|of| is_below(of, path)) => {
                Choice::LeaveOut
            }
            Entries::Without(_) => Choice::Take,
        }
    }

    /// Returns a fingerprint of names, sizes, inodes and times of the entries that the rules take,
    /// without reading a file; `None` if a scan fails or the rules leave out paths.
    pub(super) fn fingerprint(&self, root: BorrowedFd<'_>) -> Option<Sha256Hex> {
        let scan = |fd: BorrowedFd<'_>| {
            let scan = scan_tree(fd, &ExcludeRules::default(), &self.limits).ok()?;
            Some(scan.fingerprint)
        };
        match &self.entries {
            Entries::All => scan(root),
            Entries::Only(paths) => {
                let root = Dir::reopen(root).ok()?;
                let mut hash = Sha256::new();
                for path in paths {
                    hash.update((path.len() as u64).to_le_bytes());
                    hash.update(path);
                    let stat = match root.stat(path.as_bytes()) {
                        Ok(Some(stat)) => stat,
                        Ok(None) => continue,
                        Err(_) => return None,
                    };
                    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                        let below: Result<Dir, Errno> = root.dir(path.as_bytes());
                        hash.update(scan(below.ok()?.as_fd())?.as_str());
                        continue;
                    }
                    hash.update(stat.st_ino.to_le_bytes());
                    hash.update(stat.st_size.to_le_bytes());
                    hash.update(stat.st_mode.to_le_bytes());
                    hash.update(stat.st_mtime.to_le_bytes());
                    hash.update(stat.st_mtime_nsec.to_le_bytes());
                    hash.update(stat.st_ctime.to_le_bytes());
                    hash.update(stat.st_ctime_nsec.to_le_bytes());
                }
                Some(Sha256Hex::from_bytes(&hash.finalize().into()))
            }
            // A scan covers the paths that are left out too. They may change all the time, and
            // scanning files that are not packed seldom pays.
            Entries::Without(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_choose_entries_by_whole_path_components() {
        let only = PackRules::only(&["wp-admin", "wp-content/themes/x"]);
        for (path, choice) in [
            (&b"wp-admin"[..], Choice::Take),
            (b"wp-admin/a/b", Choice::Take),
            (b"wp-admin2", Choice::LeaveOut),
            (b"wp-content", Choice::OnlyBelow),
            (b"wp-content/themes", Choice::OnlyBelow),
            (b"wp-content/themes/x/y", Choice::Take),
            (b"wp-content/uploads", Choice::LeaveOut),
            (b"wp-config.php", Choice::LeaveOut),
        ] {
            assert_eq!(only.choice(path), choice, "{path:?}");
        }
        let without = PackRules::without(&["a/b".to_owned()]);
        assert_eq!(without.choice(b"a/b/c"), Choice::LeaveOut);
        assert_eq!(without.choice(b"a/bc"), Choice::Take);
        assert_eq!(PackRules::whole().choice(b"a/b"), Choice::Take);
    }
}
