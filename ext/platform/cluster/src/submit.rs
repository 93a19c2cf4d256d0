//! The side of the submitter: creates the record of a run, follows it, and asks for its end.

use crate::bus::{Bus, BusError};
use crate::names::RunKey;
use crate::record::{Claimant, Record, State, Versioned};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode};

use crate::trust::NodeKeys;

/// Longest wait of a thread for a change or an event, before it checks whether it is still needed.
const SLICE: Duration = Duration::from_secs(1);
/// Pause before a request to a server that did not answer is repeated.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether a submission made a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// The submission created the run.
    Created,
    /// The run existed already, with the same task.
    Existing,
}

/// What a follower of a run sees.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// The run waits for a node.
    Queued,
    /// A node runs it.
    Claimed {
        /// The process.
        by: Claimant,
        /// Number of the claim.
        epoch: u64,
    },
    /// An event of the run. Events may be lost.
    Event(Vec<u8>),
    /// Nothing, for about a second.
    Nothing,
    /// The message server does not answer. The run goes on meanwhile.
    Trouble(BusError),
}

/// Fails if none of the listed nodes announces the listed key, but one announces another key: then no
/// node would claim the run. Nodes without a heartbeat may come later.
///
/// # Errors
/// `wp_codebox_cluster_node_untrusted`, and those of the message server.
pub fn check_nodes(bus: &dyn Bus, nodes: &NodeKeys) -> Result<(), ErrorBody> {
    let mut untrusted = None;
    for node in nodes.names() {
        let Some(host) = bus.host(node)? else {
            continue;
        };
        match nodes.check(node, &host.value.key_id) {
            Ok(()) => return Ok(()),
            Err(error) => untrusted = untrusted.or(Some(error)),
        }
    }
    untrusted.map_or(Ok(()), |error| Err(error.body()))
}

/// Creates the run of a record and puts its message into its queue. The objects of the task must be
/// stored. Between the two steps, `confirm` stores the objects again that a collection has removed
/// meanwhile. Repeating a submission that failed is safe. A run that is refused leaves no record.
///
/// # Errors
/// `wp_codebox_cluster_conflict` if the key stands for a run with another task; those of `confirm` and
/// of the message server. After `wp_codebox_cluster_unreachable` the run may exist.
pub fn submit(
    bus: &dyn Bus,
    record: &Record,
    confirm: &mut dyn FnMut() -> Result<(), ErrorBody>,
) -> Result<Submitted, ErrorBody> {
    let created = match bus.create_record(record) {
        Ok(revision) => Some(revision),
        Err(BusError::Changed) => {
            let present = bus.record(&record.key)?;
            let Some(present) = present else {
                return Err(BusError::Changed.body());
            };
            if present.value.task != record.task {
                return Err(ErrorBody::new(
                    ErrorCode::ClusterConflict,
                    format!(
                        "the idempotency key belongs to the run {} with another task",
                        record.key.run
                    ),
                )
                .hint("use a new key for a new task"));
            }
            if present.value.state != State::Queued {
                return Ok(Submitted::Existing);
            }
            None
        }
        Err(error) => return Err(error.body()),
    };
    let id = format!("{}.0", record.key.run);
    let publish = || {
        let published = bus.publish(&record.queue, &record.key, &id);
        published.map_err(ErrorBody::from)
    };
    match (confirm().and_then(|()| publish()), created) {
        (Ok(()), Some(_)) => Ok(Submitted::Created),
        (Ok(()), None) => Ok(Submitted::Existing),
        (Err(error), Some(revision)) if error.code != ErrorCode::ClusterUnreachable => {
            // If the record stayed, a node would later put the message into the queue and run the
            // task, although its submitter was told that it does not run.
            let _ = bus.remove_record(&record.key, revision);
            Err(error)
        }
        (Err(error), _) => Err(error),
    }
}

/// Cancels a run. A node that has the run ends it and stores what the run has done.
///
/// # Errors
/// Those of the message server; [`BusError::Missing`] if there is no such run.
pub fn cancel(bus: &dyn Bus, key: &RunKey) -> Result<(), BusError> {
    loop {
        let Some(present) = bus.record(key)? else {
            return Err(BusError::Missing {
                what: format!("run {}", key.run),
            });
        };
        let Some(next) = present.value.cancel() else {
            return Ok(());
        };
        match bus.update_record(&next, present.revision) {
            Err(BusError::Changed) => {}
            other => return other.map(|_| ()),
        }
    }
}

enum Heard {
    Record(Box<Versioned<Record>>),
    Event(Vec<u8>),
    Trouble(BusError),
}

/// Follows a run to its end and returns its last record. `cancelled` is called once a second; when
/// it returns true, the run is cancelled. `seen` is called at least once a second. A server that
/// does not answer is asked again for at most `patience`.
///
/// # Errors
/// The server did not answer for too long, or the record is gone.
pub fn follow(
    bus: &Arc<dyn Bus>,
    key: &RunKey,
    patience: Duration,
    cancelled: &dyn Fn() -> bool,
    seen: &mut dyn FnMut(Seen),
) -> Result<Record, BusError> {
    let (sender, heard) = mpsc::channel();
    let records = (Arc::clone(bus), key.clone(), sender.clone());
    std::thread::spawn(move || watch_record(&records.0, &records.1, &records.2));
    let events = (Arc::clone(bus), key.clone(), sender);
    std::thread::spawn(move || watch_events(&events.0, &events.1, &events.2));
    let mut asked = false;
    let mut answered = Instant::now();
    let mut last = None;
    loop {
        if !asked && cancelled() {
            asked = cancel(bus.as_ref(), key).is_ok();
        }
        match heard.recv_timeout(SLICE) {
            Ok(Heard::Record(row)) => {
                answered = Instant::now();
                let now = match &row.value.state {
                    State::Terminal { by, .. } => {
                        // The run may have been claimed and ended between two reads.
                        let epoch = row.value.epoch;
                        let claim = by.clone().map(|by| Seen::Claimed { by, epoch });
                        if let Some(claim) = claim.filter(|claim| last.as_ref() != Some(claim)) {
                            seen(claim);
                        }
                        return Ok(row.value);
                    }
                    State::Queued => Seen::Queued,
                    State::Claimed { by } => Seen::Claimed {
                        by: by.clone(),
                        epoch: row.value.epoch,
                    },
                };
                if last.as_ref() == Some(&now) {
                    seen(Seen::Nothing);
                } else {
                    last = Some(now.clone());
                    seen(now);
                }
            }
            Ok(Heard::Event(event)) if event.is_empty() => seen(Seen::Nothing),
            Ok(Heard::Event(event)) => seen(Seen::Event(event)),
            Ok(Heard::Trouble(error)) => {
                let is_over = match error {
                    BusError::Unreachable { .. } => answered.elapsed() >= patience,
                    _ => true,
                };
                if is_over {
                    return Err(error);
                }
                seen(Seen::Trouble(error));
            }
            Err(_) => seen(Seen::Nothing),
        }
    }
}

/// Sends each value of the record until the receiver is dropped.
fn watch_record(bus: &Arc<dyn Bus>, key: &RunKey, to: &mpsc::Sender<Heard>) {
    loop {
        let ended = bus.watch(key).and_then(|mut watch| {
            loop {
                if let Some(row) = watch.next(SLICE)? {
                    let is_terminal = row.value.is_terminal();
                    if to.send(Heard::Record(Box::new(row))).is_err() || is_terminal {
                        return Ok(());
                    }
                } else if let Some(row) = bus.record(key)? {
                    // The server answers, so the follower's patience begins again.
                    if to.send(Heard::Record(Box::new(row))).is_err() {
                        return Ok(());
                    }
                }
            }
        });
        match ended {
            Ok(()) => return,
            Err(error) => {
                if to.send(Heard::Trouble(error)).is_err() {
                    return;
                }
            }
        }
        std::thread::sleep(PAUSE);
    }
}

fn watch_events(bus: &Arc<dyn Bus>, key: &RunKey, to: &mpsc::Sender<Heard>) {
    // Events are a convenience: without them the record still tells the end.
    let Ok(mut events) = bus.follow(key) else {
        return;
    };
    while let Ok(event) = events.next(SLICE) {
        let Some(event) = event else {
            // Sending an empty event fails if the receiver is gone.
            if to.send(Heard::Event(Vec::new())).is_err() {
                return;
            }
            continue;
        };
        if to.send(Heard::Event(event)).is_err() {
            return;
        }
    }
}
