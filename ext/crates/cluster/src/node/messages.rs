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

/// What the thread knows.
#[derive(Default)]
struct Intake {
    schedule: Schedule,
    /// Number of messages of each submitter that this node works on.
    running: BTreeMap<SubmitterName, u32>,
    /// Queues that the server could not serve, with the time until which they are not asked again.
    failing: BTreeMap<Queue, Instant>,
}

/// The work on a message has ended.
struct Ended {
    submitter: SubmitterName,
    /// Whether the message gave this node a run.
    had_run: bool,
}

impl Intake {
    fn count(&self) -> u32 {
        self.running.values().sum()
    }

    fn started(&mut self, submitter: &SubmitterName) {
        *self.running.entry(submitter.clone()).or_default() += 1;
    }

    fn ended(&mut self, ended: &Ended) {
        if let Some(count) = self.running.get_mut(&ended.submitter) {
            *count -= 1;
        }
        if !ended.had_run {
            self.schedule.gave_no_run(&ended.submitter);
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
                    intake.ended(&ended);
                }
                self.report_unreadable();
                if let Some(left) = self.rest().left(Instant::now()) {
                    self.stop.wait(left.min(PAUSE));
                    continue;
                }
                if intake.count() >= self.host.capacity {
                    if let Ok(ended) = ends.recv_timeout(PAUSE) {
                        intake.ended(&ended);
                    }
                    continue;
                }
                let Some(delivery) = self.next_message(&mut intake) else {
                    continue;
                };
                let submitter = delivery.key().submitter.clone();
                intake.started(&submitter);
                let sender = sender.clone();
                let spawned = std::thread::Builder::new()
                    .name("cluster-run".to_owned())
                    .spawn_scoped(scope, move || {
                        let had_run = self.work(&delivery);
                        // While the node drains, nothing reads this channel.
                        let _ = sender.send(Ended { submitter, had_run });
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

    /// Returns the next message; `None` if there is none yet. An unreadable message is a turn of its
    /// queue like any other one. A queue that fails is left out for a second or the time that the
    /// failed request took, so that the other queues get at least half of the time.
    fn next_message(&self, intake: &mut Intake) -> Option<Arc<dyn Delivery>> {
        let queues = self.queues();
        intake.failing.retain(|_, until| *until > Instant::now());
        for queue in intake.schedule.order(&queues, &intake.running) {
            if self.stop.is_asked() {
                return None;
            }
            if intake.failing.contains_key(&queue) {
                continue;
            }
            let asked = Instant::now();
            match self.bus.pull(&queue) {
                Ok(Pulled::Message(delivery)) => {
                    intake.schedule.served(&queue, &queues);
                    return Some(delivery);
                }
                Ok(Pulled::Removed { problem }) => {
                    intake.schedule.served(&queue, &queues);
                    intake.schedule.gave_no_run(&queue.submitter);
                    self.note_unreadable(&queue.submitter, &problem);
                    return None;
                }
                Ok(Pulled::Empty) => {}
                Err(error) => {
                    let pause = asked.elapsed().max(PAUSE);
                    intake.failing.insert(queue, Instant::now() + pause);
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

    /// Works on a message, and returns whether it gave this node a run.
    fn work(&self, delivery: &Arc<dyn Delivery>) -> bool {
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
                return false;
            }
        };
        self.rest().note(Instant::now(), &worked);
        let key = delivery.key();
        if let Worked::Unreadable(problem) = &worked {
            self.note_unreadable(&key.submitter, problem);
            return false;
        }
        let had_run = match &worked {
            Worked::Ran(_) | Worked::Released(_) | Worked::Fenced => true,
            Worked::Ended(_)
            | Worked::Nothing
            | Worked::Held
            | Worked::NotListed
            | Worked::Unreadable(_) => false,
        };
        (self.notice)(Notice::Worked {
            run: key.run.to_string(),
            worked,
        });
        had_run
    }
}
