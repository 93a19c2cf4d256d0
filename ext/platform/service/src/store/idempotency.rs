//! Idempotency keys: which sandbox a key of a token made. A key lives as long as the record of its
//! sandbox.

use super::{Store, StoreResult};
use crate::clock::now_ms;
use rusqlite::{OptionalExtension, Transaction, params};

/// A key with the digest of the request that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdempotencyKey {
    /// Id of the token; equal keys of different tokens are independent.
    pub token: String,
    /// The key as the client chose it.
    pub key: String,
    /// SHA-256 of the request's body.
    pub body_sha256: String,
}

/// Result of an attempt to use a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The request is the first one; its sandbox was stored.
    New,
    /// An equal request made this sandbox before.
    Same(String),
    /// A request with another body used the key before.
    Other,
}

impl Store {
    /// Returns what an earlier request with this key did; `None` if there was none.
    pub(crate) fn claim(&self, key: &IdempotencyKey) -> StoreResult<Option<Claim>> {
        find(&self.lock(), key)
    }

    /// Returns the sandbox that a key of a token made.
    pub(crate) fn sandbox_of_key(&self, token: &str, key: &str) -> StoreResult<Option<String>> {
        let connection = self.lock();
        let mut statement = connection
            .prepare_cached("SELECT sandbox FROM idempotency WHERE token = ?1 AND key = ?2")?;
        Ok(statement
            .query_row(params![token, key], |row| row.get(0))
            .optional()?)
    }
}

pub(super) fn find(
    connection: &rusqlite::Connection,
    key: &IdempotencyKey,
) -> StoreResult<Option<Claim>> {
    let found: Option<(String, String)> = connection
        .prepare_cached(
            "SELECT body_sha256, sandbox FROM idempotency WHERE token = ?1 AND key = ?2",
        )?
        .query_row(params![key.token, key.key], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    Ok(found.map(|(body, sandbox)| {
        if body == key.body_sha256 {
            Claim::Same(sandbox)
        } else {
            Claim::Other
        }
    }))
}

pub(super) fn insert(tx: &Transaction<'_>, key: &IdempotencyKey, sandbox: &str) -> StoreResult<()> {
    tx.prepare_cached(
        "INSERT INTO idempotency (token, key, body_sha256, sandbox, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![key.token, key.key, key.body_sha256, sandbox, now_ms()])?;
    Ok(())
}
