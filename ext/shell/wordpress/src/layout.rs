//! Determines which files of a WordPress directory belong to the core.
//!
//! A directory or archive of a user can contain a whole site with configuration, uploads and
//! plugins. Only core files get into the cache, which every user of the host may read.

use wp_codebox_backend_native::{CORE_DIRECTORIES, CORE_FILES};

/// Core files in addition to [`CORE_FILES`], which guests do not need: the licence, and the empty
/// pages that prevent directory listings.
const FURTHER_FILES: [&str; 4] = [
    "license.txt",
    "wp-content/index.php",
    "wp-content/plugins/index.php",
    "wp-content/themes/index.php",
];
/// Directory with one directory per theme.
const THEMES: &str = "wp-content/themes";
/// Directories that every cached core gets, even if its source does not have them.
pub(super) const ALWAYS: [&str; 2] = ["wp-content/plugins", THEMES];
/// File at the top of a core that loads WordPress.
pub(super) const LOADER: &str = "wp-load.php";
/// File that states the version of a core.
pub(super) const VERSION_FILE: &str = "wp-includes/version.php";
/// Files that a directory must have to count as a WordPress core for guests.
pub(super) const REQUIRED: [&str; 4] = [
    LOADER,
    VERSION_FILE,
    "wp-settings.php",
    "wp-admin/includes/upgrade.php",
];

/// Selection of the files that are copied or unpacked from a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// All files, for a release: its files are compared with the published checksums afterwards,
    /// and an additional file is an error.
    All,
    /// Only files that belong to core or to a default theme.
    Core,
}

impl Take {
    /// Returns whether the selection contains the file at this path.
    pub(super) fn takes(self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Core => {
                CORE_FILES.contains(&path)
                    || FURTHER_FILES.contains(&path)
                    || CORE_DIRECTORIES.iter().any(|tree| is_below(path, tree))
                    || theme_directory(path).is_some_and(|theme| is_below(path, theme))
            }
        }
    }
}

/// Returns whether a directory of a site can have files that [`Take::Core`] takes.
pub(super) fn enters(path: &str) -> bool {
    Take::Core.takes(path)
        || CORE_DIRECTORIES.contains(&path)
        || ALWAYS
            .iter()
            .any(|tree| path == *tree || is_below(tree, path))
        || theme_directory(path).is_some()
}

/// Returns the directory of the default theme to which a path belongs.
fn theme_directory(path: &str) -> Option<&str> {
    let below = path.strip_prefix(THEMES)?.strip_prefix('/')?;
    let name = below.split('/').next()?;
    // A child theme such as twentytwentyfive-child belongs to the site.
    let letters = name.strip_prefix("twenty")?;
    letters
        .bytes()
        .all(|byte| byte.is_ascii_lowercase())
        .then_some(())?;
    path.get(..THEMES.len() + 1 + name.len())
}

/// Returns whether a path is below a directory.
fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_of_core_files_excludes_all_other_files_of_a_site() {
        for core in [
            "wp-load.php",
            "license.txt",
            "wp-includes/version.php",
            "wp-admin/css/common.css",
            "wp-content/index.php",
            "wp-content/themes/twentytwentyfive/style.css",
        ] {
            assert!(Take::Core.takes(core), "{core}");
        }
        for other in [
            "wp-config.php",
            ".htaccess",
            "dump.sql",
            "wp-load.php.bak",
            "wp-includes-old/a.php",
            "wp-content/uploads/a.jpg",
            "wp-content/plugins/shop/shop.php",
            "wp-content/themes/shop/style.css",
            "wp-content/themes/twentytwentyfive-child/style.css",
            "wp-content/themes/twentytwentyfive",
            "wp-content/mu-plugins/a.php",
        ] {
            assert!(!Take::Core.takes(other), "{other}");
            assert!(Take::All.takes(other), "{other}");
        }
    }

    #[test]
    fn only_directories_that_can_contain_core_files_are_searched() {
        for core in [
            "wp-admin",
            "wp-includes",
            "wp-includes/blocks/code",
            "wp-content",
            "wp-content/plugins",
            "wp-content/themes",
            "wp-content/themes/twentytwentyfive",
            "wp-content/themes/twentytwentyfive/assets",
        ] {
            assert!(enters(core), "{core}");
        }
        for other in [
            "node_modules",
            "wp",
            "wp-content/uploads",
            "wp-content/plugins/shop",
            "wp-content/themes/shop",
            "wp-content/themes/twentytwentyfive-child",
        ] {
            assert!(!enters(other), "{other}");
        }
    }
}
