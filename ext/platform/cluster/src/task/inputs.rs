//! Opens the directories and files of a request with the rights of this process, checks them by the
//! host's mount rules, and uploads them.
//!
//! Each is opened before it is checked. The checks use the path that the kernel returns for the open
//! descriptor, so no second lookup can lead elsewhere.

use super::build::InputSource;
use super::document::WorkTree;
use super::error::TaskError;
use crate::layers::{LayerInput, LayerSource, LayerStore, PackRules};
use crate::objects::Objects;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{RunPaths, Sha256Hex};
use wp_codebox_policy::{MountAuthority, check_source, check_staged_source};

/// Maximum size of a single file, such as an archive, in bytes.
const MAX_FILE: i64 = 512 * 1024 * 1024;

/// Uploads the inputs of one request, and keeps them open so that [`UploadedInputs::confirm`] can
/// upload them again.
pub struct UploadedInputs<'s> {
    objects: &'s dyn Objects,
    store: &'s LayerStore,
    paths: RunPaths,
    wordpress: PackRules,
    inputs: Vec<LayerInput>,
    files: Vec<(String, File)>,
}

impl std::fmt::Debug for UploadedInputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UploadedInputs")
            .field("inputs", &self.inputs.len())
            .finish_non_exhaustive()
    }
}

impl<'s> UploadedInputs<'s> {
    /// Prepares the upload of a request's inputs. `paths` are those of the request; `wordpress`
    /// selects the core's files in a WordPress root.
    #[must_use]
    pub const fn new(
        objects: &'s dyn Objects,
        store: &'s LayerStore,
        paths: RunPaths,
        wordpress: PackRules,
    ) -> Self {
        Self {
            objects,
            store,
            paths,
            wordpress,
            inputs: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Uploads layers again that the server no longer has; returns how many.
    ///
    /// # Errors
    /// As the upload itself.
    pub fn confirm(&mut self) -> Result<u32, TaskError> {
        let mut uploaded = 0;
        for input in &mut self.inputs {
            uploaded += u32::from(self.store.confirm(self.objects, input)?);
        }
        Ok(uploaded)
    }

    fn upload(&mut self, root: OwnedFd, rules: &PackRules) -> Result<Sha256Hex, TaskError> {
        let digest = self.store.put_missing(self.objects, root.as_fd(), rules)?;
        self.inputs.push(LayerInput {
            digest: digest.clone(),
            from: LayerSource::Directory {
                root,
                rules: rules.clone(),
            },
        });
        Ok(digest)
    }
}

impl InputSource for UploadedInputs<'_> {
    fn directory(
        &mut self,
        path: &str,
        subject: &str,
        rules: &PackRules,
    ) -> Result<(Sha256Hex, WorkTree), TaskError> {
        let root = open(path, OFlags::DIRECTORY, subject)?;
        let real = real_path(&root, subject)?;
        let authority = MountAuthority { paths: &self.paths };
        check_source(utf8(&real, subject)?, subject, authority)?;
        let is_inside = real
            .ancestors()
            .any(|directory| directory.join(".git").symlink_metadata().is_ok());
        let work_tree = match is_inside {
            true => WorkTree::Inside,
            false => WorkTree::Outside,
        };
        Ok((self.upload(root, rules)?, work_tree))
    }

    fn wordpress(&mut self, path: &str) -> Result<Sha256Hex, TaskError> {
        let root = open(path, OFlags::DIRECTORY, "the WordPress directory")?;
        let rules = self.wordpress.clone();
        self.upload(root, &rules)
    }

    fn file(&mut self, path: &str, subject: &str) -> Result<String, TaskError> {
        // O_NONBLOCK: the open of a FIFO must not wait for a writer.
        let file = open(path, OFlags::NONBLOCK, subject)?;
        let stat = rustix::fs::fstat(&file).map_err(|source| failed(subject, source))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(fault(subject, "is not a regular file"));
        }
        if stat.st_size > MAX_FILE {
            return Err(fault(subject, "is too large for a single file"));
        }
        let real = real_path(&file, subject)?;
        let authority = MountAuthority { paths: &self.paths };
        check_staged_source(utf8(&real, subject)?, subject, authority)?;
        let name = format!("f{:06}", self.files.len());
        self.files.push((name.clone(), File::from(file)));
        Ok(name)
    }

    fn files(&mut self) -> Result<Option<Sha256Hex>, TaskError> {
        if self.files.is_empty() {
            return Ok(None);
        }
        let mut files = std::mem::take(&mut self.files);
        let digest = self.store.put_files(self.objects, &mut files)?;
        self.inputs.push(LayerInput {
            digest: digest.clone(),
            from: LayerSource::Files(files),
        });
        Ok(Some(digest))
    }
}

fn open(path: &str, flags: OFlags, subject: &str) -> Result<OwnedFd, TaskError> {
    if !path.starts_with('/') {
        return Err(fault(subject, "is not an absolute path"));
    }
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|source| failed(subject, source))
}

fn real_path(fd: &OwnedFd, subject: &str) -> Result<PathBuf, TaskError> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        .map_err(|_| fault(subject, "has a path that cannot be determined"))
}

fn utf8<'p>(path: &'p Path, subject: &str) -> Result<&'p str, TaskError> {
    path.to_str()
        .ok_or_else(|| fault(subject, "has a path that is not UTF-8"))
}

fn failed(subject: &str, source: rustix::io::Errno) -> TaskError {
    TaskError::Open {
        subject: subject.to_owned(),
        source,
    }
}

fn fault(subject: &str, fault: &'static str) -> TaskError {
    TaskError::Source {
        subject: subject.to_owned(),
        fault,
    }
}
