//! Opens a ledger, and compares its database with its anchor.

use crate::anchor::{Anchor, AnchorFile, Head, Standing};
use crate::error::LedgerError;
use crate::files::{LedgerFiles, Lock, LockFailure, Place, Presence, Sharing};
use crate::store::{self, Found};
use rusqlite::Connection;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wp_codebox_contracts::Sha256Hex;

/// How long an operation waits for other processes.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open ledger. Its methods may be called from several threads; each waits for the disk.
#[derive(Debug)]
pub struct Ledger {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) connection: Connection,
    pub(crate) lock: Lock,
    pub(crate) anchor: AnchorFile,
    pub(crate) id: Sha256Hex,
}

/// What happens if there is no ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    Create,
    Fail,
}

impl Ledger {
    /// Opens a ledger, and creates it if neither database nor anchor exists. The last directory of
    /// each path is created with mode 0700 if it is missing.
    ///
    /// # Errors
    /// `wp_codebox_ledger_damaged` if the file is no ledger or contradicts its anchor;
    /// `wp_codebox_ledger_unavailable` if it cannot be opened.
    pub fn open(files: &LedgerFiles) -> Result<Self, LedgerError> {
        Self::open_with(files, IfMissing::Create)
    }

    /// Opens a ledger that must exist.
    ///
    /// # Errors
    /// Those of [`Self::open`], and `wp_codebox_ledger_unavailable` if there is none.
    pub fn open_existing(files: &LedgerFiles) -> Result<Self, LedgerError> {
        Self::open_with(files, IfMissing::Fail)
    }

    fn open_with(files: &LedgerFiles, if_missing: IfMissing) -> Result<Self, LedgerError> {
        let missing = || LedgerError::Missing {
            path: files.database.display().to_string(),
        };
        let nothing_there = [&files.database, &files.anchor]
            .iter()
            .all(|path| path.symlink_metadata().is_err());
        if if_missing == IfMissing::Fail && nothing_there {
            return Err(missing());
        }
        let place = Place::open(&files.database)?;
        let anchor = AnchorFile::open(&files.anchor)?;
        let lock = Lock::open(&place, PATIENCE)?;
        let held = lock.take(Sharing::Nobody).map_err(lock_failed)?;
        let anchored = anchor.read()?;
        if place.check("")? == Presence::Missing {
            if let Some(anchored) = &anchored {
                return Err(anchor.database_missing(anchored).into());
            }
            place.create()?;
        }
        for suffix in ["-wal", "-shm", "-journal"] {
            place.check(suffix)?;
        }
        let mut connection = store::open(&place.path)?;
        let found = store::identify(&connection, &place.path)?;
        store::make_durable(&connection)?;
        let id = match (found, &anchored) {
            (Found::Ledger(id), _) => id,
            (Found::Nothing, Some(anchored)) => {
                return Err(anchor.database_missing(anchored).into());
            }
            (Found::Nothing, None) => {
                let id = new_id()?;
                store::create(&mut connection, &id)?;
                id
            }
        };
        if anchored.is_none() {
            let head = store::head(&connection, &id)?;
            if head.length > 0 {
                return Err(anchor.missing(head.length).into());
            }
            // Before the first entry, so that a ledger with entries always has an anchor.
            anchor.write(&Anchor {
                ledger: id.clone(),
                head,
            })?;
        }
        drop(held);
        let mut inner = Inner {
            connection,
            lock,
            anchor,
            id,
        };
        inner.catch_up()?;
        let inner = Mutex::new(inner);
        Ok(Self { inner })
    }

    /// Locks the ledger for this thread. A thread that panicked left no open transaction.
    pub(crate) fn locked(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Compares database and anchor, and writes the anchor that a dead process did not write.
    fn catch_up(&mut self) -> Result<(), LedgerError> {
        let _held = self.lock.take(Sharing::Nobody).map_err(lock_failed)?;
        anchored_head(&self.connection, &self.anchor, &self.id)?;
        Ok(())
    }

    /// Calls `read` with a transaction that sees the ledger as it was when its anchor was read.
    /// Other processes go on writing meanwhile.
    pub(crate) fn snapshot<T>(
        &mut self,
        read: impl FnOnce(&Connection, &Sha256Hex, &AnchorFile, &Anchor) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let Self {
            connection,
            lock,
            anchor,
            id,
        } = self;
        let held = lock.take(Sharing::Readers).map_err(lock_failed)?;
        let anchored = match anchor.read()? {
            Some(anchored) => anchored,
            None => {
                let length = store::head(connection, id)?.length;
                return Err(anchor.missing(length).into());
            }
        };
        let transaction = connection
            .transaction()
            .map_err(LedgerError::database("read"))?;
        // A deferred transaction sees the database as it is at its first statement.
        transaction
            .query_row("SELECT count(*) FROM ledger", [], |_| Ok(()))
            .map_err(LedgerError::database("read"))?;
        drop(held);
        read(&transaction, id, anchor, &anchored)
    }
}

/// Compares database and anchor, writes the anchor if it is one entry behind, and returns the last
/// entry. The caller holds the lock.
pub(crate) fn anchored_head(
    connection: &Connection,
    file: &AnchorFile,
    id: &Sha256Hex,
) -> Result<Head, LedgerError> {
    let head = store::head(connection, id)?;
    let Some(anchor) = file.read()? else {
        return Err(file.missing(head.length).into());
    };
    let named = store::hash_at(connection, id, anchor.head.length)?;
    match file.compare(&anchor, id, head.length, named.as_ref())? {
        Standing::Current => {}
        Standing::OneBehind => file.write(&Anchor {
            ledger: id.clone(),
            head: head.clone(),
        })?,
    }
    Ok(head)
}

fn new_id() -> Result<Sha256Hex, LedgerError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|source| LedgerError::Random { source })?;
    Ok(Sha256Hex::from_bytes(&bytes))
}

pub(crate) fn lock_failed(failure: LockFailure) -> LedgerError {
    match failure {
        LockFailure::Busy { seconds } => LedgerError::Busy { seconds },
        LockFailure::Files(error) => error.into(),
    }
}
