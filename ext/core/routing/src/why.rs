//! Reasons of a decision: a closed list of codes, each with a sentence.

use crate::host::HostRecord;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::fmt;
use wp_codebox_contracts::{
    ArchitectureName, BundleTrust, ExtensionId, HostId, IsolationClass, NetworkControl,
    NetworkNeed, Persistence, RegionName, RouteStrategy, string_enum,
};

string_enum! {
    /// Code of a reason.
    #[derive(PartialOrd, Ord)]
    #[allow(missing_docs)]
    pub enum ReasonCode {
        Chosen = "chosen",
        NoHosts = "no-hosts",
        NoneAccepted = "none-accepted",
        RankedAfter = "ranked-after",
        AmbiguousRecord = "ambiguous-record",
        ExtensionUnknown = "extension-unknown",
        ExtensionNotPinned = "extension-not-pinned",
        ExtensionNotListed = "extension-not-listed",
        HostNotPlaced = "host-not-placed",
        HostNotRequired = "host-not-required",
        HostDown = "host-down",
        HostDraining = "host-draining",
        HostFull = "host-full",
        IsolationTooWeak = "isolation-too-weak",
        RegionOutside = "region-outside",
        CostAboveLimit = "cost-above-limit",
        CostUnknown = "cost-unknown",
        NetworkUnsupported = "network-unsupported",
        ArchitectureUnsupported = "architecture-unsupported",
        GpusUnsupported = "gpus-unsupported",
        PersistenceTooWeak = "persistence-too-weak",
        SnapshotUnsupported = "snapshot-unsupported",
        RestoreUnsupported = "restore-unsupported",
        BundleTooWeak = "bundle-too-weak",
    }

    /// What decides between two accepted hosts, most important first.
    pub enum Criterion {
        /// Order of the profile's placement.
        Placement = "placement",
        /// Order of the profile's list of extensions.
        Extension = "extension",
        /// Self-hosted or metered.
        PriceModel = "price-model",
        /// Price of one hour.
        Cost = "cost",
        /// Latency.
        Latency = "latency",
        /// Share of the capacity that is in use.
        Load = "load",
        /// Order of the ids.
        Id = "id",
    }
}

/// Why a host was chosen or refused, with the facts that the sentence states.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Why {
    /// The host was chosen.
    Chosen {
        strategy: RouteStrategy,
        accepted: usize,
        hosts: usize,
    },
    /// There is no host.
    NoHosts,
    /// There are hosts, and all were refused.
    NoneAccepted { hosts: usize },
    /// The host meets everything, but another one comes first.
    RankedAfter { chosen: HostId, by: Criterion },
    /// Several records have the id of the host or of its extension.
    AmbiguousRecord,
    /// There are no capabilities of the host's extension.
    ExtensionUnknown,
    /// The profile names another extension.
    ExtensionNotPinned { pinned: ExtensionId },
    /// The strategy uses extensions of a list only, and this one is not in it.
    ExtensionNotListed { strategy: RouteStrategy },
    /// The placement lists all hosts that may be used, without this one.
    HostNotPlaced,
    /// Only another host may be used.
    HostNotRequired { required: HostId },
    /// The host did not answer its last health check.
    HostDown,
    /// The host gets no more sandboxes.
    HostDraining,
    /// The host has as many sandboxes as it can have.
    HostFull { used: u32, capacity: u32 },
    /// The isolation is below the required one.
    IsolationTooWeak {
        given: IsolationClass,
        required: IsolationClass,
    },
    /// The sandbox could run outside of the region.
    RegionOutside {
        given: Option<RegionName>,
        required: RegionName,
    },
    /// The price exceeds the limit.
    CostAboveLimit { price: u64, limit: u64 },
    /// There is a limit, and the price is unknown.
    CostUnknown { limit: u64 },
    /// The network cannot be restricted as the profile requires.
    NetworkUnsupported {
        given: NetworkControl,
        needed: NetworkNeed,
    },
    /// The architecture differs or is unknown.
    ArchitectureUnsupported { needed: ArchitectureName },
    /// There are too few GPUs.
    GpusUnsupported { given: u32, needed: u32 },
    /// State cannot outlive the sandbox as required.
    PersistenceTooWeak {
        given: Persistence,
        needed: Persistence,
    },
    /// Snapshots are required and not possible.
    SnapshotUnsupported,
    /// A start from a snapshot is required and not possible.
    RestoreUnsupported,
    /// The signature of bundles is weaker than required.
    BundleTooWeak {
        given: BundleTrust,
        needed: BundleTrust,
    },
}

impl Why {
    /// Returns the code of the reason.
    #[must_use]
    pub const fn code(&self) -> ReasonCode {
        match self {
            Self::Chosen { .. } => ReasonCode::Chosen,
            Self::NoHosts => ReasonCode::NoHosts,
            Self::NoneAccepted { .. } => ReasonCode::NoneAccepted,
            Self::RankedAfter { .. } => ReasonCode::RankedAfter,
            Self::AmbiguousRecord => ReasonCode::AmbiguousRecord,
            Self::ExtensionUnknown => ReasonCode::ExtensionUnknown,
            Self::ExtensionNotPinned { .. } => ReasonCode::ExtensionNotPinned,
            Self::ExtensionNotListed { .. } => ReasonCode::ExtensionNotListed,
            Self::HostNotPlaced => ReasonCode::HostNotPlaced,
            Self::HostNotRequired { .. } => ReasonCode::HostNotRequired,
            Self::HostDown => ReasonCode::HostDown,
            Self::HostDraining => ReasonCode::HostDraining,
            Self::HostFull { .. } => ReasonCode::HostFull,
            Self::IsolationTooWeak { .. } => ReasonCode::IsolationTooWeak,
            Self::RegionOutside { .. } => ReasonCode::RegionOutside,
            Self::CostAboveLimit { .. } => ReasonCode::CostAboveLimit,
            Self::CostUnknown { .. } => ReasonCode::CostUnknown,
            Self::NetworkUnsupported { .. } => ReasonCode::NetworkUnsupported,
            Self::ArchitectureUnsupported { .. } => ReasonCode::ArchitectureUnsupported,
            Self::GpusUnsupported { .. } => ReasonCode::GpusUnsupported,
            Self::PersistenceTooWeak { .. } => ReasonCode::PersistenceTooWeak,
            Self::SnapshotUnsupported => ReasonCode::SnapshotUnsupported,
            Self::RestoreUnsupported => ReasonCode::RestoreUnsupported,
            Self::BundleTooWeak { .. } => ReasonCode::BundleTooWeak,
        }
    }

    /// Returns whether the refusal can end without a change of profile, hosts or extensions.
    pub(crate) const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::HostDown | Self::HostDraining | Self::HostFull { .. }
        )
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chosen {
                strategy,
                accepted,
                hosts,
            } => write!(
                f,
                "it is the first of {accepted} accepted hosts in the order of strategy {}; {hosts} hosts were compared",
                strategy.as_str()
            ),
            Self::NoHosts => f.write_str("no host is registered; register one"),
            Self::NoneAccepted { hosts } => {
                write!(f, "none of {hosts} hosts meets what the profile requires")
            }
            Self::RankedAfter { chosen, by } => write!(
                f,
                "it meets everything, but host {chosen} comes first by {}",
                by.as_str()
            ),
            Self::AmbiguousRecord => f.write_str(
                "several records have the id of this host or of its extension; keep one of them",
            ),
            Self::ExtensionUnknown => {
                f.write_str("the capabilities of its extension are not registered")
            }
            Self::ExtensionNotPinned { pinned } => {
                write!(f, "the profile accepts only extension {pinned}")
            }
            Self::ExtensionNotListed { strategy } => write!(
                f,
                "its extension is not in route.fallback, and strategy {} uses no other {}",
                strategy.as_str(),
                match strategy {
                    RouteStrategy::PreferSelfHosted => "metered extension",
                    RouteStrategy::LowestCost
                    | RouteStrategy::LowestLatency
                    | RouteStrategy::Explicit => "extension",
                }
            ),
            Self::HostNotPlaced => f.write_str(
                "it is neither in placement.prefer nor in placement.fallback, which list all accepted hosts",
            ),
            Self::HostNotRequired { required } => {
                write!(f, "only host {required} may be used, for example because it stores the snapshot")
            }
            Self::HostDown => f.write_str("it did not answer its last health check"),
            Self::HostDraining => f.write_str("it is being drained and gets no more sandboxes"),
            Self::HostFull { used, capacity } => {
                write!(f, "it has {used} sandboxes and can have {capacity}")
            }
            Self::IsolationTooWeak { given, required } => write!(
                f,
                "its isolation is {}, and the profile requires {}",
                given.as_str(),
                required.as_str()
            ),
            Self::RegionOutside { given, required } => match given {
                Some(given) => write!(
                    f,
                    "it is in region {given}, and the profile requires {required}"
                ),
                None => write!(
                    f,
                    "its region is unknown, and the profile requires {required}"
                ),
            },
            Self::CostAboveLimit { price, limit } => write!(
                f,
                "an hour costs {price}, and the profile's max_cost_per_hour is {limit}"
            ),
            Self::CostUnknown { limit } => write!(
                f,
                "its price is unknown, and the profile's max_cost_per_hour is {limit}"
            ),
            Self::NetworkUnsupported { given, needed } => write!(
                f,
                "its network control is {}, and the profile needs {}",
                given.as_str(),
                match needed {
                    NetworkNeed::None => "a sandbox without network",
                    NetworkNeed::Hosts => "rules for hosts, with everything else denied",
                    NetworkNeed::Requests =>
                        "rules for methods and paths, with everything else denied",
                }
            ),
            Self::ArchitectureUnsupported { needed } => {
                write!(f, "it is not registered with {needed} as its only architecture")
            }
            Self::GpusUnsupported { given, needed } => {
                write!(f, "it offers {given} GPUs to a sandbox, and {needed} are needed")
            }
            Self::PersistenceTooWeak { given, needed } => write!(
                f,
                "its persistence is {}, and {} is needed",
                given.as_str(),
                needed.as_str()
            ),
            Self::SnapshotUnsupported => f.write_str("its extension takes no snapshots"),
            Self::RestoreUnsupported => {
                f.write_str("its extension cannot start a sandbox from a snapshot")
            }
            Self::BundleTooWeak { given, needed } => write!(
                f,
                "the signature of its bundles is {}, and {} is needed",
                given.as_str(),
                needed.as_str()
            ),
        }
    }
}

/// A reason of a decision. As JSON: `{code, host?, extension?, sentence}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Host that the reason is about; `None` if it is about all hosts.
    pub host: Option<HostId>,
    /// Extension of the host.
    pub extension: Option<ExtensionId>,
    /// The reason.
    pub why: Why,
}

impl Reason {
    pub(crate) fn of(host: &HostRecord, why: Why) -> Self {
        Self {
            host: Some(host.id.clone()),
            extension: Some(host.extension.clone()),
            why,
        }
    }

    pub(crate) const fn of_all(why: Why) -> Self {
        Self {
            host: None,
            extension: None,
            why,
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = 2 + usize::from(self.host.is_some()) + usize::from(self.extension.is_some());
        let mut object = serializer.serialize_struct("Reason", members)?;
        object.serialize_field("code", &self.why.code())?;
        if let Some(host) = &self.host {
            object.serialize_field("host", host)?;
        }
        if let Some(extension) = &self.extension {
            object.serialize_field("extension", extension)?;
        }
        object.serialize_field("sentence", &self.why.to_string())?;
        object.end()
    }
}
