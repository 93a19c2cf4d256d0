//! Shares of connections: of peers before a request is authenticated, of actors after it.

use crate::http::Client;
use crate::server::{Server, until};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HOUR: Duration = Duration::from_secs(3600);

/// Answers whether a server closed a connection on which it sends nothing.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0]) {
        Ok(0) => true,
        Ok(_) => panic!("the server sent something"),
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Sends a request over TLS from a loopback address of its own; `None` if the server closes the
/// connection.
fn health(server: &Server, address: SocketAddr, from: [u8; 4]) -> Option<u16> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let certificate = server.socket.with_file_name("cert.pem");
    let mut roots = rustls::RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(certificate).unwrap();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((from, 0))).unwrap();
        let stream = socket.connect(address).await.ok()?;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let name = ServerName::from(address.ip());
        let mut stream = connector.connect(name, stream).await.ok()?;
        let request = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.ok()?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.ok()?;
        String::from_utf8_lossy(&head[9..]).parse().ok()
    })
}

#[test]
fn peer_with_as_many_silent_connections_as_it_may_have_delays_no_other_peer() {
    let (server, address) = Server::with_tls(|config| config.bounds.first_head_time = HOUR);
    let silent: Vec<_> = (0..300)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    assert_eq!(health(&server, address, [127, 0, 0, 2]), Some(204));
    let refused = until("the end of the connections above the bound", || {
        let closed = silent.iter().filter(|stream| is_closed(stream)).count();
        (closed >= 300 - 64).then_some(closed)
    });
    assert_eq!(refused, 300 - 64);
    assert_eq!(health(&server, address, [127, 0, 0, 1]), None);
    // Positive control: the same peer, after its connections ended.
    drop(silent);
    until("a free connection of the peer", || {
        health(&server, address, [127, 0, 0, 1]).filter(|status| *status == 204)
    });
    drop(server);
}

#[test]
fn connection_without_a_first_request_is_closed_after_its_own_shorter_time() {
    let (server, address) = Server::with_tls(|config| {
        // Long enough for a client that sends at once, also on a busy machine.
        config.bounds.first_head_time = Duration::from_secs(2);
        config.bounds.head_time = HOUR;
    });
    let silent = TcpStream::connect(address).unwrap();
    let mut local = server.admin().connect();
    local.write_all(b"GET /healthz HT").unwrap();
    until("the end of the TLS connection", || {
        is_closed(&silent).then_some(())
    });
    let _ = local.read_to_end(&mut Vec::new());
    // Positive control: after a first request only the longer time counts.
    let mut idle = server.admin().connect();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        .unwrap();
    idle.read_exact(&mut [0; 12]).unwrap();
    // A later connection without a request is closed, so this time is over for the earlier one.
    let mut later = server.admin().connect();
    later.read_to_end(&mut Vec::new()).unwrap();
    idle.write_all(b"GET /v1/whoami HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut rest = String::new();
    idle.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("uid-"), "{rest}");
}

/// Opens a stream of events and leaves it open.
fn stream(client: &Client) -> u16 {
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n",
        client.token.as_deref().unwrap()
    );
    let mut stream = client.connect();
    let mut status = [0; 12];
    if stream.write_all(head.as_bytes()).is_err() || stream.read_exact(&mut status).is_err() {
        return 0;
    }
    std::mem::forget(stream);
    String::from_utf8_lossy(&status[9..]).parse().unwrap()
}

#[test]
fn authenticated_connections_count_for_their_actor_and_no_longer_for_their_peer() {
    let server = Server::with(|config| {
        config.bounds.connections = 8;
        config.bounds.peer_connections = 2;
    });
    let greedy = server.token("agt:greedy", &["*"]);
    let other = server.token("agt:other", &["*"]);
    for _ in 0..4 {
        assert_eq!(stream(&greedy), 200);
    }
    greedy
        .get("/v1/whoami")
        .problem(429, "wp_codebox_service_rate_limited");
    for _ in 0..3 {
        assert_eq!(stream(&other), 200);
    }
    other.get("/v1/whoami").expect(200);
    // Connections without an authenticated request: the user of this test has two.
    let silent = [greedy.connect(), greedy.connect()];
    assert_eq!(stream(&other), 0);
    drop(silent);
    until("a free connection of the user", || {
        (stream(&other) == 200).then_some(())
    });
    let body = json!({"profile": "profile.shop"});
    other
        .post("/v1/sandboxes", &body)
        .problem(429, "wp_codebox_service_rate_limited");
}
