//! The operations that add entries.
//!
//! Each takes the lock file, compares database and anchor, decides by the newest entries, adds one
//! entry in one transaction, synchronises, and replaces the anchor. Only then it returns.

use crate::amount::{Amount, Balance, UnixMillis};
use crate::anchor::{Anchor, Head};
use crate::entry::{Content, Entry, EntrySchema, Event, grant_subject, link, sandbox_subject};
use crate::error::LedgerError;
use crate::files::Sharing;
use crate::handle::{Inner, Ledger, anchored_head, lock_failed};
use crate::names::{AccountId, GrantReference, Note, SandboxKey};
use crate::prices::Quote;
use crate::reads::{Reservation, open_reservation};
use crate::rules::{SandboxState, balance_after, charge};
use crate::store;
use crate::usage::Usage;
use rusqlite::{Connection, TransactionBehavior};

/// Result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Recorded {
    /// The operation added this entry.
    Now(Entry),
    /// The same operation was recorded before, in this entry; nothing changed.
    Before(Entry),
}

impl Recorded {
    /// Returns the entry.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        match self {
            Self::Now(entry) | Self::Before(entry) => entry,
        }
    }
}

/// Credits that an operator gives to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Account that gets them.
    pub account: AccountId,
    /// Credits, at least 1.
    pub amount: Amount,
    /// Unique in the ledger; repeating it with the same account and amount changes nothing.
    pub reference: GrantReference,
    /// User or program that gives them.
    pub actor: Note,
    /// Reason of the grant, for people.
    pub reason: Note,
}

/// What is known about the use of a sandbox that ended.
#[derive(Debug, Clone, Copy)]
pub enum Actuals<'a> {
    /// Measured or estimated values.
    Used(&'a Usage),
    /// Nothing, for example because the supervisor died: the time between reservation and
    /// settlement is charged and marked as estimated.
    WallClock,
    /// Measures without the time at which the sandbox ended, for example the last ones that a
    /// supervisor stored before it died. The time is that of [`Actuals::WallClock`].
    UntimedUse(&'a Usage),
}

/// What an operation adds.
enum Step {
    /// A new entry of this account.
    Append(AccountId, Event),
    /// Nothing: this entry records the same operation.
    Repeat(Entry),
}

impl Ledger {
    /// Gives credits to an account.
    ///
    /// # Errors
    /// `wp_codebox_ledger_conflict` if another grant has the reference.
    pub fn grant(&self, grant: &Grant, now: UnixMillis) -> Result<Recorded, LedgerError> {
        if grant.amount == Amount::ZERO {
            return Err(LedgerError::NothingGranted);
        }
        self.write(now, |connection| {
            let subject = grant_subject(&grant.reference);
            if let Some(entry) = store::of_subject(connection, &subject)? {
                let is_same = entry.content.account == grant.account
                    && entry.content.event.amount() == grant.amount;
                return match is_same {
                    true => Ok(Step::Repeat(entry)),
                    false => Err(LedgerError::ReferenceUsed {
                        reference: grant.reference.clone(),
                        seq: entry.content.seq,
                    }),
                };
            }
            let event = Event::Grant {
                amount: grant.amount,
                reference: grant.reference.clone(),
                actor: grant.actor.clone(),
                reason: grant.reason.clone(),
            };
            Ok(Step::Append(grant.account.clone(), event))
        })
    }

    /// Sets the quoted credits aside for a sandbox. Call it before anything of the sandbox starts.
    /// A released sandbox can be reserved again.
    ///
    /// # Errors
    /// `wp_codebox_credits_short` if the account has not enough; `wp_codebox_ledger_conflict` if the
    /// sandbox is settled or has another reservation.
    pub fn reserve(
        &self,
        account: &AccountId,
        sandbox: &SandboxKey,
        quote: &Quote,
        now: UnixMillis,
    ) -> Result<Recorded, LedgerError> {
        if !quote.is_consistent() {
            return Err(LedgerError::QuoteInconsistent);
        }
        self.write(now, |connection| {
            let newest = store::of_subject(connection, &sandbox_subject(sandbox))?;
            if let Some(entry) = newest {
                let seq = entry.content.seq;
                match SandboxState::after(&entry.content.event) {
                    Some(SandboxState::Open { quote: quoted, .. })
                        if entry.content.account == *account && quoted == *quote =>
                    {
                        return Ok(Step::Repeat(entry));
                    }
                    Some(SandboxState::Open { .. }) => {
                        return Err(LedgerError::ReservedOtherwise {
                            sandbox: sandbox.clone(),
                            seq,
                        });
                    }
                    Some(SandboxState::Settled) => {
                        return Err(LedgerError::Settled {
                            sandbox: sandbox.clone(),
                            seq,
                        });
                    }
                    Some(SandboxState::Released) | None => {}
                }
            }
            let event = Event::Reserve {
                sandbox: sandbox.clone(),
                amount: quote.amount(),
                started: now,
                quote: quote.clone(),
            };
            Ok(Step::Append(account.clone(), event))
        })
    }

    /// Sets more credits aside, for a sandbox that may live `duration_ms` in total since its
    /// reservation, at the quoted price. A duration that is reserved already changes nothing.
    ///
    /// # Errors
    /// `wp_codebox_credits_short` if the account has not enough; `wp_codebox_ledger_conflict` if the
    /// sandbox has no open reservation.
    pub fn extend(
        &self,
        sandbox: &SandboxKey,
        duration_ms: u64,
        now: UnixMillis,
    ) -> Result<Recorded, LedgerError> {
        self.write(now, |connection| {
            let (entry, reservation) = open_reservation(connection, sandbox)?;
            let quote = reservation.quote.for_duration(duration_ms)?;
            if duration_ms <= reservation.quote.duration_ms() {
                return Ok(Step::Repeat(entry));
            }
            let amount = quote
                .amount()
                .checked_sub(reservation.amount)
                .unwrap_or_default();
            let event = Event::Extend {
                sandbox: sandbox.clone(),
                amount,
                started: reservation.started,
                quote,
            };
            Ok(Step::Append(reservation.account, event))
        })
    }

    /// Ends a reservation without a charge, because the sandbox did not start.
    ///
    /// # Errors
    /// `wp_codebox_ledger_conflict` if the sandbox is settled or was never reserved.
    pub fn release(
        &self,
        sandbox: &SandboxKey,
        reason: &Note,
        now: UnixMillis,
    ) -> Result<Recorded, LedgerError> {
        self.write(now, |connection| {
            let reservation = match open_reservation(connection, sandbox) {
                Ok((_, reservation)) => reservation,
                Err(LedgerError::Released { .. }) => return repeat(connection, sandbox),
                Err(error) => return Err(error),
            };
            let event = Event::Release {
                sandbox: sandbox.clone(),
                amount: reservation.amount,
                reason: reason.clone(),
            };
            Ok(Step::Append(reservation.account, event))
        })
    }

    /// Charges the use of a sandbox that ended, at most the reserved amount, and makes the rest
    /// available again. A sandbox is settled once; a second call returns the first settlement.
    ///
    /// # Errors
    /// `wp_codebox_ledger_conflict` if the sandbox was released or never reserved.
    pub fn settle(
        &self,
        sandbox: &SandboxKey,
        actuals: Actuals<'_>,
        now: UnixMillis,
    ) -> Result<Recorded, LedgerError> {
        self.write(now, |connection| {
            let reservation = match open_reservation(connection, sandbox) {
                Ok((_, reservation)) => reservation,
                Err(LedgerError::Settled { .. }) => return repeat(connection, sandbox),
                Err(error) => return Err(error),
            };
            let usage = match actuals {
                Actuals::Used(usage) => usage.clone(),
                Actuals::WallClock => Usage::wall_clock(since(&reservation, now)),
                Actuals::UntimedUse(usage) => Usage {
                    seconds_alive: Usage::wall_clock(since(&reservation, now)).seconds_alive,
                    estimated: true,
                    ..usage.clone()
                },
            };
            let charge = charge(&reservation.quote, &usage);
            let event = Event::Settle {
                sandbox: sandbox.clone(),
                amount: charge.amount,
                reserved: reservation.amount,
                capped: charge.capped,
                usage,
                quote: reservation.quote,
            };
            Ok(Step::Append(reservation.account, event))
        })
    }

    /// Decides by the newest entries and adds at most one entry.
    fn write(
        &self,
        now: UnixMillis,
        decide: impl FnOnce(&Connection) -> Result<Step, LedgerError>,
    ) -> Result<Recorded, LedgerError> {
        let milliseconds = now.0;
        let time = now.rfc3339().ok_or(LedgerError::Time { milliseconds })?;
        let mut inner = self.locked();
        let Inner {
            connection,
            lock,
            anchor,
            id,
        } = &mut *inner;
        let _held = lock.take(Sharing::Nobody).map_err(lock_failed)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(LedgerError::database("locked"))?;
        let head = anchored_head(&transaction, anchor, id)?;
        let (account, event) = match decide(&transaction)? {
            Step::Append(account, event) => (account, event),
            Step::Repeat(entry) => return Ok(Recorded::Before(entry)),
        };
        let before = store::balance(&transaction, &account)?;
        let Some(balance) = balance_after(&before, &event) else {
            return Err(refused(account, before, &event));
        };
        let content = Content {
            schema: EntrySchema::V1,
            seq: head.length.saturating_add(1),
            time,
            account,
            event,
            balance,
            previous: head.hash,
        };
        let text = content
            .text()
            .map_err(|source| LedgerError::Json { source })?;
        let hash = link(&content.previous, &text);
        let entry = Entry { content, hash };
        store::append(&transaction, &entry, &text)?;
        transaction
            .commit()
            .map_err(LedgerError::database("written"))?;
        let seq = entry.content.seq;
        let new = Anchor {
            ledger: id.clone(),
            head: Head {
                length: seq,
                hash: entry.hash.clone(),
            },
        };
        anchor
            .write(&new)
            .map_err(|source| LedgerError::Unanchored { seq, source })?;
        Ok(Recorded::Now(entry))
    }
}

/// Returns the milliseconds since a reservation. A clock that was set back charges no time.
fn since(reservation: &Reservation, now: UnixMillis) -> u64 {
    now.0.saturating_sub(reservation.started.0)
}

fn repeat(connection: &Connection, sandbox: &SandboxKey) -> Result<Step, LedgerError> {
    match store::of_subject(connection, &sandbox_subject(sandbox))? {
        Some(entry) => Ok(Step::Repeat(entry)),
        None => Err(LedgerError::NotReserved {
            sandbox: sandbox.clone(),
        }),
    }
}

/// Returns the error for an event after which the balance would be negative or too large.
fn refused(account: AccountId, before: Balance, event: &Event) -> LedgerError {
    match event {
        Event::Grant { amount, .. } => LedgerError::Overflow {
            account,
            granted: before.granted,
            amount: *amount,
        },
        Event::Reserve { .. }
        | Event::Extend { .. }
        | Event::Release { .. }
        | Event::Settle { .. } => LedgerError::Short {
            account,
            available: before.available,
            needed: event.amount(),
        },
    }
}
