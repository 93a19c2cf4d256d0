//! Directory of one call: copies of the tool's files and of the directory that the tool works on.
//!
//! | path | content |
//! |---|---|
//! | `tool/` | definition, module and compiled code |
//! | `root/work/` | what the tool sees, below the root that gVisor shows |
//! | `base/` | state from which the tool starts, if it may change the directory |

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wp_codebox_artifacts::{CaptureError, ExcludeRules, MountChanges, Shadow, TreeError};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, WasiFiles};
use wp_codebox_process_wrapper::{MountAccess, ToolCall, ToolDirectory};
use wp_codebox_supervisor::RegisteredTool;

const TOOL: &str = "tool";
const ROOT: &str = "root";
const WORK: &str = "work";
const BASE: &str = "base";

/// The directory of one call. It is removed with everything in it when the value is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    place: TempDir,
    work: Option<Work>,
}

/// Copies of the directory that the tool works on.
#[derive(Debug)]
struct Work {
    shadow: Shadow,
    access: MountAccess,
}

impl Scratch {
    /// Copies the tool's files and the directory. The tool's files are not used in place, because
    /// root inside a wrapper's user namespace may not read files of the state directory's owner.
    pub fn make(
        tool: &RegisteredTool,
        compiled: &Path,
        directory: Option<&Path>,
    ) -> Result<Self, ErrorBody> {
        let place = tempfile::tempdir().map_err(|e| failed("temporary directory", &e))?;
        let mut scratch = Self { place, work: None };
        for directory in [TOOL.into(), BASE.into(), Path::new(ROOT).join(WORK)] {
            fs::create_dir_all(scratch.path().join::<PathBuf>(directory))
                .map_err(|e| failed("temporary directory", &e))?;
        }
        scratch.add(&tool.definition_path(), "definition.json")?;
        scratch.add(&tool.module_path(), "module.wasm")?;
        scratch.add(compiled, "module.cwasm")?;
        if let Some(directory) = directory {
            let access = match tool.tool.files {
                WasiFiles::None | WasiFiles::Read => MountAccess::Read,
                WasiFiles::Write => MountAccess::Write,
            };
            let base = open(&scratch.base(access))?;
            let original = open(directory)?;
            let rules = ExcludeRules::default();
            let (shadow, _) = Shadow::make(original.as_fd(), base.as_fd(), rules)
                .map_err(|e| ErrorBody::new(e.code(), e.to_string()))?;
            scratch.work = Some(Work { shadow, access });
        }
        Ok(scratch)
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Returns the directory with the tool's files.
    pub fn files(&self) -> PathBuf {
        self.path().join(TOOL)
    }

    /// Returns the directory that gVisor shows as its root.
    pub fn root(&self) -> PathBuf {
        self.path().join(ROOT)
    }

    /// Adds a copy of a file to the tool's files.
    pub fn add(&self, from: &Path, name: &str) -> Result<(), ErrorBody> {
        let copied = fs::copy(from, self.files().join(name));
        copied.map(drop).map_err(|e| failed("copy of the tool", &e))
    }

    /// Returns the size of a file of the tool in bytes.
    pub fn size(&self, name: &str) -> u64 {
        let found = self.files().join(name).metadata();
        found.map_or(0, |metadata| metadata.len())
    }

    /// Returns the directory with the state from which the tool starts, and the access of the tool.
    pub fn work(&self) -> Option<(PathBuf, MountAccess)> {
        let access = self.work.as_ref()?.access;
        Some((self.base(access), access))
    }

    /// Returns the copy that stays unchanged during the call. A directory that the tool may only
    /// read needs no second copy.
    fn base(&self, access: MountAccess) -> PathBuf {
        match access {
            MountAccess::Read => self.root().join(WORK),
            MountAccess::Write => self.path().join(BASE),
        }
    }

    /// Makes the copy on which the tool works, if it may change the directory.
    pub fn copy_base(&self) -> Result<(), ErrorBody> {
        match &self.work {
            Some(Work {
                shadow,
                access: MountAccess::Write,
            }) => {
                let copy = open(&self.root().join(WORK))?;
                let copied = shadow.copy_to(copy.as_fd());
                copied.map_err(|e: TreeError| ErrorBody::new(e.code(), e.to_string()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the call of `runner` with host paths of this directory.
    pub fn call(&self, runner: &Path) -> Result<ToolCall, ErrorBody> {
        let file = |name: &str| text(&self.files().join(name));
        let directory = match &self.work {
            None => None,
            Some(work) => Some(ToolDirectory {
                host: text(&self.root().join(WORK))?,
                access: work.access,
            }),
        };
        Ok(ToolCall {
            runner: text(runner)?,
            definition: file("definition.json")?,
            module: file("module.wasm")?,
            compiled: Some(file("module.cwasm")?),
            directory,
            args: Vec::new(),
        })
    }

    /// Returns the changes in the copy; `None` without a directory.
    pub fn changes(&self) -> Result<Option<MountChanges>, ErrorBody> {
        self.changes_by(|shadow| {
            let copy = open(&self.root().join(WORK))?;
            shadow.changes_in_copy(copy.as_fd()).map_err(captured)
        })
    }

    /// Returns the changes that `read` finds, or no changes if the tool may only read the
    /// directory; `None` without a directory.
    pub fn changes_by(
        &self,
        read: impl FnOnce(&Shadow) -> Result<MountChanges, ErrorBody>,
    ) -> Result<Option<MountChanges>, ErrorBody> {
        let changes = self.work.as_ref().map(|work| match work.access {
            MountAccess::Read => Ok(MountChanges::default()),
            MountAccess::Write => read(&work.shadow),
        });
        changes.transpose()
    }

    /// Writes the changes to the directory itself.
    pub fn merge(&self, changes: &MountChanges) -> Result<(), ErrorBody> {
        match &self.work {
            Some(work) => work.shadow.merge(changes).map_err(ErrorBody::from),
            None => Ok(()),
        }
    }

    /// Gives everything in this directory to the user and group `id`. Only root can.
    pub fn give_to(&self, id: u32) -> Result<(), ErrorBody> {
        give(self.path(), id).map_err(|e| failed("temporary directory", &e))
    }
}

/// Changes the owner of everything below a directory, and of the directory itself last: until then
/// no other user can enter it.
fn give(path: &Path, id: u32) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), id)?;
        }
    }
    lchown(path, Some(id), Some(id))
}

fn open(path: &Path) -> Result<File, ErrorBody> {
    File::open(path).map_err(|error| {
        let message = format!("the directory {} cannot be read: {error}", path.display());
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })
}

/// Returns an error of a capture with its code.
pub(super) fn captured(error: CaptureError) -> ErrorBody {
    ErrorBody::new(error.code(), error.to_string())
}

/// Returns the absolute path as text.
pub(super) fn text(path: &Path) -> Result<String, ErrorBody> {
    let absolute: PathBuf = std::path::absolute(path).map_err(|e| failed("path", &e))?;
    absolute
        .into_os_string()
        .into_string()
        .map_err(|_: std::ffi::OsString| {
            ErrorBody::new(
                ErrorCode::InputInvalid,
                "a path with bytes that are not UTF-8 cannot be given to the tool",
            )
        })
}

/// Returns the error of a file or program of the call that cannot be used.
pub(super) fn failed(what: &str, error: &io::Error) -> ErrorBody {
    let message = format!("the {what} cannot be used: {error}");
    ErrorBody::new(ErrorCode::WasiRunnerFailed, message)
}
