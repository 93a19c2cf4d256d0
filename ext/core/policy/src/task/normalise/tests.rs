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
fn texts_except_checks_are_trimmed_and_lists_lose_blank_and_repeated_items() {
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
fn task_document_is_accepted_as_input_unless_its_schema_or_version_is_wrong() {
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
fn workload_becomes_task_fields_but_fields_beside_it_take_precedence_and_lists_are_joined() {
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
fn workload_with_a_wrong_member_is_refused_with_the_name_of_the_member() {
    let with = |change: Value| {
        let mut workload = map(json!({"schema": AGENT_WORKLOAD, "task": "t"}));
        workload.extend(map(change));
        json!({"workload": workload})
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
            json!({"schema": 7}),
            ErrorCode::InputInvalid,
            "workload.schema",
        ),
        (
            json!({"agent_runtime": 9}),
            ErrorCode::InputInvalid,
            "workload.agent_runtime",
        ),
        (
            json!({"agent_runtime": {"runtime_packages": ["a"]}}),
            ErrorCode::InputInvalid,
            "workload.agent_runtime.runtime_packages",
        ),
        (
            json!({"task": {"goal": "g", "code": "x"}}),
            ErrorCode::RawCodeForbidden,
            "workload.task.code",
        ),
        (
            json!({"code_file": "x"}),
            ErrorCode::RawCodeForbidden,
            "workload.code_file",
        ),
    ] {
        let error = refused(with(change.clone()));
        assert_eq!(error, (code, field.to_owned()), "{change}");
    }
    assert_eq!(refused(json!({"workload": "text"})).1, "workload");
}

#[test]
fn workload_may_lack_schema_and_task_if_a_goal_is_given_and_unknown_members_are_dropped() {
    for workload in [
        json!({"tools": ["workspace.read"]}),
        json!({"schema": null, "tools": ["workspace.read"], "task": ""}),
        json!({"tools": ["workspace.read"], "id": 7, "wordpress": "/etc",
            "agent_runtime": {"gpu": 1, "runtime_packages": []}, "task": {"secrets": []}}),
    ] {
        assert_eq!(
            normal(json!({"goal": "g", "workload": workload})),
            json!({"goal": "g", "allowed_tools": ["workspace.read"]}),
            "{workload}"
        );
    }
    assert_eq!(
        normal(json!({"workload": {"task": "t"}})),
        json!({"goal": "t"})
    );
    // A later document may give the goal that an earlier one lacks.
    let both = json!({"workload": {"tools": ["a.b"]}, "agent_workload": {"tools": ["c.d"]},
        "parent_request": {"schema": "wp-codebox/task-input/v1", "goal": "theirs"}});
    assert_eq!(
        normal(both),
        json!({"goal": "theirs", "allowed_tools": ["c.d", "a.b"]})
    );
    let whole = json!({"schema": AGENT_WORKLOAD, "tools": ["a.b"]});
    assert_eq!(
        refused(whole.clone()),
        (ErrorCode::TaskMissing, "task".to_owned())
    );
    let mut with_goal = map(whole);
    with_goal.insert("goal".to_owned(), json!("g"));
    assert_eq!(
        normal(Value::Object(with_goal)),
        json!({"goal": "g", "allowed_tools": ["a.b"]})
    );
}

#[test]
fn task_fields_replace_those_of_the_parent_request_lists_are_joined_and_other_members_dropped() {
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
    let request = |change: Value| {
        let mut request = map(json!({"schema": "wp-codebox/task-input/v1"}));
        request.extend(map(change));
        json!({"parent_request": request})
    };
    let missing = refused(request(json!({"goal": " "})));
    let field = "parent_request.goal".to_owned();
    assert_eq!(missing, (ErrorCode::TaskMissing, field));
    let coded = refused(request(json!({"goal": "g", "code": "x"})));
    let field = "parent_request.code".to_owned();
    assert_eq!(coded, (ErrorCode::RawCodeForbidden, field));
    let versioned = refused(request(json!({"goal": "g", "version": 2})));
    assert_eq!(versioned.1, "parent_request.version");
    // Members that a parent request may not set, such as `wordpress`, are dropped.
    let mut full = map(request(
        json!({"provider": "acme", "model": "m-1", "wordpress": "/etc", "mounts": []}),
    ));
    full.insert("goal".to_owned(), json!("mine"));
    assert_eq!(
        normal(Value::Object(full)),
        json!({"goal": "mine", "provider": "acme", "model": "m-1"})
    );
}

#[test]
fn parent_request_becomes_context_unless_it_is_a_task_or_a_workload() {
    for other in [json!({"id": 7}), json!({"schema": "x/v1", "goal": "g"})] {
        assert_eq!(
            normal(json!({"goal": "mine", "context": {"a": 1}, "parent_request": other})),
            json!({"goal": "mine", "context": {"a": 1, "parent_request": other}})
        );
    }
    assert_eq!(
        normal(json!({"parent_request": {"schema": AGENT_WORKLOAD, "task": "t"}})),
        json!({"goal": "t"})
    );
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
