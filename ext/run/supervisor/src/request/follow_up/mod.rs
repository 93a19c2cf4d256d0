//! Follow-up runs: a follow-up run starts from the change of an earlier bundle of the same site,
//! and its agent gets reviewers' comments on that change.
//!
//! Order: the bundle is found and verified, and the budget checked, before the run has a directory.
//! The change is compared with the sources and written as layers when the mounts are ready, before
//! the first guest starts (`earlier_layers`). The guest's changes are captured relative to the
//! sources, so they contain the earlier change.

mod budget;
mod error;
mod find;
mod notes;

pub(crate) use error::FollowUpError;
pub(crate) use find::{Earlier, find};
