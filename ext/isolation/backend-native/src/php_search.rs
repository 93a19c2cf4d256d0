//! Search for the PHP that guests use when no setting names one.
//!
//! Candidates are `php` and `phpX.Y` in the directories of `PATH`, in `/usr/bin` and in
//! `/usr/local/bin`. The newest supported version wins. A name such as `/usr/bin/php8.4` states the
//! version; a program without one in its name, as in the official container images, is started to
//! ask for it, but only if it has a competitor.

use crate::php::{readable_in_guests, supported};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Directories that are searched after those of `PATH`.
const DIRECTORIES: [&str; 2] = ["/usr/bin", "/usr/local/bin"];

/// Major and minor version of PHP.
type Version = (u32, u32);

/// A PHP program of this host.
struct Candidate {
    /// Path under which it was found.
    path: PathBuf,
    /// Path without symbolic links.
    real: PathBuf,
}

/// Returns the newest supported PHP of this host; the newest one of an older version if there is no
/// other; `None` without any PHP. `path` is the value of the environment variable `PATH`.
#[must_use]
pub fn find_php(path: Option<&OsStr>) -> Option<PathBuf> {
    let listed = path.map(std::env::split_paths).into_iter().flatten();
    let own = DIRECTORIES.map(PathBuf::from);
    let directories: Vec<PathBuf> = listed
        .filter(|directory| directory.is_absolute())
        .chain(own)
        .collect();
    newest(candidates(&directories))
}

fn newest(mut found: Vec<Candidate>) -> Option<PathBuf> {
    if found.len() < 2 {
        return found.pop().map(|candidate| candidate.path);
    }
    let mut best: Option<(Version, PathBuf)> = None;
    for candidate in found {
        let Some(version) = version_in_name(&candidate.real).or_else(|| ask(&candidate.real))
        else {
            continue;
        };
        let newer = best
            .as_ref()
            .is_none_or(|(known, _)| (supported(version), version) > (supported(*known), *known));
        if newer {
            best = Some((version, candidate.path));
        }
    }
    best.map(|(_, path)| path)
}

/// Returns the PHP programs that guests can see, each once, in the order of the directories.
fn candidates(directories: &[PathBuf]) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for directory in directories {
        let Ok(entries) = fs::read_dir(directory) else {
            continue;
        };
        let mut names: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        names.sort();
        for path in names {
            if path.file_name() != Some(OsStr::new("php")) && version_in_name(&path).is_none() {
                continue;
            }
            let Ok(real) = fs::canonicalize(&path) else {
                continue;
            };
            let program = fs::metadata(&real)
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
            let known = found.iter().any(|other| other.real == real);
            if program && !known && readable_in_guests(&real) {
                found.push(Candidate { path, real });
            }
        }
    }
    found
}

/// Returns the version in a file name such as `php8.4`.
fn version_in_name(path: &Path) -> Option<Version> {
    let digits = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse().ok()).flatten()
    };
    let (major, minor) = path
        .file_name()?
        .to_str()?
        .strip_prefix("php")?
        .split_once('.')?;
    Some((digits(major)?, digits(minor)?))
}

fn ask(program: &Path) -> Option<Version> {
    let output = Command::new(program)
        .args([
            "-n",
            "-r",
            "echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION;",
        ])
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::php::tests::script;
    use std::os::unix::fs::symlink;

    fn candidate(path: &str, real: &Path) -> Candidate {
        Candidate {
            path: path.into(),
            real: real.to_owned(),
        }
    }

    #[test]
    fn newest_supported_php_wins_and_an_older_one_is_returned_only_without_another() {
        let of = |names: &[&str]| {
            let found = names
                .iter()
                .map(|name| candidate(name, Path::new(name)))
                .collect();
            newest(found).map(|path| path.display().to_string())
        };
        let best = of(&[
            "/usr/bin/php8.2",
            "/usr/bin/php8.4",
            "/usr/bin/php8.10",
            "/usr/bin/php7.4",
        ]);
        assert_eq!(best.as_deref(), Some("/usr/bin/php8.10"));
        let old = of(&["/usr/bin/php7.4", "/usr/bin/php8.1"]);
        assert_eq!(old.as_deref(), Some("/usr/bin/php8.1"));
        let twice = of(&["/usr/local/bin/php8.2", "/usr/bin/php8.2"]);
        assert_eq!(twice.as_deref(), Some("/usr/local/bin/php8.2"));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn program_without_a_version_in_its_name_is_asked_for_its_version() {
        let directory = tempfile::tempdir().unwrap();
        let program = |version: &str| {
            let path = directory.path().join(format!("php-of-{version}"));
            script(&path, &format!("#!/bin/sh\nprintf {version}\n"));
            path
        };
        let (newer, older, silent) = (program("8.4"), program("8.2"), program("unknown"));
        let best = |real: &Path| {
            newest(vec![
                candidate("/usr/bin/php8.3", Path::new("/usr/bin/php8.3")),
                candidate("/usr/local/bin/php", real),
            ])
        };
        assert_eq!(best(&newer), Some("/usr/local/bin/php".into()));
        assert_eq!(best(&older), Some("/usr/bin/php8.3".into()));
        assert_eq!(best(&silent), Some("/usr/bin/php8.3".into()));
    }

    #[test]
    fn search_skips_other_programs_and_programs_that_guests_cannot_see() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        // A link into /usr, which guests see; one that leads to the same file; and a file they do not see.
        symlink("/usr/bin/env", path.join("php8.3")).unwrap();
        symlink("/usr/bin/env", path.join("php")).unwrap();
        symlink("/usr/bin/env", path.join("phpunit")).unwrap();
        fs::write(path.join("php8.9"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(path.join("php8.9"), fs::Permissions::from_mode(0o755)).unwrap();
        let found = candidates(&[path.to_owned(), path.join("missing")]);
        let paths: Vec<_> = found.into_iter().map(|candidate| candidate.path).collect();
        assert_eq!(paths, [path.join("php")]);
    }

    #[test]
    fn only_names_of_php_with_two_numbers_state_a_version() {
        for (name, version) in [
            ("/usr/bin/php8.4", Some((8, 4))),
            ("php10.11", Some((10, 11))),
            ("php", None),
            ("php8", None),
            ("php8.", None),
            ("php-config8.4", None),
            ("php8.4-real", None),
            ("php+8.4", None),
        ] {
            assert_eq!(version_in_name(Path::new(name)), version, "{name}");
        }
    }
}
