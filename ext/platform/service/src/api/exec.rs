//! Runs a program in a sandbox. The answer is the lines of the control socket, one JSON document
//! each: `started`, `output`, then `exited` or `error`.

use super::body::Json as Input;
use crate::access::Caller;
use crate::extension::{ExecOutput, ExecRequest};
use crate::problem::{ApiResult, Problem};
use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::io;
use tokio::sync::mpsc;
use wp_codebox_contracts::{ErrorBody, ErrorCode, OutputStream};

/// Media type of the answer.
pub(crate) const LINES: &str = "application/x-ndjson";
/// Media type of the same answer for generated clients that do not know `application/x-ndjson`.
const TEXT_LINES: &str = "text/plain; charset=utf-8";
/// Maximum number of lines queued for a client that does not read. Then the program blocks.
const WAITING: usize = 8;
/// Maximum number of bytes of output in one line.
const CHUNK: usize = 64 * 1024;
/// Maximum number of arguments.
const ARGUMENTS: usize = 1024;

/// Writes lines for the client.
struct Lines(mpsc::Sender<Value>);

impl Lines {
    fn send(&self, line: Value) -> io::Result<()> {
        self.0
            .blocking_send(line)
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl ExecOutput for Lines {
    fn started(&mut self, execution_id: &str) -> io::Result<()> {
        self.send(json!({"type": "started", "execution_id": execution_id}))
    }

    fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        for chunk in bytes.chunks(CHUNK) {
            self.send(match std::str::from_utf8(chunk) {
                Ok(text) => json!({"type": "output", "stream": stream, "text": text}),
                Err(_) => {
                    json!({"type": "output", "stream": stream, "base64": STANDARD.encode(chunk)})
                }
            })?;
        }
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// Returns the media type of the answer: text only for a client that asks for it and not for lines
/// of JSON.
fn media(headers: &HeaderMap) -> &'static str {
    let accepts = |media: &str| {
        let values = headers.get_all(header::ACCEPT).iter();
        values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|range| range.split(';').next().unwrap_or_default().trim() == media)
    };
    match accepts("text/plain") && !accepts(LINES) {
        true => TEXT_LINES,
        false => LINES,
    }
}

pub(super) async fn exec(
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Input<ExecRequest>,
) -> ApiResult<Response> {
    let sandbox = caller.usable_sandbox(&id).await?;
    let request = body.value;
    check(&request)?;
    let (sender, mut lines) = mpsc::channel(WAITING);
    sandbox.exec(request, Lines(sender), |output, end| {
        let last = match end {
            Ok(end) => {
                let mut line = json!({"type": "exited"});
                if let (Value::Object(line), Value::Object(end)) = (&mut line, json!(end)) {
                    line.extend(end);
                }
                line
            }
            Err(error) => json!({"type": "error", "error": error}),
        };
        let _ = output.send(last);
    })?;
    // An error before the program started becomes the HTTP answer.
    let first = lines.recv().await.ok_or_else(|| {
        Problem::new(
            ErrorCode::Internal,
            "the program was lost because of a defect of the service; the service's log has the detail",
        )
    })?;
    if first["type"] == "error"
        && let Ok(error) = serde_json::from_value::<ErrorBody>(first["error"].clone())
    {
        return Err(error.into());
    }
    let lines = stream::unfold((Some(first), lines), |(first, mut lines)| async {
        let line = match first {
            Some(line) => line,
            None => lines.recv().await?,
        };
        let text = Bytes::from(format!("{line}\n"));
        Some((Ok::<_, Infallible>(text), (None, lines)))
    });
    let headers = [
        (header::CONTENT_TYPE, media(&headers)),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}

fn check(request: &ExecRequest) -> ApiResult<()> {
    let fits = (1..=ARGUMENTS).contains(&request.argv.len())
        && request.argv.iter().all(|argument| !argument.contains('\0'))
        && request
            .argv
            .first()
            .is_some_and(|program| !program.is_empty());
    if !fits {
        return Err(Problem::invalid(
            "argv must have 1 to 1024 texts without null bytes, and the first must not be empty",
        ));
    }
    if request.stdin.is_some() && request.stdin_base64.is_some() {
        return Err(Problem::invalid("send stdin or stdin_base64, not both"));
    }
    let base64 = request.stdin_base64.as_deref().unwrap_or_default();
    if STANDARD.decode(base64).is_err() {
        return Err(Problem::invalid("stdin_base64 must be base64 with padding"));
    }
    if request.timeout_ms == Some(0) {
        return Err(Problem::invalid("timeout_ms must be above 0"));
    }
    Ok(())
}
