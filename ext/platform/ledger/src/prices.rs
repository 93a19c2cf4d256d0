//! Price tables, `wp-codebox/meter-prices/v1`, and quotes, `wp-codebox/meter-quote/v1`.

use crate::amount::Amount;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wp_codebox_contracts::CodedError;

/// Bytes of a gibibyte.
const GIB: u64 = 1 << 30;
/// Largest price table in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// Why a price table is refused or gives no quote.
#[derive(Debug, thiserror::Error, CodedError)]
pub enum PricesError {
    /// The text is not a price table.
    #[error(
        "the price table is not a valid wp-codebox/meter-prices/v1 document: {why}; correct it"
    )]
    #[code(PricesInvalid)]
    Invalid {
        /// What is wrong, with line and column.
        why: String,
    },
    /// The text is larger than a price table can be.
    #[error("the price table has {bytes} bytes; at most 1048576 are read")]
    #[code(PricesInvalid)]
    TooLarge {
        /// Size of the text.
        bytes: usize,
    },
    /// The table has no row for the extension.
    #[error("the price table has no price for the extension {extension:?}; add a row for it")]
    #[code(PriceMissing)]
    Missing {
        /// Extension that was asked for.
        extension: String,
    },
    /// The amount is larger than any balance can be.
    #[error(
        "the price of {seconds} seconds of {extension} is larger than 9007199254740991; choose a shorter duration or a larger unit"
    )]
    #[code(InputInvalid)]
    Overflow {
        /// Extension that was asked for.
        extension: String,
        /// Duration in seconds.
        seconds: u64,
    },
}

/// Owner of the key with which an extension pays its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyOwner {
    /// The account brings its own key: the provider bills the account's owner, and this price is
    /// what the operator takes in addition.
    Own,
    /// The operator's key: this price contains what the provider bills the operator.
    Platform,
}

/// Whether a sandbox has a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Gpu {
    /// It has none.
    Absent,
    /// It has one.
    Attached,
}

impl From<bool> for Gpu {
    fn from(attached: bool) -> Self {
        if attached {
            Self::Attached
        } else {
            Self::Absent
        }
    }
}

impl From<Gpu> for bool {
    fn from(gpu: Gpu) -> Self {
        gpu == Gpu::Attached
    }
}

/// Price of one extension, in the smallest unit of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Price of one second of a sandbox.
    pub per_second: Amount,
    /// Price of one creation.
    pub per_creation: Amount,
    /// Additional price of one second with a GPU.
    pub gpu_per_second: Amount,
    /// Price of one second of processor time.
    #[serde(default, skip_serializing_if = "Amount::is_zero")]
    pub cpu_per_second: Amount,
    /// Price of one GiB of memory for one second.
    #[serde(default, skip_serializing_if = "Amount::is_zero")]
    pub memory_per_gib_second: Amount,
    /// Price of one GiB that the guest wrote.
    #[serde(default, skip_serializing_if = "Amount::is_zero")]
    pub written_per_gib: Amount,
    /// Price of one GiB that the guest sent to the network.
    #[serde(default, skip_serializing_if = "Amount::is_zero")]
    pub egress_per_gib: Amount,
    /// Credits that each sandbox reserves for the four prices above, whose amount is known only
    /// after its end. A sandbox is never charged more than time, creation and this allowance.
    #[serde(default, skip_serializing_if = "Amount::is_zero")]
    pub usage_allowance: Amount,
    /// Owner of the key with which the extension pays its provider.
    pub key: KeyOwner,
}

impl Price {
    /// Returns the price of a use; `None` if it is larger than [`Amount::MAX`].
    fn of(&self, seconds: u64, creations: u64, gpu: Gpu) -> Option<Amount> {
        let time = self.per_second.checked_times(seconds)?;
        let made = self.per_creation.checked_times(creations)?;
        let extra = match gpu {
            Gpu::Absent => Amount::ZERO,
            Gpu::Attached => self.gpu_per_second.checked_times(seconds)?,
        };
        time.checked_add(made)?.checked_add(extra)
    }

    /// Returns the price of all measured values except the time; `None` if it is too large. A value
    /// that was not measured costs nothing.
    fn of_measures(&self, usage: &Usage) -> Option<Amount> {
        let measures = [
            (self.cpu_per_second, usage.cpu_ms, 1000),
            (self.memory_per_gib_second, usage.memory_byte_seconds, GIB),
            (self.written_per_gib, usage.written_bytes, GIB),
            (self.egress_per_gib, usage.egress_bytes, GIB),
        ];
        let mut sum = Amount::ZERO;
        for (price, measured, unit) in measures {
            sum = sum.checked_add(price.checked_per(measured.unwrap_or_default(), unit)?)?;
        }
        Some(sum)
    }
}

/// Price table, `wp-codebox/meter-prices/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    schema: PricesSchema,
    unit: Unit,
    extensions: BTreeMap<String, Price>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum PricesSchema {
    #[serde(rename = "wp-codebox/meter-prices/v1")]
    V1,
}

/// Name of the smallest unit, such as `EUR/1000000`: 1 to 32 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Unit(String);

impl TryFrom<String> for Unit {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        match (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
            true => Ok(Self(text)),
            false => Err("unit must be 1 to 32 visible ASCII characters"),
        }
    }
}

impl From<Unit> for String {
    fn from(unit: Unit) -> Self {
        unit.0
    }
}

impl Prices {
    /// Reads a price table. Unknown members are errors.
    ///
    /// # Errors
    /// `wp_codebox_prices_invalid` if the text is not a price table.
    pub fn parse(json: &[u8]) -> Result<Self, PricesError> {
        if json.len() > MAX_BYTES {
            return Err(PricesError::TooLarge { bytes: json.len() });
        }
        let invalid = |why: String| PricesError::Invalid { why };
        let prices: Self = serde_json::from_slice(json).map_err(|e| invalid(e.to_string()))?;
        let is_named = |name: &String| {
            (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic())
        };
        match prices.extensions.keys().all(is_named) {
            true => Ok(prices),
            false => Err(invalid(
                "the name of an extension must be 1 to 128 visible ASCII characters".to_owned(),
            )),
        }
    }

    /// Returns the name of the smallest unit of all amounts.
    #[must_use]
    pub fn unit(&self) -> &str {
        &self.unit.0
    }

    /// Returns the rows by extension.
    #[must_use]
    pub fn extensions(&self) -> &BTreeMap<String, Price> {
        &self.extensions
    }

    /// Returns the price of one sandbox for a duration in milliseconds, each begun second counted.
    ///
    /// # Errors
    /// `wp_codebox_price_missing` if the table has no row for the extension;
    /// `wp_codebox_input_invalid` if the amount is too large.
    pub fn quote(&self, extension: &str, duration_ms: u64, gpu: Gpu) -> Result<Quote, PricesError> {
        let Some(price) = self.extensions.get(extension) else {
            let extension = extension.to_owned();
            return Err(PricesError::Missing { extension });
        };
        Quote {
            schema: QuoteSchema::V1,
            extension: extension.to_owned(),
            unit: self.unit.0.clone(),
            price: *price,
            gpu,
            duration_ms: 0,
            amount: Amount::ZERO,
        }
        .for_duration(duration_ms)
    }
}

/// Price of one sandbox for a duration, `wp-codebox/meter-quote/v1`. A reservation stores it, so
/// that later changes of the price table do not change the settlement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quote {
    schema: QuoteSchema,
    extension: String,
    unit: String,
    price: Price,
    gpu: Gpu,
    duration_ms: u64,
    amount: Amount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum QuoteSchema {
    #[serde(rename = "wp-codebox/meter-quote/v1")]
    V1,
}

impl Quote {
    /// Returns the quote for another duration at the same price.
    ///
    /// # Errors
    /// `wp_codebox_input_invalid` if the amount is too large.
    pub fn for_duration(&self, duration_ms: u64) -> Result<Self, PricesError> {
        let seconds = duration_ms.div_ceil(1000);
        let time = self.price.of(seconds, 1, self.gpu);
        match time.and_then(|time| time.checked_add(self.price.usage_allowance)) {
            Some(amount) => Ok(Self {
                duration_ms,
                amount,
                ..self.clone()
            }),
            None => Err(PricesError::Overflow {
                extension: self.extension.clone(),
                seconds,
            }),
        }
    }

    /// Returns the price of the actual use at the quoted price; `None` if it is larger than
    /// [`Amount::MAX`].
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<Amount> {
        let time = self
            .price
            .of(usage.seconds_alive, usage.creations, self.gpu)?;
        time.checked_add(self.price.of_measures(usage)?)
    }

    /// Returns whether the amount is what price and duration give.
    pub(crate) fn is_consistent(&self) -> bool {
        self.for_duration(self.duration_ms)
            .is_ok_and(|quote| quote.amount == self.amount)
    }

    /// Returns the amount to reserve.
    #[must_use]
    pub fn amount(&self) -> Amount {
        self.amount
    }

    /// Returns the duration in milliseconds.
    #[must_use]
    pub fn duration_ms(&self) -> u64 {
        self.duration_ms
    }

    /// Returns the extension that has this price.
    #[must_use]
    pub fn extension(&self) -> &str {
        &self.extension
    }

    /// Returns the name of the smallest unit.
    #[must_use]
    pub fn unit(&self) -> &str {
        &self.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::ErrorCode;

    const TABLE: &str = r#"{"schema": "wp-codebox/meter-prices/v1", "unit": "EUR/1000000",
        "extensions": {
            "ext.native": {"per_second": 3, "per_creation": 100, "gpu_per_second": 50, "key": "platform"},
            "ext.dear": {"per_second": 9007199254740991, "per_creation": 0, "gpu_per_second": 0, "key": "own"}}}"#;

    #[test]
    fn quote_is_the_creation_price_plus_a_price_for_each_begun_second_which_is_higher_with_a_gpu() {
        let prices = Prices::parse(TABLE.as_bytes()).unwrap();
        let amount = |ms, gpu| prices.quote("ext.native", ms, gpu).unwrap().amount().get();
        assert_eq!(amount(0, Gpu::Absent), 100);
        assert_eq!(amount(1, Gpu::Absent), 103);
        assert_eq!(amount(2000, Gpu::Absent), 106);
        assert_eq!(amount(2001, Gpu::Attached), 100 + 3 * 53);
        let quote = prices.quote("ext.native", 2001, Gpu::Attached).unwrap();
        let text = serde_json::to_value(&quote).unwrap();
        assert_eq!(text["schema"], wp_codebox_contracts::schema_id::METER_QUOTE);
        assert_eq!(text["gpu"], true);
        assert_eq!(text["price"]["key"], "platform");
        assert_eq!(serde_json::from_value::<Quote>(text).unwrap(), quote);
        assert_eq!(quote.for_duration(1).unwrap().amount().get(), 153);
    }

    #[test]
    fn measured_use_is_charged_at_its_prices_and_the_usage_allowance_is_part_of_the_quote() {
        let priced = TABLE.replacen(
            "\"key\": \"platform\"",
            "\"cpu_per_second\": 7, \"memory_per_gib_second\": 2, \"written_per_gib\": 11, \"egress_per_gib\": 90, \"usage_allowance\": 500, \"key\": \"platform\"",
            1,
        );
        let prices = Prices::parse(priced.as_bytes()).unwrap();
        let quote = prices.quote("ext.native", 2000, Gpu::Absent).unwrap();
        assert_eq!(quote.amount().get(), 100 + 2 * 3 + 500);
        let usage = Usage {
            cpu_ms: Some(1500),
            memory_byte_seconds: Some(3 * GIB),
            written_bytes: Some(GIB / 2),
            egress_bytes: Some(1),
            ..Usage::alive(1000)
        };
        // Each price is rounded up to a whole credit: 10.5, 6, 5.5 and a little above 0.
        let cost = quote.cost(&usage).unwrap().get();
        assert_eq!(cost, 100 + 3 + 11 + 6 + 6 + 1);
        let timed = Usage::alive(1000);
        assert_eq!(quote.cost(&timed).unwrap().get(), 103);
        // A quote does not contain prices that its table lacks, so quotes stored before these
        // prices existed keep their text and hash.
        let before = Prices::parse(TABLE.as_bytes()).unwrap();
        let quote = before.quote("ext.native", 2000, Gpu::Absent).unwrap();
        let text = serde_json::to_string(&quote).unwrap();
        assert!(
            !text.contains("allowance") && !text.contains("gib"),
            "{text}"
        );
    }

    #[test]
    fn extension_without_a_price_and_amount_beyond_the_limit_give_no_quote() {
        let prices = Prices::parse(TABLE.as_bytes()).unwrap();
        let code = |name, ms| prices.quote(name, ms, Gpu::Absent).unwrap_err().body().code;
        assert_eq!(code("ext.other", 1), ErrorCode::PriceMissing);
        assert_eq!(code("ext.dear", 1001), ErrorCode::InputInvalid);
        assert_eq!(code("ext.native", u64::MAX), ErrorCode::InputInvalid);
        assert!(prices.quote("ext.dear", 1000, Gpu::Absent).is_ok());
    }

    #[test]
    fn price_table_with_unknown_missing_negative_or_fractional_values_is_refused() {
        assert!(Prices::parse(TABLE.as_bytes()).is_ok());
        for (from, to) in [
            ("\"unit\"", "\"currency\""),
            ("EUR/1000000", ""),
            ("EUR/1000000", "a b"),
            ("\"per_second\": 3", "\"per_second\": -3"),
            ("\"per_second\": 3", "\"per_second\": 0.5"),
            ("\"per_second\": 3", "\"per_second\": 9007199254740992"),
            ("\"per_second\": 3", "\"per_hour\": 3"),
            ("\"per_creation\": 100, ", ""),
            ("platform", "theirs"),
            ("ext.native", "ext native"),
            ("meter-prices/v1", "meter-prices/v2"),
        ] {
            let text = TABLE.replacen(from, to, 1);
            assert_ne!(text, TABLE);
            let error = Prices::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.body().code, ErrorCode::PricesInvalid, "{to}: {error}");
        }
        let large = vec![b' '; MAX_BYTES + 1];
        assert_eq!(
            Prices::parse(&large).unwrap_err().body().code,
            ErrorCode::PricesInvalid
        );
    }

    #[test]
    fn quote_with_an_amount_that_its_price_does_not_give_is_inconsistent() {
        let prices = Prices::parse(TABLE.as_bytes()).unwrap();
        let quote = prices.quote("ext.native", 1000, Gpu::Absent).unwrap();
        assert!(quote.is_consistent());
        let mut text = serde_json::to_value(&quote).unwrap();
        text["amount"] = 1.into();
        assert!(
            !serde_json::from_value::<Quote>(text)
                .unwrap()
                .is_consistent()
        );
    }
}
