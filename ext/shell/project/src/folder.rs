//! Bounded reads of one directory. Symbolic links are followed inside the directory only, and only
//! regular files are opened.

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat2, statat,
};
use rustix::io::Errno;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Maximum number of a directory's entries that [`Folder::names`] reads.
const MAX_ENTRIES: usize = 500;
/// Number of bytes at the start of a file in which WordPress searches for a header.
const HEAD_BYTES: u64 = 8 * 1024;

/// An open directory.
#[derive(Debug)]
pub(super) struct Folder {
    directory: OwnedFd,
}

impl Folder {
    /// Opens a directory by its real path.
    pub(super) fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open(path, flags, Mode::empty()).map(|directory| Self { directory })
    }

    /// Returns the names of the first [`MAX_ENTRIES`] entries of the directory, sorted. Names that
    /// are not UTF-8 are omitted.
    pub(super) fn names(&self) -> Vec<String> {
        let Ok(entries) = Dir::read_from(&self.directory) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map_while(Result::ok)
            .filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."))
            .take(MAX_ENTRIES)
            .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
            .collect();
        names.sort();
        names
    }

    /// Returns the beginning of a regular file, as far as WordPress searches for a header.
    pub(super) fn head(&self, name: &str) -> Option<String> {
        let bytes = read(self.file(name)?, HEAD_BYTES)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the content of a regular file that has at most `most` bytes.
    pub(super) fn content(&self, name: &str, most: u64) -> Option<Vec<u8>> {
        let bytes = read(self.file(name)?, most.saturating_add(1))?;
        (bytes.len() as u64 <= most).then_some(bytes)
    }

    /// Returns whether a path leads to a regular file.
    pub(super) fn is_file(&self, path: &str) -> bool {
        self.regular(path).is_some()
    }

    /// Returns whether a path leads to a regular file with an execute permission for any user.
    pub(super) fn is_program(&self, path: &str) -> bool {
        let executable = |stat: Stat| stat.st_mode & 0o111 != 0;
        self.regular(path).is_some_and(executable)
    }

    /// Returns whether the directory has an entry of any type with this name.
    pub(super) fn has(&self, name: &str) -> bool {
        statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    fn regular(&self, path: &str) -> Option<Stat> {
        // Use O_PATH until the type is known: opening a device or FIFO for reading has side
        // effects.
        let located = self.beneath(path, OFlags::PATH)?;
        fstat(&located).ok().filter(is_regular)
    }

    fn file(&self, path: &str) -> Option<OwnedFd> {
        self.regular(path)?;
        // The file may have been replaced by a FIFO after the check: NONBLOCK keeps open from
        // waiting.
        let file = self.beneath(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        fstat(&file).ok().filter(is_regular)?;
        Some(file)
    }

    fn beneath(&self, path: &str, flags: OFlags) -> Option<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC;
        openat2(&self.directory, path, flags, Mode::empty(), resolve).ok()
    }
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

fn read(file: OwnedFd, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::from(file)
        .take(most)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkfifoat};
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_inside_the_folder_are_read() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("project");
        fs::create_dir_all(root.join("directory")).unwrap();
        fs::write(temp.path().join("outside"), "secret").unwrap();
        fs::write(root.join("file"), "text").unwrap();
        mkfifoat(CWD, root.join("fifo"), Mode::from_raw_mode(0o644)).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        symlink(temp.path().join("outside"), root.join("absolute")).unwrap();
        symlink("/dev/zero", root.join("device")).unwrap();
        symlink("file", root.join("inner")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let folder = Folder::open(&root).unwrap();
        // Positive control: a file, and a link to it inside the directory.
        for good in ["file", "inner"] {
            assert_eq!(folder.head(good).as_deref(), Some("text"), "{good}");
            assert!(folder.is_file(good), "{good}");
        }
        for bad in [
            "fifo",
            "directory",
            "out",
            "absolute",
            "device",
            "loop",
            "missing",
            "../outside",
            "/etc/hostname",
        ] {
            assert_eq!(folder.head(bad), None, "{bad}");
            assert_eq!(folder.content(bad, 10), None, "{bad}");
            assert!(!folder.is_file(bad), "{bad}");
        }
    }

    #[test]
    fn head_is_cut_at_eight_kib_and_a_file_above_the_limit_has_no_content() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("large"), vec![b'x'; 10_000]).unwrap();
        let folder = Folder::open(temp.path()).unwrap();
        assert_eq!(folder.head("large").unwrap().len(), 8192);
        assert_eq!(folder.content("large", 10_000).unwrap().len(), 10_000);
        assert_eq!(folder.content("large", 9_999), None);
    }

    #[test]
    fn names_are_sorted_and_at_most_five_hundred() {
        let temp = tempfile::tempdir().unwrap();
        for number in 0..MAX_ENTRIES + 20 {
            fs::write(temp.path().join(format!("{number:04}")), "").unwrap();
        }
        let names = Folder::open(temp.path()).unwrap().names();
        assert_eq!(names.len(), MAX_ENTRIES);
        assert!(names.is_sorted());
    }
}
