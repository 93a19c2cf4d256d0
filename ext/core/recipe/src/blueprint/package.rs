//! Plugins and themes that a blueprint installs and a run mounts.

use std::collections::BTreeMap;

/// Whether a package is a plugin or a theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageKind {
    /// A plugin.
    Plugin,
    /// A theme.
    Theme,
}

impl PackageKind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::Theme => "theme",
        }
    }
}

/// Where the files of a package come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageSource {
    /// A directory or zip archive of the host.
    Local(String),
    /// Files in the blueprint itself, by path.
    Files(BTreeMap<String, String>),
}

/// A plugin or theme whose directory the run mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Path of the step in the blueprint.
    pub path: String,
    /// Whether it is a plugin or a theme.
    pub kind: PackageKind,
    /// Name of its directory in the guest.
    pub slug: String,
    /// Where its files come from.
    pub source: PackageSource,
}

impl Package {
    /// Returns the guest path of the package.
    #[must_use]
    pub fn target(&self) -> String {
        format!("/wordpress/wp-content/{}s/{}", self.kind.word(), self.slug)
    }

    /// Returns the directory or archive of the host, if the package comes from one.
    #[must_use]
    pub fn local(&self) -> Option<&str> {
        match &self.source {
            PackageSource::Local(source) => Some(source),
            PackageSource::Files(_) => None,
        }
    }
}
