//! Creates and copies files and directories of templates.
//!
//! Copies regular files and directories only: a symbolic link in a core directory could lead to any
//! host file. Copies get standard modes and a modification time in the past, because the opcode
//! cache refuses files that changed within the last seconds.

use super::error::TemplateError;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Files of a template get a modification time at least this far in the past, so that the opcode
/// cache accepts them at once.
const SETTLED: Duration = Duration::from_secs(10);

/// Creates a directory and its missing parents unless it exists. The directory itself gets exactly
/// this mode, independent of the umask.
pub(super) fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Sets the modification time of a file or directory.
pub(super) fn set_times(path: &Path, time: SystemTime) -> io::Result<()> {
    fs::File::open(path)?.set_modified(time)
}

/// Writes a new file with a modification time in the past.
pub(super) fn write(path: &Path, contents: &[u8]) -> Result<(), TemplateError> {
    let io = |source| TemplateError::Io {
        step: "write file",
        source,
    };
    fs::write(path, contents).map_err(io)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).map_err(io)?;
    set_times(path, settled(SystemTime::now())).map_err(io)
}

/// Copies one regular file.
pub(super) fn copy_file(from: &Path, to: &Path) -> Result<(), TemplateError> {
    let unreadable = |source| TemplateError::Unreadable {
        path: from.to_owned(),
        source,
    };
    let io = |source| TemplateError::Io {
        step: "copy file",
        source,
    };
    let mut source = fs::File::open(from).map_err(unreadable)?;
    let modified = source
        .metadata()
        .and_then(|meta| meta.modified())
        .map_err(unreadable)?;
    let mut target = fs::File::create_new(to).map_err(io)?;
    io::copy(&mut source, &mut target).map_err(io)?;
    target
        .set_permissions(fs::Permissions::from_mode(0o644))
        .map_err(io)?;
    target.set_modified(settled(modified)).map_err(io)
}

/// Copies a tree of regular files and directories to a directory that must not exist.
pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<(), TemplateError> {
    let io = |source| TemplateError::Io {
        step: "copy directory",
        source,
    };
    let mut queue = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = queue.pop() {
        fs::create_dir(&to).map_err(io)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).map_err(io)?;
        let unreadable = |source| TemplateError::Unreadable {
            path: from.clone(),
            source,
        };
        for entry in fs::read_dir(&from).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            let target = to.join(entry.file_name());
            if kind.is_dir() {
                queue.push((entry.path(), target));
            } else if kind.is_file() {
                copy_file(&entry.path(), &target)?;
            }
        }
    }
    Ok(())
}

fn settled(time: SystemTime) -> SystemTime {
    let limit = SystemTime::now() - SETTLED;
    time.min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_tree_skips_symlinks_and_sets_times_in_the_past() {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("a"), temp.path().join("b"));
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/file.php"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", from.join("link")).unwrap();
        copy_tree(&from, &to).unwrap();
        assert!(to.join("deep/file.php").is_file());
        assert!(fs::symlink_metadata(to.join("link")).is_err());
        let age = fs::metadata(to.join("deep/file.php"))
            .unwrap()
            .modified()
            .unwrap();
        assert!(age.elapsed().unwrap() >= Duration::from_secs(9));
    }
}
