//! Makes the directory that gVisor shows as its root.
//!
//! runsc has no option for single mounts, so the root is a directory. It contains a copy of each
//! file that the program reads, and the directory that the program may change. The caller has
//! created that directory below the root before, as a copy for this call.

use crate::bubblewrap::program_inside;
use crate::command::{HostCommand, MountAccess};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::CodedError;

/// Reason why the root directory of a gVisor sandbox cannot be made.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(SandboxStartFailed)]
pub enum RootError {
    /// A file could not be copied.
    #[error("the root directory for gVisor could not be made: copying {label} failed: {source}")]
    Copy {
        /// Label of the mount.
        label: String,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A mount cannot be shown in a prepared root.
    #[error("the root directory for gVisor could not be made: the mount {label} must be {rule}")]
    Mount {
        /// Label of the mount.
        label: String,
        /// Which mounts are possible.
        rule: &'static str,
    },
}

/// Copies the program and the files of `command` into `root`, each to its target below it. A
/// writable mount must already lie at its target below the root. The program must be linked
/// statically, because no library is copied.
pub fn prepare_root(root: &Path, command: &HostCommand) -> Result<(), RootError> {
    let below = |target: &str| -> PathBuf { root.join(target.trim_start_matches('/')) };
    let copy = |from: &str, target: &str, label: &str| {
        let to = below(target);
        let made = match to.parent() {
            Some(parent) => fs::create_dir_all(parent),
            None => Ok(()),
        };
        made.and_then(|()| fs::copy(from, &to).map(drop))
            .map_err(|source| RootError::Copy {
                label: label.to_owned(),
                source,
            })
    };
    for mount in &command.mounts {
        let refused = |rule| RootError::Mount {
            label: mount.label.clone(),
            rule,
        };
        match mount.access {
            MountAccess::Write if Path::new(&mount.host) != below(&mount.target) => {
                return Err(refused("inside that directory"));
            }
            MountAccess::Write => {}
            MountAccess::Read if Path::new(&mount.host) == below(&mount.target) => {}
            MountAccess::Read if Path::new(&mount.host).is_file() => {
                copy(&mount.host, &mount.target, &mount.label)?;
            }
            MountAccess::Read => return Err(refused("a file, or inside that directory")),
        }
    }
    let inside = program_inside(&command.program);
    copy(&command.program, &inside, "the program")?;
    for directory in ["tmp", "proc", "dev", "sys"] {
        fs::create_dir_all(root.join(directory)).map_err(|source| RootError::Copy {
            label: format!("/{directory}"),
            source,
        })?;
    }
    Ok(())
}
