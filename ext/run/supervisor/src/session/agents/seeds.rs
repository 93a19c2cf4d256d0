//! Copies content of the parent site (the WordPress site on the host) into a guest, before other
//! programs run there.

use super::answer::{Program, ask, ended};
use crate::session::guest::GuestContext;
use serde_json::{Map, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::{COMPONENTS, Stop};

/// Creates the content of the request's site seeds. Returns the reason to stop the run, if any; a
/// seed that could not be created is such a reason.
pub(crate) fn create(guest: &mut GuestContext<'_, '_>) -> Result<Option<Stop>, ErrorBody> {
    let request = &guest.run.prepared.request;
    for seed in &request.seeds {
        let program = Program {
            file: "seed-content.php",
            command: "site.seed",
            args: vec![format!("name={}", seed.name)],
            phase: COMPONENTS,
            input: Map::from_iter([
                ("name".to_owned(), json!(seed.name)),
                ("scopes".to_owned(), json!(seed.scopes)),
                ("content".to_owned(), json!(seed.content)),
                ("format".to_owned(), json!("json")),
                ("ids".to_owned(), json!("assigned")),
                // Skips plugins and themes of the site that the guest lacks: the task does not need
                // them.
                ("absent".to_owned(), json!("skip")),
            ]),
        };
        let answered = ask(guest, program)?;
        if let Some(stop) = ended(&answered) {
            return Ok(Some(stop));
        }
        if answered.step.exit_code() != Some(0) {
            let why = answered.missing_answer_reason();
            let message = format!("the site seed {} was not created: {why}", seed.name);
            let error = ErrorBody::new(ErrorCode::StepFailed, message)
                .hint("read the output of the command site.seed in the executions of the run, or select other records of the site for the seed")
                .with("reason", "site-seed-failed");
            return Ok(Some(Stop::Failed(error)));
        }
    }
    Ok(None)
}
