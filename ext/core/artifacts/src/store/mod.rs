//! Bundles and audit log of a site in the state directory.
//!
//! Layout: `<state>/sites/<site>/artifacts/<run id>/`, `<state>/sites/<site>/audit.jsonl` and
//! `<state>/anchors/<site>.json`.

mod audit;
mod bundles;
mod state_version;

use crate::dirfd::Dir;
use rustix::fd::AsFd;
use rustix::io::Errno;
use wp_codebox_contracts::SiteId;

pub use audit::{
    Appended, AuditAnchor, AuditEntry, AuditError, AuditExcerpt, AuditLog, AuditOperations,
    AuditReading, AuditWindow, VerifiedLog,
};
pub use bundles::{BundleRow, Discarded, Store, StoreError, StoredBundle};
pub use state_version::{StateVersionError, check_state_version, write_state_version};

/// Opens the directory of a site in the state directory and creates it with mode 0700 if it is
/// missing. Also states the version of the state directory.
fn site_dir(state_dir: &Dir, site: &SiteId) -> Result<Dir, Errno> {
    // Without the file the version is 1, so the caller goes on when the file cannot be written.
    let _ = write_state_version(state_dir.as_fd());
    state_dir.private_dir("sites")?.private_dir(site.as_str())
}
