use super::super::step_spec::json_equal;
use super::*;
use serde_json::json;

fn parse(json: &str) -> Result<Vec<StepSpec>, StepsRefused> {
    super::parse(json, PageKind::Any)
}

#[test]
fn valid_browser_steps_are_parsed_and_an_invalid_one_is_refused_with_the_reason() {
    let steps = parse(
        r##"[{"kind":"navigate","url":"/x"},{"kind":"fill","selector":"#a","value":""},
            {"action":"press","key":"Enter"},{"kind":"waitFor","selector":"#b","state":"hidden"},
            {"kind":"waitFor","durationMs":5},{"kind":"waitFor"},{"kind":"expect","assert":"exists:a"},
            {"kind":"uncheck","selector":"#c","timeoutMs":100},{"kind":"screenshot","name":"one"}]"##,
    )
    .unwrap();
    assert_eq!(steps.len(), 9);
    assert_eq!(
        steps[3].act,
        StepAction::WaitHidden {
            element: Element::of_page("#b")
        }
    );
    assert_eq!(steps[5].act, StepAction::WaitLoad);
    assert_eq!(steps[7].timeout, Some(Duration::from_millis(100)));
    for (json, why) in [
        ("{}", "not a JSON list"),
        ("[]", "from 1 to"),
        (r#"[{"kind":"fly"}]"#, "steps[0]: there is no kind"),
        (r#"[{"kind":"hover"}]"#, "selector is missing"),
        (r#"[{"kind":"expect","assert":"nice"}]"#, "forms are"),
        (
            r#"[{"kind":"screenshot","name":"../x"}]"#,
            "name must be letters",
        ),
        (
            r#"[{"kind":"waitFor"},{"kind":"click","selector":"a","timeoutMs":0}]"#,
            "steps[1]: timeoutMs",
        ),
    ] {
        let error = parse(json).unwrap_err();
        assert!(error.why.contains(why), "{json}: {error:?}");
        assert!(!error.unsupported, "{json}");
    }
}

#[test]
fn evaluate_step_keeps_its_assert_value_and_an_unknown_member_or_a_call_tool_step_is_refused() {
    let expression = |json: &str| match parse(json).map(|mut steps| steps.remove(0).act) {
        Ok(StepAction::Evaluate { assert, .. }) => Ok(assert),
        Ok(other) => panic!("{other:?}"),
        Err(refused) => Err(refused),
    };
    let one = expression(r#"[{"kind":"evaluate","script":"1","assert":2}]"#);
    assert_eq!(one, Ok(Some(json!(2))));
    let null = expression(r#"[{"kind":"evaluate","script":"1","assert":null}]"#);
    assert_eq!(null, Ok(Some(Value::Null)));
    assert_eq!(
        expression(r#"[{"kind":"evaluate","script":"1"}]"#),
        Ok(None)
    );
    let misspelt = expression(r#"[{"kind":"evaluate","script":"1","asert":2}]"#).unwrap_err();
    assert!(misspelt.why.contains("asert") && !misspelt.unsupported);
    let foreign = parse(r#"[{"kind":"callTool","name":"x"}]"#).unwrap_err();
    assert!(foreign.why.contains("no tools of an agent") && foreign.unsupported);
}

#[test]
fn browser_steps_that_wait_expect_or_navigate_are_parsed() {
    for (json, act) in [
        (
            r#"{"kind":"waitFor","waitFor":"networkidle"}"#,
            StepAction::WaitStage(WaitFor::NetworkIdle),
        ),
        (
            r#"{"kind":"waitFor","waitFor":"duration","duration":"2s"}"#,
            StepAction::WaitTime {
                time: Duration::from_secs(2),
            },
        ),
        (
            r##"{"kind":"waitFor","waitFor":"selector:#a"}"##,
            StepAction::WaitSelector {
                element: Element::of_page("#a"),
            },
        ),
        (
            r##"{"kind":"waitFor","selector":"#a","state":"detached"}"##,
            StepAction::WaitState(Assertion::parse("not-exists:#a").unwrap()),
        ),
        (
            r##"{"kind":"expect","selector":"#a"}"##,
            StepAction::Expect(Assertion::parse("visible:#a").unwrap()),
        ),
        (
            r#"{"kind":"goto","url":"/","waitFor":"domcontentloaded"}"#,
            StepAction::Navigate {
                url: "/".to_owned(),
                wait_for: WaitFor::DomContentLoaded,
                duration: Duration::ZERO,
                expect_status: None,
            },
        ),
    ] {
        let read = parse(&format!("[{json}]")).unwrap();
        assert_eq!(read[0].act, act, "{json}");
    }
    let read = parse(r#"[{"kind":"hover","selector":"a","timeout":"5s"}]"#).unwrap();
    assert_eq!(read[0].timeout, Some(Duration::from_secs(5)));
}

#[test]
fn json_comparison_ignores_number_form_and_member_order() {
    for (a, b, equal) in [
        (json!(1), json!(1.0), true),
        (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1}), true),
        (json!(1), json!(2), false),
        (json!(1), json!("1"), false),
        (json!(0), json!(null), false),
        (json!([1]), json!([1, 1]), false),
        (json!({"a": null}), json!({}), false),
        (
            json!(9_007_199_254_740_993_u64),
            json!(9_007_199_254_740_992_u64),
            false,
        ),
    ] {
        assert_eq!(json_equal(&a, &b), equal, "{a} {b}");
        assert_eq!(json_equal(&b, &a), equal, "{b} {a}");
    }
}

#[test]
fn locators_frames_and_drop_places_of_browser_steps_are_parsed() {
    let framed = |selector: &str, frame| Element {
        selector: selector.to_owned(),
        frame,
    };
    for (json, act) in [
        (
            r#"{"kind":"click","text":"Save","frameUrl":"/x"}"#,
            StepAction::Click {
                element: framed("text=Save", Frame::Url("/x".to_owned())),
            },
        ),
        (
            r##"{"kind":"drag","from":"#a","to":"role=list","frame":"iframe"}"##,
            StepAction::Drag {
                element: framed("#a", Frame::Selector("iframe".to_owned())),
                to: DropPlace::Element(framed("role=list", Frame::Selector("iframe".to_owned()))),
            },
        ),
        (
            r##"{"kind":"drag","selector":"#a","x":5,"y":-6}"##,
            StepAction::Drag {
                element: Element::of_page("#a"),
                to: DropPlace::By(5.0, -6.0),
            },
        ),
        (
            r##"{"kind":"select","selector":"#a","values":["x","y"]}"##,
            StepAction::Select {
                element: Element::of_page("#a"),
                values: vec!["x".to_owned(), "y".to_owned()],
            },
        ),
        (
            r#"{"kind":"screenshot","frameSelector":"iframe"}"#,
            StepAction::Screenshot {
                name: None,
                shows: Shows::Frame(Frame::Selector("iframe".to_owned())),
                wait_for: None,
                duration: Duration::ZERO,
            },
        ),
        (
            r#"{"kind":"capture","capture":"html, console","name":"one"}"#,
            StepAction::Capture {
                captures: vec![Capture::Html, Capture::Console],
                name: Some("one".to_owned()),
            },
        ),
        (
            r#"{"kind":"assertObservation","observation":"errorsTotal","equals":null}"#,
            StepAction::Observed {
                path: "errorsTotal".to_owned(),
                condition: Condition::Equals(Value::Null),
            },
        ),
    ] {
        let read = parse(&format!("[{json}]")).unwrap();
        assert_eq!(read[0].act, act, "{json}");
    }
    let editor = r#"[{"kind":"insert-block","name":"core/paragraph","content":"x"}]"#;
    let read = super::parse(editor, PageKind::Editor).unwrap();
    let StepAction::Editor(call) = &read[0].act else {
        panic!("{:?}", read[0]);
    };
    assert_eq!(
        (&call["act"], &call["name"]),
        (&json!("insertBlock"), &json!("core/paragraph"))
    );
    assert!(parse(editor).is_err(), "only in the editor");
}

#[test]
fn policy_check_of_editor_steps_knows_every_kind_of_editor_step() {
    for (_, kinds) in EDITOR_ACTS {
        for kind in *kinds {
            // No kind has the member `x`. For a known kind, the error states its members.
            let refused = wp_codebox_policy::check_editor_steps(&[json!({"kind": kind, "x": 1})]);
            assert!(
                refused[0].to_string().contains("has no member"),
                "{refused:?}"
            );
        }
    }
    let unknown = wp_codebox_policy::check_editor_steps(&[json!({"kind": "x"})]);
    let known = unknown[0].to_string();
    for kind in EDITOR_ACTS.iter().map(|row| row.1[0]) {
        assert!(known.contains(kind), "{known}");
    }
}

#[test]
fn condition_on_an_observed_value_holds_only_if_the_value_satisfies_it() {
    let (number, text) = (json!(3), json!("a warning"));
    for (condition, found, holds) in [
        (Condition::Equals(json!(3.0)), Some(&number), true),
        (Condition::Equals(json!(2)), Some(&number), false),
        (Condition::Contains("warn".to_owned()), Some(&text), true),
        (Condition::Contains("warn".to_owned()), None, false),
        (Condition::AtLeast(3.0), Some(&number), true),
        (Condition::AtMost(2.0), Some(&number), false),
        (Condition::AtMost(2.0), Some(&text), false),
        (Condition::Exists(false), None, true),
        (Condition::Exists(true), None, false),
    ] {
        assert_eq!(
            condition.check(found).is_ok(),
            holds,
            "{condition:?} {found:?}"
        );
    }
}
