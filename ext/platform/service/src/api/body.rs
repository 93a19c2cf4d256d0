//! Bodies of requests, bounded in size and time.

use crate::access::ServerState;
use crate::config::Bounds;
use crate::problem::{ApiResult, Problem};
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio::time::timeout;
use wp_codebox_contracts::{ErrorCode, hex, parse_json};

/// A request body, parsed from JSON. Unknown members are errors.
#[derive(Debug)]
pub(crate) struct Json<T> {
    pub value: T,
    /// SHA-256 of the bytes as they were sent.
    pub sha256: String,
}

impl<T: DeserializeOwned> FromRequest<ServerState> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ServerState) -> Result<Self, Problem> {
        let is_json = content_type(request.headers())
            .is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
        if !is_json {
            return Err(Problem::invalid(
                "the body must be JSON with the header Content-Type: application/json",
            ));
        }
        let bounds = state.bounds();
        let bytes = read(request, bounds.body, &bounds).await?;
        let value = parse(&bytes)?;
        Ok(Self {
            value,
            sha256: hex(&Sha256::digest(&bytes)),
        })
    }
}

/// Parses a document. The error message names an unknown or missing member, but quotes no value: a
/// value may be a secret.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    parse_json(bytes).map_err(|error| {
        let said = error.to_string();
        let (said, _) = said.rsplit_once(" at line ").unwrap_or((&said, ""));
        let named = ["unknown field", "missing field", "duplicate field"]
            .iter()
            .any(|start| said.starts_with(start));
        let shown: String = said.chars().take(300).collect();
        let message = match named {
            true => format!("the body is not valid: {shown}"),
            false => format!(
                "the body is not valid at line {} column {}; /v1/openapi.json describes it",
                error.line(),
                error.column()
            ),
        };
        Problem::invalid(message)
    })
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

/// Reads a whole body of at most `most` bytes.
pub(crate) async fn read(request: Request, most: usize, bounds: &Bounds) -> ApiResult<Bytes> {
    let too_large = || {
        Problem::new(
            ErrorCode::ServiceRequestTooLarge,
            format!("the body has more than {most} bytes, the limit; send less"),
        )
    };
    if announced(request.headers())
        .is_some_and(|length| length > u64::try_from(most).unwrap_or(u64::MAX))
    {
        return Err(too_large());
    }
    let collected = collect(request.into_body(), most, bounds.body_idle);
    match timeout(bounds.body_time, collected).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => Err(too_large()),
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(too_slow()),
    }
}

/// Largest body, in bytes, that is read before the request is checked.
const SMALL: u64 = 64 * 1024;

/// Reads a small body of a known length before the request is checked: an answer before the end of
/// the body closes the connection, so a client that still sends would not get a refusal. Other
/// bodies are not read here.
pub(crate) async fn receive_small(request: &mut Request, bounds: &Bounds) -> ApiResult<()> {
    if !announced(request.headers()).is_some_and(|length| (1..=SMALL).contains(&length)) {
        return Ok(());
    }
    let (parts, body) = std::mem::take(request).into_parts();
    let read = read(
        Request::from_parts(parts.clone(), body),
        bounds.body,
        bounds,
    )
    .await?;
    *request = Request::from_parts(parts, Body::from(read));
    Ok(())
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

fn too_slow() -> Problem {
    Problem::new(
        ErrorCode::ServiceRequestTimeout,
        "the body did not arrive in time; send it without pauses",
    )
}

/// Returns `None` for a body of more than `most` bytes.
async fn collect(mut body: Body, most: usize, idle: Duration) -> ApiResult<Option<Bytes>> {
    let mut all = BytesMut::new();
    loop {
        match timeout(idle, body.frame()).await {
            Err(_) => return Err(too_slow()),
            Ok(None) => return Ok(Some(all.freeze())),
            Ok(Some(Err(_))) => {
                return Err(Problem::invalid(
                    "the body ended before its announced length; send all of it",
                ));
            }
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                if data.len() > most - all.len() {
                    return Ok(None);
                }
                all.extend_from_slice(&data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only parsed")]
    struct Input {
        ttl: u32,
    }

    #[test]
    fn request_body_may_have_whole_numbers_in_any_form_and_an_error_names_its_member_and_quotes_no_value()
     {
        for whole in ["1", "1.0", "1e0"] {
            assert!(parse::<Input>(format!("{{\"ttl\": {whole}}}").as_bytes()).is_ok());
        }
        assert!(parse::<Input>(b"{\"ttl\": 1.5}").is_err());
        let said = |body: &str| {
            let problem = parse::<Input>(body.as_bytes()).unwrap_err();
            problem.body().message.clone()
        };
        assert!(said("{\"ttl\": 1, \"tll\": 2}").contains("unknown field `tll`"));
        assert!(said("{}").contains("missing field `ttl`"));
        let secret = said("{\"ttl\": \"hunter2\"}");
        assert!(
            !secret.contains("hunter2") && secret.contains("line 1"),
            "{secret}"
        );
    }

    #[tokio::test]
    async fn receive_small_reads_a_small_body_and_leaves_a_large_one_unread() {
        for (length, is_small) in [(3, true), (100_000, false)] {
            let (sent, asked) = (vec![b'x'; length], Arc::new(AtomicBool::new(false)));
            let seen = Arc::clone(&asked);
            let body = http_body_util::Full::from(sent.clone()).map_frame(move |frame| {
                seen.store(true, Ordering::Relaxed);
                frame
            });
            let request = Request::builder().header(header::CONTENT_LENGTH, length);
            let mut request = request.body(Body::new(body)).unwrap();
            let bounds = Bounds::default();
            receive_small(&mut request, &bounds).await.unwrap();
            assert_eq!(asked.load(Ordering::Relaxed), is_small);
            assert_eq!(read(request, length, &bounds).await.unwrap(), sent);
        }
    }
}
