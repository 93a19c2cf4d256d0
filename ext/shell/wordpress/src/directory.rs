//! Copies a core from a directory of the host.
//!
//! Another user may own the directory and change it during the copy. Every name is opened relative
//! to its open parent directory and without following links, so no path leads out of the directory.
//! Only regular files are opened. If one is replaced by a FIFO after its type was examined,
//! `O_NONBLOCK` keeps open from waiting.

use super::layout::{Take, enters};
use super::progress::Step;
use super::unpack::{Tree, UnpackError, checked};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use wp_codebox_artifacts::Dir;

/// Copies only the files of the core from the directory of a WordPress site. The path of this
/// directory may contain links, because the user gave it.
pub(super) fn copy(source: &Path, title: &str, tree: &mut Tree<'_>) -> Result<(), UnpackError> {
    let root = source
        .canonicalize()
        .and_then(|real| Dir::open(&real).map_err(Into::into))
        .map_err(|error| UnpackError::Unreadable {
            path: source.display().to_string(),
            source: error,
        })?;
    tree.progress().begin(Step::Unpack, title, None);
    copy_entries(&root, "", tree)
}

/// Copies the core files in and below one directory, whose path is relative to the source.
/// [`checked`] bounds the depth of the recursion.
fn copy_entries(dir: &Dir, path: &str, tree: &mut Tree<'_>) -> Result<(), UnpackError> {
    let names = dir.names().map_err(unreadable(path))?;
    for raw in names {
        let joined = match path {
            "" => raw.clone(),
            path => [path.as_bytes(), b"/", &raw].concat(),
        };
        let below = match checked(&joined) {
            Ok(below) => below,
            // Skip a file with an invalid name that does not belong to the core.
            Err(_) if !Take::Core.takes(&String::from_utf8_lossy(&joined)) => continue,
            Err(error) => return Err(error),
        };
        let (takes, enters) = (Take::Core.takes(below), enters(below));
        if !takes && !enters {
            continue;
        }
        tree.count()?;
        let Some(stat) = dir.stat(&raw).map_err(unreadable(below))? else {
            continue;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let inner = dir.dir(&raw).map_err(unreadable(below))?;
                copy_entries(&inner, below, tree)?;
            }
            FileType::RegularFile if takes => {
                let mut file = open_file(dir, &raw, below)?;
                tree.file(below, &mut file, |source| UnpackError::Unreadable {
                    path: below.to_owned(),
                    source,
                })?;
            }
            FileType::RegularFile => {}
            other => return Err(special(below, other)),
        }
    }
    Ok(())
}

fn open_file(dir: &Dir, name: &[u8], path: &str) -> Result<File, UnpackError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(unreadable(path))?;
    let stat = rustix::fs::fstat(&fd).map_err(unreadable(path))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(File::from(fd)),
        // The file was replaced after its type was examined.
        other => Err(special(path, other)),
    }
}

fn unreadable(path: &str) -> impl Fn(Errno) -> UnpackError {
    let path = match path {
        "" => "its top directory",
        path => path,
    };
    move |source| UnpackError::Unreadable {
        path: path.to_owned(),
        source: source.into(),
    }
}

fn special(path: &str, kind: FileType) -> UnpackError {
    UnpackError::Special {
        name: path.to_owned(),
        kind: match kind {
            FileType::Symlink => "a symbolic link",
            FileType::Fifo => "a FIFO",
            FileType::Socket => "a socket",
            _ => "a special file",
        },
    }
}
