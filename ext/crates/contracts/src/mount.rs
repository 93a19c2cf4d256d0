//! What a caller mounts, where, and how the guest sees it.

use serde::{Deserialize, Serialize};

/// A normalised absolute path inside the guest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GuestPath(String);

/// Why a text is not a guest path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "guest path {text:?} must be absolute, normalised, without `..`, NUL or newline, and at most 4,000 bytes"
)]
pub struct InvalidGuestPath {
    text: String,
}

impl GuestPath {
    /// Accepts an absolute path without empty, `.` or `..` segments; a trailing slash is dropped.
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
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Whether `other` is this path or lies below it.
    #[must_use]
    pub fn contains(&self, other: &GuestPath) -> bool {
        self.0 == "/"
            || other.0 == self.0
            || other
                .0
                .strip_prefix(&self.0)
                .is_some_and(|rest| rest.starts_with('/'))
    }
    /// The last segment; empty for `/`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

impl TryFrom<String> for GuestPath {
    type Error = InvalidGuestPath;
    fn try_from(text: String) -> Result<Self, InvalidGuestPath> {
        Self::new(text)
    }
}
impl From<GuestPath> for String {
    fn from(path: GuestPath) -> String {
        path.0
    }
}
impl std::fmt::Display for GuestPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the guest may do with a mount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MountAccess {
    /// Read only.
    Readonly,
    /// Writable inside the guest; the host directory is never written.
    #[default]
    Readwrite,
}

/// How a mount was materialised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MountView {
    /// Overlay over the host directory itself.
    Overlay,
    /// Overlay over a private copy, because the guest's user does not own every inode.
    Copy,
    /// Shown read-only: at `full` an overlay over the host directory, without an upper layer.
    Bind,
}

/// Which git repository a mount is asked to have in the guest. Never the source's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitChoice {
    /// `baseline` where the source lies in a work tree and the host has git, else `none`.
    #[default]
    Auto,
    /// One commit of what is mounted.
    Baseline,
    /// The real commits, read-only below what the guest writes: everything that was ever
    /// committed, without settings and hooks. For the operator at the shell only.
    History,
    /// No repository.
    None,
}

impl GitChoice {
    /// Every value by its word.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("auto", Self::Auto),
        ("baseline", Self::Baseline),
        ("history", Self::History),
        ("none", Self::None),
    ];
    /// Whether nothing was said.
    #[must_use]
    pub const fn is_auto(&self) -> bool {
        matches!(self, Self::Auto)
    }
}

/// Which git repository a mount had in the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitView {
    /// None.
    None,
    /// One commit of what is mounted, made when git is first used.
    Baseline,
    /// The real commits.
    History,
}

/// One mount as a caller writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountRequest {
    /// Host directory, absolute.
    pub source: String,
    /// Where the guest sees it; below `/workspace` or `/wordpress`.
    pub target: String,
    /// `readonly` or `readwrite` (default).
    #[serde(default)]
    pub mode: MountAccess,
    /// Names left out of the capture, at any depth; default `vendor`-style trees are kept,
    /// `.git` never takes part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Which git repository the guest has of it.
    #[serde(default, skip_serializing_if = "GitChoice::is_auto")]
    pub git: GitChoice,
    /// Free data of the caller, echoed into the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

/// How one mount was shown to the guest, as a result says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MountReport {
    /// Declared target.
    pub target: GuestPath,
    /// How it was materialised.
    pub view: MountView,
    /// Which git repository the guest had of it.
    pub git: GitView,
    /// What the guest did not get of its source.
    pub left_out: LeftOutReport,
}

/// What a guest did not get of a mount's source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutReport {
    /// How many entries.
    pub count: u64,
    /// The first of them.
    pub entries: Vec<LeftOutEntry>,
}

/// One entry of a mount's source that a guest did not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutEntry {
    /// Path below the mount.
    pub path: String,
    /// `git-metadata`, `unreadable`, `symlink-absolute` or `symlink-leaves-mount`.
    pub reason: String,
}

/// One host file made readable in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedFile {
    /// Host file, absolute.
    pub source: String,
    /// Where the guest sees it: below `/workspace` or `/run/codebox/staged`.
    pub target: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_paths() {
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
