//! What a guest changed: trees in, a list of changes out.
//!
//! The baseline is the overlay's lower directory, the result its upper directory;
//! cost follows the number of changes. Where there are no overlays the result is a whole
//! copy ([`capture_difference`]) and cost follows its size. Preconditions: the guest is
//! dead before either is called. Invariants: nothing outside the two directories is ever
//! opened, only regular files are read, links are never followed, and everything
//! left out is listed.

mod budget;
mod difference;
mod error;
mod layer;
mod left_out;
mod link;
mod mask;
mod scan;
mod tree;
mod upper;

pub(crate) use budget::{Budget, Exceeded, ListError};
pub use difference::capture_difference;
pub use error::CaptureError;
pub use layer::{LayerError, lay_over, write_layer};
pub use left_out::LeftOut;
pub use mask::write_mask;
pub use scan::{TreeScan, scan_tree};
pub use tree::{CopyReport, Links, TreeError, copy_tree};
pub use upper::capture;

/// Bounds of a capture or scan. Sizes are logical: a sparse file counts in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureLimits {
    /// Deepest directory level.
    pub depth: usize,
    /// Entries visited, both sides together.
    pub entries: u64,
    /// Bytes of one path below the root; longer ones no single system call takes.
    pub path_bytes: usize,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all files read; in a capture those of paths and links, too.
    pub total_bytes: u64,
}

impl CaptureLimits {
    /// Bounds for a whole mount source, which is scanned or copied but not held in memory.
    pub const TREE: Self = Self {
        depth: 128,
        entries: 500_000,
        path_bytes: 4095,
        file_bytes: 2 * 1024 * 1024 * 1024,
        total_bytes: 4 * 1024 * 1024 * 1024,
    };
}

impl Default for CaptureLimits {
    /// Bounds for a change set, which is held in memory.
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

/// Names that take no part, at any depth. `.git` never does, nor what another system takes for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExcludeRules {
    names: Vec<String>,
    /// Whole paths from the root of a tree, which only its walk knows.
    paths: Vec<String>,
}

impl ExcludeRules {
    /// Rules from a mount's `exclude` list.
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        Self {
            names: names.to_vec(),
            paths: Vec::new(),
        }
    }

    /// Rules that leave these paths below the root out, with all below them: for a copy of a
    /// tree.
    #[must_use]
    pub fn of_paths(paths: &[String]) -> Self {
        Self {
            names: Vec::new(),
            paths: paths.to_vec(),
        }
    }

    /// Whether an entry at this path from the root is left out of a walk of its tree.
    #[must_use]
    pub(crate) fn excludes_at(&self, path: &[u8], name: &[u8]) -> bool {
        self.excludes(name) || self.paths.iter().any(|p| p.as_bytes() == path)
    }

    /// Whether an entry of this name is left out.
    #[must_use]
    pub fn excludes(&self, name: &[u8]) -> bool {
        is_git_directory(name) || self.names.iter().any(|n| n.as_bytes() == name)
    }

    /// The names, `.git` first.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        std::iter::once(".git".to_owned())
            .chain(self.names.iter().filter(|n| *n != ".git").cloned())
            .collect()
    }
}

/// Whether a name is `.git` to git on any system: on one that ignores case, on NTFS (`git~1`,
/// dots and spaces at the end, `:stream`) and on HFS+ (which ignores some code points). Git
/// refuses such names; a patch that carried one could not be applied, or would write hooks there.
pub(crate) fn is_git_directory(name: &[u8]) -> bool {
    // Every walk asks for every name; what HFS+ ignores is not ASCII.
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

/// Permission bits as git knows them: executable if any execute bit is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// 0644.
    Regular,
    /// 0755.
    Executable,
}

impl FileMode {
    /// From `st_mode`.
    #[must_use]
    pub const fn from_raw(mode: u32) -> Self {
        if mode & 0o111 == 0 {
            Self::Regular
        } else {
            Self::Executable
        }
    }

    /// Permission bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Regular => 0o644,
            Self::Executable => 0o755,
        }
    }
}

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Regular file.
    File {
        /// Permission bits.
        mode: FileMode,
        /// Contents.
        bytes: Vec<u8>,
    },
    /// Symbolic link.
    Symlink {
        /// Link text.
        target: Vec<u8>,
    },
    /// Empty directory. Directories with entries exist through those.
    Directory,
}

impl Node {
    /// `100644`, `100755`, `120000` or `040000`.
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

    /// What git calls the blob: contents or link text; none for a directory.
    #[must_use]
    pub fn blob(&self) -> Option<&[u8]> {
        match self {
            Self::File { bytes, .. } => Some(bytes),
            Self::Symlink { target } => Some(target),
            Self::Directory => None,
        }
    }
}

/// What happened to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It did not exist, or was a directory with entries.
    Added(Node),
    /// It existed and differs in bytes, mode or type.
    Modified {
        /// Before.
        before: Node,
        /// After.
        after: Node,
    },
    /// It exists no more.
    Deleted(Node),
}

impl Change {
    /// The node before.
    #[must_use]
    pub const fn before(&self) -> Option<&Node> {
        match self {
            Self::Added(_) => None,
            Self::Modified { before, .. } => Some(before),
            Self::Deleted(node) => Some(node),
        }
    }

    /// The node after.
    #[must_use]
    pub const fn after(&self) -> Option<&Node> {
        match self {
            Self::Added(node) => Some(node),
            Self::Modified { after, .. } => Some(after),
            Self::Deleted(_) => None,
        }
    }
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryChange {
    /// Path below the mount: `/`-separated bytes, not necessarily UTF-8.
    pub path: Vec<u8>,
    /// What happened.
    pub change: Change,
}

/// Why a path was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OmitReason {
    /// A symbolic link with an absolute target.
    AbsoluteSymlink,
    /// A symbolic link that leads out of the mount, or has `..` after a name.
    EscapingSymlink,
    /// FIFO, socket or device.
    SpecialFile,
    /// Excluded by name.
    Excluded,
    /// What git takes for its own directory or file.
    GitMetadata,
    /// A directory that cannot be looked into, or on which something is mounted.
    Unreadable,
}

impl OmitReason {
    /// Stable text.
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

/// A path that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// Path below the mount.
    pub path: Vec<u8>,
    /// Why.
    pub reason: OmitReason,
}

/// All changes of one mount.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountChanges {
    /// Sorted by path bytes; a path occurs once.
    pub entries: Vec<EntryChange>,
    /// Left out, sorted by path bytes. The baseline's node stays in force there.
    pub omitted: Vec<Omitted>,
    /// Directories of the baseline that exist no more, sorted; their former contents are in `entries`.
    pub removed_directories: Vec<Vec<u8>>,
}
