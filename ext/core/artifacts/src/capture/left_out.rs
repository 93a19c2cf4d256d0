//! Entries of a mount's host directory that are hidden from the guest, and symbolic links whose
//! targets the guest cannot reach.

use super::budget::Exceeded;
use super::link::check_link;
use super::{OmitReason, Omitted};
use crate::changed_files::document_name;

/// Maximum number of paths hidden from a guest in one tree; more are an error. The layer that hides
/// the paths has one entry for each.
const HIDDEN: usize = 10_000;

/// Entries of a scanned tree that the guest does not see or cannot follow.
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
    /// Maximum number of links in `links`.
    pub const LISTED: usize = 1000;

    /// Returns the number of hidden entries plus the number of links with targets outside the tree.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.hidden.len() as u64 + self.link_count
    }

    /// Returns the path (as documents print it) and the reason of each entry in `hidden`, then in
    /// `links`.
    pub fn rows(&self) -> impl Iterator<Item = (String, &'static str)> + '_ {
        let all = self.hidden.iter().chain(&self.links);
        all.map(|left| (document_name(&left.path).0, left.reason.as_str()))
    }

    pub(super) fn hide(&mut self, path: &[u8], reason: OmitReason) -> Result<(), Exceeded> {
        if self.hidden.len() >= HIDDEN {
            return Err(Exceeded {
                what: "entries that a guest must not see",
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

    /// If there are more than `most` links, sorts them by path and drops those after the first
    /// [`Self::LISTED`].
    fn shorten(&mut self, most: usize) {
        if self.links.len() > most {
            self.links.sort_by(|a, b| a.path.cmp(&b.path));
            self.links.truncate(Self::LISTED);
        }
    }
}
