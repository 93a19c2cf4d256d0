//! Builds the evidence (a record of all executions) of a step that is repeated by its
//! continuation: `wp-codebox/recipe-continuation-evidence/v1`.

use super::execution::{PREVIEW_BYTES, sha256};
use super::{Continuation, Failure, Loop, State};
use serde_json::{Value, json};

/// Schema id of the evidence: the record of all executions of a repeated step.
pub const CONTINUATION_EVIDENCE: &str = "wp-codebox/recipe-continuation-evidence/v1";
fn policy(continuation: &Continuation) -> Value {
    let equals = continuation.predicate.equals.to_string();
    let mut predicate = json!({
        "pointer": continuation.predicate.pointer,
        "equalsBytes": equals.len(),
        "equalsSha256": sha256(&equals),
    });
    if equals.len() <= PREVIEW_BYTES {
        predicate["equals"] = continuation.predicate.equals.clone();
    } else {
        predicate["equalsTruncated"] = json!(true);
    }
    json!({
        "maxIterations": continuation.max_iterations,
        "while": predicate,
        "inputMappings": continuation.input_mappings,
    })
}

impl Loop<'_> {
    /// Returns the record of all executions so far. If the step has neither completed nor failed,
    /// because the run ended between two executions, the status is `failed`.
    #[must_use]
    pub fn evidence(&self) -> Value {
        let status = match self.state {
            State::Completed => "completed",
            State::Failed(Failure::MaxIterationsExhausted { .. }) => "exhausted",
            State::Running | State::Failed(_) => "failed",
        };
        let mut document = json!({
            "schema": CONTINUATION_EVIDENCE,
            "policy": policy(self.continuation),
            "status": status,
            "iterations": self.executions.len(),
            "executions": self.executions,
        });
        if let State::Failed(failure) = &self.state {
            document["diagnostics"] =
                json!([{"code": failure.code(), "message": failure.to_string()}]);
        }
        document
    }
}
