//! Steps of the supervisor of a run that a node of the cluster executes: it uploads the inputs,
//! submits the task, follows it, and stores the result on this host.

use crate::cluster::options_of;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_artifacts::{Dir, HostKey, Store};
use wp_codebox_backend_native::{CORE_DIRECTORIES, CORE_FILES, newest_default_theme};
use wp_codebox_cluster::bus::{Answering, Bus};
use wp_codebox_cluster::collect::REMOVAL_WINDOW;
use wp_codebox_cluster::layers::{LayerStore, PackRules};
use wp_codebox_cluster::names::{Capability, NodeName, Queue, RunKey, SubmitterName};
use wp_codebox_cluster::nats::{NatsBus, Party};
use wp_codebox_cluster::objects::SubmitterObjects;
use wp_codebox_cluster::record::{End, Record, State};
use wp_codebox_cluster::result::{Expected, LocalStore, fetch_result};
use wp_codebox_cluster::seal::answer_request;
use wp_codebox_cluster::submit::{Seen, Submitted, check_nodes, follow, submit};
use wp_codebox_cluster::task::{ClusterTask, UploadedInputs};
use wp_codebox_cluster::trust::NodeKeys;
use wp_codebox_cluster::values::SecretValues;
use wp_codebox_contracts::{
    ClusterPlacement, CodedError, ErrorBody, ErrorCode, EventType, LifecycleEvent, PlacementChoice,
    RunRequest, RunResult,
};
use wp_codebox_runs::{PATIENCE_MS, cluster_priority, read_cluster_config};
use wp_codebox_runtime::{StateDir, now_rfc3339};
use wp_codebox_supervisor::{PlacedRun, Placer, RecordEvent};

/// Directory in the state directory that caches digests of inputs for later runs.
const DIGESTS: &str = "layer-digests";
/// Pause before a request to a message server that did not answer is repeated.
const PAUSE: Duration = Duration::from_secs(1);

/// Sends runs to the cluster that their placement names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClusterPlacer;

impl Placer for ClusterPlacer {
    fn configured(
        &self,
        state: &StateDir,
        choice: &PlacementChoice,
    ) -> Result<ClusterPlacement, ErrorBody> {
        let config = read_cluster_config(state)?;
        Ok(config.placement(choice, PATIENCE_MS))
    }

    fn place(
        &self,
        run: &PlacedRun<'_>,
        event: &mut RecordEvent<'_>,
    ) -> Result<RunResult, ErrorBody> {
        let placement = run.placement;
        let submitter = SubmitterName::new(&placement.cluster.submitter)?;
        let nodes = placement.nodes.iter().map(|row| {
            let node = NodeName::new(&row.node)?;
            Ok((node, row.key.clone()))
        });
        let nodes = NodeKeys::new(nodes.collect::<Result<Vec<_>, ErrorBody>>()?);
        let options = options_of(&placement.cluster, Party::Submitter(submitter.clone()))?;
        let bus: Arc<dyn Bus> = Arc::new(NatsBus::connect(&options)?);
        let key = RunKey {
            submitter,
            run: run.request.run_id.clone(),
        };
        patiently(run, || check_nodes(bus.as_ref(), &nodes))?;
        let objects = SubmitterObjects::new(bus.as_ref(), &key.submitter);
        let store = LayerStore::remembering(run.scratch, &run.state.path().join(DIGESTS));
        let (mut upload, values) = Upload::of(run, &objects, &store)?;
        let task = upload.task.clone();
        let record = Record::submitted(
            key.clone(),
            Queue {
                capability: Capability::new(&placement.capability)?,
                priority: cluster_priority(&placement.priority)?,
                submitter: key.submitter.clone(),
            },
            task.digest()?,
            placement.max_tries,
            now_rfc3339(),
        )
        .for_nodes(nodes.clone());
        // Answer requests for secrets before the task is in a queue: a node sends its request as
        // soon as it has claimed the task.
        let _answering = answer(&bus, &key, &nodes, values)?;
        let submitted = patiently(run, || {
            submit(bus.as_ref(), &record, &mut || upload.confirm())
        });
        if submitted? == Submitted::Existing {
            event(
                EventType::Observed,
                None,
                json!({"id": "placement", "type": "placement", "existing": true}),
            )?;
        }
        let ended = self.follow(run, &bus, &key, upload, event)?;
        match &ended.state {
            State::Terminal {
                end: End::Result { .. },
                ..
            } => patiently(run, || take(run, &bus, &ended, &task, &nodes)),
            State::Terminal {
                end: End::Error { error },
                ..
            } => Err(error.clone()),
            State::Queued | State::Claimed { .. } => Err(ErrorBody::new(
                ErrorCode::Internal,
                "the wait for the run stopped before the run had ended",
            )),
        }
    }
}

impl ClusterPlacer {
    /// Follows the run on the node to its end, and records the node's events as events of this run.
    fn follow(
        &self,
        run: &PlacedRun<'_>,
        bus: &Arc<dyn Bus>,
        key: &RunKey,
        upload: Upload<'_>,
        event: &mut RecordEvent<'_>,
    ) -> Result<Record, ErrorBody> {
        let patience = Duration::from_millis(run.placement.patience_ms);
        let mut failed = None;
        let mut record = |result: Result<(), ErrorBody>| {
            if let Err(error) = result {
                failed.get_or_insert(error);
            }
        };
        // A garbage collection that began before this run had a record may remove the run's
        // objects, but only within `REMOVAL_WINDOW`. So check once after that time, and upload
        // missing ones.
        let (began, mut unconfirmed) = (Instant::now(), Some(upload));
        let ended = follow(
            bus,
            key,
            patience,
            &|| run.cancellation.reason().is_some(),
            &mut |seen| {
                if began.elapsed() >= REMOVAL_WINDOW
                    && let Some(upload) = &mut unconfirmed
                    && !is_unreachable(&upload.confirm())
                {
                    // All objects are there, or one cannot be uploaded again: then the run fails on
                    // its node if the node needs that object.
                    unconfirmed = None;
                }
                match seen {
                    // Until a node has claimed the run, its journal is empty, and its state `queued`.
                    Seen::Queued | Seen::Trouble(_) | Seen::Nothing => {}
                    Seen::Claimed { by, epoch } => record(event(
                        EventType::Created,
                        None,
                        json!({"runtimeId": key.run, "backend": "cluster", "node": by.node, "epoch": epoch}),
                    )),
                    Seen::Event(bytes) => {
                        if let Ok(seen) = serde_json::from_slice::<LifecycleEvent>(&bytes) {
                            record(event(
                                seen.kind,
                                seen.execution_id.as_ref(),
                                Value::Object(seen.data),
                            ));
                        }
                    }
                }
            },
        );
        let ended = ended.map_err(|error| lost(error.body()))?;
        match failed {
            None => Ok(ended),
            Some(error) => Err(error),
        }
    }
}

fn is_unreachable(result: &Result<(), ErrorBody>) -> bool {
    let code = result.as_ref().err().map(|error| error.code);
    code == Some(ErrorCode::ClusterUnreachable)
}

/// Repeats a step while the message server does not answer, at most for the `patience_ms` of the
/// placement and until the run is cancelled. The task may be queued already, so the first failure
/// must not end the run.
fn patiently<T>(
    run: &PlacedRun<'_>,
    mut step: impl FnMut() -> Result<T, ErrorBody>,
) -> Result<T, ErrorBody> {
    let until = Instant::now() + Duration::from_millis(run.placement.patience_ms);
    loop {
        match step() {
            Err(error) if error.code == ErrorCode::ClusterUnreachable => {
                if Instant::now() >= until || run.cancellation.reason().is_some() {
                    return Err(lost(error));
                }
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

/// Returns the error of a run that can no longer be followed.
fn lost(mut error: ErrorBody) -> ErrorBody {
    error.message = format!(
        "the state of the run can no longer be read: {}",
        error.message
    );
    error.hint(
        "the run may go on; submit it again with the same --idempotency-key to get its result",
    )
}

/// The uploaded objects of a task, with what is needed to upload them again.
struct Upload<'a> {
    task: ClusterTask,
    inputs: UploadedInputs<'a>,
    objects: &'a SubmitterObjects<'a>,
}

impl<'a> Upload<'a> {
    /// Uploads the inputs and the task document; also returns the secrets of the task.
    fn of(
        run: &PlacedRun<'_>,
        objects: &'a SubmitterObjects<'a>,
        store: &'a LayerStore,
    ) -> Result<(Self, SecretValues), ErrorBody> {
        let request = RunRequest {
            placement: None,
            ..run.request.clone()
        };
        let rules = core_of(&request);
        let mut inputs = UploadedInputs::new(objects, store, request.paths.clone(), rules);
        let made = ClusterTask::of_request(request, &mut inputs);
        let (task, values) = made?;
        task.put(objects)?;
        let upload = Self {
            task,
            inputs,
            objects,
        };
        Ok((upload, values))
    }

    /// Uploads again the objects that a garbage collection has removed.
    fn confirm(&mut self) -> Result<(), ErrorBody> {
        self.inputs.confirm()?;
        self.task.put(self.objects)?;
        Ok(())
    }
}

/// Returns the files of WordPress that a guest gets: core, and the theme of a new site.
fn core_of(request: &RunRequest) -> PackRules {
    let themes = Path::new(&request.paths.wordpress).join("wp-content/themes");
    let theme = newest_default_theme(&themes);
    let theme = theme
        .as_deref()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    let theme = theme.map(|name| format!("wp-content/themes/{name}"));
    let core = CORE_FILES.iter().chain(&CORE_DIRECTORIES).copied();
    let paths: Vec<&str> = core.chain(theme.as_deref()).collect();
    PackRules::only(&paths)
}

fn answer(
    bus: &Arc<dyn Bus>,
    key: &RunKey,
    nodes: &NodeKeys,
    values: SecretValues,
) -> Result<Option<Box<dyn Answering>>, ErrorBody> {
    if values.is_empty() {
        return Ok(None);
    }
    let (asked, nodes, of) = (Arc::clone(bus), nodes.clone(), key.clone());
    let answer = move |request: &[u8]| {
        let present = asked.record(&of).ok()??;
        answer_request(request, &present.value, &nodes, &values).ok()
    };
    let answering = bus.answer(key, Box::new(answer));
    answering.map(Some).map_err(ErrorBody::from)
}

/// Verifies the result, signs its bundle with the key of this host and stores it.
fn take(
    run: &PlacedRun<'_>,
    bus: &Arc<dyn Bus>,
    record: &Record,
    task: &ClusterTask,
    nodes: &NodeKeys,
) -> Result<RunResult, ErrorBody> {
    let unusable = |e: &dyn std::fmt::Display| {
        ErrorBody::new(
            ErrorCode::StateDirInvalid,
            format!("the state directory cannot be used: {e}"),
        )
    };
    let directory = Dir::open(run.state.path()).map_err(|e| unusable(&e))?;
    let key = HostKey::load_or_create(&directory)?;
    let site = &run.request.site;
    let bundles = Store::open(&directory, site)?;
    let path = run
        .state
        .path()
        .join("sites")
        .join(site.as_str())
        .join("artifacts");
    let objects = SubmitterObjects::new(bus.as_ref(), &record.key.submitter);
    let fetched = fetch_result(
        &objects,
        &Expected {
            record,
            task,
            nodes,
        },
        &LocalStore {
            bundles: &bundles,
            path: &path,
            key: &key,
            temporary: run.scratch,
        },
    );
    Ok(fetched?.result)
}
