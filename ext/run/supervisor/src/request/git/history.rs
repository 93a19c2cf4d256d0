//! Reads the parts of a source's git repository that a guest gets when its mount requests the
//! history.
//!
//! The files are read through descriptors below the source, with the permissions of the caller and
//! without running git. Only listed files are copied: none of them contains a credential or names a
//! program or another directory. The configuration is generated from a few real settings, so that
//! git inside and outside the guest report the same changes of the working tree.

use crate::request::sources::History;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::io::Read;
use std::time::{Duration, UNIX_EPOCH};

/// Generated settings of the repository. The guest's view has other inode numbers and change times
/// than the index recorded, so git must compare only size and modification time.
pub(super) const CONFIG: &str = "[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tcheckStat = minimal
\ttrustctime = false
\tprotectNTFS = false
\tprotectHFS = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
";
/// Files of the `.git` directory that are copied.
const FILES: [&str; 6] = [
    "HEAD",
    "packed-refs",
    "index",
    "shallow",
    "info/exclude",
    "info/sparse-checkout",
];
/// Maximum number of branches, tags and other references that are stored as separate files.
const REFERENCES: usize = 100_000;
/// Maximum size of all copied files together, in bytes. An index of 500,000 files takes a tenth of
/// it.
const BYTES: u64 = 512 * 1024 * 1024;
/// Maximum depth of the reference directories.
const DEPTH: usize = 32;
/// Git settings that are copied when their value is a single word.
const TAKEN: [&str; 8] = [
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
];

/// Opens the `objects` directory of the git repository at the root of a mount's source.
pub(crate) fn objects(source: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    directory(source, ".git/objects")
}

/// Reads the files that the guest gets. The error says why a guest cannot have the history; it
/// continues the sentence "mount TARGET cannot have the requested git repository: …".
pub(super) fn read(source: BorrowedFd<'_>) -> Result<History, String> {
    let unreadable = |what: &str, e: Errno| {
        format!("the git repository of its source cannot be read ({what}: {e})")
    };
    let git = directory(source, ".git").map_err(|e| match e {
        Errno::NOENT => "its source is not the root of a git work tree: mount the root".to_owned(),
        Errno::NOTDIR | Errno::LOOP => {
            "the .git of its source is not a directory, so the history is stored elsewhere: mount the main work tree"
                .to_owned()
        }
        e => unreadable(".git", e),
    })?;
    let mut left = BYTES;
    let mut take = |path: &str| -> Result<Option<Vec<u8>>, String> {
        let found = file(git.as_fd(), path, left).map_err(|e| unreadable(path, e))?;
        left -= found.as_ref().map_or(0, |bytes| bytes.len() as u64);
        Ok(found)
    };
    for elsewhere in [
        "commondir",
        "objects/info/alternates",
        "objects/info/http-alternates",
    ] {
        if take(elsewhere)?.is_some_and(|bytes| !bytes.is_empty()) {
            return Err(format!(
                "the file {elsewhere} shows that parts of the history are stored outside of the source"
            ));
        }
    }
    let settings = take("config")?.unwrap_or_default();
    let settings = settings_of(&String::from_utf8_lossy(&settings))?;
    let mut files = vec![("config".to_owned(), settings.into_bytes())];
    // The modification time of the index is read before its content. If the index is replaced in
    // between, the time is too old, which only makes git compare the content of more files.
    let stat = rustix::fs::statat(git.as_fd(), "index", AtFlags::SYMLINK_NOFOLLOW).ok();
    let indexed = stat.and_then(|stat| {
        let seconds = u64::try_from(stat.st_mtime).ok()?;
        UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    });
    for name in FILES {
        if let Some(bytes) = take(name)? {
            files.push((name.to_owned(), bytes));
        }
    }
    if !files.iter().any(|(name, _)| name == "HEAD") {
        return Err("the .git of its source has no HEAD".to_owned());
    }
    // Further parts of an index that git has split (`sharedindex.<digest>`).
    let beside = names(git.as_fd()).map_err(|e| unreadable(".git", e))?;
    for (name, _) in beside
        .iter()
        .filter(|(name, _)| name.starts_with("sharedindex."))
    {
        if let Some(bytes) = take(name)? {
            files.push((name.clone(), bytes));
        }
    }
    let packs = directory(git.as_fd(), "objects/pack");
    let names = packs.and_then(|packs| names(packs.as_fd()));
    let promised = |(name, _): &(String, FileType)| name.ends_with(".promisor");
    if names.is_ok_and(|names| names.iter().any(promised)) {
        return Err("its source is a partial clone, whose history is incomplete".to_owned());
    }
    references(git.as_fd(), "refs", 0, &mut take, &mut files)?;
    Ok(History { files, indexed })
}

type Take<'a> = dyn FnMut(&str) -> Result<Option<Vec<u8>>, String> + 'a;

fn references(
    git: BorrowedFd<'_>,
    at: &str,
    depth: usize,
    take: &mut Take<'_>,
    files: &mut Vec<(String, Vec<u8>)>,
) -> Result<(), String> {
    let failed = |e: Errno| format!("the git references of its source cannot be read: {e}");
    if depth > DEPTH || files.len() > REFERENCES {
        return Err("its source has too many or too deeply nested git references".to_owned());
    }
    let open = directory(git, at).map_err(failed)?;
    for (name, kind) in names(open.as_fd()).map_err(failed)? {
        let path = format!("{at}/{name}");
        match kind {
            FileType::Directory => references(git, &path, depth + 1, take, files)?,
            FileType::RegularFile => {
                if let Some(bytes) = take(&path)? {
                    files.push((path, bytes));
                }
            }
            // Other types are skipped. git would read a symbolic link as a symbolic reference, but
            // current versions of git do not create such links.
            _ => {}
        }
    }
    Ok(())
}

/// Builds the `config` file of the guest's repository from `real`, the content of the source's
/// `config` file.
fn settings_of(real: &str) -> Result<String, String> {
    let mut text = CONFIG.to_owned();
    let mut section = String::new();
    for mut line in real.lines().map(str::trim) {
        // A setting may follow its section header on the same line.
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|l| l.split_once(']')) {
            section = name.trim().to_lowercase();
            line = rest.trim();
        }
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let name = format!("{section}.{}", name.trim().to_lowercase());
        let value = value.trim();
        let plain = (1..=32).contains(&value.len())
            && value
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        match name.as_str() {
            "extensions.objectformat" if value != "sha1" => {
                return Err(format!(
                    "the git objects of its source have the format {value:?} instead of sha1"
                ));
            }
            "extensions.refstorage" if value != "files" => {
                return Err("the git references of its source are not stored as files".to_owned());
            }
            "extensions.partialclone" => {
                return Err("its source is a partial clone, whose history is incomplete".to_owned());
            }
            name if TAKEN.contains(&name) && plain => {
                let key = name.strip_prefix("core.").unwrap_or_default();
                text.push_str(&format!("[core]\n\t{key} = {value}\n"));
            }
            _ => {}
        }
    }
    Ok(text)
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

fn directory(from: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(from, path, flags, Mode::empty(), BENEATH)
}

/// Reads a regular file of at most `most` bytes; `None` when it does not exist.
fn file(from: BorrowedFd<'_>, path: &str, most: u64) -> Result<Option<Vec<u8>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = match openat2(from, path, flags, Mode::empty(), BENEATH) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(error),
    };
    let stat = rustix::fs::fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::from(fd)
        .take(most + 1)
        .read_to_end(&mut bytes);
    read.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    if bytes.len() as u64 > most {
        return Err(Errno::FBIG);
    }
    Ok(Some(bytes))
}

/// Returns the directory entries with UTF-8 names and their file types.
fn names(open: BorrowedFd<'_>) -> Result<Vec<(String, FileType)>, Errno> {
    let mut all = Vec::new();
    for row in Dir::read_from(open)? {
        let row = row?;
        let name = row.file_name();
        let Ok(name) = name.to_str() else { continue };
        if name == "." || name == ".." {
            continue;
        }
        let stat = rustix::fs::statat(open, name, AtFlags::SYMLINK_NOFOLLOW)?;
        all.push((name.to_owned(), FileType::from_raw_mode(stat.st_mode)));
        if all.len() > REFERENCES {
            return Err(Errno::OVERFLOW);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_git_settings_contain_no_credential_program_or_path_and_extensions_are_refused() {
        let real = "[core]\n\tautocrlf = input\n\thooksPath = /srv/hooks\n\tfsmonitor = evil\n\tworktree = ../x\n\
                    \tfilemode = false # no\n[remote \"origin\"]\n\turl = https://token@example.org\n[http]\n\textraheader = secret\n\
                    [include]\n\tpath = /etc/secret\n[core]\n\tsymlinks = false\n[filter \"x\"]\n\tsmudge = run\n";
        let made = settings_of(real).unwrap();
        assert!(made.contains("autocrlf = input") && made.contains("symlinks = false"));
        for absent in [
            "hooks",
            "fsmonitor",
            "worktree",
            "token",
            "secret",
            "smudge",
            "# no",
        ] {
            assert!(!made.contains(absent), "{absent}");
        }
        for refused in [
            "[extensions]\nobjectFormat = sha256\n",
            "[extensions]\nrefStorage = reftable\n",
            "[extensions]\npartialClone = origin\n",
            "[extensions] partialClone = origin\n",
        ] {
            assert!(settings_of(refused).is_err(), "{refused}");
        }
    }
}
