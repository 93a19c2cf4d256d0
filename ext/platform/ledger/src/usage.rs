//! What a sandbox used, `wp-codebox/meter-usage/v1`.

use serde::{Deserialize, Serialize};
use wp_codebox_contracts::schema_id;

/// Actual use of one sandbox. A measure is `None` when nothing measured it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Schema id, `wp-codebox/meter-usage/v1`.
    pub schema: UsageSchema,
    /// Seconds from creation to end, each begun second counted.
    pub seconds_alive: u64,
    /// Processor time in milliseconds.
    pub cpu_ms: Option<u64>,
    /// Memory over time in byte seconds: the sum of sampled sizes, each times the seconds to the
    /// next sample. Use between two samples is unknown.
    pub memory_byte_seconds: Option<u64>,
    /// Number of samples behind `memory_byte_seconds`.
    pub memory_samples: u64,
    /// Bytes by which the writable file system of the guest grew, summed from sample to sample.
    pub written_bytes: Option<u64>,
    /// Bytes that the egress bridge sent to hosts, TLS records included.
    pub egress_bytes: Option<u64>,
    /// Number of times that the sandbox was created.
    pub creations: u64,
    /// True if nothing measured the time, for example because the supervisor died. Other measures
    /// are then the last ones that it stored.
    pub estimated: bool,
}

/// Value of [`Usage::schema`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UsageSchema {
    /// Version 1.
    #[default]
    #[serde(rename = "wp-codebox/meter-usage/v1")]
    V1,
}

impl UsageSchema {
    /// Returns the schema id.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::V1 => schema_id::METER_USAGE,
        }
    }
}

impl Usage {
    /// Returns a measured use with a lifetime and one creation, and no other measure.
    #[must_use]
    pub fn alive(milliseconds: u64) -> Self {
        Self {
            schema: UsageSchema::V1,
            seconds_alive: milliseconds.div_ceil(1000),
            cpu_ms: None,
            memory_byte_seconds: None,
            memory_samples: 0,
            written_bytes: None,
            egress_bytes: None,
            creations: 1,
            estimated: false,
        }
    }

    /// Returns an estimated use: the wall clock between creation and end.
    #[must_use]
    pub fn wall_clock(milliseconds: u64) -> Self {
        Self {
            estimated: true,
            ..Self::alive(milliseconds)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_begun_second_counts_and_unmeasured_values_are_null() {
        assert_eq!(Usage::alive(0).seconds_alive, 0);
        assert_eq!(Usage::alive(1).seconds_alive, 1);
        assert_eq!(Usage::alive(2000).seconds_alive, 2);
        let usage = serde_json::to_value(Usage::wall_clock(2001)).unwrap();
        assert_eq!(usage["schema"], schema_id::METER_USAGE);
        assert_eq!(UsageSchema::V1.id(), schema_id::METER_USAGE);
        assert_eq!(usage["seconds_alive"], 3);
        assert_eq!(usage["estimated"], true);
        assert!(usage["cpu_ms"].is_null());
    }
}
