//! Applies approved changes to directories of the host, and undoes them.
//!
//! An apply and an undo are the same kind of transaction: a list of steps, each of which brings one
//! path from one known state to another. [`Journal::apply`] and [`Journal::undo`] plan the steps,
//! stage every new file beside the target, write the journal, and then exchange the paths.
//!
//! Invariants:
//! - Before the first path of a target is exchanged, all new contents are on its file system, all
//!   old contents are in the journal, and both are synchronised to the disk.
//! - A path is exchanged by one `renameat2`. The kernel shows a reader the old file or the new one,
//!   never a part. While a transaction runs, or after it was interrupted and until the next call, a
//!   reader can see new files beside old ones.
//! - If another program changes a file between planning and exchange, its file is put back and
//!   reported as a conflict. An apply with a conflict is reversed as a whole; an undo skips the
//!   path.
//! - After a crash at any instruction, the next call of [`Journal::recover`] finishes the
//!   transaction if all its files were staged, and otherwise removes what was staged. If the crash
//!   interrupted a reversal, the call finishes the reversal.
#![forbid(unsafe_code)]

mod document;
mod error;
mod journal;
mod metadata;
mod names;
mod path;
mod plan;
mod prune;
mod record;
mod recover;
mod reverse;
mod steps;
mod transaction;
mod trial;
mod undo;
mod undone;

pub use error::ApplyError;
pub use journal::{AppliedChange, ApplyRequest, Claim, Journal, Listed, TargetChanges, UndoReport};
pub use prune::{Expired, KeepLimit, KeepRules};
pub use record::{ApplyId, BundleReference};
pub use recover::Recovered;
pub use trial::{Trial, UndoneTrial};
