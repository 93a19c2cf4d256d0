//! `command-agent-run` with another registry command as its target: runs that command and wraps
//! its result.

use super::answer::requester;
use super::{Commanded, Session};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CommandCall, CommandResult, CommandStatus, ErrorBody, ErrorCode, schema_id,
};
use wp_codebox_policy::{arg_value, is_true};
use wp_codebox_runtime::requester_variables;

impl Session<'_, '_> {
    /// Runs the target of a call of `command-agent-run`. The policy must allow both commands. The
    /// journal gets an execution of each.
    pub(super) fn agent_target(
        &mut self,
        call: &CommandCall,
        target: &CommandCall,
        timeout: Duration,
    ) -> Result<Commanded, ErrorBody> {
        // Guest programs get session, task and authentication data as environment variables. A
        // registry command gets no variables, so the values are only checked, and copied into the
        // result.
        requester_variables(call)?;
        let started = Instant::now();
        let inner = self.command(target, timeout)?;
        let exit = inner.step.exit_code();
        let (document, error) = wrapped(call, target, &inner.result, exit);
        let mut done = self.carried_out(call, started, &document, error)?;
        done.result.artifact_refs = inner.result.artifact_refs;
        Ok(done)
    }
}

/// Returns the document of the call, and its error if the target failed.
fn wrapped(
    call: &CommandCall,
    target: &CommandCall,
    inner: &CommandResult,
    exit: Option<i32>,
) -> (Value, Option<ErrorBody>) {
    let mut error = inner.error.clone();
    let parse = arg_value(call, "parse-json").is_some_and(is_true);
    if parse && error.is_none() && inner.json.is_none() {
        let message = format!("{}: {} printed no JSON", call.command, target.command);
        let body = ErrorBody::new(ErrorCode::CommandFailed, message);
        error = Some(
            body.with("command", call.command.clone())
                .with("reason", "output-invalid"),
        );
    }
    let status = match error {
        None => CommandStatus::Ok,
        Some(_) => CommandStatus::Error,
    };
    let code = exit.unwrap_or(match status {
        CommandStatus::Ok => 0,
        CommandStatus::Error => 1,
    });
    let mut document = Map::from_iter([
        ("schema".to_owned(), json!(schema_id::COMMAND_AGENT_RUN)),
        ("command".to_owned(), json!(call.command)),
        ("status".to_owned(), json!(status)),
        (
            "target".to_owned(),
            json!({"command": target.command, "args": target.args}),
        ),
        ("exitCode".to_owned(), json!(code)),
        ("stdout".to_owned(), json!(inner.stdout)),
        ("stderr".to_owned(), json!(inner.stderr)),
        ("diagnostics".to_owned(), inner.diagnostics.clone()),
        ("artifactRefs".to_owned(), json!(inner.artifact_refs)),
    ]);
    if parse {
        document.insert("result".to_owned(), json!(inner.json));
    }
    document.extend(requester(call));
    if let Some(error) = &error {
        document.insert("error".to_owned(), json!(error));
    }
    (Value::Object(document), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(command: &str, args: &[&str]) -> CommandCall {
        CommandCall {
            command: command.to_owned(),
            args: args.iter().map(|a| (*a).to_owned()).collect(),
        }
    }

    #[test]
    fn result_of_command_agent_run_contains_the_target_command_with_its_output_and_status() {
        let outer = call(
            "command-agent-run",
            &["command=wordpress.wp-cli", "parse-json=yes", "session-id=s"],
        );
        let target = call("wordpress.wp-cli", &["command=option list"]);
        let result = |text: &str| {
            CommandResult::of_output(
                &target.command,
                CommandStatus::Ok,
                text.to_owned(),
                String::new(),
            )
        };
        let (document, error) = wrapped(&outer, &target, &result("{\"a\":1}"), Some(0));
        assert_eq!(error, None);
        assert_eq!(document["schema"], schema_id::COMMAND_AGENT_RUN);
        assert_eq!(document["command"], "command-agent-run");
        assert_eq!(document["status"], "ok");
        assert_eq!(document["target"]["command"], "wordpress.wp-cli");
        assert_eq!(document["target"]["args"][0], "command=option list");
        assert_eq!(
            (&document["exitCode"], &document["result"]["a"]),
            (&json!(0), &json!(1))
        );
        assert_eq!(document["sessionId"], "s");
        let (document, error) = wrapped(&outer, &target, &result("text"), Some(0));
        assert_eq!(document["status"], "error");
        assert_eq!(error.unwrap().data.unwrap()["reason"], "output-invalid");
    }
}
