use super::*;

fn form(text: &str) -> Form {
    Assertion::parse(text).unwrap().form
}

#[test]
fn each_form_of_browser_assertion_is_parsed() {
    assert_eq!(form("exists:#a"), Form::Exists("#a".to_owned()));
    assert_eq!(
        form("count:li.x>=3"),
        Form::Count("li.x".to_owned(), Order::AtLeast, 3)
    );
    assert_eq!(
        form("count:a[href=\"x=1\"]=0"),
        Form::Count("a[href=\"x=1\"]".to_owned(), Order::Equal, 0)
    );
    assert_eq!(
        form("text:a[data-x=\"1=2\"]=Hello = you"),
        Form::Text("a[data-x=\"1=2\"]".to_owned(), "Hello = you".to_owned())
    );
    for (text, selector) in [
        (
            "text:role=button[name=\"Save\"]=Sa",
            "role=button[name=\"Save\"]",
        ),
        ("text:#a >> text=Hello=Sa", "#a >> text=Hello"),
    ] {
        assert_eq!(form(text), Form::Text(selector.to_owned(), "Sa".to_owned()));
    }
    assert_eq!(
        form("attr:a:not([x=\"@\"])@href=/y"),
        Form::Attribute(
            "a:not([x=\"@\"])".to_owned(),
            "href".to_owned(),
            Some("/y".to_owned())
        )
    );
    assert_eq!(
        form("attr:input@checked"),
        Form::Attribute("input".to_owned(), "checked".to_owned(), None)
    );
    let framed = Assertion::parse("advisory:frame:iframe#x >> visible:.block").unwrap();
    assert_eq!(
        (framed.weight, framed.frame),
        (Weight::Advisory, Frame::Selector("iframe#x".to_owned()))
    );
    for text in [
        "",
        "exists",
        "exists:",
        "count:a",
        "count:a=b",
        "text:a",
        "attr:a",
        "status:7",
        "frame:x exists:a",
        "no-errors:x",
        "looks:nice",
    ] {
        let why = Assertion::parse(text).unwrap_err();
        assert!(why.contains("forms are"), "{text}");
    }
}

#[test]
fn browser_assertion_holds_only_if_the_page_has_the_expected_value() {
    let observed = Observed {
        tab: crate::observed::Tab {
            status: Some(404),
            ..Default::default()
        },
        ..Observed::default()
    };
    let found = json!({"count": 2, "visible": 1, "text": "Hello you", "url": "http://localhost/x", "title": "T", "attribute": "v"});
    for (text, holds) in [
        ("exists:a", true),
        ("not-exists:a", false),
        ("visible:a", true),
        ("hidden:a", false),
        ("count:a=2", true),
        ("count:a<=1", false),
        ("text:a=Hello", true),
        ("text:a=Bye", false),
        ("attr:a@x=v", true),
        ("attr:a@x=w", false),
        ("url:/x", true),
        ("status:404", true),
        ("status:200", false),
        ("no-errors", true),
    ] {
        let verdict = Assertion::parse(text).unwrap().check(&found, &observed);
        assert_eq!(verdict.is_ok(), holds, "{text}");
    }
    let control = json!({"count": 1, "visible": 1, "disabled": true, "checked": false});
    for (state, holds) in [
        ("enabled", false),
        ("disabled", true),
        ("checked", false),
        ("unchecked", true),
        ("attached", true),
        ("detached", false),
    ] {
        let assertion = Assertion::of_state(&Element::of_page("a"), state).unwrap();
        assert_eq!(
            assertion.check(&control, &observed).is_ok(),
            holds,
            "{state}"
        );
        // For a selector without match, only the state `detached` holds.
        let none = json!({"count": 0, "visible": 0});
        let verdict = assertion.check(&none, &observed);
        assert_eq!(verdict.is_ok(), state == "detached", "{state}");
    }
    let none = json!({"count": 0, "visible": 0});
    for text in ["exists:a", "visible:a", "text:a=", "attr:a@x"] {
        assert!(
            Assertion::parse(text)
                .unwrap()
                .check(&none, &observed)
                .is_err(),
            "{text}"
        );
    }
    assert!(
        Assertion::parse("not-exists:a")
            .unwrap()
            .check(&json!({"error": "bad selector"}), &observed)
            .is_err()
    );
}
