//! One message of a queue, from its delivery to its end: claim, run, store the end, remove the
//! message. A process may die between any two of these steps; the next one that gets the message
//! goes on from the record.

use crate::bus::{Bus, BusError, Delivery};
use crate::claim::{Claim, Finish};
use crate::held::{HeldRun, HeldRuns};
use crate::lease::Lease;
use crate::record::{Claimant, End, Record};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, Sha256Hex};

/// Time after which the message of a run that another process has is delivered again.
const HELD_RETRY: Duration = Duration::from_secs(5);
/// Time after which a message whose record a newer program wrote is delivered again.
const NEWER_RETRY: Duration = Duration::from_secs(30);
/// Time after which the message of a run that this node may not claim is delivered again, and the
/// number of deliveries after which the time grows by as much, up to `NEWER_RETRY`. The node leaves
/// the queue to the others meanwhile.
const NOT_LISTED_RETRY: Duration = Duration::from_secs(1);
const NOT_LISTED_DELIVERIES: u64 = 8;
/// Longest time after which a message whose record cannot be read is delivered again. The time grows
/// with each delivery, so that a submitter with many such records costs the nodes little.
const UNREADABLE_RETRY: Duration = Duration::from_secs(600);
/// Deliveries after which a message without a record is removed. A record is stored before its
/// message is, and removed after the run has ended.
const DELIVERIES_WITHOUT_RECORD: u64 = 5;
/// Pause before a node repeats a request to a server that did not answer.
pub const PAUSE: Duration = Duration::from_millis(500);

/// Runs tasks.
pub trait Executor: Send + Sync {
    /// Runs the task of a record that this process has claimed, and stores its result as an object
    /// before it returns. `held` tells when the run must end early.
    ///
    /// # Errors
    /// The reason for which this host cannot run the task. Another one may try.
    fn execute(&self, record: &Record, held: &HeldRun) -> Result<End, ErrorBody>;
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Worked {
    /// This process ran the task and stored this end.
    Ran(End),
    /// The end was stored without a run: cancelled, or no tries left.
    Ended(End),
    /// The run had ended, or its record is gone.
    Nothing,
    /// Another process has the run.
    Held,
    /// The submitter does not take results of this node, so another one must run the task.
    NotListed,
    /// This program cannot read the record. Its message is given back, because a newer program may.
    Unreadable(BusError),
    /// This host gave the run up with this reason.
    Released(ErrorBody),
    /// Another process claimed the run meanwhile. The result is kept as evidence.
    Fenced,
}

/// What one process needs for its messages.
pub struct Worker<'a> {
    /// The message server.
    pub bus: &'a dyn Bus,
    /// This process.
    pub me: &'a Claimant,
    /// Id of the key with which this node signs.
    pub key: &'a Sha256Hex,
    /// The runs that this process holds.
    pub held: &'a HeldRuns,
    /// Whether another process is alive.
    pub lease: &'a (dyn Fn(&Claimant) -> Lease + Sync),
    /// Runs the tasks.
    pub executor: &'a dyn Executor,
    /// How long the process tries to store the end of a run while the server is full or silent.
    pub patience: Duration,
    /// Pause before each repetition.
    pub pause: Duration,
}

impl Worker<'_> {
    /// Works on one message to its end.
    ///
    /// # Errors
    /// The message server refused a step, or did not answer for too long. The message comes again,
    /// to this process or another one.
    pub fn work(&self, delivery: &Arc<dyn Delivery>) -> Result<Worked, BusError> {
        let Some(entry) = self.held.add(delivery) else {
            delivery.retry(HELD_RETRY)?;
            return Ok(Worked::Held);
        };
        let claimed = match self.claim(delivery.as_ref())? {
            Ok(claimed) => claimed,
            Err(worked) => return Ok(worked),
        };
        entry.run.claimed(claimed.epoch);
        let done = self.executor.execute(&claimed, &entry.run);
        let stored = self.settle(&claimed, |present| match &done {
            Ok(end) => present.finish(self.me, claimed.epoch, end),
            Err(error) => present.release(self.me, claimed.epoch, error),
        })?;
        match (stored, done) {
            (Some(record), done) if record.is_terminal() => {
                delivery.ack()?;
                Ok(match done {
                    Ok(end) => Worked::Ran(end),
                    Err(error) => Worked::Ended(End::Error { error }),
                })
            }
            (Some(_), Ok(end)) => Ok(Worked::Ran(end)),
            (Some(_), Err(error)) => {
                delivery.retry(self.pause)?;
                Ok(Worked::Released(error))
            }
            // The message is left alone: the process that has the run now has a later delivery of it.
            (None, _) => Ok(Worked::Fenced),
        }
    }

    /// Claims the run of the message. The inner error says what became of the message if there is
    /// nothing to run.
    fn claim(&self, delivery: &dyn Delivery) -> Result<Result<Record, Worked>, BusError> {
        loop {
            let present = match self.bus.record(delivery.key()) {
                Err(error @ BusError::Unreadable { .. }) => {
                    let times = u32::try_from(delivery.deliveries()).unwrap_or(u32::MAX);
                    delivery.retry(NEWER_RETRY.saturating_mul(times).min(UNREADABLE_RETRY))?;
                    return Ok(Err(Worked::Unreadable(error)));
                }
                read => read?,
            };
            let Some(present) = present else {
                if delivery.deliveries() < DELIVERIES_WITHOUT_RECORD {
                    delivery.retry(HELD_RETRY)?;
                } else {
                    delivery.ack()?;
                }
                return Ok(Err(Worked::Nothing));
            };
            // This process does not run the task, so a claim in its name comes from an update whose
            // answer was lost: claim again.
            let lease = |holder: &Claimant| match holder == self.me {
                true => Lease::Expired,
                false => (self.lease)(holder),
            };
            let next = match present.value.claim(self.me, self.key, lease) {
                Claim::Take(next) | Claim::End(next) => next,
                Claim::Ended => {
                    delivery.ack()?;
                    return Ok(Err(Worked::Nothing));
                }
                Claim::Held => {
                    delivery.retry(HELD_RETRY)?;
                    return Ok(Err(Worked::Held));
                }
                Claim::NotListed => {
                    let times = delivery.deliveries() / NOT_LISTED_DELIVERIES + 1;
                    let times = u32::try_from(times).unwrap_or(u32::MAX);
                    delivery.retry(NOT_LISTED_RETRY.saturating_mul(times).min(NEWER_RETRY))?;
                    return Ok(Err(Worked::NotListed));
                }
                Claim::Newer => {
                    delivery.retry(NEWER_RETRY)?;
                    return Ok(Err(Worked::Held));
                }
            };
            match self.bus.update_record(&next, present.revision) {
                Ok(_) => {}
                Err(BusError::Changed) => continue,
                Err(error) => return Err(error),
            }
            return Ok(match next.state {
                crate::record::State::Terminal { ref end, .. } => {
                    let end = end.clone();
                    delivery.ack()?;
                    Err(Worked::Ended(end))
                }
                _ => Ok(*next),
            });
        }
    }

    /// Stores the record that `decide` makes of the present one; returns it, or `None` if another
    /// process has the run.
    fn settle(
        &self,
        claimed: &Record,
        decide: impl Fn(&Record) -> Finish,
    ) -> Result<Option<Record>, BusError> {
        let until = Instant::now() + self.patience;
        loop {
            let attempt = self.bus.record(&claimed.key).and_then(|present| {
                let Some(present) = present else {
                    return Ok(None);
                };
                match decide(&present.value) {
                    Finish::Store(next) => {
                        self.bus.update_record(&next, present.revision)?;
                        Ok(Some(*next))
                    }
                    Finish::Stored => Ok(Some(present.value)),
                    Finish::Fenced => Ok(None),
                }
            });
            match attempt {
                Err(BusError::Changed) => {}
                // The server may come back, and a full stream or disk may get room. Without the end, the
                // next claim would run the task again.
                Err(BusError::Unreachable { .. } | BusError::Full { .. })
                    if Instant::now() < until =>
                {
                    std::thread::sleep(self.pause);
                }
                other => return other,
            }
        }
    }
}
