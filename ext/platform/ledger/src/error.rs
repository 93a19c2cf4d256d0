//! Why an operation on the ledger fails.

use crate::amount::Amount;
use crate::anchor::AnchorError;
use crate::files::FilesError;
use crate::names::{AccountId, GrantReference, SandboxKey};
use crate::prices::PricesError;
use rusqlite::ffi;
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode};

/// Error of an operation on the ledger. After an error the operation changed nothing, with one
/// exception: see [`Self::Unanchored`].
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum LedgerError {
    /// The account has fewer credits available than the reservation needs.
    #[error(
        "the account {account} has {available} credits available, and the sandbox needs {needed}"
    )]
    #[code(
        CreditsShort,
        hint = "grant credits with `wp-codebox ledger grant`, or choose a shorter duration"
    )]
    Short {
        /// Account that pays.
        account: AccountId,
        /// Credits that it has.
        available: Amount,
        /// Credits that the start or extension of the sandbox needs.
        needed: Amount,
    },
    /// The grant would give the account more than [`Amount::MAX`].
    #[error(
        "the account {account} has got {granted} credits already; with {amount} more the sum would be larger than 9007199254740991"
    )]
    #[code(InputInvalid)]
    Overflow {
        /// Account of the grant.
        account: AccountId,
        /// All credits that it has got.
        granted: Amount,
        /// Credits of the grant.
        amount: Amount,
    },
    /// The grant gives nothing.
    #[error("a grant must give at least 1 credit")]
    #[code(InputInvalid)]
    NothingGranted,
    /// The time is after the year 9999.
    #[error("the time {milliseconds} ms is after the year 9999; check the clock of this host")]
    #[code(InputInvalid)]
    Time {
        /// Milliseconds since 1970.
        milliseconds: u64,
    },
    /// Another grant has the same reference.
    #[error(
        "the reference {reference} belongs to another grant, in entry {seq}; give each grant a reference of its own"
    )]
    #[code(LedgerConflict)]
    ReferenceUsed {
        /// Reference of the grant.
        reference: GrantReference,
        /// Entry that has it.
        seq: u64,
    },
    /// The sandbox has a reservation of another account or price.
    #[error(
        "the sandbox {sandbox} has another reservation, in entry {seq}; settle or release it first"
    )]
    #[code(LedgerConflict)]
    ReservedOtherwise {
        /// Sandbox of the reservation.
        sandbox: SandboxKey,
        /// Entry that reserves.
        seq: u64,
    },
    /// The sandbox is settled and cannot be reserved, extended or released.
    #[error(
        "the credits of the sandbox {sandbox} were settled already, in entry {seq}; use a new sandbox id"
    )]
    #[code(LedgerConflict)]
    Settled {
        /// Sandbox that is settled.
        sandbox: SandboxKey,
        /// Entry that settles it.
        seq: u64,
    },
    /// The reservation of the sandbox was released, so there is nothing to settle or extend.
    #[error(
        "the reservation of the sandbox {sandbox} was released, in entry {seq}; reserve again first"
    )]
    #[code(LedgerConflict)]
    Released {
        /// Sandbox that was released.
        sandbox: SandboxKey,
        /// Entry that releases it.
        seq: u64,
    },
    /// The ledger has no reservation of the sandbox.
    #[error("no credits are reserved for the sandbox {sandbox}; reserve credits for it first")]
    #[code(LedgerConflict)]
    NotReserved {
        /// Sandbox that is unknown.
        sandbox: SandboxKey,
    },
    /// The quote's amount does not follow from its price and duration.
    #[error("the amount of the quote does not follow from its price and duration; get a new quote")]
    #[code(InputInvalid)]
    QuoteInconsistent,
    /// The price of the extended reservation cannot be computed.
    #[error(transparent)]
    #[code(source)]
    Prices(#[from] PricesError),
    /// The ledger does not exist and the caller wanted an existing one.
    #[error("there is no ledger at {path}; `wp-codebox ledger grant` creates it")]
    #[code(LedgerUnavailable)]
    Missing {
        /// Path of the database.
        path: String,
    },
    /// A file of the ledger or its directory is not usable.
    #[error(transparent)]
    #[code(source)]
    Files(#[from] FilesError),
    /// The anchor contradicts the database, or cannot be read.
    #[error(transparent)]
    #[code(source)]
    Anchor(#[from] AnchorError),
    /// The entry is on the disk, but its anchor is not. The next operation writes the anchor first;
    /// repeating this operation changes nothing.
    #[error(
        "entry {seq} is stored, but the anchor file could not be updated; correct the cause, then repeat the operation, which adds no second entry"
    )]
    #[code(LedgerUnavailable)]
    Unanchored {
        /// Number of the entry.
        seq: u64,
        /// Why the anchor could not be written.
        #[source]
        source: AnchorError,
    },
    /// A newer program wrote the database.
    #[error(
        "{path} has the version {found}, and this program reads the version {known}; use the newer wp-codebox that wrote it"
    )]
    #[code(LedgerUnavailable)]
    Newer {
        /// Path of the database.
        path: String,
        /// Version of the database.
        found: i32,
        /// Version that this program reads.
        known: i32,
    },
    /// The file is no ledger of this program.
    #[error("{path} is not a ledger: {why}; restore the ledger from a backup")]
    #[code(LedgerDamaged)]
    NotLedger {
        /// Path of the database.
        path: String,
        /// What is different.
        why: &'static str,
    },
    /// An entry was changed, or the file is corrupt.
    #[error(
        "entry {seq} of the ledger is damaged: {why}; restore database and anchor file from the same backup"
    )]
    #[code(LedgerDamaged)]
    Damaged {
        /// Number of the entry; 0 if no single entry is damaged.
        seq: u64,
        /// What is wrong.
        why: String,
    },
    /// SQLite failed.
    #[error("the ledger cannot be {action}: {source}; check owner and free space of its directory")]
    #[code(LedgerUnavailable)]
    Database {
        /// What was attempted, as a participle.
        action: &'static str,
        /// Error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
    /// Another process holds the ledger's lock.
    #[error(
        "another process still used the ledger after a wait of {seconds} s; try again when it has ended"
    )]
    #[code(LedgerUnavailable)]
    Busy {
        /// How long this process waited.
        seconds: u64,
    },
    /// No random numbers for the id of a new ledger.
    #[error("the id of a new ledger cannot be made: {source}; check /dev/urandom")]
    #[code(LedgerUnavailable)]
    Random {
        /// Why.
        #[source]
        source: getrandom::Error,
    },
    /// The export cannot be written.
    #[error("the export cannot be written: {source}; check the free space")]
    #[code(LedgerUnavailable)]
    Export {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A defect: an entry has no JSON form.
    #[error("an entry of the ledger cannot be written as JSON: {source}")]
    #[code(Internal)]
    Json {
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl LedgerError {
    /// Wraps an error of SQLite. A corrupt file and a value of another type are reported as damage.
    pub(crate) fn database(action: &'static str) -> impl Fn(rusqlite::Error) -> Self {
        move |source| {
            let is_damage = match &source {
                rusqlite::Error::SqliteFailure(error, _) => matches!(
                    error.code,
                    ffi::ErrorCode::DatabaseCorrupt | ffi::ErrorCode::NotADatabase
                ),
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..)
                | rusqlite::Error::InvalidColumnType(..) => true,
                _ => false,
            };
            match is_damage {
                true => Self::Damaged {
                    seq: 0,
                    why: source.to_string(),
                },
                false => Self::Database { action, source },
            }
        }
    }

    fn detail(&self, body: ErrorBody) -> ErrorBody {
        let body = match body.code {
            ErrorCode::LedgerDamaged => body.hint(
                "restore the newest backup of database and anchor file, and see docs/ledger.md",
            ),
            _ => body,
        };
        match self {
            Self::Short {
                available, needed, ..
            } => body
                .with("available", available.get())
                .with("needed", needed.get()),
            Self::Unanchored { source, .. } => body.hint(source.to_string()),
            _ => body,
        }
    }
}
