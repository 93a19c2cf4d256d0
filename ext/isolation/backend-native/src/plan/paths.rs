//! Allowed mount targets, and the link below `/workspace` to each plugin or theme.

use super::error::PlanError;
use std::collections::BTreeSet;
use wp_codebox_contracts::{GUEST_SYSTEM, GuestPath};

/// Path of `wp-content` in the guest.
pub(super) const WP_CONTENT: &str = "/wordpress/wp-content";
/// Directory of must-use plugins in the guest.
pub(super) const MUST_USE: &str = "/wordpress/wp-content/mu-plugins";
/// Directories of every guest at which no mount may lie; a mount may lie below them.
const SCRATCH: &[&str] = &["/", "/home", "/home/agent", "/opt", "/tmp"];

/// Where the guest has a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPaths {
    /// Path of the mount in the request. An artifact bundle uses it for the paths of the mount's
    /// files.
    pub target: GuestPath,
    /// Symbolic link below `/workspace` to a plugin or theme.
    pub link: Option<GuestPath>,
}

/// Returns the paths of each mount, in the order of the targets.
///
/// A plugin, must-use plugin or theme `<slug>` gets the link `/workspace/<slug>`, or
/// `/workspace/<kind>-<slug>` if that name is taken.
pub fn mount_paths(targets: &[GuestPath]) -> Result<Vec<MountPaths>, PlanError> {
    for (position, target) in targets.iter().enumerate() {
        if !mountable(target.as_str()) {
            return Err(PlanError::Target {
                target: target.clone(),
            });
        }
        for other in &targets[..position] {
            if other.contains(target) || target.contains(other) {
                return Err(PlanError::Overlap {
                    first: other.clone(),
                    second: target.clone(),
                });
            }
        }
    }
    let mut taken: BTreeSet<String> = targets
        .iter()
        .filter_map(|target| target.as_str().strip_prefix("/workspace/"))
        .filter_map(|rest| rest.split('/').next())
        .map(str::to_owned)
        .collect();
    // A mount of the whole workspace leaves no place in it for the other mounts.
    let whole = targets.iter().any(|t| t.as_str() == "/workspace");
    targets
        .iter()
        .map(|target| {
            let link = match component(target.as_str()).filter(|_| !whole) {
                None => None,
                Some((kind, slug)) => {
                    let mut name = slug.to_owned();
                    while !taken.insert(name.clone()) {
                        name = format!("{kind}-{name}");
                    }
                    Some(GuestPath::new(format!("/workspace/{name}"))?)
                }
            };
            Ok(MountPaths {
                target: target.clone(),
                link,
            })
        })
        .collect()
}

/// Returns whether a mount or a single file may lie at a guest path.
pub(super) fn mountable(target: &str) -> bool {
    match target.strip_prefix(WP_CONTENT) {
        // The excluded paths hold the template's own files, which the guest's WordPress needs.
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            !rest.is_empty()
                && !matches!(rest, "/database" | "/db.php" | "/index.php")
                && !rest.starts_with("/database/")
                && !rest.starts_with("/mu-plugins/wp-codebox-guest.php")
        }
        _ => {
            let within = |own: &str| {
                target
                    .strip_prefix(own)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            !SCRATCH.contains(&target)
                && !GUEST_SYSTEM.iter().any(|own| within(own))
                && !within("/wordpress")
        }
    }
}

/// Returns type (plugin, theme, …) and slug when the target is the directory of exactly one plugin
/// or theme.
fn component(target: &str) -> Option<(&'static str, &str)> {
    let rest = target.strip_prefix(WP_CONTENT)?;
    [
        ("plugin", "/plugins/"),
        ("mu-plugin", "/mu-plugins/"),
        ("theme", "/themes/"),
    ]
    .into_iter()
    .find_map(|(kind, prefix)| {
        let slug = rest.strip_prefix(prefix)?;
        (!slug.contains('/')).then_some((kind, slug))
    })
}
