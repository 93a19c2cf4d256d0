//! Tools that run programs: shell, PHP, WP-CLI, WordPress abilities, HTTP requests, tests.

use super::reading::{answer_of, number, word};
use super::shown;
use super::{Arguments, GuestExecutor, ToolError, ToolOutput, ToolResult, Tools};
use crate::ToolStatus;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Duration;
use wp_codebox_contracts::{CommandCall, GuestPath};
use wp_codebox_runtime::{Call, ExecutionEnd, Step, check_program, command_program};

/// Paths of the guest programs that call a WordPress ability and that send an HTTP request.
const ABILITY: &str = "/opt/codebox/guest/call-ability.php";
const HTTP_REQUEST: &str = "/opt/codebox/guest/http-request.php";
/// Maximum number of bytes of a program's standard output, and of its standard error, that the
/// model gets.
pub(super) const STREAM_BYTES: usize = 20 * 1024;
/// Maximum number of bytes of one test command's output that the model gets.
const TEST_BYTES: usize = 12 * 1024;
/// Maximum length of a command line that the model may run, in bytes.
const COMMAND_BYTES: usize = 100_000;
/// Maximum number of bytes of an argument that the journal contains.
const ARGUMENT_BYTES: usize = 2000;

impl<H: GuestExecutor> Tools<H> {
    pub(super) fn terminal(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let command = arguments.text("command")?;
        let timeout = arguments.timeout(120)?;
        if command.trim().is_empty() || command.len() > COMMAND_BYTES || command.contains('\0') {
            return Err(ToolError::InvalidCall(format!(
                "command must have 1 to {COMMAND_BYTES} bytes without NUL; put a longer script into a file"
            )));
        }
        let argv = ["/bin/sh", "-c", command].map(str::to_owned).to_vec();
        let mut call = self.program(arguments.tool(), recorded("command", command), argv);
        let cwd = arguments.text_or("cwd", "")?;
        if !cwd.is_empty() {
            let path = match cwd.starts_with('/') {
                true => cwd.to_owned(),
                false => format!("{}/{cwd}", self.context.cwd),
            };
            call.cwd =
                GuestPath::new(path.trim_end_matches('/')).map_err(|e| format!("cwd: {e}"))?;
        }
        self.run_shown(&call, timeout)
    }

    /// Runs a program and returns its output. A call whose program exits with a non-zero code is
    /// successful, because the model interprets the code; a call whose program reaches its timeout
    /// is failed.
    fn run_shown(&mut self, call: &Call, timeout: Duration) -> ToolResult {
        let step = self.run(call, timeout)?;
        let status = match step.result.stopped {
            true => ToolStatus::Failed,
            false => ToolStatus::Ok,
        };
        Ok(ToolOutput {
            status,
            ..ToolOutput::ok(program_shown(&step, timeout, STREAM_BYTES))
        })
    }

    /// Runs one program without a shell, so shell metacharacters have no meaning.
    pub(super) fn one_program(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let command = arguments.text("command")?;
        let mut argv = vec![command.to_owned()];
        argv.extend(arguments.texts("args")?.into_iter().map(str::to_owned));
        let bytes: usize = argv.iter().map(|word| word.len() + 1).sum();
        let broken = argv.iter().any(|word| word.contains('\0'));
        if command.trim().is_empty() || bytes > COMMAND_BYTES || broken {
            return Err(ToolError::InvalidCall(format!(
                "command and args must have 1 to {COMMAND_BYTES} bytes without NUL"
            )));
        }
        let timeout = Duration::from_secs(120);
        let shown_line = argv.join(" ");
        let call = self.program(arguments.tool(), recorded("command", &shown_line), argv);
        self.run_shown(&call, timeout)
    }

    pub(super) fn run_php(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let code = arguments.text("code")?.trim_start();
        let code = code.strip_prefix("<?php").unwrap_or(code);
        let timeout = arguments.timeout(120)?;
        self.registry_command(arguments.tool(), &format!("code={code}"), timeout)
    }

    pub(super) fn wp_cli(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let line = arguments.text("command")?.trim_start();
        let line = line.strip_prefix("wp ").unwrap_or(line);
        let timeout = arguments.timeout(120)?;
        if line.trim().is_empty() || line.len() > COMMAND_BYTES {
            return Err(ToolError::InvalidCall(format!(
                "command must have 1 to {COMMAND_BYTES} bytes"
            )));
        }
        self.registry_command(arguments.tool(), &format!("command={line}"), timeout)
    }

    /// Runs a command of the command registry, such as `wordpress.run-php`, as a recipe would.
    fn registry_command(&mut self, tool: &str, argument: &str, timeout: Duration) -> ToolResult {
        let wanted = CommandCall {
            command: tool.to_owned(),
            args: vec![argument.to_owned()],
        };
        let program = command_program(&wanted, &self.context.mounts, &self.context.cwd)
            .map_err(|e| ToolError::InvalidCall(e.message))?;
        let call = Call {
            args: vec![shown::bounded(argument, ARGUMENT_BYTES)],
            phase: "tool",
            env: self.context.environment.clone(),
            ..program
        };
        let step = self.run(&call, timeout)?;
        Ok(ToolOutput {
            status: status_of(&step),
            ..ToolOutput::ok(program_shown(&step, timeout, STREAM_BYTES))
        })
    }

    pub(super) fn tests(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let timeout = arguments.timeout(600)?;
        let given = arguments.text_or("command", "")?;
        let lines = match given.trim() {
            "" => self.context.checks.clone(),
            line => vec![line.to_owned()],
        };
        if lines.is_empty() {
            return Err("the task has no checks; give a test command".into());
        }
        let mut text = String::new();
        let mut passed = 0;
        for line in &lines {
            let program = match check_program(line, &self.context.cwd) {
                Ok(program) if !program.argv.is_empty() => program,
                _ => {
                    return Err(ToolError::InvalidCall(format!(
                        "command {line:?} cannot be split into words"
                    )));
                }
            };
            let call = Call {
                command: arguments.tool().to_owned(),
                phase: "tool",
                env: self.context.environment.clone(),
                ..program
            };
            let _ = writeln!(text, "$ {}", shown::bounded(line, 500));
            match self.run(&call, timeout) {
                Ok(step) => {
                    let good = step.result.end == ExecutionEnd::Exited { code: 0 };
                    passed += usize::from(good);
                    text.push_str(&program_shown(&step, timeout, TEST_BYTES));
                }
                Err(ToolError::ProgramEnded(why)) => text.push_str(&why),
                Err(other) => return Err(other),
            }
            text.push('\n');
        }
        let _ = write!(
            text,
            "{passed} of {} passed in this sandbox. The deciding run happens later in a fresh sandbox that contains only the changed files.",
            lines.len()
        );
        Ok(ToolOutput::ok(text))
    }

    pub(super) fn ability(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let name = arguments.text("name")?;
        let timeout = arguments.timeout(120)?;
        let request = match arguments.object("input")? {
            Some(input) => json!({"name": name, "input": input}),
            None => json!({"name": name}),
        };
        let answer = self.json_program(
            arguments.tool(),
            ABILITY,
            recorded("name", name),
            &request,
            timeout,
        )?;
        let result = answer.get("result").unwrap_or(&Value::Null);
        let text = serde_json::to_string_pretty(result).unwrap_or_default();
        Ok(ToolOutput::ok(shown::bounded(&text, 2 * STREAM_BYTES)))
    }

    pub(super) fn http_request(&mut self, arguments: &Arguments<'_>) -> ToolResult {
        let path = arguments.text("path")?;
        let method = arguments.text_or("method", "GET")?.to_ascii_uppercase();
        let timeout = arguments.timeout(60)?;
        if !path.starts_with('/') || path.starts_with("//") || path.len() > 8000 {
            return Err(
                "path must begin with a single /; requests go only to the sandbox's own WordPress"
                    .into(),
            );
        }
        let request = json!({
            "method": method,
            "path": path,
            "headers": arguments.object("headers")?.unwrap_or_default(),
            "body": arguments.text_or("body", "")?,
            "user_id": arguments.number("user_id", 0, 0..=1 << 40)?,
        });
        let shown = vec![
            format!("method={method}"),
            format!("path={}", shown::bounded(path, 500)),
        ];
        let answer = self.json_program(arguments.tool(), HTTP_REQUEST, shown, &request, timeout)?;
        let mut text = format!("{} {path}: status {}\n", method, number(&answer, "status"));
        let headers = answer.get("headers").and_then(Value::as_object);
        for (name, value) in headers.into_iter().flatten() {
            let _ = writeln!(text, "{name}: {}", value.as_str().unwrap_or_default());
        }
        let body = word(&answer, "body");
        let _ = write!(text, "\n{}", shown::bounded(body, 2 * STREAM_BYTES));
        Ok(ToolOutput::ok(text))
    }

    /// Runs a guest program that gets a JSON request on standard input and prints a JSON result.
    fn json_program(
        &mut self,
        tool: &str,
        program: &str,
        shown: Vec<String>,
        request: &Value,
        timeout: Duration,
    ) -> Result<Map<String, Value>, ToolError> {
        let argv = vec!["php".to_owned(), program.to_owned()];
        let call = Call {
            stdin: Some(request.to_string().into_bytes()),
            ..self.program(tool, shown, argv)
        };
        let step = self.run(&call, timeout)?;
        if step.result.stopped {
            return Err(ToolError::InvalidCall(format!(
                "the program was ended by its timeout after {} seconds",
                timeout.as_secs()
            )));
        }
        // WordPress and plugins may print earlier lines; the JSON is the last line.
        let last = step
            .stdout
            .trim_end()
            .rsplit('\n')
            .next()
            .unwrap_or_default();
        answer_of(last.as_bytes(), &step.stderr).map(|(answer, _)| answer)
    }
}

fn recorded(name: &str, value: &str) -> Vec<String> {
    vec![format!("{name}={}", shown::bounded(value, ARGUMENT_BYTES))]
}

fn status_of(step: &Step) -> ToolStatus {
    match step.result.end {
        ExecutionEnd::Exited { code: 0 } => ToolStatus::Ok,
        _ => ToolStatus::Failed,
    }
}

/// Describes for the model how a program ended and what it printed.
pub(super) fn program_shown(step: &Step, timeout: Duration, most: usize) -> String {
    let mut text = match (&step.result.end, step.result.stopped) {
        (_, true) => format!(
            "ended after {} seconds by its timeout, with its child processes; the sandbox is still running\n",
            timeout.as_secs()
        ),
        (ExecutionEnd::Exited { code }, _) => format!("exit code {code}\n"),
        (ExecutionEnd::Signalled { signal }, _) => format!("ended by signal {signal}\n"),
        _ => String::new(),
    };
    for (name, output) in [("stdout", &step.stdout), ("stderr", &step.stderr)] {
        let output = output.trim_end_matches('\n');
        if !output.is_empty() {
            let _ = writeln!(text, "--- {name}\n{}", shown::bounded(output, most));
        }
    }
    if step.stdout.is_empty() && step.stderr.is_empty() {
        text.push_str("(no output)\n");
    }
    if step.result.output_truncated {
        text.push_str("(more output was dropped at the run's output limit)\n");
    }
    if step.result.disk_full {
        text.push_str("(the sandbox's disk is full)\n");
    }
    text
}
