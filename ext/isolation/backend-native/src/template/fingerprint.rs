//! Key of a WordPress template: names of its source files, and sizes and times of code files.
//!
//! The key does not depend on file contents; only the WordPress version is read, from version.php.
//! Editing a file changes its time and so the key. A copy of a site with equal times and sizes has
//! the same key and uses the same template.

use super::error::TemplateError;
use super::record::{FORMAT, TemplateRequest};
use crate::server::Database;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{IsolationLevel, Sha256Hex};

/// Files of a WordPress root that belong to core. No other file of the root is copied, in
/// particular no wp-config.php.
pub const CORE_FILES: [&str; 14] = [
    "index.php",
    "wp-activate.php",
    "wp-blog-header.php",
    "wp-comments-post.php",
    "wp-config-sample.php",
    "wp-cron.php",
    "wp-links-opml.php",
    "wp-load.php",
    "wp-login.php",
    "wp-mail.php",
    "wp-settings.php",
    "wp-signup.php",
    "wp-trackback.php",
    "xmlrpc.php",
];
/// Directories of a WordPress root that belong to core.
pub const CORE_DIRECTORIES: [&str; 2] = ["wp-admin", "wp-includes"];
/// Buffer size for directory entries in bytes.
const LISTING: usize = 32 * 1024;

/// Key of the template, and facts about its sources that the build needs.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) key: String,
    pub(super) wordpress_version: String,
    pub(super) theme: Option<PathBuf>,
}

/// Files that a share directory must contain: name in error messages and path.
const SHARE: [(&str, &str); 6] = [
    ("guest/install.php", "guest/install.php"),
    ("guest/run-php.php", "guest/run-php.php"),
    ("guest/wp-config.php", "guest/wp-config.php"),
    (
        "mu-plugin/wp-codebox-guest.php",
        "mu-plugin/wp-codebox-guest.php",
    ),
    ("wp-cli.phar", "wp-cli.phar"),
    (
        "sqlite-database-integration/db.copy",
        "sqlite-database-integration/db.copy",
    ),
];

pub(super) fn survey(request: &TemplateRequest<'_>) -> Result<Parts, TemplateError> {
    let wordpress = request.wordpress;
    let not_wordpress = || TemplateError::NotWordPress {
        path: wordpress.to_owned(),
    };
    let version = fs::read_to_string(wordpress.join("wp-includes/version.php"))
        .ok()
        .as_deref()
        .and_then(wp_version)
        .ok_or_else(not_wordpress)?;
    for (file, missing) in SHARE {
        if !request.share_dir.join(file).is_file() {
            return Err(TemplateError::Share {
                path: request.share_dir.to_owned(),
                missing,
            });
        }
    }
    let theme = newest_default_theme(&wordpress.join("wp-content/themes"));
    let mut lines = Lines::default();
    lines.text(&format!("wp-codebox/template/v{FORMAT}"));
    match request.level {
        IsolationLevel::Full => {}
        IsolationLevel::Reduced | IsolationLevel::None => lines.text("reduced"),
    }
    if let Database::MariaDb { program } = request.database {
        lines.text("mariadb");
        lines.text(program);
        // A new release of the server can need a new format of its system tables.
        let program = Path::new(program);
        if let (Some(directory), Some(name)) = (program.parent(), program.file_name()) {
            lines.file(directory, &name.to_string_lossy());
        }
    }
    lines.text(&request.php.version);
    lines.text(&request.php.binary);
    lines.text(&crate::plan::php_ini(request.php));
    for name in CORE_FILES {
        lines.file(wordpress, name);
    }
    for name in CORE_DIRECTORIES {
        lines.tree(&wordpress.join(name))?;
    }
    if let Some(theme) = &theme {
        lines.tree(theme)?;
    }
    for name in ["guest", "mu-plugin", "sqlite-database-integration"] {
        lines.tree(&request.share_dir.join(name))?;
    }
    lines.file(request.share_dir, "wp-cli.phar");
    Ok(Parts {
        key: lines.key(),
        wordpress_version: version,
        theme,
    })
}

/// The lines whose hash is the key. They are sorted first, because directory order is not stable.
#[derive(Default)]
struct Lines {
    lines: Vec<Vec<u8>>,
}

impl Lines {
    fn text(&mut self, text: &str) {
        self.lines.push(text.as_bytes().to_vec());
    }

    fn file(&mut self, directory: &Path, name: &str) {
        use std::os::unix::fs::MetadataExt;
        if let Ok(meta) = fs::metadata(directory.join(name)) {
            let (size, mtime, nsec) = (meta.size(), meta.mtime(), meta.mtime_nsec());
            self.text(&format!("{name}\0{size} {mtime}.{nsec}"));
        }
    }

    /// Adds a line for every regular file below `root`.
    fn tree(&mut self, root: &Path) -> Result<(), TemplateError> {
        let label = root.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        let mut queue = vec![(root.to_owned(), label.to_vec())];
        let mut buffer = Vec::with_capacity(LISTING);
        while let Some((path, label)) = queue.pop() {
            let unreadable = |source: rustix::io::Errno| TemplateError::Unreadable {
                path: path.clone(),
                source: source.into(),
            };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let fd = rustix::fs::open(&path, flags, Mode::empty()).map_err(unreadable)?;
            let mut entries = RawDir::new(&fd, buffer.spare_capacity_mut());
            while let Some(entry) = entries.next() {
                let entry = entry.map_err(unreadable)?;
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b"..") {
                    continue;
                }
                let mut line = label.clone();
                line.push(b'/');
                line.extend_from_slice(name);
                let kind = entry.file_type();
                if kind == FileType::Directory {
                    queue.push((path.join(std::ffi::OsStr::from_bytes(name)), line));
                    continue;
                }
                // Of styles, scripts and images only the names count: they change with a WordPress
                // release, and the release's version.php is checked. This halves the time of
                // finding a cached template.
                if kind == FileType::RegularFile && !is_code(name) {
                    self.lines.push(line);
                    continue;
                }
                let stat = rustix::fs::statat(&fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(unreadable)?;
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::RegularFile => {
                        let rest = format!(
                            "\0{} {}.{}",
                            stat.st_size, stat.st_mtime, stat.st_mtime_nsec
                        );
                        line.extend_from_slice(rest.as_bytes());
                        self.lines.push(line);
                    }
                    // A directory is only seen here if the file system reports no file types in
                    // directory entries.
                    FileType::Directory => {
                        queue.push((path.join(std::ffi::OsStr::from_bytes(name)), line));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn key(mut self) -> String {
        self.lines.sort_unstable();
        let mut hash = Sha256::new();
        for line in &self.lines {
            hash.update((line.len() as u64).to_le_bytes());
            hash.update(line);
        }
        Sha256Hex::from_bytes(&hash.finalize().into())
            .as_str()
            .to_owned()
    }
}

/// Returns whether a program of the guest executes or reads a file with this name, so that its size and time must
/// count.
fn is_code(name: &[u8]) -> bool {
    [&b".php"[..], b".json", b".copy", b".cnf", b".sh", b".sql"]
        .iter()
        .any(|suffix| name.ends_with(suffix))
}

/// Returns the value of `$wp_version` in the text of a version.php.
fn wp_version(text: &str) -> Option<String> {
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with("$wp_version"))?;
    let value = line.split(['\'', '"']).nth(1)?;
    let sane = (1..=64).contains(&value.len())
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b));
    sane.then(|| value.to_owned())
}

/// Returns the newest default theme by the number in its name: `twentytwentyfive` before
/// `twentytwentyfour`.
#[must_use]
pub fn newest_default_theme(themes: &Path) -> Option<PathBuf> {
    const NUMBERS: [&str; 9] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    ];
    let rank = |name: &str| -> Option<usize> {
        let rest = name.strip_prefix("twentytwenty")?;
        match rest {
            "" => Some(0),
            _ => NUMBERS.iter().position(|n| *n == rest).map(|p| p + 1),
        }
    };
    fs::read_dir(themes)
        .ok()?
        .flatten()
        .filter(|entry| entry.path().join("style.css").is_file())
        .filter_map(|entry| Some((rank(entry.file_name().to_str()?)?, entry.path())))
        .max()
        .map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wordpress_version_is_parsed_and_a_malformed_one_is_refused() {
        assert_eq!(
            wp_version("<?php\n$wp_version = '7.1.1';").as_deref(),
            Some("7.1.1")
        );
        assert_eq!(wp_version("<?php\n$wp_version = '../x';"), None);
        assert_eq!(wp_version("<?php"), None);
    }

    #[test]
    fn template_key_changes_with_the_name_size_or_time_of_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("x");
        fs::create_dir_all(root.join("b")).unwrap();
        fs::write(root.join("b/one.js"), "1").unwrap();
        fs::write(root.join("two.php"), "2").unwrap();
        let key = || {
            let mut lines = Lines::default();
            lines.tree(&root).unwrap();
            lines.key()
        };
        let first = key();
        assert_eq!(first, key());
        fs::write(root.join("two.php"), "22").unwrap();
        let second = key();
        assert_ne!(first, second);
        fs::rename(root.join("b/one.js"), root.join("b/three.js")).unwrap();
        let third = key();
        assert_ne!(second, third);
        let earlier = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        let file = fs::File::open(root.join("two.php")).unwrap();
        file.set_times(earlier).unwrap();
        assert_ne!(third, key());
    }

    #[test]
    fn newest_default_theme_that_has_a_stylesheet_is_selected() {
        let temp = tempfile::tempdir().unwrap();
        for name in [
            "twentytwentyfour",
            "twentytwentyfive",
            "zeta",
            "twentynineteen",
        ] {
            fs::create_dir(temp.path().join(name)).unwrap();
            fs::write(temp.path().join(name).join("style.css"), "").unwrap();
        }
        fs::create_dir(temp.path().join("twentytwentynine")).unwrap();
        let theme = newest_default_theme(temp.path()).unwrap();
        assert!(theme.ends_with("twentytwentyfive"));
        assert_eq!(newest_default_theme(&temp.path().join("no")), None);
    }
}
