//! What a guest does not get of a mount's source, or gets without what it leads to.

use super::budget::Exceeded;
use super::link::judge_link;
use super::{OmitReason, Omitted};
use crate::changed_files::document_name;

/// Paths that may have to be hidden in one tree: each is an entry of the mask layer.
const HIDDEN: usize = 10_000;

/// What a scan found that a guest does not get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// What a guest must not see, all of it, sorted by path.
    pub hidden: Vec<Omitted>,
    /// Links that lead out of the tree, the first [`LeftOut::LISTED`] by path. A guest sees the
    /// link, and its own tree where it leads.
    pub links: Vec<Omitted>,
    /// How many links lead out.
    pub link_count: u64,
}

impl LeftOut {
    /// Links that are listed.
    pub const LISTED: usize = 1000;

    /// How many entries there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.hidden.len() as u64 + self.link_count
    }

    /// Path as documents print it and reason of the entries that are listed, hidden ones first.
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
        if let Err(reason) = judge_link(path, target) {
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

    /// The same whatever the order in which the entries were found.
    pub(super) fn sorted(mut self) -> Self {
        self.hidden.sort_by(|a, b| a.path.cmp(&b.path));
        self.shorten(0);
        self
    }

    /// Keeps the first links by path once there are more than `most`.
    fn shorten(&mut self, most: usize) {
        if self.links.len() > most {
            self.links.sort_by(|a, b| a.path.cmp(&b.path));
            self.links.truncate(Self::LISTED);
        }
    }
}
