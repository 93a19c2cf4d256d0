//! The parts of a run that the control thread may change or read.

use crate::host::outbox::CallerAttachment;
use crate::host::parent::Answers;
use crate::journal::queue::RequestQueue;
use std::path::PathBuf;
use std::sync::Arc;
use wp_codebox_contracts::{CancelDetails, CancellationNote, RunId};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::{CancelReason, Cancellation, LiveRecord, now_rfc3339};

/// The parts of a run that the control thread may change or read.
#[derive(Debug, Clone)]
pub(crate) struct ControlHandles {
    pub run_id: RunId,
    pub cancellation: Arc<Cancellation>,
    pub attachment: Arc<CallerAttachment>,
    pub record: Arc<LiveRecord>,
    pub answers: Arc<Answers>,
    /// Removes secrets from text that clients send, before the text is recorded.
    pub redactor: Arc<Redactor>,
    /// Requests of clients to the sandbox, if it is kept open for clients.
    pub queue: Arc<RequestQueue>,
    /// Run directory, which contains the journal.
    pub run_dir: PathBuf,
}

/// Maximum number of characters that are recorded of a cancel request's reason. The same maximum
/// applies separately to the request's actor (the name of the requester).
const WISH: usize = 500;

impl ControlHandles {
    /// Cancels the run. The requesting actor is recorded before any process of the run is ended.
    pub(super) fn cancel(&self, reason: CancelReason, wish: CancelDetails) {
        let clean = |text: String| -> String {
            let text = self.redactor.redact(text.trim()).into_owned();
            text.chars().take(WISH).collect()
        };
        let said = |text: Option<String>| text.map(clean).filter(|text| !text.is_empty());
        self.record.cancelled(CancellationNote {
            requested_at: now_rfc3339(),
            reason: said(wish.reason).or_else(|| Some(reason.sentence().to_owned())),
            requested_by: said(wish.actor).or_else(|| Some(default_actor(reason).to_owned())),
        });
        self.cancellation.cancel(reason);
    }
}

/// Returns the actor (the name of the requester) to record for a cancel request without one.
const fn default_actor(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Asked | CancelReason::CallerGone => "caller",
        CancelReason::Signal => "signal",
    }
}
