//! Stored tokens. The secret itself is never stored, only its SHA-256: the secrets are random, so
//! no slow hash is needed.

use super::{Store, StoreResult};
use crate::actor::Actor;
use crate::auth::Scopes;
use crate::clock::now_ms;
use rusqlite::{OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenRow {
    /// Id, the part of the token that is not secret.
    pub id: String,
    /// Operations that the token allows.
    pub scopes: Scopes,
    /// Actor to whom the server attributes all requests with the token.
    pub actor: Actor,
    /// Account that pays for the token's sandboxes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Requests per minute.
    pub rate_per_minute: u32,
    /// Requests at the same time, including open streams.
    pub concurrency: u32,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970; `None`: it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// Milliseconds since 1970 at which it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_ms: Option<i64>,
}

impl TokenRow {
    /// Returns whether the token may be used at a time, in milliseconds since 1970.
    #[must_use]
    pub fn is_valid(&self, now_ms: i64) -> bool {
        self.revoked_ms.is_none() && self.expires_ms.is_none_or(|at| now_ms < at)
    }
}

impl Store {
    pub(crate) fn insert_token(&self, token: &TokenRow, secret_sha256: &str) -> StoreResult<()> {
        self.write(|tx| {
            tx.execute(
                "INSERT INTO tokens (id, secret_sha256, document, created_ms, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    token.id,
                    secret_sha256,
                    serde_json::to_string(token)?,
                    token.created_ms,
                    token.expires_ms
                ],
            )?;
            Ok(())
        })
    }

    /// Returns a token and the digest of its secret, also of an expired or revoked one.
    pub(crate) fn token(&self, id: &str) -> StoreResult<Option<(TokenRow, String)>> {
        let connection = self.lock();
        let found = connection
            .prepare_cached("SELECT document, secret_sha256, revoked_ms FROM tokens WHERE id = ?1")?
            .query_row([id], read)
            .optional()?;
        found.map(parsed).transpose()
    }

    /// Lists all tokens, oldest first.
    pub(crate) fn tokens(&self) -> StoreResult<Vec<TokenRow>> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT document, secret_sha256, revoked_ms FROM tokens ORDER BY created_ms, id",
        )?;
        let rows: Vec<_> = statement.query_map([], read)?.collect::<Result<_, _>>()?;
        rows.into_iter()
            .map(|row| parsed(row).map(|(token, _)| token))
            .collect()
    }

    /// Revokes a token; returns whether it exists. A repeated call changes nothing.
    pub(crate) fn revoke_token(&self, id: &str) -> StoreResult<bool> {
        self.write(|tx| {
            let changed = tx.execute(
                "UPDATE tokens SET revoked_ms = coalesce(revoked_ms, ?2) WHERE id = ?1",
                params![id, now_ms()],
            )?;
            Ok(changed > 0)
        })
    }
}

type Columns = (String, String, Option<i64>);

fn read(row: &Row<'_>) -> rusqlite::Result<Columns> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn parsed((document, secret, revoked_ms): Columns) -> StoreResult<(TokenRow, String)> {
    let token: TokenRow = serde_json::from_str(&document)?;
    Ok((
        TokenRow {
            revoked_ms,
            ..token
        },
        secret,
    ))
}
