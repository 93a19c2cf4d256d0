//! Looks for runs whose message is lost: the node of the run is dead, its submitter died before it
//! could put the message into the queue, or an operator removed the message.

use crate::bus::{Bus, BusError};
use crate::lease::Lease;
use crate::names::{Queue, RunKey, SubmitterName};
use crate::record::{Claimant, PROTOCOL, Record, Revision, State, new_instance};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of changes that a pass reads of one submitter. The limit keeps a pass short,
/// because the node sends no heartbeat during it.
const AT_ONCE: u64 = 8 * 1024;

/// What one process knows of the records. It reads each change once, so the cost of a pass grows with
/// the runs that changed and those that have not ended, not with all records.
#[derive(Debug, Default)]
pub struct Sweeper {
    read: BTreeMap<SubmitterName, Revision>,
    open: BTreeMap<RunKey, Record>,
    is_behind: bool,
}

impl Sweeper {
    /// Returns whether there are changes that the last pass did not read, so the next one is due.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Puts a message into the queue of each run that needs one, and returns the number of messages.
    /// A second message of a run does no harm. A pass that did not read all changes puts none.
    ///
    /// # Errors
    /// Those of the message server.
    pub fn pass(
        &mut self,
        bus: &dyn Bus,
        queues: &[Queue],
        lease: impl Fn(&Claimant) -> Lease,
    ) -> Result<u64, BusError> {
        // The queues are checked before the records are read: a message that comes in between
        // belongs to a later record and must not hide that an earlier record lost its message.
        let mut is_empty: BTreeMap<&Queue, bool> = BTreeMap::new();
        for queue in queues {
            is_empty.insert(queue, bus.is_empty(queue)?);
        }
        let submitters: BTreeSet<&SubmitterName> =
            queues.iter().map(|queue| &queue.submitter).collect();
        self.is_behind = false;
        for submitter in submitters {
            self.read(bus, submitter)?;
        }
        if self.is_behind {
            return Ok(0);
        }
        let mut published = 0;
        let mut removed = Vec::new();
        for (key, record) in &self.open {
            let Some(is_empty) = is_empty.get(&record.queue) else {
                continue;
            };
            let Some(id) = missing_message(record, *is_empty, &lease)? else {
                continue;
            };
            // The changes that this process reads do not contain removals.
            if bus.record(key)?.is_none() {
                removed.push(key.clone());
                continue;
            }
            bus.publish(&record.queue, key, &id)?;
            published += 1;
        }
        for key in removed {
            self.open.remove(&key);
        }
        Ok(published)
    }

    /// Reads what changed since the last pass.
    fn read(&mut self, bus: &dyn Bus, of: &SubmitterName) -> Result<(), BusError> {
        let after = self.read.get(of).copied().unwrap_or(Revision(0));
        let changed = bus.changed_records(of, after, AT_ONCE)?;
        self.is_behind |= changed.is_partial;
        for row in changed.records {
            if row.value.is_terminal() {
                self.open.remove(&row.value.key);
            } else {
                self.open.insert(row.value.key.clone(), row.value);
            }
        }
        self.read.insert(of.clone(), changed.until);
        Ok(())
    }
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
