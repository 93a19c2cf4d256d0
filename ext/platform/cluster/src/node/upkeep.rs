//! The threads that keep a node and its runs alive.

use super::{Node, Stop};
use crate::bus::BusError;
use crate::held::{HeldRun, Interruption};
use crate::host::HostRecord;
use crate::lease::Lease;
use crate::names::{Queue, RunKey};
use crate::record::Versioned;
use crate::sweep::Sweeper;
use std::time::{Duration, Instant};
use wp_codebox_contracts::ErrorBody;

/// Interval at which the node tells the server that it still works on the message of a run, so that
/// the server does not deliver the message again.
const WORKING: Duration = Duration::from_secs(15);

/// What a heartbeat found.
enum Beaten {
    /// The heartbeat is stored.
    Stored,
    /// Another process has the name of this node.
    NameTaken,
}

impl Node<'_> {
    /// Sends heartbeats until `over`, and does nothing else. Fails if another process has taken the
    /// name.
    pub(super) fn send_heartbeats(&self, over: &Stop) -> Result<(), ErrorBody> {
        while !over.wait(self.times.beat) {
            match self.send_heartbeat() {
                Ok(Beaten::Stored) => {}
                Ok(Beaten::NameTaken) => {
                    self.stop.ask();
                    for (_, run) in self.held.list() {
                        run.interrupt(Interruption::Lost);
                    }
                    return Err(self.name_in_use());
                }
                Err(error) => self.trouble(error),
            }
        }
        Ok(())
    }

    /// Sends a heartbeat, unless the last one with this name is of another process. That process took
    /// the name while this one was stopped or cut off, and must not find a heartbeat of this one.
    fn send_heartbeat(&self) -> Result<Beaten, BusError> {
        let me = &self.host.claimant;
        let last = self.bus.host(&me.node)?;
        if last.is_some_and(|row| row.value.claimant.instance != me.instance) {
            return Ok(Beaten::NameTaken);
        }
        self.beat()?;
        Ok(Beaten::Stored)
    }

    /// Restarts the time limits of the messages of this node's runs, and interrupts runs that must
    /// end, until `over`. An error of one run does not keep the node from checking the others.
    pub(super) fn check_runs(&self, over: &Stop) {
        let mut answered = Instant::now();
        while !over.wait(self.times.beat) {
            let is_due = answered.elapsed() >= WORKING;
            if is_due {
                answered = Instant::now();
            }
            for (key, run) in self.held.list() {
                if is_due && let Err(error) = run.delivery.working() {
                    self.trouble(error);
                }
                if let Err(error) = self.check_run(&key, &run) {
                    self.trouble(error);
                }
            }
        }
    }

    /// Interrupts a run that was cancelled or that this process has lost.
    fn check_run(&self, key: &RunKey, run: &HeldRun) -> Result<(), BusError> {
        let Some(epoch) = run.epoch() else {
            return Ok(());
        };
        match self.bus.record(key)? {
            Some(present) if present.value.is_held_by(&self.host.claimant, epoch) => {
                if present.value.cancelled {
                    run.interrupt(Interruption::Cancelled);
                }
            }
            // Usually this process has just stored the end of the run; then the call has no
            // effect.
            Some(_) | None => run.interrupt(Interruption::Lost),
        }
        Ok(())
    }

    /// Observes the heartbeats of the nodes and puts lost messages back, until `over`. While it does
    /// the second, this node takes no other one for dead (see `lease`).
    pub(super) fn watch_cluster(&self, over: &Stop) {
        let mut swept = Instant::now();
        let mut sweeper = Sweeper::default();
        while !over.wait(self.times.beat) {
            let hosts = match self.bus.hosts() {
                Ok(hosts) => hosts,
                Err(error) => {
                    self.trouble(error);
                    continue;
                }
            };
            let expires = {
                let mut leases = self.leases();
                leases.observe(self.began.elapsed(), &hosts);
                leases.expires()
            };
            if expires || sweeper.is_behind() || swept.elapsed() >= self.times.sweep {
                swept = Instant::now();
                self.sweep(&mut sweeper, &hosts);
            }
        }
    }

    fn sweep(&self, sweeper: &mut Sweeper, hosts: &[Versioned<HostRecord>]) {
        // After an error the queues that are known already are swept.
        if let Err(error) = self.refresh_queues() {
            self.trouble(error);
        }
        let queues = self.queues_to_sweep(hosts);
        if queues.is_empty() {
            return;
        }
        let pass = sweeper.pass(self.bus, &queues, |claimant| self.lease(claimant));
        for error in pass.errors {
            self.trouble(error);
        }
        for (submitter, problem) in &pass.unreadable {
            self.note_unreadable(submitter, problem);
        }
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
