//! Runs one task on this node: fetches its inputs and secrets, runs it under a supervisor like any
//! other run, and stores the result.

use crate::serve::Runner;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Seek;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_artifacts::{Dir, HostKey};
use wp_codebox_cluster::bus::{Bus, BusError, ObjectName};
use wp_codebox_cluster::collect::REMOVAL_WINDOW;
use wp_codebox_cluster::held::HeldRun;
use wp_codebox_cluster::layers::{LayerCache, LayerError, LayerInUse};
use wp_codebox_cluster::names::RunKey;
use wp_codebox_cluster::objects::{Objects, SubmitterObjects};
use wp_codebox_cluster::record::{Claimant, End, Record};
use wp_codebox_cluster::result::{Claim, PackedResult, pack_result};
use wp_codebox_cluster::seal::SecretRequest;
use wp_codebox_cluster::task::{ClusterTask, GitSupport, NodeSettings, PrivateModels};
use wp_codebox_cluster::values::SecretValues;
use wp_codebox_cluster::work::Executor;
use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, ErrorKind, Frame, RunId, RunMode, RunPaths, RunRequest,
    RunResult, Sha256Hex, SiteId,
};
use wp_codebox_control::{SupervisorFrame, write_frame};
use wp_codebox_runs::supervisor::{self, Followed, unreachable};
use wp_codebox_settings::Settings;

/// Time limit for the reply of the submitting process, which has the run's secrets.
const SECRETS: Duration = Duration::from_secs(20);
/// Time for which storing the result is repeated while the message server does not answer.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time for which a node waits for a layer that a garbage collection removed. After
/// `REMOVAL_WINDOW`, the submitter checks its layers and uploads missing ones; the rest of the time
/// is for this upload.
const UPLOADED_AGAIN: Duration = REMOVAL_WINDOW.saturating_mul(3);
/// Pause before a request is repeated.
const PAUSE: Duration = Duration::from_secs(1);

/// What a node needs to run tasks.
pub(super) struct NodeParts {
    pub bus: Arc<dyn Bus>,
    pub claimant: Claimant,
    pub key: HostKey,
    pub cache: LayerCache,
    /// Maximum total size of the layers in the cache, in bytes.
    pub cache_bytes: u64,
    pub paths: RunPaths,
    pub settings: Settings,
    pub runner: Runner,
    pub capacity: u32,
    pub git: GitSupport,
    pub private_models: PrivateModels,
}

/// Runs the tasks of a node.
pub(super) struct NodeExecutor {
    parts: NodeParts,
    alive: Mutex<BTreeMap<RunId, UnixStream>>,
}

/// Error of a task that did not run to its end, by its cause.
enum Trouble {
    /// The task or its submitter caused the error: the run ends with it.
    Task(ErrorBody),
    /// This host caused the error: another node may run the task.
    Host(ErrorBody),
}

impl Trouble {
    /// Classifies an error of the supervisor. What this host lacks, another node may have, so such
    /// an error is [`Self::Host`].
    fn of(error: ErrorBody) -> Self {
        match (error.code, error.code.kind()) {
            (ErrorCode::SecretSourceGone, _) => Self::Task(error),
            (ErrorCode::Busy, _) | (_, ErrorKind::Unavailable) => Self::Host(error),
            _ => Self::Task(error),
        }
    }
}

impl NodeExecutor {
    pub(super) fn new(parts: NodeParts) -> Self {
        Self {
            parts,
            alive: Mutex::default(),
        }
    }

    /// Cancels every run. The changes that the runs made so far are saved.
    pub(super) fn cancel_all(&self) {
        for stream in self.alive().values() {
            // A failed send means that the supervisor has exited.
            let _ = write_frame(stream, &Frame::Cancel);
        }
    }

    fn alive(&self) -> MutexGuard<'_, BTreeMap<RunId, UnixStream>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn objects<'a>(&'a self, key: &'a RunKey) -> SubmitterObjects<'a> {
        SubmitterObjects::new(self.parts.bus.as_ref(), &key.submitter)
    }

    fn run(&self, record: &Record, held: &HeldRun) -> Result<End, Trouble> {
        let (key, parts) = (&record.key, &self.parts);
        let objects = self.objects(key);
        let task = ClusterTask::fetch(&objects, &record.task);
        let task = task.map_err(|e| Trouble::of(e.body()))?;
        if task.run_id != key.run {
            return Err(Trouble::Task(ErrorBody::new(
                ErrorCode::ClusterUnreadable,
                "the task belongs to another run",
            )));
        }
        // While `layers` exists, the cache does not remove these layers.
        let layers = self.layers(record, &task, held)?;
        let places: BTreeMap<Sha256Hex, PathBuf> = layers
            .iter()
            .map(|(digest, layer)| (digest.clone(), layer.path().to_owned()))
            .collect();
        let values = self.secrets(record, &task)?;
        let site = format!("{}-{}", key.submitter, record.epoch);
        let node = NodeSettings {
            // The epoch (number of the claim) makes the site name unique: an earlier claim of the
            // same run may have left its directory on this node.
            site: SiteId::new(&site)
                .map_err(|e| Trouble::Host(ErrorBody::new(ErrorCode::Internal, e.to_string())))?,
            mode: RunMode::Attached,
            max_runs: parts.capacity,
            paths: parts.paths.clone(),
            git: parts.git,
            private_models: parts.private_models,
        };
        let request = task.into_request(&record.task, record.epoch, node, &places, values);
        let request = request.map_err(|e| Trouble::of(e.body()))?;
        let result = self.supervise(&request, held).map_err(Trouble::of)?;
        drop(layers);
        let packed = self.pack(record, &result)?;
        let end = packed.end();
        self.store(record, packed)?;
        // The run no longer uses its layers, so shrink the cache to its limit. If this fails, the
        // next run of this node does it.
        let _ = parts.cache.collect(parts.cache_bytes);
        Ok(end)
    }

    fn layers(
        &self,
        record: &Record,
        task: &ClusterTask,
        held: &HeldRun,
    ) -> Result<Vec<(Sha256Hex, LayerInUse)>, Trouble> {
        let (objects, submitter) = (self.objects(&record.key), &record.key.submitter);
        let until = Instant::now() + UPLOADED_AGAIN;
        let mut layers = Vec::new();
        for digest in task.inputs() {
            let layer = loop {
                let found = self.parts.cache.get(&objects, submitter, &digest);
                let is_missing = matches!(found, Err(LayerError::Bus(BusError::Missing { .. })));
                if is_missing && Instant::now() < until && held.interruption().is_none() {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                break found.map_err(|error| match error {
                    LayerError::Bus(BusError::Missing { .. }) => Trouble::Task(error.body()),
                    LayerError::Bus(_) | LayerError::Cache { .. } => Trouble::Host(error.body()),
                    other => Trouble::of(other.body()),
                })?;
            };
            layers.push((digest, layer));
        }
        Ok(layers)
    }

    fn secrets(&self, record: &Record, task: &ClusterTask) -> Result<SecretValues, Trouble> {
        if !task.needs_values() {
            return Ok(SecretValues::default());
        }
        let parts = &self.parts;
        let request = SecretRequest::new(&record.key, record.epoch, &parts.claimant, &parts.key);
        let values =
            request.and_then(|request| request.ask(parts.bus.as_ref(), &record.key, SECRETS));
        values.map_err(|e| Trouble::of(e.body()))
    }

    fn supervise(&self, request: &RunRequest, held: &HeldRun) -> Result<RunResult, ErrorBody> {
        let spawned = self
            .parts
            .runner
            .supervisor(&self.parts.settings, request.mode)?;
        let (client, child) = spawned.begin(request)?;
        let run = request.run_id.clone();
        let (sender, own) = (client.sender(), client.sender());
        let sender = sender.map_err(|e| unreachable(&e))?;
        self.alive()
            .insert(run.clone(), own.map_err(|e| unreachable(&e))?);
        held.when_interrupted(move |_| {
            let _ = write_frame(&sender, &Frame::Cancel);
        });
        let key = held.key().clone();
        let followed = supervisor::follow(&client, request, |frame| {
            if let SupervisorFrame::Event { event, .. } = frame
                && let Ok(bytes) = serde_json::to_vec(event)
            {
                // Ignore lost events: the bundle of the result contains all of them.
                let _ = self.parts.bus.emit(&key, &bytes);
            }
            ControlFlow::<Infallible>::Continue(())
        });
        self.alive().remove(&run);
        supervisor::wait_for_exit(client, child);
        match followed? {
            Followed::Ended(result) => Ok(*result),
            Followed::Left(never) => match never {},
        }
    }

    fn pack(&self, record: &Record, result: &RunResult) -> Result<PackedResult, Trouble> {
        let parts = &self.parts;
        let Some(bundle) = &result.artifacts else {
            return Err(Trouble::Task(result.error.clone().unwrap_or_else(|| {
                ErrorBody::new(ErrorCode::BundleWriteFailed, "the run has no bundle")
            })));
        };
        let directory = Dir::open(Path::new(&bundle.path)).map_err(|e| {
            Trouble::Host(ErrorBody::new(
                ErrorCode::StateDirInvalid,
                format!("the bundle of the run cannot be read: {e}"),
            ))
        })?;
        let claim = Claim {
            key: record.key.clone(),
            epoch: record.epoch,
            node: parts.claimant.node.clone(),
            task: record.task.clone(),
        };
        let state = Path::new(&parts.paths.state_dir);
        pack_result(&claim, result, &directory, &parts.key, state)
            .map_err(|e| Trouble::of(e.body()))
    }

    /// Stores the result on the message server; tries again while the server does not answer.
    fn store(&self, record: &Record, mut packed: PackedResult) -> Result<(), Trouble> {
        let name = ObjectName::Result {
            run: record.key.run.clone(),
            epoch: record.epoch,
        };
        let objects = self.objects(&record.key);
        let until = Instant::now() + PATIENCE;
        loop {
            match objects.put(&name, &mut packed.file) {
                Ok(()) => return Ok(()),
                Err(BusError::Unreachable { .. }) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                    packed.file.rewind().map_err(|e| {
                        Trouble::Host(ErrorBody::new(ErrorCode::Internal, e.to_string()))
                    })?;
                }
                Err(error @ BusError::TooLarge { .. }) => return Err(Trouble::Task(error.body())),
                Err(error) => return Err(Trouble::Host(error.body())),
            }
        }
    }
}

impl Executor for NodeExecutor {
    fn execute(&self, record: &Record, held: &HeldRun) -> Result<End, ErrorBody> {
        match self.run(record, held) {
            Ok(end) => Ok(end),
            Err(Trouble::Task(error)) => Ok(End::Error { error }),
            Err(Trouble::Host(error)) => Err(error),
        }
    }
}
