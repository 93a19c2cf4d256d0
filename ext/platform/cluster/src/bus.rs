//! What this crate needs of a message server. `nats` implements it; tests use one in memory.
//!
//! All methods block and may be called from several threads at once. A method that fails with
//! [`BusError::Unreachable`] may have had its effect: the caller reads the record again.

use crate::host::HostRecord;
use crate::names::{NodeName, Queue, RunKey, SubmitterName};
use crate::record::{Record, Revision, Versioned};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;
use wp_codebox_contracts::{CodedError, Sha256Hex};

/// Why the message server did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
pub enum BusError {
    /// The server did not answer. It may have carried out the request nevertheless.
    #[error("the message server does not answer: {detail}")]
    #[code(
        ClusterUnreachable,
        hint = "check the address, and that the server runs and can be reached from this host"
    )]
    Unreachable {
        /// What was tried, without credentials.
        detail: String,
    },
    /// Another program changed the value: its key exists already, or its revision is another one.
    #[error("another program changed the value")]
    #[code(ClusterConflict)]
    Changed,
    /// There is no such record or object.
    #[error("the message server has no {what}")]
    #[code(ClusterMissing)]
    Missing {
        /// What was not found.
        what: String,
    },
    /// A stream, bucket or disk is full.
    #[error("the message server has no free space: {detail}")]
    #[code(
        ClusterFull,
        hint = "wait until tasks have ended, or raise the limits with `wp-codebox cluster setup`"
    )]
    Full {
        /// Which limit is reached.
        detail: String,
    },
    /// An object is larger than the limit.
    #[error("the object {name} for the message server is larger than {limit} bytes")]
    #[code(
        ClusterObjectTooLarge,
        hint = "let the run have fewer or smaller files; `wp-codebox cluster setup --object-size` raises the limit for inputs and results"
    )]
    TooLarge {
        /// Name of the object.
        name: String,
        /// Limit in bytes.
        limit: u64,
    },
    /// The account may not do this.
    #[error("the message server account of this program may not {action}")]
    #[code(
        ClusterDenied,
        hint = "`wp-codebox cluster permissions` prints the permissions that an account needs"
    )]
    Denied {
        /// What was refused.
        action: String,
    },
    /// The streams and buckets of a cluster do not exist.
    #[error("the message server is not set up for a cluster: {detail}")]
    #[code(
        ClusterNotSetUp,
        hint = "run `wp-codebox cluster setup` once, with an account that may create streams"
    )]
    NotSetUp {
        /// What is missing.
        detail: String,
    },
    /// The version of the server is too old: it lacks functions that a cluster needs.
    #[error("the message server has version {found}, but a cluster needs {needed} or newer")]
    #[code(ClusterServerTooOld, hint = "install a newer nats-server")]
    ServerTooOld {
        /// Version of the server.
        found: String,
        /// Lowest version.
        needed: String,
    },
    /// The server carries out requests with members that it does not know.
    #[error(
        "the message server is not strict: an account of it could remove the messages of others"
    )]
    #[code(
        ClusterServerNotStrict,
        hint = "set \"strict: true\" in the block \"jetstream\" of the configuration of each nats-server, and restart it"
    )]
    ServerNotStrict,
    /// A stored value cannot be read; another program wrote it, or a version that is too new.
    #[error("{what} cannot be read: {detail}")]
    #[code(ClusterUnreadable)]
    Unreadable {
        /// Which value.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// An object of a submitter. Objects never change; each name stands for one content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectName {
    /// A task document, named by its digest.
    Task(Sha256Hex),
    /// A layer: the files of a mount or of WordPress, named by its digest.
    Layer(Sha256Hex),
    /// The result of a run in one epoch.
    Result {
        /// Run.
        run: wp_codebox_contracts::RunId,
        /// Epoch of the claim: 1 for the first claim of the run.
        epoch: u64,
    },
}

impl ObjectName {
    /// Returns the name on the server, such as `layer.<digest>`.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Task(digest) => format!("task.{digest}"),
            Self::Layer(digest) => format!("layer.{digest}"),
            Self::Result { run, epoch } => format!("result.{run}.{epoch}"),
        }
    }
}

/// A message that the server delivered to this process only. The server delivers it again if the
/// process does not answer (`ack` or `retry`) before the time limit.
pub trait Delivery: Send + Sync {
    /// Returns the run of the message.
    fn key(&self) -> &RunKey;
    /// Returns how often the message was delivered, this time included.
    fn deliveries(&self) -> u64;
    /// Removes the message. Called after the record is terminal.
    fn ack(&self) -> Result<(), BusError>;
    /// Gives the message back; it is delivered again after this time.
    fn retry(&self, after: Duration) -> Result<(), BusError>;
    /// Restarts the time limit for the answer.
    fn working(&self) -> Result<(), BusError>;
}

/// Follows one record: returns its current value first, then each new value.
pub trait RecordWatch: Send {
    /// Returns the next value; `None` at the time limit. A removed record is [`BusError::Missing`].
    fn next(&mut self, wait: Duration) -> Result<Option<Versioned<Record>>, BusError>;
}

/// Events of one run, in order. Events that are sent while the connection is down are lost.
pub trait Events: Send {
    /// Returns the next event; `None` at the time limit.
    fn next(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, BusError>;
}

/// Registration of a function that answers requests for secrets; dropping this value ends it.
pub trait Answering: Send {}

/// Function that returns the answer to a request for secrets, or `None` to stay silent.
pub type Answer = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// What a queue had for a process that asked it for a message.
pub enum Pulled {
    /// A message.
    Message(Arc<dyn Delivery>),
    /// A message that cannot be read. It is removed from the queue: it names no run of the queue's
    /// submitter, so no program could use it.
    Removed {
        /// What is wrong with it.
        problem: BusError,
    },
    /// No message.
    Empty,
}

/// Records that changed, oldest change first.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// The records.
    pub records: Vec<Versioned<Record>>,
    /// Runs whose records this program cannot read, which are left out, and why.
    pub unreadable: Vec<(RunKey, BusError)>,
    /// Revision after which the next call goes on.
    pub until: Revision,
    /// Whether there are more changes after `until`.
    pub is_partial: bool,
}

/// A message server.
pub trait Bus: Send + Sync {
    /// Returns a record.
    fn record(&self, key: &RunKey) -> Result<Option<Versioned<Record>>, BusError>;
    /// Creates a record; [`BusError::Changed`] if there is one with this key.
    fn create_record(&self, record: &Record) -> Result<Revision, BusError>;
    /// Replaces a record; [`BusError::Changed`] unless its revision is `at`.
    fn update_record(&self, record: &Record, at: Revision) -> Result<Revision, BusError>;
    /// Removes a record for good, unless it changed after the revision `at`.
    fn remove_record(&self, key: &RunKey, at: Revision) -> Result<(), BusError>;
    /// Reads at most `most` changes after a revision, and returns the submitter's records that they
    /// changed; `Revision(0)` stands for the beginning.
    fn changed_records(
        &self,
        of: &SubmitterName,
        after: Revision,
        most: u64,
    ) -> Result<Changed, BusError>;
    /// Returns the runs of a submitter whose end was stored more than `age` ago by the clock of the
    /// server, with the revisions of their records.
    fn ended_runs(
        &self,
        of: &SubmitterName,
        age: Duration,
    ) -> Result<Vec<(RunKey, Revision)>, BusError>;
    /// Follows a record.
    fn watch(&self, key: &RunKey) -> Result<Box<dyn RecordWatch>, BusError>;

    /// Puts a message into the queue. The server drops the message if it has recently seen one with
    /// the same id.
    fn publish(&self, queue: &Queue, key: &RunKey, message_id: &str) -> Result<(), BusError>;
    /// Returns the queues that are set up.
    fn queues(&self) -> Result<Vec<Queue>, BusError>;
    /// Takes a message from a queue without waiting.
    fn pull(&self, queue: &Queue) -> Result<Pulled, BusError>;
    /// Waits until a message may have come into one of the queues since the last call, or until the
    /// time limit.
    fn wait_for_message(&self, wait: Duration) -> Result<(), BusError>;
    /// Returns whether a queue has neither waiting messages nor delivered ones without an answer.
    fn is_empty(&self, queue: &Queue) -> Result<bool, BusError>;

    /// Stores the heartbeat of a node.
    fn beat(&self, host: &HostRecord) -> Result<Revision, BusError>;
    /// Returns the last heartbeat of a node, unless the node has left or the heartbeat cannot be read.
    fn host(&self, node: &NodeName) -> Result<Option<Versioned<HostRecord>>, BusError>;
    /// Returns the last heartbeat of each node.
    fn hosts(&self) -> Result<Vec<Versioned<HostRecord>>, BusError>;
    /// Removes the heartbeat of a node that leaves.
    fn remove_host(&self, host: &NodeName) -> Result<(), BusError>;

    /// Returns whether an object is stored completely.
    fn has_object(&self, of: &SubmitterName, name: &ObjectName) -> Result<bool, BusError>;
    /// Stores an object. An object with this name stays as it is or gets the same content.
    fn put_object(
        &self,
        of: &SubmitterName,
        name: &ObjectName,
        content: &mut (dyn Read + Send),
    ) -> Result<(), BusError>;
    /// Writes an object to `to`; the caller compares its digest.
    fn get_object(
        &self,
        of: &SubmitterName,
        name: &ObjectName,
        to: &mut (dyn Write + Send),
    ) -> Result<(), BusError>;
    /// Returns names and sizes of all objects of a submitter, in the form of
    /// [`ObjectName::to_text`].
    fn objects(&self, of: &SubmitterName) -> Result<Vec<(String, u64)>, BusError>;
    /// Removes an object; removing a missing one is no error.
    fn remove_object(&self, of: &SubmitterName, name: &str) -> Result<(), BusError>;

    /// Asks the process that submitted a run for its secrets.
    fn ask(&self, key: &RunKey, request: &[u8], wait: Duration) -> Result<Vec<u8>, BusError>;
    /// Answers requests for the secrets of a run.
    fn answer(&self, key: &RunKey, answer: Answer) -> Result<Box<dyn Answering>, BusError>;

    /// Sends an event of a run to the programs that follow the run now.
    fn emit(&self, key: &RunKey, event: &[u8]) -> Result<(), BusError>;
    /// Follows the events of a run.
    fn follow(&self, key: &RunKey) -> Result<Box<dyn Events>, BusError>;
}
