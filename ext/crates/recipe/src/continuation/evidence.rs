//! What a continuation leaves for a reader: `wp-codebox/recipe-continuation-evidence/v1`.

use super::execution::{PREVIEW_BYTES, sha256};
use super::{Continuation, Failure, Loop, State};
use serde_json::{Map, Value, json};

/// Schema of the evidence.
pub const CONTINUATION_EVIDENCE: &str = "wp-codebox/recipe-continuation-evidence/v1";
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
