//! Rows of a group, and what they add up to. Every row has exactly one of five statuses, and
//! only a run whose outcome is good is `completed`.

use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, Outcome, schema_id, string_enum};

string_enum! {
    /// What became of one task.
    #[derive(PartialOrd, Ord)]
    pub enum GroupStatus {
        /// Its outcome is good.
        Completed = "completed",
        /// It is not.
        Failed = "failed",
        /// It never started because of another.
        Skipped = "skipped",
        /// It was cancelled, before or after it started.
        Cancelled = "cancelled",
        /// Its time was up.
        TimedOut = "timed_out",
    }
}

impl GroupStatus {
    /// Of a run that came to an outcome.
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

    /// Of a run that came to none.
    #[must_use]
    pub const fn of_error(code: ErrorCode) -> Self {
        match code {
            ErrorCode::RunCancelled => GroupStatus::Cancelled,
            ErrorCode::RunTimeout => GroupStatus::TimedOut,
            _ => GroupStatus::Failed,
        }
    }
}

/// The status of a row: its own, else what its outcome or the code of its error makes it. A row
/// that says none of them is one of a failure.
#[must_use]
pub fn row_status(row: &Map<String, Value>) -> GroupStatus {
    let said = |value: Option<&Value>| value.cloned().unwrap_or_default();
    if let Ok(status) = serde_json::from_value(said(row.get("status"))) {
        return status;
    }
    if let Ok(outcome) = serde_json::from_value(said(row.get("outcome"))) {
        return GroupStatus::of_outcome(outcome);
    }
    let code = row.get("error").and_then(|error| error.get("code"));
    serde_json::from_value(said(code)).map_or(GroupStatus::Failed, GroupStatus::of_error)
}

/// How many there are of each status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals([u64; 5]);

impl Totals {
    /// One more.
    pub fn count(&mut self, status: GroupStatus) {
        self.0[status as usize] += 1;
    }

    /// How many of one status.
    #[must_use]
    pub const fn of(&self, status: GroupStatus) -> u64 {
        self.0[status as usize]
    }

    /// How many in all: the parts add up to the whole.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// `total` and each status, as members.
    #[must_use]
    pub fn members(&self) -> Map<String, Value> {
        let mut members = Map::from_iter([("total".to_owned(), self.total().into())]);
        for status in GroupStatus::ALL {
            members.insert(status.as_str().to_owned(), self.of(*status).into());
        }
        members
    }
}

/// Exit status of a group: 0 good, 130 cancelled, 3 some of it, 1 nothing of it.
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

/// Of a task that came to no outcome.
#[must_use]
pub fn failed_row(error: &ErrorBody) -> Map<String, Value> {
    row(
        GroupStatus::of_error(error.code),
        error.code.exit_status(),
        json!(error),
    )
}

/// Of one that never started because of another; `code` is one of this row only.
#[must_use]
pub fn skipped_row(code: &str, message: &str) -> Map<String, Value> {
    let error = json!({"code": code, "message": message});
    row(GroupStatus::Skipped, 1, error)
}

/// Of one that was cancelled before it started.
#[must_use]
pub fn cancelled_row() -> Map<String, Value> {
    failed_row(&ErrorBody::new(
        ErrorCode::RunCancelled,
        "It was cancelled before it started.",
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

/// The session of a group. Nothing of it is stored.
#[must_use]
pub fn group_session(input: &Map<String, Value>, good: bool, id: &str) -> Map<String, Value> {
    let mut session = Map::from_iter([
        ("schema".to_owned(), schema_id::SANDBOX_SESSION.into()),
        ("id".to_owned(), id.into()),
        (
            "status".to_owned(),
            if good { "completed" } else { "failed" }.into(),
        ),
        ("persistence".to_owned(), "external-orchestrator".into()),
    ]);
    for (from, to) in [
        ("session_id", "agent_session_id"),
        ("orchestrator", "orchestrator"),
    ] {
        if let Some(given) = input.get(from).filter(|given| is_something(given)) {
            session.insert(to.to_owned(), given.clone());
        }
    }
    session
}

fn is_something(given: &Value) -> bool {
    match given {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => true,
    }
}

/// The caller's id of the call; `new` makes one.
pub fn session_id(
    input: &Map<String, Value>,
    new: impl FnOnce() -> Result<String, ErrorBody>,
) -> Result<String, ErrorBody> {
    let given = ["sandbox_session_id", "session_id"]
        .iter()
        .filter_map(|field| input.get(*field)?.as_str())
        .map(str::trim)
        .find(|id| !id.is_empty());
    given.map_or_else(new, |id| Ok(id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_good_outcomes_are_completed() {
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
    fn a_row_that_does_not_say_it_is_good_is_not() {
        let status = |row: Value| row_status(row.as_object().unwrap());
        for (row, expected) in [
            (json!({}), GroupStatus::Failed),
            (json!({"status": "completed"}), GroupStatus::Completed),
            (json!({"status": "fine"}), GroupStatus::Failed),
            (json!({"outcome": "no_op"}), GroupStatus::Completed),
            (json!({"outcome": "partial"}), GroupStatus::Failed),
            (json!({"outcome": "timed_out"}), GroupStatus::TimedOut),
            (json!({"outcome": 7}), GroupStatus::Failed),
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
    fn parts_add_up_and_say_how_it_ends() {
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

    #[test]
    fn a_session_is_the_callers_or_a_new_one() {
        let input = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let new = || Ok("new".to_owned());
        assert_eq!(session_id(&input("{}"), new).unwrap(), "new");
        let given = input(
            r#"{"sandbox_session_id": " ", "session_id": "mine", "orchestrator": {"id": "o"}}"#,
        );
        assert_eq!(session_id(&given, new).unwrap(), "mine");
        let session = group_session(&given, true, "x");
        assert_eq!(session["agent_session_id"], "mine");
        assert_eq!(session["orchestrator"], json!({"id": "o"}));
        assert!(!group_session(&input("{}"), false, "x").contains_key("orchestrator"));
    }
}
