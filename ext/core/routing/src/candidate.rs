//! Checks one host against a request and computes its rank.

use crate::capabilities::{Capabilities, PriceModel};
use crate::host::{HostLoad, HostRecord, HostState};
use crate::why::{Criterion, Why};
use std::cmp::Ordering;
use wp_codebox_contracts::{
    HostId, IsolationClass, Placement, RoutePolicy, RouteRequest, RouteStrategy,
};

/// Position of a host by the placement of the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PlacementRank {
    /// Index in `prefer`.
    Preferred(usize),
    /// In no list.
    Open,
    /// Index in `fallback`.
    Fallback(usize),
}

/// Position of a host's extension by the route of the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ExtensionRank {
    /// Not in the list of the route, or the one extension that the profile pins.
    Own,
    /// Index in `fallback`.
    Fallback(usize),
}

/// A value that a strategy compares. What is unknown comes after everything that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Measure {
    Known(u64),
    Unknown,
}

impl Measure {
    pub(crate) fn of(value: Option<impl Into<u64>>) -> Self {
        value.map_or(Self::Unknown, |value| Self::Known(value.into()))
    }
}

/// Position of an accepted host; the smallest is chosen. The order of the members is the order of
/// comparison. Ids differ between hosts, so no two hosts are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank<'a> {
    pub(crate) placement: PlacementRank,
    extension: ExtensionRank,
    measures: [Measure; 3],
    load: HostLoad,
    id: &'a HostId,
}

/// A host that meets the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) host: &'a HostRecord,
    pub(crate) rank: Rank<'a>,
    pub(crate) isolation: IsolationClass,
    pub(crate) price: Option<u64>,
}

/// Checks a host whose extension has these capabilities; returns every reason against it.
pub(crate) fn assess<'a>(
    request: &RouteRequest,
    host: &'a HostRecord,
    of: &Capabilities,
) -> Result<Candidate<'a>, Vec<Why>> {
    let mut reasons = Vec::new();
    let placement = placement_rank(&request.policy.placement, &host.id);
    let extension = extension_rank(&request.policy, of);
    reasons.extend(extension.as_ref().err().cloned());
    reasons.extend(placement.as_ref().err().cloned());
    check_constraints(request, host, of, &mut reasons);
    check_needs(request, host, of, &mut reasons);
    check_state(host, &mut reasons);
    match (placement, extension) {
        (Ok(placement), Ok(extension)) if reasons.is_empty() => Ok(Candidate {
            host,
            rank: Rank {
                placement,
                extension,
                measures: measures(request.policy.route.strategy, host, of),
                load: host.load(),
                id: &host.id,
            },
            isolation: host.isolation(of),
            price: host.price(of),
        }),
        _ => Err(reasons),
    }
}

fn placement_rank(placement: &Placement, id: &HostId) -> Result<PlacementRank, Why> {
    if let Some(index) = placement.prefer.iter().position(|host| host == id) {
        return Ok(PlacementRank::Preferred(index));
    }
    let Some(fallback) = &placement.fallback else {
        return Ok(PlacementRank::Open);
    };
    match fallback.iter().position(|host| host == id) {
        Some(index) => Ok(PlacementRank::Fallback(index)),
        None if placement.prefer.is_empty() => Ok(PlacementRank::Open),
        None => Err(Why::HostNotPlaced),
    }
}

fn extension_rank(policy: &RoutePolicy, of: &Capabilities) -> Result<ExtensionRank, Why> {
    if let Some(pinned) = &policy.extension {
        let not_pinned = || Why::ExtensionNotPinned {
            pinned: pinned.clone(),
        };
        return (*pinned == of.extension)
            .then_some(ExtensionRank::Own)
            .ok_or_else(not_pinned);
    }
    let strategy = policy.route.strategy;
    let listed = policy.route.fallback.as_ref();
    let index = listed.and_then(|list| list.iter().position(|id| *id == of.extension));
    if let Some(index) = index {
        return Ok(ExtensionRank::Fallback(index));
    }
    let accepted = match strategy {
        RouteStrategy::PreferSelfHosted => {
            listed.is_none() || of.price_model == PriceModel::SelfHosted
        }
        RouteStrategy::LowestCost | RouteStrategy::LowestLatency => true,
        RouteStrategy::Explicit => false,
    };
    accepted
        .then_some(ExtensionRank::Own)
        .ok_or(Why::ExtensionNotListed { strategy })
}

fn check_constraints(
    request: &RouteRequest,
    host: &HostRecord,
    of: &Capabilities,
    reasons: &mut Vec<Why>,
) {
    let constraints = &request.policy.route.constraints;
    let profile = request.needs.isolation;
    let required = constraints
        .require_isolation
        .map_or(profile, |constraint| constraint.max(profile));
    let given = host.isolation(of);
    if given < required {
        reasons.push(Why::IsolationTooWeak { given, required });
    }
    if let Some(region) = &constraints.region
        && !host.is_within(region, of)
    {
        reasons.push(Why::RegionOutside {
            given: host.region.clone(),
            required: region.clone(),
        });
    }
    if let Some(limit) = constraints.max_cost_per_hour {
        match host.price(of) {
            Some(price) if price > limit => reasons.push(Why::CostAboveLimit { price, limit }),
            Some(_) => {}
            None => reasons.push(Why::CostUnknown { limit }),
        }
    }
}

fn check_needs(
    request: &RouteRequest,
    host: &HostRecord,
    of: &Capabilities,
    reasons: &mut Vec<Why>,
) {
    let needs = &request.needs;
    if let Some(required) = &needs.host
        && *required != host.id
    {
        reasons.push(Why::HostNotRequired {
            required: required.clone(),
        });
    }
    let controls = [Some(of.network), host.network];
    if let Some(given) = controls
        .into_iter()
        .flatten()
        .find(|control| !control.meets(needs.network))
    {
        reasons.push(Why::NetworkUnsupported {
            given,
            needed: needs.network,
        });
    }
    if let Some(needed) = &needs.architecture
        && !host.has(needed, of)
    {
        reasons.push(Why::ArchitectureUnsupported {
            needed: needed.clone(),
        });
    }
    let (given, needed) = (host.gpus(of), needs.gpus);
    if given < needed {
        reasons.push(Why::GpusUnsupported { given, needed });
    }
    let (given, needed) = (of.persistence, needs.persistence);
    if given < needed {
        reasons.push(Why::PersistenceTooWeak { given, needed });
    }
    if needs.snapshot && !of.snapshot {
        reasons.push(Why::SnapshotUnsupported);
    }
    if needs.restore && !of.restore {
        reasons.push(Why::RestoreUnsupported);
    }
    let (given, needed) = (of.bundle, needs.bundle);
    if given < needed {
        reasons.push(Why::BundleTooWeak { given, needed });
    }
}

fn check_state(host: &HostRecord, reasons: &mut Vec<Why>) {
    match host.state {
        HostState::Ready => {}
        HostState::Draining => reasons.push(Why::HostDraining),
        HostState::Down => reasons.push(Why::HostDown),
    }
    if host.used >= host.capacity {
        reasons.push(Why::HostFull {
            used: host.used,
            capacity: host.capacity,
        });
    }
}

/// Returns the values that a strategy compares, most important first.
fn measures(strategy: RouteStrategy, host: &HostRecord, of: &Capabilities) -> [Measure; 3] {
    let price = Measure::of(host.price(of));
    let latency = Measure::of(host.latency_ms);
    let nothing = Measure::Known(0);
    match strategy {
        RouteStrategy::PreferSelfHosted => {
            let model = match of.price_model {
                PriceModel::SelfHosted => 0,
                PriceModel::Metered => 1,
            };
            [Measure::Known(model), price, latency]
        }
        RouteStrategy::LowestCost | RouteStrategy::Explicit => [price, latency, nothing],
        RouteStrategy::LowestLatency => [latency, price, nothing],
    }
}

/// Returns the first criterion by which the two ranks differ.
pub(crate) fn criterion(strategy: RouteStrategy, first: &Rank<'_>, second: &Rank<'_>) -> Criterion {
    if first.placement != second.placement {
        return Criterion::Placement;
    }
    if first.extension != second.extension {
        return Criterion::Extension;
    }
    let names = match strategy {
        RouteStrategy::PreferSelfHosted => {
            [Criterion::PriceModel, Criterion::Cost, Criterion::Latency]
        }
        RouteStrategy::LowestCost | RouteStrategy::Explicit => {
            [Criterion::Cost, Criterion::Latency, Criterion::Load]
        }
        RouteStrategy::LowestLatency => [Criterion::Latency, Criterion::Cost, Criterion::Load],
    };
    let mut pairs = first.measures.iter().zip(&second.measures).zip(names);
    if let Some((_, name)) = pairs.find(|((one, other), _)| one != other) {
        return name;
    }
    match first.load.cmp(&second.load) {
        Ordering::Equal => Criterion::Id,
        Ordering::Less | Ordering::Greater => Criterion::Load,
    }
}
