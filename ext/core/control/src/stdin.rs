//! Flow control of a program's standard input: how many bytes a client may send before the sandbox
//! grants more.

use wp_codebox_contracts::{LiveReply, StdinFlow};

/// Number of bytes of standard input that a client may send now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StdinCredit {
    /// The client may send nothing: the program has not started yet.
    #[default]
    NotStarted,
    /// The client may send any number of bytes: the sandbox is of an older release, which has no
    /// flow control.
    Unlimited,
    /// The client may send this many bytes.
    Bytes(u64),
    /// The client may send nothing any more: the program closed its standard input.
    Closed,
}

impl StdinCredit {
    /// Updates the credit from a reply of the sandbox; ignores replies that do not change it.
    pub fn update(&mut self, reply: &LiveReply) {
        match (reply, &mut *self) {
            (LiveReply::Started { stdin, .. }, _) => {
                *self = match stdin {
                    StdinFlow::Plain => Self::Unlimited,
                    StdinFlow::Credit => Self::Bytes(0),
                };
            }
            (LiveReply::StdinCredit { bytes }, Self::Bytes(left)) => {
                *left = left.saturating_add(*bytes);
            }
            (LiveReply::StdinClosed, _) => *self = Self::Closed,
            (
                LiveReply::StdinCredit { .. }
                | LiveReply::Output { .. }
                | LiveReply::Event { .. }
                | LiveReply::Exited(_)
                | LiveReply::Answer { .. }
                | LiveReply::Error { .. },
                _,
            ) => {}
        }
    }

    /// Subtracts bytes that the client has sent from the credit.
    pub fn spend(&mut self, bytes: usize) {
        if let Self::Bytes(left) = self {
            *left = left.saturating_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }

    /// Returns how many bytes the client may send next, at most `longest`.
    #[must_use]
    pub fn next_chunk_len(self, longest: usize) -> usize {
        match self {
            Self::NotStarted | Self::Closed => 0,
            Self::Unlimited => longest,
            Self::Bytes(left) => usize::try_from(left).unwrap_or(longest).min(longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(flow: StdinFlow) -> LiveReply {
        LiveReply::Started {
            execution_id: wp_codebox_contracts::ExecutionId::new("exec_1").unwrap(),
            stdin: flow,
        }
    }

    #[test]
    fn stdin_credit_ignores_grants_before_the_program_starts_and_after_its_stdin_closes() {
        let mut credit = StdinCredit::default();
        let grant = LiveReply::StdinCredit { bytes: 7 };
        credit.update(&grant);
        assert_eq!(credit, StdinCredit::NotStarted);
        credit.update(&started(StdinFlow::Credit));
        assert_eq!(credit.next_chunk_len(100), 0);
        credit.update(&grant);
        assert_eq!(
            (credit.next_chunk_len(100), credit.next_chunk_len(5)),
            (7, 5)
        );
        credit.spend(5);
        assert_eq!(credit.next_chunk_len(100), 2);
        credit.update(&LiveReply::StdinClosed);
        credit.update(&grant);
        assert_eq!(credit, StdinCredit::Closed);
    }

    #[test]
    fn stdin_credit_is_unlimited_if_the_sandbox_reports_no_flow_control() {
        let mut credit = StdinCredit::default();
        credit.update(&started(StdinFlow::Plain));
        credit.spend(1000);
        credit.update(&LiveReply::StdinCredit { bytes: 1 });
        assert_eq!(
            (credit, credit.next_chunk_len(100)),
            (StdinCredit::Unlimited, 100)
        );
    }
}
