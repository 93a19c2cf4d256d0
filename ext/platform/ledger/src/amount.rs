//! Amounts of credits, the balance of an account, and time.

use serde::{Deserialize, Serialize};
use std::time::{Duration, UNIX_EPOCH};
use wp_codebox_contracts::CodedError;

/// Error for a number that is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, CodedError)]
#[error("{given} is not an amount of credits; it must be from 0 to 9007199254740991")]
#[code(InputInvalid)]
pub struct AmountError {
    given: u64,
}

/// Amount of credits in the smallest unit of the price table, from 0 to 2^53 - 1, so that every
/// reader of JSON gets it exactly. All arithmetic is checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Amount(u64);

impl Amount {
    /// No credits.
    pub const ZERO: Self = Self(0);
    /// Largest amount.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// Creates an amount.
    ///
    /// # Errors
    /// The number is larger than [`Self::MAX`].
    pub const fn new(given: u64) -> Result<Self, AmountError> {
        match given <= Self::MAX.0 {
            true => Ok(Self(given)),
            false => Err(AmountError { given }),
        }
    }

    /// Returns the amount as a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the sum; `None` if it is too large.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Self::new(self.0.checked_add(other.0)?).ok()
    }

    /// Returns the difference; `None` if it is negative.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Returns true if the amount is 0.
    #[must_use]
    pub(crate) fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Returns the price of `quantity` if `unit` costs this amount, rounded up to a whole credit;
    /// `None` if it is too large.
    pub(crate) fn checked_per(self, quantity: u64, unit: u64) -> Option<Self> {
        let whole = u128::from(self.0) * u128::from(quantity);
        let amount = whole.div_ceil(u128::from(unit.max(1)));
        Self::new(u64::try_from(amount).ok()?).ok()
    }

    /// Returns the product; `None` if it is too large.
    #[must_use]
    pub fn checked_times(self, count: u64) -> Option<Self> {
        Self::new(self.0.checked_mul(count)?).ok()
    }
}

impl TryFrom<u64> for Amount {
    type Error = AmountError;
    fn try_from(given: u64) -> Result<Self, AmountError> {
        Self::new(given)
    }
}

impl From<Amount> for u64 {
    fn from(amount: Amount) -> Self {
        amount.0
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Balance of an account: `available = granted - settled - reserved`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balance {
    /// All credits that the account ever got.
    pub granted: Amount,
    /// Credits set aside for sandboxes that are not settled or released yet.
    pub reserved: Amount,
    /// Credits that sandboxes used.
    pub settled: Amount,
    /// Credits that the account can reserve.
    pub available: Amount,
}

impl Balance {
    /// Computes a balance; `None` if the available credits would be negative.
    #[must_use]
    pub fn of(granted: Amount, reserved: Amount, settled: Amount) -> Option<Self> {
        let available = granted.checked_sub(settled)?.checked_sub(reserved)?;
        Some(Self {
            granted,
            reserved,
            settled,
            available,
        })
    }
}

/// Time in milliseconds since 1970 in UTC, at most the end of the year 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// 9999-12-31T23:59:59.999Z, the last time that RFC 3339 can write.
    const MAX: u64 = 253_402_300_799_999;

    /// Returns the time in RFC 3339, such as `2026-01-31T12:00:00.000Z`; `None` after the year 9999.
    #[must_use]
    pub fn rfc3339(self) -> Option<String> {
        let time = UNIX_EPOCH.checked_add(Duration::from_millis(self.0))?;
        (self.0 <= Self::MAX).then(|| humantime::format_rfc3339_millis(time).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_arithmetic_beyond_the_exact_integers_of_json_is_refused() {
        let (one, max) = (Amount::new(1).unwrap(), Amount::MAX);
        assert_eq!(max.get(), 9_007_199_254_740_991);
        assert_eq!(one.checked_add(one), Amount::new(2).ok());
        assert_eq!(max.checked_add(one), None);
        assert_eq!(Amount::ZERO.checked_sub(one), None);
        assert_eq!(one.checked_times(7), Amount::new(7).ok());
        assert_eq!(max.checked_times(2), None);
        assert_eq!(max.checked_times(u64::MAX), None);
        assert!(Amount::new(max.get() + 1).is_err());
        assert!(serde_json::from_str::<Amount>("9007199254740991").is_ok());
        for refused in ["9007199254740992", "-1", "1.5", "\"1\"", "1e3"] {
            assert!(
                serde_json::from_str::<Amount>(refused).is_err(),
                "{refused}"
            );
        }
    }

    #[test]
    fn balance_is_none_if_available_credits_would_be_negative() {
        let amount = |n| Amount::new(n).unwrap();
        let balance = Balance::of(amount(10), amount(3), amount(4)).unwrap();
        assert_eq!(balance.available, amount(3));
        assert_eq!(Balance::of(amount(10), amount(7), amount(4)), None);
    }

    #[test]
    fn times_are_written_in_rfc3339_up_to_the_year_9999() {
        let text = |n| UnixMillis(n).rfc3339();
        assert_eq!(text(0).unwrap(), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(UnixMillis::MAX).unwrap(), "9999-12-31T23:59:59.999Z");
        assert_eq!(text(UnixMillis::MAX + 1), None);
        assert_eq!(text(u64::MAX), None);
    }
}
