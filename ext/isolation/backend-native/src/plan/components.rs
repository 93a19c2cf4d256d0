//! Components (host plugins and libraries) in the guest: read-only, outside the workspace, never
//! captured.
//!
//! Each component is mounted below `/run/codebox/components` and bind-mounted from there to its
//! WordPress path. At level `reduced`, which has no mounts, the component thus lies outside every
//! writable directory.

use super::builder::{Builder, path};
use super::error::PlanError;
use super::paths::{MUST_USE, MountPaths};
use wp_codebox_contracts::{BindSource, GuestPath, HostSource, LaunchMount};

/// Path in the guest below which all components are mounted.
const COMPONENTS: &str = "/run/codebox/components";
/// JSON list of the components, read by the WordPress plugin that loads them in the guest.
const LIST: &str = "/run/codebox/components.json";

/// A resolved component: its source is validated and, where needed, already copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedComponent {
    /// Host directories, topmost first: layers that hide entries of the source, then the source.
    pub lowers: Vec<HostSource>,
    /// Path of the component in the guest's WordPress; the last segment is its slug.
    pub target: GuestPath,
}

/// Host plugins and libraries that one guest's WordPress loads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedComponents {
    /// The components in the order in which the guest loads them.
    pub rows: Vec<PlannedComponent>,
    /// Text of `/run/codebox/components.json`, which the guest's loader reads.
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
            // A mount of mu-plugins is no overlap: must-use components get a directory of their own
            // in it.
            .filter(|mount| mount.target.as_str() != MUST_USE)
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
