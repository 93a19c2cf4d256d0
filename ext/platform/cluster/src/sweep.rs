//! Looks for runs whose message is lost: the node of the run is dead, its submitter died before it
//! could put the message into the queue, or an operator removed the message.

use crate::bus::{Bus, BusError};
use crate::lease::Lease;
use crate::names::{Queue, RunKey, SubmitterName};
use crate::record::{Claimant, PROTOCOL, Record, Revision, State, new_instance};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// Largest number of changes that a pass reads of one submitter, so that the pass soon comes to the
/// other submitters.
const AT_ONCE: u64 = 8 * 1024;
/// Largest number of messages that a pass puts into the queues of one submitter, for the same reason.
const PUBLISHED_AT_ONCE: usize = 2 * 1024;

/// What one process knows of the records. It reads each change once, so the cost of a pass grows with
/// the runs that changed and those that have not ended, not with all records.
#[derive(Debug, Default)]
pub struct Sweeper {
    submitters: BTreeMap<SubmitterName, Submitter>,
}

/// What one process knows of the records of a submitter.
#[derive(Debug, Default)]
struct Submitter {
    read: Revision,
    open: BTreeMap<RunKey, Record>,
    /// Whether there are changes that the last pass did not read.
    is_behind: bool,
    /// Last run that the last pass handled, if it did not come to the end of `open`.
    handled: Option<RunKey>,
}

/// What a pass did.
#[derive(Debug, Default)]
pub struct Pass {
    /// Number of messages that it put into queues.
    pub published: usize,
    /// Why it left out a queue or a submitter.
    pub errors: Vec<BusError>,
    /// Records that changed and cannot be read: a node does not run them and puts no message into
    /// the queues that they name.
    pub unreadable: Vec<(SubmitterName, BusError)>,
}

impl Sweeper {
    /// Returns whether the last pass left out changes or runs, so the next one is due.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let mut submitters = self.submitters.values();
        submitters.any(|submitter| submitter.is_behind || submitter.handled.is_some())
    }

    /// Puts a message into the queue of each run that needs one. A second message of a run does no
    /// harm. A submitter whose changes the pass did not read completely gets none. An error of one
    /// queue or submitter does not keep the pass from the others.
    pub fn pass(
        &mut self,
        bus: &dyn Bus,
        queues: &[Queue],
        lease: impl Fn(&Claimant) -> Lease,
    ) -> Pass {
        let mut pass = Pass::default();
        // The queues are checked before the records are read: a message that comes in between
        // belongs to a later record and must not hide that an earlier record lost its message.
        let mut is_empty: BTreeMap<&Queue, bool> = BTreeMap::new();
        for queue in queues {
            match bus.is_empty(queue) {
                Ok(empty) => drop(is_empty.insert(queue, empty)),
                Err(error) => pass.errors.push(error),
            }
        }
        let names: BTreeSet<&SubmitterName> =
            is_empty.keys().map(|queue| &queue.submitter).collect();
        for name in names {
            let submitter = self.submitters.entry(name.clone()).or_default();
            match submitter.read(bus, name, &mut pass) {
                Ok(()) if submitter.is_behind => {}
                Ok(()) => submitter.publish(bus, &mut is_empty, &lease, &mut pass),
                Err(error) => pass.errors.push(error),
            }
        }
        pass
    }
}

impl Submitter {
    /// Reads what changed since the last pass.
    fn read(
        &mut self,
        bus: &dyn Bus,
        name: &SubmitterName,
        pass: &mut Pass,
    ) -> Result<(), BusError> {
        let changed = bus.changed_records(name, self.read, AT_ONCE)?;
        self.is_behind = changed.is_partial;
        self.read = changed.until;
        for row in changed.records {
            if row.value.is_terminal() {
                self.open.remove(&row.value.key);
            } else {
                self.open.insert(row.value.key.clone(), row.value);
            }
        }
        let unreadable = changed.unreadable.into_iter();
        pass.unreadable
            .extend(unreadable.map(|(_, error)| (name.clone(), error)));
        Ok(())
    }

    /// Puts a message into the queue of each run that needs one, from where the last pass stopped.
    /// After an error of a queue, its other runs wait for the next pass.
    fn publish(
        &mut self,
        bus: &dyn Bus,
        is_empty: &mut BTreeMap<&Queue, bool>,
        lease: impl Fn(&Claimant) -> Lease,
        pass: &mut Pass,
    ) {
        let from = self.handled.take().map_or(Unbounded, Excluded);
        let (mut published, mut removed) = (0, Vec::new());
        for (key, record) in self.open.range((from, Unbounded)) {
            let Some(empty) = is_empty.get(&record.queue) else {
                continue;
            };
            match replace_message(bus, record, *empty, &lease) {
                Ok(Replaced::NotNeeded) => {}
                Ok(Replaced::Published) => published += 1,
                Ok(Replaced::Removed) => removed.push(key.clone()),
                Err(error) => {
                    is_empty.remove(&record.queue);
                    pass.errors.push(error);
                }
            }
            if published == PUBLISHED_AT_ONCE {
                self.handled = Some(key.clone());
                break;
            }
        }
        for key in removed {
            self.open.remove(&key);
        }
        pass.published += published;
    }
}

/// What a pass did for one run.
enum Replaced {
    /// The run needs no message.
    NotNeeded,
    /// A message is in its queue.
    Published,
    /// The record was removed, or replaced by one that cannot be read.
    Removed,
}

/// Puts a message into the queue of a run if the run needs one.
fn replace_message(
    bus: &dyn Bus,
    record: &Record,
    is_empty: bool,
    lease: impl Fn(&Claimant) -> Lease,
) -> Result<Replaced, BusError> {
    let Some(id) = missing_message(record, is_empty, lease)? else {
        return Ok(Replaced::NotNeeded);
    };
    // The changes that a process reads do not contain removals.
    match bus.record(&record.key) {
        Ok(Some(_)) => {}
        Ok(None) | Err(BusError::Unreadable { .. }) => return Ok(Replaced::Removed),
        Err(error) => return Err(error),
    }
    bus.publish(&record.queue, &record.key, &id)?;
    Ok(Replaced::Published)
}

/// Returns the id of the message that a run needs, if it needs one. `is_empty` tells whether its queue
/// has no message at all.
fn missing_message(
    record: &Record,
    is_empty: bool,
    lease: impl Fn(&Claimant) -> Lease,
) -> Result<Option<String>, BusError> {
    let run = &record.key.run;
    if record.protocol > PROTOCOL {
        return Ok(None);
    }
    Ok(match &record.state {
        State::Terminal { .. } => None,
        State::Claimed { by } if lease(by) == Lease::Live => None,
        // The server delivers the message of the dead node again only after the time limit for its
        // answer. Until then one more message is enough, so all passes give it the same id.
        State::Claimed { .. } if !is_empty => Some(format!("{run}.{}.dead", record.epoch)),
        State::Queued if !is_empty => None,
        // The message of an earlier pass may be lost too, so each pass uses a new id.
        State::Claimed { .. } | State::Queued => {
            let random = new_instance().map_err(|error| BusError::Unreachable {
                detail: error.message,
            })?;
            Some(format!("{run}.{random}"))
        }
    })
}
