//! What the control thread holds of the run.

use crate::outbox::CallerAttachment;
use crate::parent::Answers;
use crate::run::RequestQueue;
use std::path::PathBuf;
use std::sync::Arc;
use wp_codebox_contracts::{CancelDetails, CancellationNote, RunId};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::{CancelReason, Cancellation, LiveRecord, now_rfc3339};

/// What the thread may touch.
#[derive(Debug, Clone)]
pub(crate) struct ControlHandles {
    pub run_id: RunId,
    pub cancellation: Arc<Cancellation>,
    pub attachment: Arc<CallerAttachment>,
    pub record: Arc<LiveRecord>,
    pub answers: Arc<Answers>,
    /// What others say passes it before it is recorded.
    pub redactor: Arc<Redactor>,
    /// Where requests to a held sandbox are put.
    pub queue: Arc<RequestQueue>,
    /// Where the journal is.
    pub run_dir: PathBuf,
}

/// Longest text of a wish that is recorded, characters.
const WISH: usize = 500;

impl ControlHandles {
    /// Ends the run. Who asked first stands in its record before anything of it ends.
    pub(super) fn cancel(&self, reason: CancelReason, wish: CancelDetails) {
        let clean = |text: String| -> String {
            let text = self.redactor.redact(text.trim()).into_owned();
            text.chars().take(WISH).collect()
        };
        let said = |text: Option<String>| text.map(clean).filter(|text| !text.is_empty());
        self.record.cancelled(CancellationNote {
            requested_at: now_rfc3339(),
            reason: said(wish.reason).or_else(|| Some(reason.sentence().to_owned())),
            requested_by: said(wish.actor).or_else(|| Some(asker(reason).to_owned())),
        });
        self.cancellation.cancel(reason);
    }
}

/// Who it is that does not say so.
const fn asker(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Asked | CancelReason::CallerGone => "caller",
        CancelReason::Signal => "signal",
    }
}
