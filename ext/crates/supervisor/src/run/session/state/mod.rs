//! The state of the working guest: kept, brought back, thrown away.
//!
//! State is what the captured mounts and `wp-content` (with the database) hold; `/tmp` and the
//! home directory are no part of it. A guest with a state begins on kept layers that lie directly
//! on its mounts' sources, so what a run changed is still told against those.
//!
//! Order matters: a state is verified before the guest that is there is given up, and the guest
//! that takes its place is alive before that one ends. Whatever fails, one of them goes on.

mod base;
mod begin;
mod checkpoints;
mod continued;
mod facts;
mod quiet;
mod requests;

pub(super) use base::Base;
pub(super) use begin::{asked, began, ready};
pub(super) use continued::{Uppers, continued, uppers};
