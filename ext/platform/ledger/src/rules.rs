//! The rules of the ledger, without I/O. Writer and verifier use the same functions.

use crate::amount::{Amount, Balance, UnixMillis};
use crate::entry::Event;
use crate::prices::Quote;
use crate::usage::Usage;

/// State of a sandbox after its newest entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SandboxState {
    /// Credits are set aside.
    Open {
        /// All credits set aside.
        reserved: Amount,
        /// Time of the reservation.
        started: UnixMillis,
        /// Price of the whole time.
        quote: Quote,
    },
    /// The reservation ended without use.
    Released,
    /// The use was charged.
    Settled,
}

impl SandboxState {
    /// Returns the state after an event; `None` for an event that is not about a sandbox.
    pub(crate) fn after(event: &Event) -> Option<Self> {
        match event {
            Event::Grant { .. } => None,
            Event::Reserve { started, quote, .. } | Event::Extend { started, quote, .. } => {
                Some(Self::Open {
                    reserved: quote.amount(),
                    started: *started,
                    quote: quote.clone(),
                })
            }
            Event::Release { .. } => Some(Self::Released),
            Event::Settle { .. } => Some(Self::Settled),
        }
    }
}

/// Returns the balance after an event; `None` if less than nothing would be available, or more than
/// [`Amount::MAX`] granted.
pub(crate) fn balance_after(before: &Balance, event: &Event) -> Option<Balance> {
    let Balance {
        granted,
        reserved,
        settled,
        ..
    } = *before;
    match event {
        Event::Grant { amount, .. } => {
            Balance::of(granted.checked_add(*amount)?, reserved, settled)
        }
        Event::Reserve { amount, .. } | Event::Extend { amount, .. } => {
            Balance::of(granted, reserved.checked_add(*amount)?, settled)
        }
        Event::Release { amount, .. } => {
            Balance::of(granted, reserved.checked_sub(*amount)?, settled)
        }
        Event::Settle {
            amount,
            reserved: whole,
            ..
        } => {
            let reserved = reserved.checked_sub(*whole)?;
            Balance::of(granted, reserved, settled.checked_add(*amount)?)
        }
    }
}

/// A charge for a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charge {
    /// Credits to charge, at most the reserved ones.
    pub(crate) amount: Amount,
    /// True if the use cost more.
    pub(crate) capped: bool,
}

/// Returns the charge for a use. A use so large that its price cannot be computed costs more than
/// any reservation.
pub(crate) fn charge(quote: &Quote, usage: &Usage) -> Charge {
    let reserved = quote.amount();
    match quote.cost(usage) {
        Some(cost) if cost <= reserved => Charge {
            amount: cost,
            capped: false,
        },
        Some(_) | None => Charge {
            amount: reserved,
            capped: true,
        },
    }
}

/// Returns why an event may not follow the state of its subject; `None` if it may. `before` is
/// `None` for the first event of the subject.
pub(crate) fn objection(before: Option<&SandboxState>, event: &Event) -> Option<&'static str> {
    match (event, before) {
        (Event::Grant { .. }, None) => None,
        (Event::Grant { .. }, Some(_)) => Some("the reference of the grant was used before"),
        (Event::Reserve { amount, quote, .. }, None | Some(SandboxState::Released)) => {
            (*amount != quote.amount() || !quote.is_consistent())
                .then_some("the reserved amount is not the quoted one")
        }
        (Event::Reserve { .. }, Some(_)) => Some("the sandbox has a reservation"),
        (
            Event::Extend {
                amount,
                started,
                quote,
                ..
            },
            Some(SandboxState::Open {
                reserved,
                started: first,
                ..
            }),
        ) => {
            let whole = reserved.checked_add(*amount);
            (whole != Some(quote.amount()) || !quote.is_consistent() || started != first)
                .then_some("the extended reservation is not the quoted one")
        }
        (Event::Release { amount, .. }, Some(SandboxState::Open { reserved, .. })) => {
            (amount != reserved).then_some("the released amount is not the reserved one")
        }
        (
            Event::Settle {
                amount,
                reserved,
                capped,
                usage,
                quote,
                ..
            },
            Some(SandboxState::Open {
                reserved: whole,
                quote: quoted,
                ..
            }),
        ) => {
            let charge = charge(quoted, usage);
            (quote != quoted
                || reserved != whole
                || *amount != charge.amount
                || *capped != charge.capped)
                .then_some("the charge does not follow from the reservation and the use")
        }
        (Event::Extend { .. } | Event::Release { .. } | Event::Settle { .. }, _) => {
            Some("the sandbox has no open reservation")
        }
    }
}
