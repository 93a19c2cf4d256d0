//! Snapshots of the work guest: creating and restoring them, and resetting the guest.
//!
//! A snapshot contains the captured mounts and `wp-content` (with the database); `/tmp` and the
//! home directory are not part of it. A guest from a snapshot has the snapshot layers directly
//! above its mounts' sources, so changes are still relative to these sources. In a follow-up run,
//! layers with the change of the earlier bundle are at the same place.
//!
//! The order matters: a snapshot is verified before the current guest is given up, and the new
//! guest runs before the current one ends. After a failure, one of these two guests remains in use.

mod base;
mod begin;
mod below;
mod checkpoints;
mod continued;
mod facts;
mod quiet;
mod requests;

pub(super) use base::Base;
pub(super) use begin::{asked, began, ready};
pub(super) use below::Below;
pub(super) use continued::{Uppers, continued, uppers};
