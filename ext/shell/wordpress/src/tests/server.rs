//! HTTP server for tests on a loopback address, with one prepared reply for each path.

use super::{Files, checksums, zip_of};
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use wp_codebox_contracts::hex;

/// Maximum time that the server waits for a client.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Reply to a request.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Body(Vec<u8>),
    /// Sends a body without content-length, and closes the connection to mark its end.
    Unmeasured(Vec<u8>),
    Status(u16),
    Redirect(String),
    /// Announces one byte more than it sends.
    Cut(Vec<u8>),
    /// Announces this many bytes, sends none and keeps the connection open.
    Stall(u64),
}

/// A running server.
pub(super) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Replies by path and query.
pub(super) type Routes = BTreeMap<String, Reply>;

/// Returns the routes of wordpress.org for one release, which is also the latest.
pub(super) fn release_routes(version: &str, files: &Files) -> Routes {
    let archive = zip_of("wordpress/", files);
    let sha1 = hex(&Sha1::digest(&archive));
    let offers = serde_json::json!({
        "offers": [
            {"response": "development", "version": "99.0-beta1"},
            {"response": "upgrade", "locale": "en_US", "version": version, "current": version},
            {"response": "autoupdate", "version": "1.0"},
        ],
        "translations": [],
    });
    let zip = format!("/release/wordpress-{version}.zip");
    [
        (latest_route(), offers.to_string().into_bytes()),
        (format!("{zip}.sha1"), sha1.into_bytes()),
        (checksum_route(version), checksums(files)),
        (zip, archive),
    ]
    .map(|(path, body)| (path, Reply::Body(body)))
    .into()
}

pub(super) fn latest_route() -> String {
    "/core/version-check/1.7/".to_owned()
}

pub(super) fn checksum_route(version: &str) -> String {
    format!("/core/checksums/1.0/?version={version}&locale=en_US")
}

impl Server {
    /// Starts a server in a thread that runs until the test process ends.
    pub(super) fn start(routes: Routes) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                stream.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
                let Some(path) = requested(&stream) else {
                    continue;
                };
                recorded.lock().unwrap().push(path.clone());
                let reply = routes.get(&path).cloned();
                open.extend(answer(stream, reply.unwrap_or(Reply::Status(404))));
            }
        });
        Self { address, requests }
    }

    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the paths of the requests since the last call of this method.
    pub(super) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

/// Reads a request and returns its path.
fn requested(stream: &TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    first
        .strip_prefix("GET ")?
        .split(' ')
        .next()
        .map(str::to_owned)
}

/// Sends a reply. Returns the connection if it stays open.
fn answer(mut stream: TcpStream, reply: Reply) -> Option<TcpStream> {
    let head =
        |status: u16, more: &str| format!("HTTP/1.1 {status} X\r\n{more}connection: close\r\n\r\n");
    let length = |bytes: u64| head(200, &format!("content-length: {bytes}\r\n"));
    let (head, body, stays) = match reply {
        Reply::Body(body) => (length(body.len() as u64), body, false),
        Reply::Unmeasured(body) => (head(200, ""), body, false),
        Reply::Status(status) => (head(status, "content-length: 0\r\n"), Vec::new(), false),
        Reply::Redirect(to) => {
            let more = format!("location: {to}\r\ncontent-length: 0\r\n");
            (head(302, &more), Vec::new(), false)
        }
        Reply::Cut(body) => (length(body.len() as u64 + 1), body, false),
        Reply::Stall(bytes) => (length(bytes), Vec::new(), true),
    };
    // Ignore errors: a client that rejects the headers closes the connection early.
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&body));
    stays.then_some(stream)
}
