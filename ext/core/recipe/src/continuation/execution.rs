//! Describes one execution of a repeated step for the evidence (the record of all executions).

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wp_codebox_contracts::hex;

/// Maximum size of a step's JSON result, in bytes, up to which the evidence contains the result
/// itself. Of a larger result the evidence contains only the size and the digest.
pub(super) const PREVIEW_BYTES: usize = 4096;

/// How one execution of a repeated step ended, and what it printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Executed<'a> {
    /// The step could not be executed or was stopped.
    Error,
    /// The step ended and printed no JSON.
    Ended {
        /// Exit code of the program.
        exit_code: i32,
    },
    /// The step ended and printed JSON.
    Answered {
        /// Exit code of the program.
        exit_code: i32,
        /// The JSON value that the step printed.
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

/// Returns the entry for one execution in the evidence.
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

/// Returns the SHA-256 of a text in lower-case hex.
pub(super) fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
