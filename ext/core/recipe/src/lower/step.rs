//! Creates a step with the default settings of steps in a run request.

use crate::model::Metadata;
use wp_codebox_contracts::{CommandCall, OnFailure, WorkflowStep};

/// Returns a step that stops the run if it fails.
pub(super) fn plain(phase: &str, index: usize, call: CommandCall) -> WorkflowStep {
    WorkflowStep {
        phase: phase.to_owned(),
        index: u32::try_from(index).unwrap_or(u32::MAX),
        name: None,
        call,
        timeout_ms: None,
        on_failure: OnFailure::Stop,
        expect_json: false,
        continuation: None,
        metadata: Metadata::new(),
    }
}
