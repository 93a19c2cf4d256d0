//! Bundles and decisions of a site below the state directory.
//!
//! Layout: `<state>/sites/<site>/artifacts/<run id>/`, `<state>/sites/<site>/audit.jsonl` and
//! `<state>/anchors/<site>.json`.

mod audit;
mod bundles;

use crate::beneath::Dir;
use rustix::io::Errno;
use wp_codebox_contracts::SiteId;

pub use audit::{
    Appended, AuditAnchor, AuditEntry, AuditError, AuditLog, AuditReading, AuditWindow,
};
pub use bundles::{BundleRow, Discarded, Store, StoreError, StoredBundle};

/// A site's directory below the state directory, made (0700) when missing.
fn site_dir(state_dir: &Dir, site: &SiteId) -> Result<Dir, Errno> {
    state_dir.private_dir("sites")?.private_dir(site.as_str())
}
