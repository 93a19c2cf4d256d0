//! Result file that a guest program of this product writes, separate from the program's printed
//! output.
//!
//! WordPress and its plugins may print anything, so the program writes its result to a file in the
//! guest's `/tmp`, which the supervisor reads after the program has ended. The file is as untrusted
//! as any output: it is read up to a maximum size, parsed, and treated as a claim of the guest.

use crate::session::guest::GuestContext;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ExecutionId, GuestPath, OutputStream, hex};
use wp_codebox_runtime::{Call, Execution, ExecutionEnd, Runtime, Step, Stop};

/// Maximum size of a result file in the guest, in bytes.
const ANSWER_BYTES: u64 = 2 * 1024 * 1024;
/// Maximum length of a sentence that the guest provides for an error message, in bytes.
const SENTENCE: usize = 500;

/// One of the product's own programs, to run in the guest.
pub(super) struct Program<'a> {
    /// File name of the program in the directory of the product's guest programs.
    pub file: &'a str,
    /// Command name under which the journal records the program.
    pub command: &'a str,
    pub args: Vec<String>,
    pub phase: &'static str,
    /// Standard input of the program as JSON; the path of the result file is added.
    pub input: Map<String, Value>,
}

/// Bounds of a guest program beside the limits of its guest.
pub(super) struct ProgramBounds {
    /// Options of PHP.
    pub php: &'static [&'static str],
    /// Maximum run time.
    pub timeout: Duration,
}

/// How a guest program ended, and its result.
pub(super) struct Answered {
    pub call: Call,
    pub step: Step,
    /// Content of the result file; `None` when the file is missing or is not a JSON object.
    pub answer: Option<Map<String, Value>>,
}

impl Answered {
    /// Returns a text member of the result as one line.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.answer
            .as_ref()
            .and_then(|answer| answer.get(name)?.as_str().map(sentence))
    }

    /// Returns a sentence on how the program ended, for a program that left no result.
    pub(super) fn missing_answer_reason(&self) -> String {
        let how = match self.step.exit_code() {
            _ if self.step.result.stopped => "PHP did not end in time".to_owned(),
            None => "PHP did not exit by itself".to_owned(),
            Some(code) => format!("PHP ended with exit code {code}"),
        };
        let said = [&self.step.stderr, &self.step.stdout];
        let last = said
            .into_iter()
            .find_map(|text| text.lines().map(str::trim).rfind(|line| !line.is_empty()));
        last.map_or(how.clone(), |line| format!("{how}: {}", sentence(line)))
    }
}

/// Returns the text as one line that is safe inside an error message.
pub(super) fn sentence(text: &str) -> String {
    let mut clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if clean.len() > SENTENCE {
        let end = (0..=SENTENCE).rfind(|&at| clean.is_char_boundary(at));
        clean.truncate(end.unwrap_or_default());
        clean.push_str(" …");
    }
    clean
}

/// Runs a program and reads its result file.
pub(super) fn ask(
    guest: &mut GuestContext<'_, '_>,
    program: Program<'_>,
) -> Result<Answered, ErrorBody> {
    let unbounded = ProgramBounds {
        php: &[],
        timeout: Duration::MAX,
    };
    ask_within(guest, program, &unbounded)
}

/// Runs a program with additional bounds and reads its result file.
pub(super) fn ask_within(
    guest: &mut GuestContext<'_, '_>,
    mut program: Program<'_>,
    bounds: &ProgramBounds,
) -> Result<Answered, ErrorBody> {
    let place = result_path()?;
    program.input.insert("answer".to_owned(), json!(place));
    let call = guest.equipped(Call {
        command: program.command.to_owned(),
        args: program.args,
        phase: program.phase,
        argv: std::iter::once("php")
            .chain(bounds.php.iter().copied())
            .map(str::to_owned)
            .chain([format!("/opt/codebox/guest/{}", program.file)])
            .collect(),
        env: [("WP_AGENT_RUNTIME".to_owned(), "1".to_owned())].into(),
        cwd: guest.run.cwd.clone(),
        stdin: Some(Value::Object(program.input).to_string().into_bytes()),
    });
    let bounds = guest.bounds(bounds.timeout);
    let step = guest.recorder.run_within(guest.runtime, &call, bounds)?;
    // The files of a guest that has died cannot be read.
    let alive = matches!(
        step.result.end,
        ExecutionEnd::Exited { .. } | ExecutionEnd::Signalled { .. }
    );
    let answer = if alive {
        read(guest.runtime, &place, guest.run.clock.deadline)?
    } else {
        None
    };
    Ok(Answered { call, step, answer })
}

/// Returns a random path for the result file, which earlier programs of the guest cannot have
/// predicted.
fn result_path() -> Result<String, ErrorBody> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))?;
    Ok(format!("/tmp/.codebox-answer-{}", hex(&bytes)))
}

fn read(
    runtime: &mut dyn Runtime,
    place: &str,
    deadline: Instant,
) -> Result<Option<Map<String, Value>>, ErrorBody> {
    let invalid = |e: &dyn std::fmt::Display| ErrorBody::new(ErrorCode::Internal, e.to_string());
    let execution = Execution {
        id: ExecutionId::new("answer").map_err(|e| invalid(&e))?,
        argv: vec!["cat".to_owned(), place.to_owned()],
        env: Default::default(),
        cwd: GuestPath::new("/tmp").map_err(|e| invalid(&e))?,
        stdin: None,
        output_bytes: ANSWER_BYTES,
        stop_at: deadline,
        deadline,
    };
    let mut bytes = Vec::new();
    let result = runtime.execute(&execution, &mut |stream, piece| match stream {
        OutputStream::Stdout => bytes.extend_from_slice(piece),
        OutputStream::Stderr => {}
    })?;
    let whole = matches!(result.end, ExecutionEnd::Exited { code: 0 }) && !result.output_truncated;
    Ok(match serde_json::from_slice(&bytes) {
        Ok(Value::Object(answer)) if whole => Some(answer),
        Ok(_) | Err(_) => None,
    })
}

/// Returns the reason to stop the run if not only the program but also the guest has ended.
pub(super) fn ended(answered: &Answered) -> Option<Stop> {
    match &answered.step.result.end {
        ExecutionEnd::TimedOut => Some(Stop::Timeout),
        ExecutionEnd::Cancelled => Some(Stop::Cancelled),
        ExecutionEnd::LimitReached { error } => Some(Stop::Failed(error.clone())),
        ExecutionEnd::GuestDied { death } => Some(Stop::Failed(death.attach_to(ErrorBody::new(
            ErrorCode::RunFailed,
            format!("the sandbox was lost while its WordPress was prepared for the run: {death}"),
        )))),
        ExecutionEnd::Exited { .. }
        | ExecutionEnd::Signalled { .. }
        | ExecutionEnd::NotStarted { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_the_guest_becomes_one_line_of_limited_length() {
        assert_eq!(sentence("a\nb\u{1b}[31m"), "a b [31m");
        let long = sentence(&"é".repeat(600));
        assert!(long.len() < 510 && long.ends_with(" …"));
    }

    #[test]
    fn result_file_paths_are_unique() {
        assert_ne!(result_path().unwrap(), result_path().unwrap());
    }
}
