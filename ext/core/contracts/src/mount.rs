//! Mounts: host directories, their paths in the guest, and how the guest sees them.

use serde::{Deserialize, Serialize};

/// Guest directories of the system and of this product. The launch plan fills them itself, so no
/// mount or staged file may lie in them.
pub const GUEST_SYSTEM: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt/agents",
    "/opt/codebox",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
];

/// A normalised absolute path inside the guest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GuestPath(String);

/// Error for a text that is not a valid guest path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "guest path {text:?} must be absolute, normalised, without `..`, backslash, NUL or newline, and at most 4,000 bytes"
)]
pub struct InvalidGuestPath {
    text: String,
}

impl GuestPath {
    /// Accepts an absolute path of at most 4,000 bytes without empty, `.` or `..` segments and
    /// without backslash, NUL or newline. Trailing slashes are removed.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidGuestPath> {
        let mut text: String = text.into();
        while text.len() > 1 && text.ends_with('/') {
            text.pop();
        }
        let clean = text.starts_with('/')
            && text.len() <= 4000
            && !text.contains(['\0', '\n', '\\'])
            && (text == "/" || text[1..].split('/').all(|s| !matches!(s, "" | "." | "..")));
        if clean {
            Ok(Self(text))
        } else {
            Err(InvalidGuestPath { text })
        }
    }
    /// Returns whether `other` is this path or lies below it.
    #[must_use]
    pub fn contains(&self, other: &GuestPath) -> bool {
        self.0 == "/"
            || other.0 == self.0
            || other
                .0
                .strip_prefix(&self.0)
                .is_some_and(|rest| rest.starts_with('/'))
    }
    /// Returns the last segment; empty for `/`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

crate::checked_text!(GuestPath, InvalidGuestPath);

/// Whether the guest may write to a mount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MountAccess {
    /// The guest may only read the mount.
    Readonly,
    /// Writable inside the guest; the supervisor never writes to the host directory.
    #[default]
    Readwrite,
}

/// How the guest gets the contents of a mounted host directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MountView {
    /// Overlay with the host directory as lower directory.
    Overlay,
    /// Overlay with a private copy as lower directory; used if the guest's user does not own every
    /// inode of the host directory.
    Copy,
    /// Read-only. At level `full` an overlay without an upper directory, with the host directory as
    /// lower directory.
    Bind,
}

/// Git repository that a mount gets in the guest. The guest never sees the `.git` of the host
/// directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitChoice {
    /// `baseline` if the source lies in a git work tree and the host has git, otherwise `none`.
    #[default]
    Auto,
    /// A new repository with one commit of the mounted files.
    Baseline,
    /// A repository with all commits of the host's repository, as a read-only object store;
    /// objects that the guest creates are stored separately. It has none of the host's git
    /// configuration and hooks. Only the operator on the command line may request this.
    History,
    /// The mount gets no repository.
    None,
}

impl GitChoice {
    /// Every value with its name in JSON and on the command line.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("auto", Self::Auto),
        ("baseline", Self::Baseline),
        ("history", Self::History),
        ("none", Self::None),
    ];
    /// Returns whether this is the default value.
    #[must_use]
    pub const fn is_auto(&self) -> bool {
        matches!(self, Self::Auto)
    }
}

/// Git repository that a mount had in the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitView {
    /// No repository.
    None,
    /// A repository with one commit of the mounted files, created when git is first used.
    Baseline,
    /// A repository with all commits of the host's repository.
    History,
}

/// One mount as a caller requests it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountRequest {
    /// Absolute path of the host directory.
    pub source: String,
    /// Path of the mount in the guest: below `/workspace`, `/wordpress/wp-content` or `/tmp`, or a
    /// directory of its own; no path of the system or the runtime.
    pub target: String,
    /// Whether the guest may write to the mount: `readonly` or `readwrite` (default).
    #[serde(default)]
    pub mode: MountAccess,
    /// Names of files and directories, at any depth, whose changes are not captured. Changes in
    /// `.git` are never captured; changes in directories such as `vendor` are, unless listed here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Git repository that the mount gets in the guest.
    #[serde(default, skip_serializing_if = "GitChoice::is_auto")]
    pub git: GitChoice,
    /// Free-form data from the caller, copied into the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

/// How the guest saw one mount, as part of the run result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MountReport {
    /// Path of the mount in the guest, as the caller declared it.
    pub target: GuestPath,
    /// How the guest got the contents of the host directory.
    pub view: MountView,
    /// Git repository that the mount had in the guest.
    pub git: GitView,
    /// Entries of the source that the guest could not see or follow.
    pub left_out: LeftOutReport,
}

/// Entries of a mount's source that the guest could not see, and symbolic links that it could not
/// follow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutReport {
    /// Number of entries that the guest could not see or follow.
    pub count: u64,
    /// The entries that the guest could not see or follow; only the first ones, if there are many.
    pub entries: Vec<LeftOutEntry>,
}

/// One entry of a mount's source that the guest could not see or follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutEntry {
    /// Path of the entry relative to the mount.
    pub path: String,
    /// Why the guest could not see or follow it: `git-metadata`, `unreadable`,
    /// `symlink-absolute` or `symlink-leaves-mount`.
    pub reason: String,
}

/// One host file that the guest may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedFile {
    /// Absolute path of the file on the host.
    pub source: String,
    /// Path of the file in the guest: below `/run/codebox/staged`, or where a mount may lie.
    pub target: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_guest_path_or_one_with_empty_or_dot_parts_is_refused_and_a_final_slash_removed() {
        for bad in [
            "", "a", "/a/../b", "/a//b", "/./a", "/a\nb", "/a\\b", "/a\0",
        ] {
            assert!(GuestPath::new(bad).is_err(), "{bad:?}");
        }
        let a = GuestPath::new("/workspace/a/").unwrap();
        assert_eq!(a.as_str(), "/workspace/a");
        assert!(a.contains(&GuestPath::new("/workspace/a/b").unwrap()));
        assert!(!a.contains(&GuestPath::new("/workspace/ab").unwrap()));
        assert!(GuestPath::new("/").unwrap().contains(&a));
    }
}
