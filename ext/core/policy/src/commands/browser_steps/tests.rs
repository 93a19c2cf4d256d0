use super::*;
use serde_json::json;

/// Returns a valid value of a format.
fn good(form: Form) -> Value {
    match form {
        Form::Text | Form::Filled | Form::Json | Form::Texts | Form::Actor => json!("x"),
        Form::Object => json!({}),
        Form::Count => json!(3),
        Form::Status => json!(404),
        Form::Flag => json!(true),
        Form::Number | Form::Milliseconds { .. } => json!(5),
        Form::Duration => json!("2s"),
        Form::When => json!("load"),
        Form::Name => json!("one"),
        Form::OneOf(words) => json!(words[0]),
    }
}

fn least(kind: &Kind, name: &str) -> Map<String, Value> {
    let mut step = Map::new();
    step.insert("kind".to_owned(), json!(name));
    for choice in kind.choices.iter().filter(|choice| choice.needed) {
        let row = kind.members.iter().find(|row| row.0 == choice.of[0]);
        step.insert(choice.of[0].to_owned(), good(row.unwrap().1));
    }
    step
}

fn said(step: &Map<String, Value>) -> String {
    let issues = check_editor_steps(&[Value::Object(step.clone())]);
    let issues: Vec<_> = issues.iter().map(ToString::to_string).collect();
    issues.join("\n")
}

#[test]
fn each_browser_step_kind_accepts_only_its_own_members() {
    let everything: Vec<&str> = KINDS
        .iter()
        .chain(EDITOR_KINDS)
        .flat_map(|kind| kind.members)
        .chain(TIMEOUT)
        .map(|row| row.0)
        .chain(["asert", "waitfor", "optional"])
        .collect();
    for kind in KINDS.iter().chain(EDITOR_KINDS) {
        for name in kind.names {
            assert_eq!(said(&least(kind, name)), "", "{name}");
            for member in &everything {
                let mut step = least(kind, name);
                let row = kind
                    .members
                    .iter()
                    .chain(TIMEOUT)
                    .find(|row| row.0 == *member);
                let value = row.map_or(json!("x"), |row| good(row.1));
                step.insert((*member).to_owned(), value);
                let said = said(&step);
                match row {
                    None => assert!(
                        said.starts_with(&format!(
                            "steps[0]: {name} has no member {member:?}; it takes "
                        )),
                        "{name} {member}: {said}"
                    ),
                    // Even a valid value may be refused, because some members exclude another
                    // member or require one.
                    Some(_) => assert!(
                        said.is_empty()
                            || said.contains("leave one of them out")
                            || said.contains(" needs ")
                            || said.contains("allowed only with"),
                        "{name} {member}: {said}"
                    ),
                }
            }
        }
    }
}

#[test]
fn browser_step_values_must_match_the_format_of_their_member() {
    for (step, why) in [
        (
            json!({"kind": "evaluate", "script": "1", "assert": null}),
            "",
        ),
        (
            json!({"kind": "evaluate", "script": "1", "assert": {"a": [1]}, "timeout": "5s"}),
            "",
        ),
        (
            json!({"kind": "waitFor", "waitFor": "duration", "duration": "2s"}),
            "",
        ),
        (json!({"kind": "waitFor", "durationMs": 5}), ""),
        (
            json!({"kind": "waitFor", "selector": "#a", "state": "detached"}),
            "",
        ),
        (
            json!({"kind": "expect", "selector": "#a", "state": "checked"}),
            "",
        ),
        (
            json!({"kind": "navigate", "url": "/", "waitFor": "selector:#a"}),
            "",
        ),
        (json!({"kind": "fill", "selector": "#a", "value": ""}), ""),
        (
            json!({"kind": "waitFor", "selector": "#a", "state": "gone"}),
            "state must be one of",
        ),
        (
            json!({"kind": "waitFor", "state": "hidden"}),
            "state needs selector",
        ),
        (
            json!({"kind": "waitFor", "selector": "#a", "durationMs": 5}),
            "selector and durationMs",
        ),
        (
            json!({"kind": "waitFor", "waitFor": "load", "duration": "1s"}),
            "allowed only with",
        ),
        (
            json!({"kind": "waitFor", "waitFor": "duration"}),
            "needs duration",
        ),
        (
            json!({"kind": "waitFor", "waitFor": "soon"}),
            "waitFor must be",
        ),
        (
            json!({"kind": "waitFor", "waitFor": "selector: "}),
            "waitFor must be",
        ),
        (
            json!({"kind": "screenshot", "fullPage": "yes"}),
            "fullPage must be",
        ),
        (
            json!({"kind": "click", "selector": "#a", "timeout": "11m"}),
            "timeout must be",
        ),
        (
            json!({"kind": "click", "selector": "#a", "timeout": "601s"}),
            "timeout must be",
        ),
        (
            json!({"kind": "click", "selector": "#a", "timeout": "1s", "timeoutMs": 5}),
            "timeoutMs and timeout",
        ),
        (
            json!({"kind": "click", "action": "hover", "selector": "#a"}),
            "kind and action",
        ),
        (
            json!({"kind": "fill", "selector": "#a", "value": "a", "text": "b"}),
            "value and text",
        ),
        (
            json!({"kind": "callTool", "name": "x"}),
            "callTool is not supported",
        ),
        (
            json!({"kind": "drag", "from": "#a", "to": "text=Trash"}),
            "",
        ),
        (
            json!({"kind": "drag", "selector": "#a", "x": 5, "y": 6}),
            "",
        ),
        (
            json!({"kind": "drag", "selector": "#a", "x": 5}),
            "x needs y",
        ),
        (
            json!({"kind": "click", "text": "Save", "frameUrl": "/x"}),
            "",
        ),
        (
            json!({"kind": "press", "key": "a", "frame": "iframe"}),
            "frame needs selector",
        ),
        (json!({"kind": "screenshot", "frameSelector": "iframe"}), ""),
        (
            json!({"kind": "capture", "capture": ["html", "console"]}),
            "",
        ),
        (
            json!({"kind": "capture", "capture": 5}),
            "capture must be text",
        ),
        (
            json!({"kind": "assertObservation", "observation": "errorsTotal", "equals": 0}),
            "",
        ),
        (
            json!({"kind": "assertObservation", "observation": "title", "equals": null}),
            "",
        ),
        (
            json!({"kind": "assertObservation", "observation": "title"}),
            "equals or",
        ),
        (
            json!({"kind": "insertBlock", "name": "core/paragraph"}),
            "there is no kind",
        ),
        (json!({"kind": "fly"}), "there is no kind"),
        (json!({"url": "/"}), "kind is missing"),
        (json!("click"), "not an object"),
    ] {
        let issues = check_browser_steps(std::slice::from_ref(&step));
        let said = issues
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n");
        if why.is_empty() {
            assert_eq!(said, "", "{step}");
        } else {
            assert!(
                said.starts_with("steps[0]: ") && said.contains(why),
                "{step}: {said}"
            );
        }
        let refused = step.get("kind") == Some(&json!("callTool"));
        assert!(
            issues.iter().all(|issue| issue.unsupported == refused),
            "{said}"
        );
    }
    assert_eq!(check_browser_steps(&[]).len(), 1);
}

#[test]
fn browser_steps_may_name_up_to_eight_actors_with_valid_names_and_editor_steps_none() {
    let step = |actor: &Value| json!([{"kind": "hover", "selector": "#a", "actor": actor}]);
    let said = |list: &Value, check: fn(&[Value]) -> Vec<StepIssue>| {
        let issues = check(list.as_array().unwrap());
        issues.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let good = step(&json!("ann-1.session"));
    assert!(said(&good, check_browser_steps).is_empty());
    assert!(said(&good, check_editor_steps)[0].contains("no member \"actor\""));
    for actor in [
        json!(""),
        json!("a b"),
        json!("../a"),
        json!(1),
        json!("a".repeat(201)),
    ] {
        assert_eq!(said(&step(&actor), check_browser_steps).len(), 1, "{actor}");
    }
    let crowd = |count: usize| -> Value {
        let step = |at| json!({"kind": "hover", "selector": "#a", "actor": format!("a{at}")});
        (0..count).map(step).collect()
    };
    assert!(said(&crowd(8), check_browser_steps).is_empty());
    assert!(said(&crowd(9), check_browser_steps)[0].contains("9 actors"));
}

/// An actor is a name, or an object with a name and optionally metadata and one session.
#[test]
fn invalid_actors_of_a_browser_scenario_are_refused() {
    let said = |actors: Value| {
        let document = json!({"url": "/", "actor": "a", "actors": actors});
        let issues = check_browser_scenario(&document);
        issues.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for actors in [
        json!([]),
        json!(["a", {"name": "b"}, {"name": "c", "userSession": "s", "metadata": {"x": 1}}, {"name": "d", "session": "s"}]),
    ] {
        assert!(said(actors.clone()).is_empty(), "{actors}");
    }
    for (actors, why) in [
        (json!("a"), "actors must be a list"),
        (json!([{"userSession": "s"}]), "actors[0] has no name"),
        (json!(["a", "a"]), "actors[1] has the name of another actor"),
        (
            json!([{"name": "a", "role": "editor"}]),
            "actors[0] \"role\"",
        ),
        (
            json!([{"name": "a", "userSession": "s", "session": "t"}]),
            "leave one of them out",
        ),
        (json!([5]), "actors[0] must be the name"),
    ] {
        let found = said(actors.clone());
        assert!(
            found.len() == 1 && found[0].contains(why),
            "{actors}: {found:?}"
        );
    }
    let wrong = check_browser_scenario(&json!({"url": "/", "actor": "a b"}));
    assert!(
        wrong[0].to_string().starts_with("actor must be"),
        "{wrong:?}"
    );
}

#[test]
fn browser_scenario_with_unknown_missing_or_malformed_members_is_refused() {
    let said = |document: &Value| {
        let issues = check_browser_scenario(document);
        issues.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let steps = json!([{"kind": "hover", "selector": "#a"}]);
    for document in [
        json!({"name": "n", "description": "d", "steps": steps}),
        json!({"url": "/", "viewport": {"width": 300, "height": 200}, "capture": ["html"]}),
    ] {
        assert!(said(&document).is_empty(), "{document}");
    }
    for (document, why) in [
        (json!({"name": 5, "steps": steps}), "name must be text"),
        (
            json!({"steps": steps, "retries": 2}),
            "no member \"retries\"",
        ),
        (json!({"name": "n"}), "no list of steps"),
        (
            json!({"steps": [{"kind": "hover", "selector": "#a", "x": 1}]}),
            "steps[0]: hover has no member",
        ),
        (json!([]), "not a JSON object"),
    ] {
        let said = said(&document);
        assert!(said.len() == 1 && said[0].contains(why), "{said:?}");
    }
}

#[test]
fn malformed_browser_durations_and_durations_above_ten_minutes_are_refused() {
    assert_eq!(browser_duration("1.5s"), Some(Duration::from_millis(1500)));
    assert_eq!(browser_duration("600s"), Some(Duration::from_secs(600)));
    for text in ["601s", "1m", "5", ".5s", "1.s", "-1s", "1e3s", "infs"] {
        assert_eq!(browser_duration(text), None, "{text}");
    }
}
