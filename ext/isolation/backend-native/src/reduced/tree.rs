//! Creates a guest's tree on disk and collects its changes after the guest has ended.
//!
//! Sources are opened as the launcher opens them: only the inode that was checked is accepted.
//! Everything is copied by file descriptor. A directory whose changes will be captured is opened
//! before the guest exists. After the guest is dead, the directory at the same path is compared
//! with that descriptor. This detects a guest that moved the directory away.

use super::root::GuestRoot;
use super::steps::{Access, Capture, StepError, TreeStep, steps};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{CaptureLimits, ExcludeRules, Links, apply_layer, copy_tree};
use wp_codebox_contracts::{
    BindSource, CodedError, GuestPath, HostSource, InodeId, InvalidGuestPath, IsolationLevel,
    LaunchMount, LaunchPlan,
};

/// Reason why a guest's tree cannot be created.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(SandboxStartFailed)]
pub enum LayoutError {
    /// The directory for the tree has no valid path, for example a relative one.
    #[error(
        "the host directory for the guest's files must have a path that is also valid in a guest: {source}; choose another state directory"
    )]
    Path {
        /// What is wrong with the path.
        #[from]
        source: InvalidGuestPath,
    },
    /// A step of the plan needs a mount, and level `reduced` has no mounts.
    #[error("{detail}")]
    #[code(IsolationUnavailable)]
    Unavailable {
        /// Description of the step that needs a mount.
        detail: String,
    },
    /// A file operation failed.
    #[error(
        "the guest's directory tree could not be created: step `{step}` failed for {path}: {source}"
    )]
    Io {
        /// Failed step, for the error message.
        step: &'static str,
        /// Guest path of the file or directory.
        path: String,
        /// Error of the file operation.
        source: std::io::Error,
    },
    /// A directory could not be copied.
    #[error("the guest's copy of {path} could not be made: {source}")]
    #[code(source)]
    Copy {
        /// Guest path of the directory that was copied.
        path: String,
        /// Error of the copy.
        source: wp_codebox_artifacts::TreeError,
    },
    /// A captured change could not be applied to the copy of its source.
    #[error(
        "the captured change of {path} could not be applied to the copy of the source directory: {source}"
    )]
    Layer {
        /// Guest path of the directory that was copied.
        path: String,
        /// Error of applying the change.
        source: wp_codebox_artifacts::LayerError,
    },
}

impl From<StepError> for LayoutError {
    fn from(error: StepError) -> Self {
        Self::Unavailable {
            detail: error.to_string(),
        }
    }
}

/// The directory tree of a guest at level `reduced` on the host's disk, with everything that the
/// launch of the guest needs.
#[derive(Debug)]
pub struct GuestTree {
    root: GuestRoot,
    plan: LaunchPlan,
    writable: Vec<String>,
    captured: Vec<Captured>,
    returns: Vec<(String, String)>,
}

#[derive(Debug)]
struct Captured {
    index: u32,
    path: String,
    directory: OwnedFd,
}

/// Returns whether the path of a captured directory leads to the directory that was opened before
/// the guest started. It does not if the guest has moved or replaced the directory.
fn in_place(captured: &&Captured) -> bool {
    let now = open_directory(&captured.path).and_then(|fd| pin(&fd));
    now.is_ok_and(|now| pin(&captured.directory) == Ok(now))
}

impl GuestTree {
    /// Creates a new directory with everything that `plan`, written for level `full`, would mount.
    /// `directory` must not exist yet. Every user who may access the new directory can read the
    /// files that are copied into it.
    pub fn lay_out(plan: &LaunchPlan, directory: &Path) -> Result<Self, LayoutError> {
        let path = directory.to_string_lossy().into_owned();
        let root = GuestRoot::new(&path)?;
        let steps = steps(plan, &root)?;
        let mut tree = Self {
            plan: LaunchPlan {
                level: IsolationLevel::Reduced,
                mounts: Vec::new(),
                writable: Vec::new(),
                // At level `reduced` there is no network namespace in which the mail socket could
                // listen.
                mail: None,
                ..plan.clone()
            },
            root,
            writable: Vec::new(),
            captured: Vec::new(),
            returns: Vec::new(),
        };
        let failed = |step| {
            move |source: std::io::Error| LayoutError::Io {
                step,
                path: "/".to_owned(),
                source,
            }
        };
        fs::DirBuilder::new()
            .mode(0o700)
            .create(directory)
            .map_err(failed("mkdir"))?;
        for step in steps {
            tree.step(step)?;
        }
        let opened = open_directory(&path).map_err(|e| failed("open")(e.into()))?;
        tree.rule(
            &path,
            Some(pin(&opened).map_err(|e| failed("stat")(e.into()))?),
            Access::Read,
        )?;
        for path in tree.writable.clone() {
            let failed = |source: Errno| LayoutError::Io {
                step: "open",
                path: tree.shown(&path),
                source: source.into(),
            };
            let opened = open_directory(&path).map_err(failed)?;
            let pinned = pin(&opened).map_err(failed)?;
            tree.rule(&path, Some(pinned), Access::Write)?;
        }
        Ok(tree)
    }

    /// Returns the launch plan that gives the guest access to this tree.
    #[must_use]
    pub fn plan(&self) -> &LaunchPlan {
        &self.plan
    }

    /// Returns the translation of guest paths to host paths of this tree.
    #[must_use]
    pub fn root(&self) -> &GuestRoot {
        &self.root
    }

    /// Returns the host paths of the directories that the guest may write.
    #[must_use]
    pub fn writable(&self) -> &[String] {
        &self.writable
    }

    /// Returns the layer indexes and descriptors of the directories whose changes are captured.
    /// Unlike [`Self::into_layers`], this function may be called while the guest lives. Leaves out
    /// directories that the guest has moved or replaced.
    pub fn captured_now(&self) -> impl Iterator<Item = (u32, &OwnedFd)> {
        self.captured
            .iter()
            .filter(in_place)
            .map(|captured| (captured.index, &captured.directory))
    }

    /// Returns the descriptors of the directories whose changes are captured, by layer index. The
    /// guest must be dead. A directory that the guest moved or replaced is left out, because its
    /// path no longer leads to the original directory.
    #[must_use]
    pub fn into_layers(self) -> BTreeMap<u32, OwnedFd> {
        self.captured
            .into_iter()
            .filter(|captured| in_place(&captured))
            .map(|captured| (captured.index, captured.directory))
            .collect()
    }

    /// Replaces the source directories of a template build with the copies that its guest changed.
    /// The guest must be dead.
    pub fn replace_sources(&self) -> std::io::Result<()> {
        for (path, source) in &self.returns {
            fs::remove_dir_all(source)?;
            fs::rename(path, source)?;
        }
        Ok(())
    }

    /// Returns the guest path for a host path of the tree, so that errors contain no host path.
    fn shown(&self, path: &str) -> String {
        path.strip_prefix(self.root.as_str())
            .unwrap_or(path)
            .to_owned()
    }

    fn rule(
        &mut self,
        path: &str,
        inode: Option<InodeId>,
        access: Access,
    ) -> Result<(), LayoutError> {
        self.plan.mounts.push(LaunchMount::Bind {
            source: BindSource::Host(HostSource {
                path: path.to_owned(),
                inode,
            }),
            target: GuestPath::new(path)?,
            writable: access == Access::Write,
        });
        Ok(())
    }

    fn step(&mut self, step: TreeStep) -> Result<(), LayoutError> {
        let io = |tree: &Self, step, path: &str| {
            let path = tree.shown(path);
            move |source: std::io::Error| LayoutError::Io { step, path, source }
        };
        match step {
            TreeStep::HostPath { path } => return self.rule(&path, None, Access::Read),
            TreeStep::Directory { path, access } => {
                make_directory(&path).map_err(io(self, "mkdir", &path))?;
                if access == Access::Write {
                    self.writable.push(path);
                }
            }
            TreeStep::File { path, contents } => {
                parent(&path)
                    .and_then(|()| write_file(&path, contents.as_bytes()))
                    .map_err(io(self, "write", &path))?;
            }
            TreeStep::Link { path, to } => {
                parent(&path)
                    .and_then(|()| clear(&path))
                    .and_then(|()| symlink(to, &path))
                    .map_err(io(self, "link", &path))?;
            }
            TreeStep::Copy {
                sources,
                path,
                access,
                capture,
            } => self.copy(&sources, path, access, capture)?,
        }
        Ok(())
    }

    fn copy(
        &mut self,
        sources: &[HostSource],
        path: String,
        access: Access,
        capture: Capture,
    ) -> Result<(), LayoutError> {
        let shown = self.shown(&path);
        let io = |step: &'static str| {
            let path = shown.clone();
            move |source: std::io::Error| LayoutError::Io { step, path, source }
        };
        let errno = |step: &'static str| {
            let io = io(step);
            move |error: Errno| io(error.into())
        };
        let Some((base, layers)) = sources.split_first() else {
            return Err(io("copy")(Errno::INVAL.into()));
        };
        parent(&path)
            .and_then(|()| clear(&path))
            .map_err(io("mkdir"))?;
        let from = open_source(base).map_err(errno("open"))?;
        if !is_directory(&from).map_err(errno("stat"))? {
            return copy_file(&from, &path).map_err(io("copy"));
        }
        make_directory(&path).map_err(io("mkdir"))?;
        let to = open_directory(&path).map_err(errno("open"))?;
        copy_tree(
            from.as_fd(),
            to.as_fd(),
            &ExcludeRules::default(),
            Links::AsTheyAre,
            &CaptureLimits::TREE,
        )
        .map_err(|source| LayoutError::Copy {
            path: shown.clone(),
            source,
        })?;
        for layer in layers {
            let layer = open_source(layer).map_err(errno("open"))?;
            apply_layer(layer.as_fd(), to.as_fd()).map_err(|source| LayoutError::Layer {
                path: shown.clone(),
                source,
            })?;
        }
        match capture {
            Capture::None => {}
            Capture::Layer(index) => self.captured.push(Captured {
                index,
                path: path.clone(),
                directory: to,
            }),
            Capture::Return => self.returns.push((path.clone(), base.path.clone())),
        }
        if access == Access::Write {
            self.writable.push(path);
        }
        Ok(())
    }
}

/// Opens a source of the plan. If the plan records its inode, a path that leads to another inode is
/// refused.
pub(crate) fn open_source(source: &HostSource) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Some(wanted) = source.inode else {
        return rustix::fs::open(&source.path, flags, Mode::empty());
    };
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let fd = openat2(rustix::fs::CWD, &source.path, flags, Mode::empty(), resolve)?;
    if pin(&fd)? == wanted {
        Ok(fd)
    } else {
        Err(Errno::STALE)
    }
}

fn open_directory(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve)
}

fn pin(fd: &OwnedFd) -> Result<InodeId, Errno> {
    let stat = rustix::fs::fstat(fd)?;
    Ok(InodeId {
        device: stat.st_dev,
        inode: stat.st_ino,
    })
}

fn is_directory(fd: &OwnedFd) -> Result<bool, Errno> {
    let stat = rustix::fs::fstat(fd)?;
    Ok(rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory)
}

fn make_directory(path: &str) -> std::io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
}

fn parent(path: &str) -> std::io::Result<()> {
    match Path::new(path).parent() {
        Some(parent) => make_directory(&parent.to_string_lossy()),
        None => Ok(()),
    }
}

/// Removes what the tree contains at a mount's guest path; at level `full` the mount would cover
/// it. No other process uses the tree yet.
fn clear(path: &str) -> std::io::Result<()> {
    let path = PathBuf::from(path);
    match fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn write_file(path: &str, contents: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o444)
        .open(path)?;
    file.write_all(contents)
}

fn copy_file(from: &OwnedFd, path: &str) -> std::io::Result<()> {
    let mut from = fs::File::from(from.try_clone()?);
    let mode = from.metadata()?.permissions().mode() & 0o755;
    let mut to = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    std::io::copy(&mut from, &mut to)?;
    to.set_permissions(fs::Permissions::from_mode(mode | 0o400))
}
