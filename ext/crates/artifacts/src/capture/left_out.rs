//! Entries of a mount's source that a guest does not see, and links whose targets it does not
//! see.

use super::budget::Exceeded;
use super::link::check_link;
use super::{OmitReason, Omitted};
use crate::changed_files::document_name;

/// Maximum number of hidden paths in one tree; each becomes an entry of the mask layer.
const HIDDEN: usize = 10_000;

/// Entries that a scan found and a guest does not get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// All entries that must be hidden from the guest, sorted by path.
    pub hidden: Vec<Omitted>,
    /// Links with targets outside the tree, the first [`LeftOut::LISTED`] by path. A guest sees
    /// the link, which resolves to a path in the guest's own file system.
    pub links: Vec<Omitted>,
    /// Total number of links with targets outside the tree.
    pub link_count: u64,
}

impl LeftOut {
    /// Maximum number of listed links.
    pub const LISTED: usize = 1000;

    /// Returns the number of hidden entries and of links together.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.hidden.len() as u64 + self.link_count
    }

    /// Returns path (as printed in documents) and reason of each listed entry, hidden entries
    /// first.
    pub fn rows(&self) -> impl Iterator<Item = (String, &'static str)> + '_ {
        let all = self.hidden.iter().chain(&self.links);
        all.map(|left| (document_name(&left.path).0, left.reason.as_str()))
    }

    pub(super) fn hide(&mut self, path: &[u8], reason: OmitReason) -> Result<(), Exceeded> {
        if self.hidden.len() >= HIDDEN {
            return Err(Exceeded {
                what: "entries named .git",
                limit: HIDDEN as u64,
            });
        }
        let path = path.to_vec();
        self.hidden.push(Omitted { path, reason });
        Ok(())
    }

    pub(super) fn link(&mut self, path: &[u8], target: &[u8]) {
        if let Err(reason) = check_link(path, target) {
            self.link_count += 1;
            let path = path.to_vec();
            self.links.push(Omitted { path, reason });
            self.shorten(2 * Self::LISTED);
        }
    }

    pub(super) fn merge(&mut self, mut other: Self) -> Result<(), Exceeded> {
        for left in other.hidden.drain(..) {
            self.hide(&left.path, left.reason)?;
        }
        self.link_count += other.link_count;
        self.links.append(&mut other.links);
        self.shorten(2 * Self::LISTED);
        Ok(())
    }

    /// Sorts the entries, so the result does not depend on the order of the scan.
    pub(super) fn sorted(mut self) -> Self {
        self.hidden.sort_by(|a, b| a.path.cmp(&b.path));
        self.shorten(0);
        self
    }

    /// Sorts the links by path and drops those beyond the limit once there are more than `most`.
    fn shorten(&mut self, most: usize) {
        if self.links.len() > most {
            self.links.sort_by(|a, b| a.path.cmp(&b.path));
            self.links.truncate(Self::LISTED);
        }
    }
}
