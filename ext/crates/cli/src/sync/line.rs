//! Questions to the supervisor of a run, one conversation each.

use crate::live;
use serde_json::Value;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, LiveRequest};
use wp_codebox_control::Patience;
use wp_codebox_runtime::FoundRun;

/// How long an answer may take: a sandbox that is not ready lets its visitors wait.
const PATIENCE: Duration = Duration::from_secs(600);

/// The way to one run.
#[derive(Debug)]
pub(super) struct Line {
    pub run: FoundRun,
    pub actor: String,
}

impl Line {
    /// Asks and waits for the answer.
    pub(super) fn ask(&self, request: LiveRequest) -> Result<Value, ErrorBody> {
        live::ask(&self.run, &self.actor, request, Patience::AtMost(PATIENCE))
    }
}
