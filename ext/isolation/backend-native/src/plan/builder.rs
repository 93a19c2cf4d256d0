//! Collects the mount steps and the writable paths of a launch plan, in the order in which they are
//! added.

use super::error::PlanError;
use crate::host::{HostLayout, SystemEntryKind};
use wp_codebox_contracts::{BindSource, GuestPath, HostSource, LaunchMount, TmpfsEntry};

pub(super) fn path(text: &str) -> Result<GuestPath, PlanError> {
    Ok(GuestPath::new(text)?)
}

/// Mount steps and writable paths of a launch plan that is being built.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) mounts: Vec<LaunchMount>,
    pub(super) writable: Vec<GuestPath>,
}

impl Builder {
    /// Adds `/proc`, `/dev` and the system directories of the host.
    pub(super) fn system(&mut self, host: &HostLayout) -> Result<(), PlanError> {
        self.mounts.push(LaunchMount::Proc);
        self.mounts.push(LaunchMount::Dev);
        for entry in &host.system {
            match &entry.kind {
                SystemEntryKind::Directory => self.bind(&entry.path, &entry.path)?,
                SystemEntryKind::Link(to) => self.link(&entry.path, to)?,
            }
        }
        Ok(())
    }

    pub(super) fn directory(&mut self, target: &str) -> Result<(), PlanError> {
        let target = path(target)?;
        self.mounts.push(LaunchMount::Directory { target });
        Ok(())
    }
    pub(super) fn file(
        &mut self,
        target: &str,
        contents: impl Into<String>,
    ) -> Result<(), PlanError> {
        self.mounts.push(LaunchMount::File(TmpfsEntry {
            target: path(target)?,
            contents: contents.into(),
            mode: 0o444,
        }));
        Ok(())
    }
    pub(super) fn link(&mut self, target: &str, to: &str) -> Result<(), PlanError> {
        self.mounts.push(LaunchMount::Symlink {
            target: path(target)?,
            to: to.to_owned(),
        });
        Ok(())
    }
    /// Adds a step that shows the guest's path `cover` at `target`, read-only.
    pub(super) fn cover(&mut self, target: &str, cover: &str) -> Result<(), PlanError> {
        self.mounts.push(LaunchMount::Bind {
            source: BindSource::Guest { path: path(cover)? },
            target: path(target)?,
            writable: false,
        });
        Ok(())
    }
    pub(super) fn bind(&mut self, source: &str, target: &str) -> Result<(), PlanError> {
        self.bind_from(HostSource::of(source), target)
    }
    pub(super) fn bind_from(&mut self, source: HostSource, target: &str) -> Result<(), PlanError> {
        self.mounts.push(LaunchMount::Bind {
            source: BindSource::Host(source),
            target: path(target)?,
            writable: false,
        });
        Ok(())
    }
    /// Adds a step that mounts several host directories merged into one, topmost first, read-only.
    pub(super) fn merged(&mut self, lowers: &[HostSource], target: GuestPath) {
        self.mounts.push(match lowers {
            [source] => LaunchMount::Bind {
                source: BindSource::Host(source.clone()),
                target,
                writable: false,
            },
            lowers => LaunchMount::Merged {
                lowers: lowers.to_vec(),
                target,
            },
        });
    }
    pub(super) fn bind_writable(&mut self, source: &str, target: &str) -> Result<(), PlanError> {
        let target = path(target)?;
        self.writable.push(target.clone());
        self.mounts.push(LaunchMount::Bind {
            source: BindSource::Host(HostSource::of(source)),
            target,
            writable: true,
        });
        Ok(())
    }
    pub(super) fn scratch(&mut self, target: &str, mode: u32) -> Result<(), PlanError> {
        let target = path(target)?;
        self.writable.push(target.clone());
        self.mounts.push(LaunchMount::Scratch { target, mode });
        Ok(())
    }
    pub(super) fn overlay(
        &mut self,
        lowers: Vec<HostSource>,
        target: GuestPath,
        capture: Option<u32>,
    ) {
        self.writable.push(target.clone());
        self.mounts.push(LaunchMount::Overlay {
            lowers,
            target,
            capture,
        });
    }
}
