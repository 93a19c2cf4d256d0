//! Directories and files of the host that a request names, opened with the rights of its caller.
//!
//! Each is named by the kernel once it is open, and judged by that name: no second look-up can
//! differ.

use rustix::fs::{FileType, Mode, OFlags};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use wp_codebox_artifacts::Omitted;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GitView, GuestPath, MountRequest, RunRequest};
use wp_codebox_policy as policy;

/// Directory with the settings of PHP that a recipe gives, in the guest.
pub(super) const PHP_SETTINGS: &str = "/run/codebox/staged/recipe/php.d";
/// Largest staged file, bytes.
const STAGED_BYTES: u64 = 16 * 1024 * 1024;

/// A mount whose source is open and allowed.
#[derive(Debug)]
pub struct OpenMount {
    pub request: MountRequest,
    pub target: GuestPath,
    pub source: OwnedFd,
    /// Canonical path of the open directory.
    pub path: PathBuf,
    /// Whether launchers can open it.
    pub shown: Shown,
    /// The repository that it has where it can.
    pub git: GitView,
    /// What it has of the source's own repository.
    pub history: Option<History>,
    /// What was left out when it was made of another directory.
    pub left_out: Vec<Omitted>,
}

/// The files of a repository that a guest may have.
#[derive(Debug)]
pub struct History {
    /// Path below the repository's directory, and contents.
    pub files: Vec<(String, Vec<u8>)>,
}

/// How launchers get at a directory of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// By its path, with the rights of the state's owner.
    ByPath,
    /// Through a view in which its owner is the guest's user.
    ByView,
    /// Not at all: it must be copied.
    Never,
    /// Not at all, and neither is a copy in the state directory: it must be copied into the
    /// guests' store.
    Stored,
}

/// A staged file, read.
#[derive(Debug)]
pub struct OpenStaged {
    pub target: GuestPath,
    pub bytes: Vec<u8>,
}

/// Opens a directory of the host that this caller may show to a guest, and names it.
pub(super) fn open_source(
    given: &str,
    subject: &str,
    request: &RunRequest,
) -> Result<(OwnedFd, PathBuf), ErrorBody> {
    let fail = |code, what: &str| ErrorBody::new(code, format!("{subject} {what}"));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let source = rustix::fs::open(given, flags, Mode::empty()).map_err(|e| match e {
        rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => fail(
            ErrorCode::MountUnreadable,
            "cannot be read: give the user that runs the sandbox read access",
        ),
        rustix::io::Errno::NOTDIR => fail(
            ErrorCode::MountSourceInvalid,
            "is not a directory: mount a directory, or stage a single file",
        ),
        _ => fail(
            ErrorCode::MountSourceInvalid,
            "does not exist or cannot be opened: check the path",
        ),
    })?;
    // Named by the kernel, for the directory that is open: no second look-up can differ.
    let path =
        std::fs::read_link(format!("/proc/self/fd/{}", source.as_raw_fd())).map_err(|e| {
            fail(
                ErrorCode::MountSourceInvalid,
                &format!("cannot be named: {e}"),
            )
        })?;
    let canonical = path.to_str().ok_or_else(|| {
        fail(
            ErrorCode::MountSourceInvalid,
            "has a path that is not UTF-8",
        )
    })?;
    let authority = policy::MountAuthority {
        paths: &request.paths,
    };
    policy::check_source(canonical, subject, authority).map_err(|e| e.body())?;
    Ok((source, path))
}

pub(super) fn open_staged(request: &RunRequest) -> Result<Vec<OpenStaged>, ErrorBody> {
    let of_task = request.task.iter().flat_map(|task| &task.staged_files);
    let of_workflow = request.workflow.iter().flat_map(|w| &w.staged);
    let mut all = of_task
        .chain(of_workflow)
        .map(|file| {
            let target = policy::check_staged_target(&file.target).map_err(|e| e.body())?;
            open_file(&file.source, target, request)
        })
        .collect::<Result<Vec<_>, _>>()?;
    for file in request.workflow.iter().flat_map(|w| &w.files) {
        all.push(OpenStaged {
            target: policy::check_staged_target(&file.target).map_err(|e| e.body())?,
            bytes: file.content.clone().into_bytes(),
        });
    }
    let settings = request.workflow.as_ref().map(|w| &w.php_ini[..]);
    if let Some(lines) = settings.filter(|lines| !lines.is_empty()) {
        let target = format!("{PHP_SETTINGS}/recipe.ini");
        all.push(OpenStaged {
            target: policy::check_staged_target(&target).map_err(|e| e.body())?,
            bytes: (lines.join("\n") + "\n").into_bytes(),
        });
    }
    Ok(all)
}

/// Reads a file of the host that this caller may show to a guest.
pub(super) fn open_file(
    source: &str,
    target: GuestPath,
    request: &RunRequest,
) -> Result<OpenStaged, ErrorBody> {
    let fail = |what: &str| {
        ErrorBody::new(
            ErrorCode::MountSourceInvalid,
            format!("the source of staged file {target} {what}"),
        )
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(source, flags, Mode::empty())
        .map_err(|e| fail(&format!("cannot be read: {e}")))?;
    let stat = rustix::fs::fstat(&fd).map_err(|e| fail(&format!("cannot be read: {e}")))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(fail("is not a regular file"));
    }
    let path = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        .map_err(|e| fail(&format!("cannot be named: {e}")))?;
    let canonical = path
        .to_str()
        .ok_or_else(|| fail("has a path that is not UTF-8"))?;
    policy::check_staged_source(
        canonical,
        &format!("staged file {target}"),
        policy::MountAuthority {
            paths: &request.paths,
        },
    )
    .map_err(|e| e.body())?;
    let mut bytes = Vec::new();
    std::fs::File::from(fd)
        .take(STAGED_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| fail(&format!("cannot be read: {e}")))?;
    if bytes.len() as u64 > STAGED_BYTES {
        return Err(fail("is larger than 16 MiB: mount its directory instead"));
    }
    Ok(OpenStaged { target, bytes })
}
