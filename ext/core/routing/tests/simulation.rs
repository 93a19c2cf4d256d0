//! Simulates a service with a fake clock: sandboxes arrive and end, hosts fail, drain and return.
//!
//! Every choice is checked against the state of the simulation, some also against the pure
//! decision. The large simulation is ignored by default and prints its measurements as JSON:
//! `cargo test -p wp-codebox-routing --test simulation -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers may panic.

mod fleet;

use fleet::{Random, architecture, capable, extension, host, region};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::time::Duration;
use wp_codebox_routing::{
    Capabilities, HostId, HostIndex, HostRecord, HostState, IsolationClass, NetworkNeed,
    PriceModel, RouteRequest, RouteStrategy, SandboxNeeds,
};

const REGIONS: [&str; 12] = [
    "eu-west-1",
    "eu-west-2",
    "eu-central-1",
    "eu-north-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
    "ap-south-1",
    "ap-east-1",
    "sa-east-1",
    "af-south-1",
];

/// Size of a simulation.
struct Scale {
    hosts: usize,
    sandboxes: usize,
    /// For each sandbox whose number is a multiple of this, the choice is compared with the
    /// decision over all hosts.
    compare_every: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End { sandbox: usize },
    Fail,
    Drain,
    Return { host: usize },
    Arrive,
}

/// Counts of what happened.
#[derive(Debug, Default)]
struct Counts {
    placed: usize,
    refused: usize,
    ended: usize,
    lost: usize,
    failures: usize,
    drains: usize,
    compared: usize,
    most_alive: usize,
}

struct Simulation {
    random: Random,
    index: HostIndex,
    ids: Vec<HostId>,
    number: HashMap<HostId, usize>,
    /// Sandboxes of each host.
    alive: Vec<HashSet<usize>>,
    /// Host of each living sandbox.
    place: HashMap<usize, usize>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    counts: Counts,
    choose: Vec<Duration>,
    update: Duration,
    pure: Vec<Duration>,
}

fn extensions() -> Vec<Capabilities> {
    let mut vm = capable("ext.vm-packer", PriceModel::SelfHosted);
    vm.isolation = IsolationClass::Microvm;
    let mut saas = capable("ext.daytona", PriceModel::Metered);
    saas.isolation = IsolationClass::Microvm;
    saas.architectures.push(architecture("aarch64"));
    let mut native = capable("native", PriceModel::SelfHosted);
    native.architectures.push(architecture("aarch64"));
    vec![
        native,
        vm,
        saas,
        capable("remote", PriceModel::SelfHosted),
        capable("ext.e2b", PriceModel::Metered),
    ]
}

fn record(random: &mut Random, number: usize) -> HostRecord {
    let id = host(&format!("host-{number:05}"));
    let name = random.of(&[
        "native",
        "native",
        "remote",
        "ext.vm-packer",
        "ext.daytona",
        "ext.e2b",
    ]);
    let mut record = HostRecord::new(id, extension(name), random.of(&[4, 8, 16, 32]));
    record.region = Some(region(random.of(&REGIONS)));
    record.architecture = Some(architecture("x86_64"));
    if name == "native" && random.one_in(1, 4) {
        record.architecture = Some(architecture("aarch64"));
    }
    record.latency_ms = Some(u32::try_from(random.below(200)).unwrap());
    record.price_per_hour = match name {
        "ext.daytona" | "ext.e2b" => Some(random.of(&[90, 120, 250, 400])),
        _ => None,
    };
    record
}

fn request(random: &mut Random, ids: &[HostId]) -> RouteRequest {
    let mut request = RouteRequest {
        policy: wp_codebox_routing::RoutePolicy::default(),
        needs: SandboxNeeds::new(IsolationClass::Container),
    };
    let route = &mut request.policy.route;
    route.strategy = random.of(&[
        RouteStrategy::PreferSelfHosted,
        RouteStrategy::PreferSelfHosted,
        RouteStrategy::LowestCost,
        RouteStrategy::LowestLatency,
    ]);
    if random.one_in(1, 2) {
        route.constraints.region = Some(region(random.of(&["eu", "us", "ap", "eu-west-1"])));
    }
    if random.one_in(1, 4) {
        route.constraints.max_cost_per_hour = Some(random.of(&[0, 100, 300]));
    }
    if random.one_in(1, 6) {
        route.constraints.require_isolation = Some(IsolationClass::Microvm);
    }
    if random.one_in(1, 5) {
        request.policy.placement.prefer = vec![random.of(ids), random.of(ids)];
    }
    if random.one_in(1, 3) {
        request.needs.network = NetworkNeed::Hosts;
    }
    request
}

impl Simulation {
    fn new(scale: &Scale, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut index = HostIndex::new();
        for row in extensions() {
            index.put_extension(row).unwrap();
        }
        let mut ids = Vec::new();
        for number in 0..scale.hosts {
            let record = record(&mut random, number);
            ids.push(record.id.clone());
            index.put_host(record).unwrap();
        }
        let number = ids.iter().cloned().zip(0..).collect();
        Self {
            random,
            index,
            number,
            alive: vec![HashSet::new(); ids.len()],
            ids,
            place: HashMap::new(),
            events: BinaryHeap::new(),
            order: 0,
            counts: Counts::default(),
            choose: Vec::with_capacity(scale.sandboxes),
            update: Duration::ZERO,
            pure: Vec::new(),
        }
    }

    /// Adds an event. Events of one time are handled in the order in which they were added.
    fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, event)));
    }

    fn run(&mut self, scale: &Scale) {
        let hour = 3_600_000;
        // At the mean lifetime of two hours, about two thirds of the capacity are in use.
        let capacity: u64 = self
            .index
            .hosts()
            .map(|host| u64::from(host.capacity))
            .sum();
        let pause = (2 * hour * 3 / (capacity * 2)).max(1);
        self.at(0, Event::Arrive);
        self.at(0, Event::Fail);
        self.at(0, Event::Drain);
        let mut arrived = 0;
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            match event {
                Event::Arrive => {
                    self.arrive(now, arrived, scale);
                    arrived += 1;
                    if arrived < scale.sandboxes {
                        let next = self.random.next() % (2 * pause + 1);
                        self.at(now + next, Event::Arrive);
                    }
                }
                Event::End { sandbox } => self.end(sandbox),
                // Hosts fail and drain as long as sandboxes arrive.
                Event::Fail | Event::Drain if arrived < scale.sandboxes => {
                    self.disturb(now, event);
                    let pause = scale.sandboxes as u64 * pause / 400;
                    self.at(now + pause.max(1), event);
                }
                Event::Fail | Event::Drain => {}
                Event::Return { host } => self.set(host, HostState::Ready),
            }
        }
    }

    fn arrive(&mut self, now: u64, sandbox: usize, scale: &Scale) {
        let request = request(&mut self.random, &self.ids);
        let started = processor_time();
        let choice = self.index.choose(&request);
        self.choose.push(processor_time() - started);
        if sandbox.is_multiple_of(scale.compare_every) {
            let started = processor_time();
            let decision = self.index.decide(&request);
            self.pure.push(processor_time() - started);
            assert_eq!(choice, decision.chosen, "sandbox {sandbox}");
            self.counts.compared += 1;
        }
        let Some(choice) = choice else {
            self.counts.refused += 1;
            return;
        };
        let before = self.index.host(&choice.host).unwrap();
        assert!(before.is_open(), "sandbox {sandbox}");
        let started = processor_time();
        self.index.occupy(&choice.host).unwrap();
        self.update += processor_time() - started;
        let host = self.number[&choice.host];
        self.alive[host].insert(sandbox);
        self.place.insert(sandbox, host);
        self.counts.placed += 1;
        self.counts.most_alive = self.counts.most_alive.max(self.place.len());
        let lifetime = 60_000 + self.random.next() % (4 * 3_600_000);
        self.at(now + lifetime, Event::End { sandbox });
    }

    fn end(&mut self, sandbox: usize) {
        // A sandbox that was lost with its host has ended already.
        if let Some(host) = self.place.remove(&sandbox) {
            self.alive[host].remove(&sandbox);
            let started = processor_time();
            self.index.release(&self.ids[host]).unwrap();
            self.update += processor_time() - started;
            self.counts.ended += 1;
        }
    }

    fn disturb(&mut self, now: u64, event: Event) {
        let host = self.random.below(self.ids.len());
        if event == Event::Fail {
            self.set(host, HostState::Down);
            self.counts.failures += 1;
            for sandbox in std::mem::take(&mut self.alive[host]) {
                self.place.remove(&sandbox);
                self.index.release(&self.ids[host]).unwrap();
                self.counts.lost += 1;
            }
        } else {
            self.set(host, HostState::Draining);
            self.counts.drains += 1;
        }
        self.at(now + 600_000, Event::Return { host });
    }

    fn set(&mut self, host: usize, state: HostState) {
        self.index.set_state(&self.ids[host], state).unwrap();
    }

    /// Checks that every sandbox is accounted for after the last event.
    fn check(&self, scale: &Scale) {
        let counts = &self.counts;
        assert_eq!(counts.placed + counts.refused, scale.sandboxes);
        assert_eq!(counts.placed, counts.ended + counts.lost);
        assert!(self.place.is_empty());
        for host in self.index.hosts() {
            assert_eq!(
                (host.used, host.state),
                (0, HostState::Ready),
                "{}",
                host.id
            );
        }
        assert!(
            counts.lost > 0 && counts.drains > 0 && counts.compared > 0,
            "{counts:?}"
        );
    }

    fn measurements(mut self, scale: &Scale, memory: [u64; 2]) -> Value {
        let nanos = |mut times: Vec<Duration>| {
            times.sort_unstable();
            let at = |part: usize| times[(times.len() - 1) * part / 1000].as_nanos();
            let sum: Duration = times.iter().sum();
            json!({"samples": times.len(), "mean": sum.as_nanos() / times.len() as u128,
                "p50": at(500), "p99": at(990), "p999": at(999), "max": at(1000)})
        };
        let choose = std::mem::take(&mut self.choose);
        let pure = std::mem::take(&mut self.pure);
        let updates = self.counts.placed + self.counts.ended;
        let counts = &self.counts;
        let rows = BTreeMap::from([
            ("placed", counts.placed),
            ("refused", counts.refused),
            ("ended", counts.ended),
            ("lost_with_host", counts.lost),
            ("host_failures", counts.failures),
            ("host_drains", counts.drains),
            ("compared_with_pure_decision", counts.compared),
            ("most_alive", counts.most_alive),
        ]);
        json!({
            "hosts": scale.hosts, "sandboxes": scale.sandboxes, "counts": rows,
            "index_choice_processor_nanoseconds": nanos(choose),
            "pure_decision_processor_nanoseconds": nanos(pure),
            "index_update_processor_nanoseconds_mean": self.update.as_nanos() / updates as u128,
            "resident_bytes_of_index_and_ids": memory[1].saturating_sub(memory[0]),
        })
    }
}

/// Returns the processor time that this thread has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

/// Returns the resident memory of this process in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let row = text
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = row.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[test]
fn each_simulated_sandbox_is_placed_or_refused_and_each_placed_one_ends_or_is_lost_with_its_host() {
    for seed in 0..3 {
        let scale = Scale {
            hosts: 60,
            sandboxes: 1500,
            compare_every: 1,
        };
        let mut simulation = Simulation::new(&scale, seed);
        simulation.run(&scale);
        simulation.check(&scale);
    }
}

#[test]
#[ignore = "measures: a million sandboxes on ten thousand hosts"]
fn each_of_a_million_sandboxes_on_ten_thousand_hosts_is_placed_or_refused() {
    let scale = Scale {
        hosts: 10_000,
        sandboxes: 1_000_000,
        compare_every: 5_000,
    };
    let before = resident();
    let mut simulation = Simulation::new(&scale, 20);
    let memory = [before, resident()];
    let started = processor_time();
    simulation.run(&scale);
    simulation.check(&scale);
    let mut row = simulation.measurements(&scale, memory);
    row["processor_seconds"] = json!((processor_time() - started).as_secs_f64());
    println!("{row}");
}
