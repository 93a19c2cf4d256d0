//! Local directory of a sync: read and written relative to its own descriptor, without following
//! symbolic links.

use super::compare::{File, Files};
use rustix::fs::{
    self, AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags,
};
use rustix::io::Errno;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use wp_codebox_artifacts::{ExcludeRules, sha256};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_control::new_run_id;

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);
/// Maximum depth of directories in the local directory.
const DEPTH: usize = 64;
/// Maximum number of files in the local directory.
const FILES: usize = 50_000;

/// Prefix of the names of temporary files; 32 random hexadecimal digits follow.
const TEMPORARY: &str = ".codebox-sync-";

/// The open local directory of a sync.
#[derive(Debug)]
pub(super) struct Local {
    root: OwnedFd,
    shown: String,
}

/// Files in the local directory.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub files: Files,
    /// Paths that are not synced, each with the reason.
    pub left_out: Vec<(String, &'static str)>,
}

impl Local {
    pub(super) fn open(path: &Path) -> Result<Self, ErrorBody> {
        let shown = path.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match fs::open(path, flags, Mode::empty()) {
            Ok(root) => Ok(Self { root, shown }),
            Err(error) => {
                let message = format!("{shown} cannot be synced: {}", io(error));
                Err(ErrorBody::new(ErrorCode::InputInvalid, message)
                    .hint("name a local directory that this user may use"))
            }
        }
    }

    /// Returns every regular file outside of `.git`; files larger than `most` bytes are left out.
    pub(super) fn files(&self, most: usize) -> Result<Found, ErrorBody> {
        let mut found = Found::default();
        self.walk("", 0, most, &mut found)?;
        Ok(found)
    }

    fn walk(
        &self,
        below: &str,
        depth: usize,
        most: usize,
        found: &mut Found,
    ) -> Result<(), ErrorBody> {
        if depth > DEPTH {
            return Err(self.failed(
                below,
                "the directory is nested too deeply; sync a smaller directory",
            ));
        }
        let at = if below.is_empty() { "." } else { below };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = fs::openat2(&self.root, at, flags, Mode::empty(), BENEATH)
            .map_err(|e| self.failed(below, &io(e)))?;
        let entries = fs::Dir::read_from(&directory).map_err(|e| self.failed(below, &io(e)))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| self.failed(below, &io(e)))?;
            names.push(entry.file_name().to_bytes().to_vec());
        }
        names.sort();
        for name in names {
            if matches!(&name[..], b"." | b"..") || ExcludeRules::default().excludes(&name) {
                continue;
            }
            let shown = String::from_utf8_lossy(&name).into_owned();
            let path = match below {
                "" => shown.clone(),
                below => format!("{below}/{shown}"),
            };
            if shown.as_bytes() != name {
                found.left_out.push((path, "its name is not UTF-8"));
                continue;
            }
            let stat = fs::statat(&directory, &shown, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|e| self.failed(&path, &io(e)))?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if is_temporary(&shown) => {
                    remove_abandoned(&directory, &shown);
                }
                FileType::Directory => self.walk(&path, depth + 1, most, found)?,
                FileType::RegularFile if found.files.len() >= FILES => {
                    return Err(self.failed(
                        &path,
                        "the directory has too many files; sync a smaller directory",
                    ));
                }
                FileType::RegularFile if u64::try_from(stat.st_size).unwrap_or(0) > most as u64 => {
                    found.left_out.push((path, "it is too large"));
                }
                FileType::RegularFile => {
                    let (bytes, executable) = self.read(&path, most)?;
                    let sha256 = sha256(&bytes).as_str().to_owned();
                    found.files.insert(path, File { sha256, executable });
                }
                FileType::Symlink => found.left_out.push((path, "it is a link")),
                _ => found.left_out.push((path, "it is not a regular file")),
            }
        }
        Ok(())
    }

    /// Returns the content of a local file, and whether it is executable.
    pub(super) fn read(&self, path: &str, most: usize) -> Result<(Vec<u8>, bool), ErrorBody> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = fs::openat2(&self.root, path, flags, Mode::empty(), BENEATH)
            .map_err(|e| self.failed(path, &io(e)))?;
        let stat = fs::fstat(&fd).map_err(|e| self.failed(path, &io(e)))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.failed(path, "the path is not a regular file"));
        }
        let mut bytes = Vec::new();
        std::fs::File::from(fd)
            .take(most as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| self.failed(path, &e.to_string()))?;
        if bytes.len() > most {
            return Err(self.failed(path, "the file is too large to sync"));
        }
        Ok((bytes, stat.st_mode & 0o111 != 0))
    }

    /// Returns the current state of a local file; `None` if it does not exist.
    pub(super) fn look(&self, path: &str, most: usize) -> Result<Option<File>, ErrorBody> {
        let (directory, name) = match self.parent(path, Missing::Refused) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(self.failed(path, &io(error))),
        };
        match fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed(path, &io(error))),
            Ok(_) => {
                let (bytes, executable) = self.read(path, most)?;
                let sha256 = sha256(&bytes).as_str().to_owned();
                Ok(Some(File { sha256, executable }))
            }
        }
    }

    /// Writes a local file to a temporary name and renames it into place.
    pub(super) fn write(
        &self,
        path: &str,
        bytes: &[u8],
        executable: bool,
    ) -> Result<(), ErrorBody> {
        let (directory, name) = self
            .parent(path, Missing::Made)
            .map_err(|e| self.failed(path, &io(e)))?;
        // A name independent of the file's name, which may already have the maximum length.
        let random = new_run_id()?;
        let digits = random.as_str().trim_start_matches("run_");
        let temporary = format!("{TEMPORARY}{digits}");
        let put = || -> std::io::Result<()> {
            let fd = create_temporary(&directory, &temporary)?;
            // Keep owner and permissions of an existing file. A new file gets the owner of its
            // directory and mode 0644.
            let (owner, readers) = match fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(before) if FileType::from_raw_mode(before.st_mode) == FileType::RegularFile => {
                    (before, before.st_mode & 0o666)
                }
                Ok(_) | Err(_) => (fs::fstat(&directory)?, 0o644),
            };
            let mut file = std::fs::File::from(fd);
            file.write_all(bytes)?;
            // Users who may read an executable file may also execute it.
            let mode = readers
                | if executable {
                    (readers & 0o444) >> 2
                } else {
                    0
                };
            if rustix::process::geteuid().is_root() {
                let user = fs::Uid::from_raw(owner.st_uid);
                let group = fs::Gid::from_raw(owner.st_gid);
                fs::fchown(&file, Some(user), Some(group))?;
            }
            fs::fchmod(&file, Mode::from_raw_mode(mode))?;
            file.sync_data()?;
            // The rename fails if the name was given to a directory meanwhile.
            fs::renameat_with(
                &directory,
                &temporary,
                &directory,
                name,
                RenameFlags::empty(),
            )?;
            Ok(())
        };
        put().map_err(|error| {
            let _ = fs::unlinkat(&directory, &temporary, AtFlags::empty());
            self.failed(path, &error.to_string())
        })
    }

    /// Removes a local file, and each parent directory that is then empty.
    pub(super) fn remove(&self, path: &str) -> Result<(), ErrorBody> {
        let (directory, name) = self
            .parent(path, Missing::Refused)
            .map_err(|e| self.failed(path, &io(e)))?;
        fs::unlinkat(&directory, name, AtFlags::empty()).map_err(|e| self.failed(path, &io(e)))?;
        let mut above = path;
        while let Some((next, _)) = above.rsplit_once('/') {
            above = next;
            let Ok((directory, name)) = self.parent(above, Missing::Refused) else {
                break;
            };
            if fs::unlinkat(&directory, name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the open parent directory of a path, and the name in it.
    fn parent<'p>(&self, path: &'p str, missing: Missing) -> Result<(OwnedFd, &'p str), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |from: std::os::fd::BorrowedFd<'_>, name: &str| {
            fs::openat2(from, name, flags, Mode::empty(), BENEATH)
        };
        let mut directory = open(self.root.as_fd(), ".")?;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            if matches!(part, "" | "." | "..") || ExcludeRules::default().excludes(part.as_bytes())
            {
                return Err(Errno::INVAL);
            }
            if parts.peek().is_none() {
                return Ok((directory, part));
            }
            directory = match (open(directory.as_fd(), part), missing) {
                (Err(Errno::NOENT), Missing::Made) => {
                    fs::mkdirat(&directory, part, Mode::from_raw_mode(0o755))?;
                    let made = open(directory.as_fd(), part)?;
                    if rustix::process::geteuid().is_root() {
                        let owner = fs::fstat(&directory)?;
                        let user = fs::Uid::from_raw(owner.st_uid);
                        let group = fs::Gid::from_raw(owner.st_gid);
                        fs::fchown(&made, Some(user), Some(group))?;
                    }
                    made
                }
                (opened, _) => opened?,
            };
        }
        Err(Errno::INVAL)
    }

    fn failed(&self, path: &str, why: &str) -> ErrorBody {
        let message = format!("{}/{path}: {why}", self.shown);
        ErrorBody::new(ErrorCode::InputInvalid, message)
    }
}

/// Creates a temporary file. Its lock shows other processes that it is being written.
fn create_temporary(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs::openat(directory, name, flags, Mode::from_raw_mode(0o600))?;
    fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Returns whether a file has a name that [`Local::write`] gives to temporary files.
fn is_temporary(name: &str) -> bool {
    let digits = name.strip_prefix(TEMPORARY);
    digits.is_some_and(|d| d.len() == 32 && d.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Removes a temporary file whose process was killed. Ignores errors: the next sync tries again.
fn remove_abandoned(directory: &OwnedFd, name: &str) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = fs::openat(directory, name, flags, Mode::empty()) else {
        return;
    };
    if fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        let _ = fs::unlinkat(directory, name, AtFlags::empty());
    }
}

/// Whether missing parent directories of a path are created or are an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Made,
    Refused,
}

fn io(error: Errno) -> String {
    match error {
        Errno::LOOP | Errno::XDEV => {
            "its path contains a symbolic link, and links are not followed".to_owned()
        }
        error => std::io::Error::from(error).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn sync_follows_no_link_and_reads_or_writes_no_git_file_and_no_path_outside_its_directory() {
        let temp = tempfile::tempdir().unwrap();
        let (root, outside) = (temp.path().join("in"), temp.path().join("out"));
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("a"), "secret").unwrap();
        std::fs::write(root.join(".git/config"), "x").unwrap();
        std::fs::write(root.join("big"), vec![0; 101]).unwrap();
        symlink(&outside, root.join("dir")).unwrap();
        symlink(outside.join("a"), root.join("file")).unwrap();
        let local = Local::open(&root).unwrap();
        let found = local.files(100).unwrap();
        assert!(found.files.is_empty(), "{found:?}");
        assert_eq!(found.left_out.len(), 3, "{found:?}");
        // A link inside the directory is not followed either: it could lead to git's own files.
        symlink(".git", root.join("alias")).unwrap();
        for path in [
            "dir/a",
            "dir/new",
            "alias/config",
            "alias/hooks/x",
            "../out/a",
            ".git/config",
            "/etc/x",
            "a//b",
            ".GIT/x",
        ] {
            assert!(local.write(path, b"x", false).is_err(), "{path}");
            assert!(local.remove(path).is_err(), "{path}");
        }
        for path in ["dir/a", "file", "../out/a", "alias/config"] {
            assert!(local.read(path, 100).is_err(), "{path}");
        }
        assert_eq!(std::fs::read(outside.join("a")).unwrap(), b"secret");
        // A link at the file's path is replaced and not followed.
        local.write("file", b"mine", false).unwrap();
        assert_eq!(std::fs::read(outside.join("a")).unwrap(), b"secret");
        assert_eq!(std::fs::read(root.join("file")).unwrap(), b"mine");
    }

    #[test]
    fn temporary_file_of_a_killed_sync_is_removed_and_never_synced_and_a_users_file_is() {
        let temp = tempfile::tempdir().unwrap();
        let local = Local::open(temp.path()).unwrap();
        let abandoned = format!("{TEMPORARY}{}", "0".repeat(32));
        let living = format!("{TEMPORARY}{}", "1".repeat(32));
        let shorter = format!("{TEMPORARY}{}", "2".repeat(31));
        let other_digits = format!("{TEMPORARY}{}", "z".repeat(32));
        for name in [&abandoned, &shorter, &other_digits] {
            std::fs::write(temp.path().join(name), "x").unwrap();
        }
        let _open = create_temporary(&local.root, &living).unwrap();
        let found = local.files(10).unwrap();
        let users = found.files.keys().collect::<Vec<_>>();
        assert_eq!(users, [&shorter, &other_digits]);
        assert!(!temp.path().join(&abandoned).exists() && temp.path().join(&living).exists());
    }

    #[test]
    fn sync_creates_and_removes_parent_directories_and_keeps_read_permissions_of_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let local = Local::open(temp.path()).unwrap();
        local.write("a/b/c.sh", b"#!", true).unwrap();
        let mode = std::fs::metadata(temp.path().join("a/b/c.sh"))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o755);
        let seen = local.look("a/b/c.sh", 10).unwrap().unwrap();
        assert!(seen.executable);
        assert_eq!(local.look("a/x/y", 10).unwrap(), None);
        local.write("a/d", b"", false).unwrap();
        assert_eq!(local.files(10).unwrap().files.len(), 2);
        // The sandbox only decides whether the file is executable; read permissions stay unchanged.
        let place = temp.path().join("a/b/c.sh");
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o4750)).unwrap();
        for (executable, mode) in [(true, 0o750), (false, 0o640), (true, 0o750)] {
            local.write("a/b/c.sh", b"#!", executable).unwrap();
            let now = std::fs::metadata(&place).unwrap().permissions().mode();
            assert_eq!(now & 0o7777, mode);
        }
        let longest = "\u{1f600}".repeat(63);
        local.write(&longest, b"", false).unwrap();
        local.remove(&longest).unwrap();
        local.remove("a/b/c.sh").unwrap();
        assert!(!temp.path().join("a/b").exists() && temp.path().join("a/d").exists());
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
