//! Names of streams, consumers and subjects on the server.
//!
//! Each submitter has three streams of its own. `STREAM.MSG.GET` names the wanted subject in the
//! body of the request, which permissions cannot restrict, so records of two submitters in one
//! stream would be readable for both. A stream has one set of message ids and one bound, so in a
//! common stream one submitter could have messages of another one dropped as copies, or fill the
//! stream.

use crate::bus::ObjectName;
use crate::names::{Capability, NodeName, Priority, Queue, RunKey, SubmitterName};
use wp_codebox_contracts::RunId;

/// Stream of heartbeats, one message per node.
pub(super) const HOSTS: &str = "CODEBOX_HOSTS";
/// Subjects of all messages of tasks.
pub(super) const TASK_SUBJECTS: &str = "tasks.*.*.*";
/// Subjects of [`HOSTS`].
pub(super) const HOST_SUBJECTS: &str = "hosts.*";

const TASKS: &str = "CODEBOX_T_";
const RECORDS: &str = "CODEBOX_R_";
const OBJECTS: &str = "CODEBOX_O_";

/// Returns the stream with the messages of a submitter; one durable consumer per queue.
pub(super) fn tasks_stream(of: &SubmitterName) -> String {
    format!("{TASKS}{of}")
}

/// Returns the submitter whose messages are in a stream; `None` for other streams.
pub(super) fn submitter_of_tasks(stream: &str) -> Option<SubmitterName> {
    SubmitterName::new(stream.strip_prefix(TASKS)?).ok()
}

/// Returns the subjects of all messages of a submitter.
pub(super) fn tasks(of: &SubmitterName) -> String {
    format!("tasks.*.*.{of}")
}

/// Returns the stream with the records of a submitter.
pub(super) fn records_stream(of: &SubmitterName) -> String {
    format!("{RECORDS}{of}")
}

/// Returns the stream with the objects of a submitter.
pub(super) fn objects_stream(of: &SubmitterName) -> String {
    format!("{OBJECTS}{of}")
}

/// Returns the subject of the messages of a queue.
pub(super) fn task(queue: &Queue) -> String {
    format!(
        "tasks.{}.{}.{}",
        queue.capability,
        queue.priority.as_str(),
        queue.submitter
    )
}

/// Returns the name of a queue's consumer in the stream of its submitter. Names of capabilities have
/// no `_`, so the `_` separates capability and priority.
pub(super) fn consumer(queue: &Queue) -> String {
    format!("{}_{}", queue.capability, queue.priority.as_str())
}

/// Returns the queue of a consumer; `None` for consumers of other programs.
pub(super) fn queue_of(submitter: &SubmitterName, consumer: &str) -> Option<Queue> {
    let (capability, priority) = consumer.split_once('_')?;
    let priority = Priority::ALL
        .iter()
        .find(|known| known.as_str() == priority)?;
    Some(Queue {
        capability: Capability::new(capability).ok()?,
        priority: *priority,
        submitter: submitter.clone(),
    })
}

/// Returns the subject of a record.
pub(super) fn record(key: &RunKey) -> String {
    format!("records.{}.{}", key.submitter, key.run)
}

/// Returns the subjects of all records of a submitter.
pub(super) fn records(of: &SubmitterName) -> String {
    format!("records.{of}.*")
}

/// Returns the key of a record by its subject.
pub(super) fn key_of(subject: &str) -> Option<RunKey> {
    let (submitter, run) = subject.strip_prefix("records.")?.split_once('.')?;
    Some(RunKey {
        submitter: SubmitterName::new(submitter).ok()?,
        run: RunId::new(run).ok()?,
    })
}

/// Returns the subject under which the server announces a stored revision of a record.
pub(super) fn change(key: &RunKey) -> String {
    format!("changes.{}.{}", key.submitter, key.run)
}

/// Returns the subject of the requests for the secrets of a run.
pub(super) fn secrets(key: &RunKey) -> String {
    format!("secrets.{}.{}", key.submitter, key.run)
}

/// Returns the subject of the events of a run.
pub(super) fn events(key: &RunKey) -> String {
    format!("events.{}.{}", key.submitter, key.run)
}

/// Returns the subject of a node's heartbeat.
pub(super) fn host(node: &NodeName) -> String {
    format!("hosts.{node}")
}

/// Returns the subjects of all parts of an object.
pub(super) fn object(of: &SubmitterName, name: &str) -> String {
    format!("objects.{of}.{name}")
}

/// Returns the subject of one part of an object.
pub(super) fn object_part(of: &SubmitterName, name: &ObjectName, part: u64) -> String {
    format!("objects.{of}.{}.part.{part}", name.to_text())
}

/// Returns the subject of the description of an object, which is stored last.
pub(super) fn object_end(of: &SubmitterName, name: &str) -> String {
    format!("objects.{of}.{name}.end")
}

/// Returns the name of an object by the subject of one of its messages.
pub(super) fn object_of<'a>(of: &SubmitterName, subject: &'a str) -> Option<&'a str> {
    let rest = subject
        .strip_prefix("objects.")?
        .strip_prefix(of.as_str())?
        .strip_prefix('.')?;
    match rest.strip_suffix(".end") {
        Some(name) => Some(name),
        None => rest.rsplit_once(".part.").map(|(name, _)| name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::Sha256Hex;

    fn submitter(name: &str) -> SubmitterName {
        SubmitterName::new(name).unwrap()
    }

    #[test]
    fn consumer_name_gives_its_queue_and_names_of_other_programs_give_none() {
        for priority in Priority::ALL {
            let queue = Queue {
                capability: Capability::new("gpu-2").unwrap(),
                priority: *priority,
                submitter: submitter("high"),
            };
            assert_eq!(queue_of(&queue.submitter, &consumer(&queue)), Some(queue));
        }
        for other in [
            "",
            "a",
            "default_urgent",
            "default_high_x",
            "A_high",
            "_high",
        ] {
            assert_eq!(queue_of(&submitter("high"), other), None, "{other}");
        }
    }

    #[test]
    fn record_subject_gives_its_run_key_and_object_subject_its_name_only_to_its_submitter() {
        let key = RunKey {
            submitter: submitter("shop"),
            run: RunId::new(format!("run_{}", "0f".repeat(16))).unwrap(),
        };
        assert_eq!(key_of(&record(&key)), Some(key.clone()));
        assert_eq!(key_of("records.shop.*"), None);
        let name = ObjectName::Layer(Sha256Hex::new("ab".repeat(32)).unwrap());
        let text = name.to_text();
        for subject in [
            object_part(&key.submitter, &name, 12),
            object_end(&key.submitter, &text),
        ] {
            assert_eq!(object_of(&key.submitter, &subject), Some(text.as_str()));
            assert_eq!(object_of(&submitter("sho"), &subject), None);
        }
        assert_eq!(submitter_of_tasks(HOSTS), None);
    }
}
