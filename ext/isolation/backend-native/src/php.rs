//! The host's PHP installation, which the guest uses: paths, and extensions in load order.
//!
//! The guest gets no `/etc/php`: its php.ini is generated, so it must name the extensions that the
//! host's scan directory would load. This project's own extension, debuggers and coverage drivers
//! are left out. The result is cached in the state directory, keyed by its inputs.

use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wp_codebox_contracts::CodedError;

/// Extensions that a guest never loads: this project's own, and tools that change how PHP runs.
const EXCLUDED: [&str; 4] = ["wp_codebox", "xdebug", "pcov", "ddtrace"];
/// Extension with which WordPress connects to MariaDB.
const MYSQL: &str = "mysqli";
/// Path prefixes allowed for PHP; the guest sees these directories read-only.
const PREFIXES: [&str; 4] = ["/usr/", "/bin/", "/opt/", "/lib/"];
/// Guest directory of the generated php.ini of a PHP with [`VisibleSettings`].
pub(crate) const SETTINGS: &str = "/run/codebox/php";
/// Format version of the cached settings.
const FORMAT: u32 = 3;
/// PHP code that prints the installation's settings, one non-empty value per line.
const QUESTION: &str = "echo implode(\"\\n\", [PHP_VERSION, PHP_CONFIG_FILE_PATH, \
    PHP_CONFIG_FILE_SCAN_DIR, ini_get('extension_dir'), (string) php_ini_loaded_file(), \
    str_replace([\"\\n\", ' '], '', (string) php_ini_scanned_files()), \
    strtolower(implode(',', get_loaded_extensions())), PHP_ZTS]);";

/// A line of php.ini that loads an extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhpExtension {
    /// Value of the line: a name, a file name or a path.
    pub file: String,
    /// Whether the line is `zend_extension` instead of `extension`.
    pub zend: bool,
}

/// Configuration of a PHP whose ini files lie in a directory that guests see, such as
/// `/usr/local/etc/php` of the official container images. The guest's php.ini replaces all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisibleSettings {
    /// Directory from which this PHP reads all ini files.
    pub scan_directory: String,
    /// Path of the host's php.ini; `None` if there is none.
    pub main_file: Option<String>,
}

/// PHP command and settings of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhpLayout {
    /// Canonical path of the program; the same in the guest.
    pub binary: String,
    /// Version as PHP reports it (`PHP_VERSION`).
    pub version: String,
    /// Directory in which this PHP looks for php.ini.
    pub ini_directory: String,
    /// Configuration that the guest would see; `None` if it lies outside the system directories, for
    /// example in `/etc/php`.
    pub visible: Option<VisibleSettings>,
    /// Directory of the extensions.
    pub extension_dir: String,
    /// Extensions that the guest's PHP loads, in load order.
    pub extensions: Vec<PhpExtension>,
    /// Names in lower case of all extensions of the host's PHP, also of those compiled into it.
    pub loaded: Vec<String>,
}

/// Reason why the configured PHP cannot be used in guests.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(ConfigInvalid)]
pub enum PhpError {
    /// The path does not lead to a readable file.
    #[error(
        "PHP {path:?} does not exist or cannot be read: install PHP 8.2 or newer with SQLite (Debian: apt-get install php-cli php-sqlite3), or name an installed PHP with --php or wp_codebox.php_binary"
    )]
    Missing {
        /// Path as given.
        path: PathBuf,
        /// Error of opening the path.
        source: std::io::Error,
    },
    /// The path lies outside the directories that guests see.
    #[error(
        "PHP {path:?} lies outside /usr, /bin, /lib and /opt, where a guest cannot see it; choose a PHP in one of these directories"
    )]
    Outside {
        /// Path of the PHP program after resolving symbolic links.
        path: PathBuf,
    },
    /// The program did not print its settings.
    #[error(
        "PHP {path:?} did not print its settings ({detail}); check that `php -v` works for this user"
    )]
    Silent {
        /// Path of the PHP program after resolving symbolic links.
        path: PathBuf,
        /// Exit status of the program, or what its output lacks.
        detail: String,
    },
    /// The version of PHP is older than the product supports.
    #[error("PHP {version} is too old; set wp_codebox.php_binary or --php to PHP 8.2 or newer")]
    TooOld {
        /// Version that PHP reported.
        version: String,
    },
    /// Guests would use the host's configuration.
    #[error(
        "PHP {binary} reads its configuration from {ini_directory}, which guests see, and has no directory of further ini files that a guest could replace; create {scan_directory:?}, or choose another PHP with --php or wp_codebox.php_binary"
    )]
    Unreplaceable {
        /// Path of the PHP program.
        binary: String,
        /// Directory in which PHP looks for php.ini.
        ini_directory: String,
        /// Directory of further ini files as PHP reports it; empty if it has none.
        scan_directory: String,
    },
    /// PHP is built with thread safety.
    #[error(
        "PHP {binary} is a thread-safe build (ZTS), which is not supported; choose a PHP without thread safety (NTS), such as Debian's php-cli, with --php or wp_codebox.php_binary"
    )]
    ThreadSafe {
        /// Path of the PHP program.
        binary: String,
    },
    /// PHP has no extension for the database that the guest's WordPress shall use.
    #[error(
        "PHP {binary} has no extension {MYSQL}, which WordPress needs for the service mysql: install the package {package} (Debian: apt-get install {package}), or choose another PHP with --php"
    )]
    #[code(SandboxStartFailed)]
    NoMysql {
        /// Path of the PHP program.
        binary: String,
        /// Debian package with the extension.
        package: String,
    },
}

/// Sizes and times of the files on which the cached PHP settings depend. If they differ from the
/// current ones, the cache is outdated and not used.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Basis {
    binary: Vec<i64>,
    scan_directory: Vec<i64>,
    ini_files: Vec<Vec<i64>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Cached {
    format: u32,
    scan_path: String,
    ini_paths: Vec<String>,
    basis: Basis,
    layout: PhpLayout,
}

impl PhpLayout {
    /// Asks the program `php_binary` for its settings, or returns those cached below `state_dir` if
    /// neither the program nor its configuration has changed. Only the owner of `state_dir` writes the
    /// cache; a failure to write it is ignored.
    pub fn discover(php_binary: &Path, state_dir: &Path) -> Result<Self, PhpError> {
        let missing = |source| PhpError::Missing {
            path: php_binary.to_owned(),
            source,
        };
        let binary = fs::canonicalize(php_binary).map_err(missing)?;
        fs::metadata(&binary).map_err(missing)?;
        let text = binary
            .to_str()
            .filter(|_| readable_in_guests(&binary))
            .ok_or_else(|| PhpError::Outside {
                path: binary.clone(),
            })?;
        let cache = state_dir.join("cache").join(cache_name(text));
        if let Some(layout) = read_cache(&cache, text) {
            return Ok(layout);
        }
        let (layout, scan_path, ini_paths) = ask(&binary, text)?;
        let cached = Cached {
            format: FORMAT,
            basis: basis(text, &scan_path, &ini_paths),
            scan_path,
            ini_paths,
            layout,
        };
        write_cache(state_dir, &cache, &cached);
        Ok(cached.layout)
    }

    /// Checks that this PHP can connect to the database of a guest.
    pub fn check_mysql(&self) -> Result<(), PhpError> {
        if self.loaded.iter().any(|name| name == MYSQL) {
            return Ok(());
        }
        let mut parts = self.version.split('.');
        let (major, minor) = (parts.next(), parts.next());
        Err(PhpError::NoMysql {
            binary: self.binary.clone(),
            package: format!(
                "php{}.{}-mysql",
                major.unwrap_or_default(),
                minor.unwrap_or_default()
            ),
        })
    }

    /// Returns the guest's directory of the generated php.ini.
    pub(crate) fn guest_ini_directory(&self) -> &str {
        match self.visible {
            Some(_) => SETTINGS,
            None => &self.ini_directory,
        }
    }

    /// Returns the directory below `/opt` that must be mounted for this PHP, for example
    /// `/opt/php83`; `None` if PHP lies in a system directory.
    #[must_use]
    pub fn extra_root(&self) -> Option<String> {
        let rest = self.binary.strip_prefix("/opt/")?;
        let first = rest.split('/').next().filter(|first| !first.is_empty())?;
        (first != "codebox").then(|| format!("/opt/{first}"))
    }
}

/// Returns whether guests see the file at a path without symbolic links.
pub(crate) fn readable_in_guests(real: &Path) -> bool {
    PREFIXES.iter().any(|prefix| real.starts_with(prefix))
}

/// Returns whether guests can use a version of PHP.
pub(crate) fn supported(version: (u32, u32)) -> bool {
    version >= (8, 2)
}

fn cache_name(binary: &str) -> String {
    format!("php-{}.json", binary.trim_matches('/').replace('/', "-"))
}

fn stamp(path: &str) -> Vec<i64> {
    fs::metadata(path).map_or_else(
        |_| Vec::new(),
        |meta| {
            vec![
                i64::try_from(meta.size()).unwrap_or(i64::MAX),
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec(),
            ]
        },
    )
}

fn basis(binary: &str, scan_path: &str, ini_paths: &[String]) -> Basis {
    Basis {
        binary: stamp(binary),
        scan_directory: stamp(scan_path),
        ini_files: ini_paths.iter().map(|path| stamp(path)).collect(),
    }
}

fn read_cache(cache: &Path, binary: &str) -> Option<PhpLayout> {
    let cached: Cached = serde_json::from_slice(&fs::read(cache).ok()?).ok()?;
    let fresh = cached.format == FORMAT
        && cached.layout.binary == binary
        && cached.basis == basis(binary, &cached.scan_path, &cached.ini_paths);
    fresh.then_some(cached.layout)
}

fn write_cache(state_dir: &Path, cache: &Path, cached: &Cached) {
    let user = rustix::process::geteuid().as_raw();
    if fs::metadata(state_dir).map_or(true, |meta| meta.uid() != user) {
        return;
    }
    let (Ok(bytes), Some(directory)) = (serde_json::to_vec(cached), cache.parent()) else {
        return;
    };
    let temporary = cache.with_extension(format!("{}.tmp", std::process::id()));
    // A failure to write the cache only makes the next run ask PHP again, which takes 20 ms.
    let _ = fs::create_dir_all(directory)
        .and_then(|()| fs::write(&temporary, bytes))
        .and_then(|()| fs::rename(&temporary, cache));
}

fn ask(binary: &Path, text: &str) -> Result<(PhpLayout, String, Vec<String>), PhpError> {
    let silent = |detail: String| PhpError::Silent {
        path: binary.to_owned(),
        detail,
    };
    let output = Command::new(binary)
        .args(["-d", "display_errors=0", "-r", QUESTION])
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| silent(error.to_string()))?;
    if !output.status.success() {
        return Err(silent(output.status.to_string()));
    }
    let answer = String::from_utf8(output.stdout)
        .map_err(|_| silent("its answer is not UTF-8".to_owned()))?;
    let mut lines = answer.split('\n').map(str::to_owned);
    let mut next = || {
        lines
            .next()
            .ok_or_else(|| silent("its answer is incomplete".to_owned()))
    };
    let (version, ini_directory, scan_path) = (next()?, next()?, next()?);
    let (extension_dir, main_ini, scanned) = (next()?, next()?, next()?);
    let loaded = next()?.split(',').map(str::to_owned).collect();
    if !recent(&version) {
        return Err(PhpError::TooOld { version });
    }
    // PHP_ZTS is 0 or 1 up to PHP 8.3, and false or true, printed as an empty text or 1, in PHP 8.4.
    if next()? == "1" {
        return Err(PhpError::ThreadSafe {
            binary: text.to_owned(),
        });
    }
    let visible = visible_settings(text, &ini_directory, &scan_path, &main_ini)?;
    let ini_paths: Vec<String> = std::iter::once(main_ini.as_str())
        .chain(scanned.split(','))
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect();
    let extensions = ini_paths
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .flat_map(|bytes| extension_lines(&String::from_utf8_lossy(&bytes)))
        .collect();
    let layout = PhpLayout {
        binary: text.to_owned(),
        version,
        ini_directory,
        visible,
        extension_dir,
        extensions,
        loaded,
    };
    Ok((layout, scan_path, ini_paths))
}

/// Returns the configuration that guests see, or `None` if they see none of it.
fn visible_settings(
    binary: &str,
    ini_directory: &str,
    scan_directory: &str,
    main_file: &str,
) -> Result<Option<VisibleSettings>, PhpError> {
    if !readable_in_guests(Path::new(ini_directory)) {
        return Ok(None);
    }
    let scan = Path::new(scan_directory);
    if !scan.is_dir() || !readable_in_guests(scan) {
        return Err(PhpError::Unreplaceable {
            binary: binary.to_owned(),
            ini_directory: ini_directory.to_owned(),
            scan_directory: scan_directory.to_owned(),
        });
    }
    Ok(Some(VisibleSettings {
        scan_directory: scan_directory.to_owned(),
        main_file: readable_in_guests(Path::new(main_file)).then(|| main_file.to_owned()),
    }))
}

fn recent(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => supported((major, minor)),
        _ => false,
    }
}

/// Returns the extensions that one ini file of the host loads, without those excluded from guests.
fn extension_lines(text: &str) -> Vec<PhpExtension> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter_map(|(key, value)| {
            let zend = match key.trim() {
                "extension" => false,
                "zend_extension" => true,
                _ => return None,
            };
            let file = value
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .trim_matches(['"', '\'']);
            let stem = file.rsplit('/').next().unwrap_or(file);
            let stem = stem.strip_suffix(".so").unwrap_or(stem);
            let plain = file
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/'));
            let keep = plain
                && !stem.is_empty()
                && !EXCLUDED
                    .iter()
                    .any(|name| stem == *name || stem == format!("lib{name}"));
            keep.then(|| PhpExtension {
                file: file.to_owned(),
                zend,
            })
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use wp_codebox_contracts::ErrorCode;

    /// Writes an executable script with another process: while this one had it open for writing, a
    /// child of another test could keep it open, and the kernel would not execute it (ETXTBSY).
    pub(crate) fn script(path: &Path, text: &str) {
        let write = "printf %s \"$1\" >\"$2\" && chmod 0755 \"$2\"";
        let mut shell = Command::new("/bin/sh");
        let status = shell.args(["-c", write, "sh", text]).arg(path).status();
        assert!(status.unwrap().success());
    }

    #[test]
    fn php_extensions_keep_their_order_and_exclude_wp_codebox_and_debuggers() {
        let text = "; extension=no\nextension=pdo.so\n zend_extension = \"opcache.so\" ; x\n\
            extension=/a/libwp_codebox.so\nextension=wp_codebox\nzend_extension=xdebug\n\
            extension_dir=/x\nextension=mysqli";
        let found: Vec<_> = extension_lines(text)
            .into_iter()
            .map(|e| (e.file, e.zend))
            .collect();
        assert_eq!(
            found,
            [
                ("pdo.so".to_owned(), false),
                ("opcache.so".to_owned(), true),
                ("mysqli".to_owned(), false)
            ]
        );
    }

    #[test]
    fn configuration_that_guests_see_must_have_a_directory_that_a_guest_can_replace() {
        let of =
            |ini: &str, scan: &str, main: &str| visible_settings("/usr/bin/php", ini, scan, main);
        assert_eq!(of("/etc/php/8.2/cli", "", "").unwrap(), None);
        let visible = of("/usr/share", "/usr/share/doc", "/usr/share/php.ini").unwrap();
        assert_eq!(
            visible,
            Some(VisibleSettings {
                scan_directory: "/usr/share/doc".to_owned(),
                main_file: Some("/usr/share/php.ini".to_owned()),
            })
        );
        let without = of("/usr/share", "/usr/share/doc", "").unwrap();
        assert_eq!(without.unwrap().main_file, None);
        for scan in ["", "/usr/share/no-such-directory", "/etc"] {
            let error = of("/usr/local/lib", scan, "").unwrap_err();
            assert_eq!(error.code(), ErrorCode::ConfigInvalid, "{scan}");
            assert!(error.to_string().contains("/usr/local/lib"), "{error}");
        }
    }

    #[test]
    fn thread_safe_php_is_refused_by_name() {
        // No thread-safe PHP is at hand: a script prints what one prints.
        let state = tempfile::tempdir().unwrap();
        let program = state.path().join("php");
        for (zts, refused) in [("0", false), ("", false), ("1", true)] {
            let answer = ["8.4.1", "/etc/php", "", "/usr/lib/php", "", "", "core", zts].join("\\n");
            script(&program, &format!("#!/bin/sh\nprintf '{answer}'\n"));
            let asked = ask(&program, "/usr/bin/php-zts");
            match asked {
                Ok(_) => assert!(!refused),
                Err(error) => {
                    assert!(
                        refused && matches!(error, PhpError::ThreadSafe { .. }),
                        "{error}"
                    );
                    assert!(
                        error.to_string().contains("thread-safe build (ZTS)"),
                        "{error}"
                    );
                }
            }
        }
    }

    #[test]
    fn php_below_8_2_is_too_old() {
        assert!(recent("8.2.36") && recent("8.4.0RC1") && recent("9.0.0"));
        assert!(!recent("8.1.30") && !recent("7.4") && !recent(""));
    }

    #[test]
    fn php_without_mysqli_is_refused_for_a_database_and_the_error_names_the_package() {
        let mut layout = PhpLayout {
            binary: "/usr/bin/php8.3".to_owned(),
            version: "8.3.12".to_owned(),
            ini_directory: String::new(),
            visible: None,
            extension_dir: String::new(),
            extensions: Vec::new(),
            loaded: vec!["core".to_owned(), "mysqlnd".to_owned()],
        };
        let error = layout.check_mysql().unwrap_err();
        assert_eq!(error.code(), ErrorCode::SandboxStartFailed);
        assert!(
            error.to_string().contains("apt-get install php8.3-mysql"),
            "{error}"
        );
        layout.loaded.push("mysqli".to_owned());
        assert!(layout.check_mysql().is_ok());
    }

    #[test]
    fn missing_php_or_php_outside_the_system_directories_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let error = PhpLayout::discover(Path::new("/usr/bin/no-such-php"), state.path());
        assert_eq!(error.unwrap_err().code(), ErrorCode::ConfigInvalid);
        let program = state.path().join("php");
        fs::write(&program, "").unwrap();
        let error = PhpLayout::discover(&program, state.path()).unwrap_err();
        assert!(matches!(error, PhpError::Outside { .. }), "{error}");
    }
}
