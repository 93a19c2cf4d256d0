//! Tests which parts of an episode are accepted, which are rejected, and that a rejection changes
//! nothing.

use super::*;
use crate::episode::validate_episode_trace;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{
    BundleId, CodedError, EpisodeExecution, ObservationType, RuntimeEnvironment, RuntimeInfo,
    SnapshotSemantics,
};

const TIME: &str = "2026-01-01T00:00:00.000Z";

fn runtime(id: &str) -> RuntimeInfo {
    RuntimeInfo {
        id: id.to_owned(),
        backend: "native".to_owned(),
        environment: RuntimeEnvironment {
            kind: "wordpress".to_owned(),
            version: None,
            php_version: None,
        },
        created_at: TIME.to_owned(),
        status: "created".to_owned(),
    }
}

fn seen(data: Value) -> ObservationInput {
    ObservationInput {
        kind: ObservationType::RuntimeInfo,
        data,
        observed_at: TIME.to_owned(),
        artifact_refs: Vec::new(),
    }
}

fn start(id: &str) -> EpisodeStart {
    EpisodeStart {
        runtime: runtime(id),
        created_at: TIME.to_owned(),
        observations: vec![seen(json!({"level": "full"}))],
    }
}

fn step(number: u32) -> StepInput {
    StepInput {
        action: ActionRequest {
            command: "wordpress.run-php".to_owned(),
            args: vec!["code=echo 1;".to_owned()],
            ..ActionRequest::default()
        },
        execution: EpisodeExecution {
            id: format!("exec-{number}"),
            command: "wordpress.run-php".to_owned(),
            args: vec!["code=echo 1;".to_owned()],
            exit_code: Some(0),
            stdout: "1".to_owned(),
            stderr: String::new(),
            result: None,
            diagnostics: None,
            artifact_refs: Vec::new(),
            started_at: TIME.to_owned(),
            finished_at: TIME.to_owned(),
        },
        observation: StepObservation::Seen(seen(json!({"exitCode": 0}))),
    }
}

fn snapshot(id: &str) -> SnapshotInput {
    SnapshotInput {
        id: id.to_owned(),
        created_at: TIME.to_owned(),
        semantics: SnapshotSemantics::default(),
        metadata: Map::new(),
        artifact_refs: Vec::new(),
    }
}

fn valid(closed: &ClosedEpisode) {
    let judged = validate_episode_trace(&closed.trace_file);
    assert_eq!(judged.issues, []);
}

fn issues(error: EpisodeError) -> Vec<String> {
    match error {
        EpisodeError::Invalid { issues, .. } => issues.iter().map(ToString::to_string).collect(),
        other => panic!("{other}"),
    }
}

#[test]
fn episode_parts_before_the_first_reset_are_rejected() {
    let redactor = Redactor::new(&[]);
    let mut episode = EpisodeBuilder::new(&redactor);
    assert_eq!(episode.step(step(1)).unwrap_err(), EpisodeError::NotReset);
    assert_eq!(
        episode.observe(seen(json!(1))).unwrap_err(),
        EpisodeError::NotReset
    );
    assert_eq!(
        episode.snapshot(snapshot("s")).unwrap_err(),
        EpisodeError::NotReset
    );
    assert_eq!(episode.trace().unwrap_err(), EpisodeError::NotReset);
    assert_eq!(episode.close().unwrap_err(), EpisodeError::NotReset);
}

#[test]
fn episode_part_ids_derive_from_runtime_and_execution_ids() {
    let redactor = Redactor::new(&[]);
    let mut episode = EpisodeBuilder::new(&redactor);
    assert_eq!(episode.reset(start("r")).unwrap().id, "r:reset:0");
    episode.step(step(1)).unwrap();
    let second = episode.step(step(2)).unwrap();
    assert_eq!((second.id.as_str(), second.index), ("exec-2:step:1", 1));
    assert_eq!(second.action.id, "exec-2:step:1:action");
    assert_eq!(second.execution_ref.id, "exec-2");
    let seen_id = &second.observation.as_ref().unwrap().id;
    assert_eq!(seen_id, "exec-2:step:1:observation");
    assert_eq!(
        episode.observe(seen(json!(1))).unwrap().id,
        "r:observation:0"
    );
    let closed = episode.close().unwrap();
    assert_eq!(closed.trace.id, "trace-r");
    assert_eq!(closed.trace.runtime.status, "destroyed");
    assert_eq!(closed.trace.reset.runtime.status, "created");
    assert_eq!(closed.observations.len(), 1);
    valid(&closed);
}

#[test]
fn episode_reset_starts_a_new_trace_and_records_retain_earlier_parts() {
    let redactor = Redactor::new(&[]);
    let mut episode = EpisodeBuilder::new(&redactor);
    episode.reset(start("r1")).unwrap();
    episode.step(step(1)).unwrap();
    episode.snapshot(snapshot("s")).unwrap();
    assert_eq!(episode.reset(start("r2")).unwrap().id, "r2:reset:1");
    assert_eq!(episode.step(step(2)).unwrap().index, 0);
    episode.snapshot(snapshot("s")).unwrap();
    let id = Sha256Hex::zero();
    episode
        .artifacts(EpisodeArtifacts {
            id: BundleId::from_digest(&id),
            content: id,
            created_at: TIME.to_owned(),
        })
        .unwrap();
    let closed = episode.close().unwrap();
    valid(&closed);
    assert_eq!(closed.trace.id, "trace-r2");
    assert_eq!(
        (closed.trace.steps.len(), closed.trace.snapshots.len()),
        (1, 1)
    );
    let records: Vec<Value> = String::from_utf8(closed.records_file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<&str> = records
        .iter()
        .map(|r| r["type"].as_str().unwrap())
        .collect();
    let round = ["episode.reset", "episode.step", "episode.snapshot"];
    assert_eq!(
        types,
        [&round[..], &round[..], &["episode.artifacts"]].concat()
    );
    assert_eq!(
        records[4]["actionRef"],
        json!(closed.trace.steps[0].action_ref)
    );
    assert_eq!(
        records[6]["artifactRef"],
        json!(closed.trace.artifact_ref.unwrap())
    );
}

/// Each rejected step is an accepted step with one fault.
#[test]
fn rejected_step_leaves_the_episode_unchanged() {
    type Bend = fn(&mut StepInput);
    let keys = || -> Value {
        let members: Map<String, Value> = (0..301).map(|i| (i.to_string(), json!(i))).collect();
        Value::Object(members)
    };
    assert_eq!(keys().as_object().unwrap().len(), 301);
    let bends: [(Bend, &str); 10] = [
        (
            |s| s.execution.result = Some(json!({"success": true})),
            "$.steps.execution.result.success: is not allowed in a trace",
        ),
        (
            |s| s.execution.diagnostics = Some(json!([[{"x.data": {"reward": 1}}]])),
            "$.steps.execution.diagnostics[0][0].x.data.reward: is not allowed in a trace",
        ),
        (
            |s| s.action.command.clear(),
            "$.action.command: must be a string that is not empty",
        ),
        (
            |s| s.action.url = Some(String::new()),
            "$.action.url: must not be empty",
        ),
        (
            |s| s.execution.id.clear(),
            "$.execution.id: must be a string that is not empty",
        ),
        (
            |s| s.execution.result = Some((0..31).fold(json!(1), |v, _| json!([v]))),
            "$: a JSON value is nested deeper than the 30 levels that canonical JSON allows",
        ),
        (
            |s| s.execution.result = Some(json!(vec![0; 2001])),
            "$: a JSON list has 2001 items, but canonical JSON allows at most 2000",
        ),
        (
            |s| s.action.args = vec![String::new(); 2001],
            "$: a JSON list has 2001 items, but canonical JSON allows at most 2000",
        ),
        (
            |s| {
                let mut unseen = seen(json!(1));
                unseen.observed_at.clear();
                s.observation = StepObservation::Seen(unseen);
            },
            "$.observedAt: must be a string that is not empty",
        ),
        (
            |s| {
                let mut bare = seen(json!(1));
                let kind = TraceRefKind::Other("screenshot".to_owned());
                let mut reference =
                    TraceRef::new(kind, "shot", FileDigest::sha256(Sha256Hex::zero()));
                reference.digest = None;
                bare.artifact_refs.push(reference);
                s.observation = StepObservation::Seen(bare);
            },
            "$.artifactRefs[0].digest: must be a sha256 digest",
        ),
    ];
    let redactor = Redactor::new(&[]);
    let mut episode = EpisodeBuilder::new(&redactor);
    episode.reset(start("r")).unwrap();
    episode.step(step(1)).unwrap();
    let before = episode.trace().unwrap().clone();
    let (records, bytes) = (episode.records.clone(), episode.bytes);
    for (bend, expected) in bends {
        let mut input = step(2);
        bend(&mut input);
        let error = episode.step(input).unwrap_err();
        assert_eq!(error.code().as_str(), "wp_codebox_input_invalid");
        assert!(issues(error).iter().any(|i| i == expected), "{expected}");
        assert_eq!(*episode.trace().unwrap(), before, "{expected}");
        assert_eq!((&episode.records, episode.bytes), (&records, bytes));
    }
    // Control: forbidden words are allowed in data and metadata.
    let mut input = step(2);
    input.action.metadata = Some(Map::from_iter([("reward".to_owned(), json!(1))]));
    input.observation = StepObservation::Seen(seen(json!({"success": true})));
    episode.step(input).unwrap();
    assert_eq!(
        episode.snapshot(snapshot("")).map(|_| ()).map_err(issues),
        Err(vec!["$.id: must be a string that is not empty".to_owned()])
    );
    episode.snapshot(snapshot("s")).unwrap();
    let id = "s".to_owned();
    assert_eq!(
        episode.snapshot(snapshot("s")).unwrap_err(),
        EpisodeError::SnapshotKnown { id }
    );
    valid(&episode.close().unwrap());
}

#[test]
fn rejected_episode_reset_does_not_change_the_current_trace() {
    let redactor = Redactor::new(&[]);
    let mut episode = EpisodeBuilder::new(&redactor);
    episode.reset(start("r")).unwrap();
    episode.step(step(1)).unwrap();
    let (before, records) = (episode.trace().unwrap().clone(), episode.records.clone());
    let mut untimed = start("r");
    untimed.created_at.clear();
    let mut deep = start("r");
    deep.observations = vec![seen((0..31).fold(json!(1), |v, _| json!([v])))];
    for (bad, expected) in [
        (
            start(""),
            "$.runtime.id: must be a string that is not empty",
        ),
        (untimed, "$.createdAt: must be a string that is not empty"),
        (
            deep,
            "$: a JSON value is nested deeper than the 30 levels that canonical JSON allows",
        ),
    ] {
        let told = issues(episode.reset(bad).unwrap_err());
        assert!(told.iter().any(|i| i == expected), "{told:?}");
        assert_eq!(*episode.trace().unwrap(), before);
        assert_eq!(episode.records, records);
    }
    assert_eq!(episode.reset(start("r")).unwrap().id, "r:reset:1");
    valid(&episode.close().unwrap());
}

#[test]
fn episode_secrets_are_redacted_before_digests_are_computed() {
    const SECRET: &str = "hunter2-hunter2";
    let redactor = Redactor::new(&[SECRET.to_owned()]);
    let mut episode = EpisodeBuilder::new(&redactor);
    let mut begin = start("r");
    begin.observations = vec![seen(json!({SECRET: [SECRET]}))];
    episode.reset(begin).unwrap();
    let mut input = step(1);
    let text = || Some(format!("a {SECRET} b"));
    input.action = ActionRequest {
        kind: wp_codebox_contracts::ActionKind::Http,
        command: "wordpress.http-request".to_owned(),
        args: vec![SECRET.to_owned()],
        cwd: text(),
        timeout_ms: Some(1),
        method: text(),
        url: text(),
        path: text(),
        operation: text(),
        selector: text(),
        description: text(),
        metadata: Some(Map::from_iter([(SECRET.to_owned(), json!([SECRET]))])),
    };
    input.execution.args = vec![SECRET.to_owned()];
    input.execution.stdout = text().unwrap();
    input.execution.stderr = text().unwrap();
    input.execution.result = Some(json!({SECRET: SECRET}));
    input.execution.diagnostics = Some(json!({"a": {SECRET: SECRET}}));
    input.observation = StepObservation::Seen(seen(json!({SECRET: SECRET})));
    episode.step(input).unwrap();
    let mut made = snapshot("s");
    made.metadata.insert("a".to_owned(), json!(SECRET));
    episode.snapshot(made).unwrap();
    episode.observe(seen(json!(SECRET))).unwrap();
    let closed = episode.close().unwrap();
    valid(&closed);
    let everything = [
        closed.trace_file,
        closed.records_file,
        serde_json::to_vec(&closed.observations).unwrap(),
    ]
    .concat();
    let text = String::from_utf8(everything).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    // Control: text that is not secret remains.
    assert!(text.contains("wordpress.http-request"));
}

#[test]
fn episode_trace_larger_than_readers_accept_is_rejected() {
    let redactor = Redactor::new(&[]);
    let mut episode = EpisodeBuilder::new(&redactor);
    episode.reset(start("r")).unwrap();
    episode.step(step(1)).unwrap();
    let one = episode.bytes;
    episode.bytes = MAX_TRACE_BYTES - 100;
    for refused in [
        episode.step(step(2)).map(|_| ()),
        episode.snapshot(snapshot("s")).map(|_| ()),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.code().as_str(), "wp_codebox_artifact_too_large");
    }
    episode.bytes = one;
    episode.step(step(2)).unwrap();
    // The counted size is not smaller than the written size.
    let counted = episode.bytes;
    let written = episode.close().unwrap().trace_file.len() as u64;
    assert!(written <= counted, "{written} > {counted}");
}
