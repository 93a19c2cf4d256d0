//! Layout of the host's system directories, which the guest gets at the same paths.
//!
//! `/bin`, `/sbin` and `/lib*` are symbolic links into `/usr` on merged-usr systems and directories
//! on others; the guest gets the same layout. Probing reads names only, never file contents.

use std::path::Path;

/// A system path at the top level of the host, such as `/usr` or `/lib64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemEntry {
    /// Absolute path, e.g. `/lib64`.
    pub path: String,
    /// Whether the path is a directory or a symbolic link.
    pub kind: SystemEntryKind,
}

/// What a top-level system path is on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemEntryKind {
    /// A directory; the guest sees it read-only.
    Directory,
    /// A symbolic link with its target; the guest gets the same link.
    Link(String),
}

/// The part of the host that the guest sees read-only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostLayout {
    /// System directories and symbolic links, in a fixed order.
    pub system: Vec<SystemEntry>,
    /// Files and directories of `/etc` that exist on this host and are shown in the guest.
    pub etc: Vec<String>,
    /// Paths that guests must not see, even below a directory that they see.
    pub hidden: Vec<HiddenPath>,
}

/// A canonical host path that no guest may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HiddenPath {
    /// A directory; the guest sees an empty directory in its place.
    Directory(String),
    /// A file; the guest sees an empty file in its place.
    File(String),
}

/// Top-level paths that the guest gets if they exist on the host.
const SYSTEM: [&str; 8] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32",
];
/// Entries of the host's `/etc` that a guest gets: program alternatives, the linker's cache, CA
/// certificates and OpenSSL's settings.
const ETC: [&str; 6] = [
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
];

impl HostLayout {
    /// Reads from the file system which system paths this host has.
    #[must_use]
    pub fn probe() -> Self {
        let mut layout = Self::default();
        for path in SYSTEM {
            let Ok(meta) = std::fs::symlink_metadata(path) else {
                continue;
            };
            let kind = if meta.is_symlink() {
                match std::fs::read_link(path).map(|to| to.to_str().map(str::to_owned)) {
                    Ok(Some(to)) => SystemEntryKind::Link(to),
                    _ => continue,
                }
            } else if meta.is_dir() {
                SystemEntryKind::Directory
            } else {
                continue;
            };
            layout.system.push(SystemEntry {
                path: path.to_owned(),
                kind,
            });
        }
        layout.etc = ETC
            .iter()
            .filter(|path| Path::new(path).exists())
            .map(|path| (*path).to_owned())
            .collect();
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_layout_starts_with_usr_and_contains_no_passwd_or_shadow() {
        let layout = HostLayout::probe();
        assert_eq!(layout.system[0].path, "/usr");
        assert_eq!(layout.system[0].kind, SystemEntryKind::Directory);
        for entry in &layout.etc {
            assert!(!entry.contains("passwd") && !entry.contains("shadow"));
        }
    }
}
