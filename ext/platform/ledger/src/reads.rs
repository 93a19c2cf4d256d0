//! Balances, reservations and entries. Each reads by an index, except the list of open reservations.

use crate::amount::{Amount, Balance, UnixMillis};
use crate::anchor::Head;
use crate::entry::{Entry, Event, sandbox_subject};
use crate::error::LedgerError;
use crate::handle::Ledger;
use crate::names::{AccountId, SandboxKey};
use crate::prices::Quote;
use crate::rules::SandboxState;
use crate::store;
use rusqlite::Connection;

/// Credits set aside for a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Sandbox that will use them.
    pub sandbox: SandboxKey,
    /// Account that pays.
    pub account: AccountId,
    /// Credits set aside.
    pub amount: Amount,
    /// Time of the reservation.
    pub started: UnixMillis,
    /// Price of the whole time.
    pub quote: Quote,
}

impl Ledger {
    /// Returns the balance of an account; an unknown account has nothing. Reads one entry.
    ///
    /// # Errors
    /// `wp_codebox_ledger_damaged` or `wp_codebox_ledger_unavailable`.
    pub fn balance(&self, account: &AccountId) -> Result<Balance, LedgerError> {
        store::balance(&self.locked().connection, account)
    }

    /// Returns accounts with their balances, sorted by name: at most `limit` with a name after
    /// `after`, which is empty for the first page.
    ///
    /// # Errors
    /// Those of [`Self::balance`].
    pub fn accounts(
        &self,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(AccountId, Balance)>, LedgerError> {
        let entries = store::accounts(&self.locked().connection, after, limit)?;
        let row = |entry: Entry| (entry.content.account, entry.content.balance);
        Ok(entries.into_iter().map(row).collect())
    }

    /// Returns the newest entry about a sandbox; `None` if it was never reserved.
    ///
    /// # Errors
    /// Those of [`Self::balance`].
    pub fn sandbox(&self, sandbox: &SandboxKey) -> Result<Option<Entry>, LedgerError> {
        store::of_subject(&self.locked().connection, &sandbox_subject(sandbox))
    }

    /// Returns all open reservations, oldest first. After a restart the caller settles or releases
    /// those whose sandboxes ended.
    ///
    /// # Errors
    /// Those of [`Self::balance`].
    pub fn open_reservations(&self) -> Result<Vec<Reservation>, LedgerError> {
        let entries = store::open_reservations(&self.locked().connection)?;
        Ok(entries.iter().filter_map(reservation).collect())
    }

    /// Returns at most `limit` entries after number `after`, oldest first.
    ///
    /// # Errors
    /// Those of [`Self::balance`].
    pub fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>, LedgerError> {
        store::verified(store::rows(&self.locked().connection, after, limit)?)
    }

    /// Returns number and hash of the last entry. A copy of it elsewhere, given to
    /// [`Self::verify`], reveals a change of both database and anchor.
    ///
    /// # Errors
    /// Those of [`Self::balance`].
    pub fn head(&self) -> Result<Head, LedgerError> {
        let inner = self.locked();
        store::head(&inner.connection, &inner.id)
    }
}

fn reservation(entry: &Entry) -> Option<Reservation> {
    match SandboxState::after(&entry.content.event)? {
        SandboxState::Open {
            reserved,
            started,
            quote,
        } => Some(Reservation {
            sandbox: entry.content.event.sandbox()?.clone(),
            account: entry.content.account.clone(),
            amount: reserved,
            started,
            quote,
        }),
        SandboxState::Released | SandboxState::Settled => None,
    }
}

/// Returns the open reservation of a sandbox and its newest entry.
pub(crate) fn open_reservation(
    connection: &Connection,
    sandbox: &SandboxKey,
) -> Result<(Entry, Reservation), LedgerError> {
    let sandbox = sandbox.clone();
    let Some(entry) = store::of_subject(connection, &sandbox_subject(&sandbox))? else {
        return Err(LedgerError::NotReserved { sandbox });
    };
    let seq = entry.content.seq;
    match (&entry.content.event, reservation(&entry)) {
        (_, Some(open)) => Ok((entry, open)),
        (Event::Settle { .. }, None) => Err(LedgerError::Settled { sandbox, seq }),
        (_, None) => Err(LedgerError::Released { sandbox, seq }),
    }
}
