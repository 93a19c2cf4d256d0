//! Hosts in an index that chooses without reading every host.
//!
//! Hosts that accept sandboxes are grouped by everything that constraints and needs can refuse.
//! Within a group every strategy prefers the same host: the one with the lowest latency, then the
//! lowest load, then the first id. A choice therefore compares one host of each group and the hosts
//! that the profile names. It checks and ranks them with the code of [`crate::decide`], so both
//! choose the same host.

use crate::candidate::{Candidate, Measure, PlacementRank, assess};
use crate::capabilities::Capabilities;
use crate::decision::{Choice, Decision, decide_sorted};
use crate::host::{HostLoad, HostRecord, HostState};
use crate::record::RecordError;
use crate::why::Why;
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_contracts::{
    ArchitectureName, CodedError, ExtensionId, HostId, IsolationClass, NetworkControl, RegionName,
    RouteRequest,
};

/// Error of a change of an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
pub enum IndexError {
    /// There is no host with this id.
    #[error("host {host} is not registered; register it, or correct the id")]
    #[code(InputInvalid)]
    UnknownHost {
        /// Id of the host.
        host: HostId,
    },
    /// The host accepts no more sandboxes.
    #[error("host {host} is full, draining or down; choose another host")]
    #[code(RouteNoCapacity)]
    Closed {
        /// Id of the host.
        host: HostId,
    },
}

/// Everything of a host that a constraint or need can refuse, except its state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    extension: ExtensionId,
    region: Option<RegionName>,
    architecture: Option<ArchitectureName>,
    isolation: Option<IsolationClass>,
    network: Option<NetworkControl>,
    gpus: Option<u32>,
    price: Option<u64>,
}

impl Group {
    fn of(host: &HostRecord) -> Self {
        Self {
            extension: host.extension.clone(),
            region: host.region.clone(),
            architecture: host.architecture.clone(),
            isolation: host.isolation,
            network: host.network,
            gpus: host.gpus,
            price: host.price_per_hour,
        }
    }
}

/// Position of a host in its group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    latency: Measure,
    load: HostLoad,
    id: HostId,
}

impl Slot {
    fn of(host: &HostRecord) -> Self {
        Self {
            latency: Measure::of(host.latency_ms),
            load: host.load(),
            id: host.id.clone(),
        }
    }
}

/// Extensions and hosts of a service.
#[derive(Debug, Clone, Default)]
pub struct HostIndex {
    capabilities: BTreeMap<ExtensionId, Capabilities>,
    hosts: BTreeMap<HostId, HostRecord>,
    open: BTreeMap<Group, BTreeSet<Slot>>,
}

impl HostIndex {
    /// Returns an index without extensions and hosts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an extension, or replaces its capabilities.
    pub fn put_extension(&mut self, capabilities: Capabilities) -> Result<(), RecordError> {
        capabilities.validate()?;
        let id = capabilities.extension.clone();
        self.capabilities.insert(id, capabilities);
        Ok(())
    }

    /// Adds a host, or replaces its record.
    pub fn put_host(&mut self, host: HostRecord) -> Result<(), RecordError> {
        host.validate()?;
        self.remove_host(&host.id);
        self.open_host(&host);
        self.hosts.insert(host.id.clone(), host);
        Ok(())
    }

    /// Removes a host; returns its record.
    pub fn remove_host(&mut self, id: &HostId) -> Option<HostRecord> {
        let host = self.hosts.remove(id)?;
        self.close_host(&host);
        Some(host)
    }

    /// Returns the record of a host.
    #[must_use]
    pub fn host(&self, id: &HostId) -> Option<&HostRecord> {
        self.hosts.get(id)
    }

    /// Returns all hosts in the order of their ids.
    pub fn hosts(&self) -> impl Iterator<Item = &HostRecord> {
        self.hosts.values()
    }

    /// Returns the capabilities of all extensions in the order of their ids.
    pub fn extensions(&self) -> impl Iterator<Item = &Capabilities> {
        self.capabilities.values()
    }

    /// Counts one more sandbox on a host.
    pub fn occupy(&mut self, id: &HostId) -> Result<(), IndexError> {
        if self.host(id).is_some_and(|host| !host.is_open()) {
            return Err(IndexError::Closed { host: id.clone() });
        }
        self.change(id, |host| host.used += 1)
    }

    /// Counts one sandbox less on a host.
    pub fn release(&mut self, id: &HostId) -> Result<(), IndexError> {
        self.change(id, |host| host.used = host.used.saturating_sub(1))
    }

    /// Sets whether a host accepts sandboxes.
    pub fn set_state(&mut self, id: &HostId, state: HostState) -> Result<(), IndexError> {
        self.change(id, |host| host.state = state)
    }

    /// Sets the latency of a host as measured; `None` if it is unknown.
    pub fn set_latency(&mut self, id: &HostId, latency_ms: Option<u32>) -> Result<(), IndexError> {
        self.change(id, |host| host.latency_ms = latency_ms)
    }

    /// Chooses the same host as [`crate::decide`], without reasons.
    #[must_use]
    pub fn choose(&self, request: &RouteRequest) -> Option<Choice> {
        let placement = &request.policy.placement;
        let fallback = placement.fallback.iter().flatten();
        let named: BTreeSet<&HostId> = match &request.needs.host {
            Some(only) => BTreeSet::from([only]),
            None => placement.prefer.iter().chain(fallback).collect(),
        };
        let mut first: Option<Candidate<'_>> = None;
        for id in &named {
            self.compare(request, id, &mut first);
        }
        let preferred = first.is_some_and(|candidate| {
            matches!(candidate.rank.placement, PlacementRank::Preferred(_))
        });
        let closed = !placement.prefer.is_empty() && placement.fallback.is_some();
        if request.needs.host.is_none() && !preferred && !closed {
            for slots in self.open.values() {
                // Hosts that the profile names have another rank than the rest of their group.
                if let Some(slot) = slots.iter().find(|slot| !named.contains(&slot.id)) {
                    self.compare(request, &slot.id, &mut first);
                }
            }
        }
        first.as_ref().map(Choice::of)
    }

    /// Decides with all reasons, by [`crate::decide`] over every host.
    #[must_use]
    pub fn decide(&self, request: &RouteRequest) -> Decision {
        let hosts: Vec<&HostRecord> = self.hosts.values().collect();
        decide_sorted(request, &hosts, |host| {
            let known = self.capabilities.get(&host.extension);
            known.ok_or(Why::ExtensionUnknown)
        })
    }

    fn compare<'a>(
        &'a self,
        request: &RouteRequest,
        id: &HostId,
        first: &mut Option<Candidate<'a>>,
    ) {
        let Some(host) = self.hosts.get(id) else {
            return;
        };
        let Some(of) = self.capabilities.get(&host.extension) else {
            return;
        };
        if let Ok(candidate) = assess(request, host, of)
            && first.is_none_or(|first| candidate.rank < first.rank)
        {
            *first = Some(candidate);
        }
    }

    fn change(&mut self, id: &HostId, by: impl FnOnce(&mut HostRecord)) -> Result<(), IndexError> {
        let unknown = || IndexError::UnknownHost { host: id.clone() };
        let mut host = self.remove_host(id).ok_or_else(unknown)?;
        by(&mut host);
        self.open_host(&host);
        self.hosts.insert(id.clone(), host);
        Ok(())
    }

    fn open_host(&mut self, host: &HostRecord) {
        if host.is_open() {
            let slots = self.open.entry(Group::of(host)).or_default();
            slots.insert(Slot::of(host));
        }
    }

    fn close_host(&mut self, host: &HostRecord) {
        let group = Group::of(host);
        if let Some(slots) = self.open.get_mut(&group) {
            slots.remove(&Slot::of(host));
            if slots.is_empty() {
                self.open.remove(&group);
            }
        }
    }
}
