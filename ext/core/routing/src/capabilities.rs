//! What an extension can do: `wp-codebox/extension-capabilities/v1`.

use crate::record::{Record, RecordError, RecordIssue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use wp_codebox_contracts::{
    ArchitectureName, BundleTrust, ExtensionId, IsolationClass, NetworkControl, Persistence,
    RegionName, schema_id, string_enum,
};

/// Maximum number of architectures or regions of one extension.
const MOST: usize = 64;

string_enum! {
    /// What the time of a sandbox costs.
    #[derive(PartialOrd, Ord)]
    pub enum PriceModel {
        /// The operator's own machines: no price unless a host record states one.
        SelfHosted = "self-hosted",
        /// A provider meters the sandbox. Without a price in the host record, the price is unknown.
        Metered = "metered",
    }
}

/// What an extension can do at most. A host of the extension may do less ([`crate::HostRecord`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Schema id, always `wp-codebox/extension-capabilities/v1`.
    #[serde(default = "schema")]
    pub schema: String,
    /// Id of the extension in the registry of the service.
    pub extension: ExtensionId,
    /// Isolation of its sandboxes.
    pub isolation: IsolationClass,
    /// What can outlive a sandbox.
    pub persistence: Persistence,
    /// How it restricts the network of a sandbox.
    pub network: NetworkControl,
    /// Architectures of its sandboxes.
    pub architectures: Vec<ArchitectureName>,
    /// Maximum number of GPUs of one sandbox.
    #[serde(default)]
    pub gpus: u32,
    /// Regions in which its sandboxes run; empty if only the host records state them.
    #[serde(default)]
    pub regions: Vec<RegionName>,
    /// What the time of a sandbox costs.
    pub price_model: PriceModel,
    /// Signature of the bundle with a sandbox's changes.
    pub bundle: BundleTrust,
    /// Whether it can take snapshots.
    pub snapshot: bool,
    /// Whether a sandbox can start from a snapshot or return to one.
    pub restore: bool,
}

fn schema() -> String {
    schema_id::EXTENSION_CAPABILITIES.to_owned()
}

impl Capabilities {
    /// Reads capabilities and checks their rules.
    pub fn parse(value: &Value) -> Result<Self, RecordError> {
        Self::read(value)
    }

    /// Checks the rules of capabilities that were not read from JSON.
    pub fn validate(&self) -> Result<(), RecordError> {
        self.check()
    }

    /// Returns the capabilities of sandboxes that this product starts itself, on a machine with
    /// this architecture. The isolation is that of level `full`; a host record of a machine that
    /// has only level `reduced` says so.
    #[must_use]
    pub fn native(architecture: ArchitectureName) -> Self {
        Self {
            schema: schema(),
            extension: ExtensionId::native(),
            // A native sandbox shares the kernel of its host, so it is never a microvm.
            isolation: IsolationClass::Container,
            persistence: Persistence::HostLocal,
            network: NetworkControl::Requests,
            architectures: vec![architecture],
            gpus: 0,
            regions: Vec::new(),
            price_model: PriceModel::SelfHosted,
            bundle: BundleTrust::HostSigned,
            snapshot: true,
            restore: true,
        }
    }
}

impl Record for Capabilities {
    const KIND: &'static str = "capabilities of an extension";

    fn issues(&self) -> Vec<RecordIssue> {
        let mut issues = Vec::new();
        let mut issue = |field, message: &str| issues.push(RecordIssue::new(field, message));
        if self.schema != schema_id::EXTENSION_CAPABILITIES {
            issue(
                "schema",
                "must be wp-codebox/extension-capabilities/v1 or absent",
            );
        }
        if self.architectures.is_empty() {
            issue("architectures", "list at least one architecture");
        }
        if self.architectures.len() > MOST || self.regions.len() > MOST {
            issue("regions", "list at most 64 architectures and 64 regions");
        }
        if has_duplicates(&self.architectures) {
            issue("architectures", "list each architecture once");
        }
        if has_duplicates(&self.regions) {
            issue("regions", "list each region once");
        }
        if self.snapshot && self.persistence == Persistence::Ephemeral {
            issue(
                "persistence",
                "must be host-local or portable when snapshot is true, because a snapshot outlives its sandbox",
            );
        }
        if self.restore && !self.snapshot {
            issue("restore", "must be false when snapshot is false");
        }
        let native = self.extension == ExtensionId::native();
        if native && self.isolation == IsolationClass::Microvm {
            issue(
                "isolation",
                "native sandboxes share the kernel of their host and are no microvms; use container or policy",
            );
        }
        issues
    }
}

fn has_duplicates<T: Ord>(items: &[T]) -> bool {
    items.iter().collect::<BTreeSet<_>>().len() < items.len()
}
