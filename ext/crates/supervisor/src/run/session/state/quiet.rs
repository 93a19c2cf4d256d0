//! The database is brought to rest before it is copied.
//!
//! A program in the guest writes what is in the log into the database and checks it. Its answer
//! is the guest's word: it can only keep a state from being kept.

use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ExecutionId, GuestPath, OutputStream};
use wp_codebox_runtime::{Execution, ExecutionEnd, Runtime};

const PROGRAM: &str = "/opt/codebox/guest/settle-database.php";
const PATIENCE: Duration = Duration::from_secs(60);
const ANSWER: u64 = 64 * 1024;

/// Settles the database of the guest.
pub(super) fn settle(runtime: &mut dyn Runtime, deadline: Instant) -> Result<(), ErrorBody> {
    let internal = |e: String| ErrorBody::new(ErrorCode::Internal, e);
    let now = Instant::now();
    let execution = Execution {
        id: ExecutionId::new("settle-database").map_err(|e| internal(e.to_string()))?,
        argv: vec!["php".to_owned(), PROGRAM.to_owned()],
        env: BTreeMap::new(),
        cwd: GuestPath::new("/tmp").map_err(|e| internal(e.to_string()))?,
        stdin: None,
        output_bytes: ANSWER,
        stop_at: (now + PATIENCE).min(deadline),
        deadline,
    };
    let mut output = Vec::new();
    let done = runtime.execute(&execution, &mut |stream, bytes| {
        if stream == OutputStream::Stdout {
            output.extend_from_slice(bytes);
        }
    })?;
    match done.end {
        ExecutionEnd::Exited { code: 0 } => settled(&output),
        ExecutionEnd::NotStarted { error } | ExecutionEnd::LimitReached { error } => Err(error),
        ExecutionEnd::Exited { .. } | ExecutionEnd::Signalled { .. } => Err(damaged(
            "the program that settles it did not come to its end",
        )),
        ExecutionEnd::GuestDied { death } => Err(death.attach_to(ErrorBody::new(
            ErrorCode::RunFailed,
            format!("the sandbox was lost while its state was to be kept: {death}"),
        ))),
        ExecutionEnd::TimedOut | ExecutionEnd::Cancelled => Err(ErrorBody::new(
            ErrorCode::RunFailed,
            "the sandbox ended while its state was to be kept",
        )),
    }
}

fn settled(output: &[u8]) -> Result<(), ErrorBody> {
    let answer: Value = serde_json::from_slice(output).unwrap_or_default();
    match answer["database"].as_str() {
        Some("settled" | "absent") => Ok(()),
        Some("busy") => Err(ErrorBody::new(
            ErrorCode::SandboxInUse,
            "the database of the sandbox is in use: wait until its programs have ended, or stop them",
        )),
        Some("damaged") => Err(damaged("its own check failed")),
        Some(_) | None => Err(damaged("nothing is known of it")),
    }
}

fn damaged(why: &str) -> ErrorBody {
    let message = format!("the database of the sandbox cannot be kept: {why}");
    ErrorBody::new(ErrorCode::RunFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_settled_database_is_kept() {
        settled(br#"{"database":"settled"}"#).unwrap();
        settled(br#"{"database":"absent"}"#).unwrap();
        let code = |output: &[u8]| settled(output).unwrap_err().code;
        assert_eq!(code(br#"{"database":"busy"}"#), ErrorCode::SandboxInUse);
        for output in [&br#"{"database":"damaged"}"#[..], b"", b"settled", b"{}"] {
            assert_eq!(code(output), ErrorCode::RunFailed);
        }
    }
}
