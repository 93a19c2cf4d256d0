//! Tokens `wpcb_<id>_<secret>`: how they are made, stored and checked.

use super::Scopes;
use crate::actor::Actor;
use crate::clock::now_ms;
use crate::store::{Store, TokenRow};
use sha2::{Digest, Sha256};
use std::path::Path;
use subtle::ConstantTimeEq;
use wp_codebox_contracts::{ErrorBody, ErrorCode, hex};
use wp_codebox_ledger::AccountId;

/// First part of every token, by which scanners for leaked secrets find it.
const PREFIX: &str = "wpcb";
/// Number of random bytes of the id and of the secret.
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;
/// Maximum length of a token that is parsed.
const LONGEST: usize = 128;

/// Parameters of a new token.
#[derive(Debug, Clone)]
pub struct TokenSpec {
    /// Operations that it allows.
    pub scopes: Scopes,
    /// Actor to whom the server attributes all requests with the token.
    pub actor: Actor,
    /// Account that pays for its sandboxes.
    pub account: Option<String>,
    /// Requests per minute, at least 1.
    pub rate_per_minute: u32,
    /// Requests at the same time, at least 1.
    pub concurrency: u32,
    /// Lifetime in milliseconds; `None`: until it is revoked.
    pub ttl_ms: Option<u64>,
}

/// A new token with its secret, which is shown this one time.
#[derive(Clone)]
pub struct NewToken {
    /// The token as it is stored.
    pub row: TokenRow,
    /// The whole token, for the header `Authorization: Bearer …`.
    pub token: String,
}

/// Makes, lists and revokes tokens in the service's directory. It may be used while a server runs;
/// the server then sees every change at its next request.
pub struct TokenStore(Store);

impl TokenStore {
    /// Opens the records of the service's directory.
    ///
    /// # Errors
    /// When they cannot be opened.
    pub fn open(directory: &Path) -> Result<Self, ErrorBody> {
        Ok(Self(Store::open(directory)?))
    }

    /// Creates a token.
    ///
    /// # Errors
    /// When a limit is 0, the account's name is malformed, or the records cannot be written.
    pub fn create(&self, spec: TokenSpec) -> Result<NewToken, ErrorBody> {
        if spec.rate_per_minute == 0 || spec.concurrency == 0 {
            return Err(ErrorBody::new(
                ErrorCode::InputInvalid,
                "the limits of a token must be at least 1",
            ));
        }
        if let Some(account) = &spec.account {
            AccountId::new(account.as_str())?;
        }
        let (id, secret) = (hex(&random::<ID_BYTES>()?), hex(&random::<SECRET_BYTES>()?));
        let created_ms = now_ms();
        let row = TokenRow {
            id: id.clone(),
            scopes: spec.scopes,
            actor: spec.actor,
            account: spec.account,
            rate_per_minute: spec.rate_per_minute,
            concurrency: spec.concurrency,
            created_ms,
            expires_ms: spec
                .ttl_ms
                .map(|ttl| created_ms.saturating_add(i64::try_from(ttl).unwrap_or(i64::MAX))),
            revoked_ms: None,
        };
        self.0.insert_token(&row, &digest(&secret))?;
        Ok(NewToken {
            row,
            token: format!("{PREFIX}_{id}_{secret}"),
        })
    }

    /// Lists all tokens without their secrets, oldest first.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub fn list(&self) -> Result<Vec<TokenRow>, ErrorBody> {
        Ok(self.0.tokens()?)
    }

    /// Revokes a token. A repeated call changes nothing.
    ///
    /// # Errors
    /// `wp_codebox_service_not_found` when there is no token with this id.
    pub fn revoke(&self, id: &str) -> Result<(), ErrorBody> {
        if self.0.revoke_token(id)? {
            return Ok(());
        }
        Err(ErrorBody::new(
            ErrorCode::ServiceNotFound,
            "there is no token with this id; list the tokens with `wp-codebox token list`",
        ))
    }
}

/// Returns random bytes of the kernel.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], ErrorBody> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        ErrorBody::new(
            ErrorCode::Internal,
            format!("the kernel gave no random bytes: {error}; try again"),
        )
    })?;
    Ok(bytes)
}

fn digest(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

/// Splits a token into its id and its secret; `None` for any other text.
pub(crate) fn parse(token: &str) -> Option<(&str, &str)> {
    if token.len() > LONGEST {
        return None;
    }
    let rest = token.strip_prefix(PREFIX)?.strip_prefix('_')?;
    let (id, secret) = rest.split_once('_')?;
    let is_hex = |text: &str, bytes: usize| {
        text.len() == 2 * bytes && text.bytes().all(|b| b.is_ascii_hexdigit())
    };
    (is_hex(id, ID_BYTES) && is_hex(secret, SECRET_BYTES)).then_some((id, secret))
}

/// Returns whether a stored token may be used with this secret. Takes equally long for every wrong
/// secret.
pub(super) fn accepts(row: &TokenRow, stored: &str, secret: &str) -> bool {
    let same: bool = digest(secret).as_bytes().ct_eq(stored.as_bytes()).into();
    same && row.is_valid(now_ms())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(ttl_ms: Option<u64>) -> TokenSpec {
        TokenSpec {
            scopes: Scopes::everything(),
            actor: "atm:nightly".parse().unwrap(),
            account: None,
            rate_per_minute: 60,
            concurrency: 4,
            ttl_ms,
        }
    }

    #[test]
    fn token_is_accepted_until_it_expires_or_is_revoked_and_its_secret_is_not_stored() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = TokenStore::open(directory.path()).unwrap();
        let made = tokens.create(spec(None)).unwrap();
        let (id, secret) = parse(&made.token).unwrap();
        let accepted = |secret: &str| {
            let (row, stored) = tokens.0.token(id).unwrap().unwrap();
            accepts(&row, &stored, secret)
        };
        assert!(accepted(secret));
        assert!(!accepted(&secret.replace(|c: char| c != '0', "0")));
        tokens.revoke(id).unwrap();
        tokens.revoke(id).unwrap();
        assert!(!accepted(secret));
        assert_eq!(
            tokens.revoke("000000000000").unwrap_err().code,
            ErrorCode::ServiceNotFound
        );

        let expired = tokens.create(spec(Some(0))).unwrap();
        let (row, stored) = tokens.0.token(&expired.row.id).unwrap().unwrap();
        assert!(!accepts(&row, &stored, parse(&expired.token).unwrap().1));

        drop(tokens);
        for file in std::fs::read_dir(directory.path()).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            let found = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "the secret is on the disk");
        }
    }

    #[test]
    fn malformed_tokens_do_not_parse() {
        let directory = tempfile::tempdir().unwrap();
        let made = TokenStore::open(directory.path())
            .unwrap()
            .create(spec(None))
            .unwrap();
        assert!(parse(&made.token).is_some());
        for token in [
            "",
            "wpcb_",
            "wpcb__",
            &made.token[1..],
            &format!("{}0", made.token),
            &"x".repeat(10_000),
        ] {
            assert!(parse(token).is_none(), "{token}");
        }
    }
}
