//! The mails of a run, from all of its guests.

use super::conversation::Received;
use super::message::subject;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wp_codebox_contracts::GuestPhase;
use wp_codebox_runtime::now_rfc3339;

/// Mails that are listed; further ones are counted.
const LISTED: usize = 200;
/// Bytes that are kept of all of them.
const KEPT: usize = 16 * 1024 * 1024;
/// Bytes that a run's guests may send; then nothing listens any more.
const RECEIVED: u64 = 256 * 1024 * 1024;

/// One mail.
#[derive(Debug, Clone)]
pub struct Mail {
    /// From 1, in the order of arrival.
    pub number: usize,
    /// Guest that sent it.
    pub phase: GuestPhase,
    /// RFC 3339.
    pub received_at: String,
    /// Sender of the envelope.
    pub from: String,
    /// Recipients of the envelope.
    pub to: Vec<String>,
    /// Subject, decoded.
    pub subject: String,
    /// What the guest sent.
    pub bytes: u64,
    /// Its first bytes; none when the mails before it used all that is kept.
    pub content: Option<Vec<u8>>,
}

/// Sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MailCounts {
    /// Mails that were taken.
    pub received: u64,
    /// Bytes, those of broken-off messages too.
    pub bytes: u64,
    /// Whether the guests sent more than may be received; nothing listens any more then.
    pub ended: bool,
}

#[derive(Default)]
struct Inner {
    mails: Vec<Mail>,
    kept: usize,
    counts: MailCounts,
    /// How many were taken, and how many of them listed, at the last reset.
    reset: (u64, usize),
}

/// All mails of a run.
#[derive(Default)]
pub struct Mailbox(Mutex<Inner>);

impl Mailbox {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // What a panic may leave half done is a count that is one too high, which harms nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message.
    pub fn deliver(&self, message: Received, phase: GuestPhase) {
        let mut inner = self.inner();
        inner.counts.received += 1;
        if inner.mails.len() >= LISTED {
            return;
        }
        let fits = inner.kept + message.content.len() <= KEPT;
        if fits {
            inner.kept += message.content.len();
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

    /// Counts bytes that a guest sent; answers whether it may send more.
    pub(super) fn may_go_on(&self, bytes: usize) -> bool {
        let mut inner = self.inner();
        inner.counts.bytes += bytes as u64;
        inner.counts.ended = inner.counts.bytes > RECEIVED;
        !inner.counts.ended
    }

    /// Numbers of messages kept and dropped.
    pub fn counts(&self) -> MailCounts {
        self.inner().counts
    }

    /// The mails that are listed, each as `row` makes it.
    pub fn map<T>(&self, row: impl FnMut(&Mail) -> T) -> Vec<T> {
        self.inner().mails.iter().map(row).collect()
    }

    /// Of the mails since the last reset, those for which `row` makes one; and how many arrived
    /// since then, listed or not.
    pub fn map_since_reset<T>(&self, row: impl FnMut(&Mail) -> Option<T>) -> (Vec<T>, u64) {
        let inner = self.inner();
        let (received, listed) = inner.reset;
        let rows = inner.mails.iter().skip(listed).filter_map(row).collect();
        (rows, inner.counts.received - received)
    }

    /// Lets [`Self::map_since_reset`] begin after the mails that are there, and answers how many
    /// that hides. Nothing is deleted: the list of the run and its bundle keep all of them.
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
    fn a_mailbox_keeps_a_bounded_number_of_mails_and_of_bytes_and_counts_the_rest() {
        let mailbox = Mailbox::default();
        for _ in 0..20 {
            mailbox.deliver(message(1024 * 1024), GuestPhase::Work);
        }
        // A small one still fits where a large one does not.
        mailbox.deliver(message(0), GuestPhase::Check);
        let kept = mailbox.map(|mail| mail.content.is_some());
        assert_eq!(kept.iter().filter(|kept| **kept).count(), 17);
        assert!(kept[15] && !kept[16] && kept[20]);
        for _ in 0..1000 {
            mailbox.deliver(message(1), GuestPhase::Work);
        }
        assert_eq!(mailbox.map(|mail| mail.number).last(), Some(&LISTED));
        assert_eq!(mailbox.counts().received, 1021);
    }

    #[test]
    fn a_reset_hides_the_mails_before_it_and_deletes_none() {
        let mailbox = Mailbox::default();
        let since = || mailbox.map_since_reset(|mail| Some(mail.number));
        mailbox.deliver(message(1), GuestPhase::Work);
        assert_eq!((mailbox.reset(), since()), (1, (vec![], 0)));
        mailbox.deliver(message(1), GuestPhase::Work);
        assert_eq!(since(), (vec![2], 1));
        assert_eq!(mailbox.map(|mail| mail.number), [1, 2]);
        // Mails beyond the list count, too.
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
    fn a_guest_that_sends_without_end_is_cut_off() {
        let mailbox = Mailbox::default();
        assert!(mailbox.may_go_on(256 * 1024 * 1024));
        assert!(!mailbox.may_go_on(1));
        assert!(mailbox.counts().ended);
    }
}
