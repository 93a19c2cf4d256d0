//! Connections that visitors wait for, between the forwarder's thread and the guest's.

use crate::preview::{Doorway, Knock};
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// Most that wait; the forwarder asks for no more than its own rooms.
const MOST: usize = 64;

/// Those who wait, in order of arrival.
#[derive(Default)]
pub(super) struct Visitors {
    waiting: Mutex<VecDeque<Knock>>,
    bell: Mutex<Option<OwnedFd>>,
}

impl fmt::Debug for Visitors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Visitors")
    }
}

impl Visitors {
    /// The event counter that wakes the thread that owns the guest.
    pub(super) fn ring_with(&self, bell: OwnedFd) {
        *self.bell.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell);
    }

    /// The next one who still waits.
    pub(super) fn next(&self) -> Option<Knock> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(knock) = waiting.pop_front() {
            if !knock.is_closed() {
                return Some(knock);
            }
        }
        None
    }
}

impl Doorway for Visitors {
    fn knock(&self, knock: Knock) {
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.retain(|knock| !knock.is_closed());
            if waiting.len() >= MOST {
                return;
            }
            waiting.push_back(knock);
        }
        let bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = bell.as_ref() {
            // A counter that is full wakes as well.
            let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
        }
    }
}
