//! State of one running request of the egress bridge: log fields, time of the last byte, and
//! outcome.
//!
//! Only the first outcome that is set counts. Dropping the last handle writes the log row, so
//! aborted requests have a row too.

use super::denial::{Reason, RequestedTarget};
use super::log::{EgressDecision, EgressMode, EgressRow, Ledger};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_runtime::now_rfc3339;

/// Maximum length in bytes of a text field in a log row.
const MAX_TEXT: usize = 1024;

/// State of a running request, from which its log row is made.
pub(super) struct Trace {
    ledger: Arc<Ledger>,
    started: Instant,
    moved_ms: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    void: AtomicBool,
    draft: Mutex<Draft>,
}

struct Draft {
    row: EgressRow,
    /// Outcome, and duration of the request in milliseconds, once it has ended.
    ending: Option<(Ending, u64)>,
}

/// Outcome of a request that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Passed,
    Stopped(Reason),
}

impl Trace {
    /// Starts the record of a request; its log fields are filled as they become known.
    pub(super) fn begin(ledger: &Arc<Ledger>) -> Arc<Self> {
        Arc::new(Self {
            ledger: Arc::clone(ledger),
            started: Instant::now(),
            moved_ms: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            void: AtomicBool::new(false),
            draft: Mutex::new(Draft {
                row: EgressRow {
                    time: now_rfc3339(),
                    mode: EgressMode::Unknown,
                    method: String::new(),
                    host: String::new(),
                    port: 0,
                    path: String::new(),
                    decision: EgressDecision::Failed,
                    reason: "",
                    rule: String::new(),
                    address: String::new(),
                    status: 0,
                    bytes_out: 0,
                    bytes_in: 0,
                    ms: 0,
                    secrets: Vec::new(),
                    secrets_withheld: Vec::new(),
                    note: String::new(),
                },
                ending: None,
            }),
        })
    }

    /// Changes the log fields of the request.
    pub(super) fn describe(&self, change: impl FnOnce(&mut EgressRow)) {
        change(&mut self.lock().row);
    }

    /// Returns the requested method, host, port and path, which the response to a refused request
    /// repeats.
    pub(super) fn requested(&self) -> RequestedTarget {
        let draft = self.lock();
        let row = &draft.row;
        RequestedTarget {
            mode: match row.mode {
                EgressMode::Unknown => None,
                mode => Some(mode),
            },
            method: row.method.clone(),
            host: row.host.clone(),
            port: row.port,
            path: row.path.split('?').next().unwrap_or_default().to_owned(),
        }
    }

    /// Records success, unless an outcome is already set.
    pub(super) fn passed(&self) {
        let ms = self.elapsed_ms();
        self.lock().ending.get_or_insert((Ending::Passed, ms));
    }

    /// Records a failure, unless an outcome is already set. Returns the reason of the outcome that
    /// is kept.
    pub(super) fn stopped(&self, reason: Reason) -> Reason {
        let ms = self.elapsed_ms();
        let mut draft = self.lock();
        match draft.ending.get_or_insert((Ending::Stopped(reason), ms)).0 {
            Ending::Passed => reason,
            Ending::Stopped(first) => first,
        }
    }

    /// Suppresses the log row; for a connection that carried no request.
    pub(super) fn discard(&self) {
        self.void.store(true, Ordering::Relaxed);
    }

    /// Restarts the idle timeout, because a byte has moved.
    pub(super) fn touch(&self) {
        self.moved_ms.store(self.elapsed_ms(), Ordering::Relaxed);
    }

    /// Counts bytes sent by the guest; returns how many the guest has sent in this request so far.
    pub(super) fn sent(&self, bytes: u64) -> u64 {
        self.touch();
        self.sent.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Counts bytes received from the host; returns how many the host has sent in response to this
    /// request so far.
    pub(super) fn received(&self, bytes: u64) -> u64 {
        self.touch();
        self.received.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Completes when neither side has sent a byte for the time `most`.
    pub(super) async fn idle(&self, most: Duration) {
        loop {
            let moved = self.started + Duration::from_millis(self.moved_ms.load(Ordering::Relaxed));
            let until = moved + most;
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep_until(until.into()).await;
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Draft> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if self.void.load(Ordering::Relaxed) {
            return;
        }
        let stopping = self.ledger.is_closing();
        let elapsed = self.elapsed_ms();
        let draft = self.draft.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (ending, ms) = draft.ending.unwrap_or_else(|| {
            let reason = if stopping {
                Reason::Stopped
            } else {
                Reason::ClientGone
            };
            (Ending::Stopped(reason), elapsed)
        });
        let row = &mut draft.row;
        match ending {
            Ending::Passed => row.decision = EgressDecision::Allowed,
            Ending::Stopped(reason) => {
                row.decision = reason.decision();
                row.reason = reason.as_str();
            }
        }
        row.bytes_out = self.sent.load(Ordering::Relaxed);
        row.bytes_in = self.received.load(Ordering::Relaxed);
        row.ms = ms;
        for text in [&mut row.method, &mut row.host, &mut row.path] {
            shorten(text);
        }
        let ended = self.started + Duration::from_millis(ms);
        self.ledger.push(ended, row.clone());
    }
}

fn shorten(text: &mut String) {
    if text.len() > MAX_TEXT {
        let cut = (0..=MAX_TEXT)
            .rev()
            .find(|&at| text.is_char_boundary(at))
            .unwrap_or_default();
        text.truncate(cut);
        text.push('…');
    }
}
