//! One request while it lives: what is known of it, when it last moved, how it ended.
//!
//! The first ending that is set stands. Whoever drops the last handle writes the row, so
//! a request that is broken off anywhere is in the log as well.

use super::denial::{Asked, Reason};
use super::log::{EgressDecision, EgressMode, EgressRow, Ledger};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_runtime::now_rfc3339;

/// Longest text of a row, in bytes.
const MAX_TEXT: usize = 1024;

/// One request.
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
    /// How it ended, and after how many milliseconds.
    ending: Option<(Ending, u64)>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Passed,
    Stopped(Reason),
}

impl Trace {
    /// A request of which nothing is known yet.
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

    /// Writes down what was learnt of the request.
    pub(super) fn describe(&self, change: impl FnOnce(&mut EgressRow)) {
        change(&mut self.lock().row);
    }

    /// What was asked for, as the answer to a refusal repeats it.
    pub(super) fn asked(&self) -> Asked {
        let draft = self.lock();
        let row = &draft.row;
        Asked {
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

    /// It passed to its end, unless something else was said before.
    pub(super) fn passed(&self) {
        let ms = self.elapsed_ms();
        self.lock().ending.get_or_insert((Ending::Passed, ms));
    }

    /// It was stopped, unless something else was said before. Answers what stands.
    pub(super) fn stopped(&self, reason: Reason) -> Reason {
        let ms = self.elapsed_ms();
        let mut draft = self.lock();
        match draft.ending.get_or_insert((Ending::Stopped(reason), ms)).0 {
            Ending::Passed => reason,
            Ending::Stopped(first) => first,
        }
    }

    /// There was no request: no row.
    pub(super) fn discard(&self) {
        self.void.store(true, Ordering::Relaxed);
    }

    /// Something moved.
    pub(super) fn touch(&self) {
        self.moved_ms.store(self.elapsed_ms(), Ordering::Relaxed);
    }

    /// Counts bytes from the guest; answers the sum.
    pub(super) fn sent(&self, bytes: u64) -> u64 {
        self.touch();
        self.sent.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Counts bytes from the host; answers the sum.
    pub(super) fn received(&self, bytes: u64) -> u64 {
        self.touch();
        self.received.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Ends when nothing moved for so long.
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
