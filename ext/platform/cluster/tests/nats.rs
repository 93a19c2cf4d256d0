//! The bus on a real server. `tests/cluster` starts servers and gives their addresses:
//!
//! - `CODEBOX_NATS_URL`: a server without accounts, or with `CODEBOX_NATS_REPLICAS=3` a cluster of three;
//! - `CODEBOX_NATS_STOP_URL` and `CODEBOX_NATS_STOP_PID`: a server that a test may stop for a while;
//! - `CODEBOX_NATS_ACCOUNTS`: a directory with `url`, `ca.pem` and a seed for each of the parties
//!   `operator`, `node`, `shop` and `blog` on a server with accounts and TLS.
//!
//! `cargo test` alone starts no server and ignores these tests.
#![allow(clippy::unwrap_used, clippy::panic)] // A panic in a helper function fails the test.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};
use wp_codebox_cluster::bus::{Bus, BusError, Changed, Delivery, ObjectName, Pulled};
use wp_codebox_cluster::host::HostRecord;
use wp_codebox_cluster::names::{Capability, NodeName, Priority, Queue, RunKey, SubmitterName};
use wp_codebox_cluster::nats::{
    Credentials, Limits, NatsBus, NatsOptions, Party, Setup, SetupReport, Shrink, setup,
};
use wp_codebox_cluster::record::{Claimant, PROTOCOL, Record, Revision, State};
use wp_codebox_contracts::{CodedError, RunId, ServerUrl, Sha256Hex};

/// Time limit for what a test waits for; long, because other programs share the processors.
const PATIENCE: Duration = Duration::from_secs(60);
/// A revision that no record has reached.
const ANY: Revision = Revision(u64::MAX - 1);
/// The time limit of a method, and what a loaded machine may add to it.
const METHOD_LIMIT: Duration = Duration::from_secs(30);

/// Small bounds, because a server reserves the space of each stream.
fn limits() -> Limits {
    Limits {
        task_bytes: 4 << 20,
        record_bytes: 4 << 20,
        objects_bytes: 32 << 20,
        object_bytes: 16 << 20,
        ..Limits::default()
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; tests/cluster sets it"))
}

fn urls(text: &str) -> Vec<ServerUrl> {
    text.split(',')
        .map(|url| ServerUrl::parse(url).unwrap())
        .collect()
}

fn open(url: &str) -> NatsOptions {
    NatsOptions::new(urls(url), Party::Operator, None, None).unwrap()
}

/// A submitter of its own for each test, so that the tests may run side by side.
struct World {
    url: String,
    bus: NatsBus,
    submitter: SubmitterName,
}

static COUNT: AtomicU64 = AtomicU64::new(0);

fn world() -> World {
    world_with(&variable("CODEBOX_NATS_URL"), limits())
}

fn world_with(url: &str, limits: Limits) -> World {
    let number = COUNT.fetch_add(1, Ordering::SeqCst);
    let submitter = SubmitterName::new(&format!("s{}-{number}", std::process::id())).unwrap();
    let options = open(url);
    set_up(&options, std::slice::from_ref(&submitter), limits).unwrap();
    World {
        url: url.to_owned(),
        bus: NatsBus::connect(&options).unwrap(),
        submitter,
    }
}

fn set_up(
    options: &NatsOptions,
    submitters: &[SubmitterName],
    limits: Limits,
) -> Result<SetupReport, wp_codebox_cluster::nats::SetupError> {
    let replicas = std::env::var("CODEBOX_NATS_REPLICAS").map_or(1, |text| text.parse().unwrap());
    setup(
        options,
        &Setup {
            replicas,
            capabilities: vec![capability()],
            submitters: submitters.to_vec(),
            limits,
            answer_wait: Duration::from_secs(2),
            shrink: Shrink::Allow,
        },
    )
}

fn capability() -> Capability {
    Capability::new("default").unwrap()
}

fn run(number: u64) -> RunId {
    RunId::new(format!("run_{number:032x}")).unwrap()
}

fn digest(byte: u8) -> Sha256Hex {
    Sha256Hex::new(format!("{byte:02x}").repeat(32)).unwrap()
}

fn queue_of(submitter: &SubmitterName) -> Queue {
    Queue {
        capability: capability(),
        priority: Priority::Normal,
        submitter: submitter.clone(),
    }
}

fn record_of(submitter: &SubmitterName, number: u64) -> Record {
    Record {
        protocol: PROTOCOL,
        key: RunKey {
            submitter: submitter.clone(),
            run: run(number),
        },
        queue: queue_of(submitter),
        task: digest(1),
        epoch: 0,
        max_tries: 3,
        nodes: None,
        cancelled: false,
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        state: State::Queued,
    }
}

fn host(name: &str, beat: u64) -> HostRecord {
    HostRecord {
        protocol: PROTOCOL,
        claimant: Claimant {
            node: NodeName::new(name).unwrap(),
            instance: "0".repeat(32),
        },
        version: "1".to_owned(),
        key_id: digest(2),
        capabilities: vec![capability()],
        capacity: 2,
        running: 0,
        draining: false,
        beat,
    }
}

impl World {
    fn queue(&self) -> Queue {
        queue_of(&self.submitter)
    }

    fn record(&self, number: u64) -> Record {
        record_of(&self.submitter, number)
    }

    fn key(&self, number: u64) -> RunKey {
        self.record(number).key
    }

    fn another_bus(&self) -> NatsBus {
        NatsBus::connect(&open(&self.url)).unwrap()
    }

    /// Takes the next message; fails if none comes.
    fn taken(&self) -> Arc<dyn Delivery> {
        taken(&self.bus, &self.queue())
    }
}

fn pulled(bus: &NatsBus, queue: &Queue) -> Option<Arc<dyn Delivery>> {
    match bus.pull(queue).unwrap() {
        Pulled::Message(delivery) => Some(delivery),
        Pulled::Empty => None,
        Pulled::Removed { problem } => panic!("{problem}"),
    }
}

fn taken(bus: &NatsBus, queue: &Queue) -> Arc<dyn Delivery> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(delivery) = pulled(bus, queue) {
            return delivery;
        }
        bus.wait_for_message(Duration::from_millis(200)).unwrap();
    }
    panic!("no message came");
}

fn code<T>(result: Result<T, BusError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.code().as_str(),
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn record_is_created_only_once_and_changed_or_removed_only_at_its_current_revision() {
    let world = world();
    let (bus, mut record) = (&world.bus, world.record(1));
    assert_eq!(bus.record(&record.key), Ok(None));
    let first = bus.create_record(&record).unwrap();
    assert_eq!(bus.create_record(&record), Err(BusError::Changed));
    record.epoch = 1;
    let second = bus.update_record(&record, first).unwrap();
    assert!(second > first);
    record.epoch = 2;
    assert_eq!(bus.update_record(&record, first), Err(BusError::Changed));
    let read = bus.record(&record.key).unwrap().unwrap();
    assert_eq!((read.value.epoch, read.revision), (1, second));
    bus.remove_record(&record.key, first).unwrap();
    assert!(
        bus.record(&record.key).unwrap().is_some(),
        "the record changed after that revision"
    );
    bus.remove_record(&record.key, second).unwrap();
    assert_eq!(bus.record(&record.key), Ok(None));
    bus.create_record(&record).unwrap();
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn changed_records_returns_each_record_changed_after_a_revision_once_up_to_a_limit() {
    let world = world();
    let (bus, of) = (&world.bus, &world.submitter);
    let mut first = Revision(0);
    for number in 1..=3 {
        let revision = bus.create_record(&world.record(number)).unwrap();
        first = if number == 1 { revision } else { first };
    }
    let numbers = |changed: &Changed| -> Vec<RunKey> {
        let records = changed.records.iter();
        records.map(|row| row.value.key.clone()).collect()
    };
    let key = |number| world.key(number);
    let changed = |after, most| bus.changed_records(of, after, most).unwrap();
    let all = changed(Revision(0), 10);
    assert_eq!(
        (numbers(&all), all.is_partial),
        (vec![key(1), key(2), key(3)], false)
    );
    let part = changed(Revision(0), 2);
    assert_eq!(
        (numbers(&part), part.is_partial),
        (vec![key(1), key(2)], true)
    );
    let rest = changed(part.until, 2);
    assert_eq!((numbers(&rest), rest.is_partial), (vec![key(3)], false));
    let mut record = world.record(1);
    record.epoch = 1;
    bus.update_record(&record, first).unwrap();
    assert_eq!(numbers(&changed(all.until, 10)), [key(1)]);
    assert_eq!(numbers(&changed(Revision(0), 10)), [key(2), key(3), key(1)]);
    // The numbers of a stream that was created again begin with 1.
    assert_eq!(
        numbers(&changed(Revision(1_000_000), 10)),
        [key(2), key(3), key(1)]
    );
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn ended_runs_are_the_runs_that_ended_at_least_the_given_time_ago() {
    let world = world();
    let (bus, of) = (&world.bus, &world.submitter);
    let revision = bus.create_record(&world.record(1)).unwrap();
    bus.create_record(&world.record(2)).unwrap();
    let record = world.record(1).cancel().unwrap();
    let revision = bus.update_record(&record, revision).unwrap();
    assert_eq!(
        bus.ended_runs(of, Duration::ZERO),
        Ok(vec![(world.key(1), revision)])
    );
    assert_eq!(
        bus.ended_runs(of, Duration::from_secs(3600)),
        Ok(Vec::new())
    );
    assert_eq!(bus.ended_runs(of, Duration::MAX), Ok(Vec::new()));
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn one_of_eight_threads_wins_each_compare_and_set() {
    let world = world();
    let buses = [world.another_bus(), world.another_bus()];
    let rounds = 20;
    let mut at = world.bus.create_record(&world.record(1)).unwrap();
    let start = Barrier::new(8);
    for round in 1..=rounds {
        let won: Vec<Revision> = thread::scope(|scope| {
            let tries: Vec<_> = (0..8_u64)
                .map(|thread| {
                    let (bus, start, world) = (&buses[thread as usize % 2], &start, &world);
                    scope.spawn(move || {
                        let mut record = world.record(1);
                        record.epoch = round;
                        record.created_at = thread.to_string();
                        start.wait();
                        match bus.update_record(&record, at) {
                            Ok(revision) => Some(revision),
                            Err(BusError::Changed) => {
                                // The winner's write is visible for everyone who lost.
                                let read = bus.record(&record.key).unwrap().unwrap();
                                assert_eq!(read.value.epoch, round);
                                None
                            }
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            tries
                .into_iter()
                .filter_map(|t| t.join().unwrap())
                .collect()
        });
        assert_eq!(won.len(), 1, "round {round}");
        at = won[0];
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn message_is_delivered_once_and_again_after_retry_and_never_after_ack() {
    let world = world();
    let (bus, queue) = (&world.bus, world.queue());
    assert!(bus.queues().unwrap().contains(&queue));
    assert!(pulled(bus, &queue).is_none());
    assert_eq!(bus.is_empty(&queue), Ok(true));
    // The server drops the second copy.
    bus.publish(&queue, &world.key(1), "one").unwrap();
    bus.publish(&queue, &world.key(1), "one").unwrap();
    let taken = world.taken();
    assert_eq!(*taken.key(), world.key(1));
    assert!(pulled(bus, &queue).is_none());
    assert_eq!(bus.is_empty(&queue), Ok(false));
    taken.working().unwrap();
    taken.retry(Duration::from_millis(10)).unwrap();
    world.taken().ack().unwrap();
    assert!(pulled(bus, &queue).is_none());
    let began = Instant::now();
    while !bus.is_empty(&queue).unwrap() {
        assert!(began.elapsed() < PATIENCE);
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn message_is_delivered_again_after_its_process_was_killed_and_not_while_it_calls_working() {
    let world = world();
    world
        .bus
        .publish(&world.queue(), &world.key(1), "one")
        .unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            "--nocapture",
            "process_that_holds_a_message",
        ])
        .env(
            "CODEBOX_NATS_HOLD",
            format!("{} {}", world.url, world.submitter),
        )
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("has the message")));
    // The child calls `working` four times within the time for an answer, which is two seconds.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5) {
        assert!(pulled(&world.bus, &world.queue()).is_none());
        thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let again = world.taken();
    assert_eq!(*again.key(), world.key(1));
    again.ack().unwrap();
}

#[test]
#[ignore = "a process that another test starts and kills"]
fn process_that_holds_a_message() {
    let text = std::env::var("CODEBOX_NATS_HOLD").unwrap();
    let (url, submitter) = text.split_once(' ').unwrap();
    let bus = NatsBus::connect(&open(url)).unwrap();
    let message = taken(&bus, &queue_of(&SubmitterName::new(submitter).unwrap()));
    println!("has the message");
    std::io::stdout().flush().unwrap();
    loop {
        message.working().unwrap();
        thread::sleep(Duration::from_millis(500));
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn message_that_is_no_run_key_of_this_submitter_is_reported_and_removed() {
    let world = world();
    let subject = format!("tasks.default.normal.{}", world.submitter);
    let another = RunKey {
        submitter: SubmitterName::new("another").unwrap(),
        run: run(1),
    };
    let mut unknown = serde_json::to_value(world.key(1)).unwrap();
    unknown["more"] = serde_json::json!(1);
    let bodies = [
        "no JSON".to_owned(),
        unknown.to_string(),
        serde_json::to_string(&another).unwrap(),
    ];
    for body in bodies {
        raw_publish(&world.url, &subject, &body);
        let began = Instant::now();
        let error = loop {
            assert!(began.elapsed() < PATIENCE);
            match world.bus.pull(&world.queue()).unwrap() {
                Pulled::Empty => {}
                Pulled::Message(_) => panic!("{body} was taken"),
                Pulled::Removed { problem } => break problem,
            }
        };
        assert_eq!(
            error.code().as_str(),
            "wp_codebox_cluster_unreadable",
            "{error}"
        );
        while !world.bus.is_empty(&world.queue()).unwrap() {
            assert!(began.elapsed() < PATIENCE);
        }
    }
    world
        .bus
        .publish(&world.queue(), &world.key(1), "good")
        .unwrap();
    assert_eq!(*world.taken().key(), world.key(1));
}

/// Publishes without the bus, as another program would, what its stream shall store under this subject.
fn raw_publish(url: &str, subject: &str, body: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let servers: Vec<async_nats::ServerAddr> =
            url.split(',').map(|u| u.parse().unwrap()).collect();
        let client = async_nats::connect(servers).await.unwrap();
        let request = async |subject: String, body: String| -> serde_json::Value {
            let stored = client.request(subject, body.into()).await.unwrap();
            let answer: serde_json::Value = serde_json::from_slice(&stored.payload).unwrap();
            assert!(answer["error"].is_null(), "{answer}");
            answer
        };
        let mut parts = subject.split('.');
        let stream = match parts.next().unwrap() {
            "tasks" => format!("CODEBOX_T_{}", parts.next_back().unwrap()),
            _ => format!("CODEBOX_R_{}", parts.next().unwrap()),
        };
        let info = request(format!("$JS.API.STREAM.INFO.{stream}"), String::new()).await;
        let listens = info["config"]["subjects"][0].as_str().unwrap();
        let token = listens.split('.').nth(1).unwrap();
        request(format!("store.{token}.{subject}"), body.to_owned()).await;
    });
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn record_that_is_unreadable_of_another_run_or_of_a_foreign_queue_is_an_error_and_hides_no_other() {
    let world = world();
    world.bus.create_record(&world.record(1)).unwrap();
    let subject = |number: u64| format!("records.{}.{}", world.submitter, run(number));
    raw_publish(&world.url, &subject(2), "{}");
    let foreign = serde_json::to_string(&world.record(1)).unwrap();
    raw_publish(&world.url, &subject(3), &foreign);
    let mut lured = world.record(4);
    raw_publish(
        &world.url,
        &subject(5),
        &serde_json::to_string(&world.record(5)).unwrap(),
    );
    lured.queue.submitter = SubmitterName::new("somebody-else").unwrap();
    raw_publish(
        &world.url,
        &subject(4),
        &serde_json::to_string(&lured).unwrap(),
    );
    for number in [2, 3, 4] {
        let read = world.bus.record(&world.key(number));
        assert_eq!(code(read), "wp_codebox_cluster_unreadable");
    }
    let changed = world.bus.changed_records(&world.submitter, Revision(0), 10);
    let changed = changed.unwrap();
    // The control in the queue of its own submitter is read.
    assert_eq!((changed.records.len(), changed.unreadable.len()), (2, 3));
    assert!(changed.until > changed.records[0].revision);
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn object_that_was_removed_during_its_upload_is_not_complete_until_it_is_uploaded_again() {
    let world = world();
    let (bus, of, name) = (&world.bus, &world.submitter, ObjectName::Layer(digest(9)));
    let content: Vec<u8> = (0..20 * 128 * 1024_u32).map(|n| (n % 251) as u8).collect();
    let (other, mut left) = (world.another_bus(), content.as_slice());
    // The object is removed when twelve parts are read and the first ones are stored.
    let mut upload = ReadWith(|to: &mut [u8]| {
        if left.len() == 8 * 128 * 1024 {
            other.remove_object(of, &name.to_text()).unwrap();
        }
        left.read(to)
    });
    bus.put_object(of, &name, &mut upload).unwrap();
    assert_eq!(bus.has_object(of, &name), Ok(false));
    let mut read = Vec::new();
    let found = bus.get_object(of, &name, &mut read);
    assert_eq!(code(found), "wp_codebox_cluster_missing");
    bus.put_object(of, &name, &mut content.as_slice()).unwrap();
    assert_eq!(bus.has_object(of, &name), Ok(true));
    read.clear();
    bus.get_object(of, &name, &mut read).unwrap();
    assert!(read == content);
}

/// Reads by calling a function.
struct ReadWith<F>(F);

impl<F: FnMut(&mut [u8]) -> std::io::Result<usize>> Read for ReadWith<F> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        (self.0)(to)
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn full_queue_refuses_messages_until_one_is_acknowledged_and_other_queues_have_room() {
    let url = variable("CODEBOX_NATS_URL");
    let limits = Limits {
        queue_messages: 2,
        ..limits()
    };
    let world = world_with(&url, limits);
    let bus = &world.bus;
    for number in 1..=2 {
        bus.publish(&world.queue(), &world.key(number), &number.to_string())
            .unwrap();
    }
    let refused = bus.publish(&world.queue(), &world.key(3), "3");
    assert_eq!(code(refused), "wp_codebox_cluster_full");
    let other = Queue {
        priority: Priority::High,
        ..world.queue()
    };
    bus.publish(&other, &world.key(3), "other 3").unwrap();
    world.taken().ack().unwrap();
    // Replicas remove an answered message a moment after the answer is confirmed.
    let began = Instant::now();
    while let Err(error) = bus.publish(&world.queue(), &world.key(3), "3") {
        assert_eq!(error.code().as_str(), "wp_codebox_cluster_full");
        assert!(began.elapsed() < PATIENCE, "{error}");
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn messages_with_the_same_id_of_two_submitters_are_both_delivered() {
    let (world, other) = (world(), world());
    for world in [&world, &other] {
        world
            .bus
            .publish(&world.queue(), &world.key(1), "id")
            .unwrap();
        assert_eq!(*world.taken().key(), world.key(1));
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn new_records_leave_room_for_changes_of_existing_records() {
    let url = variable("CODEBOX_NATS_URL");
    let limits = Limits {
        record_bytes: 200 * 1024,
        ..limits()
    };
    let world = world_with(&url, limits);
    let mut large = world.record(0);
    large.created_at = "x".repeat(30 * 1024);
    let mut revisions = Vec::new();
    let refused = loop {
        large.key = world.key(revisions.len() as u64);
        match world.bus.create_record(&large) {
            Ok(revision) => revisions.push(revision),
            Err(error) => break error,
        }
        assert!(revisions.len() < 10);
    };
    assert_eq!(
        refused.code().as_str(),
        "wp_codebox_cluster_full",
        "{refused}"
    );
    // New records may fill three quarters of the space, which have room for five of these.
    assert_eq!(revisions.len(), 5);
    for (number, revision) in revisions.iter().enumerate() {
        large.key = world.key(number as u64);
        large.epoch = 1;
        world.bus.update_record(&large, *revision).unwrap();
    }
    world.bus.remove_record(&world.key(0), ANY).unwrap();
    world.bus.remove_record(&world.key(1), ANY).unwrap();
    world.bus.create_record(&world.record(0)).unwrap();
    large.created_at = "x".repeat(70 * 1024);
    let too_large = world.bus.update_record(&large, Revision(1));
    assert_eq!(code(too_large), "wp_codebox_cluster_object_too_large");
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn waiting_ends_when_a_message_comes_and_at_the_time_limit() {
    let world = world();
    let bus = &world.bus;
    bus.wait_for_message(Duration::ZERO).unwrap();
    let publisher = world.another_bus();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let began = Instant::now();
            loop {
                bus.wait_for_message(PATIENCE).unwrap();
                // Messages of other tests wake this one, too.
                if let Some(message) = pulled(bus, &world.queue()) {
                    return (message, began.elapsed());
                }
            }
        });
        publisher
            .publish(&world.queue(), &world.key(1), "one")
            .unwrap();
        let (message, waited) = waiting.join().unwrap();
        assert!(waited < PATIENCE, "{waited:?}");
        message.ack().unwrap();
    });
    // A message wakes callers several times; after that, a call waits until its time limit.
    let began = Instant::now();
    loop {
        let one = Instant::now();
        bus.wait_for_message(Duration::from_millis(50)).unwrap();
        if one.elapsed() >= Duration::from_millis(50) {
            break;
        }
        assert!(began.elapsed() < PATIENCE);
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn watch_returns_the_present_record_each_change_and_its_removal() {
    let world = world();
    let mut record = world.record(1);
    let mut early = world.bus.watch(&record.key).unwrap();
    assert_eq!(code(early.next(PATIENCE)), "wp_codebox_cluster_missing");
    let first = world.bus.create_record(&record).unwrap();
    let mut watch = world.bus.watch(&record.key).unwrap();
    assert_eq!(watch.next(PATIENCE).unwrap().unwrap().revision, first);
    assert_eq!(watch.next(Duration::from_millis(50)), Ok(None));
    let writer = world.another_bus();
    let second = thread::scope(|scope| {
        let waiting = scope.spawn(|| watch.next(PATIENCE).unwrap().unwrap());
        record.cancelled = true;
        let revision = writer.update_record(&record, first).unwrap();
        let changed = waiting.join().unwrap();
        assert_eq!(
            (changed.value.cancelled, changed.revision),
            (true, revision)
        );
        revision
    });
    // A change of another record is not returned.
    writer.create_record(&world.record(2)).unwrap();
    assert_eq!(watch.next(Duration::from_millis(50)), Ok(None));
    assert!(second > first);
    writer.remove_record(&record.key, ANY).unwrap();
    assert_eq!(code(watch.next(PATIENCE)), "wp_codebox_cluster_missing");
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn heartbeat_has_a_new_revision_each_time_until_it_is_removed() {
    let world = world();
    let name = format!("n{}", std::process::id());
    let node = NodeName::new(&name).unwrap();
    let own = |bus: &NatsBus| {
        let all = bus.hosts().unwrap();
        all.into_iter()
            .find(|host| host.value.claimant.node == node)
    };
    let first = world.bus.beat(&host(&name, 1)).unwrap();
    let second = world.bus.beat(&host(&name, 2)).unwrap();
    assert!(second > first);
    let read = own(&world.bus).unwrap();
    assert_eq!((read.value.beat, read.revision), (2, second));
    assert_eq!(world.bus.host(&node), Ok(Some(read)));
    world.bus.remove_host(&node).unwrap();
    assert!(own(&world.bus).is_none());
    assert_eq!(world.bus.host(&node), Ok(None));
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 7 % 251) as u8).collect()
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn object_is_stored_whole_read_back_listed_and_removed() {
    let world = world();
    let (bus, of) = (&world.bus, &world.submitter);
    let sizes = [0, 1, 128 * 1024, 128 * 1024 + 1, 5_000_000];
    for (number, size) in sizes.into_iter().enumerate() {
        let name = ObjectName::Layer(digest(number as u8));
        assert_eq!(bus.has_object(of, &name), Ok(false));
        let mut read = Vec::new();
        assert_eq!(
            code(bus.get_object(of, &name, &mut read)),
            "wp_codebox_cluster_missing"
        );
        let content = content(size);
        bus.put_object(of, &name, &mut &content[..]).unwrap();
        bus.put_object(of, &name, &mut &content[..]).unwrap();
        assert_eq!(bus.has_object(of, &name), Ok(true));
        bus.get_object(of, &name, &mut read).unwrap();
        assert!(read == content, "{size}");
    }
    let result = ObjectName::Result {
        run: run(1),
        epoch: 7,
    };
    bus.put_object(of, &result, &mut &b"result"[..]).unwrap();
    let listed = bus.objects(of).unwrap();
    assert_eq!(listed.len(), sizes.len() + 1);
    assert!(listed.contains(&(result.to_text(), 6)));
    assert!(listed.iter().any(|(_, size)| *size == 5_000_000));
    // A pattern as a name removes no object.
    for pattern in ["layer.*", ">", "", ".", "layer..x"] {
        bus.remove_object(of, pattern).unwrap();
    }
    assert_eq!(bus.objects(of).unwrap().len(), sizes.len() + 1);
    for (name, _) in listed {
        bus.remove_object(of, &name).unwrap();
        bus.remove_object(of, &name).unwrap();
    }
    assert_eq!(bus.objects(of), Ok(Vec::new()));
}

/// A reader that fails after some bytes.
struct Broken(usize);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::Error::other("broken"));
        }
        let count = buffer.len().min(self.0);
        self.0 -= count;
        Ok(count)
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn interrupted_or_too_large_object_is_not_complete_and_can_be_removed() {
    let url = variable("CODEBOX_NATS_URL");
    let limits = Limits {
        object_bytes: 600_000,
        objects_bytes: 1_000_000,
        ..limits()
    };
    let world = world_with(&url, limits);
    let (bus, of) = (&world.bus, &world.submitter);
    let name = |number: u8| ObjectName::Layer(digest(number));
    assert_eq!(
        code(bus.put_object(of, &name(1), &mut Broken(300_000))),
        "wp_codebox_cluster_unreadable"
    );
    assert_eq!(
        bus.put_object(of, &name(2), &mut &content(600_001)[..]),
        Err(BusError::TooLarge {
            name: name(2).to_text(),
            limit: 600_000
        })
    );
    let leftovers = bus.objects(of).unwrap();
    assert_eq!(leftovers.len(), 2);
    for (leftover, _) in leftovers {
        bus.remove_object(of, &leftover).unwrap();
    }
    bus.put_object(of, &name(3), &mut &content(600_000)[..])
        .unwrap();
    assert_eq!(
        code(bus.put_object(of, &name(4), &mut &content(600_000)[..])),
        "wp_codebox_cluster_full"
    );
    assert_eq!(bus.has_object(of, &name(4)), Ok(false));
    bus.remove_object(of, &name(3).to_text()).unwrap();
    bus.put_object(of, &name(4), &mut &content(600_000)[..])
        .unwrap();
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn request_for_secrets_is_answered_only_while_a_process_is_registered() {
    let world = world();
    let (key, asking) = (world.key(1), world.another_bus());
    let began = Instant::now();
    let unanswered = asking.ask(&key, b"request", PATIENCE);
    assert_eq!(code(unanswered), "wp_codebox_cluster_unreachable");
    assert!(began.elapsed() < PATIENCE);
    let registered = world
        .bus
        .answer(
            &key,
            Box::new(|request| (request != b"silent").then(|| [request, b"!"].concat())),
        )
        .unwrap();
    assert_eq!(asking.ask(&key, b"request", PATIENCE).unwrap(), b"request!");
    let silent = asking.ask(&key, b"silent", Duration::from_millis(100));
    assert_eq!(code(silent), "wp_codebox_cluster_unreachable");
    let other = asking.ask(&world.key(2), b"request", PATIENCE);
    assert_eq!(code(other), "wp_codebox_cluster_unreachable");
    drop(registered);
    let began = Instant::now();
    while asking
        .ask(&key, b"request", Duration::from_millis(500))
        .is_ok()
    {
        assert!(began.elapsed() < PATIENCE);
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn events_come_in_order_and_only_those_of_the_followed_run() {
    let world = world();
    let mut events = world.bus.follow(&world.key(1)).unwrap();
    let sender = world.another_bus();
    assert_eq!(events.next(Duration::from_millis(20)), Ok(None));
    for number in 0..100_u8 {
        sender.emit(&world.key(2), b"other").unwrap();
        sender.emit(&world.key(1), &[number]).unwrap();
    }
    for number in 0..100_u8 {
        assert_eq!(events.next(PATIENCE).unwrap(), Some(vec![number]));
    }
    // What was sent before the connection closes arrives.
    sender.emit(&world.key(1), b"last").unwrap();
    drop(sender);
    assert_eq!(events.next(PATIENCE).unwrap(), Some(b"last".to_vec()));
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn submitter_for_which_the_cluster_is_not_set_up_gets_the_code_not_set_up() {
    let world = world();
    let nobody = SubmitterName::new("nobody").unwrap();
    let bus = &world.bus;
    let key = RunKey {
        submitter: nobody.clone(),
        run: run(1),
    };
    let record = Record {
        key: key.clone(),
        ..world.record(1)
    };
    let name = ObjectName::Task(digest(1));
    for found in [
        code(bus.record(&key)),
        code(bus.create_record(&record)),
        code(bus.changed_records(&nobody, Revision(0), 1)),
        code(bus.ended_runs(&nobody, Duration::ZERO)),
        code(bus.publish(&queue_of(&nobody), &key, "one")),
        code(bus.pull(&queue_of(&nobody))),
        code(bus.is_empty(&queue_of(&nobody))),
        code(bus.has_object(&nobody, &name)),
        code(bus.put_object(&nobody, &name, &mut &b"x"[..])),
        code(bus.objects(&nobody)),
    ] {
        assert_eq!(found, "wp_codebox_cluster_not_set_up");
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn call_to_a_stopped_server_fails_within_the_time_limit_and_succeeds_when_the_server_continues() {
    let url = variable("CODEBOX_NATS_STOP_URL");
    let pid = std::env::var("CODEBOX_NATS_STOP_PID").unwrap();
    let world = world_with(&url, limits());
    let mut record = world.record(1);
    let first = world.bus.create_record(&record).unwrap();
    let mut watch = world.bus.watch(&record.key).unwrap();
    watch.next(PATIENCE).unwrap().unwrap();
    signal(&pid, "STOP");
    let began = Instant::now();
    assert_eq!(
        code(world.bus.record(&record.key)),
        "wp_codebox_cluster_unreachable"
    );
    assert!(began.elapsed() < METHOD_LIMIT, "{:?}", began.elapsed());
    let began = Instant::now();
    record.epoch = 1;
    let lost = world.bus.update_record(&record, first);
    assert_eq!(code(lost), "wp_codebox_cluster_unreachable");
    assert!(began.elapsed() < METHOD_LIMIT, "{:?}", began.elapsed());
    // The port of the stopped server accepts connections, but nothing answers them.
    let began = Instant::now();
    let connected = NatsBus::connect(&open(&url)).map(drop);
    assert_eq!(code(connected), "wp_codebox_cluster_unreachable");
    assert!(began.elapsed() < METHOD_LIMIT, "{:?}", began.elapsed());
    signal(&pid, "CONT");
    let began = Instant::now();
    let present = loop {
        match world.bus.record(&record.key) {
            Ok(present) => break present.unwrap(),
            Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
        }
    };
    // The change that had no answer may have been stored.
    let at = present.revision;
    record.epoch = 2;
    let changed = world.bus.update_record(&record, at).unwrap();
    let seen = loop {
        let seen = watch.next(PATIENCE).unwrap().unwrap();
        if seen.revision == changed {
            break seen;
        }
    };
    assert_eq!(seen.value.epoch, 2);
}

/// While this test counts, the parent kills the leader of the records, then writes a line to stdin.
#[test]
#[ignore = "a process that tests/cluster starts, because it kills a server"]
fn each_record_update_is_stored_exactly_once_although_a_stream_leader_is_killed() {
    let url = std::env::var("CODEBOX_NATS_COUNT").unwrap();
    let world = world_with(&url, limits());
    let (bus, mut record) = (&world.bus, world.record(1));
    let mut at = bus.create_record(&record).unwrap();
    let killed = AtomicU64::new(0);
    let (mut counted, mut end) = (0, u64::MAX);
    thread::scope(|scope| {
        scope.spawn(|| {
            std::io::stdin().read_line(&mut String::new()).unwrap();
            killed.store(1, Ordering::SeqCst);
        });
        let began = Instant::now();
        while counted < end {
            assert!(began.elapsed() < PATIENCE * 3);
            record.epoch = counted + 1;
            match bus.update_record(&record, at) {
                Ok(revision) => at = revision,
                // A change without an answer may arrive after the next read.
                Err(BusError::Unreachable { .. } | BusError::Changed) => {
                    let Ok(present) = bus.record(&record.key) else {
                        continue;
                    };
                    let present = present.unwrap();
                    at = present.revision;
                    if present.value.epoch == counted {
                        continue;
                    }
                    assert_eq!(present.value.epoch, counted + 1);
                }
                Err(error) => panic!("{error}"),
            }
            counted += 1;
            if counted == 10 {
                println!("\ncounts CODEBOX_R_{}", world.submitter);
                std::io::stdout().flush().unwrap();
            }
            if end == u64::MAX && killed.load(Ordering::SeqCst) == 1 {
                end = counted + 50;
            }
        }
    });
    let present = bus.record(&record.key).unwrap().unwrap();
    assert_eq!((present.value.epoch, present.revision), (counted, at));
    println!("counted {counted}");
}

fn signal(pid: &str, name: &str) {
    let status = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid)
        .status()
        .unwrap();
    assert!(status.success());
    // The kernel stops the threads of a process one after the other.
    let began = Instant::now();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    while name == "STOP" && !state().contains(") T ") {
        assert!(began.elapsed() < PATIENCE);
    }
}

/// Accounts of the parties on a server with TLS.
struct Accounts {
    directory: PathBuf,
    url: String,
    authorities: Vec<u8>,
}

impl Accounts {
    fn given() -> Self {
        let directory = PathBuf::from(variable("CODEBOX_NATS_ACCOUNTS"));
        Self {
            url: std::fs::read_to_string(directory.join("url")).unwrap(),
            authorities: std::fs::read(directory.join("ca.pem")).unwrap(),
            directory,
        }
    }

    fn options(&self, account: &str, party: Party) -> NatsOptions {
        let seed = std::fs::read_to_string(self.directory.join(format!("{account}.seed"))).unwrap();
        let credentials = Some(Credentials::parse(&seed).unwrap());
        NatsOptions::new(urls(&self.url), party, credentials, Some(&self.authorities)).unwrap()
    }

    fn bus(&self, account: &str, party: Party) -> NatsBus {
        NatsBus::connect(&self.options(account, party)).unwrap()
    }

    fn submitter(&self, name: &str) -> (NatsBus, SubmitterName) {
        let submitter = SubmitterName::new(name).unwrap();
        (
            self.bus(name, Party::Submitter(submitter.clone())),
            submitter,
        )
    }

    fn node(&self) -> NatsBus {
        self.bus("node", Party::Node(NodeName::new("node").unwrap()))
    }
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn accounts_of_submitter_and_node_have_the_rights_for_a_whole_run() {
    let accounts = Accounts::given();
    let (shop, name) = accounts.submitter("shop");
    let node = accounts.node();
    let mut record = record_of(&name, 1);
    let key = record.key.clone();
    let task = ObjectName::Task(digest(1));
    shop.put_object(&name, &task, &mut &b"task"[..]).unwrap();
    let first = shop.create_record(&record).unwrap();
    let _broker = shop
        .answer(&key, Box::new(|_| Some(b"sealed".to_vec())))
        .unwrap();
    let mut events = shop.follow(&key).unwrap();
    let mut watch = shop.watch(&key).unwrap();
    watch.next(PATIENCE).unwrap().unwrap();
    node.wait_for_message(Duration::ZERO).unwrap();
    // The server drops a message whose id an earlier process of this test has used.
    let id = std::process::id();
    shop.publish(&record.queue, &key, &format!("one.{id}"))
        .unwrap();
    // The consumer of the queue learns of the message after the stream has confirmed it.
    let began = Instant::now();
    while shop.is_empty(&record.queue).unwrap() {
        assert!(began.elapsed() < PATIENCE);
    }

    node.beat(&host("node", 1)).unwrap();
    assert!(node.queues().unwrap().contains(&record.queue));
    let message = taken(&node, &record.queue);
    record.epoch = 1;
    record.state = State::Claimed {
        by: host("node", 1).claimant,
    };
    let claimed = node.update_record(&record, first).unwrap();
    assert_eq!(node.ask(&key, b"request", PATIENCE).unwrap(), b"sealed");
    let mut read = Vec::new();
    node.get_object(&name, &task, &mut read).unwrap();
    assert_eq!(read, b"task");
    node.emit(&key, b"event").unwrap();
    let result = ObjectName::Result {
        run: run(1),
        epoch: 1,
    };
    node.put_object(&name, &result, &mut &b"result"[..])
        .unwrap();
    message.working().unwrap();
    message.ack().unwrap();
    assert!(
        node.changed_records(&name, Revision(0), 100)
            .unwrap()
            .records
            .iter()
            .any(|found| found.value.key == key)
    );
    node.publish(&record.queue, &key, &format!("two.{id}"))
        .unwrap();
    taken(&node, &record.queue).ack().unwrap();

    assert_eq!(watch.next(PATIENCE).unwrap().unwrap().revision, claimed);
    assert_eq!(events.next(PATIENCE).unwrap(), Some(b"event".to_vec()));
    assert_eq!(shop.hosts().unwrap().len(), 1);
    let mut read = Vec::new();
    shop.get_object(&name, &result, &mut read).unwrap();
    assert_eq!(read, b"result");
    let changed = shop.changed_records(&name, Revision(0), 100).unwrap();
    assert!(changed.records.iter().any(|found| found.value.key == key));
    for object in [task, result] {
        shop.remove_object(&name, &object.to_text()).unwrap();
        assert_eq!(shop.has_object(&name, &object), Ok(false));
    }
    let last = shop.record(&key).unwrap().unwrap().revision;
    shop.remove_record(&key, last).unwrap();
    node.remove_host(&NodeName::new("node").unwrap()).unwrap();
    assert_eq!(shop.hosts(), Ok(Vec::new()));
}

#[test]
#[ignore = "needs a server of tests/cluster"]
fn accounts_of_submitter_and_node_are_denied_at_once_what_only_other_parties_may_do() {
    let accounts = Accounts::given();
    let ((shop, name), (blog, _)) = (accounts.submitter("shop"), accounts.submitter("blog"));
    let node = accounts.node();
    let key = record_of(&name, 2).key;
    let first = shop.create_record(&record_of(&name, 2)).unwrap();
    let task = ObjectName::Task(digest(2));
    shop.put_object(&name, &task, &mut &b"task"[..]).unwrap();
    let queue = queue_of(&name);
    let began = Instant::now();
    for (what, found) in [
        ("record", code(blog.record(&key))),
        (
            "update_record",
            code(blog.update_record(&record_of(&name, 2), first)),
        ),
        (
            "create_record",
            code(blog.create_record(&record_of(&name, 3))),
        ),
        ("remove_record", code(blog.remove_record(&key, first))),
        (
            "changed_records",
            code(blog.changed_records(&name, Revision(0), 1)),
        ),
        ("ended_runs", code(blog.ended_runs(&name, Duration::ZERO))),
        ("watch", code(blog.watch(&key).map(drop))),
        ("publish", code(blog.publish(&queue, &key, "x"))),
        ("pull", code(blog.pull(&queue).map(drop))),
        ("pull own", code(shop.pull(&queue).map(drop))),
        ("queues", code(blog.queues())),
        (
            "wait_for_message",
            code(blog.wait_for_message(Duration::ZERO)),
        ),
        ("is_empty", code(blog.is_empty(&queue))),
        ("has_object", code(blog.has_object(&name, &task))),
        (
            "put_object",
            code(blog.put_object(&name, &task, &mut &b"x"[..])),
        ),
        (
            "get_object",
            code(blog.get_object(&name, &task, &mut Vec::new())),
        ),
        ("objects", code(blog.objects(&name))),
        (
            "remove_object",
            code(blog.remove_object(&name, &task.to_text())),
        ),
        ("ask", code(blog.ask(&key, b"x", PATIENCE))),
        (
            "answer",
            code(blog.answer(&key, Box::new(|_| None)).map(drop)),
        ),
        ("follow", code(blog.follow(&key).map(drop))),
        ("beat", code(blog.beat(&host("blog", 1)))),
        ("beat of another node", code(node.beat(&host("node2", 1)))),
        (
            "node's layer",
            code(node.put_object(&name, &ObjectName::Layer(digest(3)), &mut &b"x"[..])),
        ),
        ("node removes a record", code(node.remove_record(&key, ANY))),
        ("node follows", code(node.follow(&key).map(drop))),
        (
            "node answers",
            code(node.answer(&key, Box::new(|_| None)).map(drop)),
        ),
    ] {
        assert_eq!(found, "wp_codebox_cluster_denied", "{what}");
    }
    // Each refusal is an answer, not the end of a time limit.
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert_eq!(shop.record(&key).unwrap().unwrap().revision, first);
    assert_eq!(shop.has_object(&name, &task), Ok(true));
    for (account, party) in [
        ("node", Party::Node(NodeName::new("node").unwrap())),
        ("shop", Party::Submitter(name.clone())),
    ] {
        let options = accounts.options(account, party);
        let refused = set_up(&options, std::slice::from_ref(&name), limits()).unwrap_err();
        assert_eq!(refused.code().as_str(), "wp_codebox_cluster_denied");
    }
    // The seed of another account, and no seed.
    let options = accounts.options("wrong", Party::Operator);
    assert_eq!(
        code(NatsBus::connect(&options).map(drop)),
        "wp_codebox_cluster_denied"
    );
    let none = NatsOptions::new(
        urls(&accounts.url),
        Party::Operator,
        None,
        Some(&accounts.authorities),
    );
    assert_eq!(
        code(NatsBus::connect(&none.unwrap()).map(drop)),
        "wp_codebox_cluster_denied"
    );
    // A server whose certificate no given authority signed.
    let other = std::fs::read(accounts.directory.join("other-ca.pem")).unwrap();
    let stranger = NatsOptions::new(urls(&accounts.url), Party::Operator, None, Some(&other));
    let refused = NatsBus::connect(&stranger.unwrap()).map(drop);
    assert_eq!(code(refused), "wp_codebox_cluster_unreachable");
}
