//! Components in the guest: read-only, outside the workspace, never captured.
//!
//! Each is shown below `/run/codebox/components` and from there at its place in WordPress,
//! so that a guest without mounts of its own has it outside every directory it may write.

use super::builder::{Builder, path};
use super::error::PlanError;
use super::paths::MountPaths;
use wp_codebox_contracts::{BindSource, GuestPath, HostSource, LaunchMount};

/// Directory of all components.
const COMPONENTS: &str = "/run/codebox/components";
/// What the guest's loader reads.
const LIST: &str = "/run/codebox/components.json";

/// One component, decided: its source is checked and, where needed, already copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedComponent {
    /// Host directories, topmost first: its source, and above it what hides entries of it.
    pub lowers: Vec<HostSource>,
    /// Its place in WordPress; the last segment is its slug.
    pub target: GuestPath,
}

/// The components of a guest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedComponents {
    /// In load order.
    pub rows: Vec<PlannedComponent>,
    /// Text of `/run/codebox/components.json`, which the guest's loader follows.
    pub list: String,
}

pub(super) fn shown(
    builder: &mut Builder,
    components: &PlannedComponents,
    mounts: &[MountPaths],
) -> Result<(), PlanError> {
    if components.rows.is_empty() {
        return Ok(());
    }
    builder.file(LIST, components.list.as_str())?;
    for component in &components.rows {
        let target = &component.target;
        if let Some(mount) = mounts
            .iter()
            .find(|mount| mount.target.contains(target) || target.contains(&mount.target))
        {
            return Err(PlanError::Overlap {
                first: mount.target.clone(),
                second: target.clone(),
            });
        }
        let own = path(&format!("{COMPONENTS}/{}", target.name()))?;
        builder.merged(&component.lowers, own.clone());
        builder.mounts.push(LaunchMount::Bind {
            source: BindSource::Guest { path: own },
            target: target.clone(),
            writable: false,
        });
    }
    Ok(())
}
