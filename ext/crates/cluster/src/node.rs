//! A node: a host that takes runs from the queues of its capabilities, as many at a time as it has
//! room for.
//!
//! One thread takes messages and starts a thread for each; a second one sends the heartbeat, observes
//! the other nodes, looks after the runs of this process and puts lost messages back.

use crate::bus::{Bus, BusError, Delivery};
use crate::held::{HeldRuns, Interruption};
use crate::host::HostRecord;
use crate::lease::{Lease, Leases};
use crate::names::Queue;
use crate::record::{Claimant, Versioned};
use crate::rest::Rest;
use crate::schedule::Schedule;
use crate::sweep::Sweeper;
use crate::work::{self, Executor, Worked, Worker};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Longest wait for a message before the queues are asked again.
const IDLE: Duration = Duration::from_secs(1);
/// Pause after an error of the message server.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval at which the node tells the server that it still works on the message of a run, so that
/// the server does not deliver the message again.
const WORKING: Duration = Duration::from_secs(15);

/// Times of a node. The defaults are for production; tests use shorter ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Interval of heartbeats.
    pub beat: Duration,
    /// Time without a heartbeat after which other nodes take over.
    pub lease: Duration,
    /// Interval at which lost messages are looked for.
    pub sweep: Duration,
    /// How long the node tries to store the end of a run while the server is full or does not
    /// answer.
    pub patience: Duration,
    /// How long the node takes no runs after it gave one up; twice as long after each further one, and
    /// at most a minute. A node with a full disk would otherwise use up the tries of every task.
    pub rest: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(1),
            lease: Duration::from_secs(10),
            sweep: Duration::from_secs(10),
            patience: Duration::from_secs(600),
            rest: Duration::from_secs(2),
        }
    }
}

/// What a node says to the operator.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// The node takes runs.
    Joined,
    /// A message was worked on.
    Worked {
        /// Id of the run.
        run: String,
        /// What became of the message.
        worked: Worked,
    },
    /// The message server refused something or did not answer.
    Trouble(BusError),
    /// The node takes no new runs.
    Draining {
        /// Number of runs that it still has.
        running: usize,
    },
}

/// A node.
pub struct Node<'a> {
    bus: &'a dyn Bus,
    host: HostRecord,
    times: Times,
    executor: &'a dyn Executor,
    notice: &'a (dyn Fn(Notice) + Sync),
    began: Instant,
    leases: Mutex<Leases>,
    held: HeldRuns,
    queues: Mutex<Vec<Queue>>,
    beats: AtomicU64,
    rest: Mutex<Rest>,
    stop: &'a Stop,
}

/// Tells a node to take no new runs and to end after its last one.
#[derive(Debug, Default)]
pub struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Asks for the end.
    pub fn ask(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Returns whether the node was told to end.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the node is told to end, or for this time; returns whether it was told to end.
    fn wait(&self, time: Duration) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(asked, time, |asked| !*asked);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl<'a> Node<'a> {
    /// Returns a node that has not joined yet. `host.beat` and `host.running` are overwritten.
    pub fn new(
        bus: &'a dyn Bus,
        host: HostRecord,
        times: Times,
        executor: &'a dyn Executor,
        notice: &'a (dyn Fn(Notice) + Sync),
        stop: &'a Stop,
    ) -> Self {
        Self {
            bus,
            host,
            times,
            executor,
            notice,
            began: Instant::now(),
            leases: Mutex::new(Leases::new(times.lease)),
            held: HeldRuns::default(),
            queues: Mutex::default(),
            beats: AtomicU64::new(0),
            rest: Mutex::new(Rest::new(times.rest)),
            stop,
        }
    }

    /// Joins the cluster and works until it is told to stop and its last run has ended. `previous`
    /// is the instance id of an earlier process of this node that is known to be dead, if any.
    ///
    /// # Errors
    /// The message server cannot be used, or another process has the name.
    pub fn run(&self, previous: Option<&str>) -> Result<(), ErrorBody> {
        self.take_name(previous)?;
        self.beat().map_err(|e| e.body())?;
        self.refresh_queues().map_err(|e| e.body())?;
        (self.notice)(Notice::Joined);
        // The pulse ends when the sender is dropped.
        let (working, over) = mpsc::channel::<()>();
        let ended = std::thread::scope(|scope| {
            let pulse = scope.spawn(move || self.pulse(&over));
            let worked = self.take_messages();
            drop(working);
            let pulsed = pulse.join().unwrap_or(Ok(()));
            pulsed.and(worked)
        });
        if ended.is_ok() {
            let _ = self.bus.remove_host(&self.host.claimant.node);
        }
        ended
    }

    fn lease(&self, claimant: &Claimant) -> Lease {
        self.leases().lease(self.began.elapsed(), claimant)
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queues(&self) -> Vec<Queue> {
        self.queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits until no other living process has the name of this node.
    fn take_name(&self, previous: Option<&str>) -> Result<(), ErrorBody> {
        let first = self.row_of_name()?;
        let Some(first) =
            first.filter(|row| Some(row.value.claimant.instance.as_str()) != previous)
        else {
            return Ok(());
        };
        let until = Instant::now() + self.times.lease;
        while Instant::now() < until && !self.stop.wait(self.times.beat) {
            match self.row_of_name()? {
                None => return Ok(()),
                Some(row) if row.revision != first.revision => return Err(self.name_in_use()),
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn row_of_name(&self) -> Result<Option<Versioned<HostRecord>>, ErrorBody> {
        let hosts = self.bus.hosts().map_err(|e| e.body())?;
        let is_mine =
            |row: &Versioned<HostRecord>| row.value.claimant.node == self.host.claimant.node;
        Ok(hosts.into_iter().find(is_mine))
    }

    fn name_in_use(&self) -> ErrorBody {
        let name = &self.host.claimant.node;
        ErrorBody::new(
            ErrorCode::ClusterConflict,
            format!("another process already runs as the node {name}"),
        )
        .hint("give each node a name of its own")
    }

    fn beat(&self) -> Result<(), BusError> {
        let host = HostRecord {
            beat: self.beats.fetch_add(1, Ordering::Relaxed),
            running: u32::try_from(self.held.count()).unwrap_or(u32::MAX),
            draining: self.stop.is_asked(),
            ..self.host.clone()
        };
        self.bus.beat(&host).map(|_| ())
    }

    fn refresh_queues(&self) -> Result<(), BusError> {
        let mut queues = self.bus.queues()?;
        queues.retain(|queue| self.host.capabilities.contains(&queue.capability));
        *self.queues.lock().unwrap_or_else(PoisonError::into_inner) = queues;
        Ok(())
    }

    // --- messages ------------------------------------------------------------------------------

    fn take_messages(&self) -> Result<(), ErrorBody> {
        let mut schedule = Schedule::default();
        let (ended, ends) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let mut running = 0;
            while !self.stop.is_asked() {
                while ends.try_recv().is_ok() {
                    running -= 1;
                }
                if let Some(left) = self.rest().left(Instant::now()) {
                    self.stop.wait(left.min(PAUSE));
                    continue;
                }
                if running >= self.host.capacity {
                    if ends.recv_timeout(PAUSE).is_ok() {
                        running -= 1;
                    }
                    continue;
                }
                let delivery = match self.next_message(&mut schedule) {
                    Ok(Some(delivery)) => delivery,
                    Ok(None) => continue,
                    Err(error) => {
                        (self.notice)(Notice::Trouble(error));
                        self.stop.wait(PAUSE);
                        continue;
                    }
                };
                running += 1;
                let ended = ended.clone();
                let spawned = std::thread::Builder::new()
                    .name("cluster-run".to_owned())
                    .spawn_scoped(scope, move || {
                        self.work(&delivery);
                        // While the node drains, nothing reads this channel.
                        let _ = ended.send(());
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

    fn next_message(&self, schedule: &mut Schedule) -> Result<Option<Arc<dyn Delivery>>, BusError> {
        let queues = self.queues();
        for queue in schedule.order(&queues) {
            if let Some(delivery) = self.bus.pull(&queue)? {
                schedule.served(&queue, &queues);
                return Ok(Some(delivery));
            }
        }
        self.bus.wait_for_message(IDLE)?;
        Ok(None)
    }

    fn work(&self, delivery: &Arc<dyn Delivery>) {
        let worker = Worker {
            bus: self.bus,
            me: &self.host.claimant,
            held: &self.held,
            lease: &|claimant| self.lease(claimant),
            executor: self.executor,
            patience: self.times.patience,
            pause: work::PAUSE,
        };
        match worker.work(delivery) {
            Ok(worked) => {
                self.rest().note(Instant::now(), &worked);
                (self.notice)(Notice::Worked {
                    run: delivery.key().run.to_string(),
                    worked,
                });
            }
            Err(error) => (self.notice)(Notice::Trouble(error)),
        }
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // --- pulse ---------------------------------------------------------------------------------

    /// Repeats [`Self::round`] until the other end of `over` is dropped. Fails if another process
    /// has taken the name.
    fn pulse(&self, over: &mpsc::Receiver<()>) -> Result<(), ErrorBody> {
        let (mut swept, mut answered) = (Instant::now(), Instant::now());
        let mut sweeper = Sweeper::default();
        while over.recv_timeout(self.times.beat) == Err(mpsc::RecvTimeoutError::Timeout) {
            match self.round(&mut swept, &mut answered, &mut sweeper) {
                Ok(true) => {}
                Ok(false) => {
                    self.stop.ask();
                    for (_, run) in self.held.list() {
                        run.interrupt(Interruption::Lost);
                    }
                    return Err(self.name_in_use());
                }
                Err(error) => (self.notice)(Notice::Trouble(error)),
            }
        }
        Ok(())
    }

    /// Reads the heartbeats of the nodes, sends one, restarts the time limits of the messages,
    /// interrupts runs that must end and sweeps the queues; false if another process has the name.
    fn round(
        &self,
        swept: &mut Instant,
        answered: &mut Instant,
        sweeper: &mut Sweeper,
    ) -> Result<bool, BusError> {
        let hosts = self.bus.hosts()?;
        self.leases().observe(self.began.elapsed(), &hosts);
        let me = &self.host.claimant;
        let other = |row: &&Versioned<HostRecord>| {
            row.value.claimant.node == me.node && row.value.claimant.instance != me.instance
        };
        if hosts.iter().find(other).is_some() {
            return Ok(false);
        }
        self.beat()?;
        let keep = answered.elapsed() >= WORKING;
        for (key, run) in self.held.list() {
            if keep {
                run.delivery.working()?;
            }
            let Some(epoch) = run.epoch() else { continue };
            match self.bus.record(&key)? {
                Some(present) if present.value.is_held_by(me, epoch) => {
                    if present.value.cancelled {
                        run.interrupt(Interruption::Cancelled);
                    }
                }
                // Usually this process has just stored the end of the run; then the call has no
                // effect.
                Some(_) | None => run.interrupt(Interruption::Lost),
            }
        }
        if keep {
            *answered = Instant::now();
        }
        let expires = self.leases().expires();
        if expires || sweeper.is_behind() || swept.elapsed() >= self.times.sweep {
            *swept = Instant::now();
            self.refresh_queues()?;
            let queues = self.queues_to_sweep(&hosts);
            if !queues.is_empty() {
                sweeper.pass(self.bus, &queues, |claimant| self.lease(claimant))?;
            }
        }
        Ok(true)
    }

    /// Returns the queues in which this node looks for lost messages: those that no living node with an
    /// earlier name serves. One node per queue is enough, and two do no harm.
    fn queues_to_sweep(&self, hosts: &[Versioned<HostRecord>]) -> Vec<Queue> {
        let me = &self.host.claimant;
        let before: Vec<&HostRecord> = hosts
            .iter()
            .map(|row| &row.value)
            .filter(|host| {
                host.claimant.node < me.node && self.lease(&host.claimant) == Lease::Live
            })
            .collect();
        let mut queues = self.queues();
        queues.retain(|queue| {
            let serves = |host: &&HostRecord| host.capabilities.contains(&queue.capability);
            !before.iter().any(serves)
        });
        queues
    }
}
