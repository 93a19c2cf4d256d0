//! Removes a submitter's objects that no record names any more: tasks, layers and results.
//!
//! A record names its task and its results, the task names its layers. An object is removed when
//! the same collector found that no record names it in passes that lie at least the grace period
//! apart on its own monotonic clock. No host's wall clock counts.
//!
//! A record that cannot be read, for example because a newer version wrote it, may name any task and
//! so any layer. All of them stay while there is such a record, and the results of its run.
//!
//! A submission at the same time is safe by the order of its writes (see
//! [`crate::layers::LayerStore`]). A submission can lose an object in one way: it finds the object
//! on the server and does not upload it, and the collector, which read the records before the
//! submission wrote its own, removes the object. The collector removes nothing later than ten
//! seconds after it began to read the records. The submitter checks for its objects again after
//! [`REMOVAL_WINDOW`] and uploads what is missing. A collector that the kernel stops between its
//! last check of the clock and the removal can exceed the window; a run whose layer is gone then
//! ends with an error and with no wrong result.

use crate::bus::{BusError, Changed};
use crate::objects::Objects;
use crate::record::{Record, Revision, State};
use crate::task::{ClusterTask, TaskError};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{CodedError, RunId, Sha256Hex};

/// Time after which a submitter checks for its objects again: the collector's ten seconds, and
/// twenty more until the server has carried out the collector's last request.
pub const REMOVAL_WINDOW: Duration = Duration::from_secs(30);
/// Time from the reading of the records to the last removal that is justified by them.
const LAST_REMOVAL: Duration = Duration::from_secs(10);

/// Why a collection ended early.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum CollectError {
    /// The message server refused or failed.
    #[error(transparent)]
    #[code(transparent)]
    Bus(#[from] BusError),
}

/// What a pass removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Names of the removed objects.
    pub removed: Vec<String>,
    /// Number of objects that no record names and that wait for the end of the grace period.
    pub waiting: u64,
    /// Number of removed bytes.
    pub bytes: u64,
    /// Whether layers were left alone because a task or a record could not be read.
    pub kept_layers: bool,
    /// Number of runs whose records could not be read. Tasks were left alone if there are some.
    pub unreadable: usize,
}

/// Collector of one submitter's objects. It remembers what it saw, so all passes of a process use
/// the same one.
#[derive(Debug, Default)]
pub struct Collector {
    /// Records that were read so far, and the revision after which the next pass goes on. A record
    /// that was removed meanwhile stays here and keeps its objects.
    records: BTreeMap<RunId, Record>,
    /// Runs whose last record that was read cannot be understood.
    unreadable: BTreeSet<RunId>,
    read: Revision,
    unnamed: BTreeMap<String, Instant>,
    /// Layers of the tasks that records name; a task never changes.
    layers: BTreeMap<Sha256Hex, BTreeSet<Sha256Hex>>,
}

impl Collector {
    /// Creates a collector that has seen nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes the objects whose grace period is over. `changed` returns the records of the submitter
    /// that changed after a revision, `now` the time of the process's monotonic clock.
    ///
    /// # Errors
    /// [`CollectError::Bus`]; some objects may have been removed.
    pub fn pass(
        &mut self,
        objects: &dyn Objects,
        changed: &dyn Fn(Revision) -> Result<Changed, BusError>,
        grace: Duration,
        now: &dyn Fn() -> Instant,
    ) -> Result<Collected, CollectError> {
        // Lists the objects before it reads the records: a pass does not consider an object that is
        // stored after this line, because its record may be missing in what the pass reads.
        let listed = objects.list()?;
        let read_at = now();
        loop {
            let changed = changed(self.read)?;
            self.read = changed.until;
            for row in changed.records {
                let run = row.value.key.run.clone();
                self.unreadable.remove(&run);
                self.records.insert(run, row.value);
            }
            let unreadable = changed.unreadable.into_iter();
            self.unreadable.extend(unreadable.map(|(key, _)| key.run));
            if !changed.is_partial {
                break;
            }
        }
        let named = self.named(objects)?;
        let mut report = Collected {
            kept_layers: named.are_layers_unknown,
            unreadable: self.unreadable.len(),
            ..Collected::default()
        };
        let unnamed: Vec<(String, u64)> = listed
            .into_iter()
            .filter(|(name, _)| named.is_unnamed(name))
            .collect();
        let names: BTreeSet<&str> = unnamed.iter().map(|(name, _)| name.as_str()).collect();
        self.unnamed.retain(|name, _| names.contains(name.as_str()));
        for (name, bytes) in &unnamed {
            let since = *self.unnamed.entry(name.clone()).or_insert(read_at);
            let is_over = read_at.saturating_duration_since(since) >= grace;
            let is_in_time = now().saturating_duration_since(read_at) < LAST_REMOVAL;
            // The pass that first finds an object unnamed does not remove it, even without a grace
            // period.
            if since == read_at || !is_over || !is_in_time {
                report.waiting += 1;
                continue;
            }
            objects.remove(name)?;
            self.unnamed.remove(name);
            report.bytes += bytes;
            report.removed.push(name.clone());
        }
        Ok(report)
    }

    /// Returns the tasks, layers and runs that the records name.
    fn named(&mut self, objects: &dyn Objects) -> Result<Named, CollectError> {
        let mut named = Named::default();
        if !self.unreadable.is_empty() {
            (named.are_tasks_unknown, named.are_layers_unknown) = (true, true);
            let runs = self.unreadable.iter().map(|run| run.as_str().to_owned());
            named.runs.extend(runs);
        }
        for record in self.records.values() {
            named.tasks.insert(record.task.clone());
            named.runs.insert(record.key.run.as_str().to_owned());
            if let Some(layers) = self.layers.get(&record.task) {
                named.layers.extend(layers.iter().cloned());
                continue;
            }
            match ClusterTask::fetch(objects, &record.task) {
                Ok(task) => {
                    let layers = task.inputs();
                    named.layers.extend(layers.iter().cloned());
                    self.layers.insert(record.task.clone(), layers);
                }
                // A run that has ended needs no layers, and a task that is gone names none.
                Err(TaskError::Bus(BusError::Missing { .. }))
                    if matches!(record.state, State::Terminal { .. }) => {}
                Err(TaskError::Bus(error)) if !matches!(error, BusError::Missing { .. }) => {
                    return Err(error.into());
                }
                // The task is not stored yet, or a newer version wrote it. Any layer may belong to
                // it.
                Err(_) => named.are_layers_unknown = true,
            }
        }
        Ok(named)
    }
}

#[derive(Debug, Default)]
struct Named {
    tasks: BTreeSet<Sha256Hex>,
    layers: BTreeSet<Sha256Hex>,
    runs: BTreeSet<String>,
    are_tasks_unknown: bool,
    are_layers_unknown: bool,
}

impl Named {
    /// Returns true if no record names the object; false for objects of kinds that this version
    /// does not know.
    fn is_unnamed(&self, object: &str) -> bool {
        let digest = |text: &str| Sha256Hex::new(text).ok();
        match object.split_once('.') {
            Some(("task", rest)) => {
                !self.are_tasks_unknown && digest(rest).is_some_and(|of| !self.tasks.contains(&of))
            }
            Some(("layer", rest)) => {
                !self.are_layers_unknown
                    && digest(rest).is_some_and(|of| !self.layers.contains(&of))
            }
            Some(("result", rest)) => match rest.split_once('.') {
                Some((run, _)) => !self.runs.contains(run),
                None => false,
            },
            Some(_) | None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Capability, Priority, Queue, RunKey, SubmitterName};
    use crate::objects::tests::MemoryObjects;
    use crate::record::{End, PROTOCOL, Versioned};
    use crate::task::tests::minimal_task;
    use std::cell::Cell;
    use wp_codebox_artifacts::sha256;
    use wp_codebox_contracts::RunId;
    use wp_codebox_contracts::{ErrorBody, ErrorCode};

    fn record(number: u32, task: &Sha256Hex, state: State) -> Record {
        let submitter = SubmitterName::new("team").unwrap();
        Record {
            protocol: PROTOCOL,
            key: RunKey {
                submitter: submitter.clone(),
                run: RunId::new(format!("run_{number:032x}")).unwrap(),
            },
            queue: Queue {
                capability: Capability::new("default").unwrap(),
                priority: Priority::Normal,
                submitter,
            },
            task: task.clone(),
            epoch: 0,
            max_tries: 3,
            nodes: None,
            cancelled: false,
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            state,
        }
    }

    type Changes<'a> = dyn Fn(Revision) -> Result<Changed, BusError> + 'a;

    /// Returns these records as the changes after the revision `after`.
    fn changed(after: Revision, records: Vec<Record>) -> Result<Changed, BusError> {
        let rows = records.into_iter().map(|value| Versioned {
            value,
            revision: Revision(after.0 + 1),
        });
        Ok(Changed {
            unreadable: Vec::new(),
            records: rows.collect(),
            until: Revision(after.0 + 1),
            is_partial: false,
        })
    }

    /// A clock that a test sets.
    struct Clock {
        start: Instant,
        seconds: Cell<u64>,
    }

    impl Clock {
        fn new() -> Self {
            Self {
                start: Instant::now(),
                seconds: Cell::new(0),
            }
        }
        fn pass(&self, seconds: u64) {
            self.seconds.set(self.seconds.get() + seconds);
        }
        fn now(&self) -> Instant {
            self.start + Duration::from_secs(self.seconds.get())
        }
    }

    const GRACE: Duration = Duration::from_secs(600);

    /// Returns six objects besides a task's document, and the digests of this task and its layer. A
    /// record of run 1 with this task names three of all objects: task, layer and result.
    fn stored() -> (MemoryObjects, Sha256Hex, Sha256Hex) {
        let objects = MemoryObjects::default();
        let layer = sha256(b"layer");
        let task = minimal_task(&layer).put(&objects).unwrap();
        let mut lock = objects.lock();
        for name in [
            format!("layer.{layer}"),
            format!("layer.{}", sha256(b"other")),
            format!("task.{}", sha256(b"other task")),
            format!("result.run_{:032x}.1", 1),
            format!("result.run_{:032x}.1", 2),
            "later.kind".to_owned(),
        ] {
            lock.insert(name, vec![0; 10]);
        }
        drop(lock);
        (objects, task, layer)
    }

    fn names(objects: &MemoryObjects) -> Vec<String> {
        objects.lock().keys().cloned().collect()
    }

    #[test]
    fn only_objects_that_no_record_refers_to_are_removed_and_only_after_the_grace_period() {
        let (objects, task, layer) = stored();
        let (clock, mut collector) = (Clock::new(), Collector::new());
        let records = |after| changed(after, vec![record(1, &task, State::Queued)]);
        let mut pass = || {
            collector
                .pass(&objects, &records, GRACE, &|| clock.now())
                .unwrap()
        };
        let first = pass();
        assert_eq!((first.removed.len(), first.waiting), (0, 3));
        clock.pass(599);
        assert_eq!(pass().removed.len(), 0, "the grace period is not over");
        clock.pass(1);
        let last = pass();
        assert_eq!((last.removed.len(), last.bytes, last.waiting), (3, 30, 0));
        assert_eq!(
            names(&objects),
            [
                "later.kind".to_owned(),
                format!("layer.{layer}"),
                format!("result.run_{:032x}.1", 1),
                format!("task.{task}"),
            ]
        );
    }

    #[test]
    fn object_stays_if_a_record_that_refers_to_it_appears_before_the_object_is_removed() {
        let (objects, task, layer) = stored();
        let (clock, mut collector) = (Clock::new(), Collector::new());
        let none = |after| changed(after, Vec::new());
        let one = |after| changed(after, vec![record(1, &task, State::Queued)]);
        let now = || clock.now();
        collector.pass(&objects, &none, GRACE, &now).unwrap();
        clock.pass(600);
        collector.pass(&objects, &one, GRACE, &now).unwrap();
        clock.pass(600);
        // This pass reads no changed record, but the collector remembers the earlier one.
        collector.pass(&objects, &none, GRACE, &now).unwrap();
        assert!(names(&objects).contains(&format!("layer.{layer}")));
        // Control: a collector that did not see the record, because it was removed.
        let mut later = Collector::new();
        later.pass(&objects, &none, GRACE, &now).unwrap();
        clock.pass(600);
        later.pass(&objects, &none, GRACE, &now).unwrap();
        assert_eq!(names(&objects), ["later.kind"]);
    }

    #[test]
    fn records_that_come_in_parts_are_all_read_before_anything_is_removed() {
        let (objects, task, layer) = stored();
        let (clock, mut collector) = (Clock::new(), Collector::new());
        // Two passes that read one part each would remove the layer before they see the third part.
        let parts = |after: Revision| {
            let records = match after.0 {
                2 => vec![record(1, &task, State::Queued)],
                _ => Vec::new(),
            };
            let part = changed(after, records)?;
            Ok(Changed {
                is_partial: after.0 < 2,
                ..part
            })
        };
        let now = || clock.now();
        for _ in 0..2 {
            collector.pass(&objects, &parts, GRACE, &now).unwrap();
            clock.pass(600);
        }
        assert!(names(&objects).contains(&format!("layer.{layer}")));
    }

    #[test]
    fn layers_stay_while_a_task_is_not_stored_yet_or_cannot_be_read() {
        let (objects, task, layer) = stored();
        let unread = sha256(b"not there");
        let (clock, mut collector) = (Clock::new(), Collector::new());
        let queued = |after| changed(after, vec![record(1, &unread, State::Queued)]);
        let pass = |collector: &mut Collector, records: &Changes<'_>| {
            clock.pass(700);
            collector
                .pass(&objects, records, GRACE, &|| clock.now())
                .unwrap()
        };
        pass(&mut collector, &queued);
        assert!(pass(&mut collector, &queued).kept_layers);
        assert!(names(&objects).contains(&format!("layer.{layer}")));
        objects
            .lock()
            .insert(format!("task.{unread}"), b"{".to_vec());
        assert!(pass(&mut collector, &queued).kept_layers);
        assert!(names(&objects).contains(&format!("layer.{layer}")));
        // Control: a collector that reads no record removes the layers and the tasks.
        let mut collector = Collector::new();
        pass(&mut collector, &|after| changed(after, Vec::new()));
        pass(&mut collector, &|after| changed(after, Vec::new()));
        assert_eq!(names(&objects), ["later.kind"]);
        // A run that has ended and whose task is gone keeps nothing.
        objects.lock().insert(format!("layer.{layer}"), vec![1]);
        let ended = |after| {
            let error = ErrorBody::new(ErrorCode::ClusterMissing, "gone");
            let end = End::Error { error };
            changed(
                after,
                vec![record(1, &task, State::Terminal { by: None, end })],
            )
        };
        pass(&mut collector, &ended);
        assert!(!pass(&mut collector, &ended).kept_layers);
        assert_eq!(names(&objects), ["later.kind"]);
    }

    #[test]
    fn objects_of_a_run_whose_record_cannot_be_read_stay_until_it_can_be_read() {
        let (objects, task, layer) = stored();
        let (clock, mut collector) = (Clock::new(), Collector::new());
        let pass = |collector: &mut Collector, records: &Changes<'_>| {
            clock.pass(700);
            collector
                .pass(&objects, records, GRACE, &|| clock.now())
                .unwrap()
        };
        let none = |after| changed(after, Vec::new());
        let unreadable = |after| {
            let problem = BusError::Unreadable {
                what: "the record".to_owned(),
                detail: "protocol 99".to_owned(),
            };
            let key = record(1, &task, State::Queued).key;
            Ok(Changed {
                unreadable: vec![(key, problem)],
                ..changed(after, Vec::new())?
            })
        };
        let before = names(&objects);
        pass(&mut collector, &unreadable);
        let second = pass(&mut collector, &none);
        assert_eq!((second.unreadable, second.kept_layers), (1, true));
        // The task of the record is unknown; a result names its run.
        let other = format!("result.run_{:032x}.1", 2);
        assert_eq!(second.removed, [other.as_str()]);
        let left = before.iter().filter(|name| **name != other);
        assert_eq!(names(&objects), left.cloned().collect::<Vec<_>>());
        // Control: the same record can be read.
        let readable = |after| changed(after, vec![record(1, &task, State::Queued)]);
        pass(&mut collector, &readable);
        let last = pass(&mut collector, &none);
        assert_eq!((last.unreadable, last.kept_layers), (0, false));
        assert_eq!(
            names(&objects),
            [
                "later.kind".to_owned(),
                format!("layer.{layer}"),
                format!("result.run_{:032x}.1", 1),
                format!("task.{task}"),
            ]
        );
    }

    #[test]
    fn pass_that_needs_ten_seconds_to_read_the_records_removes_nothing() {
        let (objects, _, _) = stored();
        let (clock, mut collector) = (Clock::new(), Collector::new());
        let none = |after| changed(after, Vec::new());
        let slow = |after| {
            clock.pass(LAST_REMOVAL.as_secs());
            changed(after, Vec::new())
        };
        let now = || clock.now();
        collector.pass(&objects, &none, GRACE, &now).unwrap();
        clock.pass(600);
        let pass = collector.pass(&objects, &slow, GRACE, &now).unwrap();
        assert_eq!((pass.removed.len(), pass.waiting), (0, 6));
        // Control: the same collector with fast answers.
        let pass = collector.pass(&objects, &none, GRACE, &now).unwrap();
        assert_eq!(pass.removed.len(), 6);
    }
}
