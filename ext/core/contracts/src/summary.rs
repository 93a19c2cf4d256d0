//! The outcome of a run in one sentence, and as a code with arguments that user interfaces can
//! translate.

use crate::ErrorCode;
use serde::{Deserialize, Serialize};

/// Code of the sentence that describes how a run ended.
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
    /// Only a part of the work is complete.
    Partial,
    /// A human must resolve a problem before the change can be approved.
    Blocked,
    /// The policy denied the run.
    Denied,
    /// The run failed.
    Failed,
    /// The run reached its deadline.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
    /// The supervisor died while it kept the sandbox open for further commands.
    InterruptedHeld,
    /// The supervisor died, and the captured change contains a secret.
    InterruptedSecret,
    /// The supervisor died, and the captured change is in a bundle.
    InterruptedChange,
    /// The supervisor died before a change was captured.
    InterruptedJournal,
    /// The supervisor died before any program ran.
    InterruptedEmpty,
}

impl SummaryCode {
    /// Returns the English sentence of this code, without arguments. For an interrupted run it is
    /// also the error message.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::AgentSucceeded => "The agent succeeded",
            Self::RecipeSucceeded => "The recipe succeeded",
            Self::SandboxEnded => "The sandbox ended well",
            Self::CommandSucceeded => "The command succeeded",
            Self::NoChange => "The agent succeeded and changed no file",
            Self::Partial => "The work is partial",
            Self::Blocked => "The run is blocked",
            Self::Denied => "The policy refused the run",
            Self::Failed => "The run failed",
            Self::TimedOut => "The run timed out",
            Self::Cancelled => "The run was cancelled",
            Self::InterruptedHeld => {
                "the supervisor of this run died while the sandbox was kept open for commands: the bundle lists the commands; of the changed files, only the snapshots are left"
            }
            Self::InterruptedSecret => {
                "the supervisor of this run died after its guest had ended; the changes made in the guest contain a secret and are not in the bundle: run again"
            }
            Self::InterruptedChange => {
                "the supervisor of this run died after its guest had ended; the changes are in a bundle that was not checked and cannot be approved: run again"
            }
            Self::InterruptedJournal => {
                "the supervisor of this run died before the changes of its guest were saved; only the journal of the run is left: run again"
            }
            Self::InterruptedEmpty => {
                "the supervisor of this run died before anything ran in its sandbox; run again"
            }
        }
    }
}

/// Number of changed paths by kind of change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCounts {
    /// Number of new paths.
    pub added: usize,
    /// Number of existing paths whose contents, mode or type changed.
    pub modified: usize,
    /// Number of deleted paths.
    pub deleted: usize,
}

impl ChangeCounts {
    /// Returns the total number of changed paths.
    #[must_use]
    pub const fn total(self) -> usize {
        self.added + self.modified + self.deleted
    }
}

/// Values that the sentence about a run's end contains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryArgs {
    /// Numbers of changed paths; absent if the sentence does not mention them.
    #[serde(flatten)]
    pub changes: Option<ChangeCounts>,
    /// Number of checks that ran; absent without checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks_total: Option<usize>,
    /// Number of checks that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks_passed: Option<usize>,
    /// Error code of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCode>,
    /// Error message of the run, redacted; in English like every error of the supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the supervisor died after it had written the bundle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supervisor_died: bool,
}

impl SummaryArgs {
    /// Returns whether no value is set. Such `args` are omitted from the JSON, because PHP would
    /// decode an empty object as a list.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The sentence that describes how a run ended, as a code and arguments that user interfaces can
/// translate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Code of the sentence that describes how the run ended.
    pub code: SummaryCode,
    /// Values that the sentence contains.
    #[serde(default, skip_serializing_if = "SummaryArgs::is_empty")]
    pub args: SummaryArgs,
}

impl RunSummary {
    /// Creates a summary whose sentence has no arguments.
    #[must_use]
    pub fn new(code: SummaryCode) -> Self {
        Self {
            code,
            args: SummaryArgs::default(),
        }
    }

    /// Returns the sentence in English.
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
    fn run_summary_round_trips_through_json_and_omits_absent_arguments() {
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
