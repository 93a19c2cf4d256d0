//! Tests with a malicious guest, and with visitors that do not read.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Response timeout in a test whose guest never responds.
const MOMENT: Duration = Duration::from_millis(300);

/// Returns a guest that writes as long as the forwarder accepts bytes, and a flag that is true
/// while the guest writes.
fn endless(head: &'static str, piece: &'static [u8]) -> (Arc<Guest>, Arc<AtomicBool>) {
    let taken = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&taken);
    let guest = Guest::doing(move |mut stream| {
        told.store(true, Ordering::SeqCst);
        let _ = stream.write_all(head.as_bytes());
        while stream.write_all(piece).is_ok() {}
        told.store(false, Ordering::SeqCst);
    });
    (guest, taken)
}

#[test]
fn preview_visitor_that_does_not_read_is_disconnected() {
    let (guest, taken) = endless("HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 65536]);
    let limits = ForwarderLimits {
        // Long enough that a visitor that reads is never disconnected.
        idle_timeout: Duration::from_secs(6),
        ..ForwarderLimits::default()
    };
    let preview = open(guest, None, limits);
    let mut slow = TcpStream::connect(preview.address()).unwrap();
    let requests = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", preview.address());
    slow.write_all(requests.as_bytes()).unwrap();
    soon("the guest received no request", || {
        taken.load(Ordering::SeqCst)
    });
    // Control: a visitor that reads is served throughout, also after the other one was
    // disconnected.
    let (reading, _) = endless("HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 65536]);
    let beside = open(reading, None, limits);
    let mut quick = TcpStream::connect(beside.address()).unwrap();
    let requests = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", beside.address());
    quick.write_all(requests.as_bytes()).unwrap();
    let mut piece = [0_u8; 65536];
    soon(
        "the guest still sends to the visitor that reads nothing",
        || {
            assert!(quick.read(&mut piece).unwrap() > 0);
            !taken.load(Ordering::SeqCst)
        },
    );
    assert!(quick.read(&mut piece).unwrap() > 0);
}

#[test]
fn preview_request_counts_towards_the_limit_until_its_response_ends() {
    let go = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go);
    let guest = Guest::doing(move |mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
        while !wait.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = stream.write_all(b"cd");
    });
    let limits = ForwarderLimits {
        requests: 1,
        // The guest must also accept the first connection within this time.
        connect_timeout: Duration::from_secs(2),
        ..ForwarderLimits::default()
    };
    let preview = open(guest, None, limits);
    let mut first = TcpStream::connect(preview.address()).unwrap();
    let requests = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", preview.address());
    first.write_all(requests.as_bytes()).unwrap();
    let mut head = [0_u8; 12];
    first.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    assert_eq!(status(&get(&preview, "/", "")), "503");
    go.store(true, Ordering::SeqCst);
    soon("the permit was not released", || {
        status(&get(&preview, "/", "")) == "200"
    });
}

#[test]
fn request_to_a_guest_that_sends_only_103_responses_ends_with_504_and_blocks_no_other_request() {
    let (guest, _) = endless("", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n");
    let limits = ForwarderLimits {
        answer_timeout: MOMENT,
        ..ForwarderLimits::default()
    };
    let preview = open(guest, None, limits);
    let asking = std::thread::scope(|scope| {
        let asking = scope.spawn(|| get(&preview, "/", ""));
        std::thread::sleep(MOMENT / 3);
        let elsewhere = say(
            &preview,
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        );
        assert_eq!(status(&elsewhere), "421");
        asking.join().unwrap()
    });
    // Each 103 response would restart a timeout that counts from the last byte.
    assert_eq!(status(&asking), "504", "{asking}");
}

#[test]
fn malformed_guest_response_gives_502_and_bytes_behind_a_response_are_dropped() {
    let limits = ForwarderLimits {
        response_bytes: 64 * 1024,
        ..ForwarderLimits::default()
    };
    let large: &'static str = Box::leak(
        format!("HTTP/1.1 200 OK\r\nX-A: {}\r\n\r\n", "a".repeat(300 * 1024)).into_boxed_str(),
    );
    let many: &'static str =
        Box::leak(format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: a\r\n".repeat(200)).into_boxed_str());
    for (said, expected) in [
        (large, "502"),
        (many, "502"),
        ("HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\n\r\n", "502"),
        ("HTTP/1.1 200 OK\r\nX-A\0: a\r\n\r\n", "502"),
        ("HTTP/1.1 200 OK\r\nX-A: a\nSet-Cookie: b\r\n\r\n", "200"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "502",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "502"),
        ("HTTP/0.9 200 OK\r\n\r\n", "502"),
    ] {
        let preview = open(Guest::start(said.as_bytes()), None, limits);
        let answer = get(&preview, "/", "");
        let shown: String = said.chars().take(60).collect();
        assert_eq!(status(&answer), expected, "{shown}: {answer}");
        assert_forced(&answer);
    }
    // A second response that the guest sends behind the first is dropped.
    let split = Guest::start(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    );
    let preview = open(split, None, limits);
    let both = format!(
        "GET /a HTTP/1.1\r\nHost: {0}\r\n\r\nGET /b HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n\r\n",
        preview.address()
    );
    let answers = say(&preview, both.as_bytes());
    assert!(
        answers.matches("\r\n\r\nok").count() == 2 && !answers.contains("evil"),
        "{answers}"
    );
    // The end of the connection ends an HTTP/1.0 response without length. A response shorter than
    // its declared length is an error.
    let old = open(Guest::start(b"HTTP/1.0 200 OK\r\n\r\nold"), None, limits);
    let answer = get(&old, "/", "");
    assert!(
        status(&answer) == "200" && answer.contains("old"),
        "{answer}"
    );
    let cut = open(
        Guest::start(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"),
        None,
        limits,
    );
    let answer = get(&cut, "/", "");
    assert!(!answer.ends_with("0\r\n\r\n"), "it looks whole: {answer}");
    // An endless chunked response is cut at the limit, and the guest connection is closed.
    let (guest, taken) = endless(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"1000;x=y\r\n",
    );
    let preview = open(guest, None, limits);
    let answer = get(&preview, "/", "");
    assert!(answer.len() < 160 * 1024 && !answer.ends_with("0\r\n\r\n"));
    soon("the connection to the guest stays open", || {
        !taken.load(Ordering::SeqCst)
    });
}

#[test]
fn guest_cannot_read_cookie_of_another_program_by_setting_a_cookie_of_the_same_name() {
    let guest = Guest::start(
        b"HTTP/1.1 200 OK\r\nSet-Cookie: session=mine; Path=/nowhere\r\n\
          Set-Cookie: codebox_preview_1=x\r\nContent-Length: 0\r\n\r\n",
    );
    let preview = open(
        Arc::clone(&guest) as Arc<dyn GuestConnector>,
        None,
        ForwarderLimits::default(),
    );
    let answer = get(&preview, "/", "");
    assert!(answer.contains("session=mine"), "{answer}");
    assert!(!answer.contains("codebox_preview_1"), "{answer}");
    get(
        &preview,
        "/",
        "Cookie: session=secret-of-another; session=mine\r\n",
    );
    let heard = guest.last();
    assert!(heard.contains("session=mine"), "the control: {heard}");
    assert!(!heard.contains("secret-of-another"), "{heard}");
}
