//! Determines which files a guest changed.
//!
//! The baseline is the overlay's lower directory, the result its upper directory; the cost grows
//! with the number of changes. Without overlays the result is a complete copy
//! ([`capture_difference`]) and the cost grows with its size. Precondition of [`capture`] and
//! [`capture_difference`]: the guest is dead. Invariants: nothing outside baseline and result is
//! opened, only regular files are read, links are never followed, and every omitted entry is
//! listed.

mod budget;
mod difference;
mod emptied;
mod error;
mod layer;
mod left_out;
mod link;
mod mask;
mod scan;
mod shadow;
mod since;
mod tree;
mod upper;

pub(crate) use budget::{Budget, Exceeded, ListError};
pub use difference::capture_difference;
pub use emptied::find_removed_directories;
pub use error::CaptureError;
pub use layer::{LayerError, apply_layer, write_layer};
pub use left_out::LeftOut;
pub use mask::write_mask;
pub use scan::{TreeScan, scan_tree};
pub use shadow::{MergeError, Shadow};
pub use since::changes_since;
pub use tree::{CopyReport, Links, TreeError, copy_tree};
pub use upper::capture;

/// Limits of a capture or scan. Sizes are logical: a sparse file counts in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureLimits {
    /// Maximum number of directory levels.
    pub depth: usize,
    /// Maximum number of visited entries; a capture counts the entries of baseline and result
    /// together.
    pub entries: u64,
    /// Maximum length of one path below the root in bytes; system calls refuse longer paths.
    pub path_bytes: usize,
    /// Maximum size of one file in bytes.
    pub file_bytes: u64,
    /// Maximum total size of all files read, in bytes. A capture also counts the bytes of paths and
    /// link targets.
    pub total_bytes: u64,
}

impl CaptureLimits {
    /// Limits for the complete host directory of a mount, which is scanned or copied but not held
    /// in memory.
    pub const TREE: Self = Self {
        depth: 128,
        entries: 500_000,
        path_bytes: 4095,
        file_bytes: 2 * 1024 * 1024 * 1024,
        total_bytes: 4 * 1024 * 1024 * 1024,
    };
}

impl Default for CaptureLimits {
    /// Returns the limits for a guest's changes, which are held in memory.
    fn default() -> Self {
        Self {
            depth: 64,
            entries: 50_000,
            path_bytes: 4095,
            file_bytes: 64 * 1024 * 1024,
            total_bytes: 256 * 1024 * 1024,
        }
    }
}

/// Entries that a walk skips: by name at any depth, or by path. `.git` and every name that another
/// operating system treats as `.git` are always excluded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExcludeRules {
    names: Vec<String>,
    /// Excluded paths below the tree's root. Scans and copies apply them, captures do not.
    paths: Vec<String>,
}

impl ExcludeRules {
    /// Creates the rules from the `exclude` list of a mount in the request.
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        Self {
            names: names.to_vec(),
            paths: Vec::new(),
        }
    }

    /// Creates rules for a scan or copy: they exclude the entries at these paths, relative to the
    /// root of the tree, with everything below.
    #[must_use]
    pub fn of_paths(paths: &[String]) -> Self {
        Self {
            names: Vec::new(),
            paths: paths.to_vec(),
        }
    }

    /// Returns whether a walk skips the entry with this name and this path relative to the tree's
    /// root.
    #[must_use]
    pub(crate) fn excludes_at(&self, path: &[u8], name: &[u8]) -> bool {
        self.excludes(name) || self.paths.iter().any(|p| p.as_bytes() == path)
    }

    /// Returns whether an entry of this name is excluded.
    #[must_use]
    pub fn excludes(&self, name: &[u8]) -> bool {
        is_git_directory(name) || self.names.iter().any(|n| n.as_bytes() == name)
    }

    /// Returns the excluded names, `.git` first.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        std::iter::once(".git".to_owned())
            .chain(self.names.iter().filter(|n| *n != ".git").cloned())
            .collect()
    }
}

/// Returns whether git on any system treats a name as `.git`: on case-insensitive file systems,
/// on NTFS (`git~1`, trailing dots and spaces, `:stream`) and on HFS+ (which ignores some code
/// points). Git refuses a patch with such a name; another program could apply the patch and thereby
/// create git hooks.
pub(crate) fn is_git_directory(name: &[u8]) -> bool {
    // Fast path, because every walk checks every name. The code points that HFS+ ignores are not
    // ASCII, so a name that starts with one has a first byte of 0x80 or more.
    if !matches!(name.first(), Some(b'.' | b'g' | b'G' | 0x80..)) {
        return false;
    }
    let text = String::from_utf8_lossy(name);
    let seen: String = text.chars().filter(|c| !hfs_ignores(*c)).collect();
    let file = seen.split(':').next().unwrap_or_default();
    let file = file.trim_end_matches(['.', ' ']);
    file.eq_ignore_ascii_case(".git") || file.eq_ignore_ascii_case("git~1")
}

const fn hfs_ignores(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Permission bits as git stores them: executable if any execute bit is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// Not executable: git stores mode 0644.
    Regular,
    /// Executable: git stores mode 0755.
    Executable,
}

impl FileMode {
    /// Converts the mode `st_mode` of a file.
    #[must_use]
    pub const fn from_raw(mode: u32) -> Self {
        if mode & 0o111 == 0 {
            Self::Regular
        } else {
            Self::Executable
        }
    }

    /// Returns the permission bits: 0644 or 0755.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Regular => 0o644,
            Self::Executable => 0o755,
        }
    }
}

/// Type and content of a file system entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Regular file.
    File {
        /// Whether the file is executable.
        mode: FileMode,
        /// Contents of the file.
        bytes: Vec<u8>,
    },
    /// Symbolic link.
    Symlink {
        /// Target of the link, as stored in it.
        target: Vec<u8>,
    },
    /// Empty directory. Directories with entries follow from the paths of their entries.
    Directory,
}

impl Node {
    /// Returns the mode in git's notation: `100644`, `100755`, `120000` or `040000`.
    #[must_use]
    pub const fn git_mode(&self) -> &'static str {
        match self {
            Self::File {
                mode: FileMode::Regular,
                ..
            } => "100644",
            Self::File {
                mode: FileMode::Executable,
                ..
            } => "100755",
            Self::Symlink { .. } => "120000",
            Self::Directory => "040000",
        }
    }

    /// Returns what git stores for the entry: contents of a file or target of a link; `None` for a
    /// directory.
    #[must_use]
    pub fn blob(&self) -> Option<&[u8]> {
        match self {
            Self::File { bytes, .. } => Some(bytes),
            Self::Symlink { target } => Some(target),
            Self::Directory => None,
        }
    }
}

/// Change of the entry at one path, from before the run to after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The path had no entry before the run: it did not exist, or it was a directory with entries.
    /// Such a directory has no entry of its own and follows from the paths of its entries.
    Added(Node),
    /// The entry existed before, and its bytes, mode or type differ now.
    Modified {
        /// The entry before the run.
        before: Node,
        /// The entry after the run.
        after: Node,
    },
    /// The entry existed before and does not exist now.
    Deleted(Node),
}

impl Change {
    /// Returns the entry before the run; `None` for an added one.
    #[must_use]
    pub const fn before(&self) -> Option<&Node> {
        match self {
            Self::Added(_) => None,
            Self::Modified { before, .. } => Some(before),
            Self::Deleted(node) => Some(node),
        }
    }

    /// Returns the entry after the run; `None` for a deleted one.
    #[must_use]
    pub const fn after(&self) -> Option<&Node> {
        match self {
            Self::Added(node) => Some(node),
            Self::Modified { after, .. } => Some(after),
            Self::Deleted(_) => None,
        }
    }
}

/// One changed path and its change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryChange {
    /// Path below the mount: `/`-separated bytes, not necessarily UTF-8.
    pub path: Vec<u8>,
    /// What changed at the path.
    pub change: Change,
}

/// Reason why a capture or scan left a path out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OmitReason {
    /// A symbolic link with an absolute target.
    AbsoluteSymlink,
    /// A symbolic link with a target outside the mount, or with `..` after a name.
    EscapingSymlink,
    /// FIFO, socket or device.
    SpecialFile,
    /// An entry whose name the mount's `exclude` list contains; in a capture also an entry with a
    /// name that git treats as `.git`.
    Excluded,
    /// An entry with a name that git treats as `.git`, in a scan or copy.
    GitMetadata,
    /// A directory that cannot be read or is a mount point, or an entry without readable
    /// attributes.
    Unreadable,
}

impl OmitReason {
    /// Returns the reason as text for documents, e.g. `artifact-excluded`; later versions keep the
    /// texts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AbsoluteSymlink => "symlink-absolute",
            Self::EscapingSymlink => "symlink-leaves-mount",
            Self::SpecialFile => "special-file",
            Self::Excluded => "artifact-excluded",
            Self::GitMetadata => "git-metadata",
            Self::Unreadable => "unreadable",
        }
    }
}

/// A path that a capture or scan left out, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// Path relative to the mount.
    pub path: Vec<u8>,
    /// Why the path was left out.
    pub reason: OmitReason,
}

/// All changes of one mount.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountChanges {
    /// Changed entries, sorted by path bytes; each path occurs once.
    pub entries: Vec<EntryChange>,
    /// Paths left out of the capture, sorted by path bytes. Changes at these paths are ignored, as
    /// if the baseline's entries were still there.
    pub omitted: Vec<Omitted>,
    /// Directories of the baseline that no longer exist, sorted. Their former contents are in
    /// `entries`.
    pub removed_directories: Vec<Vec<u8>>,
}
