//! The directory where a search for a project starts, the directories above it, and where it ends.

use super::error::ProjectError;
use super::folder::Folder;
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of directories that a search visits.
pub(super) const MAX_LEVELS: usize = 64;

/// One directory of the search.
#[derive(Debug, Clone)]
pub(super) struct Level {
    /// Path without symbolic links.
    pub real: PathBuf,
    /// Path by which the user reached the directory; it can contain symbolic links.
    pub shown: PathBuf,
}

impl Level {
    /// Returns the name by which the user reached the directory.
    pub(super) fn name(&self) -> &str {
        name(&self.shown)
    }
}

/// Returns the last segment of a path; empty if there is none.
pub(super) fn name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// The directory where a search starts, and the directories above it, nearest first.
#[derive(Debug)]
pub(super) struct Place {
    pub start: Level,
    pub above: Vec<Level>,
}

/// Directories of the user, which the calling program reads from its environment.
#[derive(Debug, Clone, Default)]
pub struct UserDirectories {
    /// The home directory. It and the directories above it are never a project.
    pub home: Option<PathBuf>,
    /// `$PWD`, in which a shell keeps the symbolic links of the working directory's path. Ignored if
    /// it does not lead to the working directory.
    pub working: Option<PathBuf>,
}

/// Decides at which directories a search ends. These are never a project.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Real path of the user's home directory.
    pub home: Option<PathBuf>,
}

impl Bounds {
    pub(super) fn of(user: &UserDirectories) -> Self {
        let home = user.home.as_ref();
        Self {
            home: home.and_then(|home| home.canonicalize().ok()),
        }
    }

    /// Returns the kind of a directory that is never a project and ends the search; `None` for all
    /// others.
    pub(super) fn refuse(&self, real: &Path) -> Option<&'static str> {
        if real.parent().is_none() {
            return Some("the root of the file system");
        }
        match &self.home {
            Some(home) if home == real => return Some("your home directory"),
            Some(home) if home.starts_with(real) => {
                return Some("a directory that contains your home directory");
            }
            Some(_) | None => {}
        }
        // Another user can place files in a directory such as /tmp, for example a plugin header
        // that would turn it into the project.
        let shared = real
            .metadata()
            .is_ok_and(|about| about.permissions().mode() & 0o1002 == 0o1002);
        shared.then_some("a directory in which every user may create files")
    }
}

impl Place {
    /// Resolves an absolute path of a directory and the directories above it, up to the end of the
    /// search.
    pub(super) fn new(given: &Path, bounds: &Bounds) -> Result<Self, ProjectError> {
        // Without `.` segments.
        let given: PathBuf = given.components().collect();
        let real = real(&given)?;
        if let Some(what) = bounds.refuse(&real) {
            let directory = real;
            return Err(ProjectError::NotAProject { directory, what });
        }
        // `..` after a symbolic link leads to the parent of the link's target. So the segments of a
        // path with `..` may not be the names of the directories above.
        let plain = !given.components().any(|part| part == Component::ParentDir);
        let reached: Vec<(PathBuf, &Path)> = given
            .ancestors()
            .take_while(|_| plain)
            .take(MAX_LEVELS)
            .filter(|path| path.to_str().is_some())
            .filter_map(|path| Some((path.canonicalize().ok()?, path)))
            .collect();
        let level = |real: &Path| Level {
            real: real.to_owned(),
            shown: reached
                .iter()
                .find(|(resolved, _)| resolved == real)
                .map_or(real, |(_, path)| *path)
                .to_owned(),
        };
        let above = real
            .ancestors()
            .take(MAX_LEVELS)
            .skip(1)
            .take_while(|real| bounds.refuse(real).is_none());
        Ok(Self {
            above: above.map(level).collect(),
            start: level(&real),
        })
    }
}

/// Returns the absolute path. A relative path begins at `$PWD`, in which a shell keeps the symbolic
/// links of the path.
pub(super) fn absolute(given: &Path, pwd: Option<&Path>) -> Result<PathBuf, ProjectError> {
    if given.is_absolute() {
        return Ok(given.to_owned());
    }
    let real = std::env::current_dir().map_err(|source| failed(given, source))?;
    Ok(working_directory(pwd, real).join(given))
}

/// Returns `$PWD` if it leads to the working directory, otherwise the working directory's real path.
fn working_directory(pwd: Option<&Path>, real: PathBuf) -> PathBuf {
    match pwd {
        Some(pwd) if pwd.is_absolute() && pwd.canonicalize().is_ok_and(|path| path == real) => {
            pwd.to_owned()
        }
        _ => real,
    }
}

/// Returns the real path of a directory. Fails if the directory cannot be read.
fn real(given: &Path) -> Result<PathBuf, ProjectError> {
    let real = given.canonicalize().map_err(|e| failed(given, e))?;
    Folder::open(&real).map_err(|errno| match errno {
        Errno::NOTDIR => ProjectError::NotADirectory {
            path: given.to_owned(),
        },
        errno => failed(given, errno.into()),
    })?;
    match real.to_str() {
        Some(_) => Ok(real),
        None => Err(ProjectError::NotUtf8 { directory: real }),
    }
}

fn failed(given: &Path, source: io::Error) -> ProjectError {
    let directory = given.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied => ProjectError::Unreadable { directory, source },
        _ => ProjectError::Missing { directory, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn pwd_is_used_only_if_it_leads_to_the_working_directory() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real")).unwrap();
        fs::create_dir_all(root.join("other")).unwrap();
        symlink("real", root.join("link")).unwrap();
        let real = root.join("real");
        let used = |pwd: Option<PathBuf>| working_directory(pwd.as_deref(), real.clone());
        assert_eq!(used(Some(root.join("link"))), root.join("link"));
        for ignored in [
            None,
            Some(root.join("other")),
            Some(root.join("missing")),
            Some("link".into()),
            Some("".into()),
        ] {
            assert_eq!(used(ignored.clone()), real, "{ignored:?}");
        }
    }

    #[test]
    fn directories_above_the_start_have_real_paths_and_the_names_of_the_given_path() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("src/hello/includes")).unwrap();
        fs::create_dir_all(root.join("site")).unwrap();
        symlink("../src/hello", root.join("site/greeting")).unwrap();
        let bounds = Bounds {
            home: Some(root.clone()),
        };
        let place = Place::new(&root.join("site/greeting/./includes"), &bounds).unwrap();
        assert_eq!(place.start.real, root.join("src/hello/includes"));
        assert_eq!(place.start.shown, root.join("site/greeting/includes"));
        let above: Vec<(&Path, &str)> = place
            .above
            .iter()
            .map(|level| (level.real.as_path(), level.name()))
            .collect();
        let (hello, src) = (root.join("src/hello"), root.join("src"));
        assert_eq!(
            above,
            [(hello.as_path(), "greeting"), (src.as_path(), "src")]
        );
        // For a path with `..`, names come from the real path.
        let place = Place::new(&root.join("site/greeting/../hello"), &bounds).unwrap();
        assert_eq!(place.start.shown, root.join("src/hello"));
    }
}
