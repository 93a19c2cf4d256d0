//! Shares of the service's threads between actors.

use crate::fake::Next;
use crate::server::{Server, until};
use serde_json::json;

#[test]
fn sandbox_of_another_actor_starts_while_one_actor_waits_for_as_many_as_there_are_threads() {
    let server = Server::start();
    let greedy = server.token("agt:greedy", &["*"]);
    let other = server.token("agt:other", &["*"]);
    server.fake.next(Next::Hold);
    let body = json!({"profile": "profile.shop"});
    for _ in 0..256 {
        greedy.post("/v1/sandboxes", &body).expect(202);
    }
    until("the starts of one actor", || {
        (server.fake.sandboxes().len() >= 192).then_some(())
    });
    let id = other.post("/v1/sandboxes", &body).expect(202).json()["id"].clone();
    until("the start of the other's sandbox", || {
        server
            .fake
            .sandboxes()
            .iter()
            .any(|known| id == known.as_str())
            .then_some(())
    });
    server.fake.open();
    until("all sandboxes", || {
        (server.fake.sandboxes().len() == 257).then_some(())
    });
}
