//! Hosts of a service: `wp-codebox/host-record/v1`.

use crate::capabilities::{Capabilities, PriceModel};
use crate::record::{Record, RecordError, RecordIssue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use wp_codebox_contracts::{
    ArchitectureName, ExtensionId, HostId, IsolationClass, NetworkControl, RegionName, schema_id,
    string_enum,
};

/// Maximum number of labels of one host.
const MOST_LABELS: usize = 64;
/// Maximum length of the name or value of a label, in bytes.
const LABEL: usize = 128;

string_enum! {
    /// Whether a host accepts sandboxes.
    pub enum HostState {
        /// It accepts sandboxes.
        Ready = "ready",
        /// It keeps the sandboxes that it has and gets no more.
        Draining = "draining",
        /// It did not answer its last health check.
        Down = "down",
    }
}

/// A place where an extension can start sandboxes: a machine, or an account at a provider.
///
/// An absent limit means that of the extension. An absent region or architecture means that the
/// sandbox may run in any region or on any architecture of the extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRecord {
    /// Schema id, always `wp-codebox/host-record/v1`.
    #[serde(default = "schema")]
    pub schema: String,
    /// Id of the host.
    pub id: HostId,
    /// Extension that starts the sandboxes.
    pub extension: ExtensionId,
    /// Names and values for operators. They have no effect on routes.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<RegionName>,
    /// Architecture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<ArchitectureName>,
    /// Isolation, if it is weaker than that of the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationClass>,
    /// Network control, if it differs from that of the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkControl>,
    /// Maximum number of GPUs of one sandbox, if it is below that of the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Maximum number of sandboxes at one time.
    pub capacity: u32,
    /// Number of sandboxes that the host has.
    #[serde(default)]
    pub used: u32,
    /// Whether the host accepts sandboxes.
    #[serde(default = "ready")]
    pub state: HostState,
    /// Latency as measured by the service, in milliseconds; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u32>,
    /// Price of one hour of a sandbox, in the smallest unit of the service's price table. If it is
    /// absent, a self-hosted sandbox costs nothing, and the price of a metered one is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<u64>,
}

fn schema() -> String {
    schema_id::HOST_RECORD.to_owned()
}

const fn ready() -> HostState {
    HostState::Ready
}

impl HostRecord {
    /// Returns a ready host without sandboxes, labels and limits of its own.
    #[must_use]
    pub fn new(id: HostId, extension: ExtensionId, capacity: u32) -> Self {
        Self {
            schema: schema(),
            id,
            extension,
            labels: BTreeMap::new(),
            region: None,
            architecture: None,
            isolation: None,
            network: None,
            gpus: None,
            capacity,
            used: 0,
            state: HostState::Ready,
            latency_ms: None,
            price_per_hour: None,
        }
    }

    /// Reads a host record and checks its rules.
    pub fn parse(value: &Value) -> Result<Self, RecordError> {
        Self::read(value)
    }

    /// Checks the rules of a host record that was not read from JSON.
    pub fn validate(&self) -> Result<(), RecordError> {
        self.check()
    }

    /// Returns the share of the capacity that is in use.
    #[must_use]
    pub const fn load(&self) -> HostLoad {
        HostLoad {
            used: self.used,
            capacity: self.capacity,
        }
    }

    /// Returns whether the host accepts one more sandbox.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == HostState::Ready && self.used < self.capacity
    }

    /// Returns the weaker of the host's and the extension's isolation.
    pub(crate) fn isolation(&self, of: &Capabilities) -> IsolationClass {
        self.isolation.unwrap_or(of.isolation).min(of.isolation)
    }

    /// Returns the price of one hour; `None` if it is unknown.
    pub(crate) fn price(&self, of: &Capabilities) -> Option<u64> {
        self.price_per_hour.or(match of.price_model {
            PriceModel::SelfHosted => Some(0),
            PriceModel::Metered => None,
        })
    }

    /// Returns whether every sandbox of the host runs within a region.
    pub(crate) fn is_within(&self, region: &RegionName, of: &Capabilities) -> bool {
        match &self.region {
            Some(own) => own.is_within(region),
            None => !of.regions.is_empty() && of.regions.iter().all(|own| own.is_within(region)),
        }
    }

    /// Returns whether every sandbox that this host starts has the given CPU architecture. `of` says which
    /// architectures its sandboxes can have.
    pub(crate) fn has(&self, architecture: &ArchitectureName, of: &Capabilities) -> bool {
        match &self.architecture {
            Some(own) => own == architecture && of.architectures.contains(own),
            None => of.architectures.iter().all(|own| own == architecture),
        }
    }

    /// Returns the smaller of the host's and the extension's number of GPUs.
    pub(crate) fn gpus(&self, of: &Capabilities) -> u32 {
        self.gpus.unwrap_or(of.gpus).min(of.gpus)
    }
}

impl Record for HostRecord {
    const KIND: &'static str = "host record";

    fn issues(&self) -> Vec<RecordIssue> {
        let mut issues = Vec::new();
        let mut issue = |field, message: &str| issues.push(RecordIssue::new(field, message));
        if self.schema != schema_id::HOST_RECORD {
            issue("schema", "must be wp-codebox/host-record/v1 or absent");
        }
        if self.capacity == 0 {
            issue(
                "capacity",
                "must be at least 1; drain a host that shall get no sandboxes",
            );
        }
        if self.labels.len() > MOST_LABELS {
            issue("labels", "a host has at most 64 labels");
        }
        let fits = |text: &String| text.len() <= LABEL && !text.chars().any(char::is_control);
        if !self
            .labels
            .iter()
            .all(|(name, value)| !name.is_empty() && fits(name) && fits(value))
        {
            issue(
                "labels",
                "names and values have at most 128 bytes and no control characters, and no name is empty",
            );
        }
        let native = self.extension == ExtensionId::native();
        if native && self.isolation == Some(IsolationClass::Microvm) {
            issue(
                "isolation",
                "native sandboxes share the kernel of their host and are no microvms; use container or policy",
            );
        }
        issues
    }
}

/// Share of a host's capacity that is in use. Equal shares are equal, whatever the capacity is.
#[derive(Debug, Clone, Copy)]
pub struct HostLoad {
    used: u32,
    capacity: u32,
}

impl Ord for HostLoad {
    fn cmp(&self, other: &Self) -> Ordering {
        // Fractions are compared by their cross products, which fit: both factors have 32 bits.
        // A capacity of 0 counts as fully used.
        let product = |a: &Self, b: &Self| match a.capacity {
            0 => u64::from(b.capacity.max(1)),
            _ => u64::from(a.used) * u64::from(b.capacity.max(1)),
        };
        product(self, other).cmp(&product(other, self))
    }
}

impl PartialOrd for HostLoad {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HostLoad {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for HostLoad {}
