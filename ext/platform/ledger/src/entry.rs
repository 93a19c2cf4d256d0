//! Entries of the ledger, `wp-codebox/ledger-entry/v1`, and their hashes.
//!
//! The database stores the text of an entry without its hash. The hash is the SHA-256 of the hash of
//! the entry before, a newline and that text, so that a reader needs no canonical form of JSON.

use crate::amount::{Amount, Balance, UnixMillis};
use crate::names::{AccountId, GrantReference, Note, SandboxKey};
use crate::prices::Quote;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use wp_codebox_contracts::Sha256Hex;

/// One entry. It serialises as one flat JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Everything that the hash covers.
    #[serde(flatten)]
    pub content: Content,
    /// Hash of this entry.
    pub hash: Sha256Hex,
}

/// Entry without its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub(crate) schema: EntrySchema,
    /// Number of the entry, from 1 without gaps.
    pub seq: u64,
    /// Time of the operation in RFC 3339, UTC.
    pub time: String,
    /// Account that the entry changes.
    pub account: AccountId,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
    /// Balance of the account after this entry.
    pub balance: Balance,
    /// Hash of the entry before; in the first entry the id of the ledger.
    pub previous: Sha256Hex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EntrySchema {
    #[serde(rename = "wp-codebox/ledger-entry/v1")]
    V1,
}

/// What an entry records; `kind` is its name in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// An operator gave credits to the account.
    Grant {
        /// Credits given.
        amount: Amount,
        /// Reference that makes the grant unique.
        reference: GrantReference,
        /// User or program that gave them.
        actor: Note,
        /// Reason of the grant, for people.
        reason: Note,
    },
    /// Credits were set aside for a sandbox that is about to start.
    Reserve {
        /// Sandbox that will use them.
        sandbox: SandboxKey,
        /// Credits set aside.
        amount: Amount,
        /// Time of the reservation, from which an estimated lifetime counts.
        started: UnixMillis,
        /// Price at which the sandbox is settled.
        quote: Quote,
    },
    /// More credits were set aside, because the sandbox may live longer.
    Extend {
        /// Sandbox that will use them.
        sandbox: SandboxKey,
        /// Credits set aside in addition.
        amount: Amount,
        /// Time of the reservation.
        started: UnixMillis,
        /// Price of the whole, longer time.
        quote: Quote,
    },
    /// The reservation ended without use, for example because the sandbox could not start.
    Release {
        /// Sandbox that did not use them.
        sandbox: SandboxKey,
        /// Credits that are available again.
        amount: Amount,
        /// Reason of the release, for people.
        reason: Note,
    },
    /// The sandbox ended. The rest of its reservation is available again.
    Settle {
        /// Sandbox that ended.
        sandbox: SandboxKey,
        /// Credits charged, at most `reserved`.
        amount: Amount,
        /// Credits that were set aside.
        reserved: Amount,
        /// True if the use cost more than was reserved.
        capped: bool,
        /// Use that was charged; `usage.estimated` says that nothing measured it.
        usage: Usage,
        /// Price at which the use was charged.
        quote: Quote,
    },
}

impl Event {
    /// Returns the name of the kind, as in JSON.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Grant { .. } => "grant",
            Self::Reserve { .. } => "reserve",
            Self::Extend { .. } => "extend",
            Self::Release { .. } => "release",
            Self::Settle { .. } => "settle",
        }
    }

    /// Returns the credits that the event moves.
    #[must_use]
    pub const fn amount(&self) -> Amount {
        match self {
            Self::Grant { amount, .. }
            | Self::Reserve { amount, .. }
            | Self::Extend { amount, .. }
            | Self::Release { amount, .. }
            | Self::Settle { amount, .. } => *amount,
        }
    }

    /// Returns the sandbox; a grant has none.
    #[must_use]
    pub const fn sandbox(&self) -> Option<&SandboxKey> {
        match self {
            Self::Grant { .. } => None,
            Self::Reserve { sandbox, .. }
            | Self::Extend { sandbox, .. }
            | Self::Release { sandbox, .. }
            | Self::Settle { sandbox, .. } => Some(sandbox),
        }
    }

    /// Returns the index key of the grant or sandbox that the event is about. Names have no `/`.
    pub(crate) fn subject(&self) -> String {
        match self {
            Self::Grant { reference, .. } => grant_subject(reference),
            Self::Reserve { sandbox, .. }
            | Self::Extend { sandbox, .. }
            | Self::Release { sandbox, .. }
            | Self::Settle { sandbox, .. } => sandbox_subject(sandbox),
        }
    }
}

pub(crate) fn grant_subject(reference: &GrantReference) -> String {
    format!("grant/{reference}")
}

pub(crate) fn sandbox_subject(sandbox: &SandboxKey) -> String {
    format!("sandbox/{sandbox}")
}

impl Content {
    /// Returns the text that is stored and hashed.
    pub(crate) fn text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

/// Returns the hash of an entry with this text, whose predecessor has the hash `previous`.
pub(crate) fn link(previous: &Sha256Hex, text: &str) -> Sha256Hex {
    let mut hash = Sha256::new();
    hash.update(previous.as_str().as_bytes());
    hash.update(b"\n");
    hash.update(text.as_bytes());
    Sha256Hex::from_bytes(&hash.finalize().into())
}
