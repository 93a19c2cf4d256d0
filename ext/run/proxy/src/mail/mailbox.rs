//! Mails that all guests of one run have sent.

use super::conversation::Received;
use super::message::subject;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wp_codebox_contracts::GuestPhase;
use wp_codebox_runtime::now_rfc3339;

/// Maximum number of mails in the mailbox; further mails are only counted.
const LISTED: usize = 200;
/// Maximum number of bytes stored for all mails of a run together.
const STORED: usize = 16 * 1024 * 1024;
/// Maximum number of bytes that all guests of a run together may send to its mail servers. Beyond
/// it these servers close their listening sockets.
const RECEIVED: u64 = 256 * 1024 * 1024;

/// One captured mail.
#[derive(Debug, Clone)]
pub struct Mail {
    /// Number of the mail, from 1, in order of arrival.
    pub number: usize,
    /// Guest that sent the mail.
    pub phase: GuestPhase,
    /// Time at which the mail arrived, RFC 3339.
    pub received_at: String,
    /// Sender address of the SMTP envelope.
    pub from: String,
    /// Recipient addresses of the SMTP envelope.
    pub to: Vec<String>,
    /// Subject header with encoded words decoded.
    pub subject: String,
    /// Length of the message in bytes.
    pub bytes: u64,
    /// First bytes of the message; `None` when earlier mails have used up the storage limit of the
    /// run.
    pub content: Option<Vec<u8>>,
}

/// Mail totals of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MailCounts {
    /// Number of accepted mails, including those that are only counted.
    pub received: u64,
    /// Number of bytes received from guests, including those of aborted messages.
    pub bytes: u64,
    /// Whether the guests exceeded the byte limit of the run, which closes the mail servers.
    pub ended: bool,
}

#[derive(Default)]
struct Inner {
    mails: Vec<Mail>,
    stored: usize,
    counts: MailCounts,
    /// Number of accepted mails, and number of mails in the mailbox, at the time of the last reset.
    reset: (u64, usize),
}

/// Mailbox that collects the mails of one run.
#[derive(Default)]
pub struct Mailbox(Mutex<Inner>);

impl Mailbox {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock is held can at most leave a counter one too high, which is
        // harmless.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a mail from the guest of the given phase.
    pub fn deliver(&self, message: Received, phase: GuestPhase) {
        let mut inner = self.inner();
        inner.counts.received += 1;
        if inner.mails.len() >= LISTED {
            return;
        }
        let fits = inner.stored + message.content.len() <= STORED;
        if fits {
            inner.stored += message.content.len();
        }
        let number = inner.mails.len() + 1;
        inner.mails.push(Mail {
            number,
            phase,
            received_at: now_rfc3339(),
            from: message.from,
            to: message.to,
            subject: subject(&message.content),
            bytes: message.bytes,
            content: fits.then_some(message.content),
        });
    }

    /// Counts `bytes` received from a guest. Returns false once the guests of the run together have
    /// sent more than [`RECEIVED`] bytes.
    pub(super) fn may_go_on(&self, bytes: usize) -> bool {
        let mut inner = self.inner();
        inner.counts.bytes += bytes as u64;
        inner.counts.ended = inner.counts.bytes > RECEIVED;
        !inner.counts.ended
    }

    /// Returns the totals of the run so far.
    pub fn counts(&self) -> MailCounts {
        self.inner().counts
    }

    /// Calls `row` for each mail in the mailbox and returns the results.
    pub fn map<T>(&self, row: impl FnMut(&Mail) -> T) -> Vec<T> {
        self.inner().mails.iter().map(row).collect()
    }

    /// Returns the `Some` results of `row` for the mails that the mailbox got since the last reset,
    /// and the number of all mails since then, including those that were only counted.
    pub fn map_since_reset<T>(&self, row: impl FnMut(&Mail) -> Option<T>) -> (Vec<T>, u64) {
        let inner = self.inner();
        let (received, listed) = inner.reset;
        let rows = inner.mails.iter().skip(listed).filter_map(row).collect();
        (rows, inner.counts.received - received)
    }

    /// Makes [`Self::map_since_reset`] skip all mails so far, and returns how many of them arrived
    /// since the previous reset. Deletes nothing: the run's list and bundle still contain them.
    pub fn reset(&self) -> u64 {
        let mut inner = self.inner();
        let before = inner.reset.0;
        inner.reset = (inner.counts.received, inner.mails.len());
        inner.counts.received - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Received {
        Received {
            from: "a@x".to_owned(),
            to: vec!["b@x".to_owned()],
            content: vec![b'x'; bytes],
            bytes: bytes as u64,
        }
    }

    #[test]
    fn mailbox_stores_mails_up_to_its_limits_and_counts_further_mails() {
        let mailbox = Mailbox::default();
        for _ in 0..20 {
            mailbox.deliver(message(1024 * 1024), GuestPhase::Work);
        }
        // A small mail still fits into the storage after a large one did not.
        mailbox.deliver(message(0), GuestPhase::Check);
        let stored = mailbox.map(|mail| mail.content.is_some());
        assert_eq!(stored.iter().filter(|stored| **stored).count(), 17);
        assert!(stored[15] && !stored[16] && stored[20]);
        for _ in 0..1000 {
            mailbox.deliver(message(1), GuestPhase::Work);
        }
        assert_eq!(mailbox.map(|mail| mail.number).last(), Some(&LISTED));
        assert_eq!(mailbox.counts().received, 1021);
    }

    #[test]
    fn mailbox_reset_hides_earlier_mails_without_deleting_them() {
        let mailbox = Mailbox::default();
        let since = || mailbox.map_since_reset(|mail| Some(mail.number));
        mailbox.deliver(message(1), GuestPhase::Work);
        assert_eq!((mailbox.reset(), since()), (1, (vec![], 0)));
        mailbox.deliver(message(1), GuestPhase::Work);
        assert_eq!(since(), (vec![2], 1));
        assert_eq!(mailbox.map(|mail| mail.number), [1, 2]);
        // Mails that arrive when the mailbox is full are counted as well.
        for _ in 0..LISTED {
            mailbox.deliver(message(1), GuestPhase::Work);
        }
        assert_eq!((since().0.len(), since().1), (LISTED - 1, 201));
        assert_eq!(
            (mailbox.reset(), mailbox.reset(), since()),
            (201, 0, (vec![], 0))
        );
    }

    #[test]
    fn mail_bytes_above_the_limit_of_a_run_are_refused() {
        let mailbox = Mailbox::default();
        assert!(mailbox.may_go_on(256 * 1024 * 1024));
        assert!(!mailbox.may_go_on(1));
        assert!(mailbox.counts().ended);
    }
}
