//! Directories that are generated for a run from an archive, a part of a directory, or text.
//!
//! The source is opened and checked before root is given up. The directory is generated later, by
//! the owner of the state directory, in the run's scratch directory, so that the cleanup after a
//! crash removes it with the run.

mod archive;
mod write;

pub use archive::{list, plugin_header};

use super::sources::{OpenMount, Shown, open_source};
use rustix::fs::{FileType, Mode, OFlags};
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{CaptureLimits, ExcludeRules, Links, OmitReason, Omitted, copy_tree};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GeneratedDirectory, GeneratedFrom, RunRequest};
use wp_codebox_policy as policy;
use wp_codebox_runtime::RunDir;
use write::write;

/// Returns how the directory of this mount or component is generated; `None` if it is an existing
/// directory.
pub(crate) fn of<'a>(request: &'a RunRequest, name: &str) -> Option<&'a GeneratedDirectory> {
    let workflow = request.workflow.as_ref()?;
    workflow.made.iter().find(|row| row.of == name)
}

/// Opens the source of a generated directory.
pub(crate) fn open(
    row: &GeneratedDirectory,
    source: &str,
    subject: &str,
    request: &RunRequest,
) -> Result<(OwnedFd, PathBuf), ErrorBody> {
    match &row.from {
        GeneratedFrom::Copy { .. } => open_source(source, subject, request),
        GeneratedFrom::Archive { .. } => open_archive(source, subject, request),
        // The text is part of the request; the descriptor is a placeholder and is never read.
        GeneratedFrom::Files { .. } => {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let nothing = rustix::fs::open("/dev/null", flags, Mode::empty())
                .map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
            Ok((nothing, PathBuf::from("/dev/null")))
        }
    }
}

fn open_archive(
    source: &str,
    subject: &str,
    request: &RunRequest,
) -> Result<(OwnedFd, PathBuf), ErrorBody> {
    let fail =
        |what: String| ErrorBody::new(ErrorCode::MountSourceInvalid, format!("{subject} {what}"));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(source, flags, Mode::empty())
        .map_err(|e| fail(format!("cannot be read: {e}")))?;
    let stat = rustix::fs::fstat(&fd).map_err(|e| fail(format!("cannot be read: {e}")))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(fail(
            "is not an archive: it is not a regular file".to_owned(),
        ));
    }
    // The check below uses the kernel's path of the open file, so that no second lookup can lead to
    // another file.
    let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        .map_err(|e| fail(format!("has a path that cannot be determined: {e}")))?;
    let canonical = path
        .to_str()
        .ok_or_else(|| fail("has a path that is not UTF-8".to_owned()))?;
    let authority = policy::MountAuthority {
        paths: &request.paths,
    };
    policy::check_staged_source(canonical, subject, authority)?;
    Ok((fd, path))
}

/// Generates the directory of one mount and makes it the source of the mount.
pub(crate) fn build(
    mount: &mut OpenMount,
    row: &GeneratedDirectory,
    run_dir: &RunDir,
    number: usize,
) -> Result<(), ErrorBody> {
    let failed = |what: String| {
        let message = format!("the directory for {} cannot be made: {what}", row.of);
        ErrorBody::new(ErrorCode::SandboxStartFailed, message)
    };
    let directory = run_dir.scratch(&format!("made-{number}"))?;
    let open = |path: &Path| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).map_err(|e| failed(e.to_string()))
    };
    match &row.from {
        GeneratedFrom::Archive { sha256, subdir } => {
            let file = fs::File::from(
                mount
                    .source
                    .try_clone()
                    .map_err(|e| failed(e.to_string()))?,
            );
            archive::unpack(file, sha256.as_deref(), subdir.as_deref(), &directory)
                .map_err(|e| e.body(&row.of))?;
        }
        GeneratedFrom::Copy { without } => {
            let to = open(&directory)?;
            let rules = ExcludeRules::of_paths(without);
            let (from, limits) = (mount.source.as_fd(), &CaptureLimits::TREE);
            let copied = copy_tree(from, to.as_fd(), &rules, Links::AsTheyAre, limits)?;
            // Entries with the reason `Excluded` need no notice: the request itself excluded them.
            let unasked = |left: &Omitted| left.reason != OmitReason::Excluded;
            mount.left_out = copied.omitted.into_iter().filter(unasked).collect();
        }
        GeneratedFrom::Files { files } => {
            for (name, content) in files {
                write(&directory, name, content.as_bytes()).map_err(|e| failed(e.to_string()))?;
            }
        }
    }
    mount.source = open(&directory)?;
    mount.path = directory;
    // The source was out of reach of launchers (programs that start guests), but the generated
    // directory is in the state directory, which they can open.
    if mount.shown == Shown::Never {
        mount.shown = Shown::ByView;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_file_with_an_unsafe_path_or_the_name_of_an_existing_file_is_not_written() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir(&inner).unwrap();
        write(&inner, "a/b.txt", b"x").unwrap();
        assert_eq!(fs::read(inner.join("a/b.txt")).unwrap(), b"x");
        for name in ["../c", "a/../../c", "/c", "./c", "a//c", "", "a/b.txt"] {
            assert!(write(&inner, name, b"x").is_err(), "{name:?}");
        }
        let mut names: Vec<_> = fs::read_dir(outer.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["inner"]);
    }
}
