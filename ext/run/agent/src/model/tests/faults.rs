//! Tests of the model client with a model server that fails or misbehaves.

use super::super::limits::{CALLS, LINE_BYTES};
use super::server::{Step, raw, status, stream, stream_head};
use super::*;
use std::thread;
use wp_codebox_runtime::CancelReason;

fn talk(answers: Vec<Answer>) -> TestClient {
    TestClient::new(ModelApi::OpenaiChat, answers)
}

const TEXT: &str = r#"data: {"choices":[{"delta":{"content":"Hello."}}]}"#;
const STOP: &str = r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

fn hello() -> Answer {
    stream(&[TEXT, STOP, "data: [DONE]"])
}

fn error(code: u16, headers: &str) -> Answer {
    status(code, headers, r#"{"error":{"message":"not now"}}"#)
}

fn unavailable(answer: Result<Reply, ModelError>) -> (String, u32) {
    match answer {
        Err(ModelError::Unavailable { why, attempts }) => (why, attempts),
        other => panic!("{other:?}"),
    }
}

fn malformed(answer: Result<Reply, ModelError>) -> String {
    match answer {
        Err(ModelError::Malformed { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn temporary_provider_failures_are_retried_and_counted() {
    for code in [408, 409, 425, 429, 500, 502, 503, 504, 520, 529] {
        let mut talk = talk(vec![error(code, ""), error(code, ""), hello()]);
        assert_eq!(talk.ask().unwrap().text, "Hello.", "{code}");
        assert_eq!(talk.asked().len(), 3, "{code}");
    }
    let mut never = talk(vec![error(503, "")]);
    let (why, attempts) = unavailable(never.ask());
    assert_eq!(why, "status 503: not now");
    assert_eq!((attempts, never.asked().len()), (5, 5));
}

#[test]
fn pause_before_a_retried_model_request_grows_and_obeys_retry_after() {
    let mut own = talk(vec![
        error(500, ""),
        error(500, ""),
        error(500, ""),
        hello(),
    ]);
    own.ask().unwrap();
    let at: Vec<Instant> = own.asked().iter().map(|asked| asked.at).collect();
    // The pauses before retries are at least half of 20, 40 and 80 milliseconds.
    for (pair, least) in at.windows(2).zip([10, 20, 40]) {
        assert!(pair[1] - pair[0] >= Duration::from_millis(least));
    }
    for headers in ["retry-after: 0.4\r\n", "retry-after-ms: 400\r\n"] {
        let mut told = talk(vec![error(429, headers), hello()]);
        told.ask().unwrap();
        let asked = told.asked();
        let waited = asked[1].at - asked[0].at;
        assert!(waited >= Duration::from_millis(400), "{waited:?}");
    }
    // The server asks for a longer pause than the client accepts.
    let mut told = talk(vec![error(429, "retry-after: 3600\r\n"), hello()]);
    told.ask().unwrap();
    let waited = told.asked()[1].at - told.asked()[0].at;
    assert!(waited >= Duration::from_millis(600), "{waited:?}");
    assert!(waited < Duration::from_secs(600), "{waited:?}");
}

#[test]
fn permanent_provider_failures_are_not_retried() {
    for (code, body, expected) in [
        (401, "{}", "refused the key (status 401)"),
        (403, "{}", "refused the key (status 403)"),
        (
            402,
            r#"{"error":{"message":"no credit"}}"#,
            "(status 402): no credit",
        ),
        (
            404,
            r#"{"error":{"message":"The model `x` does not exist\nsecond line"}}"#,
            "(status 404): The model `x` does not exist",
        ),
        (400, r#"{"error":"bad"}"#, "(status 400): bad"),
        (400, "", "(status 400): the provider gave no reason"),
        (
            422,
            r#"{"detail":"no such field"}"#,
            "(status 422): no such field",
        ),
        (501, "{}", "(status 501)"),
        (413, "", "longer than the model's context window"),
        (
            429,
            r#"{"error":{"message":"quota","type":"insufficient_quota"}}"#,
            "(status 429): quota",
        ),
        (
            400,
            r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
            "longer than the model's context window",
        ),
    ] {
        let mut talk = talk(vec![status(code, "", body), hello()]);
        let shown = talk.ask().unwrap_err().to_string();
        assert!(shown.contains(expected), "{code} {body}: {shown}");
        assert_eq!(talk.asked().len(), 1, "{code} {body}");
        // Control: the same client succeeds when the server sends a valid response.
        assert_eq!(talk.ask().unwrap().text, "Hello.");
    }
}

#[test]
fn model_key_in_a_provider_error_is_redacted_and_a_long_message_is_shortened() {
    let encoded = "a2V5LWNvcnJlY3QtaG9yc2UtYmF0dGVyeQ==";
    let said = format!("bad key {KEY} or {encoded}\u{7}\u{1b}[2J in header");
    for code in [400, 500] {
        let body = json!({"error": {"message": said}}).to_string();
        let shown = talk(vec![status(code, "", &body)])
            .ask()
            .unwrap_err()
            .to_string();
        assert!(shown.contains("bad key [REDACTED"), "{shown}");
        assert!(shown.contains("in header"), "{shown}");
        assert!(
            !shown.contains("horse") && !shown.contains(encoded),
            "{shown}"
        );
        assert!(!shown.chars().any(char::is_control), "{shown}");
    }
    let long = json!({"error": {"message": "x".repeat(10_000)}}).to_string();
    let shown = talk(vec![status(400, "", &long)])
        .ask()
        .unwrap_err()
        .to_string();
    assert!(shown.chars().count() < 300, "{}", shown.len());
}

#[test]
fn model_request_is_retried_after_a_missing_or_truncated_response_or_an_error_in_the_stream() {
    let cuts: Vec<(&str, Answer)> = vec![
        ("after the head", vec![stream_head()]),
        ("after text", stream(&[TEXT])),
        ("inside an event", vec![stream_head(), raw(&TEXT[..30])]),
        (
            "shorter than it said",
            vec![raw(
                "HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{\"choices\":[{",
            )],
        ),
        (
            "inside a chunk",
            vec![raw(format!(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{TEXT}\n\n",
                TEXT.len() + 500
            ))],
        ),
        (
            "whole, but not to its end",
            status(200, "", r#"{"choices":[{"message":{"content":"Hel"#),
        ),
        ("no answer at all", vec![]),
        (
            "an error in it",
            stream(&[
                TEXT,
                r#"data: {"error":{"message":"gone","type":"server_error"}}"#,
            ]),
        ),
    ];
    for (name, cut) in cuts {
        let mut talk = talk(vec![cut, hello()]);
        let reply = talk.ask().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(reply.text, "Hello.", "{name}");
        assert_eq!(talk.asked().len(), 2, "{name}");
    }
}

#[test]
fn model_stream_without_data_times_out_and_a_slow_one_does_not() {
    let stalled = vec![stream_head(), raw(format!("{TEXT}\n\n")), Step::Hang];
    let mut pace = quick();
    pace.idle = Duration::from_secs(3);
    let paced = |answers, pace| TestClient::paced(ModelApi::OpenaiChat, answers, pace);
    let mut once = paced(vec![stalled.clone(), hello()], pace);
    assert_eq!(once.ask().unwrap().text, "Hello.");
    let brief = Duration::from_millis(400);
    let silent = vec![Step::Hang];
    for (answer, first_byte, idle) in [
        (stalled, pace.first_byte, brief),
        (silent, brief, pace.idle),
    ] {
        let tries = 2;
        let pace = Pace {
            first_byte,
            idle,
            tries,
            ..pace
        };
        let (why, attempts) = unavailable(paced(vec![answer], pace).ask());
        assert!(why.starts_with("no data for 0."), "{why}");
        assert_eq!(attempts, 2);
    }
    // Slow but not silent: the whole stream takes longer than the idle timeout.
    let mut steps = vec![stream_head()];
    for _ in 0..8 {
        steps.push(Step::Pause(pace.idle / 6));
        steps.push(raw(": wait\n\n"));
    }
    steps.push(raw(format!("{TEXT}\n\n{STOP}\n\n")));
    let mut slow = paced(vec![steps], pace);
    assert_eq!(slow.ask().unwrap().text, "Hello.");
    assert_eq!(slow.asked().len(), 1);
}

#[test]
fn model_response_violating_the_protocol_is_reported_as_malformed() {
    for (name, answer, part) in [
        (
            "broken event",
            stream(&[TEXT, "data: {\"choices\": nonsense}"]),
            "JSON",
        ),
        (
            "an event with half an object",
            stream(&["data: {\"choices\":", TEXT]),
            "JSON",
        ),
        ("no object", stream(&["data: [1]"]), "not a JSON object"),
        (
            "a web page",
            status(200, "", "<!doctype html><p>Log in"),
            "web page",
        ),
        (
            "plain text",
            status(200, "", "It works!"),
            "neither JSON nor an event stream",
        ),
        (
            "another protocol",
            status(200, "", r#"{"hello":1}"#),
            "no `choices`",
        ),
        (
            "broken document",
            status(200, "", r#"{"choices":[}"#),
            "JSON",
        ),
    ] {
        let mut talk = talk(vec![answer, hello()]);
        let why = malformed(talk.ask());
        assert!(why.contains(part), "{name}: {why}");
        assert_eq!(talk.asked().len(), 1, "{name}");
    }
    let messages = TestClient::new(
        ModelApi::AnthropicMessages,
        vec![status(
            200,
            "",
            r#"{"choices":[{"message":{"content":"x"}}]}"#,
        )],
    );
    let why = malformed({ messages }.ask());
    assert!(why.contains("no `content`"), "{why}");
}

#[test]
fn model_response_above_the_limits_on_tool_calls_or_size_is_an_error() {
    let call = |place: usize| {
        format!(
            r#"data: {{"choices":[{{"delta":{{"tool_calls":[{{"index":{place},"id":"c{place}","function":{{"name":"t","arguments":"{{}}"}}}}]}}}}]}}"#
        )
    };
    let calls = |count: usize| {
        let mut events: Vec<String> = (0..count).map(call).collect();
        events.push(STOP.to_owned());
        stream(&events.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(talk(vec![calls(CALLS)]).ask().unwrap().calls.len(), CALLS);
    let why = malformed(talk(vec![calls(CALLS + 1)]).ask());
    assert!(why.contains("more than 64 tool calls"), "{why}");

    let line = vec![stream_head(), raw(vec![b'x'; LINE_BYTES + 1]), Step::Hang];
    let why = malformed(talk(vec![line]).ask());
    assert!(
        why.contains("an event of the model's response is longer"),
        "{why}"
    );

    let mut endless = vec![stream_head()];
    let padding = format!(
        "data: {{\"choices\":[],\"x\":\"{}\"}}\n\n",
        "x".repeat(1 << 20)
    );
    endless.extend((0..17).map(|_| raw(padding.clone())));
    endless.push(Step::Hang);
    let why = malformed(talk(vec![endless]).ask());
    assert!(why.contains("the model's response is longer"), "{why}");

    let head = |bytes: usize| {
        let filler = "x".repeat(bytes);
        vec![
            raw(format!(
                "HTTP/1.1 200 OK\r\nx-filler: {filler}\r\nconnection: close\r\n\r\n"
            )),
            raw(format!("{TEXT}\n\n{STOP}\n\n")),
        ]
    };
    assert_eq!(talk(vec![head(10_000)]).ask().unwrap().text, "Hello.");
    let (why, _) = unavailable(talk(vec![head(1 << 20)]).ask());
    assert!(why.contains("the request failed"), "{why}");
}

#[test]
fn redirect_from_the_model_server_is_not_followed() {
    let other = Server::play(vec![hello()]);
    for code in [301, 302, 307, 308] {
        let location = format!("location: http://{}/v1/chat/completions\r\n", other.address);
        let mut talk = talk(vec![status(code, &location, "")]);
        let answer = talk.ask();
        let Err(ModelError::Rejected { status, .. }) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(status, code);
        assert_eq!(talk.asked().len(), 1);
    }
    assert!(other.asked().is_empty());
    // Control: the server that the redirect names would have answered.
    let endpoint = endpoint(ModelApi::OpenaiChat, &other.base_url());
    let cancellation = Cancellation::default();
    let mut client =
        ModelClient::with(&endpoint, None, &cancellation, quick(), &Trust::System).unwrap();
    let request = TurnRequest {
        system: "",
        messages: &[],
        tools: &[],
        max_output_tokens: 1,
        deadline: Instant::now() + Duration::from_secs(60),
    };
    client.turn(request, &mut |_| {}).unwrap();
    assert_eq!(other.asked()[0].header("authorization"), None);
}

#[test]
fn unreachable_model_server_fails_the_turn_after_all_attempts() {
    // Binds a port without listening on it: no other process can take the port, and connecting
    // fails.
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
    let silent = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&silent, &std::net::SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let gone = std::net::SocketAddr::try_from(getsockname(&silent).unwrap()).unwrap();
    let endpoint = endpoint(ModelApi::OpenaiChat, &format!("http://{gone}/v1"));
    let cancellation = Cancellation::default();
    let key = Some(Zeroizing::new(KEY.to_owned()));
    let mut client =
        ModelClient::with(&endpoint, key, &cancellation, quick(), &Trust::System).unwrap();
    let request = TurnRequest {
        system: "",
        messages: &[],
        tools: &[],
        max_output_tokens: 1,
        deadline: Instant::now() + Duration::from_secs(60),
    };
    let (why, attempts) = unavailable(client.turn(request, &mut |_| {}));
    assert!(
        why.starts_with("no connection: Connection refused"),
        "{why}"
    );
    assert_eq!(attempts, 5);
}

/// Maximum duration of a turn that must end without waiting for a timeout of the client. Each of
/// these timeouts is ten times as long, so that load alone cannot exceed this duration.
const AT_ONCE: Duration = Duration::from_secs(60);

/// Runs a turn after `end` has set its deadline or started a thread that cancels it. Returns the
/// turn's error and duration.
fn ended(answer: Answer, pace: Pace, end: impl Fn(&mut TestClient)) -> (ModelError, Duration) {
    let mut talk = TestClient::paced(ModelApi::OpenaiChat, vec![answer], pace);
    let began = Instant::now();
    end(&mut talk);
    let error = talk.ask().unwrap_err();
    (error, began.elapsed())
}

#[test]
fn deadline_and_cancellation_end_a_model_request_at_once() {
    let patient = Pace {
        idle: 10 * AT_ONCE,
        first_byte: 10 * AT_ONCE,
        pause: 10 * AT_ONCE,
        longest_pause: 10 * AT_ONCE,
        max_retry_after: 10 * AT_ONCE,
        ..quick()
    };
    let chatter: Answer = std::iter::once(stream_head())
        .chain((0..6_000).flat_map(|_| [raw(": x\n\n"), Step::Pause(Duration::from_millis(100))]))
        .collect();
    let waits: Vec<(&str, Answer)> = vec![
        ("before the head", vec![Step::Hang]),
        (
            "in a stream",
            vec![stream_head(), raw(format!("{TEXT}\n\n")), Step::Hang],
        ),
        ("in a stream of comments", chatter),
        ("in a pause", error(429, "retry-after: 600\r\n")),
        (
            "in the body of a refusal",
            vec![
                raw("HTTP/1.1 400 X\r\ncontent-length: 9\r\n\r\n"),
                Step::Hang,
            ],
        ),
    ];
    for (name, answer) in waits {
        let (error, took) = ended(answer.clone(), patient, |talk| {
            talk.deadline = 20 * AT_ONCE;
            let cancellation = talk.cancellation;
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(300));
                cancellation.cancel(CancelReason::Asked);
            });
        });
        assert_eq!(error, ModelError::Cancelled, "{name}");
        assert!(took >= Duration::from_millis(300), "{name}: {took:?}");
        assert!(took < AT_ONCE, "{name}: {took:?}");
        if name == "in a pause" {
            continue;
        }
        let (error, took) = ended(answer, patient, |talk| {
            talk.deadline = Duration::from_millis(300);
        });
        assert_eq!(error, ModelError::Deadline, "{name}");
        assert!(took >= Duration::from_millis(300), "{name}: {took:?}");
        assert!(took < AT_ONCE, "{name}: {took:?}");
    }
    // The client does not start a pause that would end after the deadline.
    let (error, took) = ended(error(429, "retry-after: 600\r\n"), patient, |talk| {
        talk.deadline = Duration::from_secs(500);
    });
    let (why, attempts) = unavailable(Err(error));
    assert!(why.contains("no time for a retry"), "{why}");
    assert_eq!(attempts, 1);
    assert!(took < AT_ONCE, "{took:?}");
    // If the deadline has passed before the turn starts, the client sends nothing.
    let mut late = talk(vec![hello()]);
    late.deadline = Duration::ZERO;
    assert_eq!(late.ask(), Err(ModelError::Deadline));
    assert!(late.asked().is_empty());
    late.deadline = Duration::from_secs(60);
    assert_eq!(late.ask().unwrap().text, "Hello.");
}
