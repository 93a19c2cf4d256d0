//! Flow control of a program's standard input: the number of bytes a client may send.

use wp_codebox_contracts::{LiveReply, StdinFlow};

/// Credit that the sandbox's replies have granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StdinCredit {
    /// No credit: the program is not started yet.
    #[default]
    NotStarted,
    /// No flow control: the sandbox has an older version that grants no credit.
    Unlimited,
    /// Number of bytes that may be sent.
    Bytes(u64),
    /// No credit any more: the program closed its standard input.
    Closed,
}

impl StdinCredit {
    /// Updates the credit from a reply; ignores replies that do not grant credit.
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

    /// Subtracts sent bytes from the credit.
    pub fn spend(&mut self, bytes: usize) {
        if let Self::Bytes(left) = self {
            *left = left.saturating_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }

    /// Returns the length of the next chunk, at most `longest` bytes.
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
    fn stdin_credit_starts_with_the_first_grant_and_ends_when_stdin_closes() {
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
    fn sandbox_without_flow_control_has_unlimited_credit() {
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
