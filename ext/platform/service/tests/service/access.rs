//! Tokens: what they allow, and what they must not reveal.

use crate::http::Client;
use crate::server::Server;
use serde_json::json;
use wp_codebox_service::TokenStore;

/// Every operation on one sandbox: method, path below it, body.
fn operations() -> Vec<(&'static str, &'static str, serde_json::Value)> {
    vec![
        ("GET", "", json!(null)),
        ("DELETE", "", json!(null)),
        ("POST", "/exec", json!({"argv": ["/bin/true"]})),
        ("GET", "/files", json!(null)),
        ("GET", "/files/workspace/x", json!(null)),
        ("PUT", "/files/workspace/x", json!("x")),
        ("DELETE", "/files/workspace/x", json!(null)),
        ("GET", "/journal", json!(null)),
        ("POST", "/extend-ttl", json!({"ttl": "1h"})),
        ("POST", "/snapshots", json!({})),
        ("POST", "/restore", json!({"snapshot": "x"})),
        ("POST", "/recreate", json!(null)),
    ]
}

fn ask(client: &Client, method: &str, path: &str, body: &serde_json::Value) -> crate::http::Answer {
    let headers = [("content-type", "application/json")];
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    client.send(method, path, &headers, body.as_bytes())
}

#[test]
fn token_that_may_not_use_a_sandbox_gets_the_same_bytes_as_for_an_unknown_id() {
    let server = Server::start();
    let owner = server.token(
        "atm:owner",
        &["sandboxes:*", "files:*", "snapshots:*", "events:*"],
    );
    let id = owner.ready("profile.shop");
    let unknown = format!("run_{}", "0".repeat(32));
    let others = [
        // Another actor with every operation.
        server.token(
            "atm:other",
            &[
                "sandboxes:create",
                "sandboxes:read",
                "sandboxes:exec",
                "sandboxes:write",
                "sandboxes:destroy",
                "files:*",
                "snapshots:*",
                "events:*",
            ],
        ),
        // The same actor, for another profile.
        server.token(
            "atm:owner",
            &[
                "sandboxes:*@profile.other",
                "files:*@profile.other",
                "snapshots:*@profile.other",
                "events:*@profile.other",
            ],
        ),
        // The same actor without any scope for sandboxes.
        server.token("atm:owner", &["profiles:read"]),
    ];
    for other in &others {
        for (method, path, body) in operations() {
            let at = |id: &str| format!("/v1/sandboxes/{id}{path}");
            let hidden = ask(other, method, &at(&id), &body);
            let none = ask(other, method, &at(&unknown), &body);
            assert!(
                [403, 404].contains(&hidden.status),
                "{method} {path}: {}",
                hidden.text()
            );
            assert_eq!(hidden.comparable(), none.comparable(), "{method} {path}");
        }
        let at = |id: &str| format!("/v1/events?follow=now&sandbox={id}");
        assert_eq!(
            other.get(&at(&id)).comparable(),
            other.get(&at(&unknown)).comparable()
        );
    }
    for other in &others[..2] {
        assert_eq!(
            other.get("/v1/sandboxes").expect(200).json()["sandboxes"],
            json!([])
        );
        let events = other
            .get("/v1/events?after=0&follow=now")
            .expect(200)
            .text();
        assert!(!events.contains(&id), "{events}");
    }
    // Positive control: the owner, and another actor that may use the sandboxes of all.
    let all = server.token(
        "adm:support",
        &["sandboxes:*", "sandboxes:all", "files:*", "events:*"],
    );
    for client in [&owner, &all] {
        let listed = client.get("/v1/sandboxes").expect(200).json();
        assert_eq!(listed["sandboxes"][0]["id"].as_str(), Some(id.as_str()));
        assert!(
            client
                .get("/v1/events?after=0&follow=now")
                .text()
                .contains(&id)
        );
        client.get(&format!("/v1/sandboxes/{id}")).expect(200);
        let at = format!("/v1/sandboxes/{id}/exec");
        client
            .post(&at, &json!({"argv": ["/bin/true"]}))
            .expect(200);
    }
    assert_eq!(owner.get(&format!("/v1/sandboxes/{unknown}")).status, 404);
}

#[test]
fn token_creates_only_sandboxes_of_the_profiles_that_its_scopes_name() {
    let server = Server::start();
    let token = server.token(
        "agt:shop",
        &["sandboxes:create@profile.shop", "sandboxes:read"],
    );
    let create = |profile: &str| token.post("/v1/sandboxes", &json!({"profile": profile}));
    create("profile.other").problem(403, "wp_codebox_service_scope_missing");
    let unknown = create("profile.none").problem(403, "wp_codebox_service_scope_missing");
    assert_eq!(unknown.comparable(), create("profile.other").comparable());
    let made = create("profile.shop").expect(202).json();
    assert_eq!(made["actor"], "agt:shop");
    let source = json!({"profile": "profile.shop", "workspace": {"source": "/etc"}});
    token
        .post("/v1/sandboxes", &source)
        .problem(403, "wp_codebox_service_scope_missing");
    // Positive control: the administrator of the machine may name a directory.
    server.admin().post("/v1/sandboxes", &source).expect(202);
}

#[test]
fn wrong_revoked_and_malformed_tokens_get_the_same_refusal() {
    let server = Server::start();
    let good = server.token("atm:nightly", &["sandboxes:read"]);
    good.get("/v1/sandboxes").expect(200);
    let token = good.token.clone().unwrap();
    let revoked = server.token("atm:nightly", &["sandboxes:read"]);
    let id = revoked
        .token
        .as_ref()
        .unwrap()
        .split('_')
        .nth(1)
        .unwrap()
        .to_owned();
    TokenStore::open(&server.directory)
        .unwrap()
        .revoke(&id)
        .unwrap();
    let last = if token.ends_with('0') { '1' } else { '0' };
    let wrong = format!("{}{last}", &token[..token.len() - 1]);
    let answers: Vec<_> = [
        wrong.as_str(),
        "x",
        "wpcb_000000000000_00",
        revoked.token.as_deref().unwrap(),
    ]
    .into_iter()
    .map(|token| good.with(token).get("/v1/sandboxes"))
    .map(|answer| answer.problem(401, "wp_codebox_service_token_required"))
    .collect();
    assert!(
        answers
            .iter()
            .all(|answer| answer.comparable() == answers[0].comparable())
    );
    assert!(
        answers[0]
            .header("www-authenticate")
            .unwrap()
            .starts_with("Bearer")
    );
    assert!(
        !answers[0].text().contains(&wrong),
        "an answer quotes a token"
    );
    good.get("/v1/sandboxes").expect(200);
    // Two tokens in one request are ambiguous.
    let twice = [("authorization", "Bearer x")];
    good.send("GET", "/v1/sandboxes", &twice, b"").expect(401);
}

#[test]
fn every_operation_except_openapi_and_health_needs_a_token_and_all_but_whoami_a_scope() {
    let server = Server::start();
    let stranger = server.admin().with("wpcb_000000000000_00");
    let powerless = server.token("atm:nobody", &["metrics:read"]);
    let openapi = server.admin().get("/v1/openapi.json").expect(200).json();
    let mut seen = 0;
    for (path, item) in openapi["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let at = path
                .replace("{id}", "run_x")
                .replace("{path}", "workspace/x");
            let method = method.to_uppercase();
            let open = operation["security"] == json!([]);
            let body = json!({});
            let answer = ask(&stranger, &method, &at, &body);
            assert_eq!(
                answer.status == 401,
                !open,
                "{method} {at}: {}",
                answer.text()
            );
            let answer = ask(&powerless, &method, &at, &body);
            let free = open || ["/v1/whoami", "/metrics"].contains(&at.as_str());
            assert_eq!(
                answer.status == 403,
                !free,
                "{method} {at}: {}",
                answer.text()
            );
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn whoami_names_actor_scopes_and_limits_and_the_socket_owner_is_administrator() {
    let server = Server::start();
    let token = server.limited("atm:nightly", &["sandboxes:read@profile.shop"], 60, 4);
    let told = token.get("/v1/whoami").expect(200).json();
    assert_eq!(told["actor"], "atm:nightly");
    assert_eq!(told["scopes"], json!(["sandboxes:read@profile.shop"]));
    assert_eq!(
        told["limits"],
        json!({"rate_per_minute": 60, "concurrency": 4})
    );
    let admin = server.admin().get("/v1/whoami").expect(200).json();
    assert!(admin["actor"].as_str().unwrap().starts_with("adm:uid-"));
    assert_eq!(
        admin["scopes"],
        json!(["*", "sandboxes:all", "runs:all", "artifacts:all"])
    );
}

#[test]
fn requests_beyond_the_rate_or_concurrency_of_a_token_are_refused_and_other_tokens_are_not() {
    let server = Server::start();
    let slow = server.limited("atm:slow", &["sandboxes:read"], 3, 10);
    for _ in 0..3 {
        slow.get("/v1/sandboxes").expect(200);
    }
    let refused = slow
        .get("/v1/sandboxes")
        .problem(429, "wp_codebox_service_rate_limited");
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=20).contains(&seconds), "{seconds}");
    server
        .token("atm:other", &["sandboxes:read"])
        .get("/v1/sandboxes")
        .expect(200);

    let few = server.limited("atm:few", &["events:read"], 100, 2);
    let streams: Vec<_> = (0..2).map(|_| few.stream("/v1/events", &[])).collect();
    few.get("/v1/events?follow=now")
        .problem(429, "wp_codebox_service_rate_limited");
    drop(streams);
    crate::server::until("the end of the streams", || {
        (few.get("/v1/events?follow=now").status == 200).then_some(())
    });
}
