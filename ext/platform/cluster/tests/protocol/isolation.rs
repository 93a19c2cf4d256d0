//! A node under load and faults: what one submitter stores, and errors and delays of one queue or run,
//! must not reach the runs of another one.

use crate::memory::{Memory, Request, queue, record_in, run_id, submitter, unreachable};
use crate::nodes::{TIMES, Tool, ended, host};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};
use wp_codebox_cluster::held::{HeldRun, Interruption};
use wp_codebox_cluster::names::{Priority, Queue, RunKey, SubmitterName};
use wp_codebox_cluster::node::{Node, Notice, Stop, Times, Unreadable};
use wp_codebox_cluster::record::Record;
use wp_codebox_cluster::submit::{cancel, submit};
use wp_codebox_contracts::Outcome;

/// Time limit of a wait. No correct program comes near it.
const LIMIT: Duration = Duration::from_secs(60);

/// A lease that does not expire while the machine is slow.
const CALM: Times = Times {
    lease: Duration::from_secs(600),
    ..TIMES
};

/// Returns the queue of high priority of another submitter, which sorts before `queue()`.
fn other_queue() -> Queue {
    Queue {
        priority: Priority::High,
        submitter: SubmitterName::new("other").unwrap(),
        ..queue()
    }
}

fn submit_to(server: &Memory, queue: &Queue, name: &str) -> RunKey {
    let record = record_in(queue, &run_id(&queue.submitter, name), 5);
    submit(server, &record, &mut || Ok(())).unwrap();
    record.key
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Blocks those that pass it until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<(bool, usize)>, Condvar)>);

impl Gate {
    fn pass(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.1 += 1;
        self.0.1.notify_all();
        drop(self.0.1.wait_while(state, |(is_open, _)| !*is_open));
    }

    fn wait_for_a_blocked_one(&self) {
        let state = self.0.0.lock().unwrap();
        let waited = self
            .0
            .1
            .wait_timeout_while(state, LIMIT, |(_, blocked)| *blocked == 0);
        assert!(!waited.unwrap().1.timed_out(), "nothing came to the gate");
    }

    fn open(&self) {
        self.0.0.lock().unwrap().0 = true;
        self.0.1.notify_all();
    }
}

/// Ends the node also when the test fails.
pub struct StopOnDrop<'a>(pub &'a Stop);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.ask();
    }
}

/// Opens the gate also when the test fails, so that the threads of the node can end.
struct OpenOnDrop<'a>(&'a Gate, &'a Stop);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.open();
        self.1.ask();
    }
}

/// `blocks` names the requests that the server does not answer once the node has a run.
fn heartbeats_go_on_while(blocks: impl Fn(&Request<'_>) -> bool + Send + Sync + 'static) {
    let server = Memory::default();
    let (gate, run_gate, stop) = (Gate::default(), Gate::default(), Stop::default());
    let is_slow = Arc::new(AtomicBool::new(false));
    let (at, slow) = (gate.clone(), Arc::clone(&is_slow));
    let seen = server.seen_through(move |request| {
        if slow.load(Ordering::SeqCst) && blocks(&request) {
            at.pass();
        }
        Ok(())
    });
    let tool = Tool {
        server: &server,
        run: &|_, _| {
            is_slow.store(true, Ordering::SeqCst);
            run_gate.pass();
            Outcome::Succeeded
        },
    };
    let quiet = |_: Notice| {};
    let key = submit_to(&server, &queue(), "one");
    std::thread::scope(|scope| {
        let _open = OpenOnDrop(&gate, &stop);
        let _run = OpenOnDrop(&run_gate, &stop);
        let node = Node::new(&seen, host("a", 1), CALM, &tool, &quiet, &stop);
        scope.spawn(move || node.run(None).unwrap());
        run_gate.wait_for_a_blocked_one();
        gate.wait_for_a_blocked_one();
        let blocked_at = server.beat_of("a");
        wait_until("no heartbeat while the server is slow", || {
            server.beat_of("a") >= blocked_at + 5
        });
        gate.open();
        run_gate.open();
        ended(&server, &key);
    });
}

#[test]
fn heartbeats_go_on_while_the_sweep_waits_for_the_server() {
    heartbeats_go_on_while(|request| matches!(request, Request::Changes(_)));
    heartbeats_go_on_while(|request| matches!(request, Request::IsEmpty(_)));
}

#[test]
fn heartbeats_go_on_while_a_read_of_other_heartbeats_or_of_a_record_waits() {
    heartbeats_go_on_while(|request| *request == Request::Hosts);
    heartbeats_go_on_while(|request| matches!(request, Request::Record(_)));
}

#[test]
fn run_is_cancelled_although_the_record_of_another_run_of_the_node_cannot_be_read() {
    let server = Memory::default();
    let stop = Stop::default();
    let mut keys = ["one", "two"].map(|name| submit_to(&server, &queue(), name));
    // A node checks its runs in the order of their keys.
    keys.sort();
    let [broken, cancelled] = keys;
    let (failing, is_broken) = (broken.clone(), Arc::new(AtomicBool::new(false)));
    let breaks = Arc::clone(&is_broken);
    let seen = server.seen_through(move |request| {
        if breaks.load(Ordering::SeqCst) && request == Request::Record(&failing) {
            return Err(unreachable());
        }
        Ok(())
    });
    let (started, starts) = mpsc::channel();
    let run = |_: &Record, held: &HeldRun| {
        let (sender, interrupted) = mpsc::channel();
        held.when_interrupted(move |why| sender.send(why).unwrap());
        started.send(()).unwrap();
        match interrupted.recv_timeout(LIMIT + LIMIT) {
            Ok(Interruption::Cancelled) => Outcome::Cancelled,
            _ => Outcome::Failed,
        }
    };
    let tool = Tool {
        server: &server,
        run: &run,
    };
    let quiet = |_: Notice| {};
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        let node = Node::new(&seen, host("a", 2), CALM, &tool, &quiet, &stop);
        scope.spawn(move || node.run(None).unwrap());
        for _ in 0..2 {
            starts.recv_timeout(LIMIT).unwrap();
        }
        is_broken.store(true, Ordering::SeqCst);
        cancel(&server, &cancelled).unwrap();
        wait_until("the run is not cancelled", || {
            server.present(&cancelled).is_terminal()
        });
        // Control: the other run is cancelled, too, once its record can be read.
        is_broken.store(false, Ordering::SeqCst);
        cancel(&server, &broken).unwrap();
        wait_until("the other run is not cancelled", || {
            server.present(&broken).is_terminal()
        });
        stop.ask();
    });
}

/// Runs a node on a server on which requests for the queue of another submitter fail.
#[test]
fn runs_are_taken_and_lost_messages_replaced_although_the_queue_of_another_submitter_fails() {
    let server = Memory::default();
    server.add_queue(&other_queue());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let seen = server.seen_through(move |request| match request {
        Request::Pull(queue) if *queue == other_queue() => {
            count.fetch_add(1, Ordering::SeqCst);
            Err(unreachable())
        }
        Request::IsEmpty(queue) if *queue == other_queue() => Err(unreachable()),
        Request::Changes(of) if *of == other_queue().submitter => Err(unreachable()),
        _ => Ok(()),
    });
    let tool = Tool {
        server: &server,
        run: &|_, _| Outcome::Succeeded,
    };
    let stop = Stop::default();
    let quiet = |_: Notice| {};
    let lost = submit_to(&server, &queue(), "lost");
    server.lose_messages();
    let keys: Vec<RunKey> = (0..20)
        .map(|number| submit_to(&server, &queue(), &number.to_string()))
        .collect();
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        let node = Node::new(&seen, host("a", 1), CALM, &tool, &quiet, &stop);
        scope.spawn(move || node.run(None).unwrap());
        let began = Instant::now();
        for key in keys.iter().chain([&lost]) {
            wait_until("a run is not taken", || server.present(key).is_terminal());
        }
        // A queue that fails is asked at most once a second.
        let most = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
        assert!((1..=most).contains(&asked.load(Ordering::SeqCst)));
        stop.ask();
    });
}

#[test]
fn thousands_of_unreadable_messages_of_one_submitter_delay_a_run_of_another_one_by_a_few_messages()
{
    const COUNT: usize = 2_000;
    let server = Memory::default();
    server.add_queue(&other_queue());
    server.publish_unreadable(&other_queue(), COUNT);
    let left = Mutex::new(Vec::new());
    let notices = Mutex::new(Vec::new());
    let tool = Tool {
        server: &server,
        run: &|_, _| {
            left.lock().unwrap().push(server.message_count());
            Outcome::Succeeded
        },
    };
    let notice = |notice: Notice| match notice {
        Notice::Unreadable(row) => notices.lock().unwrap().push(row),
        Notice::Trouble(error) => panic!("{error}"),
        _ => {}
    };
    let stop = Stop::default();
    let keys = ["one", "two", "three"].map(|name| submit_to(&server, &queue(), name));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        let node = Node::new(&server, host("a", 1), CALM, &tool, &notice, &stop);
        scope.spawn(move || node.run(None).unwrap());
        wait_until("messages stay", || server.message_count() == 0);
        for key in &keys {
            ended(&server, key);
        }
        stop.ask();
    });
    // Unreadable messages that were left when each run started. While a run occupies the only place,
    // no message is taken.
    let left = left.into_inner().unwrap();
    assert_eq!(left.len(), 3);
    for count in left {
        assert!(count >= COUNT - 10, "{count} messages were left");
    }
    let notices: Vec<Unreadable> = notices.into_inner().unwrap();
    let reported: Vec<(&str, u64)> = notices
        .iter()
        .map(|row| (row.submitter.as_str(), row.count))
        .collect();
    assert_eq!(reported[0], ("other", 1));
    assert!(reported.len() <= 8, "{} notices", reported.len());
}

#[test]
fn unreadable_record_is_reported_and_not_claimed_while_other_runs_of_its_queue_end() {
    let server = Memory::default();
    let (broken, good) = (
        submit_to(&server, &queue(), "broken"),
        submit_to(&server, &queue(), "good"),
    );
    server.damage(&broken);
    let (sender, notices) = mpsc::channel();
    let notice = |notice: Notice| {
        if let Notice::Unreadable(row) = notice {
            sender.send(row).unwrap();
        }
    };
    let tool = Tool {
        server: &server,
        run: &|record, _| {
            assert_eq!(record.key, good);
            Outcome::Succeeded
        },
    };
    let stop = Stop::default();
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        let node = Node::new(&server, host("a", 1), CALM, &tool, &notice, &stop);
        scope.spawn(move || node.run(None).unwrap());
        let row = notices.recv_timeout(LIMIT).unwrap();
        assert_eq!(row.submitter, submitter());
        assert!(row.detail.contains(broken.run.as_str()), "{}", row.detail);
        ended(&server, &good);
        stop.ask();
    });
}

/// Counts the runs of each submitter that are running.
#[derive(Default)]
struct Running {
    /// Runs in the order of their starts, with whether they may end.
    runs: Mutex<Vec<(RunKey, bool)>>,
    changed: Condvar,
}

impl Running {
    fn run(&self, key: &RunKey) {
        let mut runs = self.runs.lock().unwrap();
        runs.push((key.clone(), false));
        self.changed.notify_all();
        let may_not_end =
            |runs: &mut Vec<(RunKey, bool)>| runs.iter().any(|(run, may)| run == key && !may);
        let mut runs = self.changed.wait_while(runs, may_not_end).unwrap();
        runs.retain(|(run, _)| run != key);
        self.changed.notify_all();
    }

    /// Waits until this many runs are running, and returns the number of runs of each submitter.
    fn full(&self, places: usize) -> [usize; 2] {
        let runs = self.runs.lock().unwrap();
        let waited = self.changed.wait_timeout_while(runs, LIMIT, |runs| {
            runs.len() != places || runs.iter().any(|(_, may)| *may)
        });
        let (runs, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "{runs:?}");
        [other_queue().submitter, submitter()]
            .map(|name| runs.iter().filter(|(key, _)| key.submitter == name).count())
    }

    /// Lets the first run of a submitter end.
    fn end_one(&self, of: &SubmitterName) {
        let mut runs = self.runs.lock().unwrap();
        let mut of_it = runs.iter_mut().filter(|(key, _)| key.submitter == *of);
        of_it.next().unwrap().1 = true;
        self.changed.notify_all();
    }
}

/// Ends the node and its runs, also when the test fails.
struct EndOnDrop<'a>(&'a Running, &'a AtomicBool, &'a Stop);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.2.ask();
        self.1.store(true, Ordering::SeqCst);
        for (_, may) in self.0.runs.lock().unwrap().iter_mut() {
            *may = true;
        }
        self.0.changed.notify_all();
    }
}

/// `other` has ten times as many runs, of high priority, and they never end by themselves; those of
/// `team` end one after the other.
#[test]
fn submitter_with_short_runs_keeps_its_half_of_the_places_until_its_last_run() {
    const PLACES: usize = 4;
    let server = Memory::default();
    server.add_queue(&other_queue());
    let running = Running::default();
    for number in 0..60 {
        submit_to(&server, &other_queue(), &number.to_string());
    }
    for number in 0..6 {
        submit_to(&server, &queue(), &number.to_string());
    }
    let is_over = AtomicBool::new(false);
    let tool = Tool {
        server: &server,
        run: &|record, _| {
            if !is_over.load(Ordering::SeqCst) {
                running.run(&record.key);
            }
            Outcome::Succeeded
        },
    };
    let stop = Stop::default();
    let quiet = |_: Notice| {};
    let mut places = Vec::new();
    std::thread::scope(|scope| {
        let _end = EndOnDrop(&running, &is_over, &stop);
        let node = Node::new(&server, host("a", 4), CALM, &tool, &quiet, &stop);
        scope.spawn(move || node.run(None).unwrap());
        for _ in 0..4 {
            places.push(running.full(PLACES));
            if places.last().is_some_and(|[_, team]| *team > 0) {
                running.end_one(&submitter());
            }
        }
        places.push(running.full(PLACES));
        // Control: a submitter without work leaves its places to the other one.
        for _ in 0..2 {
            if running.full(PLACES)[1] > 0 {
                running.end_one(&submitter());
            }
        }
        let last = running.full(PLACES);
        assert_eq!(places, [[2, 2]; 5]);
        assert_eq!(last, [4, 0]);
    });
}
