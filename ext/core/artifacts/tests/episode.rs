//! Episode traces: one fixed trace byte for byte, random traces, tampered traces and hostile
//! traces.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wp_codebox_artifacts::*;
use wp_codebox_contracts::{
    ActionKind, ActionRequest, BundleId, EpisodeExecution, EpisodeTrace, FileDigest,
    ObservationType, RuntimeEnvironment, RuntimeInfo, Sha256Hex, SnapshotSemantics, TraceRef,
    TraceRefKind,
};
use wp_codebox_policy::Redactor;

const TIME: &str = "2026-01-01T00:00:00.000Z";

fn vector(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../tests/conformance/vectors/episode")
        .join(name)
}

fn runtime() -> RuntimeInfo {
    RuntimeInfo {
        id: "run_00000000000000000000000000000001".to_owned(),
        backend: "native".to_owned(),
        environment: RuntimeEnvironment {
            kind: "wordpress".to_owned(),
            version: Some("7.1.1".to_owned()),
            php_version: Some("8.2".to_owned()),
        },
        created_at: TIME.to_owned(),
        status: "created".to_owned(),
    }
}

fn seen(kind: ObservationType, data: Value) -> ObservationInput {
    ObservationInput {
        kind,
        data,
        observed_at: TIME.to_owned(),
        artifact_refs: Vec::new(),
    }
}

fn executed(number: usize, command: &str, stdout: &str) -> EpisodeExecution {
    EpisodeExecution {
        id: format!("exec-{number}"),
        command: command.to_owned(),
        args: Vec::new(),
        exit_code: (!number.is_multiple_of(3)).then_some(0),
        stdout: stdout.to_owned(),
        stderr: String::new(),
        result: None,
        diagnostics: None,
        artifact_refs: Vec::new(),
        started_at: TIME.to_owned(),
        finished_at: TIME.to_owned(),
    }
}

fn reference(kind: &str, path: &str) -> TraceRef {
    let kind = TraceRefKind::from(kind.to_owned());
    let mut reference = TraceRef::new(kind, path, FileDigest::sha256(sha256(path.as_bytes())));
    reference.path = Some(path.to_owned());
    reference
}

fn bundle(episode: &mut EpisodeBuilder<'_>) {
    let content = sha256(b"content");
    episode
        .artifacts(EpisodeArtifacts {
            id: BundleId::from_digest(&content),
            content,
            created_at: TIME.to_owned(),
        })
        .unwrap();
}

/// Builds an episode with one part of each kind and with texts and numbers that need special
/// canonical JSON rules.
fn fixed() -> ClosedEpisode {
    let redactor = Redactor::new(&[]);
    let mut episode = EpisodeBuilder::new(&redactor);
    episode
        .reset(EpisodeStart {
            runtime: runtime(),
            created_at: TIME.to_owned(),
            observations: vec![
                seen(ObservationType::RuntimeInfo, json!({"level": "full"})),
                seen(
                    ObservationType::Mounts,
                    json!([{"target": "/workspace/démo"}]),
                ),
            ],
        })
        .unwrap();
    // The action whose digest is published as a test vector.
    let mut first = executed(1, "wordpress.run-php", "1");
    first.args = vec!["code=echo 1;".to_owned()];
    episode
        .step(StepInput {
            action: ActionRequest {
                command: "wordpress.run-php".to_owned(),
                args: vec!["code=echo 1;".to_owned()],
                ..ActionRequest::default()
            },
            execution: first,
            observation: StepObservation::None,
        })
        .unwrap();
    let mut response = seen(
        ObservationType::HttpResponse,
        json!({"status": 200, "success": true, "numbers": [1e21, 1e-7, 0.1, -0.0, 18446744073709551615_u64],
            "text": "é\u{2028}/\u{7f}\u{1}😀", "😀": 1, "\u{fffd}": 2, "10": 3, "9": 4}),
    );
    response.artifact_refs = vec![reference("http-body", "files/observations/body.txt")];
    episode
        .step(StepInput {
            action: ActionRequest {
                kind: ActionKind::Http,
                command: "wordpress.http-request".to_owned(),
                args: vec!["url=/".to_owned()],
                cwd: Some(String::new()),
                timeout_ms: Some(5000),
                method: Some("GET".to_owned()),
                url: Some("/?a=1&b=2".to_owned()),
                path: Some("/workspace".to_owned()),
                operation: Some("read".to_owned()),
                selector: Some("#id".to_owned()),
                description: Some("Front page".to_owned()),
                metadata: Some(Map::from_iter([("reward".to_owned(), json!(1))])),
            },
            execution: executed(2, "wordpress.http-request", "{\"status\":200}"),
            observation: StepObservation::Seen(response),
        })
        .unwrap();
    episode
        .snapshot(SnapshotInput {
            id: "snapshot-1".to_owned(),
            created_at: TIME.to_owned(),
            semantics: SnapshotSemantics::RuntimeStateArtifact,
            metadata: Map::from_iter([("tables".to_owned(), json!(12))]),
            artifact_refs: vec![reference(
                "runtime-snapshot-artifact",
                "files/runtime-snapshots/snapshot-1.json",
            )],
        })
        .unwrap();
    bundle(&mut episode);
    episode.close().unwrap()
}

#[test]
fn episode_of_fixed_inputs_matches_the_recorded_episode() {
    let made = fixed();
    for (name, bytes) in [
        ("trace.json", &made.trace_file),
        ("records.jsonl", &made.records_file),
    ] {
        let path = vector(name);
        if std::env::var_os("CODEBOX_WRITE_VECTORS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == *bytes, "{name} differs");
    }
    assert_eq!(validate_episode_trace(&made.trace_file).issues, []);
    let read: EpisodeTrace = serde_json::from_slice(&made.trace_file).unwrap();
    assert_eq!(read.steps.len(), made.trace.steps.len());
    assert_eq!(
        read.steps[0].action.digest.value.as_str(),
        "1abdc64c3c23bbf29711726f68d784c15f9d6457e40842bdd72eb23362e025bc"
    );
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 12] = [
            "a", "Z", "9", "é", "😀", "\u{fffd}", "\"", "\\", "\n", "\u{1}", "/", "\u{2028}",
        ];
        (0..1 + self.below(5))
            .map(|_| PIECES[self.below(PIECES.len())])
            .collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.0 >> self.below(60)),
            3 => json!((self.below(1000) as f64 - 500.0) / 7.0),
            4 => json!(self.text()),
            5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(self.object(depth - 1)),
        }
    }

    fn object(&mut self, depth: usize) -> Map<String, Value> {
        (0..self.below(5))
            .map(|_| (self.text(), self.value(depth)))
            .collect()
    }

    fn seen(&mut self) -> ObservationInput {
        let known = ObservationType::KNOWN;
        let kind = known[self.below(known.len())].clone();
        let data = self.value(3);
        let mut seen = seen(kind, data);
        if self.below(3) == 0 {
            seen.artifact_refs = vec![reference("file", &self.text())];
        }
        seen
    }

    fn maybe(&mut self) -> Option<String> {
        (self.below(3) == 0).then(|| self.text())
    }

    fn step(&mut self, number: usize) -> StepInput {
        let mut execution = executed(number, "wordpress.run-php", "");
        execution.stdout = self.text();
        execution.result = (self.below(2) == 0).then(|| self.value(3));
        StepInput {
            action: ActionRequest {
                kind: ActionKind::ALL[self.below(ActionKind::ALL.len())],
                command: self.text(),
                args: (0..self.below(4)).map(|_| self.text()).collect(),
                cwd: self.maybe(),
                timeout_ms: (self.below(2) == 0).then_some(self.0),
                method: self.maybe(),
                url: self.maybe(),
                path: self.maybe(),
                operation: self.maybe(),
                selector: self.maybe(),
                description: self.maybe(),
                metadata: (self.below(2) == 0).then(|| self.object(3)),
            },
            execution,
            observation: match self.below(2) {
                0 => StepObservation::None,
                _ => StepObservation::Seen(self.seen()),
            },
        }
    }

    fn episode(&mut self) -> ClosedEpisode {
        let redactor = Redactor::new(&[]);
        let mut episode = EpisodeBuilder::new(&redactor);
        for _ in 0..1 + self.below(2) {
            episode
                .reset(EpisodeStart {
                    runtime: runtime(),
                    created_at: TIME.to_owned(),
                    observations: (0..self.below(3)).map(|_| self.seen()).collect(),
                })
                .unwrap();
            for number in 0..1 + self.below(4) {
                episode.step(self.step(number)).unwrap();
            }
            for number in 0..self.below(3) {
                let metadata = self.object(3);
                episode
                    .snapshot(SnapshotInput {
                        id: format!("snapshot-{number}"),
                        created_at: TIME.to_owned(),
                        semantics: SnapshotSemantics::PartialReplay,
                        metadata,
                        artifact_refs: Vec::new(),
                    })
                    .unwrap();
            }
        }
        if self.below(2) == 0 {
            bundle(&mut episode);
        }
        episode.close().unwrap()
    }
}

/// Collects JSON pointers to all leaves: values without members or items.
fn leaves(value: &Value, at: String, found: &mut Vec<String>) {
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, format!("{at}/{index}"), found);
            }
        }
        Value::Object(members) if !members.is_empty() => {
            for (key, item) in members {
                leaves(item, format!("{at}/{}", escape(key)), found);
            }
        }
        _ => found.push(at),
    }
}

/// Returns whether no digest covers the JSON member at this pointer, so that the verifier cannot
/// notice a change of it.
fn is_free(pointer: &str) -> bool {
    let parts: Vec<&str> = pointer.split('/').skip(1).collect();
    matches!(
        parts.as_slice(),
        ["id" | "createdAt"]
            | ["runtime" | "artifacts", ..]
            | ["artifactRef", "id"]
            | ["artifactRef", "digest", "value"]
            | ["reset", "id"]
            | ["reset", "runtime", ..]
            | ["steps", _, "id"]
    )
}

#[test]
fn random_episode_traces_validate_and_a_change_of_any_covered_value_is_detected() {
    let mut random = Random(0xe915_0de5_c0de_b0c5);
    let cases = std::env::var("CODEBOX_PROPERTY_CASES");
    let cases: usize = cases.map_or(60, |n| n.parse().unwrap());
    let (mut bent, mut free) = (0, 0);
    for case in 0..cases {
        let closed = random.episode();
        let judged = validate_episode_trace(&closed.trace_file);
        assert_eq!(judged.issues, [], "case {case}");
        let trace: Value = serde_json::from_slice(&closed.trace_file).unwrap();
        // White space and key order do not affect the digests.
        let pretty = serde_json::to_vec_pretty(&trace).unwrap();
        assert!(validate_episode_trace(&pretty).valid);
        let mut pointers = Vec::new();
        leaves(&trace, String::new(), &mut pointers);
        for _ in 0..20 {
            let pointer = &pointers[random.below(pointers.len())];
            let mut other = trace.clone();
            let place = other.pointer_mut(pointer).unwrap();
            *place = match place {
                Value::String(text) => json!(format!("{text}x")),
                Value::Number(_) => json!(-7.5),
                _ => json!({"other": 1}),
            };
            let judged = validate_episode_trace(&serde_json::to_vec(&other).unwrap());
            if is_free(pointer) {
                free += 1;
            } else {
                assert!(!judged.valid, "case {case}: {pointer} can be changed");
                bent += 1;
            }
        }
    }
    assert!(bent > free, "{bent} leaves bent, {free} are free");
}

fn judge(trace: &Value) -> Vec<String> {
    let judged = validate_episode_trace(&serde_json::to_vec(trace).unwrap());
    assert_eq!(judged.valid, judged.issues.is_empty());
    judged.issues.iter().map(ToString::to_string).collect()
}

/// Tampers with the fixed trace at several places; the validator must report each place.
#[test]
fn episode_validator_reports_all_issues() {
    type Bend = fn(&mut Value);
    let trace: Value = serde_json::from_slice(&fixed().trace_file).unwrap();
    assert_eq!(judge(&trace), Vec::<String>::new());
    let zero = || json!({"algorithm": "sha256", "value": Sha256Hex::zero()});
    assert_ne!(trace["steps"][0]["actionRef"]["digest"], zero());
    let bends: &[(Bend, &[&str])] = &[
        (
            |t| t["steps"][0]["actionRef"]["id"] = json!("other"),
            &["$.steps[0].actionRef.id: does not match the referenced target"],
        ),
        (
            |t| t["steps"][0]["actionRef"] = t["steps"][1]["actionRef"].clone(),
            &[
                "$.steps[0].actionRef.id: does not match the referenced target",
                "$.steps[0].actionRef.digest: does not match the referenced target",
            ],
        ),
        (
            |t| t["steps"][0]["executionRef"]["kind"] = json!("action"),
            &["$.steps[0].executionRef.kind: must be execution"],
        ),
        (
            |t| t["steps"][0]["execution"]["stdout"] = json!("2"),
            &["$.steps[0].executionRef.digest: does not match the referenced target"],
        ),
        (
            |t| t["steps"][0]["observationRef"] = t["steps"][1]["observationRef"].clone(),
            &["$.steps[0].observationRef: does not refer to an observation of this step"],
        ),
        (
            |t| {
                t["steps"][1]
                    .as_object_mut()
                    .unwrap()
                    .remove("observationRef");
            },
            &["$.steps[1].observationRef: is missing"],
        ),
        (
            |t| {
                t["reset"]["observationRefs"].as_array_mut().unwrap().pop();
            },
            &["$.reset.observationRefs: must have one reference for each observation"],
        ),
        (
            |t| {
                t["reset"]["observationRefs"]
                    .as_array_mut()
                    .unwrap()
                    .reverse();
            },
            &[
                "$.reset.observationRefs[0].id: does not match the referenced target",
                "$.reset.observationRefs[1].digest: does not match the referenced target",
            ],
        ),
        (
            |t| t["steps"].as_array_mut().unwrap().reverse(),
            &[
                "$.steps[0].index: must be the position of the step",
                "$.steps[1].index: must be the position of the step",
            ],
        ),
        (
            |t| t["artifactRef"]["digest"] = json!("e10d"),
            &["$.artifactRef.digest: must be a sha256 digest"],
        ),
        (
            |t| t["artifactRef"]["kind"] = json!("bundle"),
            &["$.artifactRef.kind: must be artifact-bundle"],
        ),
        (
            |t| t["snapshots"][0]["artifactRefs"][0]["id"] = json!(""),
            &[
                "$.snapshots[0].artifactRefs[0].id: must be a string that is not empty",
                "$.snapshots[0].digest: does not match the data that it covers",
            ],
        ),
        (
            |t| t["steps"][0]["action"]["kind"] = json!("shell"),
            &[
                "$.steps[0].action.kind: must be one of command, filesystem, http, browser",
                "$.steps[0].action.digest: does not match the data that it covers",
            ],
        ),
        (
            |t| {
                t["grader"] = json!(1);
                t["steps"][0]["taskSet"] = json!([]);
                t["x.metadata"] = json!({"deep": [{"model-eval": null}]});
            },
            &[
                "$.grader: is not allowed in a trace",
                "$.steps[0].taskSet: is not allowed in a trace",
                "$.x.metadata.deep[0].model-eval: is not allowed in a trace",
            ],
        ),
        (
            |t| *t = json!([]),
            &[
                "$: must be an object",
                "$.schema: must be wp-codebox/runtime-episode-trace/v1",
                "$.version: must be 1",
                "$.runtime.id: must be a string that is not empty",
                "$.reset.observations: must be a list",
                "$.steps: must be a list",
                "$.snapshots: must be a list",
            ],
        ),
    ];
    for (bend, expected) in bends {
        let mut bent = trace.clone();
        bend(&mut bent);
        let issues = judge(&bent);
        for issue in *expected {
            assert!(
                issues.iter().any(|i| i == issue),
                "{issue} not in {issues:#?}"
            );
        }
    }
    // Control: keys that are not allowed in a trace are allowed in the caller's data.
    let mut free = trace.clone();
    free["artifacts"] = json!({"reward": 1, "deep": [{"grader": 1}]});
    free["runtime"]["metadata"] = json!({"benchmark": {"scenario": 1}});
    free["runtime"]["data"] = json!([{"task_set": 1}]);
    assert_eq!(judge(&free), Vec::<String>::new());
}

#[test]
fn hostile_episode_traces_are_refused_in_bounded_time() {
    let fixed = fixed().trace_file;
    let text = String::from_utf8(fixed).unwrap();
    let one = |bytes: &[u8]| {
        let issues = validate_episode_trace(bytes).issues;
        assert_eq!(issues.len(), 1);
        issues[0].to_string()
    };
    let twice = text.replacen("{\"schema\"", "{\"id\":\"first\",\"schema\"", 1);
    assert!(one(twice.as_bytes()).contains("duplicate key"));
    let escaped = text.replacen("{\"schema\"", "{\"\\u0069d\":\"first\",\"schema\"", 1);
    assert!(one(escaped.as_bytes()).contains("duplicate key"));
    assert!(one(b"").contains("unexpected end"));
    assert!(one(&text.as_bytes()[..text.len() / 2]).contains("not strict JSON"));
    assert!(one(format!("{text}{{}}").as_bytes()).contains("data after the document"));
    assert!(one(b"{\"id\":\"\xff\"}").contains("invalid UTF-8"));
    assert!(one("[".repeat(1 << 20).as_bytes()).contains("nested too deeply"));
    let large = vec![b' '; usize::try_from(MAX_TRACE_BYTES).unwrap() + 1];
    assert!(one(&large).contains("is larger than"));

    let started = Instant::now();
    let mut trace: Value = serde_json::from_str(&text).unwrap();
    // Nesting deeper than canonical JSON covers: the digest drops the deep levels and validation
    // still ends.
    let deep = (0..150).fold(json!({"reward": 1}), |inner, _| json!([inner]));
    trace["steps"][0]["execution"]["result"] = deep;
    let issues = judge(&trace);
    assert!(
        issues
            .iter()
            .any(|i| i.ends_with("reward: is not allowed in a trace"))
    );
    assert!(
        issues
            .iter()
            .any(|i| i.starts_with("$.steps[0].executionRef.digest"))
    );
    // More issues than the validator lists.
    trace["steps"] = Value::from(vec![json!({}); 100_000]);
    let issues = judge(&trace);
    assert_eq!(issues.len(), MAX_TRACE_ISSUES + 1);
    assert!(issues[MAX_TRACE_ISSUES].ends_with("further issues are not listed"));
    // Objects with 200,000 valid members.
    trace["steps"] = json!([]);
    let wide: Map<String, Value> = (0..200_000)
        .map(|i| (format!("k{i}"), json!([i])))
        .collect();
    trace["runtime"]["metadata"] = json!(wide);
    trace["reset"]["runtime"]["environment"] = json!(wide);
    assert_eq!(judge(&trace), Vec::<String>::new());
    assert!(started.elapsed() < Duration::from_secs(60), "too slow");
}
