//! Generates inputs of bundles from a random seed, and writes bundles from them.
#![allow(dead_code)] // Each test binary uses only some of the functions.

use crate::trees::{Random, Tree, baseline, edit, scratch, write_tree, write_upper};
use serde_json::{Map, Value, json};
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::*;
use wp_codebox_contracts::*;
use wp_codebox_policy::Redactor;

pub const TIME: &str = "2026-01-02T03:04:05.678Z";

pub fn run_id(number: u64) -> RunId {
    RunId::new(format!("run_{number:032x}")).unwrap()
}

/// Returns the changes that a capture finds after a guest turned the tree `before` into `after`.
pub fn captured(work: &Path, before: &Tree, after: &Tree, random: &mut Random) -> MountChanges {
    let (lower, upper) = (work.join("lower"), work.join("upper"));
    for dir in [&lower, &upper] {
        let _ = fs::remove_dir_all(dir);
    }
    write_tree(&lower, before);
    write_upper(&upper, before, after, random);
    capture(
        Dir::open(&lower).unwrap().as_fd(),
        Dir::open(&upper).unwrap().as_fd(),
        &ExcludeRules::default(),
        &CaptureLimits::default(),
    )
    .unwrap()
}

pub fn mount(index: usize, name: &str, changes: Option<MountChanges>) -> BundleMount {
    BundleMount {
        index,
        target: GuestPath::new(format!("/wordpress/wp-content/plugins/{name}")).unwrap(),
        access: MountAccess::Readwrite,
        view: MountView::Overlay,
        git: GitView::None,
        exclude: ExcludeRules::default(),
        left_out: LeftOut::default(),
        metadata: None,
        changes,
    }
}

pub fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub fn inputs(mounts: Vec<BundleMount>) -> BundleInputs {
    BundleInputs {
        preview: None,
        episode: None,
        follow_up: None,
        created_at: TIME.to_owned(),
        runtime: RuntimeInfo {
            id: "run_1".to_owned(),
            backend: "native".to_owned(),
            environment: RuntimeEnvironment {
                kind: "wordpress".to_owned(),
                version: Some("7.1.1".to_owned()),
                php_version: Some("8.2.29".to_owned()),
            },
            created_at: TIME.to_owned(),
            status: "destroyed".to_owned(),
        },
        outcome: Outcome::Succeeded,
        summary: "Changed some files.".to_owned(),
        summary_detail: Some(RunSummary::new(SummaryCode::AgentSucceeded)),
        approvable: Approvable::Yes,
        provenance: object(json!({"requester": "unit"})),
        task: Some(json!({"schema": schema_id::TASK_INPUT, "goal": "Prüfe das"})),
        policy: json!({"network": "deny"}),
        spec: Map::new(),
        mounts,
        renames: RenameMode::Separate,
        events: vec![LifecycleEvent {
            id: "evt-1".to_owned(),
            seq: 1,
            kind: EventType::Created,
            timestamp: TIME.to_owned(),
            execution_id: None,
            data: Map::new(),
        }],
        commands: Vec::new(),
        observations: Vec::new(),
        checks: Vec::new(),
        completion_outcome: None,
        agent_result: None,
        transcript: None,
        isolation: IsolationReport {
            schema: schema_id::ISOLATION_REPORT.to_owned(),
            level: IsolationLevel::Full,
            kernel: "6.18.0".to_owned(),
            landlock_abi: 7,
            axes: Vec::new(),
        },
        evidence: Vec::new(),
        files: Vec::new(),
    }
}

/// Generates the inputs of a run with random mounts, options and outcome.
pub fn random_inputs(work: &Path, number: u64) -> BundleInputs {
    let random = &mut Random(number ^ 0xb0b);
    let mounts = (0..random.below(4))
        .map(|index| {
            let before = baseline(random);
            let after = edit(random, &before);
            let changes = random
                .chance(85)
                .then(|| captured(work, &before, &after, random));
            mount(index, &format!("p{index}"), changes)
        })
        .collect();
    let mut made = inputs(mounts);
    made.outcome = *random.pick(Outcome::ALL);
    if random.chance(30) {
        made.renames = RenameMode::Detect;
    }
    if random.chance(60) {
        made.completion_outcome = Some(object(json!({"status": "succeeded", "blockers": []})));
        made.agent_result = Some(object(json!({"status": "completed", "summary": "ü"})));
        made.transcript = Some(json!({"schema": schema_id::AGENT_TRANSCRIPT, "executions": []}));
    }
    if random.chance(50) {
        made.checks.push(CheckReport {
            command: "php check.php".to_owned(),
            exit_code: Some(1),
            status: if random.chance(50) {
                CheckStatus::Passed
            } else {
                CheckStatus::Failed
            },
            output_tail: "done".to_owned(),
            duration_ms: 12,
            reason: None,
            tests: None,
        });
        made.commands.push(ExecutionRecord {
            id: "exec-1".to_owned(),
            command: "wordpress.run-php".to_owned(),
            args: vec!["code=echo 1;".to_owned()],
            exit_code: Some(0),
            stdout: "1\n".to_owned(),
            stderr: String::new(),
            started_at: TIME.to_owned(),
            finished_at: TIME.to_owned(),
            phase: "workflow".to_owned(),
            output_truncated: false,
        });
        made.observations
            .push(json!({"type": "mounts", "data": {"count": 1}}));
    }
    made
}

pub struct Host {
    pub state: tempfile::TempDir,
    pub key: HostKey,
}

impl Host {
    pub fn new() -> Self {
        let state = scratch();
        let key = HostKey::load_or_create(&Dir::open(state.path()).unwrap()).unwrap();
        Self { state, key }
    }
    pub fn trusted(&self) -> TrustedKeys {
        TrustedKeys {
            host: vec![self.key.public_half()],
            known: Vec::new(),
        }
    }
    pub fn write(&self, number: u64, inputs: &BundleInputs) -> (PathBuf, WrittenBundle) {
        let written = write_bundle(
            &Dir::open(self.state.path()).unwrap(),
            &run_id(number),
            inputs,
            &Redactor::new(&[]),
            BundleSigner::Host(&self.key),
        )
        .unwrap();
        (self.state.path().join(run_id(number).as_str()), written)
    }
    pub fn verify(&self, bundle: &Path) -> Verification {
        let options = VerifyOptions {
            trusted: self.trusted(),
        };
        verify_bundle(&Dir::open(bundle).unwrap(), &options)
    }
}

pub fn codes(verification: &Verification) -> Vec<String> {
    let mut codes: Vec<String> = verification
        .violations
        .iter()
        .map(|v| {
            serde_json::to_value(v.code)
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    codes.sort();
    codes.dedup();
    codes
}

pub fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A bundle directory that a test tampers with.
pub struct Tampered(pub PathBuf);

impl Tampered {
    pub fn json(&self, member: &str) -> Value {
        serde_json::from_slice(&fs::read(self.0.join(member)).unwrap()).unwrap()
    }
    pub fn put(&self, member: &str, document: &Value) {
        fs::write(
            self.0.join(member),
            serde_json::to_vec_pretty(document).unwrap(),
        )
        .unwrap();
    }
    /// Changes the manifest without recomputing any hash.
    pub fn manifest(&self, change: impl FnOnce(&mut Value)) {
        let mut manifest = self.json("manifest.json");
        change(&mut manifest);
        self.put("manifest.json", &manifest);
    }
    /// Changes a document and recomputes every hash, but not the signature.
    pub fn document(&self, member: &str, change: impl FnOnce(&mut Value)) {
        let mut document = self.json(member);
        change(&mut document);
        self.put(member, &document);
        self.seal();
    }
    /// Adds a file to the bundle and to its manifest, and recomputes every hash.
    pub fn add(&self, member: &str, kind: &str, bytes: &[u8]) {
        let path = self.0.join(member);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self.manifest(|m| {
            m["files"]
                .as_array_mut()
                .unwrap()
                .push(json!({"path": member, "kind": kind, "contentType": "application/json"}));
        });
        self.seal();
    }
    /// Writes the hashes of all listed files and the self hash into the manifest.
    pub fn seal(&self) {
        self.manifest(|manifest| {
            for row in manifest["files"].as_array_mut().unwrap() {
                let path = row["path"].as_str().unwrap().to_owned();
                if path != "manifest.json"
                    && let Ok(bytes) = fs::read(self.0.join(&path))
                {
                    row["sha256"] = json!({"algorithm": "sha256", "value": sha256(&bytes)});
                }
            }
        });
        self.seal_self();
    }
    pub fn seal_self(&self) {
        self.manifest(|manifest| {
            let own = manifest_self_hash(&Json::from(&*manifest), "manifest.json", OverLimit::Drop);
            let own = own.unwrap();
            for row in manifest["files"].as_array_mut().unwrap() {
                if row["path"] == "manifest.json" {
                    row["sha256"] = json!({"algorithm": "sha256", "value": own});
                }
            }
        });
    }
    /// Recomputes the content digest v1 and the bundle id in the manifest.
    pub fn identify(&self) {
        let read = |member: &str| fs::read(self.0.join(member)).unwrap();
        let bytes: Vec<Vec<u8>> = CONTENT_INPUTS.iter().map(|m| read(m)).collect();
        let digest = content_digest(&[
            (CONTENT_INPUTS[0], &bytes[0]),
            (CONTENT_INPUTS[1], &bytes[1]),
        ]);
        self.manifest(|m| {
            m["id"] = json!(format!("artifact-bundle-sha256-{}", digest.value));
            m["contentDigest"] = json!(digest);
        });
    }
    /// Gives the bundle an id as other implementations of the format compute it: from the list of
    /// files.
    pub fn identify_by_list(&self) {
        self.manifest(|m| {
            let rows: Vec<Json> = m["files"]
                .as_array()
                .unwrap()
                .iter()
                .map(Json::from)
                .collect();
            let value = file_list_digest(&rows, OverLimit::Drop).unwrap();
            m["id"] = json!(format!("artifact-bundle-sha256-{value}"));
            m["contentDigest"] =
                json!({"algorithm": "sha256", "inputs": ["manifest.files"], "value": value});
        });
        self.seal_self();
    }
    /// Deletes files of the bundle and their entries in the manifest.
    pub fn drop_members(&self, members: &[&str]) {
        for member in members {
            let _ = fs::remove_file(self.0.join(member));
        }
        self.manifest(|m| {
            m["files"]
                .as_array_mut()
                .unwrap()
                .retain(|row| !members.contains(&row["path"].as_str().unwrap()));
        });
    }
}
