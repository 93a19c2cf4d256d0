//! Verifies a whole ledger by replaying it from its first entry.

use crate::amount::{Amount, Balance};
use crate::anchor::{Anchor, AnchorFile, Head};
use crate::entry::Entry;
use crate::error::LedgerError;
use crate::handle::Ledger;
use crate::names::AccountId;
use crate::rules::{SandboxState, balance_after, objection};
use crate::store;
use rusqlite::Connection;
use serde::Serialize;
use std::collections::HashMap;
use wp_codebox_contracts::Sha256Hex;

/// Number of entries that are read at a time.
const PAGE: usize = 1000;
/// Maximum number of problems in the result.
const MAX_PROBLEMS: usize = 100;

/// A contradiction in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Number of the entry; `None` if no single entry is wrong.
    pub seq: Option<u64>,
    /// What is wrong, in one sentence.
    pub text: String,
}

/// Result of verifying a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// True if the verification found no contradiction.
    pub valid: bool,
    /// Number of entries and hash of the last one.
    pub head: Head,
    /// Sum of the balances of all accounts; `None` if it is larger than [`Amount::MAX`].
    pub totals: Option<Balance>,
    /// Number of accounts.
    pub accounts: u64,
    /// Number of sandboxes with an open reservation.
    pub open_reservations: u64,
    /// Everything that is wrong, at most 100 rows.
    pub problems: Vec<Problem>,
}

impl Ledger {
    /// Reads all entries and checks numbers, hashes, the rules of every operation, the balance in
    /// each entry, the anchor, and heads that the caller knows from earlier.
    ///
    /// Other processes can use the ledger meanwhile. Threads that use this handle wait, so a
    /// service verifies with a second handle.
    ///
    /// # Errors
    /// `wp_codebox_ledger_unavailable` if the ledger cannot be read. A damaged ledger is no error
    /// but a result with problems.
    pub fn verify(&self, known: &[Head]) -> Result<Verification, LedgerError> {
        self.locked()
            .snapshot(|connection, id, file, anchor| replay(connection, id, file, anchor, known))
    }
}

/// State of the replay.
struct Replay {
    head: Head,
    accounts: HashMap<AccountId, Balance>,
    subjects: HashMap<String, Option<SandboxState>>,
    problems: Vec<Problem>,
    /// Hashes of the entries that anchor and caller name, by number.
    named: HashMap<u64, Option<Sha256Hex>>,
}

fn replay(
    connection: &Connection,
    id: &Sha256Hex,
    file: &AnchorFile,
    anchor: &Anchor,
    known: &[Head],
) -> Result<Verification, LedgerError> {
    let mut replay = Replay {
        head: Head {
            length: 0,
            hash: id.clone(),
        },
        accounts: HashMap::new(),
        subjects: HashMap::new(),
        problems: Vec::new(),
        named: known
            .iter()
            .map(|head| (head.length, None))
            .chain([(anchor.head.length, None), (0, Some(id.clone()))])
            .collect(),
    };
    replay.named.insert(0, Some(id.clone()));
    let mut after = 0;
    loop {
        let rows = store::rows(connection, after, PAGE)?;
        let Some(last) = rows.last() else {
            break;
        };
        // Only numbers above 0 are selected.
        after = u64::try_from(last.seq).unwrap_or(u64::MAX);
        for row in &rows {
            let seq = u64::try_from(row.seq).unwrap_or_default();
            match row.verified() {
                Ok(entry) => replay.take(&entry),
                Err(why) => {
                    replay.problem(Some(seq), format!("entry {seq} is damaged: {why}"));
                    replay.skip(seq, &row.hash);
                }
            }
        }
    }
    let named = replay.named.get(&anchor.head.length).cloned().flatten();
    if let Err(error) = file.compare(anchor, id, replay.head.length, named.as_ref()) {
        replay.problem(None, error.to_string());
    }
    for head in known {
        if replay.named.get(&head.length).cloned().flatten().as_ref() != Some(&head.hash) {
            let text = format!(
                "entry {} is missing or does not have the hash that you gave",
                head.length
            );
            replay.problem(Some(head.length), text);
        }
    }
    Ok(replay.result())
}

impl Replay {
    fn problem(&mut self, seq: Option<u64>, text: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem { seq, text });
        }
    }

    fn take(&mut self, entry: &Entry) {
        let content = &entry.content;
        let seq = content.seq;
        if Some(seq) != self.head.length.checked_add(1) {
            let before = self.head.length;
            self.problem(Some(seq), format!("entry {seq} follows entry {before}"));
        }
        if content.previous != self.head.hash {
            let text = format!("entry {seq} does not contain the hash of the entry before it");
            self.problem(Some(seq), text);
        }
        let subject = content.event.subject();
        let before = self.subjects.get(&subject);
        let objection = match before {
            // A grant has no state; its reference may occur once.
            Some(None) => Some("the reference of the grant was used before"),
            Some(Some(state)) => objection(Some(state), &content.event),
            None => objection(None, &content.event),
        };
        if let Some(why) = objection {
            self.problem(Some(seq), format!("entry {seq} breaks a rule: {why}"));
        }
        let balance = self
            .accounts
            .get(&content.account)
            .copied()
            .unwrap_or_default();
        if balance_after(&balance, &content.event) != Some(content.balance) {
            let text =
                format!("the balance in entry {seq} is not what the entries before it add up to");
            self.problem(Some(seq), text);
        }
        self.subjects
            .insert(subject, SandboxState::after(&content.event));
        // Continues with the values that the entry claims, so that one error is reported once.
        self.accounts
            .insert(content.account.clone(), content.balance);
        self.arrive(seq, entry.hash.clone());
    }

    /// Continues after a damaged entry with the number and hash that its row claims.
    fn skip(&mut self, seq: u64, hash: &str) {
        let hash = Sha256Hex::new(hash).unwrap_or_else(|_| Sha256Hex::zero());
        self.arrive(seq, hash);
    }

    fn arrive(&mut self, seq: u64, hash: Sha256Hex) {
        if let Some(named) = self.named.get_mut(&seq) {
            *named = Some(hash.clone());
        }
        self.head = Head { length: seq, hash };
    }

    fn result(self) -> Verification {
        let sum = |of: fn(&Balance) -> Amount| {
            self.accounts
                .values()
                .try_fold(Amount::ZERO, |sum, balance| sum.checked_add(of(balance)))
        };
        let totals = (|| {
            Balance::of(
                sum(|b| b.granted)?,
                sum(|b| b.reserved)?,
                sum(|b| b.settled)?,
            )
        })();
        let is_open =
            |state: &&Option<SandboxState>| matches!(state, Some(SandboxState::Open { .. }));
        Verification {
            valid: self.problems.is_empty(),
            head: self.head,
            totals,
            accounts: self.accounts.len() as u64,
            open_reservations: self.subjects.values().filter(is_open).count() as u64,
            problems: self.problems,
        }
    }
}
