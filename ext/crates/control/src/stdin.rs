//! How much of a program's standard input a caller may send.

use wp_codebox_contracts::{LiveReply, StdinFlow};

/// What may be sent now, as the sandbox's replies say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StdinCredit {
    /// Nothing: the program is not started yet.
    #[default]
    NotStarted,
    /// As much as the socket takes: the sandbox is an older one.
    Unlimited,
    /// So many bytes.
    Bytes(u64),
    /// Nothing any more: the program closed its standard input.
    Closed,
}

impl StdinCredit {
    /// Takes what a reply says of it; other replies change nothing.
    pub fn hear(&mut self, reply: &LiveReply) {
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

    /// Counts what is sent.
    pub fn spend(&mut self, bytes: usize) {
        if let Self::Bytes(left) = self {
            *left = left.saturating_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }

    /// Bytes of the next piece, of which one has at most `longest`.
    #[must_use]
    pub fn room(self, longest: usize) -> usize {
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
    fn credit_counts_from_the_start_until_the_program_closes_its_input() {
        let mut credit = StdinCredit::default();
        let grant = LiveReply::StdinCredit { bytes: 7 };
        credit.hear(&grant);
        assert_eq!(credit, StdinCredit::NotStarted);
        credit.hear(&started(StdinFlow::Credit));
        assert_eq!(credit.room(100), 0);
        credit.hear(&grant);
        assert_eq!((credit.room(100), credit.room(5)), (7, 5));
        credit.spend(5);
        assert_eq!(credit.room(100), 2);
        credit.hear(&LiveReply::StdinClosed);
        credit.hear(&grant);
        assert_eq!(credit, StdinCredit::Closed);
    }

    #[test]
    fn an_older_sandbox_gives_no_credit_and_takes_all() {
        let mut credit = StdinCredit::default();
        credit.hear(&started(StdinFlow::Plain));
        credit.spend(1000);
        credit.hear(&LiveReply::StdinCredit { bytes: 1 });
        assert_eq!((credit, credit.room(100)), (StdinCredit::Unlimited, 100));
    }
}
