//! Result rows of the tasks in a batch or fan-out, and the number of rows for each status. Every
//! row has exactly one of five statuses; only a run with a successful outcome is `completed`.

use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome, string_enum};

string_enum! {
    /// Status of one task of a batch or fan-out.
    #[derive(PartialOrd, Ord)]
    pub enum GroupStatus {
        /// The run had a successful outcome.
        Completed = "completed",
        /// The run had no successful outcome, or the task was refused before a run started.
        Failed = "failed",
        /// The task did not start because another task did not complete.
        Skipped = "skipped",
        /// The task was cancelled, before or after its start.
        Cancelled = "cancelled",
        /// The run reached its deadline.
        TimedOut = "timed_out",
    }
}

impl GroupStatus {
    /// Returns the status of a task whose run had this outcome.
    #[must_use]
    pub const fn of_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded | Outcome::NoOp => GroupStatus::Completed,
            Outcome::TimedOut => GroupStatus::TimedOut,
            Outcome::Cancelled => GroupStatus::Cancelled,
            Outcome::Partial | Outcome::Blocked | Outcome::Denied | Outcome::Failed => {
                GroupStatus::Failed
            }
        }
    }

    /// Returns the status of a task whose run failed with this error code and without an outcome.
    #[must_use]
    pub const fn of_error(code: ErrorCode) -> Self {
        match code {
            ErrorCode::RunCancelled => GroupStatus::Cancelled,
            ErrorCode::RunTimeout => GroupStatus::TimedOut,
            _ => GroupStatus::Failed,
        }
    }
}

/// Returns the outcome of the run that a result row describes.
pub(super) fn row_outcome(row: &Map<String, Value>) -> Option<&str> {
    row.get("run")?.get("outcome")?.as_str()
}

/// Returns the status of a result row: its member `status`, otherwise the status that follows from
/// the outcome of its run or from its error code, otherwise `failed`.
#[must_use]
pub fn row_status(row: &Map<String, Value>) -> GroupStatus {
    let said = |value: Option<&Value>| value.cloned().unwrap_or_default();
    if let Ok(status) = serde_json::from_value(said(row.get("status"))) {
        return status;
    }
    let outcome = row_outcome(row).map(Value::from).unwrap_or_default();
    if let Ok(outcome) = serde_json::from_value(outcome) {
        return GroupStatus::of_outcome(outcome);
    }
    let code = row.get("error").and_then(|error| error.get("code"));
    serde_json::from_value(said(code)).map_or(GroupStatus::Failed, GroupStatus::of_error)
}

/// Number of result rows for each status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals([u64; 5]);

impl Totals {
    /// Adds one row with this status.
    pub fn count(&mut self, status: GroupStatus) {
        self.0[status as usize] += 1;
    }

    /// Returns the number of rows with the given status.
    #[must_use]
    pub const fn of(&self, status: GroupStatus) -> u64 {
        self.0[status as usize]
    }

    /// Returns the number of all rows together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the numbers as JSON members: `total`, and one named after each status.
    #[must_use]
    pub fn members(&self) -> Map<String, Value> {
        let mut members = Map::from_iter([("total".to_owned(), self.total().into())]);
        for status in GroupStatus::ALL {
            members.insert(status.as_str().to_owned(), self.of(*status).into());
        }
        members
    }
}

/// Returns the exit status of a batch or fan-out: 0 if it succeeded (`good`), otherwise 130 if a
/// task was cancelled, otherwise 3 if a task completed, otherwise 1.
#[must_use]
pub const fn group_exit_code(good: bool, totals: &Totals) -> u8 {
    if good {
        0
    } else if totals.of(GroupStatus::Cancelled) > 0 {
        130
    } else if totals.of(GroupStatus::Completed) > 0 {
        3
    } else {
        1
    }
}

/// Returns the result row of a task that failed with an error and without an outcome.
#[must_use]
pub fn failed_row(error: &ErrorBody) -> Map<String, Value> {
    row(
        GroupStatus::of_error(error.code),
        error.code.exit_status(),
        json!(error),
    )
}

/// Returns the result row of a task that did not start because of another task. `code` is the
/// row's error code; it is not one of the stable error codes.
#[must_use]
pub fn skipped_row(code: &str, message: &str) -> Map<String, Value> {
    let error = json!({"code": code, "message": message});
    row(GroupStatus::Skipped, 1, error)
}

/// Returns the result row of a task that was cancelled before its start.
#[must_use]
pub fn cancelled_row() -> Map<String, Value> {
    failed_row(&ErrorBody::new(
        ErrorCode::RunCancelled,
        "The task was cancelled before it started.",
    ))
}

fn row(status: GroupStatus, exit_code: u8, error: Value) -> Map<String, Value> {
    Map::from_iter([
        (
            "success".to_owned(),
            (status == GroupStatus::Completed).into(),
        ),
        ("status".to_owned(), status.as_str().into()),
        ("exit_code".to_owned(), exit_code.into()),
        ("error".to_owned(), error),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_status_is_completed_exactly_for_successful_outcomes_and_its_json_is_its_text() {
        for outcome in Outcome::ALL {
            let status = GroupStatus::of_outcome(*outcome);
            assert_eq!(
                status == GroupStatus::Completed,
                outcome.is_success(),
                "{outcome:?}"
            );
        }
        for (at, status) in GroupStatus::ALL.iter().enumerate() {
            assert_eq!(*status as usize, at);
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
    }

    #[test]
    fn status_of_a_task_result_is_its_status_else_run_outcome_else_error_code_else_failed() {
        let status = |row: Value| row_status(row.as_object().unwrap());
        for (row, expected) in [
            (json!({}), GroupStatus::Failed),
            (json!({"status": "completed"}), GroupStatus::Completed),
            (json!({"status": "fine"}), GroupStatus::Failed),
            (json!({"outcome": "no_op"}), GroupStatus::Failed),
            (json!({"run": {"outcome": "no_op"}}), GroupStatus::Completed),
            (json!({"run": {"outcome": "partial"}}), GroupStatus::Failed),
            (
                json!({"run": {"outcome": "timed_out"}}),
                GroupStatus::TimedOut,
            ),
            (json!({"run": {"outcome": 7}}), GroupStatus::Failed),
            (
                json!({"error": {"code": "wp_codebox_run_timeout"}}),
                GroupStatus::TimedOut,
            ),
            (
                json!({"error": {"code": "wp_codebox_run_cancelled"}}),
                GroupStatus::Cancelled,
            ),
            (
                json!({"error": {"code": "of_a_plugin"}}),
                GroupStatus::Failed,
            ),
            (json!({"error": "text"}), GroupStatus::Failed),
        ] {
            assert_eq!(status(row.clone()), expected, "{row}");
        }
    }

    #[test]
    fn group_totals_count_each_status_and_determine_the_exit_status() {
        let totals = |list: &[GroupStatus]| {
            let mut totals = Totals::default();
            list.iter().for_each(|status| totals.count(*status));
            totals
        };
        use GroupStatus as S;
        let some = totals(&[S::Completed, S::Failed, S::Skipped]);
        assert_eq!(
            Value::Object(some.members()),
            json!({"total": 3, "completed": 1, "failed": 1, "skipped": 1, "cancelled": 0, "timed_out": 0})
        );
        for (list, good, exit) in [
            (vec![S::Completed], true, 0),
            (vec![S::Completed, S::Failed], false, 3),
            (vec![S::Failed, S::TimedOut], false, 1),
            (vec![S::Completed, S::Cancelled], false, 130),
        ] {
            assert_eq!(group_exit_code(good, &totals(&list)), exit);
        }
    }
}
