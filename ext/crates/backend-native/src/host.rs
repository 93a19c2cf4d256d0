//! What the host's system directories look like, as far as the guest repeats them.
//!
//! `/bin`, `/sbin` and `/lib*` are links into `/usr` on merged systems and directories
//! on others; the guest follows. Probing reads names only, never contents.

use std::path::Path;

/// One top-level system path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemEntry {
    /// Absolute path, e.g. `/lib64`.
    pub path: String,
    /// What it is.
    pub kind: SystemEntryKind,
}

/// What a top-level system path is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemEntryKind {
    /// A directory, shown read-only.
    Directory,
    /// A link; its text.
    Link(String),
}

/// The part of the host that the guest sees read-only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostLayout {
    /// System directories and links, in a fixed order.
    pub system: Vec<SystemEntry>,
    /// Those files and directories of `/etc` that the guest gets and this host has.
    pub etc: Vec<String>,
    /// What stays hidden even below a bound directory.
    pub hidden: Vec<HiddenPath>,
}

/// A canonical host path that no guest may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HiddenPath {
    /// A directory; the guest sees an empty one.
    Directory(String),
    /// A file; the guest sees an empty one.
    File(String),
}

/// Candidates at top level.
const SYSTEM: [&str; 8] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32",
];
/// The only things of the host's `/etc`: program alternatives, the linker's cache, CA certificates.
const ETC: [&str; 6] = [
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
];

impl HostLayout {
    /// Looks at this host.
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
    fn this_host_has_usr_and_no_private_directory() {
        let layout = HostLayout::probe();
        assert_eq!(layout.system[0].path, "/usr");
        assert_eq!(layout.system[0].kind, SystemEntryKind::Directory);
        for entry in &layout.etc {
            assert!(!entry.contains("passwd") && !entry.contains("shadow"));
        }
    }
}
