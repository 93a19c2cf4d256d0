//! A result that is accepted, and each kind of result that is refused.

use super::*;
use crate::names::{Capability, NodeName, Priority, Queue, RunKey, SubmitterName};
use crate::objects::Objects;
use crate::objects::tests::MemoryObjects;
use crate::record::{Claimant, End, PROTOCOL, Record, State};
use crate::task::ClusterTask;
use crate::task::tests::minimal_task;
use crate::trust::NodeKeys;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use wp_codebox_artifacts::*;
use wp_codebox_contracts::CodedError;
use wp_codebox_contracts::*;
use wp_codebox_policy::Redactor;

const TIME: &str = "2026-01-02T03:04:05.678Z";

fn run_id(number: u32) -> RunId {
    RunId::new(format!("run_{number:032x}")).unwrap()
}

fn node_name(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

/// A host with its signing key: a node or the submitting host.
struct Host {
    state: tempfile::TempDir,
    key: HostKey,
}

impl Host {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let key = HostKey::load_or_create(&Dir::open(state.path()).unwrap()).unwrap();
        Self { state, key }
    }
    fn key_id(&self) -> Sha256Hex {
        self.key.public_half().key_id()
    }
    fn store(&self) -> Store {
        let state = Dir::open(self.state.path()).unwrap();
        Store::open(&state, &SiteId::new("site-1").unwrap()).unwrap()
    }
    fn artifacts(&self) -> PathBuf {
        self.state.path().join("sites/site-1/artifacts")
    }
}

/// What a node claims to have run.
#[derive(Clone)]
struct Story {
    /// The claim that the node's answer names.
    claim: Claim,
    /// Run of the bundle.
    run: RunId,
    /// `provenance.cluster` in the bundle.
    cluster: Value,
    content: String,
}

fn story(task: &ClusterTask, epoch: u64) -> Story {
    let digest = task.digest().unwrap();
    Story {
        cluster: task.provenance(&digest, epoch),
        run: task.run_id.clone(),
        claim: Claim {
            key: RunKey {
                submitter: SubmitterName::new("team").unwrap(),
                run: task.run_id.clone(),
            },
            epoch,
            node: node_name("one"),
            task: digest,
        },
        content: "new\n".to_owned(),
    }
}

fn task(number: u32) -> ClusterTask {
    let mut task = minimal_task(&sha256(b"layer"));
    task.run_id = run_id(number);
    task
}

fn bundle_inputs(story: &Story) -> BundleInputs {
    let node = Node::File {
        mode: FileMode::Regular,
        bytes: story.content.clone().into_bytes(),
    };
    let changes = MountChanges {
        entries: vec![EntryChange {
            path: b"new.txt".to_vec(),
            change: Change::Added(node),
        }],
        ..MountChanges::default()
    };
    BundleInputs {
        preview: None,
        episode: None,
        follow_up: None,
        created_at: TIME.to_owned(),
        runtime: RuntimeInfo {
            id: story.run.to_string(),
            backend: "native".to_owned(),
            environment: RuntimeEnvironment {
                kind: "wordpress".to_owned(),
                version: None,
                php_version: None,
            },
            created_at: TIME.to_owned(),
            status: "destroyed".to_owned(),
        },
        outcome: Outcome::Succeeded,
        summary: "Changed a file.".to_owned(),
        summary_detail: None,
        approvable: Approvable::Yes,
        provenance: Map::from_iter([("cluster".to_owned(), story.cluster.clone())]),
        task: None,
        policy: json!({"network": "deny"}),
        spec: Map::new(),
        mounts: vec![BundleMount {
            index: 0,
            target: GuestPath::new("/workspace/demo").unwrap(),
            access: MountAccess::Readwrite,
            view: MountView::Overlay,
            git: GitView::None,
            exclude: ExcludeRules::default(),
            left_out: LeftOut::default(),
            metadata: None,
            changes: Some(changes),
        }],
        renames: RenameMode::Separate,
        events: Vec::new(),
        commands: Vec::new(),
        observations: Vec::new(),
        checks: Vec::new(),
        completion_outcome: Some(Map::from_iter([("status".to_owned(), json!("succeeded"))])),
        agent_result: None,
        transcript: Some(json!({"executions": [1.5]})),
        isolation: isolation(),
        evidence: Vec::new(),
        files: Vec::new(),
    }
}

fn isolation() -> IsolationReport {
    IsolationReport {
        schema: schema_id::ISOLATION_REPORT.to_owned(),
        level: IsolationLevel::Full,
        kernel: "6.18.0".to_owned(),
        landlock_abi: 7,
        axes: Vec::new(),
    }
}

/// Writes a bundle and returns its directory and the node's answer.
fn ran(story: &Story, signer: BundleSigner<'_>) -> (tempfile::TempDir, PathBuf, RunResult) {
    let work = tempfile::tempdir().unwrap();
    let parent = Dir::open(work.path()).unwrap();
    let run = &story.run;
    let inputs = bundle_inputs(story);
    let written = write_bundle_as(
        &parent,
        run,
        &inputs,
        &Redactor::new(&[]),
        signer,
        Durability::Unsynced,
    )
    .unwrap();
    let path = work.path().join(run.as_str());
    let result = RunResult {
        schema: schema_id::RUN_RESULT.to_owned(),
        run_id: run.clone(),
        outcome: Outcome::Succeeded,
        summary: inputs.summary,
        summary_detail: None,
        error: None,
        artifacts: Some(RunArtifacts {
            path: path.to_string_lossy().into_owned(),
            bundle_id: written.id.to_string(),
            manifest_sha256: written.manifest_sha256.to_string(),
        }),
        mounts: Vec::new(),
        changed_files: written.changed_files,
        approvable: true,
        checks: Vec::new(),
        isolation: isolation(),
        sandbox_audits: Vec::new(),
        cost: Cost::default(),
        completion_outcome: written.completion_outcome,
        agent_result: written.agent_result,
        transcript: written.transcript,
        workflow: None,
        services: Vec::new(),
        notices: Vec::new(),
    };
    (work, path, result)
}

struct Cluster {
    node: Host,
    submitter: Host,
    nodes: NodeKeys,
    objects: MemoryObjects,
    task: ClusterTask,
}

impl Cluster {
    fn new() -> Self {
        let (node, submitter) = (Host::new(), Host::new());
        let nodes = NodeKeys::new([(node_name("one"), node.key_id())]);
        Self {
            node,
            submitter,
            nodes,
            objects: MemoryObjects::default(),
            task: task(1),
        }
    }

    /// Packs and stores a result with this content, signed by `host`, as the result of epoch 1.
    fn stored(
        &self,
        story: &Story,
        host: &Host,
        change: impl FnOnce(&mut RunResult),
    ) -> (Record, PathBuf) {
        let (work, path, mut result) = ran(story, BundleSigner::Host(&host.key));
        change(&mut result);
        let bundle = Dir::open(&path).unwrap();
        let temporary = host.state.path();
        let packed = pack_result(&story.claim, &result, &bundle, &host.key, temporary).unwrap();
        let record = self.record(1, packed.end());
        let mut file = packed.file;
        self.objects.put(&object(&record), &mut file).unwrap();
        drop(work);
        (record, path)
    }

    fn record(&self, epoch: u64, end: End) -> Record {
        let submitter = SubmitterName::new("team").unwrap();
        Record {
            protocol: PROTOCOL,
            key: RunKey {
                submitter: submitter.clone(),
                run: self.task.run_id.clone(),
            },
            queue: Queue {
                capability: Capability::new("default").unwrap(),
                priority: Priority::Normal,
                submitter,
            },
            task: self.task.digest().unwrap(),
            epoch,
            max_tries: 3,
            nodes: None,
            cancelled: false,
            created_at: TIME.to_owned(),
            state: State::Terminal {
                by: Some(Claimant {
                    node: node_name("one"),
                    instance: "a".repeat(32),
                }),
                end,
            },
        }
    }

    fn fetch(&self, record: &Record) -> Result<FetchedResult, ResultError> {
        let store = self.submitter.store();
        let path = self.submitter.artifacts();
        let expected = Expected {
            record,
            task: &self.task,
            nodes: &self.nodes,
        };
        let local = LocalStore {
            bundles: &store,
            path: &path,
            key: &self.submitter.key,
            temporary: self.submitter.state.path(),
        };
        let fetched = fetch_result(&self.objects, &expected, &local);
        if fetched.is_err() {
            let left: Vec<_> = std::fs::read_dir(&path).unwrap().collect();
            assert!(left.is_empty(), "{left:?}");
        }
        fetched
    }

    /// Returns the code with which a result of the node `one` is refused.
    fn refusal(&self, story: &Story) -> ErrorCode {
        let (record, _) = self.stored(story, &self.node, |_| {});
        self.fetch(&record).unwrap_err().code()
    }
}

fn object(record: &Record) -> crate::bus::ObjectName {
    crate::bus::ObjectName::Result {
        run: record.key.run.clone(),
        epoch: record.epoch,
    }
}

#[test]
fn fetched_result_is_stored_like_a_bundle_of_the_submitting_host() {
    let cluster = Cluster::new();
    let (record, path) = cluster.stored(&story(&cluster.task, 1), &cluster.node, |_| {});
    let fetched = cluster.fetch(&record).unwrap();
    assert_eq!(fetched.status, ImportStatus::Created);
    let artifacts = fetched.result.artifacts.unwrap();
    let stored = cluster.submitter.artifacts().join(run_id(1).as_str());
    assert_eq!(PathBuf::from(&artifacts.path), stored);
    let bytes = &cluster.objects.lock()[&object(&record).to_text()].clone();
    let text = String::from_utf8_lossy(bytes);
    assert!(
        !text.contains(&*path.to_string_lossy()),
        "no path of the node"
    );
    // The preflight with the key of the submitting host alone accepts it.
    let request = PreflightRequest {
        approved_files: vec!["/workspace/demo/new.txt".to_owned()],
        manifest_sha256: Some(Sha256Hex::new(artifacts.manifest_sha256).unwrap()),
        trusted: TrustedKeys {
            host: vec![cluster.submitter.key.public_half()],
            known: Vec::new(),
        },
        ..PreflightRequest::default()
    };
    let bundle = Dir::open(&stored).unwrap();
    let ready = preflight(&bundle, &request).unwrap();
    assert_eq!(ready.signature.status, SignatureStatus::SignedByThisHost);
    // A second fetch changes nothing.
    let again = cluster.fetch(&record).unwrap();
    assert_eq!(again.status, ImportStatus::Existing);
}

#[test]
fn result_of_another_run_task_epoch_node_or_submitter_is_refused() {
    let cluster = Cluster::new();
    let good = story(&cluster.task, 1);
    let changed = |change: &dyn Fn(&mut Story)| {
        let mut story = good.clone();
        change(&mut story);
        cluster.refusal(&story)
    };
    let other = task(2);
    let invalid = ErrorCode::ClusterResultInvalid;
    // The node's answer and the bundle are both about something else, and agree.
    assert_eq!(cluster.refusal(&story(&other, 1)), invalid, "another run");
    assert_eq!(cluster.refusal(&story(&cluster.task, 2)), invalid, "epoch");
    let mut same_run = task(1);
    same_run.checks = vec!["true".to_owned()];
    assert_eq!(
        cluster.refusal(&story(&same_run, 1)),
        invalid,
        "another task"
    );
    let node = changed(&|story| story.claim.node = node_name("two"));
    assert_eq!(node, invalid, "another node");
    let epoch = changed(&|story| story.claim.epoch = 2);
    assert_eq!(epoch, invalid, "another epoch in the answer");
    let task = changed(&|story| story.claim.task = sha256(b"other"));
    assert_eq!(task, invalid, "another task in the answer");
    let run = changed(&|story| story.claim.key.run = run_id(2));
    assert_eq!(run, invalid, "another run in the answer");
    let run = changed(&|story| story.run = run_id(2));
    assert_eq!(run, invalid, "another run in the bundle");
    let submitter = changed(&|story| {
        story.claim.key.submitter = SubmitterName::new("other").unwrap();
    });
    assert_eq!(submitter, invalid, "another submitter");
    // The answer is about this claim, but the bundle's signed provenance is not.
    for (key, value) in [
        ("epoch", json!(2)),
        ("epoch", json!("1")),
        ("task", json!(sha256(b"other"))),
        ("inputs", json!([])),
        ("inputs", json!([sha256(b"layer"), sha256(b"other")])),
        ("more", json!(1)),
    ] {
        let code = changed(&|story| story.cluster[key] = value.clone());
        assert_eq!(code, invalid, "{key}: {value}");
    }
    assert_eq!(changed(&|story| story.cluster = Value::Null), invalid);
    let (record, _) = cluster.stored(&good, &cluster.node, |_| {});
    cluster.fetch(&record).unwrap();
}

#[test]
fn object_whose_bytes_or_size_differ_from_its_record_is_refused() {
    let cluster = Cluster::new();
    let good = story(&cluster.task, 1);
    let (record, _) = cluster.stored(&good, &cluster.node, |_| {});
    let name = object(&record).to_text();
    let bytes = cluster.objects.lock()[&name].clone();
    let code = |bytes: Vec<u8>| {
        cluster.objects.lock().insert(name.clone(), bytes);
        cluster.fetch(&record).unwrap_err().code()
    };
    let invalid = ErrorCode::ClusterResultInvalid;
    let mut flipped = bytes.clone();
    flipped[100] ^= 1;
    assert_eq!(code(flipped), invalid, "forged content");
    assert_eq!(code(bytes[..bytes.len() - 1].to_vec()), invalid, "shorter");
    assert_eq!(code([&bytes[..], b"x"].concat()), invalid, "longer");
    // A valid result of the same run from an earlier epoch in place of this one.
    let mut earlier = good.clone();
    earlier.content = "earlier\n".to_owned();
    let (_, _) = cluster.stored(&earlier, &cluster.node, |_| {});
    assert_eq!(cluster.fetch(&record).unwrap_err().code(), invalid);
    cluster.objects.lock().insert(name.clone(), bytes.clone());
    let mut longer = record.clone();
    if let State::Terminal {
        end: End::Result { bytes, .. },
        ..
    } = &mut longer.state
    {
        *bytes += 1;
    }
    assert_eq!(cluster.fetch(&longer).unwrap_err().code(), invalid);
    cluster.objects.lock().remove(&name);
    let error = cluster.fetch(&record).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ClusterMissing);
    cluster.objects.lock().insert(name.clone(), bytes);
    cluster.fetch(&record).unwrap();
}

#[test]
fn object_that_is_no_result_is_refused_although_its_record_has_its_digest() {
    let cluster = Cluster::new();
    let put = |bytes: &[u8], said: u64| {
        let end = End::Result {
            outcome: Outcome::Succeeded,
            sha256: sha256(bytes),
            bytes: said,
        };
        let record = cluster.record(1, end);
        let name = object(&record);
        cluster.objects.put(&name, &mut &*bytes).unwrap();
        cluster.fetch(&record).unwrap_err().code()
    };
    let magic = b"wp-codebox cluster result 1\n";
    for bytes in [
        Vec::new(),
        b"x".to_vec(),
        magic.to_vec(),
        [&magic[..], &[255, 255, 255, 255]].concat(),
        [&magic[..], &[2, 0, 0, 0], b"{}"].concat(),
    ] {
        let code = put(&bytes, bytes.len() as u64);
        assert_eq!(code, ErrorCode::ClusterResultInvalid);
    }
    assert_eq!(put(b"x", u64::MAX), ErrorCode::ClusterResultInvalid);
    let error = ErrorBody::new(ErrorCode::RunFailed, "x");
    let ended = cluster.record(1, End::Error { error });
    let code = cluster.fetch(&ended).unwrap_err().code();
    assert_eq!(code, ErrorCode::ClusterMissing);
}

#[test]
fn result_of_a_node_whose_key_is_not_listed_for_it_is_refused() {
    let mut cluster = Cluster::new();
    let good = story(&cluster.task, 1);
    let stranger = Host::new();
    let (record, _) = cluster.stored(&good, &stranger, |_| {});
    let code = |cluster: &Cluster, record| cluster.fetch(record).unwrap_err().code();
    assert_eq!(code(&cluster, &record), ErrorCode::ClusterNodeUntrusted);
    // The key of another listed node signs for this one.
    let rows = [
        (node_name("one"), cluster.node.key_id()),
        (node_name("two"), stranger.key_id()),
    ];
    cluster.nodes = NodeKeys::new(rows);
    assert_eq!(code(&cluster, &record), ErrorCode::ClusterNodeUntrusted);
    let (record, _) = cluster.stored(&good, &cluster.node, |_| {});
    cluster.fetch(&record).unwrap();
}

#[test]
fn bundle_that_is_unsigned_or_signed_with_another_key_or_changed_after_signing_is_refused() {
    let cluster = Cluster::new();
    let good = story(&cluster.task, 1);
    let stranger = Host::new();
    let packed = |signer: BundleSigner<'_>, bend: &dyn Fn(&std::path::Path)| {
        let (_work, path, result) = ran(&good, signer);
        let bundle = Dir::open(&path).unwrap();
        let temporary = cluster.node.state.path();
        let key = &cluster.node.key;
        bend(&path);
        let packed = pack_result(&good.claim, &result, &bundle, key, temporary)?;
        let record = cluster.record(1, packed.end());
        let mut file = packed.file;
        cluster.objects.put(&object(&record), &mut file).unwrap();
        cluster.fetch(&record)
    };
    let code = |result: Result<FetchedResult, ResultError>| result.unwrap_err().code();
    let invalid = ErrorCode::ClusterResultInvalid;
    let as_is = |_: &std::path::Path| {};
    let foreign = packed(BundleSigner::Host(&stranger.key), &as_is);
    assert_eq!(code(foreign), invalid, "another key");
    assert_eq!(code(packed(BundleSigner::Unsigned, &as_is)), invalid);
    let browser = packed(BundleSigner::HostForBrowser(&cluster.node.key), &as_is);
    assert_eq!(code(browser), invalid, "contents of a browser");
    // The node itself does not send a bundle that does not verify.
    let bent = |path: &std::path::Path| {
        std::fs::write(path.join("files/patch.diff"), "changed").unwrap();
    };
    let sent = packed(BundleSigner::Host(&cluster.node.key), &bent);
    assert_eq!(code(sent), ErrorCode::ArtifactVerificationFailed);
    packed(BundleSigner::Host(&cluster.node.key), &as_is).unwrap();
}

#[test]
fn archive_whose_files_changed_after_signing_is_refused() {
    let cluster = Cluster::new();
    let good = story(&cluster.task, 1);
    let (_work, path, result) = ran(&good, BundleSigner::Host(&cluster.node.key));
    let bundle = Dir::open(&path).unwrap();
    let temporary = cluster.node.state.path();
    let key = &cluster.node.key;
    let mut packed = pack_result(&good.claim, &result, &bundle, key, temporary).unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut packed.file, &mut bytes).unwrap();
    // The head ends where its length says.
    let magic = b"wp-codebox cluster result 1\n".len();
    let length = <[u8; 4]>::try_from(&bytes[magic..magic + 4]).unwrap();
    let start = magic + 4 + u32::from_le_bytes(length) as usize;
    let mut plain = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&bytes[start..]);
    std::io::Read::read_to_end(&mut decoder, &mut plain).unwrap();
    // The new text has the same length, so that the archive stays valid.
    let at = plain.windows(5).position(|part| part == b"\n+new").unwrap();
    plain[at + 2..at + 5].copy_from_slice(b"bad");
    let changed = [&bytes[..start], &plain].concat();
    let end = End::Result {
        outcome: Outcome::Succeeded,
        sha256: sha256(&changed),
        bytes: changed.len() as u64,
    };
    let record = cluster.record(1, end);
    cluster
        .objects
        .put(&object(&record), &mut changed.as_slice())
        .unwrap();
    let error = cluster.fetch(&record).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ClusterResultInvalid, "{error}");
}

#[test]
fn run_result_that_disagrees_with_its_bundle_or_its_record_is_refused() {
    let cluster = Cluster::new();
    let good = story(&cluster.task, 1);
    type Bend = fn(&mut RunResult);
    let bends: [(&str, Bend); 9] = [
        ("changed_files", |r| r.changed_files.clear()),
        ("changed_files", |r| {
            r.changed_files[0].path = "/other".to_owned();
        }),
        ("approvable", |r| r.approvable = false),
        ("completion_outcome", |r| r.completion_outcome = Value::Null),
        ("agent_result", |r| {
            r.agent_result = json!({"status": "completed"})
        }),
        ("transcript", |r| {
            r.transcript = json!({"executions": [2.5]})
        }),
        ("artifacts.bundle_id", |r| {
            r.artifacts.as_mut().unwrap().bundle_id = "x".to_owned();
        }),
        ("artifacts.manifest_sha256", |r| {
            r.artifacts.as_mut().unwrap().manifest_sha256 = "0".repeat(64);
        }),
        ("outcome", |r| r.outcome = Outcome::NoOp),
    ];
    for (field, bend) in bends {
        let (record, _) = cluster.stored(&good, &cluster.node, bend);
        let error = cluster.fetch(&record).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ClusterResultInvalid, "{field}");
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
    // The record states another outcome than the signed answer.
    let (mut record, _) = cluster.stored(&good, &cluster.node, |_| {});
    let sound = record.clone();
    if let State::Terminal {
        end: End::Result { outcome, .. },
        ..
    } = &mut record.state
    {
        *outcome = Outcome::Failed;
    }
    let code = cluster.fetch(&record).unwrap_err().code();
    assert_eq!(code, ErrorCode::ClusterResultInvalid);
    cluster.fetch(&sound).unwrap();
}

#[test]
fn result_without_a_bundle_is_not_packed() {
    let cluster = Cluster::new();
    let good = story(&cluster.task, 1);
    let (_work, path, mut result) = ran(&good, BundleSigner::Host(&cluster.node.key));
    result.artifacts = None;
    let bundle = Dir::open(&path).unwrap();
    let key = &cluster.node.key;
    let packed = pack_result(&good.claim, &result, &bundle, key, path.parent().unwrap());
    assert_eq!(packed.unwrap_err().code(), ErrorCode::ClusterResultInvalid);
}

#[test]
fn fetched_result_does_not_replace_a_different_stored_bundle_of_the_same_run() {
    let cluster = Cluster::new();
    let good = story(&cluster.task, 1);
    let (record, _) = cluster.stored(&good, &cluster.node, |_| {});
    cluster.fetch(&record).unwrap();
    let mut other = good.clone();
    other.content = "other\n".to_owned();
    let (record, _) = cluster.stored(&other, &cluster.node, |_| {});
    let store = cluster.submitter.store();
    let expected = Expected {
        record: &record,
        task: &cluster.task,
        nodes: &cluster.nodes,
    };
    let path = cluster.submitter.artifacts();
    let local = LocalStore {
        bundles: &store,
        path: &path,
        key: &cluster.submitter.key,
        temporary: &path,
    };
    let error = fetch_result(&cluster.objects, &expected, &local).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ArtifactImportConflict);
    let stored = path.join(run_id(1).as_str()).join("files/patch.diff");
    assert!(std::fs::read_to_string(stored).unwrap().contains("+new"));
}
