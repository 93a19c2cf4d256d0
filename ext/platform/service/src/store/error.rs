//! Failures of the records.

use rusqlite::ErrorCode as SqliteCode;
use std::path::PathBuf;
use wp_codebox_contracts::{CodedError, ErrorBody};

/// Failures of the records.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(StateDirInvalid)]
pub(crate) enum StoreError {
    /// The database file cannot be opened or created.
    #[error(
        "the database {path:?} of the service cannot be opened: {source}; check the owner and the free space of its directory"
    )]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
    /// A newer version of this program wrote the database file.
    #[error(
        "the service's database has the version {found}, and this program reads versions up to {known}; use the newer wp-codebox that wrote it"
    )]
    Version {
        /// Version in the file.
        found: i64,
        /// Version of this program.
        known: i64,
    },
    /// A statement failed.
    #[error(
        "the service's database cannot be read or written: {source}; check the free space of the state directory"
    )]
    #[code(ServiceUnavailable)]
    Sqlite {
        /// Error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
    /// The file is not a database, or its pages contradict each other.
    #[error("the service's database is damaged: {source}; restore it from a backup")]
    Damaged {
        /// Error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
    /// A stored document does not parse.
    #[error(
        "a record in the service's database cannot be parsed: {source}; restore the database from a backup"
    )]
    #[code(Internal)]
    Document {
        /// Error of the parser.
        #[from]
        source: serde_json::Error,
    },
}

impl From<rusqlite::Error> for StoreError {
    fn from(source: rusqlite::Error) -> Self {
        match source.sqlite_error_code() {
            Some(SqliteCode::DatabaseCorrupt | SqliteCode::NotADatabase) => {
                Self::Damaged { source }
            }
            _ => Self::Sqlite { source },
        }
    }
}

impl From<StoreError> for crate::problem::Problem {
    fn from(error: StoreError) -> Self {
        ErrorBody::from(error).into()
    }
}

pub(crate) type StoreResult<T> = Result<T, StoreError>;
