//! Accounts that a client may charge.

use super::Caller;
use crate::auth::Scope;
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use crate::store::SandboxRecord;
use serde_json::Value;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_ledger::AccountId;

impl Caller {
    /// Returns the account that pays for something new: that of the token, or the one that the
    /// administrator of the machine names.
    pub(crate) fn account(&self, named: Option<&str>) -> ApiResult<Option<String>> {
        let own = &self.principal.account;
        let Some(named) = named else {
            return Ok(own.clone());
        };
        let account = AccountId::new(named).map_err(ErrorBody::from)?;
        if self.principal.is_administrator() || own.as_deref() == Some(named) {
            return Ok(Some(account.to_string()));
        }
        Err(Problem::new(
            ErrorCode::ServiceScopeMissing,
            "only the administrator of this machine may name an account; use a token that was created with the account",
        ))
    }

    /// Refuses to charge the account of a sandbox unless it is the account of this token. A client
    /// that may use the sandboxes of other actors may also charge their accounts.
    pub(super) fn check_payer(&self, record: &SandboxRecord) -> ApiResult<()> {
        let is_free = !self.core.credits.are_on();
        let is_own = self.principal.account == record.account;
        let profile = Some(record.profile_id());
        if is_free || is_own || self.principal.scopes.allow(Scope::SandboxesAll, profile) {
            return Ok(());
        }
        Err(Problem::new(
            ErrorCode::AccountMissing,
            "another account pays for this sandbox than the one of this token; use a token that was created with that account",
        ))
    }

    /// Returns the balance of the token's account; null when credits are off or it has none.
    pub(crate) async fn balance(&self) -> ApiResult<Value> {
        let Some(account) = self.principal.account.clone() else {
            return Ok(Value::Null);
        };
        let balance = self
            .core
            .blocking(Pool::Records, move |core| core.credits.balance(&account));
        Ok(balance.await??)
    }
}
