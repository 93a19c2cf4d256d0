//! Runs an ability as the agent. An ability is a function that a component, e.g. a plugin,
//! registers in the guest's WordPress.
//!
//! The ability runs as the guest's administrator with the input of the request; the guest also has
//! the task in `/run/codebox/task.json`. The ability's result is recorded separately from its
//! printed output.

use super::answer::{Program, ask};
use crate::session::ending::{AgentEnd, ProgramsEnd, stop_of};
use crate::session::guest::GuestContext;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, RuntimeTask};
use wp_codebox_runtime::{AGENT_COMMAND, ExecutionEnd, Stop};

pub(super) fn run(
    task: &RuntimeTask,
    mut guest: GuestContext<'_, '_>,
) -> Result<ProgramsEnd, ErrorBody> {
    let name = &task.ability;
    let program = Program {
        file: "run-ability.php",
        command: AGENT_COMMAND,
        args: vec![format!("ability={name}")],
        phase: "agent",
        input: Map::from_iter([
            ("ability".to_owned(), json!(name)),
            ("input".to_owned(), json!(task.input)),
        ]),
    };
    let answered = ask(&mut guest, program)?;
    if let Some(answer) = &answered.answer {
        guest.recorder.answered(Value::Object(answer.clone()));
    }
    let failed = |why: String| {
        let error = ErrorBody::new(
            ErrorCode::RuntimeTaskFailed,
            format!("the ability {name} failed: {why}"),
        );
        Ok((Some(Stop::Failed(error)), AgentEnd::Failure))
    };
    let why = || {
        let message = answered.text("message");
        match (answered.text("code"), message) {
            (Some(code), Some(message)) => format!("{message} [{code}]"),
            (_, Some(message)) => message,
            (_, None) => "it gave no reason".to_owned(),
        }
    };
    match (
        answered.text("status").as_deref(),
        &answered.step.result.end,
    ) {
        (Some("completed"), ExecutionEnd::Exited { code: 0 }) => Ok((None, AgentEnd::Success)),
        (Some("failed"), ExecutionEnd::Exited { .. }) => failed(why()),
        // The steps of the recipe did not register the ability. Without a recipe, it disappeared:
        // it was there when the components were checked at the start of the guest.
        (Some("missing"), _) => failed("the guest's WordPress does not register it".to_owned()),
        (_, ExecutionEnd::Exited { .. }) => failed(format!(
            "PHP ended unexpectedly: {}",
            answered.missing_answer_reason()
        )),
        _ => {
            let stop = stop_of(&answered.call, &answered.step, &[])?;
            Ok((stop, AgentEnd::Failure))
        }
    }
}
