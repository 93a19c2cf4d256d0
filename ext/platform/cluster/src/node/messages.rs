//! The thread of a node that takes messages.

use super::{Node, Notice};
use crate::bus::{Delivery, Pulled};
use crate::names::{Queue, SubmitterName};
use crate::schedule::Schedule;
use crate::work::{self, Worked, Worker};
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Longest wait for a message before the queues are asked again.
const IDLE: Duration = Duration::from_secs(1);
/// Pause after an error of the message server.
const PAUSE: Duration = Duration::from_secs(1);
/// Shortest and longest time for which a node does not ask a queue that has only runs of other nodes.
const REST: Duration = Duration::from_secs(2);
const MAX_REST: Duration = Duration::from_secs(30);

/// What the thread knows.
#[derive(Default)]
struct Intake {
    schedule: Schedule,
    /// Number of messages of each submitter that this node works on.
    running: BTreeMap<SubmitterName, u32>,
    /// Queues that are not asked before this time: the server could not serve them, or they have only
    /// runs of other nodes.
    resting: BTreeMap<Queue, Instant>,
    /// Queues whose messages since the last run were runs of other nodes.
    foreign: BTreeMap<Queue, Foreign>,
}

/// What a node knows of a queue with runs of other nodes.
#[derive(Default)]
struct Foreign {
    /// How often the node emptied the queue without a run for itself.
    rests: u32,
    /// Whether it gave a message back since then.
    gave_back: bool,
}

/// The work on a message has ended.
struct Ended {
    queue: Queue,
    got: Got,
}

/// What a message gave this node.
enum Got {
    Run,
    /// Another node must run it.
    ForeignRun,
    Nothing,
}

impl Intake {
    fn count(&self) -> u32 {
        self.running.values().sum()
    }

    fn started(&mut self, queue: &Queue) {
        *self.running.entry(queue.submitter.clone()).or_default() += 1;
    }

    fn ended(&mut self, ended: Ended) {
        let Ended { queue, got } = ended;
        if let Some(count) = self.running.get_mut(&queue.submitter) {
            *count -= 1;
        }
        if !matches!(got, Got::Run) {
            self.schedule.gave_no_run(&queue.submitter);
        }
        match got {
            Got::Run => drop(self.foreign.remove(&queue)),
            Got::ForeignRun => self.foreign.entry(queue).or_default().gave_back = true,
            Got::Nothing => {}
        }
    }

    /// The queue has no more messages. If this node gave one back, the queue rests, longer each time:
    /// a message comes again within a second at first, and the nodes that may run it must get it.
    fn emptied(&mut self, queue: Queue) {
        let Some(foreign) = self.foreign.get_mut(&queue) else {
            return;
        };
        if std::mem::take(&mut foreign.gave_back) {
            let rest = REST.saturating_mul(2_u32.saturating_pow(foreign.rests));
            foreign.rests = foreign.rests.saturating_add(1);
            self.resting
                .insert(queue, Instant::now() + rest.min(MAX_REST));
        }
    }
}

impl Node<'_> {
    pub(super) fn take_messages(&self) -> Result<(), ErrorBody> {
        let mut intake = Intake::default();
        let (sender, ends) = mpsc::channel::<Ended>();
        std::thread::scope(|scope| {
            while !self.stop.is_asked() {
                while let Ok(ended) = ends.try_recv() {
                    intake.ended(ended);
                }
                self.report_unreadable();
                if let Some(left) = self.rest().left(Instant::now()) {
                    self.stop.wait(left.min(PAUSE));
                    continue;
                }
                if intake.count() >= self.host.capacity {
                    if let Ok(ended) = ends.recv_timeout(PAUSE) {
                        intake.ended(ended);
                    }
                    continue;
                }
                let Some((queue, delivery)) = self.next_message(&mut intake) else {
                    continue;
                };
                intake.started(&queue);
                let sender = sender.clone();
                let spawned = std::thread::Builder::new()
                    .name("cluster-run".to_owned())
                    .spawn_scoped(scope, move || {
                        let got = self.work(&delivery);
                        // While the node drains, nothing reads this channel.
                        let _ = sender.send(Ended { queue, got });
                    });
                if let Err(error) = spawned {
                    return Err(ErrorBody::new(
                        ErrorCode::Internal,
                        format!("a thread for a run cannot be started: {error}"),
                    ));
                }
            }
            let running = self.held.count();
            (self.notice)(Notice::Draining { running });
            Ok(())
        })
    }

    /// Returns the next message and its queue; `None` if there is none yet. An unreadable message is a turn of its
    /// queue like any other one. A queue that fails is left out for a second or the time that the
    /// failed request took, so that the other queues get at least half of the time.
    fn next_message(&self, intake: &mut Intake) -> Option<(Queue, Arc<dyn Delivery>)> {
        let queues = self.queues();
        intake.resting.retain(|_, until| *until > Instant::now());
        for queue in intake.schedule.order(&queues, &intake.running) {
            if self.stop.is_asked() {
                return None;
            }
            if intake.resting.contains_key(&queue) {
                continue;
            }
            let asked = Instant::now();
            match self.bus.pull(&queue) {
                Ok(Pulled::Message(delivery)) => {
                    intake.schedule.served(&queue, &queues);
                    return Some((queue, delivery));
                }
                Ok(Pulled::Removed { problem }) => {
                    intake.schedule.served(&queue, &queues);
                    intake.schedule.gave_no_run(&queue.submitter);
                    self.note_unreadable(&queue.submitter, &problem);
                    return None;
                }
                Ok(Pulled::Empty) => intake.emptied(queue),
                Err(error) => {
                    let pause = asked.elapsed().max(PAUSE);
                    intake.resting.insert(queue, Instant::now() + pause);
                    self.trouble(error);
                }
            }
        }
        if let Err(error) = self.bus.wait_for_message(IDLE) {
            self.trouble(error);
            self.stop.wait(PAUSE);
        }
        None
    }

    /// Works on a message, and returns what it gave this node.
    fn work(&self, delivery: &Arc<dyn Delivery>) -> Got {
        let worker = Worker {
            bus: self.bus,
            me: &self.host.claimant,
            key: &self.host.key_id,
            held: &self.held,
            lease: &|claimant| self.lease(claimant),
            executor: self.executor,
            patience: self.times.patience,
            pause: work::PAUSE,
        };
        let worked = match worker.work(delivery) {
            Ok(worked) => worked,
            Err(error) => {
                self.trouble(error);
                return Got::Nothing;
            }
        };
        self.rest().note(Instant::now(), &worked);
        let key = delivery.key();
        if let Worked::Unreadable(problem) = &worked {
            self.note_unreadable(&key.submitter, problem);
            return Got::Nothing;
        }
        let got = match &worked {
            Worked::Ran(_) | Worked::Released(_) | Worked::Fenced => Got::Run,
            Worked::NotListed => Got::ForeignRun,
            Worked::Ended(_) | Worked::Nothing | Worked::Held | Worked::Unreadable(_) => {
                Got::Nothing
            }
        };
        (self.notice)(Notice::Worked {
            run: key.run.to_string(),
            worked,
        });
        got
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Capability, Priority};

    #[test]
    fn queue_with_runs_of_other_nodes_rests_longer_each_time_until_it_gives_a_run() {
        let queue = Queue {
            capability: Capability::new("default").unwrap(),
            priority: Priority::Normal,
            submitter: SubmitterName::new("team").unwrap(),
        };
        let mut intake = Intake::default();
        let rest = |intake: &mut Intake, got: Option<Got>| {
            let started = Instant::now();
            if let Some(got) = got {
                intake.started(&queue);
                intake.ended(Ended {
                    queue: queue.clone(),
                    got,
                });
            }
            intake.emptied(queue.clone());
            intake.resting.remove(&queue).map(|until| until - started)
        };
        // Controls: neither an empty queue nor a run makes a queue rest.
        assert_eq!(rest(&mut intake, None), None);
        assert_eq!(rest(&mut intake, Some(Got::Run)), None);
        for least in [2, 4, 8, 16, 30, 30] {
            let rest = rest(&mut intake, Some(Got::ForeignRun)).unwrap();
            assert!(rest >= Duration::from_secs(least), "{rest:?} < {least} s");
        }
        assert_eq!(rest(&mut intake, None), None);
        assert_eq!(rest(&mut intake, Some(Got::Run)), None);
        let first = rest(&mut intake, Some(Got::ForeignRun)).unwrap();
        assert!(first < MAX_REST, "{first:?}");
    }
}
