//! Defines which members of a trace each of its digests covers.
//!
//! The covered members are those of another public implementation
//! (docs/decisions/05-bundle-with-canonical-digests.md). As in that implementation, a digest omits
//! optional members of an action that have the wrong type; the validator reports these.

use crate::canonical::{CanonicalError, OverLimit};
use crate::digest::episode_digest;
use crate::json::Json;
use wp_codebox_contracts::{ActionKind, Sha256Hex, SnapshotSemantics, schema_id};

/// Optional text members of an action; the action's digest covers those that exist.
pub(super) const ACTION_TEXTS: [&str; 7] = [
    "cwd",
    "method",
    "url",
    "path",
    "operation",
    "selector",
    "description",
];

/// Returns the digest of the members that `payload` contains.
pub(super) fn digest(payload: &Json, over: OverLimit) -> Result<Sha256Hex, CanonicalError> {
    episode_digest(payload, over)
}

/// Returns the members of an action that its digest covers.
pub(super) fn action(action: &Json) -> Json {
    let member = |key: &str| action.get(key).cloned();
    let mut payload = vec![
        ("schema".into(), text(schema_id::RUNTIME_EPISODE_ACTION)),
        (
            "kind".into(),
            member("kind").unwrap_or_else(|| text(ActionKind::default().as_str())),
        ),
        ("command".into(), member("command").unwrap_or(Json::Null)),
        ("args".into(), list(action.get("args"))),
    ];
    let fits = |key: &str, value: &Json| match value {
        Json::String(_) => ACTION_TEXTS.contains(&key),
        Json::Number(_) => key == "timeoutMs",
        Json::Object(_) => key == "metadata",
        Json::Null | Json::Bool(_) | Json::Array(_) => false,
    };
    for key in ACTION_TEXTS.into_iter().chain(["timeoutMs", "metadata"]) {
        if let Some(value) = action.get(key).filter(|value| fits(key, value)) {
            payload.push((key.into(), value.clone()));
        }
    }
    Json::Object(payload)
}

/// Returns the members of an observation that its digest covers. Its id is not one of them.
pub(super) fn observation(observation: &Json) -> Json {
    envelope(
        observation,
        schema_id::RUNTIME_EPISODE_OBSERVATION,
        &["type", "data", "observedAt"],
    )
}

/// Returns the members of a snapshot that its digest covers.
pub(super) fn snapshot(snapshot: &Json) -> Json {
    let mut payload = envelope(
        snapshot,
        schema_id::RUNTIME_EPISODE_SNAPSHOT,
        &["id", "createdAt", "semantics", "metadata"],
    );
    if let (None, Json::Object(members)) = (snapshot.get("semantics"), &mut payload) {
        let usual = serde_json::to_value(SnapshotSemantics::default()).unwrap_or_default();
        members.push(("semantics".into(), Json::from(&usual)));
    }
    payload
}

fn envelope(value: &Json, schema: &str, keys: &[&str]) -> Json {
    let mut payload = vec![("schema".into(), text(schema))];
    for key in keys {
        if let Some(member) = value.get(key) {
            payload.push(((*key).into(), member.clone()));
        }
    }
    let references = value.get("artifactRefs").cloned();
    let references = references.unwrap_or(Json::Array(Vec::new()));
    payload.push(("artifactRefs".into(), references));
    Json::Object(payload)
}

fn text(text: &str) -> Json {
    Json::String(text.into())
}

fn list(value: Option<&Json>) -> Json {
    let items = value.and_then(Json::as_array).unwrap_or_default();
    Json::Array(items.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hex(payload: &Json) -> String {
        digest(payload, OverLimit::Refuse).unwrap().to_string()
    }

    /// The action has further members and members of the wrong type. Its digest covers none of
    /// them, so it equals the published digest of the action without them.
    #[test]
    fn action_digest_matches_published_vector() {
        let vector = "1abdc64c3c23bbf29711726f68d784c15f9d6457e40842bdd72eb23362e025bc";
        let given = json!({"id": "a", "digest": "d", "command": "wordpress.run-php",
            "args": ["code=echo 1;"], "note": 1, "cwd": 7, "timeoutMs": "5", "metadata": [], "url": null});
        assert_eq!(hex(&action(&Json::from(&given))), vector);
        let mut other = given;
        other["cwd"] = json!("");
        assert_ne!(hex(&action(&Json::from(&other))), vector);
    }

    #[test]
    fn episode_digest_treats_absent_optional_members_as_their_defaults() {
        let bare = json!({"command": "x"});
        let full = json!({"kind": "command", "command": "x", "args": []});
        assert_eq!(action(&Json::from(&bare)), action(&Json::from(&full)));
        let bare = json!({"id": "s", "createdAt": "t", "metadata": {}});
        let full = json!({"id": "s", "createdAt": "t", "metadata": {},
            "semantics": "metadata-only", "artifactRefs": []});
        assert_eq!(
            hex(&snapshot(&Json::from(&bare))),
            hex(&snapshot(&Json::from(&full)))
        );
    }
}
