use super::*;

const BUNDLE: &str =
    "artifact-bundle-sha256-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// The result of a run with one changed file, with `change` merged into it.
fn result(outcome: &str, change: Value) -> Map<String, Value> {
    let mut result = map(json!({
        "schema": "wp-codebox/run-result/v1",
        "run_id": "run_0123456789abcdef0123456789abcdef",
        "outcome": outcome,
        "summary": "The agent changed a file.",
        "artifacts": {"path": "/b", "bundle_id": BUNDLE, "manifest_sha256": "aa"},
        "changed_files": [{"path": "/workspace/x/a.txt"}],
        "approvable": true,
        "checks": [],
        "cost": {"wall_ms": 1},
        "completion_outcome": {"schema": "wp-codebox/sandbox-completion-outcome/v1",
            "status": "succeeded", "nextAction": "promote",
            "patch": {"bytes": 12, "sha256": "bb"}, "provenance": {"artifactDirectory": "."}},
        "agent_result": {"schema": "wp-codebox/agent-result/v1", "status": "completed",
            "actionable": true, "summary": "done", "agentSummary": "I did it.", "failures": []},
        "transcript": {"executions": [{"phase": "agent", "parsed": {"answer": 42}}]},
    }));
    result.extend(map(change));
    result
}

fn document(input: Value, task: Value, result: &Map<String, Value>) -> Value {
    let facts = AgentTaskFacts {
        input: &map(input),
        task: &map(task),
        result,
        model: &map(json!({"provider": "acme", "model": "m-1", "secret": "no"})),
        preview: &Map::new(),
        wordpress: "6.9",
    };
    Value::Object(agent_task_run(&facts).unwrap())
}

fn plain(outcome: &str, change: Value) -> Value {
    document(json!({}), json!({"goal": "g"}), &result(outcome, change))
}

#[test]
fn document_of_a_successful_run_has_status_completed_and_refers_to_its_bundle_and_patch() {
    let run = document(
        json!({"sandbox_session_id": "s-1", "session_id": "c-1", "policy": {"commands": []}}),
        json!({"schema": "wp-codebox/task-input/v1", "version": 1, "goal": "g",
            "context": {"a": 1}}),
        &result("succeeded", json!({})),
    );
    assert_eq!(run["status"], "completed");
    assert_eq!(run["session"]["id"], "s-1");
    assert_eq!(run["session"]["agent_session_id"], "c-1");
    assert_eq!(run["task_input"]["policy"], json!({"commands": []}));
    assert_eq!(run["task_input"]["context"], json!({"a": 1}));
    assert_eq!(run["task_input"]["target"], json!({}));
    assert_eq!(run["task_input"]["structured_artifacts"], json!([]));
    assert_eq!(run["paths"]["patch"], "/b/files/patch.diff");
    assert_eq!(run["run_metadata"]["provider"], "acme");
    assert!(run["run_metadata"].get("secret").is_none());
    let inner = &run["agent_task_run_result"];
    assert_eq!(
        (&inner["status"], &inner["success"]),
        (&json!("succeeded"), &json!(true))
    );
    assert_eq!(
        inner["refs"]["patches"][0],
        json!({"id": "patch", "kind": "codebox-patch", "path": "/b/files/patch.diff",
            "sha256": "bb", "size_bytes": 12})
    );
    assert_eq!(inner["refs"]["logs"].as_array().unwrap().len(), 2);
    assert_eq!(inner["metadata"]["patch_bytes"], 12);
    assert_eq!(inner["no_op"]["detected"], false);
    assert_eq!(
        &run["headless_agent_task_result"]["agent_task_run_result"],
        inner
    );
    let envelope = &run["artifact_result"];
    assert_eq!(
        (&envelope["status"], &envelope["success"]),
        (&json!("created"), &json!(true))
    );
    assert_eq!(
        envelope["artifactBundle"]["digest"],
        json!({"algorithm": "sha256", "value": &BUNDLE[23..]})
    );
    assert_eq!(
        run["outputs"],
        json!({"changed_files": ["/workspace/x/a.txt"], "patch": "/b/files/patch.diff",
            "agent_reply": {"text": "I did it.", "summary": "done", "status": "completed"},
            "result": {"answer": 42}})
    );
    assert_eq!(
        run["completion_outcome"]["provenance"]["artifactDirectory"],
        "/b"
    );
    assert!(run.get("outcome").is_none() && run.get("error").is_none());
}

#[test]
fn failed_run_with_a_bundle_gives_an_artifact_result_with_status_failed() {
    let run = plain(
        "failed",
        json!({"error": {"code": "wp_codebox_run_failed", "message": "no", "hints": ["look"]},
            "agent_result": {"failures": [{"exitCode": 2}]},
            "checks": [{"command": "true", "status": "passed"},
                {"command": "phpunit", "status": "failed", "exit_code": 1}]}),
    );
    assert_eq!(run["session"]["status"], "completed");
    assert_eq!(run["status"], "failed");
    let envelope = &run["artifact_result"];
    assert_eq!(
        (&envelope["status"], &envelope["success"]),
        (&json!("failed"), &json!(false))
    );
    assert_eq!(envelope["artifactBundle"]["path"], "/b");
    assert_eq!(envelope["error"]["code"], "wp_codebox_run_failed");
    let inner = &run["agent_task_run_result"];
    assert_eq!(inner["failure_classification"], "non_zero_exit");
    let codes: Vec<&str> = inner["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["wp_codebox_run_failed", "check-failed"]);
    assert_eq!(
        inner["diagnostics"][0]["metadata"],
        json!({"hints": ["look"]})
    );
}

#[test]
fn documents_of_a_run_omit_facts_that_its_result_lacks() {
    // PHP gives empty objects as empty lists, also where a document is expected.
    let bare = map(
        json!({"run_id": "run_1", "outcome": "timed_out", "completion_outcome": [],
        "agent_result": null, "changed_files": [], "cost": [], "error": []}),
    );
    let run = document(json!({}), json!({"goal": "g"}), &bare);
    for name in [
        "agent_result",
        "agent_task_result",
        "paths",
        "evidence_refs",
        "artifact_id",
        "error",
        "cost",
    ] {
        assert!(run.get(name).is_none(), "{name}");
    }
    assert_eq!(
        (&run["artifacts"], &run["statuses"]["phase"]),
        (&json!(""), &json!("failed"))
    );
    assert_eq!(run["agent_task_run_result"]["artifacts"], json!([]));
    assert_eq!(
        run["agent_task_run_result"]["failure_classification"],
        "timeout"
    );
    assert!(run["artifact_result"].get("artifactBundle").is_none());
    assert_eq!(run["outputs"], json!({"changed_files": []}));
    let refused = AgentTaskFacts {
        input: &Map::new(),
        task: &Map::new(),
        result: &map(json!({"run_id": "r"})),
        model: &Map::new(),
        preview: &Map::new(),
        wordpress: "",
    };
    assert!(matches!(
        agent_task_run(&refused),
        Err(AgentTaskError::OutcomeUnknown)
    ));
}

#[test]
fn agent_task_status_of_a_run_is_provider_error_if_its_error_code_is_of_the_model_provider() {
    let error = |code: &str| json!({"error": {"code": code, "message": "m"}});
    for (code, status) in [
        ("wp_codebox_provider_rejected", "provider_error"),
        ("wp_codebox_provider_unavailable", "provider_error"),
        ("wp_codebox_agent_blocked", "unable_to_remediate"),
    ] {
        let run = plain("blocked", error(code));
        assert_eq!(run["agent_task_status"], status, "{code}");
        assert_eq!(run["agent_task_run_result"]["status"], status, "{code}");
    }
}

#[test]
fn remediation_outcome_exists_only_for_a_task_with_a_remediation_target() {
    let of = |kind: &str, outcome: &str, change: Value| {
        let task = json!({"goal": "g", "target": {"kind": kind}});
        document(json!({}), task, &result(outcome, change))
    };
    assert!(of("plugin", "failed", json!({})).get("outcome").is_none());
    let good = of("audit-remediation", "succeeded", json!({}));
    assert_eq!(good["outcome"]["kind"], "completed");
    assert_eq!(
        good["outcome"]["artifact"]["changed_files"],
        json!(["/workspace/x/a.txt"])
    );
    let spent = json!({"error": {"code": "wp_codebox_budget_exhausted", "message": "m"}});
    let spent = of("remediation-outcome", "partial", spent);
    assert_eq!(spent["outcome"]["kind"], "max_turns_exceeded");
    assert_eq!(spent["outcome"]["failure"], "max_turns_exceeded");
}

#[test]
fn agent_task_row_contains_the_results_of_its_run_and_the_bundle_path_in_an_object() {
    let run = plain("succeeded", json!({}));
    let row = agent_task_row(run.as_object().unwrap());
    assert_eq!(row["run_id"], "run_0123456789abcdef0123456789abcdef");
    assert_eq!(row["artifacts"], json!({"path": "/b"}));
    for name in [
        "artifact_result",
        "outputs",
        "agent_task_run_result",
        "agent_result",
        "agent_task_result",
        "completion_outcome",
        "session",
        "task_input",
        "run",
    ] {
        assert_eq!(row[name], run[name], "{name}");
    }
    assert!(!row.contains_key("status") && !row.contains_key("success"));
}

#[test]
fn known_members_of_the_target_are_texts_in_the_task_document() {
    let target = json!({"kind": "issue", "ref": 42, "path": null, "url": ["x"], "own": {"a": 1}});
    let document = task_document(&map(json!({"target": target})), &Map::new());
    assert_eq!(
        document["target"],
        json!({"kind": "issue", "ref": "42", "own": {"a": 1}})
    );
}

#[test]
fn started_task_has_a_session_that_is_ready() {
    let input = map(json!({"session_id": "c-1", "goal": "g"}));
    let started = agent_task_started(&input, &Map::new(), "run_1", "6.9");
    let session = &started["session"];
    assert_eq!(
        (&session["status"], &session["id"]),
        (&json!("ready"), &json!("c-1"))
    );
    assert_eq!(
        (&session["run_id"], &started["task"]),
        (&json!("run_1"), &json!("g"))
    );
    assert_eq!(started["task_input"]["target"], json!({}));
}

#[test]
fn preview_or_its_url_is_in_each_result_document_of_a_run_only_if_the_run_has_a_preview() {
    let given = result("succeeded", json!({}));
    let preview = map(json!({"type": "preview", "status": "expired", "url": "http://127.0.0.1:9"}));
    let built = |preview: &Map<String, Value>| {
        let facts = AgentTaskFacts {
            input: &Map::new(),
            task: &map(json!({"goal": "g"})),
            result: &given,
            model: &Map::new(),
            preview,
            wordpress: "6.9",
        };
        agent_task_run(&facts).unwrap()
    };
    let run = built(&preview);
    let shown = Value::Object(preview.clone());
    assert_eq!(run["preview"], shown);
    assert_eq!(run["headless_agent_task_result"]["preview"], shown);
    for place in [
        "/session/artifacts/preview_url",
        "/evidence_refs/preview_url",
    ] {
        let document = Value::Object(run.clone());
        assert_eq!(document.pointer(place), Some(&preview["url"]), "{place}");
    }
    assert_eq!(agent_task_row(&run)["preview_url"], preview["url"]);
    let without = Value::Object(built(&Map::new()));
    assert!(!without.to_string().contains("preview"), "{without}");
}
