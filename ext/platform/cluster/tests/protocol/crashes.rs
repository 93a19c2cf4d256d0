//! The code of a node under randomly chosen faults: a process dies before or after any request to
//! the server, does not get the answer to one, or stops at one while other processes go on.

use crate::memory::{Memory, queue, record, submitter};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wp_codebox_cluster::bus::{
    Answer, Answering, Bus, BusError, Changed, Delivery, Events, ObjectName, Pulled, RecordWatch,
};
use wp_codebox_cluster::held::{HeldRun, HeldRuns};
use wp_codebox_cluster::host::HostRecord;
use wp_codebox_cluster::lease::Lease;
use wp_codebox_cluster::names::{NodeName, Queue, RunKey, SubmitterName};
use wp_codebox_cluster::record::{Claimant, End, Record, Revision, State, Versioned};
use wp_codebox_cluster::submit::{Submitted, cancel, submit};
use wp_codebox_cluster::sweep::Sweeper;
use wp_codebox_cluster::work::{Executor, Worker};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome, RunId, Sha256Hex};

const MAX_TRIES: u32 = 3;

/// What goes wrong at a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// The process dies before it.
    DiesBefore,
    /// The process dies after the server has carried the request out.
    DiesAfter,
    /// The server carries the request out, but the answer is lost.
    AnswerLost,
    /// The process stops before it while the next turn of the script is played.
    Stops,
    /// The submitter cancels the run before it.
    Cancelled,
    /// Nothing.
    None,
}

/// One process that gets the message.
#[derive(Debug, Clone)]
struct Turn {
    node: u8,
    at: u32,
    fault: Fault,
    /// Whether the process takes the leases of all other processes for expired.
    is_expired: bool,
    /// Whether the host cannot run the task.
    is_released: bool,
}

type Script = Arc<Mutex<VecDeque<Turn>>>;

/// The server as one process sees it.
#[derive(Clone)]
struct Process {
    server: Memory,
    key: RunKey,
    turn: Turn,
    script: Script,
    calls: Arc<AtomicU32>,
    is_dead: Arc<AtomicBool>,
}

fn killed() -> BusError {
    BusError::NotSetUp {
        detail: "this process is dead".to_owned(),
    }
}

impl Process {
    fn step<T>(&self, request: impl FnOnce(&Memory) -> Result<T, BusError>) -> Result<T, BusError> {
        if self.is_dead.load(Ordering::SeqCst) {
            return Err(killed());
        }
        if self.calls.fetch_add(1, Ordering::SeqCst) != self.turn.at {
            return request(&self.server);
        }
        match self.turn.fault {
            Fault::None => {}
            Fault::Cancelled => cancel(&self.server, &self.key).unwrap(),
            Fault::Stops => {
                self.server.redeliver();
                play(&self.server, &self.key, &self.script);
            }
            Fault::DiesBefore => {
                self.is_dead.store(true, Ordering::SeqCst);
                return Err(killed());
            }
            Fault::DiesAfter => {
                let _ = request(&self.server);
                self.is_dead.store(true, Ordering::SeqCst);
                return Err(killed());
            }
            Fault::AnswerLost => {
                let _ = request(&self.server);
                return Err(BusError::Unreachable {
                    detail: "the answer is lost".to_owned(),
                });
            }
        }
        request(&self.server)
    }
}

struct ProcessDelivery {
    process: Process,
    delivery: Arc<dyn Delivery>,
}

impl Delivery for ProcessDelivery {
    fn key(&self) -> &RunKey {
        self.delivery.key()
    }
    fn deliveries(&self) -> u64 {
        self.delivery.deliveries()
    }
    fn ack(&self) -> Result<(), BusError> {
        self.process.step(|_| self.delivery.ack())
    }
    fn retry(&self, after: Duration) -> Result<(), BusError> {
        self.process.step(|_| self.delivery.retry(after))
    }
    fn working(&self) -> Result<(), BusError> {
        self.process.step(|_| self.delivery.working())
    }
}

impl Bus for Process {
    fn record(&self, key: &RunKey) -> Result<Option<Versioned<Record>>, BusError> {
        self.step(|server| server.record(key))
    }
    fn create_record(&self, record: &Record) -> Result<Revision, BusError> {
        self.step(|server| server.create_record(record))
    }
    fn update_record(&self, record: &Record, at: Revision) -> Result<Revision, BusError> {
        self.step(|server| server.update_record(record, at))
    }
    fn remove_record(&self, key: &RunKey, at: Revision) -> Result<(), BusError> {
        self.step(|server| server.remove_record(key, at))
    }
    fn changed_records(
        &self,
        of: &SubmitterName,
        after: Revision,
        most: u64,
    ) -> Result<Changed, BusError> {
        self.step(|server| server.changed_records(of, after, most))
    }
    fn ended_runs(
        &self,
        of: &SubmitterName,
        age: Duration,
    ) -> Result<Vec<(RunKey, Revision)>, BusError> {
        self.step(|server| server.ended_runs(of, age))
    }
    fn watch(&self, key: &RunKey) -> Result<Box<dyn RecordWatch>, BusError> {
        self.step(|server| server.watch(key))
    }
    fn publish(&self, queue: &Queue, key: &RunKey, message_id: &str) -> Result<(), BusError> {
        self.step(|server| server.publish(queue, key, message_id))
    }
    fn queues(&self) -> Result<Vec<Queue>, BusError> {
        self.step(Bus::queues)
    }
    fn pull(&self, queue: &Queue) -> Result<Pulled, BusError> {
        let process = self.clone();
        Ok(match self.step(|server| server.pull(queue))? {
            Pulled::Message(delivery) => {
                Pulled::Message(Arc::new(ProcessDelivery { process, delivery }))
            }
            other => other,
        })
    }
    fn wait_for_message(&self, wait: Duration) -> Result<(), BusError> {
        self.step(|server| server.wait_for_message(wait))
    }
    fn is_empty(&self, queue: &Queue) -> Result<bool, BusError> {
        self.step(|server| server.is_empty(queue))
    }
    fn beat(&self, host: &HostRecord) -> Result<Revision, BusError> {
        self.step(|server| server.beat(host))
    }
    fn host(&self, node: &NodeName) -> Result<Option<Versioned<HostRecord>>, BusError> {
        self.step(|server| server.host(node))
    }
    fn hosts(&self) -> Result<Vec<Versioned<HostRecord>>, BusError> {
        self.step(Bus::hosts)
    }
    fn remove_host(&self, host: &NodeName) -> Result<(), BusError> {
        self.step(|server| server.remove_host(host))
    }
    fn has_object(&self, of: &SubmitterName, name: &ObjectName) -> Result<bool, BusError> {
        self.step(|server| server.has_object(of, name))
    }
    fn put_object(
        &self,
        of: &SubmitterName,
        name: &ObjectName,
        content: &mut (dyn Read + Send),
    ) -> Result<(), BusError> {
        self.step(|server| server.put_object(of, name, content))
    }
    fn get_object(
        &self,
        of: &SubmitterName,
        name: &ObjectName,
        to: &mut (dyn Write + Send),
    ) -> Result<(), BusError> {
        self.step(|server| server.get_object(of, name, to))
    }
    fn objects(&self, of: &SubmitterName) -> Result<Vec<(String, u64)>, BusError> {
        self.step(|server| server.objects(of))
    }
    fn remove_object(&self, of: &SubmitterName, name: &str) -> Result<(), BusError> {
        self.step(|server| server.remove_object(of, name))
    }
    fn ask(&self, key: &RunKey, request: &[u8], wait: Duration) -> Result<Vec<u8>, BusError> {
        self.step(|server| server.ask(key, request, wait))
    }
    fn answer(&self, key: &RunKey, answer: Answer) -> Result<Box<dyn Answering>, BusError> {
        self.step(|server| server.answer(key, answer))
    }
    fn emit(&self, key: &RunKey, event: &[u8]) -> Result<(), BusError> {
        self.step(|server| server.emit(key, event))
    }
    fn follow(&self, key: &RunKey) -> Result<Box<dyn Events>, BusError> {
        self.step(|server| server.follow(key))
    }
}

struct Tool<'a>(&'a Process, &'a Claimant);

impl Executor for Tool<'_> {
    fn execute(&self, record: &Record, _: &HeldRun) -> Result<End, ErrorBody> {
        // No request and so no fault comes between the claim and this line.
        let present = self.0.server.present(&record.key);
        assert!(present.is_held_by(self.1, record.epoch), "{present:?}");
        if self.0.turn.is_released {
            return Err(ErrorBody::new(ErrorCode::Busy, "no room"));
        }
        let name = ObjectName::Result {
            run: record.key.run.clone(),
            epoch: record.epoch,
        };
        let stored = self
            .0
            .put_object(&record.key.submitter, &name, &mut &b"result"[..]);
        stored?;
        Ok(End::Result {
            outcome: Outcome::Succeeded,
            sha256: record.task.clone(),
            bytes: record.epoch,
        })
    }
}

/// Plays the next turn of the script, if there is one: the process takes the message if it can, and
/// once more if an answer was lost.
fn play(server: &Memory, key: &RunKey, script: &Script) -> bool {
    let mut turns = script.lock().unwrap();
    let Some(turn) = turns.pop_front() else {
        return false;
    };
    // Unique for each process, as the random ids are.
    let number = turns.len();
    drop(turns);
    let me = Claimant {
        node: NodeName::new(&format!("node-{}", turn.node)).unwrap(),
        instance: number.to_string(),
    };
    let is_expired = turn.is_expired;
    let process = Process {
        server: server.clone(),
        key: key.clone(),
        turn,
        script: Arc::clone(script),
        calls: Arc::default(),
        is_dead: Arc::default(),
    };
    let held = HeldRuns::default();
    let worker = Worker {
        bus: &process,
        me: &me,
        key: &Sha256Hex::zero(),
        held: &held,
        lease: &|_| {
            if is_expired {
                Lease::Expired
            } else {
                Lease::Live
            }
        },
        executor: &Tool(&process, &me),
        patience: Duration::from_secs(60),
        pause: Duration::ZERO,
    };
    for _ in 0..2 {
        let Ok(Pulled::Message(delivery)) = process.pull(&queue()) else {
            break;
        };
        match worker.work(&delivery) {
            Err(BusError::Unreachable { .. }) => server.redeliver(),
            Ok(_) | Err(_) => break,
        }
    }
    true
}

fn clean(node: u8) -> Turn {
    Turn {
        node,
        at: 0,
        fault: Fault::None,
        is_expired: true,
        is_released: false,
    }
}

fn turn() -> impl Strategy<Value = Turn> {
    let fault = prop_oneof![
        3 => Just(Fault::DiesBefore),
        3 => Just(Fault::DiesAfter),
        3 => Just(Fault::AnswerLost),
        4 => Just(Fault::Stops),
        1 => Just(Fault::Cancelled),
        1 => Just(Fault::None),
    ];
    (
        0..3_u8,
        0..9_u32,
        fault,
        any::<bool>(),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(node, at, fault, is_expired, is_released)| Turn {
            node,
            at,
            fault,
            is_expired,
            is_released,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The server in memory panics when a record changes after its end, names a result that is not
    /// stored, or when a message is removed too early.
    #[test]
    fn run_ends_once_after_random_crashes_lost_answers_and_lost_messages(
        turns in prop::collection::vec(turn(), 1..8),
        is_published in any::<bool>(),
        loses_messages in prop::bool::weighted(0.2),
    ) {
        let server = Memory::default();
        let run = RunId::from_digest(&Sha256Hex::zero());
        let record = record(&run, MAX_TRIES);
        let mut sweeper = Sweeper::default();
        // A submitter that dies between the two steps leaves a record without a message.
        if is_published {
            prop_assert_eq!(submit(&server, &record, &mut || Ok(())).unwrap(), Submitted::Created);
        } else {
            server.create_record(&record).unwrap();
            let pass = sweeper.pass(&server, &[queue()], |_| Lease::Live);
            prop_assert!(pass.errors.is_empty());
        }
        let script: Script = Arc::new(Mutex::new(turns.into()));
        while play(&server, &record.key, &script) {
            server.redeliver();
        }
        if loses_messages {
            server.lose_messages();
        }
        // From here on nothing goes wrong.
        for node in 0..2 {
            let pass = sweeper.pass(&server, &[queue()], |_| Lease::Expired);
            prop_assert!(pass.errors.is_empty());
            script.lock().unwrap().push_back(clean(node));
            server.redeliver();
            play(&server, &record.key, &script);
        }
        let ended = server.present(&record.key);
        prop_assert!(ended.is_terminal(), "{:?}", ended);
        prop_assert!(ended.epoch <= u64::from(MAX_TRIES));
        prop_assert_eq!(server.message_count(), 0);
        let is_submitted = submit(&server, &record, &mut || Ok(())).unwrap();
        prop_assert_eq!(is_submitted, Submitted::Existing);
        prop_assert_eq!(server.present(&record.key), ended);
    }
}

#[test]
fn task_that_kills_every_process_that_runs_it_ends_after_the_allowed_tries() {
    let server = Memory::default();
    let run = RunId::from_digest(&Sha256Hex::zero());
    let record = record(&run, MAX_TRIES);
    submit(&server, &record, &mut || Ok(())).unwrap();
    let dies = |node| Turn {
        // Counted from 0, request 3 is `put_object`, after `pull`, `record` and `update`.
        at: 3,
        fault: Fault::DiesBefore,
        ..clean(node)
    };
    let turns = (0..3).map(dies).chain([clean(0)]);
    let script: Script = Arc::new(Mutex::new(turns.collect()));
    for tries in 0..4 {
        assert!(!server.present(&record.key).is_terminal(), "{tries}");
        assert!(play(&server, &record.key, &script));
        server.redeliver();
    }
    let State::Terminal {
        end: End::Error { error },
        ..
    } = server.present(&record.key).state
    else {
        panic!("the run goes on");
    };
    assert_eq!(error.code, ErrorCode::ClusterTriesExhausted);
    assert_eq!(server.message_count(), 0);
}

#[test]
fn run_is_claimed_again_by_the_same_process_if_the_answer_to_its_claim_was_lost() {
    let server = Memory::default();
    let run = RunId::from_digest(&Sha256Hex::zero());
    let record = record(&run, MAX_TRIES);
    submit(&server, &record, &mut || Ok(())).unwrap();
    let turn = Turn {
        // Calls: pull, record, update.
        at: 2,
        fault: Fault::AnswerLost,
        is_expired: false,
        ..clean(0)
    };
    let script: Script = Arc::new(Mutex::new([turn].into()));
    play(&server, &record.key, &script);
    let ended = server.present(&record.key);
    assert!(ended.is_terminal() && ended.epoch == 2, "{ended:?}");
}

/// `submit` calls `confirm`, which checks that the server still has the objects of the task.
/// If the server cannot be reached, the record stays, because the caller submits the run again.
#[test]
fn objects_are_confirmed_after_the_record_and_before_the_message_and_refusal_removes_the_record() {
    let server = Memory::default();
    let record = record(&RunId::from_digest(&Sha256Hex::zero()), MAX_TRIES);
    let try_with = |code: Option<ErrorCode>| {
        let mut confirm = || {
            assert!(
                server.record(&record.key).unwrap().is_some(),
                "no record yet"
            );
            assert_eq!(server.message_count(), 0);
            code.map_or(Ok(()), |code| Err(ErrorBody::new(code, "not confirmed")))
        };
        submit(&server, &record, &mut confirm).map_err(|error| error.code)
    };
    assert_eq!(
        try_with(Some(ErrorCode::ClusterFull)),
        Err(ErrorCode::ClusterFull)
    );
    assert_eq!(server.record(&record.key), Ok(None));
    // The server may have stored the record; the caller tries again.
    let unreachable = ErrorCode::ClusterUnreachable;
    assert_eq!(try_with(Some(unreachable)), Err(unreachable));
    assert!(server.record(&record.key).unwrap().is_some());
    assert_eq!(try_with(None), Ok(Submitted::Existing));
    assert_eq!(server.message_count(), 1);
}

#[test]
fn same_key_with_another_task_is_refused_and_the_run_stays_as_it_is() {
    let server = Memory::default();
    let run = RunId::from_digest(&Sha256Hex::zero());
    let first = record(&run, MAX_TRIES);
    submit(&server, &first, &mut || Ok(())).unwrap();
    let other = Record {
        task: Sha256Hex::zero(),
        ..first.clone()
    };
    let error = submit(&server, &other, &mut || Ok(())).unwrap_err();
    assert_eq!(error.code, ErrorCode::ClusterConflict);
    assert_eq!(server.present(&first.key), first);
    assert_eq!(
        submit(&server, &first, &mut || Ok(())).unwrap(),
        Submitted::Existing
    );
    assert_eq!((server.message_count(), submitter().as_str()), (1, "team"));
}
