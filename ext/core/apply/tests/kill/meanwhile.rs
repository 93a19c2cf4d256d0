//! What another program does with a target while a transaction runs, or before the next call.

use crate::targets::{Setup, staging};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Nothing,
    /// Removes the staging directory, as `git clean -ffd` does.
    RemovesStaging,
    /// Removes the files in the staging directory.
    RemovesStagedFiles,
    /// Moves the target away, and back after the next call.
    MovesTarget,
    /// Moves the target away and back; meanwhile the caller recovers.
    ReturnsTarget,
    /// Removes the target and makes an empty directory at its path.
    ReplacesTarget,
    /// Makes the target read-only until the next call has failed.
    ReadOnly,
}

/// What another program does with which of the targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meanwhile {
    pub act: Act,
    /// Index of the target.
    pub target: usize,
}

pub const NOTHING: Meanwhile = Meanwhile {
    act: Act::Nothing,
    target: 0,
};

impl Meanwhile {
    /// Returns whether the target is still missing, or another one, when the next call is made.
    pub fn loses_target(self) -> bool {
        matches!(self.act, Act::MovesTarget | Act::ReplacesTarget)
    }

    pub fn happen(self, setup: &Setup) {
        let target = &setup.paths()[self.target];
        match self.act {
            Act::Nothing => {}
            Act::RemovesStaging => staging(target).iter().for_each(remove),
            Act::RemovesStagedFiles => {
                for directory in staging(target) {
                    let entries = fs::read_dir(directory).unwrap();
                    entries.for_each(|entry| remove(&entry.unwrap().path()));
                }
            }
            Act::MovesTarget => fs::rename(target, aside(target)).unwrap(),
            Act::ReturnsTarget => {
                fs::rename(target, aside(target)).unwrap();
                setup.recover();
                fs::rename(aside(target), target).unwrap();
            }
            Act::ReplacesTarget => {
                // The old directory still exists when the new one is made, so that they have
                // different inode numbers.
                fs::rename(target, aside(target)).unwrap();
                fs::create_dir(target).unwrap();
                remove(&aside(target));
            }
            Act::ReadOnly => set_read_only(target, true),
        }
    }

    /// Makes a target that was made read-only writable.
    pub fn end(self, setup: &Setup) {
        if self.act == Act::ReadOnly {
            set_read_only(&setup.paths()[self.target], false);
        }
    }
}

pub fn aside(target: &Path) -> PathBuf {
    target.with_file_name("aside")
}

fn set_read_only(target: &Path, is_read_only: bool) {
    use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};
    if !is_read_only {
        return unmount(target, UnmountFlags::DETACH).unwrap();
    }
    mount_bind(target, target).unwrap();
    mount_remount(target, MountFlags::RDONLY | MountFlags::BIND, "").unwrap();
}

fn remove(path: &PathBuf) {
    match fs::symlink_metadata(path).unwrap().is_dir() {
        true => fs::remove_dir_all(path).unwrap(),
        false => fs::remove_file(path).unwrap(),
    }
}

/// Moves this process to a mount namespace of its own. Returns whether it may mount there.
pub fn private_mounts() -> bool {
    use rustix::mount::{MountPropagationFlags, mount_change};
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    // SAFETY: this process has one thread.
    let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    unshared.and_then(|()| mount_change("/", flags)).is_ok()
}
