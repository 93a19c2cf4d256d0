//! Imports agent bundles, i.e. agent definitions, in the guest, with a function that a component
//! provides.

use super::answer::{Program, ask, ended};
use crate::session::guest::GuestContext;
use serde_json::{Map, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::{COMPONENTS, Stop};

/// Imports the agent bundles that the request names. Returns the reason to stop the run, if any;
/// one failed bundle is such a reason.
pub(super) fn import(guest: &mut GuestContext<'_, '_>) -> Result<Option<Stop>, ErrorBody> {
    let bundles = &guest.run.prepared.request.agent_bundles;
    if bundles.is_empty() {
        return Ok(None);
    }
    let program = Program {
        file: "import-agent-bundles.php",
        command: "agent-bundle.import",
        args: vec![format!("count={}", bundles.len())],
        phase: COMPONENTS,
        input: Map::from_iter([("bundles".to_owned(), json!(bundles))]),
    };
    let answered = ask(guest, program)?;
    if let Some(stop) = ended(&answered) {
        return Ok(Some(stop));
    }
    let failed = |why: String| {
        Ok(Some(Stop::Failed(ErrorBody::new(
            ErrorCode::AgentBundleImportFailed,
            format!("the agent bundles were not imported: {why}"),
        ))))
    };
    match answered.text("status").as_deref() {
        Some("imported") => Ok(None),
        Some("unavailable") => Err(ErrorBody::new(
            ErrorCode::AgentBundleImporterUnavailable,
            "the guest cannot import agent bundles: add a component (plugin) that defines wp_agent_import_runtime_bundles()",
        )),
        Some(_) => failed(
            answered
                .text("message")
                .unwrap_or_else(|| "the importer gave no reason".to_owned()),
        ),
        None => failed(answered.missing_answer_reason()),
    }
}
