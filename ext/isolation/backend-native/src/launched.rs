//! Book-keeping of programs that run concurrently in one guest.
//!
//! All messages of the guest's pid 1 arrive on one channel. The thread that reads a message may be
//! waiting for another program than the one that the message is about. So the exit of a program is
//! stored until a caller waits for it. A message about an unknown or ended program is ignored.

use crate::execution::{ExecEnd, ExecError};
use crate::launching::cut;
use crate::tickets::Tickets;
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, VecDeque};
use wp_codebox_contracts::{DeathFailure, ExecExit, ExecutionId, GuestReply};

/// How a program that was launched in a guest ended.
#[derive(Debug)]
pub enum LaunchEnd {
    /// The program was started and has ended.
    Ended(ExecEnd),
    /// The program could not be started.
    NotStarted(ExecError),
}

/// Programs that were launched in one guest, and what is known about the guest's end.
#[derive(Debug, Default)]
pub(crate) struct Launched {
    /// Names of the running programs by execution id.
    pub(crate) running: BTreeMap<ExecutionId, String>,
    pub(crate) ends: VecDeque<(ExecutionId, LaunchEnd)>,
    pub(crate) tickets: Tickets,
    /// Whether the channel to the guest is closed.
    pub(crate) closed: bool,
    /// First failure that the launcher reported after the guest was ready.
    pub(crate) failure: Option<DeathFailure>,
    /// Exit code or signal of the guest's first process, once the launcher has reported its end.
    pub(crate) over: Option<(Option<i32>, Option<i32>)>,
}

impl Launched {
    pub(crate) fn is_running(&self, id: &ExecutionId) -> bool {
        self.running.contains_key(id)
    }

    /// Processes a message for which no caller is waiting. Late, unknown and forged messages are
    /// dropped, and their descriptors are closed.
    pub(crate) fn handle_reply(&mut self, reply: GuestReply, descriptors: Vec<OwnedFd>) {
        match reply {
            GuestReply::Exit(exit) => {
                if self.running.remove(&exit.id).is_some() {
                    let end = LaunchEnd::Ended(ended(&exit));
                    self.ends.push_back((exit.id, end));
                }
            }
            GuestReply::ExecFailed { id, errno, step } => {
                if let Some(program) = self.running.remove(&id) {
                    let error = ExecError::NotStarted {
                        program,
                        step: step.chars().take(32).collect(),
                        errno,
                    };
                    self.ends.push_back((id, LaunchEnd::NotStarted(error)));
                }
            }
            GuestReply::Connected { ticket } => self.tickets.connected(ticket, descriptors),
            GuestReply::ConnectFailed { ticket, errno } => self.tickets.failed(ticket, errno),
            GuestReply::Spawned { .. }
            | GuestReply::Scratch
            | GuestReply::Layer { .. }
            | GuestReply::Egress
            | GuestReply::Mail
            | GuestReply::Ready { .. }
            | GuestReply::Started { .. } => {}
            GuestReply::Failed {
                step,
                subject,
                errno,
            } => {
                self.failure.get_or_insert_with(|| DeathFailure {
                    step: cut(step),
                    subject: cut(subject),
                    errno,
                });
            }
            GuestReply::Over { code, signal } => {
                self.over.get_or_insert((code, signal));
            }
        }
    }

    /// Records `how` as the end of every running program, because the guest is dead.
    pub(crate) fn all_ended(&mut self, how: ExecEnd) {
        self.closed = true;
        self.tickets.fail_all();
        for (id, _) in std::mem::take(&mut self.running) {
            self.ends.push_back((id, LaunchEnd::Ended(how)));
        }
    }
}

fn ended(exit: &ExecExit) -> ExecEnd {
    match (exit.code, exit.signal) {
        (Some(code), _) => ExecEnd::Exited(code),
        (None, Some(signal)) => ExecEnd::Signaled(signal),
        (None, None) => ExecEnd::GuestDied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ExecutionId {
        ExecutionId::new(text).unwrap()
    }

    fn exit(of: &str, code: i32) -> GuestReply {
        GuestReply::Exit(ExecExit {
            id: id(of),
            code: Some(code),
            signal: None,
            user_us: 0,
            system_us: 0,
            max_rss_bytes: 0,
        })
    }

    #[test]
    fn launcher_reply_about_an_unknown_or_ended_program_is_ignored() {
        let mut launched = Launched::default();
        launched.running.insert(id("exec-1"), "sh".to_owned());
        for strange in [
            exit("exec-9", 3),
            GuestReply::Started { id: id("exec-9") },
            GuestReply::Connected { ticket: 4 },
            GuestReply::Egress,
            GuestReply::Mail,
        ] {
            launched.handle_reply(strange, Vec::new());
        }
        assert!(launched.ends.is_empty() && launched.is_running(&id("exec-1")));
        launched.handle_reply(exit("exec-1", 7), Vec::new());
        launched.handle_reply(exit("exec-1", 8), Vec::new());
        assert_eq!(launched.ends.len(), 1);
        let (of, end) = launched.ends.pop_front().unwrap();
        assert_eq!(of, id("exec-1"));
        assert!(matches!(end, LaunchEnd::Ended(ExecEnd::Exited(7))));
    }

    #[test]
    fn only_the_first_failure_of_a_running_guest_is_stored() {
        let failed = |subject: &str| GuestReply::Failed {
            step: "channel".to_owned(),
            subject: subject.to_owned(),
            errno: 12,
        };
        let over = |signal| GuestReply::Over {
            code: None,
            signal: Some(signal),
        };
        let mut launched = Launched::default();
        for reply in [failed("po\u{1b}ll"), failed("sendmsg"), over(9), over(15)] {
            launched.handle_reply(reply, Vec::new());
        }
        let failure = launched.failure.unwrap();
        assert_eq!((failure.subject.as_str(), failure.errno), ("poll", 12));
        assert_eq!(launched.over, Some((None, Some(9))));
    }

    #[test]
    fn guest_death_ends_each_program_exactly_once() {
        let mut launched = Launched::default();
        for name in ["exec-1", "exec-2"] {
            launched.running.insert(id(name), "sh".to_owned());
        }
        launched.handle_reply(exit("exec-1", 0), Vec::new());
        launched.all_ended(ExecEnd::GuestDied);
        launched.handle_reply(exit("exec-2", 0), Vec::new());
        assert_eq!(launched.ends.len(), 2);
        assert!(matches!(
            launched.ends.back().unwrap().1,
            LaunchEnd::Ended(ExecEnd::GuestDied)
        ));
    }
}
