//! `sandbox-session/v1`: the ids of a call and of its caller. Sessions are not stored.

use crate::{ErrorBody, schema_id};
use serde_json::{Map, Value};

/// Whether the sandboxes of a call are ready or have ended: `status` of `sandbox-session/v1`. It
/// says nothing about the result of the work, except for fan-outs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// The sandboxes exist.
    Ready,
    /// The call has ended, with or without success.
    Completed,
    /// A fan-out has ended without success. Only fan-outs have this status.
    Failed,
}

impl SessionState {
    /// Returns the status as it is written in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SessionState::Ready => "ready",
            SessionState::Completed => "completed",
            SessionState::Failed => "failed",
        }
    }
}

/// Returns the document `sandbox-session/v1` of a call. `input` is the input of the call, which may
/// contain the caller's own ids.
#[must_use]
pub fn sandbox_session(
    input: &Map<String, Value>,
    state: SessionState,
    id: &str,
) -> Map<String, Value> {
    let mut session = Map::from_iter([
        ("schema".to_owned(), schema_id::SANDBOX_SESSION.into()),
        ("id".to_owned(), id.into()),
        ("status".to_owned(), state.as_str().into()),
        ("persistence".to_owned(), "external-orchestrator".into()),
    ]);
    for (from, to) in [
        ("session_id", "agent_session_id"),
        ("orchestrator", "orchestrator"),
    ] {
        if let Some(given) = given(input, from) {
            session.insert(to.to_owned(), given.clone());
        }
    }
    session
}

/// Returns the session id in the caller's input, or else a new one from `new`.
pub fn session_id(
    input: &Map<String, Value>,
    new: impl FnOnce() -> Result<String, ErrorBody>,
) -> Result<String, ErrorBody> {
    own_session_id(input).map_or_else(new, |id| Ok(id.to_owned()))
}

/// Returns the session id in the caller's input.
pub(super) fn own_session_id(input: &Map<String, Value>) -> Option<&str> {
    ["sandbox_session_id", "session_id"]
        .iter()
        .filter_map(|field| input.get(*field)?.as_str())
        .map(str::trim)
        .find(|id| !id.is_empty())
}

/// Returns a member that is not empty. An empty object counts as absent, because PHP cannot
/// distinguish it from an empty list.
pub(super) fn given<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn session_id_of_the_caller_is_used_and_a_new_one_if_the_caller_gives_none() {
        let input = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let new = || Ok("new".to_owned());
        assert_eq!(session_id(&input("{}"), new).unwrap(), "new");
        let given = input(
            r#"{"sandbox_session_id": " ", "session_id": "mine", "orchestrator": {"id": "o"}}"#,
        );
        assert_eq!(session_id(&given, new).unwrap(), "mine");
        let session = sandbox_session(&given, SessionState::Completed, "x");
        assert_eq!(session["agent_session_id"], "mine");
        assert_eq!(session["orchestrator"], json!({"id": "o"}));
        let without = sandbox_session(&input("{}"), SessionState::Failed, "x");
        assert!(!without.contains_key("orchestrator"));
    }
}
