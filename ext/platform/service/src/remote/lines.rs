//! Runs a program through another service and copies the lines of its answer.

use super::client::{Client, Sending, malformed};
use crate::extension::{ExecEnd, ExecOutput};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Response;
use serde::Deserialize;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, ErrorCode, OutputStream};

/// Maximum length of one line in bytes.
const LONGEST: usize = 2 * 1024 * 1024;
/// Time between two checks whether the client is gone.
const CHECK: Duration = Duration::from_millis(500);

/// One line of the answer.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Started {
        execution_id: String,
    },
    Output {
        stream: OutputStream,
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        base64: Option<String>,
    },
    Exited(ExecEnd),
    Error {
        error: ErrorBody,
    },
}

/// Runs a program. The connection to the other service closes when this call returns, so that
/// service kills the program if the client is gone.
pub(super) fn exec(
    client: &Client,
    sending: Sending,
    output: &mut dyn ExecOutput,
) -> Result<ExecEnd, ErrorBody> {
    let mut response = client.block(client.open(sending))?;
    let mut pending = Vec::new();
    loop {
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            if let Some(done) = copy(&line, output) {
                return done;
            }
        }
        if pending.len() > LONGEST {
            return Err(malformed());
        }
        match chunk(client, &mut response)? {
            Chunk::Bytes(bytes) => pending.extend_from_slice(&bytes),
            Chunk::Nothing if output.is_closed() => return Err(gone()),
            Chunk::Nothing => {}
            Chunk::End => {
                return Err(ErrorBody::new(
                    ErrorCode::ServiceUnavailable,
                    "the other service ended the response while the program still ran; the program was killed",
                ));
            }
        }
    }
}

enum Chunk {
    Bytes(bytes::Bytes),
    Nothing,
    End,
}

fn chunk(client: &Client, response: &mut Response) -> Result<Chunk, ErrorBody> {
    client.block(async {
        match tokio::time::timeout(CHECK, response.chunk()).await {
            Err(_) => Ok(Chunk::Nothing),
            Ok(Ok(Some(bytes))) => Ok(Chunk::Bytes(bytes)),
            Ok(Ok(None) | Err(_)) => Ok(Chunk::End),
        }
    })
}

/// Copies one line; returns the result if it is the last one.
fn copy(line: &[u8], output: &mut dyn ExecOutput) -> Option<Result<ExecEnd, ErrorBody>> {
    let Ok(line) = serde_json::from_slice::<Line>(line) else {
        return Some(Err(malformed()));
    };
    let written = match line {
        Line::Exited(end) => return Some(Ok(end)),
        Line::Error { error } => return Some(Err(error)),
        Line::Started { execution_id } => output.started(&execution_id),
        Line::Output {
            stream,
            text: Some(text),
            ..
        } => output.write(stream, text.as_bytes()),
        Line::Output { stream, base64, .. } => match STANDARD.decode(base64.unwrap_or_default()) {
            Ok(bytes) => output.write(stream, &bytes),
            Err(_) => return Some(Err(malformed())),
        },
    };
    written.is_err().then(|| Err(gone()))
}

fn gone() -> ErrorBody {
    ErrorBody::new(
        ErrorCode::RunCancelled,
        "the client that started the program disconnected, so the program was killed; run it again",
    )
}
