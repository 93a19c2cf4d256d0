//! Removing a tree that an enemy built.
//!
//! A guest's directories may forbid their owner to enter them and may lie deeper than a
//! path or a stack reaches. So nothing here recurses: a directory found inside another is
//! moved to the top and emptied there, with one descriptor open at a time beside the top.
//! Links are never followed. Nobody else writes the tree: its guest is dead.

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, chmodat, openat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::path::Path;

/// Removes a directory and everything below it; none is fine too.
pub(crate) fn remove_tree(path: &Path) -> std::io::Result<()> {
    match empty(path) {
        Ok(()) => std::fs::remove_dir(path),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn empty(path: &Path) -> Result<(), Errno> {
    if !is_directory(&statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW)?) {
        return Err(Errno::NOTDIR);
    }
    chmodat(rustix::fs::CWD, path, Mode::RWXU, AtFlags::empty())?;
    let top = rustix::fs::open(path, directory_flags(), Mode::empty())?;
    let mut moved = 0_u64;
    loop {
        let names = names(&top)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if let Some(directory) = enter_or_unlink(&top, &name)? {
                lift(&directory, &top, &mut moved)?;
                match unlinkat(&top, &name, AtFlags::REMOVEDIR) {
                    // More names than were taken at once: the next round goes on.
                    Ok(()) | Err(Errno::NOTEMPTY) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

/// Empties `directory`: files are removed, directories go to `top`.
fn lift(directory: &OwnedFd, top: &OwnedFd, moved: &mut u64) -> Result<(), Errno> {
    for name in names(directory)? {
        let stat = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if !is_directory(&stat) {
            unlinkat(directory, &name, AtFlags::empty())?;
            continue;
        }
        // A directory that may not be written cannot be moved: its `..` changes.
        chmodat(directory, &name, Mode::RWXU, AtFlags::empty())?;
        loop {
            *moved += 1;
            let place = format!(".removed-{moved}");
            match renameat_with(directory, &name, top, place, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                other => break other?,
            }
        }
    }
    Ok(())
}

/// Opens a directory made accessible; removes anything else.
fn enter_or_unlink(top: &OwnedFd, name: &CStr) -> Result<Option<OwnedFd>, Errno> {
    let stat = statat(top, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_directory(&stat) {
        unlinkat(top, name, AtFlags::empty())?;
        return Ok(None);
    }
    chmodat(top, name, Mode::RWXU, AtFlags::empty())?;
    openat(top, name, directory_flags(), Mode::empty()).map(Some)
}

fn is_directory(stat: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// A part of the names at a time: a directory may hold more than memory should.
fn names(directory: &OwnedFd) -> Result<Vec<CString>, Errno> {
    const AT_ONCE: usize = 10_000;
    let fresh = openat(directory, c".", directory_flags(), Mode::empty())?;
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(&fresh, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
        if names.len() >= AT_ONCE {
            break;
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn closed_and_very_deep_trees_go_and_what_links_lead_to_stays() {
        let temp = tempfile::tempdir().unwrap();
        let outside = temp.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        let root = temp.path().join("root");
        fs::create_dir_all(root.join("closed/inner/more")).unwrap();
        fs::write(root.join("closed/inner/file"), "x").unwrap();
        fs::write(root.join(".removed-1"), "in the way").unwrap();
        symlink(&outside, root.join("link")).unwrap();
        symlink(&outside, root.join("closed/link")).unwrap();
        for name in ["closed/inner/more", "closed/inner", "closed"] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0)).unwrap();
        }
        // Deeper than any path: each level is made from the one before.
        let mut here = rustix::fs::open(&root, directory_flags(), Mode::empty()).unwrap();
        for _ in 0..5000 {
            rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
            here = openat(&here, "d", directory_flags(), Mode::empty()).unwrap();
        }
        drop(here);
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        assert!(outside.join("kept").exists());
        remove_tree(&root).unwrap();
    }

    #[test]
    fn a_big_directory_goes_in_parts() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        fs::create_dir_all(root.join("many")).unwrap();
        for number in 0..25_000 {
            fs::File::create(root.join("many").join(number.to_string())).unwrap();
        }
        remove_tree(&root).unwrap();
        assert!(!root.exists());
    }
}
