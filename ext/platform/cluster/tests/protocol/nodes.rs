//! Whole nodes in threads, on a server in memory.

use crate::isolation::StopOnDrop;
use crate::memory::{Memory, record, run_id, submitter};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use wp_codebox_cluster::bus::{Bus, ObjectName};
use wp_codebox_cluster::held::{HeldRun, Interruption};
use wp_codebox_cluster::host::HostRecord;
use wp_codebox_cluster::names::{Capability, NodeName, RunKey};
use wp_codebox_cluster::node::{Node, Notice, Stop, Times};
use wp_codebox_cluster::record::{End, PROTOCOL, Record, State, new_claimant};
use wp_codebox_cluster::submit::{Seen, check_nodes, follow, submit};
use wp_codebox_cluster::trust::NodeKeys;
use wp_codebox_cluster::work::{Executor, Worked};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome, Sha256Hex};

pub const TIMES: Times = Times {
    beat: Duration::from_millis(20),
    lease: Duration::from_millis(400),
    sweep: Duration::from_millis(50),
    patience: Duration::from_secs(60),
    rest: Duration::from_secs(3_600),
};

pub fn host(name: &str, capacity: u32) -> HostRecord {
    HostRecord {
        protocol: PROTOCOL,
        claimant: new_claimant(NodeName::new(name).unwrap()).unwrap(),
        version: "1".to_owned(),
        key_id: Sha256Hex::zero(),
        capabilities: vec![Capability::new("default").unwrap()],
        capacity,
        running: 0,
        draining: false,
        beat: 0,
    }
}

/// Runs a task by calling a function, and stores a result.
pub struct Tool<'a> {
    pub server: &'a Memory,
    pub run: &'a (dyn Fn(&Record, &HeldRun) -> Outcome + Sync),
}

impl Executor for Tool<'_> {
    fn execute(&self, record: &Record, held: &HeldRun) -> Result<End, ErrorBody> {
        let outcome = (self.run)(record, held);
        let name = ObjectName::Result {
            run: record.key.run.clone(),
            epoch: record.epoch,
        };
        let stored = self
            .server
            .put_object(&record.key.submitter, &name, &mut &b"r"[..]);
        stored?;
        Ok(End::Result {
            outcome,
            sha256: record.task.clone(),
            bytes: 1,
        })
    }
}

fn submit_run(server: &Memory, name: &str) -> RunKey {
    let record = record(&run_id(&submitter(), name), 5);
    submit(server, &record, &mut || Ok(())).unwrap();
    record.key
}

pub fn ended(server: &Memory, key: &RunKey) -> Record {
    let bus: Arc<dyn Bus> = Arc::new(server.clone());
    let mut epochs = Vec::new();
    let record = follow(&bus, key, Duration::from_secs(60), &|| false, &mut |seen| {
        if let Seen::Claimed { epoch, .. } = seen {
            epochs.push(epoch);
        }
    });
    let record = record.unwrap();
    // A follower sees each claim at most once, and the last claim even if it comes late.
    assert_eq!(epochs.last(), Some(&record.epoch));
    assert!(epochs.is_sorted_by(|a, b| a < b), "{epochs:?}");
    record
}

#[test]
fn three_nodes_run_every_task_once() {
    let server = Memory::default();
    let runs: Mutex<BTreeMap<RunKey, u32>> = Mutex::default();
    let run = |record: &Record, _: &HeldRun| {
        *runs.lock().unwrap().entry(record.key.clone()).or_default() += 1;
        Outcome::Succeeded
    };
    let tool = Tool {
        server: &server,
        run: &run,
    };
    let stop = Stop::default();
    let quiet = |_: Notice| {};
    std::thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            // A lease that does not expire while the machine is slow.
            let times = Times {
                lease: Duration::from_secs(60),
                ..TIMES
            };
            let node = Node::new(&server, host(name, 2), times, &tool, &quiet, &stop);
            scope.spawn(move || node.run(None).unwrap());
        }
        let keys: Vec<RunKey> = (0..60)
            .map(|n| submit_run(&server, &n.to_string()))
            .collect();
        for key in &keys {
            let record = ended(&server, key);
            assert_eq!(record.epoch, 1);
        }
        stop.ask();
    });
    let runs = runs.lock().unwrap();
    assert_eq!(
        (runs.len(), runs.values().all(|count| *count == 1)),
        (60, true)
    );
    assert!(server.hosts().unwrap().is_empty());
}

#[test]
fn run_of_a_node_without_heartbeats_is_taken_over_and_its_late_end_is_ignored() {
    let server = Memory::default();
    let (started, starts) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let (started, gate) = (Mutex::new(started), Mutex::new(gate));
    let late = |record: &Record, _: &HeldRun| {
        started.lock().unwrap().send(record.epoch).unwrap();
        gate.lock().unwrap().recv().unwrap();
        Outcome::Failed
    };
    let key = submit_run(&server, "one");
    let stop = Stop::default();
    let prompt = Tool {
        server: &server,
        run: &|_, _| Outcome::Succeeded,
    };
    let quiet = |_: Notice| {};
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (notices, noticed) = mpsc::channel();
            let notices = Mutex::new(notices);
            // This node sends no heartbeat after it has joined.
            let times = Times {
                beat: Duration::from_secs(3_600),
                ..TIMES
            };
            let tool = Tool {
                server: &server,
                run: &late,
            };
            let notice = |notice: Notice| notices.lock().unwrap().send(notice).unwrap();
            let stop = Stop::default();
            let node = Node::new(&server, host("a", 1), times, &tool, &notice, &stop);
            std::thread::scope(|inner| {
                inner.spawn(|| {
                    let _ = node.run(None);
                });
                // Its run ends only after the other node has taken it over.
                let worked = loop {
                    if let Notice::Worked { worked, .. } = noticed.recv().unwrap() {
                        break worked;
                    }
                };
                assert_eq!(worked, Worked::Fenced);
                stop.ask();
            });
        });
        assert_eq!(starts.recv().unwrap(), 1);
        scope.spawn(|| {
            let node = Node::new(&server, host("b", 1), TIMES, &prompt, &quiet, &stop);
            node.run(None).unwrap();
        });
        // The other node finds that the first one is dead, and puts a second message into the queue.
        let record = ended(&server, &key);
        go.send(()).unwrap();
        stop.ask();
        assert_eq!(record.epoch, 2);
        let State::Terminal { by: Some(by), .. } = &record.state else {
            panic!("{record:?}");
        };
        assert_eq!(by.node.as_str(), "b");
    });
    let record = server.present(&key);
    assert!(matches!(
        record.state,
        State::Terminal {
            end: End::Result {
                outcome: Outcome::Succeeded,
                ..
            },
            ..
        }
    ));
    // Both results are stored; the record names one.
    assert_eq!(server.objects(&submitter()).unwrap().len(), 2);
}

#[test]
fn cancelled_run_is_interrupted_and_its_end_is_stored() {
    let server = Memory::default();
    let run = |_: &Record, held: &HeldRun| {
        let (sender, interrupted) = mpsc::channel();
        held.when_interrupted(move |why| sender.send(why).unwrap());
        match interrupted.recv().unwrap() {
            Interruption::Cancelled => Outcome::Cancelled,
            Interruption::Lost => Outcome::Failed,
        }
    };
    let tool = Tool {
        server: &server,
        run: &run,
    };
    let stop = Stop::default();
    let quiet = |_: Notice| {};
    let times = Times {
        lease: Duration::from_secs(60),
        ..TIMES
    };
    std::thread::scope(|scope| {
        let node = Node::new(&server, host("a", 1), times, &tool, &quiet, &stop);
        scope.spawn(move || node.run(None).unwrap());
        let key = submit_run(&server, "one");
        let bus: Arc<dyn Bus> = Arc::new(server.clone());
        let is_running = Mutex::new(false);
        let record = follow(
            &bus,
            &key,
            Duration::from_secs(60),
            &|| *is_running.lock().unwrap(),
            &mut |seen| {
                if matches!(seen, Seen::Claimed { .. }) {
                    *is_running.lock().unwrap() = true;
                }
            },
        )
        .unwrap();
        stop.ask();
        assert!(record.cancelled);
        assert!(matches!(
            record.state,
            State::Terminal {
                end: End::Result {
                    outcome: Outcome::Cancelled,
                    ..
                },
                ..
            }
        ));
    });
}

#[test]
fn second_process_with_the_name_of_a_living_node_is_refused() {
    let server = Memory::default();
    let tool = Tool {
        server: &server,
        run: &|_, _| Outcome::Succeeded,
    };
    let (first, second) = (Stop::default(), Stop::default());
    let (joined, join) = mpsc::channel();
    let joined = Mutex::new(joined);
    let notice = |notice: Notice| {
        if notice == Notice::Joined {
            joined.lock().unwrap().send(()).unwrap();
        }
    };
    let times = Times {
        lease: Duration::from_secs(60),
        ..TIMES
    };
    std::thread::scope(|scope| {
        let one = host("a", 1);
        let instance = one.claimant.instance.clone();
        let node = Node::new(&server, one, times, &tool, &notice, &first);
        let running = scope.spawn(move || node.run(None));
        join.recv().unwrap();
        let node = Node::new(&server, host("a", 1), times, &tool, &notice, &second);
        assert_eq!(node.run(None).unwrap_err().code, ErrorCode::ClusterConflict);
        first.ask();
        running.join().unwrap().unwrap();
        // A host that knows that its earlier process is dead need not wait for the lease.
        let mut dead = host("a", 1);
        dead.claimant.instance = instance.clone();
        server.beat(&dead).unwrap();
        second.ask();
        let node = Node::new(&server, host("a", 1), times, &tool, &notice, &second);
        node.run(Some(&instance)).unwrap();
    });
}

#[test]
fn node_whose_name_another_process_has_taken_ends_and_interrupts_its_run() {
    let server = Memory::default();
    let (started, starts) = mpsc::channel();
    let started = Mutex::new(started);
    let run = |_: &Record, held: &HeldRun| {
        let (sender, interrupted) = mpsc::channel();
        held.when_interrupted(move |why| sender.send(why).unwrap());
        started.lock().unwrap().send(()).unwrap();
        assert_eq!(interrupted.recv().unwrap(), Interruption::Lost);
        Outcome::Cancelled
    };
    let tool = Tool {
        server: &server,
        run: &run,
    };
    let stop = Stop::default();
    let quiet = |_: Notice| {};
    submit_run(&server, "one");
    std::thread::scope(|scope| {
        let node = Node::new(&server, host("a", 1), TIMES, &tool, &quiet, &stop);
        let running = scope.spawn(move || node.run(None));
        starts.recv().unwrap();
        // The node may beat at the same moment, so the other process beats until it has ended.
        while !running.is_finished() {
            server.beat(&host("a", 1)).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        let error = running.join().unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::ClusterConflict);
    });
}

/// Of the nodes that serve a queue, the first by name replaces its lost messages: here `b`, because
/// `a` does not serve the queue of the run.
#[test]
fn lost_message_is_replaced_although_a_node_with_an_earlier_name_serves_other_queues() {
    let server = Memory::default();
    let tool = Tool {
        server: &server,
        run: &|_, _| Outcome::Succeeded,
    };
    let stop = Stop::default();
    let (joined, join) = mpsc::channel();
    let joined = Mutex::new(joined);
    let notice = |notice: Notice| {
        if notice == Notice::Joined {
            joined.lock().unwrap().send(()).unwrap();
        }
    };
    let times = Times {
        lease: Duration::from_secs(60),
        ..TIMES
    };
    let key = submit_run(&server, "one");
    server.lose_messages();
    std::thread::scope(|scope| {
        let mut other = host("a", 1);
        other.capabilities = vec![Capability::new("gpu").unwrap()];
        for host in [other, host("b", 1)] {
            let node = Node::new(&server, host, times, &tool, &notice, &stop);
            scope.spawn(move || node.run(None).unwrap());
            join.recv().unwrap();
        }
        let until = Instant::now() + Duration::from_secs(30);
        while !server.present(&key).is_terminal() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.ask();
    });
    assert!(server.present(&key).is_terminal());
}

#[test]
fn node_that_cannot_run_a_task_leaves_the_next_tries_to_other_nodes() {
    struct Broken;
    impl Executor for Broken {
        fn execute(&self, _: &Record, _: &HeldRun) -> Result<End, ErrorBody> {
            Err(ErrorBody::new(
                ErrorCode::StateDirInvalid,
                "the disk is full",
            ))
        }
    }
    let server = Memory::default();
    let good = Tool {
        server: &server,
        run: &|_, _| Outcome::Succeeded,
    };
    let stop = Stop::default();
    let (released, releases) = mpsc::channel();
    let released = Mutex::new(released);
    let notice = |notice: Notice| {
        if let Notice::Worked {
            worked: Worked::Released(error),
            ..
        } = notice
        {
            released.lock().unwrap().send(error.code).unwrap();
        }
    };
    let key = submit_run(&server, "one");
    std::thread::scope(|scope| {
        let broken = Node::new(&server, host("a", 1), TIMES, &Broken, &notice, &stop);
        scope.spawn(move || broken.run(None).unwrap());
        assert_eq!(releases.recv().unwrap(), ErrorCode::StateDirInvalid);
        let node = Node::new(&server, host("b", 1), TIMES, &good, &notice, &stop);
        scope.spawn(move || node.run(None).unwrap());
        let record = ended(&server, &key);
        stop.ask();
        assert_eq!(record.epoch, 2);
    });
    assert!(releases.try_recv().is_err(), "it took the run again");
}

#[test]
fn node_that_the_submitter_does_not_list_leaves_the_run_and_its_tries_to_a_listed_one() {
    let server = Memory::default();
    let tool = Tool {
        server: &server,
        run: &|_, _| Outcome::Succeeded,
    };
    let stop = Stop::default();
    let (seen, sees) = mpsc::channel();
    let notice = |notice: Notice| {
        if let Notice::Worked { worked, .. } = notice {
            seen.send(worked).unwrap();
        }
    };
    let listed = NodeKeys::new([(NodeName::new("b").unwrap(), Sha256Hex::zero())]);
    let one = record(&run_id(&submitter(), "one"), 1).for_nodes(listed);
    submit(&server, &one, &mut || Ok(())).unwrap();
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        let node = Node::new(&server, host("a", 1), TIMES, &tool, &notice, &stop);
        scope.spawn(move || node.run(None).unwrap());
        assert_eq!(sees.recv().unwrap(), Worked::NotListed);
        // Control: it runs a task of a submitter without a list.
        let free = submit_run(&server, "free");
        assert_eq!(ended(&server, &free).epoch, 1);
        assert_eq!(server.present(&one.key), one);
        let node = Node::new(&server, host("b", 1), TIMES, &tool, &notice, &stop);
        scope.spawn(move || node.run(None).unwrap());
        let record = ended(&server, &one.key);
        stop.ask();
        let State::Terminal { by: Some(by), .. } = &record.state else {
            panic!("{record:?}");
        };
        assert_eq!((by.node.as_str(), record.epoch), ("b", 1));
    });
}

#[test]
fn submission_is_refused_if_listed_nodes_announce_other_keys_only() {
    let server = Memory::default();
    server.beat(&host("a", 1)).unwrap();
    let name = |name: &str| NodeName::new(name).unwrap();
    let (right, wrong) = (Sha256Hex::zero(), Sha256Hex::from_bytes(&[1; 32]));
    let check = |rows: &[(&str, &Sha256Hex)]| {
        let rows = rows.iter().map(|(node, key)| (name(node), (*key).clone()));
        check_nodes(&server, &NodeKeys::new(rows)).map_err(|error| error.code)
    };
    let untrusted = Err(ErrorCode::ClusterNodeUntrusted);
    assert_eq!(check(&[("a", &wrong)]), untrusted);
    assert_eq!(check(&[("a", &wrong), ("absent", &right)]), untrusted);
    // Controls: the listed key, an earlier key beside it, and a node that may come later.
    assert_eq!(check(&[("a", &right)]), Ok(()));
    assert_eq!(check(&[("a", &wrong), ("a", &right)]), Ok(()));
    assert_eq!(check(&[("absent", &wrong)]), Ok(()));
}
