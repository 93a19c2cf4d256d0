//! Step 12: runtime episode traces. Every digest is computed again.

use super::files::Session;
use super::shape::{digest, full_text, text};
use crate::canonical::OverLimit;
use crate::digest::episode_digest;
use crate::json::Json;
use wp_codebox_contracts::ViolationCode;

const TRACE: &str = "wp-codebox/runtime-episode-trace/v1";
const ACTION: &str = "wp-codebox/runtime-episode-action/v1";
const OBSERVATION: &str = "wp-codebox/runtime-episode-observation/v1";
const SNAPSHOT: &str = "wp-codebox/runtime-episode-snapshot/v1";
/// Words of benchmarks and products, which have no place in a generic trace.
const FORBIDDEN: [&str; 11] = [
    "reward",
    "success",
    "grader",
    "scenario",
    "task-set",
    "task_set",
    "taskSet",
    "benchmark",
    "model-eval",
    "model_eval",
    "modelEval",
];

pub(super) fn check(session: &mut Session<'_>) {
    for path in session.of_kind("runtime-episode-trace") {
        let issues = match session.document(&path).map(|b| Json::parse(&b)) {
            Some(Ok(trace)) => trace_issues(&trace),
            _ => vec!["$: not strict JSON".to_owned()],
        };
        if !issues.is_empty() {
            let message = format!("the episode trace does not hold: {}", issues.join("; "));
            session.add(
                ViolationCode::MalformedReference,
                &path,
                Some(&path),
                message,
            );
        }
    }
}

/// Everything wrong with a trace, each as `$.path: what`.
fn trace_issues(trace: &Json) -> Vec<String> {
    let mut issues = Issues(Vec::new());
    issues.unless(trace.as_object().is_some(), "$", "must be an object");
    issues.unless(text(trace, "schema") == Some(TRACE), "$.schema", "unknown");
    let version = trace.get("version").and_then(Json::as_f64);
    issues.unless(version == Some(1.0), "$.version", "must be 1");
    for key in ["id", "createdAt"] {
        issues.unless(
            full_text(trace, key).is_some(),
            &format!("$.{key}"),
            "missing",
        );
    }
    for key in ["runtime", "reset"] {
        let named = trace.get(key).is_some_and(|v| full_text(v, "id").is_some());
        issues.unless(named, &format!("$.{key}.id"), "missing");
    }
    let reset = trace.get("reset");
    let list = |key| reset.and_then(|r| r.get(key)).and_then(Json::as_array);
    let observations = list("observations");
    issues.unless(
        observations.is_some(),
        "$.reset.observations",
        "must be a list",
    );
    for (index, observation) in observations.unwrap_or_default().iter().enumerate() {
        issues.observation(observation, &format!("$.reset.observations[{index}]"));
    }
    let references = list("observationRefs");
    issues.unless(
        references.is_some(),
        "$.reset.observationRefs",
        "must be a list",
    );
    for (index, reference) in references.unwrap_or_default().iter().enumerate() {
        let at = format!("$.reset.observationRefs[{index}]");
        issues.reference(reference, Some("observation"), &at);
        let target = observations.and_then(|o| o.get(index));
        issues.same_digest(reference, target.and_then(|o| digest(o.get("digest"))), &at);
    }
    for (key, judge) in [
        ("steps", Issues::step as fn(&mut Issues, &Json, usize, &str)),
        ("snapshots", |issues, snapshot, _, at| {
            issues.snapshot(snapshot, at)
        }),
    ] {
        let rows = trace.get(key).and_then(Json::as_array);
        issues.unless(rows.is_some(), &format!("$.{key}"), "must be a list");
        for (index, row) in rows.unwrap_or_default().iter().enumerate() {
            judge(&mut issues, row, index, &format!("$.{key}[{index}]"));
        }
    }
    issues.forbidden(trace, "$");
    issues.0
}

struct Issues(Vec<String>);

impl Issues {
    fn unless(&mut self, fits: bool, at: &str, what: &str) {
        if !fits {
            self.0.push(format!("{at}: {what}"));
        }
    }

    fn step(&mut self, step: &Json, index: usize, at: &str) {
        self.unless(
            full_text(step, "id").is_some(),
            &format!("{at}.id"),
            "missing",
        );
        let position = step.get("index").and_then(Json::as_f64);
        self.unless(
            position == Some(index as f64),
            &format!("{at}.index"),
            "must be its position",
        );
        let null = Json::Null;
        let action = step.get("action").unwrap_or(&null);
        if full_text(action, "id").is_some() {
            self.action(action, &format!("{at}.action"));
        } else {
            self.unless(false, &format!("{at}.action.id"), "missing");
        }
        let execution = step
            .get("execution")
            .filter(|e| full_text(e, "id").is_some());
        self.unless(
            execution.is_some(),
            &format!("{at}.execution.id"),
            "missing",
        );
        let computed = execution.and_then(|e| episode_digest(e, OverLimit::Drop).ok());
        let targets = [
            ("actionRef", "action", digest(action.get("digest"))),
            (
                "executionRef",
                "execution",
                computed.as_ref().map(|h| h.as_str()),
            ),
        ];
        for (key, kind, target) in targets {
            let reference = step.get(key).unwrap_or(&null);
            let at = format!("{at}.{key}");
            self.reference(reference, Some(kind), &at);
            self.same_digest(reference, target, &at);
        }
        let observation = step.get("observation").filter(|o| **o != Json::Null);
        if let Some(observation) = observation {
            self.observation(observation, &format!("{at}.observation"));
        }
        if let Some(reference) = step.get("observationRef").filter(|r| **r != Json::Null) {
            let at = format!("{at}.observationRef");
            self.reference(reference, Some("observation"), &at);
            self.same_digest(
                reference,
                observation.and_then(|o| digest(o.get("digest"))),
                &at,
            );
        }
    }

    fn action(&mut self, action: &Json, at: &str) {
        const TEXTS: [&str; 6] = [
            "method",
            "url",
            "path",
            "operation",
            "selector",
            "description",
        ];
        self.unless(
            text(action, "schema") == Some(ACTION),
            &format!("{at}.schema"),
            "unknown",
        );
        let kind = text(action, "kind");
        let known = ["command", "filesystem", "http", "browser"];
        self.unless(
            kind.is_some_and(|k| known.contains(&k)),
            &format!("{at}.kind"),
            "unknown",
        );
        self.unless(
            full_text(action, "command").is_some(),
            &format!("{at}.command"),
            "missing",
        );
        let args = action.get("args").and_then(Json::as_array);
        let fits = args.is_some_and(|a| a.iter().all(|v| matches!(v, Json::String(_))));
        self.unless(fits, &format!("{at}.args"), "must be a list of strings");
        let mut payload = vec![
            ("schema".into(), Json::String(ACTION.into())),
            (
                "kind".into(),
                action
                    .get("kind")
                    .cloned()
                    .unwrap_or(Json::String("command".into())),
            ),
            (
                "command".into(),
                action.get("command").cloned().unwrap_or(Json::Null),
            ),
            (
                "args".into(),
                Json::Array(args.unwrap_or_default().to_vec()),
            ),
        ];
        for key in std::iter::once("cwd").chain(TEXTS) {
            match action.get(key) {
                None => {}
                Some(Json::String(value)) => {
                    let empty = key != "cwd" && *value == "".into();
                    self.unless(!empty, &format!("{at}.{key}"), "must not be empty");
                    payload.push((key.into(), Json::String(value.clone())));
                }
                Some(_) => self.unless(false, &format!("{at}.{key}"), "must be a string"),
            }
        }
        if let Some(value) = action.get("timeoutMs") {
            let fits = value.as_f64().is_some_and(|n| n >= 0.0);
            self.unless(fits, &format!("{at}.timeoutMs"), "must be a number from 0");
            if value.as_f64().is_some() {
                payload.push(("timeoutMs".into(), value.clone()));
            }
        }
        if let Some(value) = action.get("metadata") {
            let fits = value.as_object().is_some();
            self.unless(fits, &format!("{at}.metadata"), "must be an object");
            if fits {
                payload.push(("metadata".into(), value.clone()));
            }
        }
        self.own_digest(action, &Json::Object(payload), at);
    }

    fn observation(&mut self, observation: &Json, at: &str) {
        self.unless(
            text(observation, "schema") == Some(OBSERVATION),
            &format!("{at}.schema"),
            "unknown",
        );
        for key in ["id", "type", "observedAt"] {
            self.unless(
                full_text(observation, key).is_some(),
                &format!("{at}.{key}"),
                "missing",
            );
        }
        self.unless(
            observation.get("data").is_some(),
            &format!("{at}.data"),
            "missing",
        );
        self.envelope(
            observation,
            OBSERVATION,
            &["type", "data", "observedAt"],
            at,
        );
    }

    fn snapshot(&mut self, snapshot: &Json, at: &str) {
        self.unless(
            text(snapshot, "schema") == Some(SNAPSHOT),
            &format!("{at}.schema"),
            "unknown",
        );
        for key in ["id", "createdAt", "semantics"] {
            self.unless(
                full_text(snapshot, key).is_some(),
                &format!("{at}.{key}"),
                "missing",
            );
        }
        let object = snapshot
            .get("metadata")
            .is_some_and(|m| m.as_object().is_some());
        self.unless(object, &format!("{at}.metadata"), "must be an object");
        self.envelope(
            snapshot,
            SNAPSHOT,
            &["id", "createdAt", "semantics", "metadata"],
            at,
        );
    }

    /// Artifact references and the digest over schema, the named members and the references.
    fn envelope(&mut self, value: &Json, schema: &str, keys: &[&str], at: &str) {
        let references = value.get("artifactRefs");
        match references.map(Json::as_array) {
            None => {}
            Some(None) => self.unless(false, &format!("{at}.artifactRefs"), "must be a list"),
            Some(Some(rows)) => {
                for (index, row) in rows.iter().enumerate() {
                    self.reference(row, None, &format!("{at}.artifactRefs[{index}]"));
                }
            }
        }
        let mut payload = vec![("schema".into(), Json::String(schema.into()))];
        for key in keys {
            if let Some(member) = value.get(key) {
                payload.push(((*key).into(), member.clone()));
            }
        }
        let references = references.cloned().unwrap_or(Json::Array(Vec::new()));
        payload.push(("artifactRefs".into(), references));
        self.own_digest(value, &Json::Object(payload), at);
    }

    fn own_digest(&mut self, value: &Json, payload: &Json, at: &str) {
        let computed = episode_digest(payload, OverLimit::Drop).ok();
        let stated = digest(value.get("digest"));
        let fits = stated.is_some() && stated == computed.as_ref().map(|h| h.as_str());
        self.unless(
            fits,
            &format!("{at}.digest"),
            "does not belong to the payload",
        );
    }

    fn reference(&mut self, reference: &Json, kind: Option<&str>, at: &str) {
        let stated = full_text(reference, "kind");
        let fits = stated.is_some() && (kind.is_none() || stated == kind);
        self.unless(fits, &format!("{at}.kind"), "wrong");
        self.unless(
            full_text(reference, "id").is_some(),
            &format!("{at}.id"),
            "missing",
        );
        let fits = digest(reference.get("digest")).is_some();
        self.unless(fits, &format!("{at}.digest"), "must be a sha256 digest");
    }

    fn same_digest(&mut self, reference: &Json, target: Option<&str>, at: &str) {
        if let (Some(stated), Some(target)) = (digest(reference.get("digest")), target) {
            self.unless(
                stated == target,
                &format!("{at}.digest"),
                "is of something else",
            );
        }
    }

    fn forbidden(&mut self, value: &Json, at: &str) {
        if at == "$.artifacts" || at.ends_with(".data") || at.ends_with(".metadata") {
            return;
        }
        for (index, item) in value.as_array().unwrap_or_default().iter().enumerate() {
            self.forbidden(item, &format!("{at}[{index}]"));
        }
        for (key, item) in value.as_object().unwrap_or_default() {
            let key = key.as_str().unwrap_or("?");
            let at = format!("{at}.{key}");
            self.unless(!FORBIDDEN.contains(&key), &at, "has no place in a trace");
            self.forbidden(item, &at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn action_digest_vector() {
        let action = json!({
            "args": ["code=echo 1;"], "command": "wordpress.run-php", "kind": "command",
            "schema": ACTION,
        });
        assert_eq!(
            episode_digest(&Json::from(&action), OverLimit::Refuse)
                .unwrap()
                .as_str(),
            "1abdc64c3c23bbf29711726f68d784c15f9d6457e40842bdd72eb23362e025bc"
        );
    }
}
