//! A model of the protocol for the checker: two nodes, one run, a server that delivers messages
//! again, hosts that die or stop for any time, and leases that can expire at any time. The
//! decisions are those of the crate.

use crate::memory::{TASK, record};
use stateright::{Checker, Model, Property};
use std::hash::{Hash, Hasher};
use wp_codebox_cluster::claim::{Claim, Finish};
use wp_codebox_cluster::lease::Lease;
use wp_codebox_cluster::names::NodeName;
use wp_codebox_cluster::record::{Claimant, End, Record, State};
use wp_codebox_contracts::{Outcome, RunId, Sha256Hex};

const NODES: usize = 2;
const MAX_TRIES: u32 = 2;
const MAX_DEATHS: u8 = 2;

/// What a node is about to do.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Idle,
    /// It has the message.
    Delivered,
    /// It read the record at this revision and decided.
    Decided(Box<Record>, u8),
    /// It runs the task in this epoch.
    Running(u64),
    /// Its result is stored.
    Stored(u64),
    /// It read the record at this revision to store the end of this epoch.
    Finishing(Box<Record>, u8, u64),
    /// The record is terminal; it removes the message.
    Acking,
}

#[derive(Debug, Clone, PartialEq)]
struct World {
    record: Record,
    revision: u8,
    /// Whether the message exists.
    message: bool,
    steps: [Step; NODES],
    /// Epochs whose results are stored.
    results: Vec<u64>,
    deaths: u8,
    /// First terminal record.
    first_end: Option<Record>,
    /// A rule was broken.
    broken: Option<&'static str>,
    fenced: bool,
}

impl Eq for World {}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // A record contains maps, which have no hash; its text is unique.
        format!("{self:?}").hash(state);
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Action {
    /// The server delivers the message to a node; also while another one has it.
    Deliver(usize),
    /// A node does its next step. The flag says whether the lease that it asks for is expired.
    Go(usize, bool),
    /// A node dies and starts again.
    Die(usize),
    /// The submitter cancels.
    Cancel,
}

struct Protocol;

fn claimant(node: usize) -> Claimant {
    Claimant {
        node: NodeName::new(&format!("node-{node}")).unwrap(),
        instance: "1".to_owned(),
    }
}

fn end(epoch: u64) -> End {
    let sha256: Sha256Hex = serde_json::from_value(TASK.into()).unwrap();
    End::Result {
        outcome: Outcome::Succeeded,
        sha256,
        bytes: epoch,
    }
}

impl World {
    /// Compare-and-set.
    fn store(&mut self, next: &Record, at: u8) -> bool {
        if self.revision != at {
            return false;
        }
        if let State::Terminal {
            end: End::Result { .. },
            ..
        } = next.state
            && !self.results.contains(&next.epoch)
        {
            self.broken = Some("the record names a result that is not stored");
        }
        self.record = next.clone();
        self.revision += 1;
        match (&self.first_end, next.is_terminal()) {
            (None, true) => self.first_end = Some(next.clone()),
            (Some(_), _) => self.broken = Some("a terminal record was changed"),
            (None, false) => {}
        }
        true
    }

    fn go(&mut self, node: usize, is_expired: bool) {
        let me = claimant(node);
        self.steps[node] = match self.steps[node].clone() {
            Step::Idle => Step::Idle,
            Step::Delivered => {
                let lease = |holder: &Claimant| match *holder == me || is_expired {
                    true => Lease::Expired,
                    false => Lease::Live,
                };
                match self.record.claim(&me, &Sha256Hex::zero(), lease) {
                    Claim::Take(next) | Claim::End(next) => Step::Decided(next, self.revision),
                    Claim::Ended => Step::Acking,
                    Claim::Held | Claim::NotListed | Claim::Newer => Step::Idle,
                }
            }
            Step::Decided(next, at) => match (self.store(&next, at), next.is_terminal()) {
                (false, _) => Step::Delivered,
                (true, true) => Step::Acking,
                (true, false) => Step::Running(next.epoch),
            },
            Step::Running(epoch) => {
                self.results.push(epoch);
                Step::Stored(epoch)
            }
            Step::Stored(epoch) => match self.record.finish(&me, epoch, &end(epoch)) {
                Finish::Store(next) => Step::Finishing(next, self.revision, epoch),
                Finish::Stored => Step::Acking,
                Finish::Fenced => {
                    self.fenced = true;
                    Step::Idle
                }
            },
            Step::Finishing(next, at, epoch) => match self.store(&next, at) {
                true => Step::Acking,
                false => Step::Stored(epoch),
            },
            Step::Acking => {
                if !self.record.is_terminal() {
                    self.broken = Some("a message was removed before its run had ended");
                }
                self.message = false;
                Step::Idle
            }
        };
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let run = RunId::from_digest(&Sha256Hex::zero());
        vec![World {
            record: record(&run, MAX_TRIES),
            revision: 0,
            message: true,
            steps: [Step::Idle, Step::Idle],
            results: Vec::new(),
            deaths: 0,
            first_end: None,
            broken: None,
            fenced: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for node in 0..NODES {
            if world.steps[node] == Step::Idle {
                if world.message {
                    actions.push(Action::Deliver(node));
                }
                continue;
            }
            actions.push(Action::Go(node, true));
            if world.steps[node] == Step::Delivered {
                actions.push(Action::Go(node, false));
            }
            if world.deaths < MAX_DEATHS {
                actions.push(Action::Die(node));
            }
        }
        if world.record.cancel().is_some() {
            actions.push(Action::Cancel);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Deliver(node) => next.steps[node] = Step::Delivered,
            Action::Go(node, is_expired) => next.go(node, is_expired),
            Action::Die(node) => {
                next.steps[node] = Step::Idle;
                next.deaths += 1;
            }
            Action::Cancel => {
                let cancelled = next.record.cancel()?;
                next.store(&cancelled, world.revision);
            }
        }
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no rule of the protocol is broken", |_, world: &World| {
                world.broken.is_none()
            }),
            Property::always("a run without a message has ended", |_, world: &World| {
                world.message || world.record.is_terminal()
            }),
            Property::always(
                "a run is claimed at most as often as allowed",
                |_, world: &World| world.record.epoch <= u64::from(MAX_TRIES),
            ),
            Property::sometimes("a late host is fenced", |_, world: &World| world.fenced),
            Property::sometimes("the tries of a run are used up", |_, world: &World| {
                matches!(&world.record.state, State::Terminal { end: End::Error { error }, .. }
                    if error.code == wp_codebox_contracts::ErrorCode::ClusterTriesExhausted)
            }),
            Property::sometimes(
                "a run ends with the result of its second claim",
                |_, world: &World| {
                    world.record.epoch == 2
                        && matches!(
                            &world.record.state,
                            State::Terminal {
                                end: End::Result { .. },
                                ..
                            }
                        )
                },
            ),
        ]
    }
}

#[test]
fn each_run_ends_once_in_every_order_of_steps_deaths_and_expired_leases() {
    let checker = Protocol.checker().threads(2).spawn_bfs().join();
    assert!(
        checker.unique_state_count() > 1_000,
        "{}",
        checker.unique_state_count()
    );
    checker.assert_properties();
}

/// From every state, a node that is left alone brings the run to its end.
#[test]
fn run_ends_from_every_reachable_state_when_one_node_works_undisturbed() {
    let mut waiting = Protocol.init_states();
    let mut seen = std::collections::HashSet::new();
    while let Some(world) = waiting.pop() {
        if !seen.insert(format!("{world:?}")) {
            continue;
        }
        let mut alone = world.clone();
        for _ in 0..40 {
            if alone.steps[0] == Step::Idle && alone.message {
                alone.steps[0] = Step::Delivered;
            }
            alone.go(0, true);
        }
        assert!(alone.record.is_terminal() && !alone.message, "{world:?}");
        let mut actions = Vec::new();
        Protocol.actions(&world, &mut actions);
        let next = actions
            .into_iter()
            .filter_map(|action| Protocol.next_state(&world, action));
        waiting.extend(next);
    }
    assert!(seen.len() > 1_000);
}
