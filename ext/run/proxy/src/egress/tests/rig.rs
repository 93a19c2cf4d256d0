//! Fake resolver, fake connector and local servers for tests of the egress bridge.

use super::super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wp_codebox_policy::EgressRules;
use wp_codebox_runtime::UsageMeter;

/// Public address reserved for documentation (RFC 5737), so it belongs to no host.
pub(super) const PUBLIC: &str = "203.0.113.10";
pub(super) const OTHER_PUBLIC: &str = "203.0.113.20";

/// Maximum number of bytes that a test client reads.
const MOST_READ: u64 = 16 * 1024 * 1024;

/// Fake resolver: each name has a list of answers. Each lookup returns the next answer; lookups
/// after the last answer return the last answer again.
#[derive(Default)]
pub(super) struct FakeResolver {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub asked: Mutex<Vec<String>>,
}

impl FakeResolver {
    pub(super) fn add(&self, host: &str, answers: &[&[&str]]) {
        let parsed = answers
            .iter()
            .map(|list| list.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        self.answers.lock().unwrap().insert(host.to_owned(), parsed);
    }
}

impl Resolve for FakeResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let found = match answers.get_mut(host) {
            Some(list) if list.len() > 1 => Ok(list.remove(0)),
            Some(list) => Ok(list[0].clone()),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        Box::pin(async move {
            Ok(found?
                .into_iter()
                .map(|ip| SocketAddr::new(ip, port))
                .collect())
        })
    }
}

/// Maximum time that a test waits for an expected condition: longer than a busy machine delays one.
pub(super) const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Fake connector: connects to a loopback server in place of a public address.
#[derive(Default)]
pub(super) struct FakeConnector {
    servers: Mutex<HashMap<SocketAddr, SocketAddr>>,
    pub tried: Mutex<Vec<SocketAddr>>,
}

impl Connect for FakeConnector {
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<tokio::net::TcpStream>> {
        self.tried.lock().unwrap().push(address);
        let server = self.servers.lock().unwrap().get(&address).copied();
        Box::pin(async move {
            match server {
                Some(server) => tokio::net::TcpStream::connect(server).await,
                None => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
            }
        })
    }
}

/// A running bridge with its fake network, for one test.
pub(super) struct Rig {
    pub bridge: Option<Bridge>,
    pub names: Arc<FakeResolver>,
    pub wires: Arc<FakeConnector>,
    pub tcp: SocketAddr,
    pub unix: PathBuf,
    pub authority: Option<String>,
    pub servers: Authority,
    pub used: Arc<UsageMeter>,
    _scratch: tempfile::TempDir,
}

pub(super) struct Options {
    pub rules: Value,
    pub secrets: Vec<SecretSwap>,
    pub model: Option<ModelRoute>,
    pub limits: BridgeLimits,
    pub deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: json!({"allowHosts": ["plain.example"]}),
            secrets: Vec::new(),
            model: None,
            limits: BridgeLimits::default(),
            deadline: Duration::from_secs(120),
        }
    }
}

pub(super) fn rules(rules: Value) -> Rig {
    rig(Options {
        rules,
        ..Options::default()
    })
}

pub(super) fn rig(options: Options) -> Rig {
    let names = Arc::new(FakeResolver::default());
    let wires = Arc::new(FakeConnector::default());
    let servers = Authority::new();
    let used = Arc::new(UsageMeter::default());
    let config = BridgeConfig {
        rules: EgressRules::compile(&serde_json::from_value(options.rules).unwrap()).unwrap(),
        model: options.model,
        site: None,
        secrets: options.secrets,
        limits: options.limits,
        trust: Trust::Pem(servers.pem.clone().into_bytes()),
        network: Network {
            resolver: Arc::clone(&names) as Arc<dyn Resolve>,
            connector: Arc::clone(&wires) as Arc<dyn Connect>,
        },
        deadline: Instant::now() + options.deadline,
        used: Arc::clone(&used),
    };
    let scratch = tempfile::tempdir().unwrap();
    let unix = scratch.path().join("egress.sock");
    let unix_socket = UnixListener::bind(&unix).unwrap();
    let tcp_socket = TcpListener::bind((own_address(), 0)).unwrap();
    let tcp = tcp_socket.local_addr().unwrap();
    let prepared = Bridge::prepare(config).unwrap();
    let authority = prepared.authority_pem().map(str::to_owned);
    let bridge = prepared
        .serve(unix_socket.into(), tcp_socket.into())
        .unwrap();
    Rig {
        bridge: Some(bridge),
        names,
        wires,
        tcp,
        unix,
        authority,
        servers,
        used,
        _scratch: scratch,
    }
}

/// Returns a loopback address that no other `Rig` uses. Otherwise another test's listener could get
/// the port of a bridge that has stopped.
fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high | 1, low, NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Rig {
    /// Makes `name` resolve to [`PUBLIC`], and connections to that address and `port` reach
    /// `server`.
    pub(super) fn host(&self, name: &str, port: u16, server: SocketAddr) {
        self.names.add(name, &[&[PUBLIC]]);
        self.wire(PUBLIC, port, server);
    }

    pub(super) fn wire(&self, address: &str, port: u16, server: SocketAddr) {
        let address = SocketAddr::new(address.parse().unwrap(), port);
        self.wires.servers.lock().unwrap().insert(address, server);
    }

    /// Sends bytes to the bridge over TCP and returns everything received until the connection
    /// ends.
    pub(super) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.tcp).unwrap();
        stream.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
        stream.write_all(bytes).unwrap();
        let mut out = Vec::new();
        // The limit on the read keeps a bridge with broken limits from exhausting this machine's
        // memory.
        let _ = stream.take(MOST_READ).read_to_end(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Sends the bridge one plain request without a body and returns the response.
    pub(super) fn ask(&self, method: &str, target: &str) -> String {
        self.raw(format!("{method} {target} HTTP/1.1\r\nHost: bridge\r\n\r\n").as_bytes())
    }

    /// Waits until `requests` requests have ended in total. A tunnel ends some time after its last
    /// byte has arrived at the client.
    pub(super) fn ended(&self, requests: u64) {
        until("the requests end", || {
            let counts = self.bridge.as_ref().unwrap().counts();
            counts.allowed + counts.denied + counts.failed >= requests
        });
    }

    pub(super) fn stop(&mut self) -> EgressLog {
        self.bridge.take().unwrap().stop()
    }

    /// Stops the bridge and returns the only row of its log.
    pub(super) fn row(&mut self) -> EgressRow {
        let log = self.stop();
        assert_eq!(log.rows.len(), 1, "{:#?}", log.rows);
        log.rows.into_iter().next().unwrap()
    }
}

/// Waits until `holds` returns true; panics with `what` in the message after [`WAIT_LIMIT`].
#[track_caller]
pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(
            start.elapsed() < WAIT_LIMIT,
            "{what}: not within {WAIT_LIMIT:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns status and JSON document of the response to a refused request; the body as a whole must not
/// be JSON.
pub(super) fn refusal(answer: &str) -> (u16, Value) {
    let status = answer.split(' ').nth(1).and_then(|s| s.parse().ok());
    let body = answer
        .split_once("\r\n\r\n")
        .map(|parts| parts.1)
        .unwrap_or_default();
    assert!(serde_json::from_str::<Value>(body).is_err(), "{answer:?}");
    let (_, document) = body.split_once('\n').unwrap_or_default();
    let body: Value = serde_json::from_str(document).unwrap_or_else(|e| panic!("{e}: {answer:?}"));
    assert_eq!(body["schema"], "wp-codebox/egress-denied/v1");
    (status.unwrap(), body)
}

pub(super) fn reason(answer: &str) -> String {
    refusal(answer).1["reason"].as_str().unwrap().to_owned()
}

/// Decodes a chunked response body.
pub(super) fn dechunked(answer: &str) -> String {
    let (head, mut rest) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("transfer-encoding: chunked"), "{answer}");
    let mut body = String::new();
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return body;
        }
        body.push_str(&tail[..size]);
        rest = &tail[size + 2..];
    }
    panic!("no last chunk: {answer}");
}

/// A stream that can be read and written, such as a plain or a TLS socket.
pub(super) trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Starts an HTTP server on loopback for the life of the test process. The handler gets each
/// request (head and, when framed by Content-Length, body) and the connection to respond on.
pub(super) fn server(
    handler: impl Fn(&str, &mut dyn Stream) + Send + Sync + 'static,
) -> SocketAddr {
    listen(move |mut stream| {
        let request = read_request(&mut stream);
        if !request.is_empty() {
            handler(&request, &mut stream);
        }
    })
}

/// Starts an HTTPS server on loopback with the TLS configuration `config`; `handler` responds to
/// each request as in [`server`].
pub(super) fn tls_server(
    config: Arc<rustls::ServerConfig>,
    handler: impl Fn(&str, &mut dyn Stream) + Send + Sync + 'static,
) -> SocketAddr {
    listen(move |stream| {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, stream);
        let request = read_request(&mut stream);
        if !request.is_empty() {
            handler(&request, &mut stream);
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    })
}

pub(super) fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            stream.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

fn read_request(stream: &mut dyn Stream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|l| {
                    l.to_ascii_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            let chunked = head
                .to_ascii_lowercase()
                .contains("transfer-encoding: chunked");
            if body.len() >= length && (!chunked || body.ends_with("0\r\n\r\n")) {
                return text;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return text,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

/// Sends a response with status 200 and this body.
pub(super) fn ok(stream: &mut dyn Stream, body: &str) {
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

/// Starts a server that responds with the request itself.
pub(super) fn echo() -> SocketAddr {
    server(|request, stream| ok(stream, request))
}

/// Certificate authority of the local servers.
pub(super) struct Authority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // The server certificates have rcgen's default name as subject. The authority needs another
        // name, because a certificate whose issuer equals its subject looks self-signed.
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "test authority");
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    pub(super) fn config(&self, host: &str) -> Arc<rustls::ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Arc::new(
            rustls::ServerConfig::builder_with_provider(Arc::new(
                rustls::crypto::ring::default_provider(),
            ))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap(),
        )
    }
}
