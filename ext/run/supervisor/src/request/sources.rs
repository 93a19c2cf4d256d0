//! Opens host directories and files that a request names, with the permissions of its caller.
//!
//! Each directory or file is opened before it is checked. The checks use the path that the kernel
//! returns for the open descriptor, so no second lookup of the path can lead to another file.

use rustix::fs::{FileType, Mode, OFlags};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::SystemTime;
use wp_codebox_artifacts::Omitted;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GitView, GuestPath, MountRequest, RunRequest};
use wp_codebox_policy as policy;

/// Guest directory of the PHP settings that a recipe contains.
pub(crate) const PHP_SETTINGS: &str = "/run/codebox/staged/recipe/php.d";
/// Maximum size of a staged file (a host file that the guest may read), in bytes.
const STAGED_BYTES: u64 = 16 * 1024 * 1024;

/// A mount whose source on the host is open and has passed the checks that allow a guest to see it.
#[derive(Debug)]
pub struct OpenMount {
    pub request: MountRequest,
    pub target: GuestPath,
    pub source: OwnedFd,
    /// Path of the open source, without symbolic links.
    pub path: PathBuf,
    /// How launchers (programs that start guests) access the source.
    pub shown: Shown,
    /// What kind of git repository the guest should get for the mount.
    pub git: GitView,
    /// Git files copied from the source's repository, if the guest gets its history.
    pub history: Option<History>,
    /// Entries that were left out when the directory was generated.
    pub left_out: Vec<Omitted>,
}

/// Files of a git repository that a guest may have.
#[derive(Debug)]
pub struct History {
    /// Path below the `.git` directory, and content of each file.
    pub files: Vec<(String, Vec<u8>)>,
    /// Modification time of the `index` file. git compares the content of every file that was
    /// modified at this time or later.
    pub indexed: Option<SystemTime>,
}

/// How launchers (programs that start guests) access a host directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// By path, with the permissions of the owner of the state directory.
    ByPath,
    /// Through an id-mapped mount, in which the guest's user appears as the owner of the files.
    ByView,
    /// Launchers cannot access the directory, so it must be copied into the state directory.
    Never,
    /// Launchers can access neither the directory nor a copy in the state directory, so the
    /// directory is copied into a tmpfs that belongs to the guests' user.
    Stored,
}

/// A staged file (a host file that the guest may read), with its content.
#[derive(Debug)]
pub struct OpenStaged {
    pub target: GuestPath,
    pub bytes: Vec<u8>,
}

/// Opens a host directory that the request names, if its caller may show it to a guest. Also
/// returns the path without symbolic links.
pub(crate) fn open_source(
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
    // Asks the kernel for the path of the open directory, so that no second lookup can lead to
    // another directory.
    let path =
        std::fs::read_link(format!("/proc/self/fd/{}", source.as_raw_fd())).map_err(|e| {
            fail(
                ErrorCode::MountSourceInvalid,
                &format!("has a path that cannot be determined: {e}"),
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
    policy::check_source(canonical, subject, authority)?;
    Ok((source, path))
}

pub(crate) fn open_staged(request: &RunRequest) -> Result<Vec<OpenStaged>, ErrorBody> {
    let of_task = request.task.iter().flat_map(|task| &task.staged_files);
    let of_workflow = request.workflow.iter().flat_map(|w| &w.staged);
    let mut all = of_task
        .chain(of_workflow)
        .map(|file| {
            let target = policy::check_staged_target(&file.target)?;
            open_file(&file.source, target, request)
        })
        .collect::<Result<Vec<_>, _>>()?;
    for file in request.workflow.iter().flat_map(|w| &w.files) {
        all.push(OpenStaged {
            target: policy::check_staged_target(&file.target)?,
            bytes: file.content.clone().into_bytes(),
        });
    }
    let settings = request.workflow.as_ref().map(|w| &w.php_ini[..]);
    if let Some(lines) = settings.filter(|lines| !lines.is_empty()) {
        let target = format!("{PHP_SETTINGS}/recipe.ini");
        all.push(OpenStaged {
            target: policy::check_staged_target(&target)?,
            bytes: (lines.join("\n") + "\n").into_bytes(),
        });
    }
    Ok(all)
}

/// Reads a host file that the request names, if its caller may show it to a guest.
pub(crate) fn open_file(
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
        .map_err(|e| fail(&format!("has a path that cannot be determined: {e}")))?;
    let canonical = path
        .to_str()
        .ok_or_else(|| fail("has a path that is not UTF-8"))?;
    policy::check_staged_source(
        canonical,
        &format!("staged file {target}"),
        policy::MountAuthority {
            paths: &request.paths,
        },
    )?;
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
