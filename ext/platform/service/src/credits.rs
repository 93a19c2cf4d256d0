//! Prices and credits of sandboxes and runs, through the crate `ledger`. Without a price table there
//! are no quotes; without a ledger nothing is reserved.
//!
//! A reservation is durable before the record of its sandbox or run exists. After a crash between
//! these two writes, [`Credits::reconcile`] releases it.

use crate::clock::now_ms;
use crate::extension::SandboxUsage;
use crate::store::{RunRecord, RunState, SandboxRecord, Store};
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

/// What is charged: the members of a sandbox's or a run's record that matter for its reservation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charge<'a> {
    id: &'a str,
    account: Option<&'a str>,
    quote: &'a Value,
    /// Whether it was usable at some time; if not, nothing is charged.
    started: bool,
    usage: Option<&'a SandboxUsage>,
    /// Why it ended or failed.
    reason: &'a str,
}

impl<'a> From<&'a SandboxRecord> for Charge<'a> {
    fn from(record: &'a SandboxRecord) -> Self {
        Self {
            id: record.id(),
            account: record.account.as_deref(),
            quote: &record.quote,
            started: record.reachability.is_some(),
            usage: record.usage.as_ref(),
            reason: record.reason.as_deref().unwrap_or_default(),
        }
    }
}

impl<'a> From<&'a RunRecord> for Charge<'a> {
    fn from(record: &'a RunRecord) -> Self {
        Self {
            id: record.id.as_str(),
            account: record.account.as_deref(),
            quote: &record.quote,
            started: record.started,
            usage: record.usage.as_ref(),
            reason: "",
        }
    }
}

impl Charge<'_> {
    fn key(&self) -> Result<SandboxKey, ErrorBody> {
        SandboxKey::new(self.id).map_err(ErrorBody::from)
    }
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
                Ok(json!(quote?))
            }
        }
    }

    /// Sets the quoted credits aside. No effect when credits are off.
    pub(crate) fn reserve<'a>(&self, charge: impl Into<Charge<'a>>) -> Result<(), ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let charge = charge.into();
        let Some(account) = charge.account else {
            return Err(ErrorBody::new(
                ErrorCode::AccountMissing,
                "this service charges credits, but the request has no account; use a token that was created with an account, or name one as administrator of the machine",
            ));
        };
        let quote = serde_json::from_value(charge.quote.clone()).map_err(|_| {
            ErrorBody::new(
                ErrorCode::StateDirInvalid,
                "this service charges credits but has no price table; start it with a price table",
            )
        })?;
        let account = AccountId::new(account)?;
        ledger
            .reserve(&account, &charge.key()?, &quote, now())
            .map(|_| ())
            .map_err(ErrorBody::from)
    }

    /// Sets more credits aside for a sandbox that may live `ttl_ms` from now.
    pub(crate) fn extend(&self, record: &SandboxRecord, ttl_ms: u64) -> Result<(), ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let so_far = u64::try_from(now_ms().saturating_sub(record.created_ms)).unwrap_or_default();
        ledger
            .extend(
                &Charge::from(record).key()?,
                so_far.saturating_add(ttl_ms),
                now(),
            )
            .map(|_| ())
            .map_err(ErrorBody::from)
    }

    /// Releases the reservation of a sandbox that did not start.
    pub(crate) fn release<'a>(
        &self,
        charge: impl Into<Charge<'a>>,
        reason: &str,
    ) -> Result<(), ErrorBody> {
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
        })?;
        ledger
            .release(&charge.into().key()?, &note, now())
            .map(|_| ())
            .map_err(ErrorBody::from)
    }

    /// Charges what has ended; by wall clock if nothing measured its use.
    fn settle(&self, charge: &Charge<'_>) -> Result<(), ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let measured = charge.usage.map(measured);
        let actuals = match &measured {
            Some(usage) if usage.estimated => Actuals::UntimedUse(usage),
            Some(usage) => Actuals::Used(usage),
            None => Actuals::WallClock,
        };
        ledger
            .settle(&charge.key()?, actuals, now())
            .map(|_| ())
            .map_err(ErrorBody::from)
    }

    /// Ends the reservations of sandboxes and runs that ended or were never stored. A server calls
    /// it once, before it takes requests.
    pub(crate) fn reconcile(&self, store: &Store) -> Result<(), ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        for open in ledger.open_reservations()? {
            let id = open.sandbox.as_str();
            match (store.sandbox(id)?, store.run(id)?) {
                (None, None) => {
                    let note = Note::new("the request was not acknowledged")?;
                    let _ = ledger.release(&open.sandbox, &note, now())?;
                }
                (Some(record), _) if record.state.is_final() => self.close(&record)?,
                (None, Some(record)) if record.state == RunState::Ended => self.close(&record)?,
                (Some(_), _) | (None, Some(_)) => {}
            }
        }
        Ok(())
    }

    /// Ends the reservation of a sandbox or run in a final state.
    pub(crate) fn close<'a>(&self, charge: impl Into<Charge<'a>>) -> Result<(), ErrorBody> {
        let charge = charge.into();
        match charge.started {
            true => self.settle(&charge),
            // It never became usable, so nothing is charged.
            false => self.release(charge, charge.reason),
        }
    }

    /// Returns whether this server charges credits.
    pub(crate) fn are_on(&self) -> bool {
        self.ledger.is_some()
    }

    /// Returns the balance of an account; null when credits are off.
    pub(crate) fn balance(&self, account: &str) -> Result<Value, ErrorBody> {
        let Some(ledger) = &self.ledger else {
            return Ok(Value::Null);
        };
        let account = AccountId::new(account)?;
        Ok(json!(ledger.balance(&account)?))
    }
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
