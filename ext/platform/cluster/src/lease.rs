//! Leases: whether the process that claimed a run is alive, as this host sees it.
//!
//! A heartbeat counts when its revision changes. The time since the last change is measured with
//! the monotonic clock of this host; no time of another host and no expiry on the server is used.
//! That time ends at the last read of the heartbeats: a host that was stopped or cut off does not
//! take other nodes for dead because it did not read their heartbeats. A lease that expires too
//! early costs a repeated run, never a second end: the epoch decides.

use crate::host::HostRecord;
use crate::names::NodeName;
use crate::record::{Claimant, Revision, Versioned};
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether a claim stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// The process that claimed sends heartbeats, or this host has not observed it for long enough
    /// to tell that it sends none.
    Live,
    /// The process that claimed is gone.
    Expired,
}

/// What this host has observed of the nodes.
#[derive(Debug)]
pub struct Leases {
    limit: Duration,
    /// Time of the last read of the heartbeats.
    observed: Duration,
    seen: BTreeMap<NodeName, Seen>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// `None`: the node has no heartbeat on the server.
    beat: Option<(String, Revision)>,
    since: Duration,
    /// Whether [`Leases::expires`] has reported that the node is gone.
    is_told: bool,
}

impl Leases {
    /// Returns an observer for which a lease expires after this time without a heartbeat.
    #[must_use]
    pub const fn new(limit: Duration) -> Self {
        Self {
            limit,
            observed: Duration::ZERO,
            seen: BTreeMap::new(),
        }
    }

    /// Takes note of the present heartbeats. `now` is the time since some start, by the monotonic
    /// clock.
    pub fn observe(&mut self, now: Duration, hosts: &[Versioned<HostRecord>]) {
        self.observed = now;
        let mut beats = BTreeMap::new();
        for host in hosts {
            let claimant = &host.value.claimant;
            let beat = (claimant.instance.clone(), host.revision);
            beats.insert(claimant.node.clone(), beat);
        }
        for (node, seen) in &mut self.seen {
            let beat = beats.remove(node);
            if seen.beat != beat {
                *seen = Seen {
                    beat,
                    since: now,
                    is_told: false,
                };
            }
        }
        for (node, beat) in beats {
            let seen = Seen {
                beat: Some(beat),
                since: now,
                is_told: false,
            };
            self.seen.insert(node, seen);
        }
    }

    /// Returns whether a node was found to be gone since the last call.
    pub fn expires(&mut self) -> bool {
        let mut expires = false;
        for seen in self.seen.values_mut() {
            if !seen.is_told && self.observed.saturating_sub(seen.since) >= self.limit {
                seen.is_told = true;
                expires = true;
            }
        }
        expires
    }

    /// Returns whether the process `claimant` counts as alive, so that its claims are valid. The
    /// time limit of a node that was never seen starts with the first call for the node.
    pub fn lease(&mut self, now: Duration, claimant: &Claimant) -> Lease {
        let seen = self.seen.entry(claimant.node.clone()).or_insert(Seen {
            beat: None,
            since: now,
            is_told: false,
        });
        let other = |(instance, _): &(String, Revision)| *instance != claimant.instance;
        // A new process takes the name of a node only when the earlier process is dead.
        let unseen = self.observed.saturating_sub(seen.since);
        if seen.beat.as_ref().is_some_and(other) || unseen >= self.limit {
            return Lease::Expired;
        }
        Lease::Live
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::Sha256Hex;

    const LIMIT: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn claimant(instance: &str) -> Claimant {
        Claimant {
            node: NodeName::new("a").unwrap(),
            instance: instance.to_owned(),
        }
    }

    fn beat(instance: &str, revision: u64) -> Versioned<HostRecord> {
        Versioned {
            value: HostRecord {
                protocol: 1,
                claimant: claimant(instance),
                version: "1".to_owned(),
                key_id: Sha256Hex::zero(),
                capabilities: Vec::new(),
                capacity: 1,
                running: 0,
                draining: false,
                beat: revision,
            },
            revision: Revision(revision),
        }
    }

    #[test]
    fn lease_expires_if_the_revision_of_the_heartbeat_stays_unchanged_for_the_time_limit() {
        let mut leases = Leases::new(LIMIT);
        leases.observe(at(0), &[beat("1", 5)]);
        leases.observe(at(9), &[beat("1", 5)]);
        assert_eq!(leases.lease(at(9), &claimant("1")), Lease::Live);
        assert!(!leases.expires());
        leases.observe(at(10), &[beat("1", 5)]);
        assert_eq!(leases.lease(at(10), &claimant("1")), Lease::Expired);
        // `expires` reports each expiry once.
        assert!(leases.expires());
        assert!(!leases.expires());
        leases.observe(at(11), &[beat("1", 6)]);
        assert_eq!(leases.lease(at(11), &claimant("1")), Lease::Live);
        leases.observe(at(20), &[beat("1", 6)]);
        assert!(!leases.expires());
        leases.observe(at(21), &[beat("1", 6)]);
        assert!(leases.expires());
    }

    #[test]
    fn lease_does_not_expire_while_this_host_reads_no_heartbeats() {
        let mut leases = Leases::new(LIMIT);
        leases.observe(at(0), &[beat("1", 5)]);
        // The heartbeats are not read for a minute; then a message comes before the next read.
        assert_eq!(leases.lease(at(60), &claimant("1")), Lease::Live);
        leases.observe(at(61), &[beat("1", 9)]);
        assert_eq!(leases.lease(at(61), &claimant("1")), Lease::Live);
        // Control: the other process is dead, so its revision does not change.
        leases.observe(at(71), &[beat("1", 9)]);
        assert_eq!(leases.lease(at(71), &claimant("1")), Lease::Expired);
    }

    #[test]
    fn lease_of_an_earlier_process_of_a_node_expires_with_the_first_heartbeat_of_the_next_one() {
        let mut leases = Leases::new(LIMIT);
        leases.observe(at(0), &[beat("1", 5)]);
        assert_eq!(leases.lease(at(1), &claimant("1")), Lease::Live);
        leases.observe(at(2), &[beat("2", 6)]);
        assert_eq!(leases.lease(at(2), &claimant("1")), Lease::Expired);
        assert_eq!(leases.lease(at(2), &claimant("2")), Lease::Live);
    }

    /// The time starts with the first call of `lease` for the node, or when its heartbeat was
    /// removed.
    #[test]
    fn lease_of_a_node_without_a_heartbeat_expires_after_the_limit_from_first_call_or_removal() {
        let mut leases = Leases::new(LIMIT);
        leases.observe(at(50), &[]);
        assert_eq!(leases.lease(at(50), &claimant("1")), Lease::Live);
        leases.observe(at(59), &[]);
        assert_eq!(leases.lease(at(59), &claimant("1")), Lease::Live);
        leases.observe(at(60), &[]);
        assert_eq!(leases.lease(at(60), &claimant("1")), Lease::Expired);
        leases.observe(at(60), &[beat("1", 7)]);
        leases.observe(at(61), &[]);
        leases.observe(at(70), &[]);
        assert_eq!(leases.lease(at(70), &claimant("1")), Lease::Live);
        leases.observe(at(71), &[]);
        assert_eq!(leases.lease(at(71), &claimant("1")), Lease::Expired);
    }
}
