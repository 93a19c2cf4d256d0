//! The stream of events.

use crate::server::Server;
use serde_json::json;
use std::collections::BTreeMap;

#[test]
fn event_stream_that_is_closed_and_resumed_many_times_loses_and_repeats_no_event() {
    let server = Server::start();
    let admin = server.admin();
    let writer = {
        let admin = admin.clone();
        std::thread::spawn(move || {
            for _ in 0..12 {
                let id = admin.ready("profile.shop");
                admin.delete(&format!("/v1/sandboxes/{id}")).expect(200);
            }
        })
    };
    // Each connection reads a few events and is closed in the middle of the stream.
    let (mut seen, mut last) = (Vec::new(), 0);
    let destroyed = |seen: &Vec<(u64, serde_json::Value)>| {
        seen.iter()
            .filter(|(_, event)| event["type"] == "sandbox.destroyed")
            .count()
    };
    while destroyed(&seen) < 12 {
        let resume = last.to_string();
        let mut stream = match last {
            0 => admin.stream("/v1/events?after=0", &[]),
            _ => admin.stream("/v1/events", &[("last-event-id", &resume)]),
        };
        for _ in 0..3 {
            let (id, event) = stream.event().unwrap();
            assert_eq!(event["id"], id);
            last = id;
            seen.push((id, event));
            if destroyed(&seen) == 12 {
                break;
            }
        }
    }
    writer.join().unwrap();
    let whole = admin.stream("/v1/events?after=0&follow=now", &[]);
    let all: Vec<_> = std::iter::successors(Some(whole), |_| None)
        .flat_map(|mut stream| std::iter::from_fn(move || stream.event()).collect::<Vec<_>>())
        .collect();
    assert_eq!(
        seen,
        all[..seen.len()],
        "the resumed stream differs from the whole one"
    );
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, event) in &all {
        *types.entry(event["type"].as_str().unwrap()).or_default() += 1;
    }
    for kind in [
        "requested",
        "provisioning",
        "ready",
        "destroying",
        "destroyed",
    ] {
        assert_eq!(types[format!("sandbox.{kind}").as_str()], 12, "{types:?}");
    }
}

#[test]
fn sandbox_events_have_actor_consumer_and_chosen_host_and_host_events_need_a_scope_for_hosts() {
    let server = Server::start();
    let token = server.token("agt:shop", &["sandboxes:*", "events:read"]);
    let body = json!({"profile": "profile.shop", "consumer": {"job_id": "9"}});
    let made = token
        .post_with("/v1/sandboxes", &[("prefer", "wait=60")], &body)
        .expect(201)
        .json();
    let id = made["id"].as_str().unwrap();
    let mut stream = token.stream(&format!("/v1/events?sandbox={id}&follow=now"), &[]);
    let events: Vec<_> = std::iter::from_fn(|| stream.event())
        .map(|(_, event)| event)
        .collect();
    let types: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "sandbox.requested",
            "route.decided",
            "sandbox.provisioning",
            "sandbox.ready"
        ]
    );
    for event in &events {
        assert_eq!(event["consumer"], json!({"job_id": "9"}), "{event}");
    }
    assert_eq!(events[0]["actor"], "agt:shop");
    assert_eq!(events[3]["actor"], "atm:service");
    assert_eq!(events[1]["data"]["chosen"]["host"], "local");
    // Host events are for those who may read hosts.
    let hosts = |text: String| text.contains("host.registered");
    assert!(!hosts(token.get("/v1/events?after=0&follow=now").text()));
    assert!(hosts(
        server.admin().get("/v1/events?after=0&follow=now").text()
    ));
}

#[test]
fn malformed_last_event_id_is_refused_and_streams_end_when_the_server_stops() {
    let mut server = Server::start();
    let admin = server.admin();
    admin
        .send("GET", "/v1/events", &[("last-event-id", "x")], b"")
        .problem(400, "wp_codebox_input_invalid");
    let mut stream = admin.stream("/v1/events", &[]);
    let waiting = std::thread::spawn(move || stream.event());
    server.stop();
    assert_eq!(waiting.join().unwrap(), None);
}

#[test]
fn event_host_down_has_the_reason_and_the_events_before_it_have_none() {
    let server = Server::with(|config| config.hosts.push(crate::fake::host("sick", "fake")));
    let mut stream = server.admin().stream("/v1/events?after=0", &[]);
    let down = loop {
        let (_, event) = stream.event().unwrap();
        match event["type"].as_str().unwrap() {
            "host.down" => break event,
            _ => assert!(event["data"].get("reason").is_none(), "{event}"),
        }
    };
    assert_eq!(down["data"]["host"], "sick");
    assert_eq!(down["data"]["reason"], "its disk is full");
}
