use super::*;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn normal(value: Value) -> Value {
    let once = normalise_task(map(value)).unwrap();
    assert_eq!(normalise_task(once.clone()).unwrap(), once, "not stable");
    Value::Object(once)
}

fn refused(value: Value) -> (ErrorCode, String) {
    let error = normalise_task(map(value)).unwrap_err();
    let field = error.data.as_ref().unwrap()["field"].as_str().unwrap();
    (error.code, field.to_owned())
}

#[test]
fn texts_are_trimmed_and_lists_lose_blank_and_repeated_items() {
    assert_eq!(
        normal(json!({
            "goal": " Fix it\n", "target": {"kind": " plugin ", "ref": "x"},
            "allowed_tools": ["workspace.read ", "", "workspace.read", " "],
            "expected_artifacts": ["patch", "patch "], "checks": [" true "],
        })),
        json!({
            "goal": "Fix it", "target": {"kind": "plugin", "ref": "x"},
            "allowed_tools": ["workspace.read"], "expected_artifacts": ["patch"],
            "checks": [" true "],
        })
    );
    // The reader refuses values of a wrong type.
    let odd = json!({"goal": 7, "allowed_tools": [1, 1], "target": "x"});
    assert_eq!(normal(odd.clone()), odd);
}

#[test]
fn whole_task_document_is_accepted_as_input() {
    let task = json!({"schema": "wp-codebox/task-input/v1", "version": 1, "goal": "g"});
    assert_eq!(normal(task), json!({"goal": "g"}));
    for (change, field) in [
        (json!({"schema": "wp-codebox/recipe/v1"}), "schema"),
        (
            json!({"schema": "wp-codebox/task-input/v1", "version": 2}),
            "version",
        ),
    ] {
        assert_eq!(refused(change), (ErrorCode::InputInvalid, field.to_owned()));
    }
}

#[test]
fn workload_becomes_fields_of_the_task_and_fields_beside_it_win() {
    let workload = json!({
        "schema": AGENT_WORKLOAD,
        "task": {"prompt": "Fix it", "context": {"a": 1}},
        "agent_runtime": {"agent": "coder", "provider": "acme", "model": "m-1"},
        "tools": ["workspace.read"], "artifacts": ["patch"], "provider": "other",
        "context": {"a": 2, "b": 3},
    });
    for name in WORKLOADS {
        assert_eq!(
            normal(json!({name: workload, "model": "mine", "allowed_tools": ["workspace.edit"]})),
            json!({
                "model": "mine", "allowed_tools": ["workspace.edit", "workspace.read"],
                "context": {"a": 1, "b": 3}, "goal": "Fix it",
                "expected_artifacts": ["patch"], "provider": "other", "agent": "coder",
            }),
            "{name}"
        );
    }
    let whole = json!({"schema": AGENT_WORKLOAD, "task": "Fix it", "agent_runtime": "coder",
        "checks": ["true"]});
    assert_eq!(
        normal(whole),
        json!({"goal": "Fix it", "agent": "coder", "checks": ["true"]})
    );
    assert_eq!(
        normal(json!({"goal": "g", "workload": []})),
        json!({"goal": "g"})
    );
}

#[test]
fn workload_without_a_task_or_with_a_member_without_effect_is_refused_by_name() {
    let with = |change: Value| {
        let mut workload = map(json!({"schema": AGENT_WORKLOAD, "task": "t"}));
        workload.extend(map(change));
        refused(json!({"workload": workload}))
    };
    for (change, code, field) in [
        (
            json!({"task": " "}),
            ErrorCode::TaskMissing,
            "workload.task",
        ),
        (
            json!({"task": {"message": 7}}),
            ErrorCode::TaskMissing,
            "workload.task",
        ),
        (
            json!({"schema": "x/v1"}),
            ErrorCode::InputInvalid,
            "workload.schema",
        ),
        (
            json!({"speed": 9}),
            ErrorCode::InputInvalid,
            "workload.speed",
        ),
        (
            json!({"agent_runtime": 9}),
            ErrorCode::InputInvalid,
            "workload.agent_runtime",
        ),
        (
            json!({"agent_runtime": {"gpu": 1}}),
            ErrorCode::InputInvalid,
            "workload.agent_runtime.gpu",
        ),
        (
            json!({"task": {"goal": "g", "code": "x"}}),
            ErrorCode::InputInvalid,
            "workload.task.code",
        ),
    ] {
        assert_eq!(with(change.clone()), (code, field.to_owned()), "{change}");
    }
    assert_eq!(refused(json!({"workload": "text"})).1, "workload");
}

#[test]
fn parent_request_is_merged_below_the_fields_of_the_task() {
    let parent = json!({"schema": "wp-codebox/task-input/v1", "version": 1, "goal": "theirs",
        "target": {"kind": "plugin"}, "allowed_tools": ["workspace.read"], "context": {"a": 1}});
    assert_eq!(
        normal(
            json!({"goal": "mine", "allowed_tools": ["workspace.edit"], "parent_request": parent})
        ),
        json!({"goal": "mine", "allowed_tools": ["workspace.edit", "workspace.read"],
            "target": {"kind": "plugin"}, "context": {"a": 1}})
    );
    assert_eq!(normal(json!({"parent_request": parent}))["goal"], "theirs");
    for (request, code, field) in [
        (
            json!({"id": 7}),
            ErrorCode::InputInvalid,
            "parent_request.schema",
        ),
        (
            json!({"schema": "wp-codebox/task-input/v1"}),
            ErrorCode::TaskMissing,
            "parent_request.goal",
        ),
        (
            json!({"schema": "wp-codebox/task-input/v1", "goal": "g", "mounts": []}),
            ErrorCode::InputInvalid,
            "parent_request.mounts",
        ),
    ] {
        let error = refused(json!({"goal": "g", "parent_request": request}));
        assert_eq!(error, (code, field.to_owned()), "{request}");
    }
}

#[test]
fn structured_artifacts_get_their_defaults_and_incomplete_ones_are_refused() {
    let rows = |row: Value| json!({"structured_artifacts": [row]});
    assert_eq!(
        normal(rows(
            json!({"name": " issue ", "type": "text", "payload": null, "metadata": []})
        )),
        rows(
            json!({"name": "issue", "type": "text", "payload": null, "metadata": {},
            "schema": STRUCTURED_ARTIFACT, "provenance": {"direction": "input"}})
        )
    );
    for (change, field) in [
        (json!({"schema": "x"}), "schema"),
        (json!({"name": ""}), "name"),
        (json!({"type": 1}), "type"),
        (json!({"payload_schema": 1}), "payload_schema"),
        (json!({"metadata": "x"}), "metadata"),
        (json!({"colour": "red"}), "colour"),
    ] {
        let mut row = map(json!({"name": "n", "type": "t", "payload": {}}));
        row.extend(map(change));
        assert_eq!(
            refused(rows(Value::Object(row))).1,
            format!("structured_artifacts[0].{field}")
        );
    }
    assert_eq!(
        refused(rows(json!({"name": "n", "type": "t"}))).1,
        "structured_artifacts[0].payload"
    );
    assert_eq!(refused(rows(json!("text"))).1, "structured_artifacts[0]");
}
