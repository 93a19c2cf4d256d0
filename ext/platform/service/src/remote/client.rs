//! HTTP client of the extension `remote`. Its methods block, and may be called on every thread that
//! may block.

use super::target::RemoteTarget;
use crate::problem::Problem;
use crate::tls;
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use std::fmt::Write as _;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Runtime;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// Time for a short call, and for the first byte of a stream.
const SHORT: Duration = Duration::from_secs(60);
/// Maximum size of a JSON answer in bytes.
const ANSWER: usize = 16 * 1024 * 1024;
/// Maximum size of a file in bytes.
const FILE: usize = 64 * 1024 * 1024;
/// Maximum size of a token in bytes.
const TOKEN: usize = 4096;

/// A request.
pub(super) struct Sending {
    method: &'static str,
    path: String,
    body: Option<(&'static str, Vec<u8>)>,
    headers: Vec<(&'static str, String)>,
    within: Duration,
}

impl Sending {
    pub(super) fn new(method: &'static str, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            body: None,
            headers: Vec::new(),
            within: SHORT,
        }
    }

    pub(super) fn json(method: &'static str, path: &str, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        Self {
            body: Some(("application/json", body)),
            ..Self::new(method, path)
        }
    }

    pub(super) fn bytes(method: &'static str, path: &str, body: &[u8]) -> Self {
        Self {
            body: Some(("application/octet-stream", body.to_vec())),
            ..Self::new(method, path)
        }
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(super) fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }
}

/// Client of one service.
#[derive(Debug)]
pub(super) struct Client {
    /// Taken out and shut down in `drop`: tokio panics when a runtime is dropped on an async
    /// thread.
    runtime: Option<Runtime>,
    http: reqwest::Client,
    base: String,
    token: Option<reqwest::header::HeaderValue>,
}

impl Client {
    pub(super) fn new(target: &RemoteTarget, token: Option<&str>) -> Result<Self, ErrorBody> {
        let invalid = |message: String| ErrorBody::new(ErrorCode::InputInvalid, message);
        let mut builder = reqwest::Client::builder()
            .user_agent("wp-codebox")
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .no_proxy()
            .http1_only();
        let base = match target {
            RemoteTarget::Unix(path) => {
                builder = builder
                    .unix_socket(path.as_path())
                    .tls_backend_preconfigured(tls::no_tls()?);
                "http://service".to_owned()
            }
            RemoteTarget::Tls { url, authorities } => {
                let config = tls::client_config(authorities.as_deref())?;
                builder = builder.https_only(true).tls_backend_preconfigured(config);
                let base = url.trim_end_matches('/');
                let authority = base.strip_prefix("https://").unwrap_or_default();
                if authority.is_empty() || authority.contains(['/', '?', '#', '@']) {
                    return Err(invalid(format!(
                        "{url:?} is not the address of a service; write https://HOST:PORT"
                    )));
                }
                base.to_owned()
            }
        };
        let http = builder.build().map_err(|error| {
            invalid(format!(
                "the HTTP client for {base} cannot be created: {error}"
            ))
        })?;
        let token = token.map(bearer).transpose()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("remote")
            .enable_all()
            .build()
            .map_err(|error| {
                invalid(format!(
                    "the HTTP client for {base} cannot start a thread: {error}"
                ))
            })?;
        Ok(Self {
            runtime: Some(runtime),
            http,
            base,
            token,
        })
    }

    /// Runs asynchronous work of this client on the calling thread.
    pub(super) fn block<T>(
        &self,
        work: impl Future<Output = Result<T, ErrorBody>>,
    ) -> Result<T, ErrorBody> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            None => Err(unreachable_service("its client was closed")),
        }
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, ErrorBody> {
        self.send(Sending::new("GET", path))
    }

    /// Sends a request and reads the JSON answer; null if the answer has no body.
    pub(super) fn send(&self, sending: Sending) -> Result<Value, ErrorBody> {
        let bytes = self.whole(sending, ANSWER)?;
        match bytes.is_empty() {
            true => Ok(Value::Null),
            false => serde_json::from_slice(&bytes).map_err(|_| malformed()),
        }
    }

    /// Sends a request and reads the bytes of the answer.
    pub(super) fn bytes(&self, sending: Sending) -> Result<Vec<u8>, ErrorBody> {
        self.whole(sending, FILE)
    }

    fn whole(&self, sending: Sending, most: usize) -> Result<Vec<u8>, ErrorBody> {
        let within = sending.within;
        self.block(async {
            let read = async {
                let mut response = self.open(sending).await?;
                read(&mut response, most).await
            };
            tokio::time::timeout(within, read)
                .await
                .map_err(|_| unreachable_service("it did not answer in time"))?
        })
    }

    /// Sends a request and returns the answer before its body.
    pub(super) async fn open(&self, sending: Sending) -> Result<Response, ErrorBody> {
        let method = Method::from_bytes(sending.method.as_bytes()).map_err(|_| malformed())?;
        let mut request = self
            .http
            .request(method, format!("{}{}", self.base, sending.path));
        if let Some(token) = &self.token {
            request = request.header("authorization", token.clone());
        }
        for (name, value) in &sending.headers {
            request = request.header(*name, value);
        }
        if let Some((kind, body)) = sending.body {
            request = request.header("content-type", kind).body(body);
        }
        let mut response = request
            .send()
            .await
            .map_err(|error| unreachable_service(&reason(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = read(&mut response, ANSWER).await.unwrap_or_default();
        Err(problem(status, &body))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn read(response: &mut Response, most: usize) -> Result<Vec<u8>, ErrorBody> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| unreachable_service(&reason(&error)))?
    {
        if chunk.len() > most - bytes.len() {
            return Err(malformed());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Returns the error that the other service reported. An error about our token becomes
/// `wp_codebox_service_unavailable`: our own client did not cause it.
fn problem(status: StatusCode, body: &[u8]) -> ErrorBody {
    let told = serde_json::from_slice(body)
        .ok()
        .and_then(|document| Problem::read(&document));
    match told {
        Some(error)
            if matches!(
                error.code,
                ErrorCode::ServiceTokenRequired
                    | ErrorCode::ServiceScopeMissing
                    | ErrorCode::ServiceRateLimited
            ) =>
        {
            let message = format!(
                "the remote wp-codebox service refused the request: {}",
                error.message
            );
            ErrorBody::new(ErrorCode::ServiceUnavailable, message)
        }
        Some(error) => error,
        None => unreachable_service(&format!("it answered with status {status}")),
    }
}

/// Returns the innermost reason of an error, without the address.
fn reason(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

fn unreachable_service(why: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::ServiceUnavailable,
        format!(
            "the remote wp-codebox service cannot be used: {why}; check that it runs and that its address and certificates are right"
        ),
    )
}

pub(super) fn malformed() -> ErrorBody {
    ErrorBody::new(
        ErrorCode::ServiceUnavailable,
        "the remote wp-codebox service sent an answer that this version does not understand; use the same version on both sides",
    )
}

/// Returns the header with a token. The error does not show it.
fn bearer(token: &str) -> Result<reqwest::header::HeaderValue, ErrorBody> {
    let invalid = || {
        ErrorBody::new(
            ErrorCode::InputInvalid,
            "the token file of the other service must have one token and nothing else",
        )
    };
    if token.is_empty() || token.len() > TOKEN || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(invalid());
    }
    let mut value = reqwest::header::HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| invalid())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns a path of escaped segments.
pub(super) fn path(segments: &[&str]) -> String {
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        path.push_str(&escaped(segment).replace('/', "%2F"));
    }
    path
}

/// Percent-encodes everything but unreserved characters and slashes.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                escaped.push(char::from(byte));
            }
            _ => {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_for_paths_and_queries() {
        assert_eq!(escaped("/a b/ü?x=1&y"), "/a%20b/%C3%BC%3Fx%3D1%26y");
        assert_eq!(path(&["v1", "a/b"]), "/v1/a%2Fb");
    }
}
