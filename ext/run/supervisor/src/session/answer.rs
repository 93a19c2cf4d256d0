//! Derives the result of a command from how its program ended and from the JSON document that the
//! program printed.
//!
//! The document comes from the guest and is untrusted: a command with a known schema must name that
//! schema, and a failure's code and message are stored only as data.

use super::ending::stop_of;
use serde_json::{Map, Value, json};
use std::time::Duration;
use wp_codebox_contracts::{
    CommandCall, CommandResult, CommandStatus, ErrorBody, ErrorCode, schema_id,
};
use wp_codebox_policy::{CommandDescriptor, GuestProgram, Handler, arg_value};
use wp_codebox_runtime::{Call, ExecutionEnd, Step, Stop};

/// Maximum length of an error message that a guest program reports, in characters.
const SENTENCE: usize = 1000;
/// Maximum length of an error code that a guest program reports, in characters.
const WORD: usize = 64;

/// Returns the result of a command from how its program ended and what it printed.
pub(super) fn result(
    found: &CommandDescriptor,
    call: &Call,
    step: &Step,
    timeout: Duration,
) -> CommandResult {
    let (stdout, stderr) = (step.stdout.clone(), step.stderr.clone());
    let mut result = CommandResult::of_output(&call.command, CommandStatus::Ok, stdout, stderr);
    result.error = match found.handler {
        Handler::Program(GuestProgram::File(_)) => {
            broken(call, step, timeout).or_else(|| document(found, step, result.json.as_ref()))
        }
        Handler::Program(GuestProgram::Direct)
        | Handler::Browser
        | Handler::Checkpoint
        | Handler::Mail(_)
        | Handler::Agent
        | Handler::Right { .. }
        | Handler::Unsupported { .. } => broken(call, step, timeout).or_else(|| exited(call, step)),
    };
    if result.error.is_none() && wants_json(call) && result.json.is_none() {
        result.error = Some(failed(call, "output-invalid", "it printed no JSON"));
    }
    if result.error.is_some() {
        result.status = CommandStatus::Error;
    }
    if found.output_schema == Some(schema_id::COMMAND_AGENT_RUN) {
        result.json = Some(agent_run(call, step, result.status, result.json.take()));
    }
    result.diagnostics["timing"] = json!({"durationMs": millis(step)});
    result
}

/// Returns the result document of a program that `command-agent-run` started. It contains the
/// program's output as JSON if the command asks for that.
fn agent_run(call: &Call, step: &Step, status: CommandStatus, output: Option<Value>) -> Value {
    let asked = CommandCall {
        command: call.command.clone(),
        args: call.args.clone(),
    };
    let mut document = json!({
        "schema": schema_id::COMMAND_AGENT_RUN,
        "command": call.command,
        "status": status,
        "target": {
            "command": call.argv.first(),
            "args": call.argv.get(1..).unwrap_or_default(),
        },
        // -1 if the program did not start, or a limit or the end of its guest ended it.
        "exitCode": step.exit_code().unwrap_or(-1),
        "stdout": step.stdout,
        "stderr": step.stderr,
        "stdoutBytes": step.stdout.len(),
        "stderrBytes": step.stderr.len(),
        "diagnostics": {"durationMs": millis(step)},
        "artifactRefs": [],
    });
    if let Some(members) = document.as_object_mut() {
        members.extend(requester(&asked));
    }
    if wants_json(call) {
        document["result"] = json!(output);
    }
    document
}

/// Returns the members of a result document that name session and task of a call.
pub(super) fn requester(call: &CommandCall) -> Map<String, Value> {
    let mut members = Map::new();
    for (argument, member) in [
        ("session-id", "sessionId"),
        ("correlation-id", "correlationId"),
    ] {
        if let Some(value) = arg_value(call, argument).filter(|v| !v.is_empty()) {
            members.insert(member.to_owned(), json!(value));
        }
    }
    members
}

fn millis(step: &Step) -> u64 {
    u64::try_from(step.result.duration.as_millis()).unwrap_or(u64::MAX)
}

fn wants_json(call: &Call) -> bool {
    let mut values = call.args.iter().filter_map(|a| a.split_once('='));
    values.any(|(name, value)| name == "parse-json" && wp_codebox_policy::is_true(value))
}

/// Returns the error for a program that did not exit by itself or never ran.
fn broken(call: &Call, step: &Step, timeout: Duration) -> Option<ErrorBody> {
    if step.result.stopped {
        let message = format!(
            "{} was killed, because its time limit of {} ms passed",
            call.command,
            timeout.as_millis()
        );
        return Some(ErrorBody::new(ErrorCode::RunTimeout, message));
    }
    match &step.result.end {
        ExecutionEnd::Exited { .. } => None,
        ExecutionEnd::Signalled { .. }
        | ExecutionEnd::NotStarted { .. }
        | ExecutionEnd::TimedOut
        | ExecutionEnd::Cancelled
        | ExecutionEnd::LimitReached { .. }
        | ExecutionEnd::GuestDied { .. } => exited(call, step),
    }
}

/// Returns the error of a program that did not end with exit status 0.
fn exited(call: &Call, step: &Step) -> Option<ErrorBody> {
    let body = |code, what: &str| ErrorBody::new(code, format!("{}: {what}", call.command));
    match stop_of(call, step, &[0]) {
        Ok(None) => None,
        Ok(Some(Stop::Failed(error))) | Err(error) => Some(error),
        Ok(Some(Stop::Timeout)) => Some(body(
            ErrorCode::RunTimeout,
            "it was killed, because the time limit of the run passed",
        )),
        Ok(Some(_)) => Some(body(
            ErrorCode::RunCancelled,
            "it was killed, because the run was cancelled",
        )),
    }
}

/// Returns the error that follows from the result document of a program that exited by itself, if
/// any.
fn document(found: &CommandDescriptor, step: &Step, answer: Option<&Value>) -> Option<ErrorBody> {
    let invalid = |what: &str| Some(failed_as(found.id, "output-invalid", what));
    if step.cut.stdout.is_some() {
        return invalid("its output was larger than the output limit; raise the limit");
    }
    let Some(Value::Object(answer)) = answer else {
        let exit = step.exit_code().unwrap_or_default();
        return invalid(&format!(
            "it printed no JSON document and exited with {exit}; {}",
            last_line(&step.stderr)
        ));
    };
    if let Some(error) = answer.get("error").filter(|e| !e.is_null()) {
        return Some(refused(found.id, error));
    }
    match (step.exit_code(), found.output_schema) {
        (Some(0), Some(schema)) if answer.get("schema").and_then(Value::as_str) != Some(schema) => {
            invalid(&format!(
                "its JSON output does not have the schema {schema}"
            ))
        }
        (Some(0), _) => None,
        (code, _) => invalid(&format!(
            "it exited with {} and gave no reason",
            code.unwrap_or_default()
        )),
    }
}

/// Returns the failure that a program reports. A program may use only two of the product's error
/// codes. Both only say that the call of the command is at fault, so a program that uses them
/// wrongly claims nothing about the run or the host. Any other code is returned only as data.
fn refused(command: &str, error: &Value) -> ErrorBody {
    let text = |name: &str, most: usize| {
        let text = error.get(name).and_then(Value::as_str).unwrap_or_default();
        text.chars().take(most).collect::<String>()
    };
    let word = text("code", WORD);
    let sentence = format!("{command}: {}", text("message", SENTENCE));
    for code in [ErrorCode::InputInvalid, ErrorCode::CommandUnsupported] {
        if code.as_str() == word {
            return ErrorBody::new(code, sentence).with("command", command);
        }
    }
    ErrorBody::new(ErrorCode::CommandFailed, sentence)
        .with("command", command)
        .with("reason", word)
}

fn failed(call: &Call, reason: &str, what: &str) -> ErrorBody {
    failed_as(&call.command, reason, what)
}

fn failed_as(command: &str, reason: &str, what: &str) -> ErrorBody {
    ErrorBody::new(ErrorCode::CommandFailed, format!("{command}: {what}"))
        .with("command", command)
        .with("reason", reason)
}

fn last_line(text: &str) -> String {
    let line = text.trim_end().lines().last().unwrap_or_default();
    match line.trim() {
        "" => "its standard error was empty".to_owned(),
        line => format!(
            "its standard error ended with: {}",
            line.chars().take(SENTENCE).collect::<String>()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use wp_codebox_contracts::GuestPath;
    use wp_codebox_policy::descriptor;
    use wp_codebox_runtime::Cut;
    use wp_codebox_runtime::ExecutionResult;

    fn ended(command: &str, args: &[&str], code: i32, stdout: &str) -> CommandResult {
        let call = Call {
            command: command.to_owned(),
            args: args.iter().map(|a| (*a).to_owned()).collect(),
            phase: "workflow",
            argv: vec!["php".to_owned()],
            env: BTreeMap::new(),
            cwd: GuestPath::new("/tmp").unwrap(),
            stdin: None,
        };
        let step = Step {
            result: ExecutionResult {
                end: ExecutionEnd::Exited { code },
                duration: Duration::from_millis(5),
                output_truncated: stdout.contains('…'),
                disk_full: false,
                stopped: false,
            },
            stdout: stdout.to_owned(),
            stderr: "one\nlast words\n".to_owned(),
            cut: Cut {
                stdout: stdout.contains('…').then_some(9),
                stderr: None,
            },
        };
        result(descriptor(command).unwrap(), &call, &step, Duration::MAX)
    }

    fn reason(result: &CommandResult) -> String {
        let error = result.error.as_ref().unwrap();
        assert_eq!(error.code, ErrorCode::CommandFailed, "{}", error.message);
        let data = error.data.as_ref().unwrap();
        data["reason"].as_str().unwrap().to_owned()
    }

    #[test]
    fn command_output_without_the_expected_schema_is_rejected() {
        let good = r#"{"schema":"wp-codebox/wordpress-nonce/v1","nonce":"a"}"#;
        let fine = ended("wordpress.nonce", &[], 0, good);
        assert_eq!(
            (fine.status, fine.error),
            (CommandStatus::Ok, None),
            "the positive control"
        );
        assert_eq!(fine.json.unwrap()["nonce"], "a");
        for (code, stdout) in [
            (0, r#"{"schema":"wp-codebox/forged/v1"}"#),
            (0, r#"{"nonce":"a"}"#),
            (0, "[1]"),
            (0, "no JSON"),
            (0, ""),
            (0, r#"{"schema":"wp-codebox/wordpress-nonce/v1"} and more"#),
            (1, good),
            (
                0,
                r#"{"schema":"wp-codebox/wordpress-nonce/v1","nonce":"…"}"#,
            ),
        ] {
            let result = ended("wordpress.nonce", &[], code, stdout);
            assert_eq!(result.status, CommandStatus::Error, "{stdout}");
            assert_eq!(reason(&result), "output-invalid", "{stdout}");
        }
        let silent = ended("wordpress.nonce", &[], 255, "");
        assert!(silent.error.unwrap().message.contains("last words"));
    }

    #[test]
    fn error_code_printed_by_a_guest_program_becomes_data_reason_unless_it_is_input_invalid() {
        let told = |word: &str, code| {
            let text = json!({"error": {"code": word, "message": "m".repeat(5000)}}).to_string();
            ended("wordpress.nonce", &[], code, &text)
        };
        let result = told("user-missing", 1);
        assert_eq!(reason(&result), "user-missing");
        assert!(result.error.unwrap().message.len() < 1100);
        // The error code that the program printed takes precedence over its exit status.
        assert_eq!(reason(&told("user-missing", 0)), "user-missing");
        // A guest cannot use these error codes of the product: they are returned only as data.
        for code in [
            ErrorCode::RunCancelled,
            ErrorCode::RunFailed,
            ErrorCode::Internal,
        ] {
            assert_eq!(reason(&told(code.as_str(), 1)), code.as_str());
        }
        let invalid = told("wp_codebox_input_invalid", 1).error.unwrap();
        assert_eq!(invalid.code, ErrorCode::InputInvalid);
    }

    #[test]
    fn program_given_by_the_caller_fails_on_nonzero_exit_or_if_requested_json_is_invalid() {
        let fine = ended("wordpress.run-php", &["code=1"], 0, "no JSON");
        assert_eq!((fine.status, fine.json), (CommandStatus::Ok, None));
        let failed = ended("wordpress.run-php", &["code=1"], 3, "{}");
        let error = failed.error.unwrap();
        assert_eq!(error.code, ErrorCode::RunFailed);
        assert!(error.message.contains("exited with 3"));
        let agent = ["command=x", "parse-json=yes", "session-id=s"];
        let silent = ended("command-agent-run", &agent, 0, "text");
        assert_eq!(reason(&silent), "output-invalid");
        let spoke = ended("command-agent-run", &agent, 0, r#"{"a":1}"#);
        let document = spoke.json.unwrap();
        assert_eq!(document["schema"], schema_id::COMMAND_AGENT_RUN);
        assert_eq!(document["sessionId"], "s");
        assert_eq!(document["result"]["a"], 1);
        assert_eq!(document["command"], "command-agent-run");
        assert_eq!(
            (&document["status"], &document["exitCode"]),
            (&json!("ok"), &json!(0))
        );
        assert_eq!(document["stdout"], r#"{"a":1}"#);
        assert_eq!(document["target"]["command"], "php");
    }
}
