//! Changes of a run's record: pure functions from one record to the next. The caller stores the
//! next record by compare-and-set; if that fails, it reads the record and calls the function again.

use crate::lease::Lease;
use crate::names::{Queue, RunKey};
use crate::record::{Claimant, End, PROTOCOL, Record, State};
use crate::trust::NodeKeys;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Sha256Hex};

/// What the process that has the message of a run must do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// Store this record, then run the task under the record's epoch.
    Take(Box<Record>),
    /// Store this record, which is terminal, then remove the message.
    End(Box<Record>),
    /// The run has ended: remove the message.
    Ended,
    /// Another process, or another thread of this one, has the run: give the message back.
    Held,
    /// The submitter does not take results of this node: leave the message to another one.
    NotListed,
    /// A newer program wrote the record: give the message back.
    Newer,
}

/// What the process that has finished a task must do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Finish {
    /// Store this record.
    Store(Box<Record>),
    /// The record has this end already: an earlier attempt stored it, but its answer was lost.
    Stored,
    /// The run belongs to a later claim, or ended without this process. The result stays on the
    /// server as evidence, but is not the result of the run.
    Fenced,
}

impl Record {
    /// Returns the record of a new run.
    #[must_use]
    pub fn submitted(
        key: RunKey,
        queue: Queue,
        task: Sha256Hex,
        max_tries: u32,
        created_at: String,
    ) -> Self {
        Self {
            protocol: PROTOCOL,
            key,
            queue,
            task,
            epoch: 0,
            max_tries,
            nodes: None,
            cancelled: false,
            created_at,
            state: State::Queued,
        }
    }

    /// Returns the record of a new run that only these nodes may claim.
    #[must_use]
    pub fn for_nodes(self, nodes: NodeKeys) -> Self {
        Self {
            nodes: Some(nodes),
            ..self
        }
    }

    /// Returns whether the run has ended.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self.state, State::Terminal { .. })
    }

    /// Decides what the process `by`, which has the run's message, does. `key` is the id of the key
    /// with which the node of this process signs. `lease` tells whether the
    /// process that claimed the run is alive; it is called only if the run is claimed.
    #[must_use]
    pub fn claim(
        &self,
        by: &Claimant,
        key: &Sha256Hex,
        lease: impl FnOnce(&Claimant) -> Lease,
    ) -> Claim {
        if self.protocol > PROTOCOL {
            return Claim::Newer;
        }
        let nodes = self.nodes.as_ref();
        let is_listed = nodes.is_none_or(|nodes| nodes.check(&by.node, key).is_ok());
        let last = match &self.state {
            State::Terminal { .. } => return Claim::Ended,
            _ if !is_listed => return Claim::NotListed,
            State::Queued => None,
            State::Claimed { by: holder } => match lease(holder) {
                Lease::Live => return Claim::Held,
                Lease::Expired => Some(holder),
            },
        };
        if self.cancelled {
            return Claim::End(Box::new(self.ended_by(last.cloned(), cancelled())));
        }
        if self.epoch >= u64::from(self.max_tries) {
            let error = self.exhausted(last);
            return Claim::End(Box::new(self.ended_by(last.cloned(), End::Error { error })));
        }
        Claim::Take(Box::new(Self {
            protocol: PROTOCOL,
            epoch: self.epoch + 1,
            state: State::Claimed { by: by.clone() },
            ..self.clone()
        }))
    }

    fn exhausted(&self, last: Option<&Claimant>) -> ErrorBody {
        let last = last.map_or_else(String::new, |by| format!("; the last node was {}", by.node));
        ErrorBody::new(
            ErrorCode::ClusterTriesExhausted,
            format!(
                "{} of {} attempts to run the task ended because the node died or lost its connection{last}",
                self.epoch, self.max_tries
            ),
        )
        .hint("the task may crash the nodes that run it: check their logs and limits before you submit it again")
    }

    /// Decides how the process `by` stores the end of the run that it claimed in `epoch`. `self` is
    /// the present record.
    #[must_use]
    pub fn finish(&self, by: &Claimant, epoch: u64, end: &End) -> Finish {
        match &self.state {
            State::Claimed { by: holder } if holder == by && self.epoch == epoch => {
                Finish::Store(Box::new(self.ended_by(Some(by.clone()), end.clone())))
            }
            State::Terminal {
                by: Some(holder),
                end: stored,
            } if holder == by && self.epoch == epoch && stored == end => Finish::Stored,
            State::Queued | State::Claimed { .. } | State::Terminal { .. } => Finish::Fenced,
        }
    }

    /// Decides how the process `by` gives up a claim, so that another node can run the task. A run
    /// whose tries are used up ends with `error`, the reason of the last node.
    #[must_use]
    pub fn release(&self, by: &Claimant, epoch: u64, error: &ErrorBody) -> Finish {
        match &self.state {
            State::Claimed { by: holder } if holder == by && self.epoch == epoch => {
                if self.epoch >= u64::from(self.max_tries) {
                    let end = End::Error {
                        error: error.clone(),
                    };
                    return Finish::Store(Box::new(self.ended_by(Some(by.clone()), end)));
                }
                Finish::Store(Box::new(Self {
                    state: State::Queued,
                    ..self.clone()
                }))
            }
            State::Queued | State::Claimed { .. } | State::Terminal { .. } => Finish::Fenced,
        }
    }

    /// Returns the record of the cancelled run: a queued run ends, a claimed one is marked, so that
    /// its node ends it. `None` if the run is marked already or has ended.
    #[must_use]
    pub fn cancel(&self) -> Option<Self> {
        let asked = Self {
            cancelled: true,
            ..self.clone()
        };
        match self.state {
            State::Queued => Some(asked.ended_by(None, cancelled())),
            State::Claimed { .. } => (!self.cancelled).then_some(asked),
            State::Terminal { .. } => None,
        }
    }

    /// Returns whether the process `by` still has the run in this epoch.
    #[must_use]
    pub fn is_held_by(&self, by: &Claimant, epoch: u64) -> bool {
        self.epoch == epoch && matches!(&self.state, State::Claimed { by: holder } if holder == by)
    }

    fn ended_by(&self, by: Option<Claimant>, end: End) -> Self {
        Self {
            state: State::Terminal { by, end },
            ..self.clone()
        }
    }
}

/// The end of a run that was cancelled while no living node had it.
fn cancelled() -> End {
    End::Error {
        error: ErrorBody::new(
            ErrorCode::RunCancelled,
            "the run was cancelled while no node ran it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Capability, NodeName, Priority, SubmitterName};
    use wp_codebox_contracts::RunId;

    fn claimant(node: &str) -> Claimant {
        Claimant {
            node: NodeName::new(node).unwrap(),
            instance: "1".to_owned(),
        }
    }

    fn key() -> Sha256Hex {
        Sha256Hex::zero()
    }

    fn record() -> Record {
        let submitter = SubmitterName::new("team").unwrap();
        let key = RunKey {
            submitter: submitter.clone(),
            run: RunId::from_digest(&Sha256Hex::zero()),
        };
        let queue = Queue {
            capability: Capability::new("default").unwrap(),
            priority: Priority::Normal,
            submitter,
        };
        Record::submitted(key, queue, Sha256Hex::zero(), 3, String::new())
    }

    fn taken(claim: Claim) -> Record {
        match claim {
            Claim::Take(record) => *record,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn claim_with_a_live_lease_is_kept_and_one_with_an_expired_lease_is_taken_over() {
        let (a, b) = (claimant("a"), claimant("b"));
        let claimed = taken(record().claim(&a, &key(), |_| Lease::Expired));
        assert_eq!(claimed.claim(&b, &key(), |_| Lease::Live), Claim::Held);
        let again = taken(claimed.claim(&b, &key(), |holder| {
            assert_eq!(holder, &a);
            Lease::Expired
        }));
        assert_eq!((again.epoch, again.is_held_by(&b, 2)), (2, true));
    }

    fn is_cancelled(record: &Record) -> bool {
        matches!(&record.state, State::Terminal { end: End::Error { error }, .. }
            if error.code == ErrorCode::RunCancelled)
    }

    #[test]
    fn cancel_ends_a_queued_run_at_once_and_a_claimed_run_when_its_lease_expires() {
        let (a, b) = (claimant("a"), claimant("b"));
        let ended = record().cancel().unwrap();
        assert!(is_cancelled(&ended) && ended.cancelled);
        assert_eq!(ended.claim(&a, &key(), |_| Lease::Expired), Claim::Ended);
        let running = taken(record().claim(&a, &key(), |_| Lease::Expired))
            .cancel()
            .unwrap();
        assert!(running.is_held_by(&a, 1) && running.cancelled);
        assert_eq!(running.claim(&b, &key(), |_| Lease::Live), Claim::Held);
        let Claim::End(taken_over) = running.claim(&b, &key(), |_| Lease::Expired) else {
            panic!("the run did not end");
        };
        assert!(is_cancelled(&taken_over));
        assert_eq!((running.cancel(), ended.cancel()), (None, None));
    }

    #[test]
    fn node_that_is_not_listed_or_has_another_key_claims_nothing_and_uses_up_no_try() {
        let [a, b] = ["a", "b"].map(claimant);
        let nodes = NodeKeys::new([(a.node.clone(), key())]);
        let limited = record().for_nodes(nodes);
        let other = Sha256Hex::from_bytes(&[1; 32]);
        for (by, key) in [(&b, &key()), (&a, &other)] {
            assert_eq!(limited.claim(by, key, |_| Lease::Expired), Claim::NotListed);
        }
        // It takes over no run of a dead node either, and ends none whose tries are used up.
        let mut claimed = taken(limited.claim(&a, &key(), |_| Lease::Expired));
        claimed.epoch = 9;
        assert_eq!(
            claimed.claim(&b, &key(), |_| Lease::Expired),
            Claim::NotListed
        );
        // Controls: the listed node does both, and without a list each node claims.
        assert!(matches!(
            claimed.claim(&a, &key(), |_| Lease::Expired),
            Claim::End(_)
        ));
        taken(record().claim(&b, &other, |_| Lease::Expired));
    }

    #[test]
    fn record_of_protocol_1_has_no_list_of_nodes_and_a_listed_one_keeps_its_list() {
        let mut old = serde_json::to_value(record()).unwrap();
        old["protocol"] = 1.into();
        assert!(old.get("nodes").is_none());
        let read: Record = serde_json::from_value(old).unwrap();
        assert_eq!(read.nodes, None);
        let limited = record().for_nodes(NodeKeys::new([(claimant("a").node, key())]));
        let text = serde_json::to_string(&limited).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), limited);
    }

    #[test]
    fn record_of_a_newer_protocol_is_not_claimed() {
        let newer = Record {
            protocol: PROTOCOL + 1,
            ..record()
        };
        assert_eq!(
            newer.claim(&claimant("a"), &key(), |_| Lease::Expired),
            Claim::Newer
        );
    }
}
