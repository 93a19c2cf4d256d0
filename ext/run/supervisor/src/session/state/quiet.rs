//! Makes the database file in the guest complete, so that a copy of it is a valid database.
//!
//! A guest program writes the write-ahead log into the database file and checks the database. The
//! program's report is untrusted: a false report can only prevent a snapshot or make it useless.

use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ExecutionId, GuestPath, OutputStream};
use wp_codebox_runtime::{Execution, ExecutionEnd, Runtime};

const PROGRAM: &str = "/opt/codebox/guest/settle-database.php";
const PATIENCE: Duration = Duration::from_secs(60);
const ANSWER: u64 = 64 * 1024;

/// Writes the write-ahead log into the database file of the guest and checks the database.
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
            "the program that writes the write-ahead log into the database file failed",
        )),
        ExecutionEnd::GuestDied { death } => Err(death.attach_to(ErrorBody::new(
            ErrorCode::RunFailed,
            format!("the sandbox was lost before its snapshot was complete: {death}"),
        ))),
        ExecutionEnd::TimedOut | ExecutionEnd::Cancelled => Err(ErrorBody::new(
            ErrorCode::RunFailed,
            "the sandbox ended before its snapshot was complete",
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
        Some("damaged") => Err(damaged("SQLite's quick_check found damage")),
        Some(_) | None => Err(damaged(
            "the program that checks the database gave no valid report",
        )),
    }
}

fn damaged(why: &str) -> ErrorBody {
    let message = format!("the database of the sandbox cannot be stored: {why}");
    ErrorBody::new(ErrorCode::RunFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `settled`: the write-ahead log is written into the database file and the database is valid.
    #[test]
    fn snapshot_continues_only_if_the_guest_reports_the_database_as_settled_or_absent() {
        settled(br#"{"database":"settled"}"#).unwrap();
        settled(br#"{"database":"absent"}"#).unwrap();
        let code = |output: &[u8]| settled(output).unwrap_err().code;
        assert_eq!(code(br#"{"database":"busy"}"#), ErrorCode::SandboxInUse);
        for output in [&br#"{"database":"damaged"}"#[..], b"", b"settled", b"{}"] {
            assert_eq!(code(output), ErrorCode::RunFailed);
        }
    }
}
