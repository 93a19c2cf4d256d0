//! The decision: the first accepted host in the order of the strategy, and a reason for every
//! other host.

use crate::candidate::{Candidate, assess, criterion};
use crate::capabilities::Capabilities;
use crate::host::HostRecord;
use crate::why::{Reason, Why};
use serde::Serialize;
use std::collections::BTreeMap;
use wp_codebox_contracts::{ExtensionId, HostId, IsolationClass, RouteRequest, RouteStrategy};

/// The host that was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Id of the host.
    pub host: HostId,
    /// Extension that starts the sandbox.
    pub extension: ExtensionId,
    /// Isolation that the sandbox has at least.
    pub isolation: IsolationClass,
    /// Price of one hour, in the smallest unit of the service's price table; `None` if unknown.
    pub price_per_hour: Option<u64>,
    /// Latency in milliseconds; `None` if unknown.
    pub latency_ms: Option<u32>,
}

impl Choice {
    pub(crate) fn of(candidate: &Candidate<'_>) -> Self {
        Self {
            host: candidate.host.id.clone(),
            extension: candidate.host.extension.clone(),
            isolation: candidate.isolation,
            price_per_hour: candidate.price,
            latency_ms: candidate.host.latency_ms,
        }
    }
}

/// Result of [`decide`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Strategy of the request.
    pub strategy: RouteStrategy,
    /// The chosen host; `None` if none can be used.
    pub chosen: Option<Choice>,
    /// First the reason of the choice or of its absence, then the reasons against every other
    /// host, in the order of host ids.
    pub reasons: Vec<Reason>,
    /// Number of host records.
    pub hosts: usize,
    /// Number of hosts that meet the request.
    pub accepted: usize,
    /// Number of hosts that would meet the request if they were not full, draining or down.
    pub waiting: usize,
}

/// Chooses a host for a sandbox.
///
/// The result does not depend on the order of `hosts` and `capabilities`. A host or extension of
/// which there are several records is not used.
#[must_use]
pub fn decide(
    request: &RouteRequest,
    hosts: &[HostRecord],
    capabilities: &[Capabilities],
) -> Decision {
    let mut known: BTreeMap<&ExtensionId, Option<&Capabilities>> = BTreeMap::new();
    for row in capabilities {
        known
            .entry(&row.extension)
            .and_modify(|entry| *entry = None)
            .or_insert(Some(row));
    }
    let mut hosts: Vec<&HostRecord> = hosts.iter().collect();
    // Several records of one id are all refused for the same reason. The extension in the sort key
    // gives these reasons a fixed order.
    hosts.sort_by_key(|&host| (&host.id, &host.extension));
    let extension = |host: &HostRecord| match known.get(&host.extension) {
        None => Err(Why::ExtensionUnknown),
        Some(None) => Err(Why::AmbiguousRecord),
        Some(Some(of)) => Ok(*of),
    };
    decide_sorted(request, &hosts, extension)
}

/// Decides over hosts that are sorted by id.
pub(crate) fn decide_sorted<'a>(
    request: &RouteRequest,
    hosts: &[&'a HostRecord],
    extension: impl Fn(&HostRecord) -> Result<&'a Capabilities, Why>,
) -> Decision {
    let results: Vec<Result<Candidate<'a>, Vec<Why>>> = hosts
        .iter()
        .enumerate()
        .map(|(index, host)| {
            let before = index.checked_sub(1).and_then(|before| hosts.get(before));
            let twice = [before, hosts.get(index + 1)]
                .into_iter()
                .flatten()
                .any(|other| other.id == host.id);
            if twice {
                return Err(vec![Why::AmbiguousRecord]);
            }
            assess(request, host, extension(host).map_err(|why| vec![why])?)
        })
        .collect();
    explained(request.policy.route.strategy, hosts, results)
}

fn explained(
    strategy: RouteStrategy,
    hosts: &[&HostRecord],
    results: Vec<Result<Candidate<'_>, Vec<Why>>>,
) -> Decision {
    let accepted = results.iter().flatten();
    let first = accepted
        .clone()
        .min_by_key(|candidate| candidate.rank)
        .copied();
    let mut decision = Decision {
        strategy,
        chosen: first.as_ref().map(Choice::of),
        reasons: Vec::with_capacity(hosts.len() + 1),
        hosts: hosts.len(),
        accepted: accepted.count(),
        waiting: 0,
    };
    decision.reasons.push(match first {
        Some(first) => Reason::of(
            first.host,
            Why::Chosen {
                strategy,
                accepted: decision.accepted,
                hosts: decision.hosts,
            },
        ),
        None if hosts.is_empty() => Reason::of_all(Why::NoHosts),
        None => Reason::of_all(Why::NoneAccepted {
            hosts: decision.hosts,
        }),
    });
    for (host, result) in hosts.iter().zip(results) {
        let reasons = match (result, first) {
            (Err(reasons), _) => {
                decision.waiting += usize::from(reasons.iter().all(Why::is_transient));
                reasons
            }
            (Ok(candidate), Some(first)) if candidate.rank != first.rank => {
                vec![Why::RankedAfter {
                    chosen: first.host.id.clone(),
                    by: criterion(strategy, &first.rank, &candidate.rank),
                }]
            }
            (Ok(_), _) => Vec::new(),
        };
        let rows = reasons.into_iter().map(|why| Reason::of(host, why));
        decision.reasons.extend(rows);
    }
    decision
}
