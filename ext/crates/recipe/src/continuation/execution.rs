//! One execution of a continued step, as its evidence shows it.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wp_codebox_contracts::hex;

/// Longest JSON that is shown; of what is longer, size and digest remain.
pub(super) const PREVIEW_BYTES: usize = 4096;

/// What came of one execution of the step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Executed<'a> {
    /// It could not be executed, or was stopped.
    Error,
    /// It ended and printed no JSON.
    Ended {
        /// Its exit code.
        exit_code: i32,
    },
    /// It ended and printed JSON.
    Answered {
        /// Its exit code.
        exit_code: i32,
        /// Its JSON.
        result: &'a Value,
    },
}

impl Executed<'_> {
    pub(super) const fn exit_code(self) -> i32 {
        match self {
            Self::Error => 1,
            Self::Ended { exit_code } | Self::Answered { exit_code, .. } => exit_code,
        }
    }
}

/// An execution as the evidence shows it.
pub(super) fn shown(iteration: u32, args: &[String], executed: Executed<'_>) -> Value {
    let args = serde_json::to_string(args).unwrap_or_default();
    let mut row = json!({
        "iteration": iteration,
        "exitCode": executed.exit_code(),
        "argsSha256": sha256(&args),
    });
    if let Executed::Answered { result, .. } = executed {
        let text = result.to_string();
        row["resultBytes"] = json!(text.len());
        row["resultSha256"] = json!(sha256(&text));
        if text.len() <= PREVIEW_BYTES {
            row["result"] = result.clone();
        } else {
            row["resultTruncated"] = json!(true);
        }
    }
    row
}

/// Lowercase hex sha256 of a text.
pub(super) fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
