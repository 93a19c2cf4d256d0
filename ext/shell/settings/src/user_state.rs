//! State directories of the users of this host: `/var/lib/wp-codebox/USER`, mode 0700, owned by the
//! user and its primary group.
//!
//! The directory above them belongs to root, and no other user can write it. So no user can replace
//! the directory of another one, or its own by a link, and names in it are safe for root to use.

use crate::accounts::Account;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchmod, fchown, fstat, mkdirat,
    openat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{Dir, RemovalError, remove_tree_in};
use wp_codebox_contracts::{CodedError, ErrorBody};
pub(crate) use wp_codebox_runtime::STATES;

/// Name prefixes of directories that are being made or removed. No name of a user begins with a dot.
const NEW: &str = ".new-";
const REMOVING: &str = ".removing-";
/// File in every state directory.
const VERSION: &str = "version";

/// Returns the path of the state directory of a user.
pub(crate) fn state_of(name: &str) -> PathBuf {
    Path::new(STATES).join(name)
}

/// Failures of making, listing and removing state directories.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(StateDirInvalid, detail = Self::detail)]
pub(crate) enum UserStateError {
    #[error(
        "{path:?} is itself the state directory of uid {owner}, but each user has its own one below it"
    )]
    OldLayout { path: PathBuf, owner: u32 },
    #[error(
        "users other than root can change {path:?} (owner {owner}, mode {mode:04o}), or cannot enter it"
    )]
    Unsafe {
        path: PathBuf,
        owner: u32,
        mode: u32,
    },
    #[error(
        "the name {name:?} cannot be the name of a directory; choose a user whose name has no slash and begins with no dot"
    )]
    #[code(InputInvalid)]
    Name { name: String },
    #[error("{path:?} is a link or not a directory; remove it")]
    NotADirectory { path: PathBuf },
    #[error(
        "{path:?} has the owner {uid}:{gid} and the mode {mode:04o}, but must belong to {name} with mode 0700"
    )]
    Foreign {
        path: PathBuf,
        name: String,
        uid: u32,
        gid: u32,
        mode: u32,
    },
    #[error("{path:?} cannot be {what}: {source}")]
    Failed {
        path: PathBuf,
        what: &'static str,
        #[source]
        source: Errno,
    },
    #[error("{path:?} cannot be removed whole: {source}")]
    Remains {
        path: PathBuf,
        #[source]
        source: RemovalError,
    },
}

impl UserStateError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::OldLayout { path, .. } => {
                let path = path.display();
                body.hint(format!(
                    "move it to its place: mv {path} {path}.old && install -d {path} && mv {path}.old {path}/USER"
                ))
            }
            Self::Unsafe { path, .. } => {
                let path = path.display();
                body.hint(format!("chown root:root {path} && chmod 0755 {path}"))
            }
            Self::Foreign { path, name, .. } => {
                let path = path.display();
                body.hint(format!(
                    "if it is of an earlier user with this name, remove it: wp-codebox users remove {name} --delete-state; otherwise: chown -Rh {name}: {path} && chmod 0700 {path}"
                ))
            }
            _ => body,
        }
    }
}

/// The open directory of the state directories.
#[derive(Debug)]
pub(crate) struct UserStates {
    path: PathBuf,
    directory: Dir,
}

impl UserStates {
    /// Opens the directory; `None` if it does not exist.
    pub(crate) fn open() -> Result<Option<Self>, UserStateError> {
        Self::open_at(Path::new(STATES))
    }

    /// Opens the directory, and creates it with mode 0755 if it does not exist.
    pub(crate) fn open_or_make() -> Result<Self, UserStateError> {
        Self::open_or_make_at(Path::new(STATES))
    }

    fn open_or_make_at(path: &Path) -> Result<Self, UserStateError> {
        if let Some(states) = Self::open_at(path)? {
            return Ok(states);
        }
        let failed = failed(path, "created");
        match rustix::fs::mkdir(path, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        // The umask may have taken rights from the mode.
        let directory = Dir::open(path).map_err(&failed)?;
        fchmod(&directory, Mode::from_raw_mode(0o755)).map_err(&failed)?;
        Self::open_at(path)?.ok_or_else(|| failed(Errno::NOENT))
    }

    fn open_at(path: &Path) -> Result<Option<Self>, UserStateError> {
        let directory = match Dir::open(path) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(UserStateError::NotADirectory {
                    path: path.to_owned(),
                });
            }
            opened => opened.map_err(failed(path, "opened"))?,
        };
        let stat = fstat(&directory).map_err(failed(path, "opened"))?;
        let (owner, mode) = (stat.st_uid, stat.st_mode & 0o7777);
        let path = path.to_owned();
        // Its owner can have given it to root with all its files.
        let is_state = directory.stat(VERSION.as_bytes()).ok().flatten();
        if is_state.is_some_and(|stat| kind(&stat) == FileType::RegularFile)
            || owner != 0 && mode & 0o077 == 0
        {
            return Err(UserStateError::OldLayout { path, owner });
        }
        if owner != 0 || mode & 0o022 != 0 || mode & 0o001 == 0 {
            return Err(UserStateError::Unsafe { path, owner, mode });
        }
        Ok(Some(Self { path, directory }))
    }

    /// Makes the state directory of a user unless it exists. Returns its path.
    pub(crate) fn make(&self, account: &Account) -> Result<PathBuf, UserStateError> {
        let path = self.path_of(&account.name)?;
        match self.entry(&account.name) {
            Ok(existing) => {
                let stat = fstat(&existing).map_err(failed(&path, "opened"))?;
                let mode = stat.st_mode & 0o7777;
                let is_own = stat.st_uid == account.uid && account.is_in(stat.st_gid);
                if is_own && mode & 0o077 == 0 {
                    return Ok(path);
                }
                Err(UserStateError::Foreign {
                    path,
                    name: account.name.clone(),
                    uid: stat.st_uid,
                    gid: stat.st_gid,
                    mode,
                })
            }
            Err(Errno::NOENT) => {
                self.make_new(account).map_err(failed(&path, "created"))?;
                Ok(path)
            }
            Err(Errno::LOOP | Errno::NOTDIR) => Err(UserStateError::NotADirectory { path }),
            Err(source) => Err(failed(&path, "opened")(source)),
        }
    }

    /// Makes the directory under another name, and renames it when it has its owner: a process that
    /// is killed in between leaves no state directory of root.
    fn make_new(&self, account: &Account) -> Result<(), Errno> {
        let new = format!("{NEW}{}", account.name);
        let _ = unlinkat(&self.directory, &new, AtFlags::REMOVEDIR);
        mkdirat(&self.directory, &new, Mode::from_raw_mode(0o700))?;
        let made = self.entry(&new)?;
        let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
        fchown(&made, Some(uid), Some(gid))?;
        fchmod(&made, Mode::from_raw_mode(0o700))?;
        renameat_with(
            &self.directory,
            &new,
            &self.directory,
            &account.name,
            RenameFlags::NOREPLACE,
        )
    }

    /// Opens a directory that may be a mount point: a state directory can have a file system of its own.
    fn entry(&self, name: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.directory, name, flags, Mode::empty())
    }

    /// Returns the names of all state directories, with their owners.
    pub(crate) fn list(&self) -> Result<Vec<(String, u32)>, UserStateError> {
        let failed = failed(&self.path, "read");
        let mut found = Vec::new();
        for name in self.directory.names().map_err(&failed)? {
            let stat = self.directory.stat(&name).map_err(&failed)?;
            let stat = stat.filter(|stat| kind(stat) == FileType::Directory);
            if let (Some(stat), Ok(name)) = (stat, String::from_utf8(name))
                && !name.starts_with('.')
            {
                found.push((name, stat.st_uid));
            }
        }
        Ok(found)
    }

    /// Returns the owner of the state directory with this name; `None` if there is none.
    pub(crate) fn owner(&self, name: &str) -> Result<Option<u32>, UserStateError> {
        let path = self.path_of(name)?;
        let stat = self.directory.stat(name.as_bytes());
        match stat.map_err(failed(&path, "opened"))? {
            None => Ok(None),
            Some(stat) if kind(&stat) == FileType::Directory => Ok(Some(stat.st_uid)),
            Some(_) => Err(UserStateError::NotADirectory { path }),
        }
    }

    /// Removes the state directory of a user with everything in it. Follows no link.
    pub(crate) fn remove(&self, name: &str) -> Result<(), UserStateError> {
        let path = self.path_of(name)?;
        // After the rename, no program finds a half removed state directory.
        let hidden = format!("{REMOVING}{name}");
        let (from, flags) = (&self.directory, RenameFlags::NOREPLACE);
        match renameat_with(from, name, from, &hidden, flags) {
            Ok(()) | Err(Errno::NOENT) => {}
            // An earlier call was interrupted. Its leftovers go first.
            Err(Errno::EXIST) => {
                self.remove_hidden(&path, &hidden)?;
                let again = renameat_with(from, name, from, &hidden, flags);
                again.map_err(failed(&path, "removed"))?;
            }
            Err(source) => return Err(failed(&path, "removed")(source)),
        }
        self.remove_hidden(&path, &hidden)
    }

    fn remove_hidden(&self, path: &Path, hidden: &str) -> Result<(), UserStateError> {
        match self.directory.stat(hidden.as_bytes()) {
            Ok(None) => return Ok(()),
            Ok(Some(_)) => {}
            Err(source) => return Err(failed(path, "removed")(source)),
        }
        let removed = remove_tree_in(self.directory.as_fd(), hidden.as_bytes());
        removed.map(drop).map_err(|source| UserStateError::Remains {
            path: path.to_owned(),
            source,
        })
    }

    fn path_of(&self, name: &str) -> Result<PathBuf, UserStateError> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return Err(UserStateError::Name {
                name: name.to_owned(),
            });
        }
        Ok(self.path.join(name))
    }
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn failed(path: &Path, what: &'static str) -> impl Fn(Errno) -> UserStateError {
    let path = path.to_owned();
    move |source| UserStateError::Failed {
        path: path.clone(),
        what,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
    use wp_codebox_contracts::ErrorCode;

    const USER: u32 = 12_345;

    fn account(name: &str) -> Account {
        Account {
            name: name.to_owned(),
            uid: USER,
            gid: USER,
        }
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Returns a directory of root; `None` if the test does not run as root.
    fn place() -> Option<tempfile::TempDir> {
        let root = rustix::process::geteuid().is_root();
        root.then(|| tempfile::tempdir().unwrap())
    }

    #[test]
    fn state_directory_is_made_once_with_mode_0700_and_the_ids_of_its_user() {
        let Some(temp) = place() else { return };
        let path = temp.path().join("states");
        let states = UserStates::open_or_make_at(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
        // Left by a process that was killed.
        fs::create_dir(path.join(".new-one")).unwrap();
        for _ in 0..2 {
            assert_eq!(states.make(&account("one")).unwrap(), path.join("one"));
            let made = fs::metadata(path.join("one")).unwrap();
            assert_eq!((made.uid(), made.gid()), (USER, USER));
            assert_eq!(made.mode() & 0o7777, 0o700);
        }
        assert_eq!(states.list().unwrap(), [("one".to_owned(), USER)]);
    }

    #[test]
    fn link_file_and_directory_of_another_user_or_mode_are_refused_and_stay() {
        let Some(temp) = place() else { return };
        mode(temp.path(), 0o755);
        let path = temp.path();
        let states = UserStates::open_at(path).unwrap().unwrap();
        states.make(&account("control")).unwrap();
        symlink("control", path.join("link")).unwrap();
        fs::write(path.join("file"), "").unwrap();
        fs::create_dir(path.join("of-root")).unwrap();
        states.make(&account("open")).unwrap();
        mode(&path.join("open"), 0o750);
        states.make(&account("group")).unwrap();
        lchown(path.join("group"), Some(USER), Some(USER + 1)).unwrap();
        for (name, is_kind) in [
            ("link", true),
            ("file", true),
            ("of-root", false),
            ("open", false),
            ("group", false),
        ] {
            let before = fs::symlink_metadata(path.join(name)).unwrap();
            let refused = states.make(&account(name)).unwrap_err();
            assert_eq!(
                matches!(refused, UserStateError::NotADirectory { .. }),
                is_kind,
                "{refused}"
            );
            let after = fs::symlink_metadata(path.join(name)).unwrap();
            assert_eq!((before.uid(), before.mode()), (after.uid(), after.mode()));
            assert_eq!(ErrorBody::from(refused).code, ErrorCode::StateDirInvalid);
        }
        for name in ["", ".", "..", ".new-x", "a/b"] {
            let refused = states.make(&account(name)).unwrap_err();
            assert!(matches!(refused, UserStateError::Name { .. }), "{refused}");
        }
    }

    #[test]
    fn directory_that_another_user_can_change_or_that_is_a_state_directory_is_refused() {
        let Some(temp) = place() else { return };
        let path = temp.path();
        let refused = || UserStates::open_at(path).unwrap_err();
        for bad in [0o775, 0o757, 0o700] {
            mode(path, bad);
            assert!(matches!(refused(), UserStateError::Unsafe { .. }));
        }
        mode(path, 0o755);
        UserStates::open_at(path).unwrap();
        fs::write(path.join(VERSION), "1\n").unwrap();
        assert!(matches!(refused(), UserStateError::OldLayout { .. }));
        fs::remove_file(path.join(VERSION)).unwrap();
        mode(path, 0o700);
        lchown(path, Some(USER), Some(USER)).unwrap();
        let error = ErrorBody::from(refused());
        assert!(
            error.message.contains("state directory of uid 12345"),
            "{error}"
        );
        assert!(error.hints[0].contains("/USER"), "{error:?}");
    }

    #[test]
    fn removed_state_directory_is_gone_whole_and_the_target_of_a_link_in_it_stays() {
        let Some(temp) = place() else { return };
        mode(temp.path(), 0o755);
        let path = temp.path();
        let states = UserStates::open_at(path).unwrap().unwrap();
        for name in ["one", "two"] {
            states.make(&account(name)).unwrap();
            fs::write(path.join(name).join("file"), "").unwrap();
        }
        symlink("../two", path.join("one/link")).unwrap();
        // Left by a removal that was killed.
        fs::create_dir_all(path.join(".removing-one/rest")).unwrap();
        states.remove("one").unwrap();
        states.remove("one").unwrap();
        let names: Vec<_> = fs::read_dir(path)
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names, ["two"]);
        assert!(path.join("two/file").exists());
        symlink("two", path.join("three")).unwrap();
        assert!(states.owner("three").is_err() && states.owner("one").unwrap().is_none());
    }
}
