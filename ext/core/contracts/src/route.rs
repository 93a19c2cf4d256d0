//! Route policy of a profile, and what a sandbox needs of the place where it runs.
//!
//! These types are here and not in the routing crate because the profile parser produces them. The
//! PHP extension links that parser and must not link the router.

use crate::{
    ArchitectureName, ExtensionId, HostId, IsolationLevel, NetworkPolicy, NetworkPosture,
    RegionName, string_enum,
};
use serde::{Deserialize, Serialize};

string_enum! {
    /// Class of isolation by which extensions of any kind are compared, weakest first.
    #[derive(PartialOrd, Ord)]
    pub enum IsolationClass {
        /// Rules of the kernel restrict processes that share the host's files and processes.
        Policy = "policy",
        /// The sandbox has namespaces of its own and shares the host's kernel.
        Container = "container",
        /// The sandbox has a kernel of its own.
        Microvm = "microvm",
    }

    /// How an extension restricts the network of a sandbox.
    #[derive(PartialOrd, Ord)]
    pub enum NetworkControl {
        /// Sandboxes have no network.
        None = "none",
        /// Denied by default; hosts and ports can be allowed.
        Hosts = "hosts",
        /// Denied by default; hosts, ports, methods and paths can be allowed.
        Requests = "requests",
        /// Not restricted: the extension cannot deny access.
        Open = "open",
    }

    /// What a sandbox needs of the network. Everything else must be denied.
    #[derive(Default, PartialOrd, Ord)]
    pub enum NetworkNeed {
        /// No access.
        #[default]
        None = "none",
        /// Access to certain hosts and ports.
        Hosts = "hosts",
        /// Access that is also restricted by method or path.
        Requests = "requests",
    }

    /// What can outlive a sandbox, least first.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Persistence {
        /// Nothing.
        #[default]
        Ephemeral = "ephemeral",
        /// State that only the host of the sandbox can use.
        HostLocal = "host-local",
        /// State that every host of the extension can use.
        Portable = "portable",
    }

    /// Signature of the bundle with a sandbox's changes, weakest first.
    #[derive(Default, PartialOrd, Ord)]
    pub enum BundleTrust {
        /// There is no bundle.
        #[default]
        None = "none",
        /// The bundle has the signature of a host that did not make the sandbox.
        RemoteSigned = "remote-signed",
        /// The bundle has the signature of the host that made the sandbox.
        HostSigned = "host-signed",
    }

    /// Order in which a route prefers hosts.
    #[derive(Default)]
    pub enum RouteStrategy {
        /// Self-hosted extensions first, then by price and latency.
        #[default]
        PreferSelfHosted = "prefer-self-hosted",
        /// By price, then by latency.
        LowestCost = "lowest-cost",
        /// By latency, then by price.
        LowestLatency = "lowest-latency",
        /// In the order of the extensions in [`Route::fallback`].
        Explicit = "explicit",
    }
}

/// Each isolation class with the lowest isolation level at which a native sandbox reaches it.
/// `None`: no level reaches it, because a native sandbox shares the kernel of its host.
pub const ISOLATION_CLASSES: [(IsolationClass, Option<IsolationLevel>); 3] = [
    (IsolationClass::Policy, Some(IsolationLevel::Reduced)),
    (IsolationClass::Container, Some(IsolationLevel::Full)),
    (IsolationClass::Microvm, None),
];

impl IsolationClass {
    /// Returns the lowest isolation level at which a native sandbox reaches this class.
    #[must_use]
    pub fn level(self) -> Option<IsolationLevel> {
        let row = ISOLATION_CLASSES.iter().find(|(class, _)| *class == self);
        row.and_then(|(_, level)| *level)
    }

    /// Returns the class of native sandboxes with this isolation level.
    #[must_use]
    pub fn of_level(level: IsolationLevel) -> Option<Self> {
        let mut rows = ISOLATION_CLASSES.iter();
        rows.find(|(_, row)| *row == Some(level))
            .map(|(class, _)| *class)
    }
}

impl NetworkControl {
    /// Returns whether the extension can grant what a sandbox needs and deny everything else.
    #[must_use]
    pub const fn meets(self, need: NetworkNeed) -> bool {
        match (self, need) {
            (Self::Open, _) => false,
            (_, NetworkNeed::None) => true,
            (Self::None, _) => false,
            (Self::Hosts, need) => matches!(need, NetworkNeed::Hosts),
            (Self::Requests, NetworkNeed::Hosts | NetworkNeed::Requests) => true,
        }
    }
}

impl NetworkNeed {
    /// Returns what a network policy needs.
    #[must_use]
    pub fn of(policy: &NetworkPolicy) -> Self {
        match policy {
            NetworkPolicy::Posture(NetworkPosture::Deny) => Self::None,
            // No valid policy allows everything. The strictest need is the safe answer.
            NetworkPolicy::Posture(NetworkPosture::Allow) => Self::Requests,
            NetworkPolicy::Rules(rules) => {
                // Presets restrict methods; `model` restricts paths.
                let by_request = !rules.presets.is_empty()
                    || rules
                        .rules
                        .iter()
                        .any(|rule| !rule.methods.is_empty() || !rule.paths.is_empty());
                if by_request {
                    Self::Requests
                } else {
                    Self::Hosts
                }
            }
        }
    }
}

/// Hosts on which a sandbox should run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Hosts to use first, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefer: Vec<HostId>,
    /// Hosts to use last, in this order. With `prefer`, no other host may be used; without
    /// `prefer`, all other hosts come first. `None`: every host may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Vec<HostId>>,
}

/// Conditions that the chosen host must meet. They are never relaxed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConstraints {
    /// Highest price of one hour of the sandbox, in the smallest unit of the table of prices
    /// (`meter-prices/v1`) with which sandboxes are charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_per_hour: Option<u64>,
    /// Weakest accepted isolation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_isolation: Option<IsolationClass>,
    /// Region in which the sandbox must run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<RegionName>,
}

/// How the extension of a sandbox is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Order in which hosts are preferred.
    #[serde(default)]
    pub strategy: RouteStrategy,
    /// Extensions to use last, in this order. Others come before them, but with
    /// `prefer-self-hosted` a metered extension that is not in the list is never used, and with
    /// `explicit` no other extension is. `None`: every extension may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Vec<ExtensionId>>,
    /// Conditions that the chosen host must meet.
    #[serde(default)]
    pub constraints: RouteConstraints,
}

/// Where a sandbox may run, as its profile says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutePolicy {
    /// The only extension that may be used; `None` if the route selects one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionId>,
    /// Hosts on which the sandbox should run.
    #[serde(default)]
    pub placement: Placement,
    /// How the extension is selected.
    #[serde(default)]
    pub route: Route,
}

/// What a sandbox needs of its extension and host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxNeeds {
    /// Weakest isolation that the profile accepts.
    pub isolation: IsolationClass,
    /// Network access.
    #[serde(default)]
    pub network: NetworkNeed,
    /// Architecture; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<ArchitectureName>,
    /// Number of GPUs.
    #[serde(default)]
    pub gpus: u32,
    /// What must be able to outlive the sandbox.
    #[serde(default)]
    pub persistence: Persistence,
    /// Whether snapshots of the sandbox must be possible.
    #[serde(default)]
    pub snapshot: bool,
    /// Whether the sandbox must be able to start from a snapshot, or to return to one.
    #[serde(default)]
    pub restore: bool,
    /// Weakest accepted signature of the sandbox's bundle.
    #[serde(default)]
    pub bundle: BundleTrust,
    /// The only host that may be used, for example because it stores the snapshot from which the
    /// sandbox starts; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
}

impl SandboxNeeds {
    /// Returns needs with this isolation and nothing else.
    #[must_use]
    pub fn new(isolation: IsolationClass) -> Self {
        Self {
            isolation,
            network: NetworkNeed::None,
            architecture: None,
            gpus: 0,
            persistence: Persistence::Ephemeral,
            snapshot: false,
            restore: false,
            bundle: BundleTrust::None,
            host: None,
        }
    }
}

/// A request for a place where a sandbox can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteRequest {
    /// Where the sandbox may run.
    pub policy: RoutePolicy,
    /// What the sandbox needs.
    pub needs: SandboxNeeds,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EgressRule, NetworkRules};

    #[test]
    fn each_native_isolation_level_has_its_own_class_and_no_level_is_a_microvm() {
        for (class, level) in [
            (IsolationClass::Policy, IsolationLevel::Reduced),
            (IsolationClass::Container, IsolationLevel::Full),
        ] {
            assert_eq!(class.level(), Some(level));
            assert_eq!(IsolationClass::of_level(level), Some(class));
        }
        assert_eq!(IsolationClass::Microvm.level(), None);
        assert_eq!(IsolationClass::of_level(IsolationLevel::None), None);
        assert_eq!(IsolationClass::ALL.len(), ISOLATION_CLASSES.len());
        assert!(IsolationClass::Policy < IsolationClass::Container);
        assert!(IsolationClass::Container < IsolationClass::Microvm);
    }

    #[test]
    fn network_control_open_meets_no_need_and_finer_control_meets_coarser_needs() {
        use NetworkControl as Control;
        use NetworkNeed as Need;
        for (control, met) in [
            (Control::None, &[Need::None][..]),
            (Control::Hosts, &[Need::None, Need::Hosts]),
            (
                Control::Requests,
                &[Need::None, Need::Hosts, Need::Requests],
            ),
            (Control::Open, &[]),
        ] {
            for &need in Need::ALL {
                assert_eq!(
                    control.meets(need),
                    met.contains(&need),
                    "{control:?} {need:?}"
                );
            }
        }
    }

    #[test]
    fn network_rules_with_methods_or_presets_need_control_of_requests_and_others_of_hosts() {
        let deny = NetworkPolicy::Posture(NetworkPosture::Deny);
        assert_eq!(NetworkNeed::of(&deny), NetworkNeed::None);
        let rule = |methods: &[&str]| {
            NetworkPolicy::Rules(NetworkRules {
                rules: vec![EgressRule {
                    host: "a.example".to_owned(),
                    ports: Vec::new(),
                    methods: methods.iter().map(|&method| method.to_owned()).collect(),
                    paths: Vec::new(),
                }],
                ..NetworkRules::default()
            })
        };
        assert_eq!(NetworkNeed::of(&rule(&[])), NetworkNeed::Hosts);
        assert_eq!(NetworkNeed::of(&rule(&["GET"])), NetworkNeed::Requests);
        let preset = NetworkPolicy::Rules(NetworkRules {
            presets: vec!["npm".to_owned()],
            ..NetworkRules::default()
        });
        assert_eq!(NetworkNeed::of(&preset), NetworkNeed::Requests);
    }
}
