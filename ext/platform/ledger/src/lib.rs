//! Credits of accounts, prices and meters of sandboxes.
//!
//! A [`Ledger`] is one append-only, hash-chained SQLite file and an anchor in another file. A
//! caller reserves credits before it starts a sandbox and settles the use after the sandbox ended.
//! This crate takes no payments, opens no sockets and reads no time of day: each operation gets the
//! time as a parameter.
//!
//! Invariants:
//! - An operation returns after its entry and the anchor are on the disk (`fsync`).
//! - `available = granted - settled - reserved` of each account, and it is never negative.
//! - A sandbox is settled at most once, for at most the reserved amount.
//! - Repeating an operation on a sandbox changes nothing ([`Recorded::Before`]), so a caller that
//!   lost an answer asks again.
//! - The database has at most one entry more than the anchor, after a crash between both, and never
//!   fewer. An older copy of the database is therefore refused.
//!
//! ```no_run
//! # use wp_codebox_ledger::*;
//! # fn main() -> Result<(), wp_codebox_contracts::ErrorBody> {
//! let files = LedgerFiles::in_state(std::path::Path::new("/var/lib/wp-codebox"));
//! let ledger = Ledger::open(&files)?;
//! let prices = Prices::parse(b"{}")?;
//! let account = AccountId::new("shop")?;
//! let sandbox = SandboxKey::new("run_1f")?;
//! let now = UnixMillis(1_767_225_600_000);
//! let quote = prices.quote("ext.native", 3_600_000, Gpu::Absent)?;
//! ledger.reserve(&account, &sandbox, &quote, now)?; // before the start
//! ledger.settle(&sandbox, Actuals::WallClock, now)?; // after the end
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod amount;
mod anchor;
mod entry;
mod error;
mod export;
mod files;
mod handle;
mod names;
mod operations;
mod prices;
mod reads;
mod rules;
mod store;
mod usage;
mod verify;

pub use amount::{Amount, AmountError, Balance, UnixMillis};
pub use anchor::{AnchorError, Head};
pub use entry::{Content, Entry, Event};
pub use error::LedgerError;
pub use files::{FilesError, LedgerFiles};
pub use handle::Ledger;
pub use names::{AccountId, GrantReference, NameError, Note, SandboxKey};
pub use operations::{Actuals, Grant, Recorded};
pub use prices::{Gpu, KeyOwner, Price, Prices, PricesError, Quote};
pub use reads::Reservation;
pub use usage::{Usage, UsageSchema};
pub use verify::{Problem, Verification};
