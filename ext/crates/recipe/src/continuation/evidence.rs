//! What a continuation leaves for a reader: `wp-codebox/recipe-continuation-evidence/v1`.

use super::{Continuation, Failure, Loop, State};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Schema of the evidence.
pub const CONTINUATION_EVIDENCE: &str = "wp-codebox/recipe-continuation-evidence/v1";
/// Longest JSON that is shown; of what is longer, size and digest remain.
const PREVIEW_BYTES: usize = 4096;

/// One execution, as it is remembered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Execution(Value);

impl Execution {
    pub(super) fn new(iteration: u32, exit_code: i32, args: &[String], result: &Seen<'_>) -> Self {
        let mut row = Map::new();
        row.insert("iteration".to_owned(), json!(iteration));
        row.insert("exitCode".to_owned(), json!(exit_code));
        let args = serde_json::to_string(args).unwrap_or_default();
        row.insert("argsSha256".to_owned(), json!(sha256(&args)));
        match result {
            Seen::Nothing => {}
            Seen::Json(value) => {
                let text = value.to_string();
                row.insert("resultBytes".to_owned(), json!(text.len()));
                row.insert("resultSha256".to_owned(), json!(sha256(&text)));
                if text.len() <= PREVIEW_BYTES {
                    row.insert("result".to_owned(), (*value).clone());
                } else {
                    row.insert("resultTruncated".to_owned(), json!(true));
                }
            }
        }
        Self(Value::Object(row))
    }
}

/// What an execution printed.
pub(super) enum Seen<'a> {
    Nothing,
    Json(&'a Value),
}

/// Lowercase hex sha256 of a text.
pub(super) fn sha256(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

fn policy(continuation: &Continuation) -> Value {
    let equals = continuation.predicate.equals.to_string();
    let mut predicate = Map::new();
    predicate.insert("pointer".to_owned(), json!(continuation.predicate.pointer));
    predicate.insert("equalsBytes".to_owned(), json!(equals.len()));
    predicate.insert("equalsSha256".to_owned(), json!(sha256(&equals)));
    if equals.len() <= PREVIEW_BYTES {
        predicate.insert("equals".to_owned(), continuation.predicate.equals.clone());
    } else {
        predicate.insert("equalsTruncated".to_owned(), json!(true));
    }
    json!({
        "maxIterations": continuation.max_iterations,
        "while": predicate,
        "inputMappings": continuation.input_mappings,
    })
}

impl Loop<'_> {
    /// The evidence so far; of a loop that was left before its end it says `failed`.
    #[must_use]
    pub fn evidence(&self) -> Value {
        let status = match self.state {
            State::Completed => "completed",
            State::Running | State::Failed(_) => "failed",
            State::Exhausted => "exhausted",
        };
        let mut document = json!({
            "schema": CONTINUATION_EVIDENCE,
            "policy": policy(self.continuation),
            "status": status,
            "iterations": self.executions.len(),
            "executions": self.executions.iter().map(|e| &e.0).collect::<Vec<_>>(),
        });
        let failure = match &self.state {
            State::Failed(failure) => Some(failure.clone()),
            State::Exhausted => Some(Failure::MaxIterationsExhausted {
                most: self.continuation.max_iterations,
            }),
            State::Running | State::Completed => None,
        };
        if let (Some(failure), Value::Object(members)) = (failure, &mut document) {
            members.insert(
                "diagnostics".to_owned(),
                json!([{"code": failure.code(), "message": failure.to_string()}]),
            );
        }
        document
    }
}
