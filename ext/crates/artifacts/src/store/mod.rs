//! Bundles and audit log of a site in the state directory.
//!
//! Layout: `<state>/sites/<site>/artifacts/<run id>/`, `<state>/sites/<site>/audit.jsonl` and
//! `<state>/anchors/<site>.json`.

mod audit;
mod bundles;

use crate::dirfd::Dir;
use rustix::io::Errno;
use wp_codebox_contracts::SiteId;

pub use audit::{
    Appended, AuditAnchor, AuditEntry, AuditError, AuditExcerpt, AuditLog, AuditOperations,
    AuditReading, AuditWindow, VerifiedLog,
};
pub use bundles::{BundleRow, Discarded, Store, StoreError, StoredBundle};

/// Opens the directory of a site in the state directory and creates it with mode 0700 if it is
/// missing.
fn site_dir(state_dir: &Dir, site: &SiteId) -> Result<Dir, Errno> {
    state_dir.private_dir("sites")?.private_dir(site.as_str())
}
