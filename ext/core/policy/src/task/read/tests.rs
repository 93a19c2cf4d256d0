use super::*;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn refused(caller: Value, host: Value) -> ErrorBody {
    read_task(map(caller), map(host)).unwrap_err()
}

fn fields(error: &ErrorBody) -> Vec<&str> {
    let issues = error.data.as_ref().unwrap()["issues"].as_array().unwrap();
    let rows = issues.iter();
    rows.map(|issue| issue["field"].as_str().unwrap()).collect()
}

/// Returns a valid value of each shape.
fn sample(shape: Shape) -> Value {
    let members = |members: &[Member]| {
        let rows = members.iter();
        rows.map(|member| (member.name.to_owned(), sample(member.shape)))
            .collect::<Map<_, _>>()
    };
    match shape {
        Shape::Text | Shape::Name => json!("text"),
        Shape::OneOf(words) => json!(words[0]),
        Shape::Git => json!("none"),
        Shape::Flag => json!(true),
        Shape::Between(least, _) => json!(least),
        Shape::Count | Shape::SmallCount | Shape::Number => json!(1),
        Shape::Free => json!({"a": 1}),
        Shape::FreeList => json!([{"name": "n", "type": "t", "payload": 1}]),
        Shape::Texts | Shape::Lines | Shape::Argv => json!(["text"]),
        Shape::ExitCodes => json!([0, 255]),
        Shape::Environment => json!({"KEY": "text"}),
        Shape::Outputs => json!({"host": "KEY", "port": ["KEY_2", "KEY_3"]}),
        Shape::Object(of) => Value::Object(members(of)),
        Shape::Rows(of) => json!([members(of)]),
        Shape::Kinds(kinds) => Value::Object(members(kinds[0].2)),
        Shape::Policy => json!(defaults(Vec::new())),
        Shape::ToolPolicy => {
            json!({"schema": "wp-codebox/sandbox-tool-policy/v1", "version": 1, "tools": []})
        }
        Shape::Network => json!("deny"),
        Shape::Typed => Value::Null,
    }
}

#[test]
fn every_field_of_the_task_table_is_read() {
    for row in TASK_FIELDS {
        let given = map(json!({row.name: sample(row.shape)}));
        let read = match row.authority {
            TaskAuthority::Caller => read_task(given, Map::new()),
            TaskAuthority::Host => read_task(Map::new(), given),
            TaskAuthority::Operator => continue,
        };
        let read = read.unwrap_or_else(|e| panic!("{}: {e:?}", row.name));
        if row.name != "mode" {
            assert_ne!(read, TaskSpec::default(), "{}", row.name);
        }
    }
}

#[test]
fn network_of_the_host_replaces_that_of_the_caller_and_of_either_policy() {
    let open = json!({"allowHosts": ["example.org"], "tls": "tunnel"});
    let policy = |network: &Value| {
        let mut policy = json!(defaults(Vec::new()));
        policy["network"] = network.clone();
        policy
    };
    let network = |caller: Value, host: Value| {
        let read = read_task(map(caller), map(host)).unwrap();
        json!(read.policy)["network"].clone()
    };
    let deny = json!("deny");
    for (caller, host, expected) in [
        // Control: without values of the host, those of the caller count.
        (json!({"network": open}), json!({}), &open),
        (
            json!({"network": open, "policy": policy(&deny)}),
            json!({}),
            &open,
        ),
        (json!({"network": open}), json!({"network": deny}), &deny),
        (
            json!({"policy": policy(&open)}),
            json!({"network": deny}),
            &deny,
        ),
        (
            json!({}),
            json!({"network": deny, "policy": policy(&open)}),
            &deny,
        ),
        (
            json!({"network": open}),
            json!({"policy": policy(&deny)}),
            &deny,
        ),
    ] {
        let shown = format!("{caller} {host}");
        assert_eq!(network(caller, host), *expected, "{shown}");
    }
    let read = read_task(map(json!({"network": open})), map(json!({"network": null}))).unwrap();
    assert_eq!(read.policy, None);
}

#[test]
fn task_with_each_agent_kind_and_task_without_optional_members_are_read() {
    let Some(Shape::Kinds(kinds)) = TASK_FIELDS
        .iter()
        .find(|row| row.name == "resolved_agent")
        .map(|row| row.shape)
    else {
        panic!("resolved_agent has kinds");
    };
    for (kind, _, members) in kinds {
        let mut agent = sample(Shape::Object(members));
        agent["kind"] = json!(kind);
        read_task(Map::new(), map(json!({"resolved_agent": agent}))).unwrap();
    }
    let host = json!({
        "parent_tools": {"tools": [{"id": "a.b", "description": "d"}]},
        "components": [{"slug": "a", "source": "/a"}],
        "hold": {"ttl_ms": 5},
        "resolved_agent": {"argv": ["php"], "success_codes": []},
        "resolved_model": {"provider": "p", "model": "m", "api": "openai-chat",
            "base_url": "https://example.org", "prices": {"input": 1}},
    });
    let task = read_task(Map::new(), map(host)).unwrap();
    assert_eq!(task.hold.unwrap().max_ttl_ms, 5);
    assert_eq!(
        task.resolved_agent
            .unwrap()
            .command()
            .unwrap()
            .success_codes,
        [0]
    );
}

#[test]
fn caller_and_host_cannot_set_task_fields_that_need_more_authority() {
    for row in TASK_FIELDS {
        let given = json!({row.name: sample(row.shape)});
        let from = |caller: Value, host: Value| {
            let error = read_task(map(caller), map(host)).err()?;
            assert_eq!(error.code, ErrorCode::InputInvalid, "{}", row.name);
            let field = error.data.unwrap()["field"].clone();
            assert_eq!(field, row.name);
            Some(())
        };
        let by_caller = from(given.clone(), json!({}));
        let by_host = from(json!({}), given);
        let above = |authority| (row.authority > authority).then_some(());
        assert_eq!(by_caller, above(TaskAuthority::Caller), "{}", row.name);
        assert_eq!(by_host, above(TaskAuthority::Host), "{}", row.name);
    }
}

#[test]
fn task_values_of_the_host_override_those_of_the_caller() {
    let caller = json!({"checks": ["a"], "find_renames": true, "allowed_tools": ["x"]});
    let host = json!({"checks": ["b"], "allowed_tools": null});
    let task = read_task(map(caller), map(host)).unwrap();
    assert_eq!(task.checks, ["b"]);
    assert!(task.find_renames);
    assert!(task.allowed_tools.is_empty());
}

#[test]
fn all_task_issues_name_their_field_without_quoting_values() {
    let secret = "hunter2-do-not-print";
    let error = refused(
        json!({"goal": [secret], "mounts": [{"source": "/a", "mode": secret}],
            "limits": {"cpu": 1, "processes": secret}, "frobnicate": 1}),
        json!({}),
    );
    assert_eq!(
        fields(&error),
        [
            "frobnicate",
            "goal",
            "mounts[0].target",
            "mounts[0].mode",
            "limits.processes",
            "limits.cpu"
        ]
    );
    assert!(!format!("{error:?}").contains(secret));
}

#[test]
fn task_with_a_code_field_is_refused_as_raw_code_even_if_the_field_is_null() {
    let error = refused(json!({"code": null}), json!({}));
    assert_eq!(error.code, ErrorCode::RawCodeForbidden);
}

#[test]
fn task_timeout_seconds_is_the_wall_clock_limit_unless_limits_sets_one() {
    let clock = |task| {
        read_task(map(task), Map::new())
            .unwrap()
            .limits
            .wall_clock_ms
    };
    assert_eq!(clock(json!({"task_timeout_seconds": 5})), Some(5000));
    let both = json!({"task_timeout_seconds": 5, "limits": {"wall_clock_ms": 700}});
    assert_eq!(clock(both), Some(700));
    assert_eq!(clock(json!({"task_timeout_seconds": 0})), None);
}

#[test]
fn preview_port_outside_0_to_65535_is_refused_with_the_name_of_its_field() {
    let hold = |port: Value| json!({"hold": {"ttl_ms": 1, "preview": {"port": port}}});
    for port in [json!(0), json!(65535)] {
        let task = read_task(map(json!({"goal": "g"})), map(hold(port.clone()))).unwrap();
        assert_eq!(json!(task.hold.unwrap().preview.unwrap().port), port);
    }
    for port in [json!(65536), json!(-1), json!(80.5), json!("80")] {
        let error = refused(json!({"goal": "g"}), hold(port.clone()));
        assert_eq!(error.code, ErrorCode::InputInvalid, "{port}");
        assert_eq!(
            error.message,
            "hold.preview.port must be a whole number from 0 to 65535"
        );
    }
}
