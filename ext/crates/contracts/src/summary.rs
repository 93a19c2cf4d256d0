//! What a run came to in one sentence, and the same as a code with arguments, so that a screen can
//! say it in another language.

use crate::ErrorCode;
use serde::{Deserialize, Serialize};

/// Which sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryCode {
    /// An agent succeeded.
    AgentSucceeded,
    /// The steps of a recipe succeeded.
    RecipeSucceeded,
    /// A held sandbox ended without an error.
    SandboxEnded,
    /// A registry command succeeded.
    CommandSucceeded,
    /// An agent succeeded and changed no file.
    NoChange,
    /// Only a part was done.
    Partial,
    /// Something has to be settled before an approval.
    Blocked,
    /// The policy refused it.
    Denied,
    /// It failed.
    Failed,
    /// Its time was up.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// The supervisor died while it held a sandbox.
    InterruptedHeld,
    /// The supervisor died, and the captured change holds a secret.
    InterruptedSecret,
    /// The supervisor died, and the captured change is in a bundle.
    InterruptedChange,
    /// The supervisor died before a change was captured.
    InterruptedJournal,
    /// The supervisor died before anything ran.
    InterruptedEmpty,
}

impl SummaryCode {
    /// The sentence without its arguments. That of an interrupted run is an error's message, too.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::AgentSucceeded => "The agent succeeded",
            Self::RecipeSucceeded => "The recipe succeeded",
            Self::SandboxEnded => "The sandbox ended well",
            Self::CommandSucceeded => "The command succeeded",
            Self::NoChange => "The agent succeeded and changed nothing",
            Self::Partial => "The work is partial",
            Self::Blocked => "The run is blocked",
            Self::Denied => "The policy refused the run",
            Self::Failed => "The run failed",
            Self::TimedOut => "The run timed out",
            Self::Cancelled => "The run was cancelled",
            Self::InterruptedHeld => {
                "the supervisor of this run died while its sandbox was held: what was done in it is in the bundle, what it changed is lost but for its snapshots"
            }
            Self::InterruptedSecret => {
                "the supervisor of this run died after its guest had ended; what that changed holds a secret and is not in the bundle, run again"
            }
            Self::InterruptedChange => {
                "the supervisor of this run died after its guest had ended; the captured change is in a bundle without checks, which cannot be approved"
            }
            Self::InterruptedJournal => {
                "the supervisor of this run died before what its guest changed was saved; only its journal is left, run again"
            }
            Self::InterruptedEmpty => {
                "the supervisor of this run died before anything ran in its sandbox; run again"
            }
        }
    }
}

/// How many paths changed, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCounts {
    /// New paths.
    pub added: usize,
    /// Paths with other contents.
    pub modified: usize,
    /// Removed paths.
    pub deleted: usize,
}

impl ChangeCounts {
    /// All of them.
    #[must_use]
    pub const fn total(self) -> usize {
        self.added + self.modified + self.deleted
    }
}

/// What goes into the sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryArgs {
    /// Changed paths; absent where the sentence names none.
    #[serde(flatten)]
    pub changes: Option<ChangeCounts>,
    /// How many checks ran; absent without checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks_total: Option<usize>,
    /// How many of them passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks_passed: Option<usize>,
    /// Code of the run's error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCode>,
    /// Message of that error, redacted. In English, as every error of the runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The supervisor died after it had written the bundle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supervisor_died: bool,
}

impl SummaryArgs {
    /// PHP would turn an empty object into a list, so it is left out.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The sentence as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Which sentence.
    pub code: SummaryCode,
    /// What goes into it.
    #[serde(default, skip_serializing_if = "SummaryArgs::is_empty")]
    pub args: SummaryArgs,
}

impl RunSummary {
    /// A sentence without arguments.
    #[must_use]
    pub fn new(code: SummaryCode) -> Self {
        Self {
            code,
            args: SummaryArgs::default(),
        }
    }

    /// The sentence in English.
    #[must_use]
    pub fn sentence(&self) -> String {
        let args = &self.args;
        let mut said = self.code.text().to_owned();
        if let Some(reason) = &args.reason {
            said = format!("{said}: {reason}");
        }
        if let Some(changes) = args.changes {
            let quiet = self.code == SummaryCode::NoChange && args.checks_total.is_none();
            said = match quiet {
                true => format!("{said}."),
                false => format!("{said} ({}{}).", changed(changes), checked(args)),
            };
        }
        if args.supervisor_died {
            said.push_str(" (the supervisor died after it had written the bundle)");
        }
        said
    }
}

fn changed(changes: ChangeCounts) -> String {
    let ChangeCounts {
        added,
        modified,
        deleted,
    } = changes;
    match changes.total() {
        0 => "no file changed".to_owned(),
        total => format!(
            "{} changed: {added} added, {modified} modified, {deleted} deleted",
            plural(total, "file")
        ),
    }
}

fn checked(args: &SummaryArgs) -> String {
    let passed = args.checks_passed.unwrap_or(0);
    args.checks_total.map_or_else(String::new, |total| {
        format!("; {passed} of {} passed", plural(total, "check"))
    })
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_summary_is_the_same_after_a_round_trip_and_omits_what_it_does_not_say() {
        let bare = RunSummary::new(SummaryCode::InterruptedEmpty);
        assert_eq!(json!(bare), json!({"code": "interrupted_empty"}));
        let full = RunSummary {
            code: SummaryCode::Failed,
            args: SummaryArgs {
                changes: Some(ChangeCounts {
                    added: 0,
                    modified: 2,
                    deleted: 1,
                }),
                checks_total: Some(1),
                checks_passed: Some(0),
                error: Some(ErrorCode::RunTimeout),
                reason: Some("why".to_owned()),
                supervisor_died: true,
            },
        };
        let shown = json!(full);
        assert_eq!(
            shown,
            json!({"code": "failed", "args": {
                "added": 0, "modified": 2, "deleted": 1, "checks_total": 1, "checks_passed": 0,
                "error": "wp_codebox_run_timeout", "reason": "why", "supervisor_died": true,
            }})
        );
        for summary in [bare, full] {
            let back: RunSummary = serde_json::from_value(json!(summary)).unwrap();
            assert_eq!(back, summary);
        }
        assert!(serde_json::from_value::<RunSummary>(json!({"code": "other"})).is_err());
    }
}
