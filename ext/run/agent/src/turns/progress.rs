//! Detects that the agent makes no progress. Pure functions without I/O.
//!
//! The signs: the same call with the same result; the same call with any result; turns in which no
//! call succeeds; empty responses. A successful call with a tool and arguments not used before
//! resets the counts of the first two. Each sign first produces a warning to the model, then ends
//! the loop.

use crate::ToolStatus;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::Stop;

/// Numbers of calls with the same arguments and the same result at which the loop warns the model,
/// and at which the loop ends.
const SAME: (u32, u32) = (3, 5);
/// Numbers of calls with the same arguments, whatever their results, at which the loop warns the
/// model, and at which the loop ends.
const AGAIN: (u32, u32) = (8, 12);
/// Numbers of consecutive turns in which every tool call failed, at which the loop warns the model,
/// and at which the loop ends. Turns without tool calls do not count.
const FAILING: (u32, u32) = (5, 8);
/// Numbers of empty responses since the last tool call at which the loop first warns the model, and
/// at which the loop ends.
const EMPTY: (u32, u32) = (1, 3);
/// The loop ends after this number of responses that reached their token limit before they
/// requested a tool call. Every tool call resets the count.
const CUT: u32 = 4;

/// What the loop must do after a turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Advice {
    GoOn,
    /// Warning for the model.
    Say(String),
    /// End the loop for lack of progress.
    Stop(Stop),
}

/// Counters over the turns so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    seen: HashSet<u64>,
    calls: HashMap<u64, u32>,
    answers: HashMap<u64, u32>,
    failing: u32,
    empty: u32,
    cut: u32,
    plain: u32,
    /// Whether a tool call of the current turn succeeded.
    succeeded: bool,
    called: bool,
    worst: (u32, u32, String),
}

fn key(parts: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

fn circles(what: String) -> Advice {
    Advice::Stop(Stop::Partial(
        ErrorBody::new(
            ErrorCode::AgentNoProgress,
            format!("the agent made no progress: {what}"),
        )
        .hint("give a smaller task or a more precise goal, or use another model"),
    ))
}

impl Progress {
    /// Records a call of this turn and its result.
    pub(super) fn called(&mut self, tool: &str, arguments: &str, answer: &str, status: ToolStatus) {
        let call = key(&[tool, arguments]);
        let fresh = self.seen.insert(call);
        let succeeded = status == ToolStatus::Ok;
        if fresh && succeeded {
            self.calls.clear();
            self.answers.clear();
        }
        let times = |map: &mut HashMap<u64, u32>, key| {
            let count = map.entry(key).or_insert(0);
            *count += 1;
            *count
        };
        let same = times(&mut self.answers, key(&[tool, arguments, answer]));
        let again = times(&mut self.calls, call);
        if (same, again) > (self.worst.0, self.worst.1) {
            self.worst = (same, again, tool.to_owned());
        }
        self.called = true;
        self.succeeded |= succeeded;
    }

    /// Ends a turn that had tool calls, and returns what the loop must do.
    pub(super) fn turned(&mut self) -> Advice {
        let (same, again, tool) = std::mem::take(&mut self.worst);
        let succeeded = std::mem::take(&mut self.succeeded);
        if std::mem::take(&mut self.called) {
            (self.empty, self.cut, self.plain) = (0, 0, 0);
            self.failing = if succeeded { 0 } else { self.failing + 1 };
        }
        if same >= SAME.1 {
            return circles(format!(
                "it called {tool} {same} times with the same arguments and got the same answer"
            ));
        }
        if again >= AGAIN.1 {
            return circles(format!(
                "it called {tool} {again} times with the same arguments"
            ));
        }
        if self.failing >= FAILING.1 {
            return circles(format!(
                "in {} turns no call of a tool succeeded",
                self.failing
            ));
        }
        if same == SAME.0 || again == AGAIN.0 {
            return Advice::Say(format!(
                "You called {tool} with the same arguments before, and nothing has changed since. Do something else, or call task.blocked and say what is in the way."
            ));
        }
        if self.failing == FAILING.0 {
            return Advice::Say(format!(
                "No call of a tool has succeeded for {} turns. Read what the answers say, try another way, or call task.blocked and say what is in the way.",
                self.failing
            ));
        }
        Advice::GoOn
    }

    /// Records a response with neither text nor tool calls.
    pub(super) fn empty(&mut self) -> Advice {
        self.empty += 1;
        if self.empty >= EMPTY.1 {
            return circles(format!(
                "the model sent {} empty responses without a tool call in between",
                self.empty
            ));
        }
        Advice::Say(
            "Your answer was empty. Call a tool, or task.finish when the task is done.".to_owned(),
        )
    }

    /// Records a response that reached its token limit before it requested a tool call.
    pub(super) fn cut(&mut self) -> Advice {
        self.cut += 1;
        if self.cut >= CUT {
            return circles(format!(
                "the model's answer was cut at its length limit {} times without a tool call in between",
                self.cut
            ));
        }
        Advice::Say("Your answer was cut at its length limit. Go on from there, say less, and write large files in several smaller steps.".to_owned())
    }

    /// Records a response with text but without calls; returns how many such responses came since
    /// the last tool call.
    pub(super) fn plain(&mut self) -> u32 {
        self.plain += 1;
        self.plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(progress: &mut Progress, arguments: &str, answer: &str, status: ToolStatus) -> Advice {
        progress.called("t", arguments, answer, status);
        progress.turned()
    }

    fn is_no_progress(advice: &Advice) -> bool {
        matches!(advice, Advice::Stop(Stop::Partial(e)) if e.code == ErrorCode::AgentNoProgress)
    }

    #[test]
    fn repeated_call_with_the_same_result_warns_the_model_then_ends_the_agent_loop() {
        let mut progress = Progress::default();
        let advices: Vec<Advice> = (0..5)
            .map(|_| turn(&mut progress, "a", "x", ToolStatus::Ok))
            .collect();
        assert_eq!(advices[0], Advice::GoOn);
        assert_eq!(advices[1], Advice::GoOn);
        assert!(matches!(&advices[2], Advice::Say(t) if t.contains("t with the same")));
        assert_eq!(advices[3], Advice::GoOn);
        assert!(is_no_progress(&advices[4]), "{advices:?}");
    }

    #[test]
    fn two_alternating_calls_with_unchanged_results_end_the_agent_loop() {
        let mut progress = Progress::default();
        let ended = (0..20).position(|n| {
            let arguments = if n % 2 == 0 { "a" } else { "b" };
            is_no_progress(&turn(&mut progress, arguments, "x", ToolStatus::Ok))
        });
        // The first call of `b`, in the second turn, succeeded and so reset the counters of `a`.
        assert_eq!(ended, Some(9));
    }

    #[test]
    fn alternating_edits_and_tests_do_not_end_the_agent_loop() {
        let mut progress = Progress::default();
        for n in 0..30 {
            let edit = turn(&mut progress, &format!("edit {n}"), "done", ToolStatus::Ok);
            assert_eq!(edit, Advice::GoOn);
            assert_eq!(
                turn(&mut progress, "test", "1 failed", ToolStatus::Ok),
                Advice::GoOn
            );
        }
    }

    #[test]
    fn same_call_with_changing_results_ends_the_agent_loop_only_in_turn_twelve() {
        let mut progress = Progress::default();
        let ended = (0..30).position(|n| {
            is_no_progress(&turn(
                &mut progress,
                "a",
                &format!("in {n} ms"),
                ToolStatus::Ok,
            ))
        });
        assert_eq!(ended, Some(11));
    }

    #[test]
    fn eight_consecutive_turns_of_failed_calls_end_the_agent_loop_and_a_success_resets_the_count() {
        let mut progress = Progress::default();
        for n in 0..7 {
            let advice = turn(&mut progress, &n.to_string(), "no", ToolStatus::Denied);
            assert!(!is_no_progress(&advice), "{n}");
            assert_eq!(matches!(advice, Advice::Say(_)), n == 4, "{n}");
        }
        assert_eq!(
            turn(&mut progress, "good", "yes", ToolStatus::Ok),
            Advice::GoOn
        );
        for n in 10..17 {
            assert!(!is_no_progress(&turn(
                &mut progress,
                &n.to_string(),
                "no",
                ToolStatus::Failed
            )));
        }
        assert!(is_no_progress(&turn(
            &mut progress,
            "z",
            "no",
            ToolStatus::Failed
        )));
    }

    #[test]
    fn third_empty_or_fourth_truncated_model_response_in_a_row_ends_the_agent_loop() {
        let mut progress = Progress::default();
        assert!(matches!(progress.empty(), Advice::Say(_)));
        assert!(matches!(progress.empty(), Advice::Say(_)));
        assert!(is_no_progress(&progress.empty()));
        let mut progress = Progress::default();
        for _ in 0..3 {
            assert!(matches!(progress.cut(), Advice::Say(_)));
        }
        assert!(is_no_progress(&progress.cut()));
    }
}
