//! The records of a million sandboxes: cost of each step, size of the file, and memory. Ignored by
//! default; prints its measurements as JSON. With optimised code of the crates that do the work:
//! `cargo --config profile.dev.package.wp-codebox-service.opt-level=3
//! --config profile.dev.package.libsqlite3-sys.opt-level=3
//! --config profile.dev.package.serde_json.opt-level=3
//! test -p wp-codebox-service --lib simulation -- --ignored --nocapture`, with TMPDIR on a file
//! system in memory, so that only processor time counts.

use super::{FILE, IdempotencyKey, SandboxRecord, Store};
use crate::actor::Actor;
use crate::clock::now_ms;
use crate::extension::{Provision, Reachability, SandboxId, SandboxState, SetupMetadata};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wp_codebox_contracts::SandboxScope;

use SandboxState::{Destroyed, Destroying, Provisioning, Ready, Requested};

/// Sandboxes alive at one time, as in the simulation of routing.
const ALIVE: usize = 100_000;
/// Sandboxes between two removals of ended records and old events.
const PRUNE_EVERY: usize = 100_000;

fn record(number: usize, actor: &Actor) -> SandboxRecord {
    let profile = "schema: wp-codebox/sandbox-profile/v1\nid: profile.shop\nversion: 1.0.0\n";
    let host = format!("host-{:05}", number % 10_000);
    SandboxRecord {
        provision: Provision {
            sandbox: SandboxId::parse(&format!("run_{number:032x}")).unwrap(),
            profile_id: "profile.shop".to_owned(),
            profile_version: "1.0.0".to_owned(),
            profile_sha256: "0".repeat(64),
            profile: profile.repeat(8),
            host: Some(host.clone()),
            source: None,
            snapshot: None,
            services: Vec::new(),
            ttl_ms: 3_600_000,
            scope: SandboxScope::Session,
            actor: actor.clone(),
            instead_of: None,
            inputs: serde_json::Map::new(),
            setup_metadata: SetupMetadata::default(),
        },
        extension: "native".to_owned(),
        host: Some(host.clone()),
        state: Requested,
        key: Some(format!("key-{number}")),
        account: None,
        created_ms: now_ms(),
        expires_at: None,
        reason: None,
        reachability: None,
        route: json!({"strategy": "prefer-self-hosted", "chosen": {"host": host, "extension": "native"},
            "reasons": [{"code": "chosen", "sentence": "it is the first of 10000 accepted hosts"}]}),
        quote: Value::Null,
        usage: None,
        cleanup: None,
    }
}

/// Processor times by the name of a step.
#[derive(Default)]
struct Times(BTreeMap<&'static str, Vec<Duration>>);

impl Times {
    fn measure<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let began = processor_time();
        let result = work();
        let row = self.0.entry(name).or_default();
        row.push(processor_time() - began);
        result
    }

    fn shown(mut self) -> Value {
        let rows = self.0.iter_mut().map(|(name, times)| {
            times.sort_unstable();
            let at = |part: usize| times[(times.len() - 1) * part / 1000].as_nanos();
            let sum: Duration = times.iter().sum();
            let mean = sum.as_nanos() / times.len() as u128;
            let row = json!({"samples": times.len(), "mean": mean, "p50": at(500), "p99": at(990), "max": at(1000)});
            ((*name).to_owned(), row)
        });
        Value::Object(rows.collect())
    }
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let row = text.lines().find(|row| row.starts_with("VmRSS:")).unwrap();
    row.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

/// Stores sandboxes, moves them through their states and returns the measurements.
fn simulate(sandboxes: usize, alive_at_once: usize) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let actor: Actor = "atm:simulation".parse().unwrap();
    let (mut times, mut alive) = (Times::default(), VecDeque::new());
    let (before, began) = (resident(), processor_time());
    let (mut largest, mut ended) = (0, 0);
    let step = |id: &str, from: SandboxState, to| {
        let change =
            |record: &mut SandboxRecord| record.reachability = Some(Reachability::default());
        let moved = store.transition(id, &[from], to, &actor, change).unwrap();
        assert!(moved.is_some_and(|(_, moved)| moved), "{id} to {to:?}");
    };
    for number in 0..sandboxes {
        let record = record(number, &actor);
        let key = IdempotencyKey {
            token: "simulation".to_owned(),
            key: format!("key-{number}"),
            body_sha256: String::new(),
        };
        let id = record.id().to_owned();
        times.measure("insert", || {
            store
                .insert_sandbox(&record, Some(&key), None, &actor)
                .unwrap();
        });
        times.measure("transition", || step(&id, Requested, Provisioning));
        times.measure("transition", || step(&id, Provisioning, Ready));
        alive.push_back(id);
        if alive.len() > alive_at_once {
            let id = alive.pop_front().unwrap();
            times.measure("transition", || step(&id, Ready, Destroying));
            times.measure("transition", || step(&id, Destroying, Destroyed));
            ended += 1;
        }
        if number % 100 == 0 {
            let found = times.measure("read", || store.sandbox(&alive[alive.len() / 2]));
            assert_eq!(found.unwrap().unwrap().state, Ready);
        }
        if number % 10_000 == 0 {
            let page = times.measure("page_of_50", || {
                store
                    .list_sandboxes(Some(&actor), None, 50, |_| true)
                    .unwrap()
            });
            assert!(!page.rows.is_empty());
            times.measure("count_by_host", || store.count_hosts().unwrap());
        }
        if number % PRUNE_EVERY == PRUNE_EVERY - 1 {
            let size = std::fs::metadata(directory.path().join(FILE))
                .unwrap()
                .len();
            largest = largest.max(size);
            times.measure("prune", || {
                store.prune_sandboxes(now_ms() + 1).unwrap();
                store.prune_events(1_000_000).unwrap();
            });
        }
    }
    let counts: BTreeMap<String, u64> = store.count_states().unwrap().into_iter().collect();
    assert_eq!(counts["ready"], alive.len() as u64);
    json!({
        "sandboxes": sandboxes, "alive_at_once": alive_at_once, "ended": ended,
        "processor_nanoseconds": times.shown(),
        "largest_file_bytes": largest,
        "resident_bytes_before_and_after": [before, resident()],
        "processor_seconds": (processor_time() - began).as_secs_f64(),
    })
}

#[test]
#[ignore = "measures: the records of a million sandboxes"]
fn store_simulation_with_a_million_sandboxes_ends_with_the_expected_number_of_ready_sandboxes() {
    println!("{}", simulate(1_000_000, ALIVE));
}
