//! Sends requests to the supervisor of a run, one connection each.

use crate::live;
use serde_json::Value;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, LiveRequest};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_runtime::FoundRun;

/// Time limit for a reply; long, because the supervisor replies only after its sandbox is ready.
const REPLY_LIMIT: Duration = Duration::from_secs(600);

/// Client of the supervisor of one run.
#[derive(Debug)]
pub(super) struct SupervisorClient {
    pub run: FoundRun,
    pub actor: String,
}

impl SupervisorClient {
    /// Sends a request and waits for its reply.
    pub(super) fn ask(&self, request: LiveRequest) -> Result<Value, ErrorBody> {
        live::ask(
            &self.run,
            &self.actor,
            request,
            ReplyTimeout::AtMost(REPLY_LIMIT),
        )
    }
}
