use super::*;
use crate::capture_kind::Capture;
use crate::step_spec::WaitFor;
use crate::task::{CompareInput, EditorAct, External};
use wp_codebox_policy::defaults;

fn read(command: &str, args: &[&str]) -> Result<Task, ErrorBody> {
    let call = CommandCall {
        command: command.to_owned(),
        args: args.iter().map(|a| (*a).to_owned()).collect(),
    };
    parse(&call, &defaults(vec![command.to_owned()]))
}

const PROBE: &str = "wordpress.browser-probe";
const ACTIONS: &str = "wordpress.browser-actions";
const SCENARIO: &str = "wordpress.browser-scenario";

#[test]
fn browser_probe_arguments_are_parsed() {
    let task = read(
        PROBE,
        &[
            "url=/x?a=1",
            "wait-for=selector:#a",
            "timeout=1.5s",
            "assert=exists:a",
            "assert=advisory:url:/x",
            "auth=wordpress-admin",
            "capture=html,screenshot",
            "allow-host=fonts.example.com",
        ],
    )
    .unwrap();
    assert_eq!(task.url.as_deref(), Some("http://localhost/x?a=1"));
    assert_eq!(
        (task.wait_for, task.timeout),
        (
            WaitFor::Selector("#a".to_owned()),
            Duration::from_millis(1500)
        )
    );
    assert_eq!((task.asserts.len(), task.auth), (2, Auth::User(None)));
    assert_eq!(task.capture, [Capture::Html, Capture::Screenshot]);
    assert_eq!(task.only_hosts.len(), 1);
}

#[test]
fn unsupported_and_invalid_browser_probe_arguments_are_refused_with_the_reason() {
    for (args, code, word) in [
        (
            &["url=/", "route-host=a=b"][..],
            ErrorCode::CommandUnsupported,
            "route-host",
        ),
        (
            &["url=/", "preview-mode=public"],
            ErrorCode::CommandUnsupported,
            "preview-mode",
        ),
        (
            &["url=/", "profiles=mobile-chrome", "profile=mobile-chrome"],
            ErrorCode::InputInvalid,
            "profiles",
        ),
        (
            &["url=file:///etc/passwd"],
            ErrorCode::InputInvalid,
            "neither a path",
        ),
        (
            &["url=javascript:alert(1)"],
            ErrorCode::InputInvalid,
            "neither a path",
        ),
        (
            &["url=//other.example/"],
            ErrorCode::InputInvalid,
            "neither a path",
        ),
        (
            &["url=/", "capture=video"],
            ErrorCode::InputInvalid,
            "capture",
        ),
        (
            &["url=/", "wait-for=forever"],
            ErrorCode::InputInvalid,
            "wait-for",
        ),
        (
            &["url=/", "timeout=11m"],
            ErrorCode::InputInvalid,
            "timeout",
        ),
        (
            &["url=/", "block-host=localhost"],
            ErrorCode::InputInvalid,
            "block-host",
        ),
        (
            &["url=/", "network-policy=everything"],
            ErrorCode::InputInvalid,
            "network-policy",
        ),
        (&["url=/", "auth=root"], ErrorCode::InputInvalid, "auth"),
    ] {
        let error = read(PROBE, args).unwrap_err();
        assert_eq!(error.code, code, "{args:?}");
        assert!(error.message.contains(word), "{}", error.message);
    }
}

#[test]
fn browser_evaluate_step_is_refused_unless_the_policy_lists_its_command() {
    let steps = r#"steps-json=[{"kind":"evaluate","expression":"1"}]"#;
    let refused = read(ACTIONS, &["url=/", steps]).unwrap_err();
    assert_eq!(refused.code, ErrorCode::CommandDisallowed);
    let call = CommandCall {
        command: ACTIONS.to_owned(),
        args: vec!["url=/".to_owned(), steps.to_owned()],
    };
    let allowed = defaults(vec![ACTIONS.to_owned(), EVALUATE.to_owned()]);
    assert!(parse(&call, &allowed).is_ok());
    assert!(read(ACTIONS, &[]).is_err());
}

const COMPARE: &str = "wordpress.visual-compare";

#[test]
fn capture_style_may_have_one_mebibyte_whether_or_not_animations_are_stopped() {
    for (animations, bytes, accepted) in [
        ("disable", 1 << 20, true),
        ("allow", 1 << 20, true),
        ("disable", (1 << 20) + 1, false),
    ] {
        let style = format!("capture-style={}", " ".repeat(bytes));
        let animations = format!("animations={animations}");
        let read = read(
            COMPARE,
            &["source-url=/", "candidate-url=/", &animations, &style],
        );
        assert_eq!(read.is_ok(), accepted, "{animations} {:?}", read.err());
    }
}

#[test]
fn documented_values_of_browser_arguments_are_accepted() {
    for args in [
        &["auth=wordpress-admin"][..],
        &["auth=wp-admin", "auth-user-id=3"],
        &["network-policy=record"],
        &["network-policy=allow"],
        &["preview-mode=local"],
        &["throttle=low-end-mobile-slow-4g"],
        &["device=Pixel 5"],
        &["geolocation-permission=default"],
        &["capture=console,errors,html,network,websocket,performance,memory,screenshot"],
        &["observe=#a,role=button"],
        &["stall-timeout=5s"],
        &["profiles=desktop-chrome,mobile-chrome,low-end-mobile-slow-4g"],
    ] {
        let mut all = vec!["url=/"];
        all.extend(args);
        assert!(read(PROBE, &all).is_ok(), "{args:?}");
    }
    for word in ["deny", "block"] {
        let task = read(PROBE, &["url=/", &format!("network-policy={word}")]).unwrap();
        assert_eq!(task.external, External::Deny);
    }
    let environment = r#"browser-environment-json={"viewport":{"width":300,"height":200},"locale":"de-DE",
        "geolocation":{"latitude":1,"longitude":2},"permissions":["geolocation"]}"#;
    let task = read(ACTIONS, &["url=/", environment, "locale=fr-FR"]).unwrap();
    assert_eq!(task.environment.device.width, 300);
    assert_eq!(task.environment.locale, "fr-FR", "an argument wins");
    let unknown = read(
        ACTIONS,
        &["url=/", r#"browser-environment-json={"view":1}"#],
    )
    .unwrap_err();
    assert!(
        unknown.message.contains("no member \"view\""),
        "{}",
        unknown.message
    );
    let scenario = r#"scenario-json={"name":"n","url":"/x","viewport":"300x200","capture":["html"],"auth":"wordpress-admin"}"#;
    let task = read("wordpress.browser-scenario", &[scenario]).unwrap();
    assert_eq!(task.url.as_deref(), Some("http://localhost/x"));
    assert_eq!(
        (task.capture, task.auth),
        (vec![Capture::Html], Auth::User(None))
    );
}

#[test]
fn editor_command_opens_the_page_of_its_arguments_and_refuses_contradictory_arguments() {
    for (args, url) in [
        (&[][..], "/wp-admin/post-new.php"),
        (
            &["target=post-new", "post-type=page"],
            "/wp-admin/post-new.php?post_type=page",
        ),
        (&["post-id=7"], "/wp-admin/post.php?post=7&action=edit"),
        (&["target=site"], "/wp-admin/site-editor.php?canvas=edit"),
        (
            &["target=front-page"],
            "/wp-admin/site-editor.php?p=%2F&canvas=edit",
        ),
        (
            &["url=/wp-admin/post-new.php?x"],
            "/wp-admin/post-new.php?x",
        ),
    ] {
        let task = read("wordpress.editor-open", args).unwrap();
        assert_eq!(task.url, Some(format!("http://localhost{url}")), "{args:?}");
        assert_eq!(task.auth, Auth::User(None));
    }
    for (args, word) in [
        (&["post-id=7", "post-type=page"][..], "post-type"),
        (&["target=site", "post-id=7"], "target"),
        (&["target=site", "url=/"], "target"),
        (&["post-type=a b"], "post-type"),
        (&["artifact-prefix=../x"], "artifact-prefix"),
    ] {
        let refused = read("wordpress.editor-open", args).unwrap_err();
        assert!(
            refused.message.contains(word),
            "{args:?}: {}",
            refused.message
        );
    }
    let Work::Editor(editor) = read("wordpress.editor-validate-blocks", &["content=x"])
        .unwrap()
        .work
    else {
        panic!("it is no editor command");
    };
    let provider = "block-editor".to_owned();
    let content = Some("x".to_owned());
    assert_eq!(editor.act, EditorAct::Validate { content, provider });
    let step = r#"steps-json=[{"kind":"insertBlock","name":"core/paragraph"}]"#;
    assert!(read("wordpress.editor-actions", &[step]).is_ok());
    let script = r#"steps-json=[{"kind":"evaluate","script":"1"}]"#;
    let refused = read("wordpress.editor-actions", &[script]).unwrap_err();
    assert_eq!(refused.code, ErrorCode::CommandDisallowed);
}

#[test]
fn visual_compare_needs_a_source_and_a_candidate_and_refuses_unsupported_or_invalid_arguments() {
    let task = read(
        COMPARE,
        &[
            "source-screenshot=files/a.png",
            "candidate-url=/",
            "frozen-time=2026-01-31T12:00:00+01:00",
        ],
    )
    .unwrap();
    assert_eq!(task.stored_files(), ["files/a.png"]);
    assert!(
        task.pre_script
            .unwrap()
            .contains("2026-01-31T12:00:00+01:00")
    );
    let Work::Compare(compare) = task.work else {
        panic!("it is no comparison");
    };
    assert_eq!(
        compare.candidate.from,
        CompareInput::Page("http://localhost/".to_owned())
    );
    for (args, word) in [
        (&["source-url=/"][..], "candidate-url"),
        (
            &["source-url=/", "baseline=a.png", "candidate-url=/"],
            "baseline",
        ),
        (
            &[
                "source-url=/",
                "candidate-url=/",
                "frozen-time=2026-01-31T12:00:00",
            ],
            "frozen-time",
        ),
        (
            &["source-url=/", "candidate-url=/", "matrix-json={}"],
            "matrix-json",
        ),
        (
            &[
                "source-url=/",
                "candidate-url=/",
                "source-dom-snapshot=a.json",
            ],
            "source-dom-snapshot",
        ),
    ] {
        let refused = read(COMPARE, args).unwrap_err();
        assert!(
            refused.message.contains(word),
            "{args:?}: {}",
            refused.message
        );
    }
}

/// The session of an actor is its `userSession` in `actors`; without one, it has the actor's name.
/// `begins_itself` is true if no actor does the first step; then the command's own browser loads
/// the page.
#[test]
fn step_without_an_actor_has_the_scenarios_actor_and_sessions_are_named_by_user_session_or_actor() {
    let scenario = r#"{"url": "/", "actor": "all", "actors": ["all", {"name": "own", "userSession": "session-1"}],
        "steps": [{"kind": "hover", "selector": "a"}, {"kind": "hover", "selector": "a", "actor": "own"}, {"kind": "hover", "selector": "a", "actor": "other"}]}"#;
    let task = read(SCENARIO, &[&format!("scenario-json={scenario}")]).unwrap();
    let actors: Vec<_> = task
        .steps()
        .iter()
        .filter_map(|step| step.actor.as_ref())
        .map(|actor| (actor.name.as_str(), actor.session.as_str()))
        .collect();
    assert_eq!(
        actors,
        [("all", "all"), ("own", "session-1"), ("other", "other")]
    );
    let sessions: Vec<_> = task.sessions().into_iter().collect();
    assert_eq!(sessions, ["all", "other", "session-1"]);
    assert!(!task.begins_itself());
    let steps = r#"steps-json=[{"kind":"hover","selector":"a"},{"kind":"hover","selector":"a","actor":"own"}]"#;
    let task = read(ACTIONS, &["url=/", steps]).unwrap();
    assert!(task.begins_itself() && task.sessions().contains("own"));
}
