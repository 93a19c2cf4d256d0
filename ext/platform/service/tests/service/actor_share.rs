//! Share of an actor in the runs of a service and in the sandboxes of a host.

use crate::fake::host;
use crate::http::{Answer, Client};
use crate::server::{Server, until};
use serde_json::{Value, json};
use std::sync::Barrier;
use std::time::Duration;
use wp_codebox_service::{ServiceConfig, TokenStore};

const RUNS: &str = "/v1/runs";
const SANDBOXES: &str = "/v1/sandboxes";

/// Six runs, and a host for five sandboxes.
fn few(config: &mut ServiceConfig) {
    config.bounds.runs = 6;
    config.hosts[0].capacity = 5;
}

fn body(path: &str) -> Value {
    match path {
        RUNS => json!({"goal": "g"}),
        _ => json!({"profile": "profile.shop"}),
    }
}

fn start(client: &Client, path: &str) -> String {
    let answer = client.post(path, &body(path)).expect(202).json();
    let id = answer.get("run_id").unwrap_or(&answer["id"]);
    id.as_str().unwrap().to_owned()
}

/// Sends 16 requests of each client at the same time, and returns the number of accepted ones.
fn ask_at_once<const N: usize>(path: &str, clients: [&Client; N]) -> [usize; N] {
    let barrier = Barrier::new(16 * N);
    let ask = |client: &Client| {
        barrier.wait();
        client.post(path, &body(path)).status
    };
    std::thread::scope(|scope| {
        let threads = clients.map(|client| [(); 16].map(|()| scope.spawn(move || ask(client))));
        threads.map(|threads| {
            let statuses = threads.map(|thread| thread.join().unwrap());
            assert!(
                statuses
                    .iter()
                    .all(|status| [202, 429, 503].contains(status))
            );
            statuses.iter().filter(|status| **status == 202).count()
        })
    })
}

/// Returns `data` of a refusal because of a share or of the limit of runs.
#[track_caller]
fn busy(answer: Answer) -> Value {
    let answer = answer.problem(429, "wp_codebox_busy");
    assert!(answer.header("retry-after").is_some());
    answer.json()["data"].clone()
}

#[test]
fn of_requests_at_once_an_actor_gets_half_of_the_runs_and_of_the_sandboxes_of_a_host() {
    let server = Server::with(few);
    let greedy = server.token("agt:greedy", &["*"]);
    let other = server.token("agt:other", &["*"]);
    for (path, share) in [(RUNS, 3), (SANDBOXES, 2)] {
        let oldest = start(&greedy, path);
        assert_eq!(ask_at_once(path, [&greedy]), [share - 1], "{path}");
        let refused = greedy.post(path, &body(path));
        let message = refused.json()["detail"].to_string();
        assert!(
            message.contains("agt:greedy has") && message.contains(&oldest),
            "{message}"
        );
        let data = busy(refused);
        assert_eq!(data["oldest_run_id"], oldest);
        assert_eq!([&data["active"], &data["limit"]], [share, share], "{path}");
        assert_eq!(ask_at_once(path, [&greedy, &other]), [0, share], "{path}");
    }
    // Sandboxes take no place of a run, and the other way round: the host has one place left.
    start(&server.admin(), SANDBOXES);
    server
        .admin()
        .post(SANDBOXES, &body(SANDBOXES))
        .problem(503, "wp_codebox_route_no_capacity");
    let data = busy(server.admin().post(RUNS, &body(RUNS)));
    assert_eq!([&data["active"], &data["limit"]], [6, 6]);
}

#[test]
fn only_actor_with_a_token_that_may_start_something_and_the_administrator_get_all() {
    let server = Server::with(few);
    let only = server.token("agt:only", &["*"]);
    let same = server.token("agt:only", &["*"]);
    let _reader = server.token("agt:reader", &["runs:read", "sandboxes:read"]);
    assert_eq!(ask_at_once(RUNS, [&only, &same]).iter().sum::<usize>(), 6);
    assert_eq!(ask_at_once(SANDBOXES, [&only]), [5]);
    // With a second actor there are shares, as long as its token is valid.
    let server = Server::with(few);
    let first = server.token("agt:first", &["*"]);
    let _second = server.token("agt:second", &["*"]);
    assert_eq!(ask_at_once(RUNS, [&first]), [3]);
    assert_eq!(ask_at_once(SANDBOXES, [&first]), [2]);
    let admin = server.admin();
    start(&admin, RUNS);
    start(&admin, SANDBOXES);
    let tokens = TokenStore::open(&server.directory).unwrap();
    let second = tokens.list().unwrap();
    let second = second.iter().find(|token| token.actor.name == "second");
    tokens.revoke(&second.unwrap().id).unwrap();
    assert_eq!(ask_at_once(RUNS, [&first]), [2]);
    assert_eq!(ask_at_once(SANDBOXES, [&first]), [2]);
    // The administrator alone gets all too.
    let server = Server::with(few);
    let _other = server.token("agt:other", &["*"]);
    assert_eq!(ask_at_once(RUNS, [&server.admin()]), [6]);
    assert_eq!(ask_at_once(SANDBOXES, [&server.admin()]), [5]);
}

#[test]
fn ended_run_counts_no_more_at_the_next_request() {
    let server = Server::with(|config| {
        few(config);
        // The service does not look at the runs by itself during this test.
        config.poll = Duration::from_secs(3600);
    });
    let client = server.token("agt:shop", &["*"]);
    let _other = server.token("agt:other", &["*"]);
    let first = start(&client, RUNS);
    assert_eq!(ask_at_once(RUNS, [&client]), [2]);
    busy(client.post(RUNS, &body(RUNS)));
    server.host.end_run(&first);
    start(&client, RUNS);
    busy(client.post(RUNS, &body(RUNS)));
}

#[test]
fn host_on_which_the_actor_has_its_share_is_not_chosen_while_another_one_is_open() {
    let server = Server::with(|config| {
        few(config);
        config.hosts.push(host("second", "fake"));
        config.hosts[1].capacity = 2;
    });
    let client = server.token("agt:shop", &["*"]);
    let _other = server.token("agt:other", &["*"]);
    let on = |_: usize| client.post(SANDBOXES, &body(SANDBOXES)).expect(202).json()["host"].clone();
    let mut hosts = [0; 3].map(on).map(|host| host.as_str().unwrap().to_owned());
    hosts.sort();
    assert_eq!(hosts, ["local", "local", "second"]);
    busy(client.post(SANDBOXES, &body(SANDBOXES)));
}

#[test]
fn sandbox_of_an_actor_above_its_share_is_not_destroyed_to_be_recreated() {
    let server = Server::with(few);
    let client = server.token("agt:shop", &["*"]);
    let id = client.ready("profile.shop");
    let rest: Vec<String> = (0..2).map(|_| client.ready("profile.shop")).collect();
    let _other = server.token("agt:other", &["*"]);
    let path = format!("/v1/sandboxes/{id}/recreate");
    busy(client.post(&path, &json!({})));
    let state = client.get(&format!("/v1/sandboxes/{id}")).json()["state"].clone();
    assert_eq!(state, "ready");
    // Control: with its share, a recreated sandbox takes the place of the old one.
    client
        .delete(&format!("/v1/sandboxes/{}", rest[0]))
        .expect(200);
    client.post(&path, &json!({})).expect(202);
}

#[test]
fn run_whose_start_could_not_be_stored_counts_only_until_its_end() {
    let server = Server::with(|config| config.bounds.runs = 1);
    let client = server.token("agt:shop", &["*"]);
    let records = rusqlite::Connection::open(server.directory.join("service.sqlite")).unwrap();
    let refuse =
        "CREATE TRIGGER refuse BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'full'); END";
    records.execute_batch(refuse).unwrap();
    assert!(client.post(RUNS, &body(RUNS)).status >= 500);
    let run = server.host.started().into_keys().next().unwrap();
    records.execute_batch("DROP TRIGGER refuse").unwrap();
    busy(client.post(RUNS, &body(RUNS)));
    server.host.end_run(&run);
    until("the end of the run", || {
        (client.post(RUNS, &body(RUNS)).status == 202).then_some(())
    });
}
