//! Prices and credits of sandboxes, through the crate `ledger`. Without a price table there are no
//! quotes; without a ledger nothing is reserved.
//!
//! A reservation is durable before the record of its sandbox exists. After a crash between these
//! two writes, [`Credits::reconcile`] releases it.

use crate::clock::now_ms;
use crate::extension::SandboxUsage;
use crate::store::{SandboxRecord, Store};
use serde_json::{Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_ledger::{
    AccountId, Actuals, Gpu, Ledger, Note, Prices, SandboxKey, UnixMillis, Usage,
};

/// Prices and credits of a server.
pub(crate) struct Credits {
    prices: Option<Prices>,
    ledger: Option<Ledger>,
}

fn now() -> UnixMillis {
    UnixMillis(u64::try_from(now_ms()).unwrap_or_default())
}

impl Credits {
    pub(crate) fn new(prices: Option<Prices>, ledger: Option<Ledger>) -> Self {
        Self { prices, ledger }
    }

    /// Returns the price of a sandbox that lives this long, as the document `meter-quote/v1`; null
    /// without a price table.
    pub(crate) fn quote(
        &self,
        extension: &str,
        duration_ms: u64,
        gpus: u32,
    ) -> Result<Value, ErrorBody> {
        let gpu = Gpu::from(gpus > 0);
        match &self.prices {
            None => Ok(Value::Null),
            Some(prices) => {
                let quote = prices.quote(extension, duration_ms, gpu);
                Ok(json!(quote.map_err(|e| e.body())?))
            }
        }
    }

    /// Sets the quoted credits aside. No effect when credits are off.
    pub(crate) fn reserve(&self, record: &SandboxRecord) -> Result<(), ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let Some(account) = &record.account else {
            return Err(ErrorBody::new(
                ErrorCode::AccountMissing,
                "this service charges credits, but the request has no account; use a token that was created with an account, or name one as administrator of the machine",
            ));
        };
        let quote = serde_json::from_value(record.quote.clone()).map_err(|_| {
            ErrorBody::new(
                ErrorCode::StateDirInvalid,
                "this service charges credits but has no price table; start it with a price table",
            )
        })?;
        let account = AccountId::new(account.as_str()).map_err(|e| e.body())?;
        ledger
            .reserve(&account, &key(record)?, &quote, now())
            .map(|_| ())
            .map_err(|e| e.body())
    }

    /// Sets more credits aside for a sandbox that may live `ttl_ms` from now.
    pub(crate) fn extend(&self, record: &SandboxRecord, ttl_ms: u64) -> Result<(), ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let so_far = u64::try_from(now_ms().saturating_sub(record.created_ms)).unwrap_or_default();
        ledger
            .extend(&key(record)?, so_far.saturating_add(ttl_ms), now())
            .map(|_| ())
            .map_err(|e| e.body())
    }

    /// Releases the reservation of a sandbox that did not start.
    pub(crate) fn release(&self, record: &SandboxRecord, reason: &str) -> Result<(), ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let plain: String = reason
            .chars()
            .filter(|c| !c.is_control())
            .take(50)
            .collect();
        let note = Note::new(if plain.is_empty() {
            "it did not start".to_owned()
        } else {
            plain
        })
        .map_err(|e| e.body())?;
        ledger
            .release(&key(record)?, &note, now())
            .map(|_| ())
            .map_err(|e| e.body())
    }

    /// Charges a sandbox that ended; by wall clock if nothing measured its use.
    pub(crate) fn settle(&self, record: &SandboxRecord) -> Result<(), ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let measured = record.usage.as_ref().map(measured);
        let actuals = match &measured {
            Some(usage) if usage.estimated => Actuals::UntimedUse(usage),
            Some(usage) => Actuals::Used(usage),
            None => Actuals::WallClock,
        };
        ledger
            .settle(&key(record)?, actuals, now())
            .map(|_| ())
            .map_err(|e| e.body())
    }

    /// Ends the reservations of sandboxes that ended or were never stored. A server calls it once,
    /// before it takes requests.
    pub(crate) fn reconcile(&self, store: &Store) -> Result<(), ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        for open in ledger.open_reservations().map_err(|e| e.body())? {
            match store.sandbox(open.sandbox.as_str())? {
                None => {
                    let note =
                        Note::new("the request was not acknowledged").map_err(|e| e.body())?;
                    let _ = ledger
                        .release(&open.sandbox, &note, now())
                        .map_err(|e| e.body())?;
                }
                Some(record) if record.state.is_final() => self.close(&record)?,
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Ends the reservation of a sandbox in a final state.
    pub(crate) fn close(&self, record: &SandboxRecord) -> Result<(), ErrorBody> {
        match record.reachability {
            // It never became ready, so nothing is charged.
            None => self.release(record, record.reason.as_deref().unwrap_or_default()),
            Some(_) => self.settle(record),
        }
    }

    /// Returns the balance of an account; null when credits are off.
    pub(crate) fn balance(&self, account: &str) -> Result<Value, ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(Value::Null);
        };
        let account = AccountId::new(account).map_err(|e| e.body())?;
        Ok(json!(ledger.balance(&account).map_err(|e| e.body())?))
    }
}

fn key(record: &SandboxRecord) -> Result<SandboxKey, ErrorBody> {
    SandboxKey::new(record.id()).map_err(|e| e.body())
}

/// Converts the usage that an extension measured; it is marked `estimated` if its lifetime is
/// unknown.
fn measured(usage: &SandboxUsage) -> Usage {
    let time = match usage.alive_ms {
        Some(alive) => Usage::alive(alive),
        None => Usage::wall_clock(0),
    };
    Usage {
        cpu_ms: usage.cpu_ms,
        memory_byte_seconds: usage
            .memory_mib_seconds
            .map(|mib| mib.saturating_mul(1024 * 1024)),
        memory_samples: usage.memory_samples.unwrap_or_default(),
        written_bytes: usage.written_bytes,
        egress_bytes: usage.egress_bytes,
        ..time
    }
}
