//! A node: a host that takes runs from the queues of its capabilities, as many at a time as it has
//! room for.
//!
//! One thread takes messages and starts a thread for each (`messages`). Three more threads keep the
//! node and its runs alive (`upkeep`): one sends heartbeats and does nothing else, so that nothing can
//! delay them; one checks the runs of this process; one observes the other nodes and puts lost messages
//! back.

mod messages;
mod upkeep;

use crate::bus::{Bus, BusError};
use crate::held::HeldRuns;
use crate::host::HostRecord;
use crate::lease::{Lease, Leases};
use crate::names::{Queue, SubmitterName};
use crate::record::{Claimant, Versioned};
use crate::rest::Rest;
use crate::unreadable::UnreadableCounts;
use crate::work::{Executor, Worked};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

pub use crate::unreadable::Unreadable;

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
    /// A submitter has stored messages or records that this node cannot read. Said at most every ten
    /// seconds.
    Unreadable(Unreadable),
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
    unreadable: Mutex<UnreadableCounts>,
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

struct AskOnDrop<'a>(&'a Stop);

impl Drop for AskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.ask();
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
            unreadable: Mutex::default(),
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
        self.beat()?;
        self.refresh_queues()?;
        (self.notice)(Notice::Joined);
        let over = Stop::default();
        let ended = std::thread::scope(|scope| {
            // Also ends the other threads if this one panics.
            let guard = AskOnDrop(&over);
            let heart = scope.spawn(|| self.send_heartbeats(&over));
            scope.spawn(|| self.check_runs(&over));
            scope.spawn(|| self.watch_cluster(&over));
            let worked = self.take_messages();
            drop(guard);
            let beaten = heart.join().unwrap_or(Ok(()));
            beaten.and(worked)
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

    /// Returns the last heartbeat with the name of this node.
    fn row_of_name(&self) -> Result<Option<Versioned<HostRecord>>, ErrorBody> {
        let row = self.bus.host(&self.host.claimant.node);
        row.map_err(ErrorBody::from)
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

    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self, error: BusError) {
        (self.notice)(Notice::Trouble(error));
    }

    /// Counts a value of a submitter that this node cannot read, and says so if it is time.
    fn note_unreadable(&self, submitter: &SubmitterName, problem: &BusError) {
        let mut counts = self.unreadable();
        counts.add(submitter, problem.to_string());
        drop(counts);
        self.report_unreadable();
    }

    /// Says which submitters have stored unreadable values, if it is time.
    fn report_unreadable(&self) {
        let due = self.unreadable().due(Instant::now());
        for row in due {
            (self.notice)(Notice::Unreadable(row));
        }
    }

    fn unreadable(&self) -> MutexGuard<'_, UnreadableCounts> {
        let counts = self.unreadable.lock();
        counts.unwrap_or_else(PoisonError::into_inner)
    }
}
