//! Sandboxes from request to end.

use crate::fake::Next;
use crate::server::{Server, until};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use wp_codebox_service::SandboxState;

#[test]
fn created_sandbox_becomes_ready_runs_programs_stores_files_and_can_be_destroyed() {
    let server = Server::start();
    let admin = server.admin();
    let body = json!({"profile": "profile.shop", "ttl": "2h", "inputs": {"repo_ref": "main"},
        "workspace": {"mode": "remote-canonical", "access": "rw"},
        "setup_metadata": {"instructions_ref": "doc", "secret_refs": ["SHOP_KEY"]},
        "consumer": {"actor": "agt", "session_id": "7"}});
    let made = admin.post("/v1/sandboxes", &body).expect(202);
    let document = made.json();
    let id = document["id"].as_str().unwrap().to_owned();
    assert_eq!(
        made.header("location"),
        Some(format!("/v1/sandboxes/{id}").as_str())
    );
    assert_eq!(document["state"], "requested");
    assert_eq!(document["consumer"]["session_id"], "7");
    assert_eq!(document["route"]["chosen"]["host"], "local");
    let at = format!("/v1/sandboxes/{id}");
    let ready = admin
        .send("GET", &at, &[("prefer", "wait=60")], b"")
        .expect(200);
    assert_eq!(ready.header("preference-applied"), Some("wait=60"));
    let document = ready.json();
    assert_eq!(document["state"], "ready", "{document}");
    assert_eq!(document["reachability"]["exec_url"], format!("{at}/exec"));
    assert!(
        document.get("consumer").is_none(),
        "the consumer is in no record"
    );

    let run = json!({"argv": ["/bin/sh", "-c", "cat; echo err >&2; exit 3"], "stdin": "hello"});
    let answer = admin.post(&format!("{at}/exec"), &run).expect(200);
    let lines: Vec<serde_json::Value> = answer
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["type"], "started");
    assert!(
        lines
            .iter()
            .any(|l| l["stream"] == "stdout" && l["text"] == "hello")
    );
    assert!(
        lines
            .iter()
            .any(|l| l["stream"] == "stderr" && l["text"] == "err\n")
    );
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["type"], &last["code"]),
        (&json!("exited"), &json!(3))
    );

    let file = format!("{at}/files/workspace/a%20b.txt");
    admin
        .send("PUT", &file, &[("if-none-match", "*")], b"one")
        .expect(200);
    admin
        .send("PUT", &file, &[("if-none-match", "*")], b"two")
        .problem(412, "wp_codebox_precondition_failed");
    let read = admin.get(&file).expect(200);
    assert_eq!(read.body, b"one");
    let tag = read.header("etag").unwrap().to_owned();
    admin
        .send("GET", &file, &[("if-none-match", &tag)], b"")
        .expect(304);
    admin
        .send("PUT", &file, &[("if-match", &tag)], b"two")
        .expect(200);
    assert_eq!(admin.get(&file).expect(200).body, b"two");
    admin.delete(&file).expect(200);
    admin
        .get(&file)
        .problem(404, "wp_codebox_service_not_found");

    let longer = admin
        .post(&format!("{at}/extend-ttl"), &json!({"ttl": "3h"}))
        .expect(200);
    assert_ne!(longer.json()["expires_at"], document["expires_at"]);
    let ended = admin
        .delete(&format!("{at}?reason=done"))
        .expect(200)
        .json();
    assert_eq!(
        (&ended["state"], &ended["reason"]),
        (&json!("destroyed"), &json!("done"))
    );
    assert_eq!(ended["cleanup"]["complete"], true);
    assert_eq!(ended["usage"]["alive_ms"], 1500);
    let again = admin.delete(&at).expect(200).json();
    assert_eq!(again, ended);
    admin
        .post(&format!("{at}/exec"), &run)
        .problem(409, "wp_codebox_sandbox_not_held");
    let meters = admin.get("/v1/meters").expect(200).json();
    assert_eq!(meters["meters"][0]["usage"]["alive_ms"], 1500);
}

#[test]
fn concurrent_requests_with_one_idempotency_key_make_one_sandbox_and_another_body_is_a_conflict() {
    let server = Server::start();
    let admin = server.admin();
    let barrier = Barrier::new(20);
    let body = json!({"profile": "profile.shop"});
    let key = [("idempotency-key", "job-7")];
    let ids: BTreeSet<String> = std::thread::scope(|scope| {
        let one = || {
            barrier.wait();
            let answer = admin.post_with("/v1/sandboxes", &key, &body).expect(202);
            answer.json()["id"].as_str().unwrap().to_owned()
        };
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(one)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(ids.len(), 1, "{ids:?}");
    let id = ids.first().unwrap();
    let ready = admin.send(
        "GET",
        &format!("/v1/sandboxes/{id}"),
        &[("prefer", "wait=60")],
        b"",
    );
    assert_eq!(ready.json()["state"], "ready");
    assert_eq!(server.fake.sandboxes().len(), 1);
    let replayed = admin.post_with("/v1/sandboxes", &key, &body).expect(202);
    assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
    let other = json!({"profile": "profile.other"});
    admin
        .post_with("/v1/sandboxes", &key, &other)
        .problem(409, "wp_codebox_idempotency_conflict");
    // Equal keys of different tokens are independent.
    let token = server.token("atm:nightly", &["sandboxes:*"]);
    let theirs = token
        .post_with("/v1/sandboxes", &key, &other)
        .expect(202)
        .json();
    assert_ne!(theirs["id"].as_str(), Some(id.as_str()));
    let found = admin
        .get("/v1/sandboxes?idempotency_key=job-7")
        .expect(200)
        .json();
    assert_eq!(found["sandboxes"][0]["id"].as_str(), Some(id.as_str()));
    // Without a key, equal requests make two sandboxes.
    let two = [0, 1].map(|_| admin.post("/v1/sandboxes", &body).expect(202).json());
    assert_ne!(two[0]["id"], two[1]["id"]);
}

#[test]
fn sandbox_that_its_extension_refuses_or_that_dies_is_failed_with_the_reason() {
    let server = Server::start();
    let admin = server.admin();
    let create = || {
        let body = json!({"profile": "profile.shop"});
        admin.post_with("/v1/sandboxes", &[("prefer", "wait=60")], &body)
    };
    server.fake.next(Next::Refuse);
    let refused = create().expect(202).json();
    assert_eq!(refused["state"], "failed");
    assert!(
        refused["reason"]
            .as_str()
            .unwrap()
            .contains("the fake starts nothing")
    );
    server.fake.next(Next::Die);
    let died = create().expect(202).json();
    assert_eq!(
        (&died["state"], &died["reason"]),
        (&json!("failed"), &json!("its setup failed"))
    );
    server.fake.next(Next::Ready);
    assert_eq!(create().expect(201).json()["state"], "ready");
}

#[test]
fn sandbox_that_ends_by_itself_is_shown_as_destroyed_with_its_reason_and_usage() {
    let server = Server::start();
    let admin = server.admin();
    let id = admin.ready("profile.shop");
    server.fake.end(&id, SandboxState::Expired, "");
    let at = format!("/v1/sandboxes/{id}");
    let is = |state: &str| (admin.get(&at).json()["state"] == state).then_some(());
    until("expiry", || is("expired"));
    server
        .fake
        .end(&id, SandboxState::Destroyed, "its lifetime is over");
    until("end", || is("destroyed"));
    let document = admin.get(&at).json();
    assert_eq!(document["reason"], "its lifetime is over");
    assert_eq!(document["usage"]["alive_ms"], 1500);
}

#[test]
fn sandbox_destroyed_while_it_is_made_never_becomes_ready() {
    let server = Server::start();
    let admin = server.admin();
    server.fake.next(Next::Hold);
    let body = json!({"profile": "profile.shop"});
    let id = admin.post("/v1/sandboxes", &body).expect(202).json()["id"].clone();
    let at = format!("/v1/sandboxes/{}", id.as_str().unwrap());
    let ended = admin.delete(&at).expect(200).json();
    assert_eq!(ended["state"], "destroyed");
    server.fake.open();
    // The start of another sandbox gives the first one time to become ready by mistake.
    admin.ready("profile.shop");
    assert_eq!(admin.get(&at).json()["state"], "destroyed");
}

#[test]
fn sandbox_list_pages_are_newest_first_without_gaps_and_filtered_by_state_and_profile() {
    let server = Server::start();
    let admin = server.admin();
    let mut made: Vec<String> = (0..5).map(|_| admin.ready("profile.shop")).collect();
    let other = admin.ready("profile.other");
    made.push(other.clone());
    made.reverse();
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = admin
            .get(&format!("/v1/sandboxes?limit=2{after}"))
            .expect(200)
            .json();
        let rows = page["sandboxes"].as_array().unwrap();
        seen.extend(
            rows.iter()
                .map(|row| row["id"].as_str().unwrap().to_owned()),
        );
        match page.get("next") {
            None => break,
            Some(next) => after = format!("&after={next}"),
        }
    }
    assert_eq!(seen, made);
    let only = admin
        .get("/v1/sandboxes?profile=profile.other&state=ready")
        .json();
    assert_eq!(only["sandboxes"].as_array().unwrap().len(), 1);
    assert_eq!(only["sandboxes"][0]["id"].as_str(), Some(other.as_str()));
    let none = admin.get("/v1/sandboxes?state=failed").json();
    assert_eq!(none["sandboxes"], json!([]));
}

#[test]
fn sandbox_document_has_an_entity_tag_that_changes_with_its_state() {
    let server = Server::start();
    let admin = server.admin();
    let at = format!("/v1/sandboxes/{}", admin.ready("profile.shop"));
    let first = admin.get(&at).expect(200);
    let tag = first.header("etag").unwrap().to_owned();
    let same = admin
        .send("GET", &at, &[("if-none-match", &tag)], b"")
        .expect(304);
    assert!(same.body.is_empty());
    admin.delete(&at).expect(200);
    admin
        .send("GET", &at, &[("if-none-match", &tag)], b"")
        .expect(200);
}

#[test]
fn snapshot_restores_its_files_into_another_sandbox_and_into_the_same_one() {
    let server = Server::start();
    let admin = server.admin();
    let first = admin.ready("profile.shop");
    let at = format!("/v1/sandboxes/{first}");
    let file = "files/workspace/state";
    admin
        .send("PUT", &format!("{at}/{file}"), &[], b"one")
        .expect(200);
    let taken = admin
        .post(&format!("{at}/snapshots"), &json!({"name": "x"}))
        .expect(201)
        .json();
    let snapshot = taken["id"].as_str().unwrap();
    admin
        .send("PUT", &format!("{at}/{file}"), &[], b"two")
        .expect(200);
    let listed = admin.get("/v1/snapshots").expect(200).json();
    assert_eq!(listed["snapshots"][0]["host"], "local");
    let body = json!({"profile": "profile.shop", "snapshot": snapshot});
    let second = admin
        .post_with("/v1/sandboxes", &[("prefer", "wait=60")], &body)
        .expect(201);
    let second = second.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(
        admin.get(&format!("/v1/sandboxes/{second}/{file}")).body,
        b"one"
    );
    admin
        .post(&format!("{at}/restore"), &json!({"snapshot": snapshot}))
        .expect(200);
    assert_eq!(admin.get(&format!("{at}/{file}")).body, b"one");
    let unknown = json!({"profile": "profile.shop", "snapshot": "snap_none"});
    admin
        .post("/v1/sandboxes", &unknown)
        .problem(404, "wp_codebox_snapshot_not_found");
    admin
        .delete(&format!("/v1/snapshots/{snapshot}"))
        .expect(200);
}

#[test]
fn recreated_sandbox_replaces_the_old_one() {
    let server = Server::start();
    let admin = server.admin();
    let old = admin.ready("profile.shop");
    let at = format!("/v1/sandboxes/{old}/recreate");
    let new = admin
        .send("POST", &at, &[("prefer", "wait=60")], b"")
        .expect(201)
        .json();
    assert_eq!(new["instead_of"].as_str(), Some(old.as_str()));
    assert_ne!(new["id"].as_str(), Some(old.as_str()));
    let before = admin.get(&format!("/v1/sandboxes/{old}")).json();
    assert_eq!(before["state"], "destroyed");
}

#[test]
fn host_that_is_drained_or_full_gets_no_sandbox_and_the_answer_says_why() {
    let server = Server::with(|config| config.hosts[0].capacity = 1);
    let admin = server.admin();
    let id = admin.ready("profile.shop");
    let body = json!({"profile": "profile.shop"});
    let full = admin.post("/v1/sandboxes", &body);
    let full = full.problem(503, "wp_codebox_route_no_capacity").json();
    assert!(
        full["data"]["decision"]["reasons"]
            .to_string()
            .contains("host"),
        "{full}"
    );
    let dry = admin.post("/v1/routes", &body).expect(200).json();
    assert_eq!(dry["chosen"], json!(null));
    admin
        .delete("/v1/hosts/local")
        .problem(409, "wp_codebox_sandbox_in_use");
    admin.delete(&format!("/v1/sandboxes/{id}")).expect(200);
    assert_eq!(
        admin.post("/v1/routes", &body).expect(200).json()["chosen"]["host"],
        "local"
    );
    admin
        .send("POST", "/v1/hosts/local/drain", &[], b"")
        .expect(200);
    admin
        .post("/v1/sandboxes", &body)
        .problem(503, "wp_codebox_route_no_capacity");
    admin.delete("/v1/hosts/local").expect(204);
    admin
        .get("/v1/hosts/local")
        .problem(404, "wp_codebox_service_not_found");
}

#[test]
fn request_that_does_not_fit_its_profile_is_refused_with_the_member_that_is_wrong() {
    let server = Server::start();
    let admin = server.admin();
    for (member, value, named) in [
        ("ttl", json!("5h"), "ttl"),
        ("ttl", json!(0), "ttl"),
        ("workspace", json!({"mode": "mirror"}), "workspace.mode"),
        ("workspace", json!({"access": "ro"}), "workspace.access"),
        (
            "setup_metadata",
            json!({"secret_refs": ["OTHER"]}),
            "secret_refs",
        ),
        ("consumer", json!("me"), "consumer"),
        ("timeout", json!(1), "timeout"),
    ] {
        let mut body = json!({"profile": "profile.shop"});
        body[member] = value;
        let problem = admin
            .post("/v1/sandboxes", &body)
            .problem(400, "wp_codebox_input_invalid");
        assert!(
            problem.json()["detail"].as_str().unwrap().contains(named),
            "{body}"
        );
    }
    let body = json!({"profile": "profile.shop", "profile_sha256": "0".repeat(64)});
    admin
        .post("/v1/sandboxes", &body)
        .problem(412, "wp_codebox_precondition_failed");
    admin
        .post("/v1/sandboxes", &json!({"profile": "profile.none"}))
        .problem(404, "wp_codebox_profile_not_found");
    assert!(server.fake.sandboxes().is_empty());
    admin.ready("profile.shop");
}

#[test]
fn stopped_server_destroys_no_sandbox_and_the_next_server_makes_each_one_ready() {
    let server = Server::start();
    let id = server.admin().ready("profile.shop");
    server.fake.next(Next::Hold);
    let body = json!({"profile": "profile.shop"});
    let held = server
        .admin()
        .post("/v1/sandboxes", &body)
        .expect(202)
        .json();
    let held = held["id"].as_str().unwrap().to_owned();
    until("provisioning", || {
        server.fake.sandboxes().contains(&held).then_some(())
    });
    let socket = server.socket.clone();
    let mut server = server;
    server.stop();
    assert!(!socket.exists(), "a stopped server removes its socket");
    assert_eq!(
        server
            .fake
            .teardowns
            .load(std::sync::atomic::Ordering::Relaxed),
        0
    );
    let server = server.restart();
    server.fake.open();
    let admin = server.admin();
    for id in [&id, &held] {
        let at = format!("/v1/sandboxes/{id}");
        let document = admin
            .send("GET", &at, &[("prefer", "wait=60")], b"")
            .expect(200)
            .json();
        assert_eq!(document["state"], "ready", "{document}");
        admin
            .post(&format!("{at}/exec"), &json!({"argv": ["/bin/true"]}))
            .expect(200);
    }
    assert_eq!(server.fake.sandboxes().len(), 2);
}

#[test]
fn sandbox_whose_server_ended_in_the_middle_of_its_start_is_started_once_by_the_next_server() {
    let server = Server::start();
    server.fake.next(Next::Late);
    let body = json!({"profile": "profile.shop"});
    let made = server.admin().post("/v1/sandboxes", &body).expect(202);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    until("the call", || (server.fake.late() == 1).then_some(()));
    let server = server.restart();
    let at = format!("/v1/sandboxes/{id}");
    let wait = [("prefer", "wait=60")];
    let found = server.admin().send("GET", &at, &wait, b"").expect(200);
    assert_eq!(found.json()["state"], "ready");
    server.fake.release();
    let starts = server.fake.provisions.load(Ordering::Relaxed);
    assert_eq!(starts, 1, "both calls started a sandbox");
}

#[test]
fn late_start_by_a_dead_server_has_no_effect_once_the_next_server_marked_the_sandbox_failed() {
    let server = Server::start();
    server.fake.next(Next::Late);
    let body = json!({"profile": "profile.shop"});
    let mut ids = Vec::new();
    for late in 1..=2 {
        let made = server.admin().post("/v1/sandboxes", &body).expect(202);
        ids.push(made.json()["id"].as_str().unwrap().to_owned());
        until("the call", || (server.fake.late() == late).then_some(()));
        server.fake.next(Next::Late);
    }
    server.fake.next(Next::Refuse);
    let server = server.restart();
    // One is refused when the next server repeats the call, the other one is destroyed.
    let at = |id: &str| format!("/v1/sandboxes/{id}");
    server.admin().delete(&at(&ids[1])).expect(200);
    let wait = [("prefer", "wait=60")];
    let found = server.admin().send("GET", &at(&ids[0]), &wait, b"");
    assert_eq!(found.expect(200).json()["state"], "failed");
    server.fake.release();
    let starts = server.fake.provisions.load(Ordering::Relaxed);
    assert_eq!(starts, 0, "a call of the dead server started a sandbox");
}

#[test]
fn exec_answer_has_media_type_text_plain_only_if_the_client_does_not_accept_ndjson() {
    let server = Server::start();
    let admin = server.admin();
    let at = format!("/v1/sandboxes/{}/exec", admin.ready("profile.shop"));
    let body = json!({"argv": ["/bin/sh", "-c", "echo here"]});
    for (accept, media) in [
        ("*/*", "application/x-ndjson"),
        ("text/plain", "text/plain; charset=utf-8"),
        (
            "application/x-ndjson, text/plain;q=0.5",
            "application/x-ndjson",
        ),
    ] {
        let answer = admin
            .post_with(&at, &[("accept", accept)], &body)
            .expect(200);
        assert_eq!(answer.header("content-type"), Some(media), "{accept}");
        assert!(answer.text().contains("here\\n"), "{}", answer.text());
    }
}
