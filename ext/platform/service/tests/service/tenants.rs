//! Several roads to one object: each of them asks the same question.

use crate::fake::{EQUAL, bundle};
use crate::server::{Server, until};
use serde_json::json;
use wp_codebox_ledger::{
    AccountId, Amount, Grant, GrantReference, Ledger, LedgerFiles, Note, Prices, UnixMillis,
};
use wp_codebox_service::Requester;

const PRICES: &str = r#"{"schema": "wp-codebox/meter-prices/v1", "unit": "EUR/1000000",
    "extensions": {"fake": {"per_second": 1, "per_creation": 100, "gpu_per_second": 0, "key": "platform"}}}"#;

#[test]
fn run_of_a_sandbox_is_hidden_from_other_actors_like_the_sandbox_itself() {
    let server = Server::start();
    let own = server.token("agt:shop", &["*"]);
    let other = server.token("agt:other", &["*", "sandboxes:all"]);
    let id = own.ready("profile.shop");
    let before = own.get(&format!("/v1/sandboxes/{id}")).json()["state"].clone();
    for (method, path) in [
        ("GET", format!("/v1/runs/{id}")),
        ("GET", format!("/v1/runs/{id}/events")),
        ("DELETE", format!("/v1/runs/{id}")),
        ("GET", format!("/v1/artifacts/{id}")),
        ("GET", format!("/v1/artifacts/{}", bundle(&id))),
        ("GET", format!("/v1/artifacts/{id}/verify")),
    ] {
        assert_eq!(other.send(method, &path, &[], b"").status, 404, "{path}");
    }
    assert_eq!(
        own.get(&format!("/v1/sandboxes/{id}")).json()["state"],
        before
    );
    // Positive control.
    for path in [
        format!("/v1/runs/{id}"),
        format!("/v1/runs/{id}/events"),
        format!("/v1/artifacts/{}", bundle(&id)),
    ] {
        own.get(&path).expect(200);
    }
}

#[test]
fn sandbox_cannot_be_destroyed_as_a_run_without_the_scope_to_destroy_sandboxes() {
    let server = Server::start();
    let own = server.token("agt:shop", &["*"]);
    let id = own.ready("profile.shop");
    let runner = server.token("agt:shop", &["runs:*"]);
    let path = format!("/v1/runs/{id}");
    runner.get(&path).expect(200);
    runner
        .delete(&path)
        .problem(403, "wp_codebox_service_scope_missing");
    server
        .token("agt:shop", &["runs:*", "sandboxes:destroy"])
        .delete(&path)
        .expect(202);
}

#[test]
fn task_continues_only_bundles_of_its_own_actor_and_gets_the_exact_run() {
    let server = Server::start();
    let own = server.token("agt:shop", &["*"]);
    let other = server.token("agt:other", &["*"]);
    let id = own.ready("profile.shop");
    let task = |of: &str| json!({"goal": "g", "follow_up_of": {"artifact_id": of}});
    for of in [id.as_str(), &bundle(&id), &id[..10], "run_none"] {
        let refused = other.post("/v1/runs", &task(of));
        refused.problem(404, "wp_codebox_artifact_not_found");
    }
    let by_run = json!({"goal": "g", "follow_up_of": {"run_id": id}});
    let refused = other.post("/v1/runs", &by_run);
    refused.problem(404, "wp_codebox_artifact_not_found");
    assert!(server.host.started().is_empty(), "a run started");
    own.post("/v1/runs", &by_run).expect(202);
    // A prefix is refused to the owner too: it could become ambiguous.
    own.post("/v1/runs", &task(&id[..10]))
        .problem(404, "wp_codebox_artifact_not_found");
    // Without the right to read artifacts a task cannot read one either.
    let blind = server.token("agt:shop", &["runs:*"]);
    blind
        .post("/v1/runs", &task(&id))
        .problem(404, "wp_codebox_artifact_not_found");
    let made = own.post("/v1/runs", &task(&bundle(&id))).expect(202).json();
    let run = &server.host.started()[made["run_id"].as_str().unwrap()];
    assert_eq!(run.follow_up.as_deref(), Some(id.as_str()));
    assert_eq!(run.requester, Some(Requester::Token));
}

#[test]
fn equal_bundles_of_two_actors_are_found_each_by_its_own_actor() {
    let server = Server::start();
    let start = |client: &crate::http::Client| {
        let made = client.post("/v1/runs", &json!({"goal": "equal"}));
        made.expect(202).json()["run_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let clients = ["agt:shop", "agt:other"].map(|actor| server.token(actor, &["*"]));
    let runs: Vec<String> = clients.iter().map(start).collect();
    for (client, run) in clients.iter().zip(&runs) {
        let found = client.get(&format!("/v1/artifacts/{EQUAL}")).expect(200);
        assert_eq!(found.json()["run_id"].as_str(), Some(run.as_str()));
        let task = json!({"goal": "g", "follow_up_of": {"artifact_id": EQUAL}});
        let next = client.post("/v1/runs", &task).expect(202).json();
        let next = &server.host.started()[next["run_id"].as_str().unwrap()];
        assert_eq!(next.follow_up.as_ref(), Some(run));
    }
    let third = server.token("agt:third", &["*"]);
    third
        .get(&format!("/v1/artifacts/{EQUAL}"))
        .problem(404, "wp_codebox_artifact_not_found");
}

#[test]
fn snapshot_of_another_actor_can_neither_be_restored_nor_start_a_sandbox() {
    let server = Server::start();
    let own = server.token("agt:shop", &["*"]);
    let other = server.token("agt:other", &["*"]);
    let id = own.ready("profile.shop");
    let taken = own.post(&format!("/v1/sandboxes/{id}/snapshots"), &json!({}));
    let snapshot = taken.expect(201).json()["id"].clone();
    let theirs = other.ready("profile.shop");
    let create = json!({"profile": "profile.shop", "snapshot": snapshot});
    for (path, body) in [
        (
            format!("/v1/sandboxes/{theirs}/restore"),
            json!({"snapshot": snapshot}),
        ),
        ("/v1/sandboxes".to_owned(), create.clone()),
        ("/v1/routes".to_owned(), create.clone()),
    ] {
        let refused = other.post(&path, &body);
        refused.problem(404, "wp_codebox_snapshot_not_found");
    }
    own.post("/v1/sandboxes", &create).expect(202);
}

#[test]
fn run_is_reserved_before_it_starts_and_settled_after_its_end_also_across_a_restart() {
    let temporary = tempfile::tempdir().unwrap();
    let files = LedgerFiles::in_state(temporary.path());
    let ledger = Ledger::open(&files).unwrap();
    let account = AccountId::new("shop").unwrap();
    let settings = |config: &mut wp_codebox_service::ServiceConfig| {
        config.prices = Some(Prices::parse(PRICES.as_bytes()).unwrap());
        config.ledger = Some(Ledger::open(&files).unwrap());
    };
    let mut server = Server::with(settings);
    let client = server.paying("agt:shop", &["*"], "shop");
    let balance = || {
        let balance = ledger.balance(&account).unwrap();
        (
            balance.available.get(),
            balance.reserved.get(),
            balance.settled.get(),
        )
    };
    let task = json!({"goal": "g"});
    client
        .post("/v1/runs", &task)
        .problem(402, "wp_codebox_credits_short");
    assert!(
        server.host.started().is_empty(),
        "a run started without credits"
    );
    let grant = Grant {
        account: account.clone(),
        amount: Amount::new(1000).unwrap(),
        reference: GrantReference::new("invoice-7").unwrap(),
        actor: Note::new("test").unwrap(),
        reason: Note::new("test").unwrap(),
    };
    let _ = ledger.grant(&grant, UnixMillis(1)).unwrap();
    let start = |client: &crate::http::Client| {
        let made = client.post("/v1/runs", &task).expect(202);
        made.json()["run_id"].as_str().unwrap().to_owned()
    };
    let first = start(&client);
    assert_eq!(balance(), (890, 110, 0));
    server.host.end_run(&first);
    // The fake reports 1.5 seconds; each begun second is charged.
    until("the settlement", || {
        (balance() == (898, 0, 102)).then_some(())
    });
    client
        .post("/v1/runs", &json!({"goal": "do not start"}))
        .expect(503);
    assert_eq!(balance(), (898, 0, 102));
    let second = start(&client);
    assert_eq!(balance(), (788, 110, 102));
    server.stop();
    server.host.end_run(&second);
    let server = server.restart_with(settings);
    until("the settlement", || {
        (balance() == (796, 0, 204)).then_some(())
    });
    let _ = server.admin().get("/readyz").expect(204);
}
