//! Directories of the host that a call gives to a tool: `HOST_DIR=GUEST_PATH:ro` or `:rw`.

use crate::error::RunnerError;
use std::path::PathBuf;
use std::str::FromStr;
use wasmtime_wasi::{DirPerms, FilePerms, WasiCtxBuilder};
use wp_codebox_contracts::WasiFiles;

/// A directory of the host and where the tool sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    host: PathBuf,
    guest: String,
    access: Access,
}

/// Access of the tool to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// Reason why an argument is not a directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// The access is missing or unknown.
    #[error("the directory must end with :ro or :rw")]
    Access,
    /// There is no `=`, or nothing before it.
    #[error("the directory must be HOST_DIR=GUEST_PATH:ro or HOST_DIR=GUEST_PATH:rw")]
    Form,
    /// The path in the guest is not absolute and normal.
    #[error(
        "the path at which the tool sees the directory must be absolute, without '.', '..' and empty parts"
    )]
    Guest,
}

impl FromStr for Directory {
    type Err = DirectoryError;

    fn from_str(text: &str) -> Result<Self, DirectoryError> {
        let (paths, access) = match text.rsplit_once(':') {
            Some((paths, "ro")) => (paths, Access::Read),
            Some((paths, "rw")) => (paths, Access::Write),
            _ => return Err(DirectoryError::Access),
        };
        // Splits at the last `=`, because a host path may contain `=`.
        let (host, guest) = paths.rsplit_once('=').ok_or(DirectoryError::Form)?;
        if host.is_empty() {
            return Err(DirectoryError::Form);
        }
        let is_normal = guest
            .strip_prefix('/')
            .is_some_and(|rest| !rest.split('/').any(|part| matches!(part, "" | "." | "..")));
        if !is_normal {
            return Err(DirectoryError::Guest);
        }
        Ok(Self {
            host: PathBuf::from(host),
            guest: guest.to_owned(),
            access,
        })
    }
}

impl Directory {
    /// Checks the directory against the definition of the tool.
    pub fn check(&self, files: WasiFiles) -> Result<(), RunnerError> {
        let reason = match (files, self.access) {
            (WasiFiles::None, _) => "the tool's definition allows no files",
            (WasiFiles::Read, Access::Write) => "the tool's definition only allows to read files",
            (WasiFiles::Read, Access::Read) | (WasiFiles::Write, _) => return Ok(()),
        };
        Err(RunnerError::Directory {
            guest: self.guest.clone(),
            reason: reason.to_owned(),
        })
    }

    /// Opens the directory for the tool. Below it, the runtime resolves every path by descriptor
    /// and refuses one that leads out, whatever links the directory contains.
    pub fn open(&self, builder: &mut WasiCtxBuilder) -> Result<(), RunnerError> {
        let (directories, files) = match self.access {
            Access::Read => (DirPerms::READ, FilePerms::READ),
            Access::Write => (DirPerms::all(), FilePerms::all()),
        };
        match builder.preopened_dir(&self.host, &self.guest, directories, files) {
            Ok(_) => Ok(()),
            Err(error) => Err(RunnerError::Directory {
                guest: self.guest.clone(),
                reason: format!("it cannot be opened: {error}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_arguments_are_split_at_the_last_separators() {
        let directory: Directory = "/srv/a=b:c=/work:ro".parse().unwrap();
        assert_eq!(directory.host, PathBuf::from("/srv/a=b:c"));
        assert_eq!(
            (directory.guest.as_str(), directory.access),
            ("/work", Access::Read)
        );
        for (text, error) in [
            ("/srv=/work", DirectoryError::Access),
            ("/srv=/work:rx", DirectoryError::Access),
            ("/work:ro", DirectoryError::Form),
            ("=/work:ro", DirectoryError::Form),
            ("/srv=work:ro", DirectoryError::Guest),
            ("/srv=/:ro", DirectoryError::Guest),
            ("/srv=/a/../b:rw", DirectoryError::Guest),
        ] {
            assert_eq!(text.parse::<Directory>(), Err(error), "{text}");
        }
    }
}
